"""Sort comparators: whether one is proved to be a strict weak order, and what it sorts by first.

A sort by anything else has no defined result, so nothing may be concluded from it: plain comparisons of floats are no
order, because of NaN. What JAX emits is one: a total order of keys, or a chain of them, `lt(a) or (eq(a) and lt(b))`.
"""

from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.analysis.interval import type_range
from hlo_lower.analysis.transfer import comparison_direction
from hlo_lower.graph import FUNCTIONS, Block, Node, Value

MAX_NODES = 200
"""Most pairs of values of a comparator that are compared."""


@dataclass(frozen=True)
class SortOrder:
    """What a comparator sorts by first.

    Attributes:
      operand: the number of the operand whose elements themselves are the first key, or None.
      is_ascending: whether its elements go up.
    """

    operand: int | None
    is_ascending: bool


def sort_order(sort: Node) -> SortOrder | None:
    """What a sort sorts by, or None where its comparator is not proved to be a strict weak order.

    `key(a) < key(b)` is one for any function of an operand's element and a total order `<` of the keys; so is one that
    decides between those that are equal by such a first key. Two that are equal by it stay comparable by the second.
    """
    block = sort.blocks[0]
    return _order(block.terminator.operand(0), block, 0)


def _order(value: Value, block: Block, depth: int) -> SortOrder | None:
    node = value.node
    if node is None or depth > MAX_NODES:
        return None
    if node.name == "stablehlo.or":
        for first, rest in (node.operands, node.operands[::-1]):
            order, tail = _compared(first, block), rest.node
            if order is None or first.node is None or tail is None or tail.name != "stablehlo.and":
                continue
            for equal, second in (tail.operands, tail.operands[::-1]):
                if _says_equal(equal, first.node, block) and _order(second, block, depth + 1) is not None:
                    return order
        return None
    return _compared(value, block)


def _compared(value: Value, block: Block) -> SortOrder | None:
    """A comparison of one key of both sides by a total order."""
    node = value.node
    if node is None or node.name != "stablehlo.compare" or not _is_total(node):
        return None
    direction = comparison_direction(node)
    left, right = node.operands
    if direction not in ("LT", "GT") or not _mirrors(left, right, block):
        return None
    is_ascending = direction == "LT"
    if left.block != block:
        return SortOrder(None, is_ascending)
    number, is_left_second = divmod(left.number, 2)
    return SortOrder(number, is_ascending != bool(is_left_second))


def _is_total(node: Node) -> bool:
    """Whether the elements that a comparison compares are totally ordered by it: integers, or floats by TOTALORDER."""
    if type_range(node.operand(0).element_type) is not None:
        return True
    kind = node.attribute("compare_type")
    return kind is not None and mlir.enum_value(kind) == "TOTALORDER"


def _says_equal(value: Value, compared: Node, block: Block) -> bool:
    """Whether a value says that the keys of a comparison are equal."""
    node = value.node
    if node is None or node.name != "stablehlo.compare" or comparison_direction(node) != "EQ" or not _is_total(node):
        return False
    keys, own = compared.operands, node.operands
    return any(_same(a, c, block) and _same(b, d, block) for a, b, c, d in ((*own, *keys), (*own[::-1], *keys)))


def _mirrors(left: Value, right: Value, block: Block) -> bool:
    """Whether two values are one function of an element of each side."""
    return _matches(left, right, block, mirrored=True)


def _same(left: Value, right: Value, block: Block) -> bool:
    return _matches(left, right, block, mirrored=False)


def _matches(left: Value, right: Value, block: Block, *, mirrored: bool) -> bool:
    """Whether two values are computed alike, from the arguments of the other side where they are mirrored."""
    pending, sides, left_over = [(left, right)], set[int](), MAX_NODES
    while pending:
        a, b = pending.pop()
        left_over -= 1
        if left_over < 0:
            return False
        if a.block == block or b.block == block:
            if a.block != b.block or (a.number ^ 1 if mirrored else a.number) != b.number:
                return False
            sides.add(a.number % 2)
            continue
        if a == b and (a.node is None or not mirrored or a.node.parent != block.owner):
            continue  # from outside, or one and the same
        one, other = a.node, b.node
        if one is None or other is None or one.name != other.name or one.has_regions or other.has_regions:
            return False
        if a.number != b.number or a.raw.type != b.raw.type or len(one.operands) != len(other.operands):
            return False
        if one.name not in FUNCTIONS or mlir.attributes_of(one.raw) != mlir.attributes_of(other.raw):
            return False
        pending.extend(zip(one.operands, other.operands, strict=True))
    return not mirrored or len(sides) <= 1
