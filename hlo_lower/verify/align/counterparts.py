"""Which operation of the first version one of the second version stands for: the one of the same number.

The numbers (`hlo_lower.verify.read.numbering`) are those of a table that leaves out what is compared beside what is
computed, flags and requests, so that operations that differ in these alone have one number.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo_lower.verify.align.align import Side
from hlo_lower.verify.read.numbering import Number, Table
from hlo_lower.verify.read.program import Op, Program, ValueId, ops_within


class Numbered(NamedTuple):
    """Operations of a body, and the numbers of all values that they read and give."""

    program: Program
    ops: Sequence[Op]
    numbers: Mapping[ValueId, Number]
    depth: int


def counterparts(
    table: Table, first: Numbered, second: Numbered, wanted: Callable[[Op], bool]
) -> Iterator[tuple[list[Op], Op]]:
    """Operations of the second body, those in regions too, each with those of the first one of the same number."""
    by_number: dict[tuple[Number, ...], list[Op]] = defaultdict(list)
    for op in first.ops:
        by_number[_number(first, op)].append(op)
    for op in second.ops:
        mine = by_number.get(_number(second, op), []) if op.results else []
        if wanted(op):
            yield mine, op
        for k, body in enumerate(op.bodies):
            held = [inner for inner in ops_within(body.ops) if wanted(inner)]
            if held and mine:
                yield from counterparts(table, _body(table, first, mine, k), _body(table, second, [op], k), wanted)
            else:
                yield from (([], inner) for inner in held)


def _number(side: Numbered, op: Op) -> tuple[Number, ...]:
    return tuple(side.numbers[result] for result in op.results)


def _body(table: Table, around: Numbered, owners: Sequence[Op], place: int) -> Numbered:
    """The bodies of operations of one number at a place, as one."""
    numbers: dict[ValueId, Number] = {}
    for owner in owners:
        numbers |= table.within(around.program, owner.bodies[place], around.numbers, around.depth + 1)[0]
    inner = [op for owner in owners for op in owner.bodies[place].ops]
    return Numbered(around.program, inner, _Behind(numbers, around.numbers), around.depth + 1)


class _Behind(dict[ValueId, Number]):
    """Numbers, and behind them others."""

    def __init__(self, own: Mapping[ValueId, Number], around: Mapping[ValueId, Number]) -> None:
        super().__init__(own)
        self._around = around

    def __missing__(self, value: ValueId) -> Number:
        return self._around[value]


class _Given(dict[ValueId, Number]):
    """Numbers of a piece, and behind them those that what it takes has in the alignment."""

    def __init__(self, table: Table, given: Mapping[ValueId, Number]) -> None:
        super().__init__()
        self._table, self._given = table, given

    def __missing__(self, value: ValueId) -> Number:
        return self._table.of(("given", self._given[value]))


def numbered(table: Table, side: Side, ops: Sequence[Op]) -> Numbered:
    """A piece of a region; what it takes is numbered as in the alignment, and what is known, too."""
    numbers = _Given(table, side.numbers)
    for op in ops:
        if any(side.numbers.get(result) not in side.table.known for result in op.results):
            found = table.results(side.program, op, numbers, side.depth, side.place_of_effect(op))
            numbers.update(zip(op.results, found, strict=True))
    return Numbered(side.program, ops, numbers, side.depth)
