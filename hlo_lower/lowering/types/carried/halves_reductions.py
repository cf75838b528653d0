"""Reductions, matrix products and convolutions of 64-bit integers on their halves."""

from collections.abc import Sequence
from math import prod

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.halves import HALF, add, choose, is_less, left, right, sixteen
from hlo_lower.lowering.types.carried.pairs import Pair, join, split
from hlo_lower.ops.names import DOT_GENERAL, REDUCE, REDUCE_WINDOW, SORT
from hlo_lower.ops.spec import COMBINING

DIGITS = ((16, 1 << 15), (8, 1 << 23))
"""How many bits a digit has of which so many are summed: their sum is below 2^31."""


def fold_of(body: Block) -> str:
    """The one op of a body that combines both its arguments; "" of another body."""
    op = only_op(body)
    if op is None or len({value.element_type for value in (*body.arguments, *op.results)}) > 1:
        return ""
    return op.name.removeprefix("stablehlo.") if op.name in COMBINING else ""


def is_folded(node: Node) -> bool:
    """Whether an op with a body is a reduction by one op that has a form without pairs of results."""
    fold = fold_of(node.blocks[0]) if len(node.results) == 1 and node.name != SORT else ""
    if fold == "add":
        return _digit_bits(node) > 0
    is_end = fold in ("minimum", "maximum") and node.name == REDUCE
    return fold in ("and", "or", "xor") or (is_end and 0 not in node.operand(0).static_shape)


def folded_halves(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """A reduction by one op, of those that `is_folded` names."""
    fold = fold_of(node.blocks[0])
    value, start = (split(c.build, operand) for operand in operands[:2])
    if fold == "add":
        found = _sum(c, node, value, start)
    elif fold in ("minimum", "maximum"):
        found = _end(c, node, fold, value, start)
    else:
        found = tuple(_folded(c, node, fold, x, s) for x, s in zip(value, start, strict=True))
    return join(c.build, (found[0], found[1]))


def _folded(c: Carrying, node: Node, fold: str, value: Value, start: Value) -> Value:
    """The reduction itself, of i32 by one op."""
    raw_type = mlir.tensor_type(node.result().shape, HALF)
    made = c.build.op(node.name, [value, start], [raw_type], mlir.attributes_of(node.raw), regions=1)
    scalar = mlir.tensor_type((), HALF)
    c.build.region(made, 0, [scalar, scalar], lambda build, pair: [build.elementwise(fold, *pair)])
    return made.result()


def _count(node: Node) -> int:
    """As many elements are folded into one, the start included."""
    if node.name == REDUCE_WINDOW:
        return prod(node.integers("window_dimensions")) + 1
    return prod(node.operand(0).static_shape[dim] for dim in node.integers("dimensions")) + 1


def _sum(c: Carrying, node: Node, value: Sequence[Value], start: Sequence[Value]) -> Pair:
    """The sum modulo 2^64: sums of digits, none of which overflows, each in its place."""
    bits = _digit_bits(node)
    digits = (digits_of(c, pair, bits) for pair in (value, start))
    found = [_folded(c, node, "add", x, s) for x, s in zip(*digits, strict=True)]
    return sum_of_places(c, [(one, place * bits) for place, one in enumerate(found)])


def _digit_bits(node: Node) -> int:
    """How many bits a digit has so that a sum of all elements does not overflow; 0 where there are too many."""
    return next((bits for bits, most in DIGITS if _count(node) <= most), 0)


def sum_of_places(c: Carrying, parts: Sequence[tuple[Value, int]]) -> Pair:
    """The sum modulo 2^64 of numbers of 31 bits, each times a power of two below 2^64."""
    total, *rest = (_in_place(c, number, place) for number, place in parts)
    for put in rest:
        total = add(c, total, put)
    return total


def digits_of(c: Carrying, x: Sequence[Value], bits: int) -> list[Value]:
    """The digits of 16 or of 8 bits of both halves, the lower ones first."""
    parts = [part for half in x for part in sixteen(c, half)]
    return parts if bits == 16 else [digit for part in parts for digit in _eight(c, part)]


def _eight(c: Carrying, part: Value) -> Pair:
    upper = right(c, part, 8)
    return c.subtract(part, left(c, upper, 8)), upper


def _in_place(c: Carrying, x: Value, place: int) -> Pair:
    """A number of 31 bits times 2^place, place below 64."""
    zero = c.number(0, x)
    if place >= 32:
        return zero, left(c, x, place - 32)
    return left(c, x, place), right(c, x, 32 - place) if place else zero


def _end(c: Carrying, node: Node, fold: str, value: Sequence[Value], start: Sequence[Value]) -> Pair:
    """The least or greatest number: that of the upper halves, and of the lower ones beside those that are that.

    Lower halves have no sign, nor have upper ones of unsigned numbers: their sign bits are flipped. What is folded
    begins with the end of i32, so that the start is compared once, with what was found.
    """
    unsigned = not node.operand(0).element.is_signed
    end = int(element_type(HALF).most) if fold == "minimum" else int(element_type(HALF).least)
    first = c.build.constant(end, (), HALF)
    low, high = c.flip(value[0]), c.flip(value[1]) if unsigned else value[1]
    upper = _folded(c, node, fold, high, first)
    shape, gone = high.static_shape, frozenset(node.integers("dimensions"))
    spread = c.build.broadcast(upper, shape, [d for d in range(len(shape)) if d not in gone])
    beside = c.build.select(c.holds(high, "EQ", spread), low, c.number(end, low))
    lower = _folded(c, node, fold, beside, first)
    found = (c.flip(lower), c.flip(upper) if unsigned else upper)
    begun = (c.build.broadcast(start[0], upper.static_shape), c.build.broadcast(start[1], upper.static_shape))
    direction = "LT" if fold == "minimum" else "GT"
    return choose(c, is_less(c, begun, found, unsigned=unsigned, direction=direction), begun, found)


PRODUCTS = ("dot_general", "convolution")
"""Ops of which each element is a sum of products of two: linear in both operands."""

DIGIT = 8
MOST = 1 << 15
"""Products of two digits are below 2^16, so that a sum of so many is below 2^31."""


def product_of_halves(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """The product modulo 2^64: of digits i and j, each one as it stands, in the place of 2^(8 (i + j)).

    Raises:
      DoesNotApply: it sums too many products, or of other types.
    """
    if len({value.element_type for value in (*node.operands, *node.results)}) > 1 or not node.is_static:
        raise DoesNotApply("of two element types, or of dynamic shape")
    if _summed(node) > MOST:
        raise DoesNotApply(f"sums of more than {MOST:,} products")
    left, right = (digits_of(c, split(c.build, value), DIGIT) for value in operands)
    raw_type, attributes = mlir.tensor_type(node.result().shape, HALF), mlir.attributes_of(node.raw)
    places = [(i, j) for i in range(len(left)) for j in range(len(right) - i)]

    def product(i: int, j: int) -> Value:
        return c.build.op(node.name, [left[i], right[j]], [raw_type], attributes).result()

    return join(c.build, sum_of_places(c, [(product(i, j), DIGIT * (i + j)) for i, j in places]))


def _summed(node: Node) -> int:
    """How many products an element is the sum of, at most: each takes another element of the right operand."""
    right, result = node.operand(1).static_shape, node.result().static_shape
    if node.name == DOT_GENERAL:
        contracted: list[int] = list(mlir.dot_dimension_numbers(node.raw).rhs_contracting_dimensions)
        return prod(right[d] for d in contracted)
    return prod(right) if 0 not in result else 0
