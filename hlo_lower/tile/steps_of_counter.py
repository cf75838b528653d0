"""Read a scalar as first + step * counter: where a loop reads, in terms of its trips."""

from hlo_lower.graph import Value
from hlo_lower.tile.scan_stacks import integer

SMALL = 1 << 24
"""Numbers below this are added and multiplied without a wrap."""


def steps_of_counter(value: Value, counter: Value) -> tuple[int, int] | None:
    """The first number and the step of a scalar of integers, or None where it is no such line.

    Args:
      value: in the body of a loop.
      counter: the argument that counts the trips from 0.
    """
    if value == counter:
        return 0, 1
    constant, node = integer(value), value.node
    if constant is not None:
        return (constant, 0) if abs(constant) < SMALL else None
    if node is None or value.element_type not in ("i32", "i64"):
        return None
    if node.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = (steps_of_counter(operand, counter) for operand in node.operands)
    if left is None or right is None:
        return None
    sign = 1 if node.name == "stablehlo.add" else -1
    found = left[0] + sign * right[0], left[1] + sign * right[1]
    return found if max(map(abs, found)) < SMALL else None
