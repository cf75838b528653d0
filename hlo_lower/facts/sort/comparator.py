"""Sort comparators: whether one is proved to be a strict weak order, and by which keys, the first one first.

A sort by anything else has no defined result, so nothing may be concluded from it: plain comparisons of floats are no
order, because of NaN. What JAX emits is one: a total order of keys, or a chain of them, `lt(a) or (eq(a) and lt(b))`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS, type_range
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops import spec
from hlo_lower.ops.names import AND, BITCAST_CONVERT, COMPARE, CONSTANT, NOT, OR, SELECT
from hlo_lower.ops.purity import FUNCTIONS
from hlo_lower.ops.spec import Rounds, ops_with

MAX_NODES = 200
"""Most pairs of values of a comparator that are compared."""

_NEGATED = {"GE": "LT", "LE": "GT", "NE": "EQ"}
"""What a comparison of totally ordered keys is where it does not hold."""


@dataclass(frozen=True)
class SortOrder:
    """What a comparator sorts by first.

    Attributes:
      operand: the number of the operand whose elements themselves are the first key, or None.
      is_ascending: whether its elements go up.
    """

    operand: int | None
    is_ascending: bool


@dataclass(frozen=True)
class SortKey:
    """One key of a comparator: a function of the elements of one side.

    Attributes:
      value: the key of one of the two sides, within the comparator.
      side: 0 where it is computed from the first ones of each pair of arguments, 1 from the second ones.
      is_ascending: whether the keys go up.
    """

    value: Value
    side: int
    is_ascending: bool


def sort_order(sort: Node) -> SortOrder | None:
    """What a sort sorts by, or None where its comparator is not proved to be a strict weak order."""
    keys = sort_keys(sort)
    if not keys:
        return None
    first = keys[0]
    is_element = first.value.block == sort.blocks[0]
    return SortOrder(first.value.number // 2 if is_element else None, first.is_ascending)


def sort_keys(sort: Node) -> tuple[SortKey, ...]:
    """The keys that a sort sorts by, the first one first; empty where its comparator is not proved to be a strict weak
    order.

    `key(a) < key(b)` is one for any function of an operand's element and a total order `<` of the keys; so is one that
    decides between those that are equal by such a first key. Two that are equal by it stay comparable by the second.
    """
    block = sort.blocks[0]
    return _keys(block.terminator.operand(0), block, 0) or ()


def _keys(value: Value, block: Block, depth: int) -> tuple[SortKey, ...] | None:
    node = value.node
    if node is None or depth > MAX_NODES:
        return None
    # Each a comparison, what says that its keys are equal, and what decides then.
    chain: list[tuple[Value, Value, Value]] = []
    if node.name == OR:
        for first, rest in (node.operands, node.operands[::-1]):
            tail = rest.node
            if tail is not None and tail.name == AND:
                left, right = tail.operands
                chain += [(first, left, right), (first, right, left)]
    elif node.name == SELECT:
        equal, second, first = node.operands
        chain.append((first, equal, second))
    for first, equal, second in chain:
        key = _total_order_key(first, block)
        if key is not None and _says_equal(equal, key, block):
            others = _keys(second, block, depth + 1)
            return None if others is None else (key, *others)
    key = _total_order_key(value, block)
    return None if key is None else (key,)


def _comparison(value: Value) -> tuple[Node, str] | None:
    """A comparison by a total order and its direction, also where it is negated."""
    node, is_negated = value.node, False
    if node is not None and node.name == NOT:
        node, is_negated = node.operand(0).node, True
    if node is None or node.name != COMPARE or not _is_total(node):
        return None
    direction = comparison_direction(node)
    return node, _NEGATED.get(direction, "") if is_negated else direction


def _total_order_key(value: Value, block: Block) -> SortKey | None:
    """The sort key of a comparison of both sides by a total order."""
    found = _comparison(value)
    if found is None:
        return None
    node, direction = found
    left, right = node.operands
    side = _mirrored_side(left, right, block)
    if direction not in ("LT", "GT") or side is None:
        return None
    return SortKey(left, side, (direction == "LT") == (side == 0))


def _is_total(node: Node) -> bool:
    """Whether the elements that a comparison compares are totally ordered by it: integers, or floats by TOTALORDER."""
    if type_range(node.operand(0).element_type) is not None:
        return True
    kind = node.attribute("compare_type")
    return kind is not None and mlir.enum_value(kind) == "TOTALORDER"


def _says_equal(value: Value, key: SortKey, block: Block) -> bool:
    """Whether a value is true exactly where a key is equal on both sides."""
    found = _comparison(value)
    if found is None or found[1] != "EQ":
        return False
    left, right = found[0].operands
    if _mirrored_side(left, right, block) is None:
        return False
    return any(_matches(own, key.value, block, mirrored=False) is not None for own in (left, right))


def _mirrored_side(left: Value, right: Value, block: Block) -> int | None:
    """Where two values are one function of an element of each side, the side of the left one; else None."""
    return _matches(left, right, block, mirrored=True)


def _matches(left: Value, right: Value, block: Block, *, mirrored: bool) -> int | None:
    """The side of the left value where two are computed alike, from the arguments of the other side where they are
    mirrored; a value that reads no argument is of side 0. None where they are not."""
    pending, sides, left_over = [(left, right)], set[int](), MAX_NODES
    while pending:
        a, b = pending.pop()
        left_over -= 1
        if left_over < 0:
            return None
        if a.block == block or b.block == block:
            if a.block != b.block or (a.number ^ 1 if mirrored else a.number) != b.number:
                return None
            sides.add(a.number % 2)
            continue
        if a == b and (a.node is None or not mirrored or a.node.parent != block.owner):
            continue  # from outside, or one and the same
        one, other = a.node, b.node
        if one is None or other is None or one.name != other.name or one.has_regions or other.has_regions:
            return None
        if a.number != b.number or a.raw.type != b.raw.type or len(one.operands) != len(other.operands):
            return None
        if one.name not in FUNCTIONS or mlir.attributes_of(one.raw) != mlir.attributes_of(other.raw):
            return None
        pending.extend(zip(one.operands, other.operands, strict=True))
    if mirrored and len(sides) > 1:
        return None
    return next(iter(sides), 0)


# --- keys as they stand in a comparator: the ops that compute one, and the float that JAX makes canonical ---
#
#     %zero = select(x == 0.0, 0.0, x)     -0.0 is 0.0
#     %key  = select(x != x, NaN, %zero)   every NaN is the same one, above all numbers


ELEMENTWISE = spec.ELEMENTWISE - ops_with(rounds=Rounds.FREELY) | {BITCAST_CONVERT, CONSTANT}
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


def canonical_source(key: Value) -> Value | None:
    """The float whose canonical form a key is, -0.0 and 0.0 alike and NaN last; None where the key is no such form."""
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
