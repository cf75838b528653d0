"""What loops and updates of slices write into a value, and whether that is all of it, or each of it once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from hlo_lower.verify.parts.counted_whiles import Scope, sliced_at, starts_of
from hlo_lower.verify.parts.op_parts import shape_of
from hlo_lower.verify.parts.positions import ZERO, LoopCounter, Position
from hlo_lower.verify.read.program import Op, Program, ValueId

MOST_BOXES = 1 << 16
"""Tiles that are looked at one by one."""

MOST_CELLS = 1 << 22
"""Cells between the ends of tiles that are looked at one by one."""


@dataclass(frozen=True)
class TileWrite:
    """A tile, where it is written, or added, and the counters of the loops in which that happens."""

    tile: ValueId
    offsets: tuple[Position, ...]
    loops: frozenset[LoopCounter] = frozenset()


@dataclass
class Written:
    """What is written into a value, the last first, and what all of it is written into."""

    base: ValueId
    writes: list[TileWrite] = field(default_factory=list[TileWrite])


Step: TypeAlias = Callable[[Op, Written, ValueId | None], ValueId | None]
"""What an op writes is noted, on the way back to a value; gives what that is written into, None where nothing is."""


class Writes:
    """Follow what is written into values of a module.

    Args:
      program, scope: the module.
    """

    def __init__(self, program: Program, scope: Scope) -> None:
        self._program, self._scope = program, scope

    def tiles_of(self, value: ValueId, end: ValueId | None = None) -> Written:
        """The tiles that are written over each other, back to a value."""
        return self._followed(value, end, self._overwritten)

    def added_to(self, value: ValueId, combiner: str, end: ValueId | None = None) -> Written:
        """What is combined into a value by an elementwise op, all of it or tile by tile, back to a value."""
        return self._followed(value, end, lambda op, into, to: self._added(op, combiner, into, to))

    def _followed(self, value: ValueId, end: ValueId | None, step: "Step") -> Written:
        found = Written(value)
        while found.base != end:
            op = self._program.makers[found.base]
            if op is None:
                break
            following = self._through(op, found, step) if op.name == "stablehlo.while" else step(op, found, end)
            if following is None:
                break
            found.base = following
        return found

    def _through(self, op: Op, found: Written, step: "Step") -> ValueId | None:
        """A loop: what an iteration writes into what it carries."""
        loop = self._scope.loops.get(op)
        place = op.results.index(found.base)
        if loop is None or place == loop.place:
            return None
        argument = loop.body.arguments[place]
        inner = self._followed(loop.body.returned[place], argument, step)
        if inner.base != argument or not inner.writes:
            return None
        found.writes += [replace(write, loops=write.loops | {loop.counter}) for write in inner.writes]
        return op.inputs[place]

    def _overwritten(self, op: Op, found: Written, _: ValueId | None) -> ValueId | None:
        if op.name != "stablehlo.dynamic_update_slice":
            return None
        offsets = starts_of(self._program, self._scope, op.inputs[0], op.inputs[1], op.inputs[2:])
        if offsets is None:
            return None
        found.writes.append(TileWrite(op.inputs[1], offsets))
        return op.inputs[0]

    def _added(self, op: Op, combiner: str, found: Written, end: ValueId | None) -> ValueId | None:
        if op.name == f"stablehlo.{combiner}" and len(op.inputs) == 2:
            for place in (0, 1):
                if self._leads(op.inputs[place], combiner, end):
                    zeros = (ZERO,) * len(shape_of(self._program, op.results[0]))
                    found.writes.append(TileWrite(op.inputs[1 - place], zeros))
                    return op.inputs[place]
            return None
        if op.name != "stablehlo.dynamic_update_slice":
            return None
        return self._added_in_place(op, combiner, found)

    def _added_in_place(self, op: Op, combiner: str, found: Written) -> ValueId | None:
        """A tile that is read, combined with, and written back: right whatever stood there."""
        base, updated = op.inputs[0], self._scope.maker(op.inputs[1])
        offsets = starts_of(self._program, self._scope, base, op.inputs[1], op.inputs[2:])
        if updated is None or offsets is None or updated.name != f"stablehlo.{combiner}":
            return None
        for place in (0, 1):
            read = self._scope.maker(updated.inputs[place])
            its = sliced_at(self._program, self._scope, updated.inputs[place])
            if read is not None and its == offsets and read.inputs[0] == base:
                found.writes.append(TileWrite(updated.inputs[1 - place], offsets))
                return base
        return None

    def _leads(self, value: ValueId, combiner: str, end: ValueId | None) -> bool:
        """Whether a value is where the sum so far is: what is carried, a loop's result, or a sum with one of these."""
        if value == end:
            return True
        op = self._program.makers[value]
        if op is None:
            return False
        if end is None and self._scope.known(value) is not None:
            return True
        if op.name == "stablehlo.while":
            return op in self._scope.loops and (end is None or self._leads(op.inputs[op.results.index(value)], "", end))
        if op.name == f"stablehlo.{combiner}" and len(op.inputs) == 2:
            return any(self._leads(v, combiner, end) for v in op.inputs)
        return op.name == "stablehlo.dynamic_update_slice" and self._leads(op.inputs[0], combiner, end)


@dataclass(frozen=True)
class Box:
    """Where tiles begin, their sizes, and the counters of the loops in which they are made."""

    offsets: tuple[Position, ...]
    sizes: tuple[int, ...]
    loops: frozenset[LoopCounter]


def covers(boxes: Iterable[Box], shape: Sequence[int], *, once: bool) -> bool:
    """Whether boxes, of all iterations together, lie inside a shape and cover it; `once`: each position once."""
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for box in boxes:
        needed = [offset.counters() for offset in box.offsets]
        free = set[LoopCounter]().union(*(some for some in needed if some is not None))
        if None in needed or not free <= box.loops:
            return False
        ordered = sorted(box.loops if once else free, key=lambda c: c.loop)
        if len(found) + prod(c.trips for c in ordered) > MOST_BOXES:
            return False
        for values in product(*(range(c.trips) for c in ordered)):
            given = dict(zip(ordered, values, strict=True))
            found.append((tuple(offset.at(given) for offset in box.offsets), box.sizes))
    if 0 in shape:
        return False
    return _are_all(found, shape, once=once)


def _are_all(boxes: list[tuple[tuple[int, ...], tuple[int, ...]]], shape: Sequence[int], *, once: bool) -> bool:
    """Count how often each cell between the ends of boxes is covered."""
    if any(o < 0 or o + s > n for begin, sizes in boxes for o, s, n in zip(begin, sizes, shape, strict=True)):
        return False
    ends: list[dict[int, int]] = []
    for dim, extent in enumerate(shape):
        places = {0, extent} | {b[dim] for b, _ in boxes} | {b[dim] + s[dim] for b, s in boxes}
        ends.append({place: number for number, place in enumerate(sorted(places))})
    cells = [len(places) - 1 for places in ends]
    if prod(cells) > MOST_CELLS:
        return False
    counts = np.zeros(cells, np.int64)
    for begin, sizes in boxes:
        window = tuple(slice(e[b], e[b + s]) for e, b, s in zip(ends, begin, sizes, strict=True))
        counts[window] += 1
    return bool((counts == 1).all() if once else (counts >= 1).all())
