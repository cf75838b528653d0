"""Constants, comparisons and functions of floats that a consumer takes, but not of every number."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.bounds import compared_with, ends_of, is_sum, source_of
from hlo_lower.ops.knowledge import NUMPY
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, Rules, hold_operand, module, over_each
from hlo_lower.ops.spec import ELEMENTWISE, LAYOUT

FORM = "op in a form"
"""The kind of op under which rules for these forms are registered."""

REDUCING = (names.REDUCE, names.REDUCE_WINDOW)
"""Ops that begin with a constant."""

ENDS = {names.MAXIMUM: np.less, names.MINIMUM: np.greater}
"""Folds that begin with an infinity of their own: that below, or above, all numbers."""


def _is_of_floats(value: Value) -> bool:
    return value.is_tensor and value.element_type in WIDE_FLOATS


def is_infinite(node: Node) -> bool:
    """Whether a constant has an infinity among its numbers."""
    numbers = node.constant() if _is_of_floats(node.result()) else None
    return numbers is not None and bool(np.isinf(numbers).any())


def is_start_alone(node: Node) -> bool:
    """Whether a constant is what reductions begin with, and nothing else."""
    return node.name == names.CONSTANT and all(user.name in REDUCING for user in node.result().users)


def _is_known_by_start(fold: Node, start: Node) -> bool:
    if len(fold.results) > 1:
        return True
    returned, numbers = fold.blocks[0].terminator.operand(0).node, start.constant()
    below = None if returned is None else ENDS.get(returned.name)
    return below is not None and numbers is not None and bool(below(numbers, 0).all())


def _is_refused_constant(_graph: Graph, node: Node) -> bool:
    """Whether an infinite constant is more than the start of reductions that a consumer knows by it.

    A consumer knows a maximum or a minimum by what it begins with, and one of several results (the place of a maximum)
    as a whole.
    """
    known = is_start_alone(node) and all(_is_known_by_start(user, node) for user in node.result().users)
    return is_infinite(node) and not known


@over_each(*REDUCING)
def give_own_starts(_graph: Graph, node: Node) -> None:
    """Give reductions that begin with an infinite constant one of their own, where other ops use it, too.

    A consumer knows a maximum by the constant that it begins with, and writes no number of it down; so such a constant
    is left as it is.
    """
    for number, value in enumerate(node.operands):
        made = value.node
        if made is None or made.name != names.CONSTANT or not is_infinite(made):
            continue
        if any(user.name not in REDUCING for user in value.users):
            own = Builder.before(node).clone(made, [], [value.raw.type])
            node.raw.operands[number] = own.result().raw


WITHOUT_SIGN = frozenset({names.ABS, names.EXPONENTIAL, names.LOGISTIC})


def numbers_of(value: Value, depth: int = 4) -> NDArray[Any] | None:
    """The numbers of which a value is made by moving them, as the ops that round alike everywhere compute them; None
    where they are not constants."""
    made = source_of(value).node
    if made is None or made.name == names.CONSTANT or depth == 0:
        return source_of(value).constant()
    if made.name not in (names.ADD, names.SUBTRACT, names.MULTIPLY):
        return None
    operands = [numbers_of(operand, depth - 1) for operand in made.operands]
    if any(operand is None or operand.size != 1 for operand in operands):
        return None
    with np.errstate(all="ignore"):
        return NUMPY[made.name](*(operand.reshape(()) for operand in operands if operand is not None))


def _has_no_sign(value: Value) -> bool:
    """Whether no float among these has a sign, as far as the op that makes them says."""
    made, numbers = source_of(value).node, source_of(value).constant()
    if numbers is not None:
        return not bool(np.signbit(numbers).any())
    return made is not None and made.name in WITHOUT_SIGN


def _may_be_below_zero(_graph: Graph, node: Node) -> bool:
    return node.operand(0).element_type in WIDE_FLOATS and not _has_no_sign(node.operand(0))


def _is_above_zero(graph: Graph, value: Value) -> bool:
    """Whether each float among these is above zero: an epsilon is added to what is not below zero, or is the least."""
    return ends_of(graph, value)[0] >= float(np.finfo(np.float32).tiny)


def _has_no_zero(value: Value) -> bool:
    """Whether these are numbers of which zeros were replaced."""
    made = value.node
    if made is None or made.name != names.SELECT:
        return False
    is_zero, instead, number = made.operands
    zero, other = compared_with(is_zero, number, "EQ"), instead.constant()
    return zero is not None and other is not None and bool((zero == 0).all() and (other != 0).all())


def _may_be_zero(graph: Graph, node: Node) -> bool:
    value = node.operand(0)
    return _is_of_floats(value) and not (_is_above_zero(graph, value) or _has_no_zero(value))


@over_each(names.RSQRT)
def divide_by_zeros(graph: Graph, node: Node) -> None:
    """Divide one by zeros, in the place of the root.

        %r = stablehlo.rsqrt %x   ->   x == 0 ? 1 / x : rsqrt(x == 0 ? 1 : x)

    Equal: of a zero both are the infinity of its sign, as IEEE 754 has it.
    """
    _set_zeros_apart(graph, node, lambda build, x, one: build.divide(one, x))


@over_each(names.LOG)
def choose_least_of_zeros(graph: Graph, node: Node) -> None:
    """Choose -inf where the logarithm is that of a zero.

        %r = stablehlo.log %x   ->   x == 0 ? -inf : log(x == 0 ? 1 : x)

    Equal: the logarithm of both zeros is -inf.
    """
    _set_zeros_apart(graph, node, lambda build, x, _: build.float_splat(-np.inf, x.static_shape, x.element_type))


def _set_zeros_apart(graph: Graph, node: Node, of_zeros: Callable[[Builder, Value, Value], Value]) -> None:
    """Compute an op of one in the place of zeros, and give what it is of zeros without it.

    Args:
      of_zeros: makes that of the operand, and of ones.
    """
    if not node.is_static or not _may_be_zero(graph, node):
        return
    build, x = Builder.before(node), node.operand(0)
    zero, one = (build.float_splat(number, x.static_shape, x.element_type) for number in (0, 1))
    is_zero = build.compare(x, "EQ", zero)
    found = build.clone(node, [build.select(is_zero, one, x)], [x.raw.type]).result()
    node.result().raw.replace_all_uses_with(build.select(is_zero, of_zeros(build, x, one), found).raw)
    node.raw.erase()


def _is_of_infinity(graph: Graph, node: Node) -> bool:
    """Whether a root may be that of an infinity, and is read otherwise than where its operand is finite."""
    [value], readers = node.operands, [user for user in node.result().users if user.name == names.SELECT]
    tests = [reader.operand(0).node for reader in readers if reader.operand(1) == node.result()]
    is_chosen = len(list(node.result().users)) == len(tests) and all(
        test is not None and test.name == names.IS_FINITE and test.operand(0) == value for test in tests
    )
    return _is_of_floats(value) and not (is_chosen and tests) and bool(np.isinf(ends_of(graph, value)).any())


@over_each(names.CBRT)
def keep_infinities(graph: Graph, node: Node) -> None:
    """Give infinities and NaN back in the place of their cube roots.

        %r = stablehlo.cbrt %x   ->   is_finite(x) ? cbrt(x) : x

    Equal: each infinity is its own cube root, and that of NaN is NaN.
    """
    if not _is_of_infinity(graph, node):
        return
    build, x = Builder.before(node), node.operand(0)
    is_finite = build.op(names.IS_FINITE, [x], [mlir.tensor_type(x.shape, "i1")]).result()
    root = build.clone(node, [x], [x.raw.type]).result()
    node.result().raw.replace_all_uses_with(build.select(is_finite, root, x).raw)
    node.raw.erase()


LEAST_ROOTED = 0.99e-6
"""Below it, what Core ML adds to the operand of a root changes more than the last three bits of the root."""


def _may_be_small(graph: Graph, node: Node) -> bool:
    value = node.operand(0)
    return _is_of_floats(value) and ends_of(graph, value)[0] < LEAST_ROOTED


@over_each(names.RSQRT)
def divide_by_root(graph: Graph, node: Node) -> None:
    """Divide one by the root.

        %r = stablehlo.rsqrt %x   ->   1 / sqrt(x)

    Equal but for the last bit: two ops round in the place of one.
    """
    if not node.is_static or not _may_be_small(graph, node):
        return
    build, x = Builder.before(node), node.operand(0)
    root = build.elementwise(names.SQRT, x)
    result = build.divide(build.float_splat(1, x.static_shape, x.element_type), root)
    node.result().raw.replace_all_uses_with(result.raw)
    node.raw.erase()


def _is_of_half(_graph: Graph, node: Node) -> bool:
    """Whether an exponent is the constant 0.5, or -0.5."""
    exponent = source_of(node.operand(1)).constant() if _is_of_floats(node.operand(1)) else None
    return exponent is not None and bool(exponent.size) and bool((np.abs(exponent) == 0.5).any())


@over_each(names.POWER)
def hold_exponents(graph: Graph, node: Node) -> None:
    """Put a barrier behind an exponent of 0.5 or -0.5, which a consumer would take for a root."""
    if _is_of_half(graph, node):
        hold_operand(node, 1)


def _is_number(value: Value, but: float) -> bool:
    """Whether these are constants, finite and other than a number."""
    numbers = numbers_of(value)
    return numbers is not None and bool((np.isfinite(numbers) & (numbers != but)).all())


def _is_chosen(power: Node) -> bool:
    """Whether a power is read only where another number is not chosen instead, as the cure leaves it."""
    readers = [(user, user.operand(1)) for user in power.result().users if user.name == names.SELECT]
    return len(readers) == len(list(power.result().users)) and all(
        user.operand(2) == power.result() and _is_number(one, 0) for user, one in readers
    )


def _may_be_no_logarithm(graph: Graph, node: Node) -> bool:
    """Whether a base may be below zero, or a power be one of 0, or of 1, which takes no logarithm."""
    base, exponent = node.operands
    is_power = _is_number(exponent, 0) or (_is_number(base, 1) and _is_number(base, 0)) or _is_chosen(node)
    return _may_be_below_zero(graph, node) or (base.element_type in WIDE_FLOATS and not is_power)


def _is_total_order(_graph: Graph, node: Node) -> bool:
    """Whether floats are compared so, other than by a sort, which is taken whole."""
    is_total = _is_of_floats(node.operand(0)) and "TOTALORDER" in str(node.attribute("compare_type"))
    return is_total and (node.parent is None or node.parent.name != names.SORT)


MOST_BEHIND = 50
"""Ops behind a conversion that are looked at."""


def _is_one_number(value: Value) -> bool:
    numbers = source_of(value).constant()
    return numbers is not None and bool((numbers == numbers.flat[:1]).all())


def _is_spread(value: Value) -> bool:
    """Whether a value is computed, element by element, of what a broadcast repeats, and of constants.

    What repeats one number is a constant to the consumer.
    """
    pending, seen, repeats = [value], {value}, False
    while pending:
        made = pending.pop().node
        if made is None or len(seen) > MOST_BEHIND or made.has_regions:
            return False
        is_larger = made.name == names.BROADCAST_IN_DIM and made.result().shape != made.operand(0).shape
        if is_larger and not _is_one_number(made.operand(0)):
            repeats = True
        elif made.name in ELEMENTWISE | LAYOUT | {names.CONSTANT}:
            more = [operand for operand in made.operands if operand not in seen]
            seen.update(more)
            pending += more
        else:
            return False
    return repeats


def _takes_spread(_graph: Graph, node: Node) -> bool:
    """Whether what a broadcast repeats is converted to a narrow float, transposed or added up."""
    if node.name == names.CONVERT:
        is_moved = node.result().element_type in HALF_FLOATS
    else:
        is_moved = node.name == names.TRANSPOSE or is_sum(node)
    return is_moved and _is_spread(node.operand(0))


@over_each(names.CONVERT, names.TRANSPOSE, names.REDUCE)
def hold_spread(graph: Graph, node: Node) -> None:
    """Put a barrier behind what a broadcast repeats, where a consumer would move the broadcast."""
    if _takes_spread(graph, node):
        hold_operand(node, 0)


def _scaled(value: Value) -> Value:
    """What is multiplied or divided by constants, or negated, to be a value."""
    while (made := value.node) is not None:
        if made.name in (names.MULTIPLY, names.DIVIDE) and source_of(made.operand(1)).constant() is not None:
            value = made.operand(0)
        elif made.name == names.MULTIPLY and source_of(made.operand(0)).constant() is not None:
            value = made.operand(1)
        elif made.name == names.NEGATE:
            value = made.operand(0)
        else:
            break
    return value


def _is_no_gelu(_graph: Graph, node: Node) -> bool:
    """Whether the complement of an error function is more than a factor of what it is computed of."""
    x = _scaled(node.operand(0))
    users = list(node.result().users)
    return not users or any(
        user.name != names.MULTIPLY or all(_scaled(factor) != x for factor in user.operands) for user in users
    )


def _is_of_complement(value: Value) -> bool:
    """Whether a value is read by complements of error functions alone, as it is or times constants."""
    users = list(value.users)
    return bool(users) and all(
        user.name == "chlo.erfc"
        or (
            (user.name in (names.MULTIPLY, names.DIVIDE) and _scaled(user.result()) == _scaled(value))
            and _is_of_complement(user.result())
        )
        for user in users
    )


def _loses_sign(graph: Graph, node: Node) -> bool:
    """Whether a negated float may be 0, of a sign that is read."""
    x = node.operand(0)
    return _is_of_floats(x) and not (_is_above_zero(graph, x) or _is_of_complement(node.result()))


@over_each(names.NEGATE)
def multiply_by_minus_one(graph: Graph, node: Node) -> None:
    """Multiply floats by -1.

        %r = stablehlo.negate %x   ->   x * -1

    Equal, bit for bit: a product with -1 is exact, and turns the sign, that of a zero, too.
    """
    if not node.is_static or not _loses_sign(graph, node):
        return
    build, x = Builder.before(node), node.operand(0)
    minus = build.float_splat(-1, x.static_shape, x.element_type)
    node.result().raw.replace_all_uses_with(build.elementwise(names.MULTIPLY, x, minus).raw)
    node.raw.erase()


V = "tensor<4xf32>"

INFINITE = Quirk(
    "constant Inf",
    (names.CONSTANT,),
    {"litert": "its writer puts down the largest float"},
    "a `bitcast_convert` of its bits; a maximum or minimum begins with an infinity still",
    module("", V, f"%r = stablehlo.constant dense<0x7F800000> : {V}"),
    _is_refused_constant,
    (
        Rewrite("own-starts", "gives each reduction an infinite start of its own", give_own_starts, Place.BEFORE_TYPES),
        Rules(FORM, ("infinite_to_bits",)),
    ),
    is_anywhere=True,
)

REPEATED = Quirk(
    "repeated value",
    (names.CONVERT, names.TRANSPOSE, names.REDUCE),
    {"litert": "it converts to bf16 or f16, transposes or adds up first, and then repeats to another shape"},
    "the same op behind an `optimization_barrier`",
    module(
        "%x: tensor<4xf32>",
        "tensor<2x4xbf16>",
        "%b = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>",
        "%r = stablehlo.convert %b : (tensor<2x4xf32>) -> tensor<2x4xbf16>",
    ),
    _takes_spread,
    (Rewrite("hold-repeated", "holds back what would be moved before a broadcast", hold_spread, Place.LAST),),
    is_reported=False,
)

TOTAL_ORDER = Quirk(
    "compare TOTALORDER",
    (names.COMPARE,),
    {"litert": "it has no kernel", "tt": "it compares as numbers", "coreml": "it compares as numbers"},
    "a comparison of the bits, or of numbers computed with 1 / x",
    module(
        f"%x: {V}, %y: {V}",
        "tensor<4xi1>",
        f"%r = stablehlo.compare LT, %x, %y, TOTALORDER : ({V}, {V}) -> tensor<4xi1>",
    ),
    _is_total_order,
    (Rules(FORM, ("total_order_to_bits", "total_order_to_numbers")),),
    is_anywhere=True,
)

ODD_BELOW_ZERO = Quirk(
    "sine or tangent below 0",
    (names.SINE, names.TAN, "chlo.tan"),
    {"iree": "of -1e-10 its sine is 6e-8"},
    "that of the magnitude, with the sign",
    module(f"%x: {V}", V, f"%r = stablehlo.sine %x : {V}"),
    _may_be_below_zero,
    (Rules(FORM, ("odd_function_to_magnitude",)),),
    is_anywhere=True,
)

POWER_BELOW_ZERO = Quirk(
    "power below 0",
    (names.POWER,),
    {"iree": "it is exp(y log x): NaN of a base below 0, and of any base of 0^0 and of 1^inf"},
    "that of the magnitude, the sign by whether the exponent is odd",
    module(f"%x: {V}, %y: {V}", V, f"%r = stablehlo.power %x, %y : {V}"),
    _may_be_no_logarithm,
    (Rules(FORM, ("power_to_magnitude",)),),
    is_anywhere=True,
)

ROOT_OF_ZERO = Quirk(
    "rsqrt of zero",
    (names.RSQRT,),
    {"litert": "it is NaN, where it should be an infinity"},
    "1 / x where x is 0, the op of 1 there, if x is not known to be above 0",
    module(f"%x: {V}", V, f"%r = stablehlo.rsqrt %x : {V}"),
    _may_be_zero,
    (Rewrite("divide-by-zeros", "divides 1 by zeros, of which it takes no rsqrt", divide_by_zeros),),
)

ROOT_OF_INFINITY = Quirk(
    "cbrt of an infinity",
    (names.CBRT,),
    {"iree": "it is NaN, where it should be the infinity"},
    "x where x is no finite number",
    module(f"%x: {V}", V, f"%r = stablehlo.cbrt %x : {V}"),
    _is_of_infinity,
    (Rewrite("keep-infinities", "gives infinities back in the place of their cube roots", keep_infinities),),
    is_anywhere=True,
)

LOG_OF_ZERO = Quirk(
    "log of zero",
    (names.LOG,),
    {"coreml": "it adds 1e-45 first, so it is -103"},
    "-inf where x is 0, the op of 1 there, if x is not known to be above 0",
    module(f"%x: {V}", V, f"%r = stablehlo.log %x : {V}"),
    _may_be_zero,
    (Rewrite("choose-least-of-zeros", "chooses -inf where a logarithm is that of 0", choose_least_of_zeros),),
)

SMALL_ROOT = Quirk(
    "rsqrt of small numbers",
    (names.RSQRT,),
    {"coreml": "it adds 1e-12 first, so that of 0 is 1,000,000"},
    "1 / sqrt(x), if x is not known to be 1e-6 at least",
    module(f"%x: {V}", V, f"%r = stablehlo.rsqrt %x : {V}"),
    _may_be_small,
    (Rewrite("divide-by-root", "divides 1 by the root of what may be small", divide_by_root),),
)

NEGATED_ZERO = Quirk(
    "negate of zero",
    (names.NEGATE,),
    {"coreml": "it is 0 - x, so that of 0 is 0"},
    "x * -1, if x is not known to be above 0",
    module(f"%x: {V}", V, f"%r = stablehlo.negate %x : {V}"),
    _loses_sign,
    (Rewrite("multiply-by-minus-one", "multiplies floats that may be 0 by -1", multiply_by_minus_one, Place.LAST),),
)

POWER_OF_HALF = Quirk(
    "power of a half",
    (names.POWER,),
    {"litert": "it takes a root for it, which of 0 and of infinities is NaN"},
    "the same op, its exponent behind an `optimization_barrier`",
    module(f"%x: {V}", V, f"%c = stablehlo.constant dense<-5.000000e-01> : {V}", f"%r = stablehlo.power %x, %c : {V}"),
    _is_of_half,
    (Rewrite("hold-exponents", "holds back exponents that would become roots", hold_exponents, Place.LAST),),
    is_reported=False,
)

COMPLEMENT = Quirk(
    "chlo.erfc other than in a gelu",
    ("chlo.erfc",),
    {"coreml": "it is 1 - erf(x), which has no right digit beyond 4"},
    "StableHLO's form; x * erfc(-x), as a gelu has it, is near enough to 0 there",
    module(f"%x: {V}", V, f"%r = chlo.erfc %x : {V} -> {V}"),
    _is_no_gelu,
    (Rules("chlo.", ("chlo_to_stablehlo",)),),
    is_anywhere=True,
)
