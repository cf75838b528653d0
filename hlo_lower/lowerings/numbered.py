"""What the forms over numbered rows share: their ops, the order of the writes, the choice by row.

The numbers are those of `hlo_lower.scatter.flat`.
"""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.graph.axes import sort_rows
from hlo_lower.lowerings.context import ScatterLowering
from hlo_lower.lowerings.window import new_values, reads_current
from hlo_lower.registry import Spared
from hlo_lower.scatter.facts import Masks, Offsets

AT_RUN_TIME = frozenset({Offsets.RUNTIME, Offsets.UNSOLVED})
NUMBERED = tuple(
    f"stablehlo.{op}"
    for op in (
        *("convert", "transpose", "reshape", "broadcast_in_dim", "slice", "constant", "minimum", "compare", "and"),
        *("select", "iota", "add", "multiply"),
    )
)
"""What it takes to number the rows."""
IN_PARTS = ("stablehlo.pad", "stablehlo.dynamic_slice", "stablehlo.while")
AT_ONCE: Spared = {("masks", Masks.AT_ONCE): IN_PARTS}
"""Where masks are not taken in parts, that is not built."""
SORTED = (*NUMBERED, *(f"stablehlo.{op}" for op in ("sort", "or", "gather", "maximum", "map")))


def sorted_numbers(op: ScatterLowering) -> tuple[Value, Value]:
    """The row numbers of the writes, ascending, those of one row in the order of the writes; and which writes they are.

    What is known to ascend is not sorted again.
    """
    numbers = op.flat.row_numbers(op.build)
    order = op.build.iota(numbers.static_shape, 1, numbers.element_type)
    if op.facts.is_sorted:
        return numbers, order
    rows, order = sort_rows(op.build, numbers, [order], by_both=True)
    return rows, order


def chosen(op: ScatterLowering, values: Sequence[Value], hit: Value) -> list[Value]:
    """The region of the operands and these values where hit, and the operands elsewhere; all in the operand's shape."""
    operands = op.scatter.promoted_operands(op.build)
    proposed = new_values(op, op.build, operands if reads_current(op) else values, values)
    return [op.build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]
