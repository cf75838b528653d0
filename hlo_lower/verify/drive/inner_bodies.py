"""Decisions within the bodies of reductions, scatters and sorts, which no run counts: those that one piece alone makes.

A body that compares its arguments as they are, as those of maxima, of arguments of maxima and of most sorts do, is
driven by the elements that it is given. One that compares what it computes may decide otherwise for a single number.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlo_lower.base.element_types import element_type_of
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Body, Op, ValueId, location_of, ops_within

COUNTED = frozenset({"if", "case", "while"})
"""Operations in whose bodies outcomes are counted (`hlo_lower.verify.drive.outcomes`)."""

DECIDING = {"compare": 2, "maximum": 2, "minimum": 2, "clamp": 3}
"""Operations that decide, and how many operands they decide by."""

KEEPING = frozenset({"negate", "abs", "bitcast_convert", "reshape", "broadcast_in_dim", "compare", "select"})
"""Operations that compare their operands, choose among them, or give each as it is, perhaps with another sign."""

OF_TRUTHS = frozenset({"and", "or", "not"})
"""Operations that join truth values."""


def undriven(region: Region) -> Iterator[str]:
    """What decides by computed values within such a body, where the other piece has no such body."""
    bodies = [dict(_bodies(side, ops)) for side, ops in region.sides]
    for mine, others in zip(bodies, bodies[::-1], strict=True):
        for number, (side, body) in mine.items():
            if number not in others:
                for op in ops_within(body.ops):
                    if any(_is_computed(side, v) for v in op.inputs[: DECIDING.get(op.short_name, 0)]):
                        yield f"the {op.short_name} at {location_of(op.raw)}: no run counts its outcomes in this body"


def _bodies(side: Side, ops: list[Op]) -> Iterator[tuple[Number | ValueId, tuple[Side, Body]]]:
    for op in ops_within(ops):
        for body in op.bodies if op.short_name not in COUNTED else ():
            try:
                number = side.table.region(side.program, body, side.numbers, side.depth + 1)
            except KeyError:  # it reads what stands in another body, and so is like no other
                number = -1 - body.arguments[0]
            yield number, (side, body)


def _is_computed(side: Side, value: ValueId) -> bool:
    """Whether a value is no argument of a body, no constant, and no choice among these."""
    maker, dtypes = side.program.makers[value], side.program.dtype_of
    if maker is None or maker.short_name == "constant":
        return False
    made = dtypes(value)
    if maker.short_name == "convert":
        given = dtypes(maker.inputs[0])
        is_kept = given is not None and made is not None and _is_widened(given, made)
    else:
        is_kept = maker.short_name in KEEPING or (maker.short_name in OF_TRUTHS and made == np.bool_)
    return not is_kept or any(_is_computed(side, operand) for operand in maker.inputs)


def _is_widened(given: np.dtype[Any], made: np.dtype[Any]) -> bool:
    """Whether a conversion keeps all numbers apart."""
    return element_type_of(given).is_float == element_type_of(made).is_float and given.itemsize <= made.itemsize
