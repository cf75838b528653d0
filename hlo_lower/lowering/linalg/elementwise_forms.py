"""Elementwise ops in one form while a module is StableHLO.

what                                          its one form
elementwise ops of broadcasts alike           a broadcast of their result
convert to the same type, x * 1, max(x, -inf) x
constants and broadcasts, of either side      the second operand
x <= 0 ? 0 : x                                max(x, 0)
min(max(x, a), b), max(min(x, b), a), numbers clamp(a, x, b)
not p ? x : y; 1 / (exp(-x) + 1)              p ? y : x; logistic(x)

`x > 0 ? x : 0` is another function: of NaN it is 0.
"""

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.linalg.moved_forms import (
    filled_with,
    is_scalar,
    maker_named,
    number_at,
    scalar_at,
    static_maker,
    stays,
)
from hlo_lower.lowering.linalg.open_sizes import SPREADS, broadcast, sizes_of, type_of
from hlo_lower.ops import names
from hlo_lower.ops.names import CLAMP, CONSTANT
from hlo_lower.ops.spec import COMBINING, MIRRORED, identity_of


def simplify_convert(build: Builder, node: Node) -> Value | None:
    """Of the same type: nothing. Of a number that the other type has: that number."""
    value, result = node.operand(0), node.result()
    if value.raw.type == result.raw.type:
        return value
    constant = static_maker(value, CONSTANT)
    is_number = constant is not None and value.shape == () and not value.element.is_complex
    number = constant.constant() if constant is not None and is_number and not result.element.is_complex else None
    dtype = mlir.dtype_of(result.element_type)
    if number is None or dtype is None or result.element_type == "i1" or value.element_type == "i1":
        return None
    with np.errstate(all="ignore"):
        other = np.asarray(number).astype(dtype)
        is_kept = np.isfinite(number) and other.astype(np.asarray(number).dtype) == number
    if not is_kept or other.astype(np.float64) != np.float64(number):
        return None
    return build.op(CONSTANT, [], [result.raw.type], {"value": mlir.dense_attribute(other, result.raw.type)}).result()


def of_broadcasts(build: Builder, node: Node) -> Value | None:
    """Elementwise ops of values that are broadcast alike, and of scalars, before they are."""
    if not node.result().shape:
        return None
    spread = [maker_named(operand, *SPREADS) for operand in node.operands if not stays(operand, node)]
    wide = [one for one in spread if one is not None and one.operand(0).shape]
    others = [operand for operand in node.operands if not stays(operand, node) and not is_scalar(operand)]
    if len(wide) != len(others) or len({one.integers("broadcast_dimensions") for one in wide}) > 1:
        return None
    if len({sizes_of(one.operand(0)) for one in wide}) > 1:
        return None
    shape = sizes_of(wide[0].operand(0)) if wide else ()
    dims = wide[0].integers("broadcast_dimensions") if wide else ()
    given: list[Value] = []
    for operand in node.operands:
        source = maker_named(operand, *SPREADS)
        scalar = None if stays(operand, node) else scalar_at(build, operand)
        if scalar is not None:
            given.append(filled_with(build, scalar, shape) if shape else scalar)
        else:
            given.append(operand if stays(operand, node) or source is None else source.operand(0))
    made = build.clone(node, given, [type_of(shape, node.result())]).result()
    return broadcast(build, made, sizes_of(node.result()), dims)


NEUTRAL = {names.DIVIDE: 1.0, names.SUBTRACT: 0.0}
"""Ops that are not commutative, and the second operand that changes nothing."""


def without_neutral(_: Builder, node: Node) -> Value | None:
    """The first operand, where the second changes nothing."""
    value, other = node.operands
    element = value.element
    wanted = NEUTRAL.get(node.name, identity_of(node.name, element) if node.name in COMBINING else None)
    if wanted is None or element.name == "i1" or not (element.is_integer or element.name in IEEE):
        return None
    number = number_at(other)
    is_it = (
        number is not None
        and number == wanted
        and (element.is_integer or np.signbit(float(number)) == np.signbit(float(wanted)))
    )
    return value if is_it else None


IEEE = ("f16", "bf16", "f32", "f64")
"""Floats that have infinities, and zeros of both signs."""


def _rank(value: Value) -> int:
    """Where a value stands as an operand: values first, then what is broadcast, then constants and scalars."""
    if is_scalar(value) or static_maker(value, CONSTANT) is not None or number_at(value) is not None:
        return 2
    return 1 if maker_named(value, *SPREADS) else 0


def second_last(build: Builder, node: Node) -> Value | None:
    """Constants and what is broadcast behind other values, where the order of operands does not matter."""
    first, second = node.operands
    if not _is_before(second, first):
        return None
    return build.clone(node, [second, first], [node.result().raw.type]).result()


def _is_before(value: Value, other: Value) -> bool:
    """Whether a value is the first of two operands: by what it is, then arguments first, then by where it is made."""
    ranks = _rank(value), _rank(other)
    if ranks[0] != ranks[1] or value == other:
        return ranks[0] < ranks[1]
    nodes = value.node, other.node
    if nodes[0] is None or nodes[1] is None:
        are_arguments = nodes[0] is None and nodes[1] is None
        return value.number < other.number if are_arguments else nodes[0] is None
    return nodes[0].raw.is_before_in_block(nodes[1].raw) if nodes[0].parent == nodes[1].parent else False


def order_comparison(build: Builder, node: Node) -> Value | None:
    """With constants and what is broadcast as the second operand."""
    first, second = node.operands
    if _rank(second) >= _rank(first):
        return None
    direction = mlir.enum_value(node.raw.attributes["comparison_direction"])
    attributes = mlir.attributes_of(node.raw)
    attributes["comparison_direction"] = mlir.parse_attribute(f"#stablehlo<comparison_direction {MIRRORED[direction]}>")
    return build.op(node.name, [second, first], [node.result().raw.type], attributes).result()


def of_negated(build: Builder, node: Node) -> Value | None:
    """Of a predicate that is negated: of what it was, with exchanged choices."""
    predicate, on_true, on_false = node.operands
    spread = maker_named(predicate, *SPREADS)
    inner = maker_named(predicate if spread is None else spread.operand(0), names.NOT)
    if inner is None:
        return None
    plain = inner.operand(0)
    if spread is not None:
        plain = broadcast(build, plain, sizes_of(predicate), spread.integers("broadcast_dimensions"))
    return build.clone(node, [plain, on_false, on_true], [node.result().raw.type]).result()


def as_logistic(build: Builder, node: Node) -> Value | None:
    """1 / (exp(-x) + 1), which is what jaxlib's pass writes for a logistic of x, op by op."""
    plus = maker_named(node.operand(1), names.ADD)
    if plus is None or number_at(node.operand(0)) != 1 or number_at(plus.operand(1)) != 1:
        return None
    exponential = maker_named(plus.operand(0), names.EXPONENTIAL)
    negated = None if exponential is None else maker_named(exponential.operand(0), names.NEGATE)
    if negated is None or node.result().element.name not in ("f32", "f64"):  # narrower ones are rounded in between
        return None
    return build.elementwise("logistic", negated.operand(0))


BOUNDS = {names.MINIMUM: names.MAXIMUM, names.MAXIMUM: names.MINIMUM}
"""The ops that bound a value on one side, and those on the other."""


def as_clamp(build: Builder, node: Node) -> Value | None:
    """clamp(low, x, high) between two numbers: min(max(x, low), high), or, where low is less than high, max(min(x,
    high), low)."""
    inner, element = maker_named(node.operand(0), BOUNDS[node.name]), node.result().element
    if inner is None or element.name == "i1" or not (element.is_integer or element.name in IEEE):
        return None
    outer, other = node.operand(1), inner.operand(1)
    low, high = (other, outer) if node.name == names.MINIMUM else (outer, other)
    least, most = number_at(low), number_at(high)
    if least is None or most is None or not least < most:
        return None
    scalars = [value if value.shape == () else scalar_at(build, value) for value in (low, high)]
    operands = [value for value in (scalars[0], inner.operand(0), scalars[1]) if value is not None]
    return build.op(CLAMP, operands, [node.result().raw.type]).result() if len(operands) == 3 else None


def clamp_of_numbers(build: Builder, node: Node) -> Value | None:
    """Of numbers as scalars; of an infinity a maximum or minimum alone, unless the sizes are open."""
    low, value, high = node.operands
    if node.is_static and node.result().element.name in IEEE and number_at(high) == np.inf:
        return build.maximum(value, _in_full(build, low, value))
    if node.is_static and node.result().element.name in IEEE and number_at(low) == -np.inf:
        return build.minimum(value, _in_full(build, high, value))
    scalars = [scalar_at(build, bound) or bound for bound in (low, high)]
    if scalars == [low, high]:
        return None
    if scalars[0].shape != scalars[1].shape:
        return None  # both are scalars or none
    return build.clone(node, [scalars[0], value, scalars[1]], [node.result().raw.type]).result()


def _in_full(build: Builder, bound: Value, like: Value) -> Value:
    return bound if bound.shape == like.shape else filled_with(build, bound, like.static_shape)


LESSER, GREATER = ("LE", "LT"), ("GT", "GE")


def as_relu(build: Builder, node: Node) -> Value | None:
    """max(x, 0) of what chooses between x and 0 by comparing them: of floats `x <= 0 ? 0 : x` alone, which gives NaN of
    NaN and 0.0 of -0.0 as the maximum does; of integers all of them."""
    predicate, on_true, on_false = node.operands
    test = maker_named(predicate, names.COMPARE)
    if test is None or number_at(test.operand(1)) != 0 or predicate.shape != node.result().shape:
        return None
    value, zero = test.operands
    direction = mlir.enum_value(test.raw.attributes["comparison_direction"])
    kind = test.attribute("compare_type")
    if kind is not None and mlir.enum_value(kind) == "TOTALORDER":
        return None
    chosen, other = (on_false, on_true) if direction in LESSER else (on_true, on_false)
    number = number_at(other)
    if direction not in LESSER + GREATER or chosen != value or number != 0 or zero.raw.type != value.raw.type:
        return None
    if not value.element.is_integer and (direction != "LE" or np.signbit(number) or value.element.name not in IEEE):
        return None
    return build.maximum(value, other)
