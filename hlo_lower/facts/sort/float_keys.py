"""Keys as they stand in a comparator: the ops that compute one, and the float that JAX makes canonical before it
compares.

    %zero = select(x == 0.0, 0.0, x)     -0.0 is 0.0
    %key  = select(x != x, NaN, %zero)   every NaN is the same one, above all numbers
"""

from collections.abc import Iterator

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS
from hlo_lower.facts.ranges.transfer.booleans import comparison_direction
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops import spec
from hlo_lower.ops.names import BITCAST_CONVERT, COMPARE, CONSTANT, SELECT
from hlo_lower.ops.spec import Rounds, named

ELEMENTWISE = spec.ELEMENTWISE - named(rounds=Rounds.FREELY) | {BITCAST_CONVERT, CONSTANT}
"""Ops of scalars that are the same op of tensors, element by element, in the bits of their results."""


def cone_of(value: Value, block: Block) -> Iterator[Node]:
    """The nodes of a comparator that compute a value, its own constants included, each once."""
    pending, seen = [value], set[Node]()
    while pending:
        node = pending.pop().node
        if node is not None and node.parent == block.owner and node not in seen:
            seen.add(node)
            yield node
            pending.extend(node.operands)


def made_canonical(key: Value) -> Value | None:
    """The float of which a key is the canonical form, -0.0 or 0.0 alike and NaN last; None where it is not one."""
    chosen = _select(key)
    if chosen is None:
        return None
    is_nan, nan, number = chosen
    if not _is_positive_nan(nan) or not _compares_to_itself(is_nan, number):
        return None
    inner = _select(number)
    if inner is None:
        return None
    is_zero, zero, value = inner
    compared = is_zero.node
    if compared is None or _float_direction(compared) != "EQ" or not _is_positive_zero(zero):
        return None
    if compared.operand(0) != value or not _is_zero(compared.operand(1)):
        return None
    return value


def _select(value: Value) -> tuple[Value, Value, Value] | None:
    node = value.node
    if node is None or node.name != SELECT:
        return None
    predicate, yes, no = node.operands
    return predicate, yes, no


def _compares_to_itself(is_nan: Value, number: Value) -> bool:
    """Whether a value says that a number, or what it was before its zeros were made one, is NaN."""
    node = is_nan.node
    if node is None or _float_direction(node) != "NE" or node.operand(0) != node.operand(1):
        return False
    before = _select(number)
    return node.operand(0) == number or (before is not None and node.operand(0) == before[2])


def _float_direction(node: Node) -> str:
    """The direction of a comparison of floats by IEEE 754; "" of other nodes."""
    if node.name != COMPARE or "TOTALORDER" in str(node.attribute("compare_type")):
        return ""
    return comparison_direction(node)


def _constant(value: Value) -> float | None:
    constant = value.constant() if value.element_type in WIDE_FLOATS else None
    return None if constant is None or constant.size != 1 else float(constant.reshape(-1)[0])


def _is_positive_nan(value: Value) -> bool:
    found = _constant(value)
    return found is not None and np.isnan(found) and not np.signbit(found)


def _is_zero(value: Value) -> bool:
    return _constant(value) == 0


def _is_positive_zero(value: Value) -> bool:
    return _is_zero(value) and not np.signbit(_constant(value) or 0.0)
