"""Transfer functions: the interval of an operation's result from the intervals of its operands.

One function per op of the chains that produce indices. An op without one says nothing, and its result may be anything
that its type allows. All functions are sound for wrap-around: `interval.wrapped` widens what may leave the type.
"""

from collections.abc import Mapping

from hlo_lower.facts.ranges.transfer.arithmetic import ARITHMETIC
from hlo_lower.facts.ranges.transfer.booleans import BOOLEANS, MIRRORED, choose, comparison_direction, comparison_of
from hlo_lower.facts.ranges.transfer.movement import PLACES
from hlo_lower.facts.ranges.transfer.result import Transfer
from hlo_lower.ops.spec import OPS

TRANSFER: Mapping[str, Transfer] = {**PLACES, **ARITHMETIC, **BOOLEANS}
"""Only the operands that have integer elements are asked for; a transfer whose op has others is not called."""

ELEMENTWISE = frozenset({*ARITHMETIC, *BOOLEANS})
"""Those whose element i depends on element i of each operand alone (a scalar clamp bound or predicate aside)."""

LEADING_OPERANDS: Mapping[str, int] = {name: len(op.moved) for name, op in OPS.items() if op.moved}
"""How many operands say what the elements are, for ops whose others only say where."""

__all__ = ["ELEMENTWISE", "LEADING_OPERANDS", "MIRRORED", "TRANSFER", "choose", "comparison_direction", "comparison_of"]
