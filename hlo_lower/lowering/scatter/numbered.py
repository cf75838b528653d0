"""What the forms over numbered rows share: their ops, the order of the writes, the choice by row.

The numbers are those of `hlo_lower.facts.scatter.flat`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Offsets
from hlo_lower.ir.axes import sort_rows
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.scatter_lowering import ScatterLowering
from hlo_lower.lowering.scatter.window import new_values, reads_current
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import MANY_WINDOWS

Rule = Callable[..., Any]


def over_rows(rules: RuleList) -> "partial[Callable[[Rule], Rule]]":
    """Registers rules for many windows at places that are known at run time, in a list."""
    at_run_time = {Offsets.RUNTIME, Offsets.UNSOLVED}
    return partial(rules.lowers, SCATTER, subset=MANY_WINDOWS, offsets=at_run_time)


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
