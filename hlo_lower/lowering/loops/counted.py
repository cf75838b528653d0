"""Recognize a counted loop among the loops of a module: those of `StructuredLoop`, and every scan and fori_loop.

    %r:n = stablehlo.while(%i = %first, ...)
      cond { return %i < %limit }
      do   { ...; return %i + 1, ... }

is `for (i = first; i < limit; i += 1)`, if the limit is a constant or a carried value that the body returns as it is.
The counter cannot overflow: it is below the limit when one is added.
"""

from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops.names import ADD, COMPARE, CONSTANT, RETURN

IN_CONDITION = (CONSTANT, COMPARE, RETURN)
"""All that the condition of a counted loop holds."""


@dataclass(frozen=True)
class CountedLoop:
    """What counts in a `stablehlo.while`.

    Attributes:
      counter: the position of the counter among the carried values.
      limit: the constant that it stays below, or None.
      limit_at: the position of the carried value that it stays below, or None.
      is_unsigned: whether the two are compared as unsigned numbers.
    """

    counter: int
    limit: int | None
    limit_at: int | None
    is_unsigned: bool


def read_counted(loop: Node) -> CountedLoop | None:
    """What counts in a `stablehlo.while`, or None where it is not such a loop."""
    condition, body = loop.blocks
    if any(node.name not in IN_CONDITION for node in condition.nodes):
        return None
    compared = condition.terminator.operand(0).node
    if compared is None or compared.name != COMPARE:
        return None
    if mlir.enum_value(compared.attribute("comparison_direction")) != "LT":
        return None
    low, high = compared.operands
    element = low.element
    if low.block != condition or element.name in ("ui64", "i1") or not element.is_integer:
        return None
    counter = low.number
    if not _counts_up(body, counter):
        return None
    if high.block == condition:
        at = high.number
        return CountedLoop(counter, None, at, element.is_unsigned) if _is_kept(body, at) else None
    limit = _scalar(high)
    return None if limit is None else CountedLoop(counter, limit, None, element.is_unsigned)


def _counts_up(body: Block, counter: int) -> bool:
    """Whether the body returns its counter plus one."""
    added = body.terminator.operand(counter).node
    if added is None or added.name != ADD:
        return False
    argument = body.argument(counter)
    left, right = added.operands
    return (left == argument and _scalar(right) == 1) or (right == argument and _scalar(left) == 1)


def _is_kept(body: Block, position: int) -> bool:
    """Whether the body returns a carried value as it is."""
    return body.terminator.operand(position) == body.argument(position)


def _scalar(value: Value) -> int | None:
    """The value of a scalar constant."""
    constant = value.constant() if value.shape == () else None
    return None if constant is None else int(constant)
