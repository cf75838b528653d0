"""Read a scalar as first + step * counter: where a loop reads and writes, in terms of its trips."""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.names import ADD, COMPARE, CONSTANT, SELECT, SUBTRACT

SMALL = 1 << 24
"""Numbers below this are added and multiplied without a wrap."""


def steps_of_counter(value: Value, counter: Value, trips: int) -> tuple[int, int] | None:
    """The first number and the step of a scalar of integers, or None where it is no such line.

    Args:
      value: in the body of a loop.
      counter: the argument that counts the trips from 0.
      trips: how many there are.
    """
    if value == counter:
        return 0, 1
    constant, node = integer(value), value.node
    if constant is not None:
        return (constant, 0) if abs(constant) < SMALL else None
    if node is None or value.element_type not in ("i32", "i64") or value.shape != ():
        return None
    if node.name == SELECT:
        kept = as_not_negative(node)
        found = None if kept is None else steps_of_counter(kept, counter, trips)
        return found if found is not None and min(ends(found, trips)) >= 0 else None
    if node.name not in (ADD, SUBTRACT):
        return None
    left, right = (steps_of_counter(operand, counter, trips) for operand in node.operands)
    if left is None or right is None:
        return None
    sign = 1 if node.name == ADD else -1
    found = left[0] + sign * right[0], left[1] + sign * right[1]
    return found if max(map(abs, ends(found, trips))) < SMALL else None


def ends(line: tuple[int, int], trips: int) -> tuple[int, int]:
    """The numbers of the first and of the last trip."""
    return line[0], line[0] + line[1] * (trips - 1)


def as_not_negative(select: Node) -> Value | None:
    """x of select(x < 0, x + n, x), which counts negative numbers from the end: what it is if x is not negative."""
    predicate, kept = select.operand(0).node, select.operand(2)
    if predicate is None or predicate.name != COMPARE or predicate.operand(0) != kept:
        return None
    is_below = mlir.enum_value(predicate.attribute("comparison_direction")) == "LT"
    return kept if is_below and integer(predicate.operand(1)) == 0 else None


def integer(value: Value) -> int | None:
    """The value of a scalar constant of integers."""
    node = value.node
    if node is None or node.name != CONSTANT or value.shape != ():
        return None
    constant = node.constant()
    return None if constant is None or constant.dtype.kind not in "iu" else int(constant)
