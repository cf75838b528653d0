"""Composites that became others: whoever knows the name of one computes by it, and not by what it stands for.

Both versions are read with their composites written out (`hlo_lower.verify.read.program`), as each is what its
decomposition computes: so one may be written out, operations may become one, and a wrong decomposition differs as any
operations do. What a consumer sees beside that is compared here: name, attributes, operands.

    %r = composite "my.norm" %x {epsilon = 1.0e-5}      %r = composite "my.norm" %x {epsilon = 1.0e-3}

Two composites stand at one place where they give values that both versions have, or else within one region. At each
place as many as are lost may be written out, and as many as come in may be new; where some are lost and others come in,
one became another.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from hlo_lower.verify.align.align import BodyPair, Region, Side, regions_of
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Body, Composite, ValueId, location_of, ops_within

_Place: TypeAlias = tuple[object, ...]
_Seen: TypeAlias = tuple[Composite, tuple[Number | None, ...] | None]
"""A composite, and the numbers of its operands; None where the two versions cannot be compared in these."""


def composite_differences(pairs: Sequence[BodyPair]) -> list[str]:
    """The composites of the second version that are others than those of the first one, a line each.

    Args:
      pairs: the aligned bodies of a function.
    """
    found: list[str] = []
    aligned = {side.body for pair in pairs for side in (pair.first, pair.second)}
    for pair in pairs:
        regions = regions_of([pair])
        mine, theirs = (dict(_by_place(pair, side, regions, aligned)) for side in (pair.first, pair.second))
        for place in theirs:
            told = _others(mine.get(place, []), theirs[place])
            found.extend(f"{' > '.join(pair.where)}: {what}" for what in told)
    return list(dict.fromkeys(found))


def _others(mine: Sequence[_Seen], theirs: Sequence[_Seen]) -> Iterator[str]:
    """What became another one at one place."""
    before, after = (Counter(composite.attributes for composite, _ in seen) for seen in (mine, theirs))
    for composite, operands in theirs:
        told = f"composite {composite.raw.attributes['name']} at {location_of(composite.raw)}"
        known = [taken for other, taken in mine if other.attributes == composite.attributes]
        if before - after and composite.attributes in after - before:
            yield f"{told}: the first version has none of this name and these attributes there"
        elif known and None not in (operands, *known) and operands not in known:
            yield f"{told}: the first version has none of these operands there"


def _by_place(pair: BodyPair, side: Side, regions: Sequence[Region], aligned: set[Body]) -> dict[_Place, list[_Seen]]:
    """The composites of a body, and of the bodies within that are not aligned on their own, by place."""
    found: dict[_Place, list[_Seen]] = defaultdict(list)
    within = {
        op: place
        for place, region in enumerate(regions)
        for op in ops_within(region.first if side is pair.first else region.second)
    }

    def visit(body: Body, numbers: Mapping[ValueId, Number], way: _Place, has: Callable[[Number | None], bool]) -> None:
        for composite in body.composites:
            taken = tuple(_number(numbers, value) for value in composite.inputs)
            for value in composite.results:
                number, maker = _number(numbers, value), side.program.makers[value]
                if number is not None and has(number):
                    found[*way, number].append((composite, taken if all(map(has, taken)) else None))
                elif maker in within:
                    found["region", within[maker]].append((composite, None))
        for op in body.ops:
            own = tuple(_number(numbers, value) for value in op.results)
            is_common = all(map(has, own))
            for place, inner in enumerate(op.bodies):
                if inner not in aligned and None not in own:
                    inside, _ = side.table.within(side.program, inner, numbers, side.depth + 1 + len(way) // 2)
                    visit(
                        inner, inside, (*way, own, place), lambda number, known=is_common: known and number is not None
                    )

    def both_have(number: Number | None) -> bool:
        return number is not None and pair.first.has(number) and pair.second.has(number)

    visit(side.body, side.numbers, (), both_have)
    return found


def _number(numbers: Mapping[ValueId, Number], value: ValueId) -> Number | None:
    """The number of a value; None where nothing that is returned depends on it."""
    try:
        return numbers[value]
    except KeyError:
        return None
