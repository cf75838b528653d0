"""Products, convolutions and reductions in forms that few consumers have."""

from collections.abc import Callable
from math import prod

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import highest_precision
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.axes.op_axes import is_neutral, is_one_op
from hlo_lower.ops.names import CONSTANT, REDUCE
from hlo_lower.ops.origins import MOVED_OR_ALONE, ComesFrom, made_by
from hlo_lower.ops.quirks.moves import comes_of
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, Rules, hold_operand, module, over_each
from hlo_lower.ops.spec import RESHAPING

# --- products ---


def summed_over(node: Node) -> int:
    """How many products each element of a `dot_general` is the sum of."""
    contracted: list[int] = list(mlir.dot_dimension_numbers(node.raw).lhs_contracting_dimensions)
    return prod(node.operand(0).static_shape[d] for d in contracted)


def _has_contracted_apart(_graph: Graph, node: Node) -> bool:
    """Whether the contracting dims of a `dot_general` are in another order on its right side."""
    numbers = mlir.dot_dimension_numbers(node.raw)
    pairs = sorted(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    return [d for _, d in pairs] != sorted(d for _, d in pairs)


EMPTY_SUM = Quirk(
    "dot_general that sums nothing",
    (names.DOT_GENERAL,),
    {"iree": "its compiler divides by zero", "litert": "it is not converted"},
    "zeros",
    module(
        "%x: tensor<2x0xf32>, %y: tensor<0x3xf32>",
        "tensor<2x3xf32>",
        "%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]",
        "  : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>",
    ),
    lambda _graph, node: summed_over(node) == 0,
    (Rules("op", ("dot_to_zeros",)),),
)


def widens(_graph: Graph, node: Node) -> bool:
    """Whether a product is of a wider type than what is multiplied."""
    return any(value.element.bits < node.result().element.bits for value in node.operands)


WIDER_PRODUCT = Quirk(
    "dot_general to a wider type",
    (names.DOT_GENERAL, names.CONVOLUTION),
    {
        "mps": "it multiplies and adds in the operands' type, and goes on with the result as if it were of the other",
        "coreml": "it goes on with a result of the operands' type, and rejects what computes with it",
    },
    "the same of converted operands",
    module(
        "%x: tensor<2x4xbf16>, %y: tensor<4x3xbf16>",
        "tensor<2x3xf32>",
        "%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]",
        "  : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xf32>",
    ),
    widens,
    (Rules("op", ("product_to_converted_product",)),),
)


def _is_batched_by_an_algorithm(_graph: Graph, node: Node) -> bool:
    """Whether a product of batches says how its sums are computed."""
    return node.attribute("algorithm") is not None and bool(
        mlir.dot_dimension_numbers(node.raw).lhs_batching_dimensions
    )


@over_each(names.DOT_GENERAL)
def ask_for_the_highest(graph: Graph, node: Node) -> None:
    """Let a product be of the highest precision, summed in what its algorithm sums in.

        dot_general %x, %y, algorithm = <bf16, bf16, accumulation_type = f32, ...> : (bf16, bf16) -> bf16
        ->   convert (dot_general %x, %y, precision = [HIGHEST, HIGHEST] : (bf16, bf16) -> f32) : bf16

    No less is asked for: the highest precision rounds no operand, and the type of the sum holds that of the algorithm.
    """
    if not node.is_static or not _is_batched_by_an_algorithm(graph, node):
        return
    build, result = Builder.before(node), node.result()
    sums = mlir.dot_algorithm(node.raw)["accumulation_type"]
    wide = result.element_type if result.element.holds(element_type(sums)) else sums
    product = build.copy_on(
        node, node.operands, [mlir.tensor_type(result.static_shape, wide)], {"algorithm": None, **highest_precision()}
    )
    result.raw.replace_all_uses_with(build.convert(product.result(), result.element_type).raw)
    node.raw.erase()


ALGORITHM = Quirk(
    "batched dot_general by an algorithm",
    (names.DOT_GENERAL,),
    {"iree": "it is not legalized"},
    "the same product at the highest precision",
    module(
        "%x: tensor<2x3x4xbf16>, %y: tensor<2x4x3xbf16>",
        "tensor<2x3x3xf32>",
        "%r = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], algorithm =",
        "  <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1,",
        "  rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>",
        "  : (tensor<2x3x4xbf16>, tensor<2x4x3xbf16>) -> tensor<2x3x3xf32>",
    ),
    _is_batched_by_an_algorithm,
    (
        Rewrite(
            "highest-precision",
            "computes products of batches at the highest precision",
            ask_for_the_highest,
            Place.BEFORE_TYPES,
        ),
    ),
)

CONTRACTED_APART = Quirk(
    "dot_general with contracting dims in another order",
    (names.DOT_GENERAL,),
    {"litert": "wrong numbers"},
    "a transposed right operand",
    module(
        "%x: tensor<3x4x5xf32>, %y: tensor<5x4x2xf32>",
        "tensor<3x2xf32>",
        "%r = stablehlo.dot_general %x, %y, contracting_dims = [1, 2] x [1, 0]",
        "  : (tensor<3x4x5xf32>, tensor<5x4x2xf32>) -> tensor<3x2xf32>",
    ),
    _has_contracted_apart,
    (Rules("op", ("dot_to_ordered_dot",)),),
)


class _TurnedTwice:
    """Whether both sides of a product without batches may be read transposed, the right one in another shape, too."""

    def __init__(self, graph: Graph) -> None:
        self._is_transposed = ComesFrom(graph, made_by({names.TRANSPOSE}), MOVED_OR_ALONE)
        self._is_reshaped = ComesFrom(graph, made_by({names.RESHAPE}), MOVED_OR_ALONE)

    def __call__(self, node: Node) -> bool:
        numbers, [left, right] = mlir.dot_dimension_numbers(node.raw), node.operands
        if list(numbers.lhs_batching_dimensions):
            return False
        is_summed_last = list(numbers.lhs_contracting_dimensions) == [len(left.shape) - 1]
        is_turned = not is_summed_last or self._is_transposed(left)
        return is_turned and self._is_transposed(right) and self._is_reshaped(right)


@over_each(names.DOT_GENERAL, of=_TurnedTwice)
def hold_turned(is_turned_twice: _TurnedTwice, node: Node) -> None:
    """Put a barrier behind the right side of a product whose transposes a consumer would merge."""
    if is_turned_twice(node):
        hold_operand(node, 1)


TURNED_TWICE = Quirk(
    "dot_general of turned operands",
    (names.DOT_GENERAL,),
    {"litert": "it multiplies by the matrix that is transposed and reshaped, and does not turn the other one"},
    "the same op, its right operand behind an `optimization_barrier`",
    module(
        "%x: tensor<4x4xf32>, %y: tensor<1x4x4xf32>",
        "tensor<4x4xf32>",
        "%t = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<1x4x4xf32>) -> tensor<4x1x4xf32>",
        "%s = stablehlo.reshape %t : (tensor<4x1x4xf32>) -> tensor<4x4xf32>",
        "%r = stablehlo.dot_general %x, %s, contracting_dims = [0] x [0]",
        "  : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>",
    ),
    lambda graph, node: _TurnedTwice(graph)(node),
    (Rewrite("hold-turned", "holds back a matrix whose transpose would be merged", hold_turned, Place.LAST),),
    is_reported=False,
)

# --- convolutions ---


def _has(name: str, than: int) -> Callable[[Graph, Node], bool]:
    return lambda _graph, node: any(number > than for number in node.integers(name, ()))


def _convolution(operand: str, kernel: str, result: str, window: str = "", groups: tuple[int, int] = (1, 1)) -> str:
    """A convolution over the dims between the first and the last one of its operand."""
    spatial = [str(k) for k in range(operand.count("x") - 2)]
    dims = (
        f"[{', '.join(['b', *spatial, 'f'])}]x[{', '.join([*spatial, 'i', 'o'])}]->[{', '.join(['b', *spatial, 'f'])}]"
    )
    return module(
        f"%x: tensor<{operand}>, %k: tensor<{kernel}>",
        f"tensor<{result}>",
        f"%r = stablehlo.convolution(%x, %k) dim_numbers = {dims}, window = {{{window}}}",
        f"  {{batch_group_count = {groups[0]} : i64, feature_group_count = {groups[1]} : i64}}",
        f"  : (tensor<{operand}>, tensor<{kernel}>) -> tensor<{result}>",
    )


def _is_dilated_by_computed_kernel(graph: Graph, node: Node) -> bool:
    return _has("rhs_dilation", 1)(graph, node) and not comes_of(node.operand(1), names.CONSTANT)


REVERSED_KERNEL = Quirk(
    "convolution by a reversed kernel",
    (names.CONVOLUTION,),
    {"litert": "wrong numbers", "coreml": "it does not look", "tt": "it is not converted"},
    "`reverse` of the kernel",
    _convolution("1x5x2xf32", "2x2x3xf32", "1x4x3xf32", "reverse = [true]"),
    _has("window_reversal", 0),
    (Rules("op", ("reversed_kernel_to_reverse",)),),
)

BATCH_GROUPS = Quirk(
    "convolution in batch groups",
    (names.CONVOLUTION,),
    {"litert": "it is not converted", "coreml": "it is not converted"},
    "groups of features",
    _convolution("2x5x2xf32", "2x2x4xf32", "1x4x4xf32", groups=(2, 1)),
    lambda _graph, node: node.integer("batch_group_count") > 1,
    (Rules("op", ("batch_groups_to_feature_groups",)),),
)

FEATURE_GROUPS = Quirk(
    "convolution of 3 dims in feature groups",
    (names.CONVOLUTION,),
    {"litert": "it ends in a segmentation fault"},
    "a convolution for each group, 64 at most",
    _convolution("1x3x3x3x4xf32", "2x2x2x2x2xf32", "1x2x2x2x2xf32", groups=(1, 2)),
    lambda _graph, node: node.integer("feature_group_count") > 1 and len(node.operand(0).static_shape) == 5,
    (Rules("op", ("feature_groups_to_convolutions",)),),
)

MOST_CHANNELS = 4832
"""Results of a convolution of channels that LiteRT's kernel has room for; with more of them it goes on for ever."""


def _has_many_channels(_graph: Graph, node: Node) -> bool:
    numbers, groups = mlir.convolution_dimension_numbers(node.raw), node.integer("feature_group_count")
    features = node.operand(0).static_shape[numbers.input_feature]
    return features == groups and node.result().static_shape[numbers.output_feature] > MOST_CHANNELS


MANY_CHANNELS = Quirk(
    "convolution of many channels",  # a depthwise one
    (names.CONVOLUTION,),
    {"litert": "with more than 4,832 results of a place it does not end"},
    "convolutions of 4,832 channels at most",
    _convolution("1x3x4840xf32", "2x1x4840xf32", "1x2x4840xf32", groups=(1, 4840)),
    _has_many_channels,
    (Rules("op", ("feature_groups_to_convolutions",)),),
)

DILATED_OPERAND = Quirk(
    "convolution of a dilated operand",  # a transposed one
    (names.CONVOLUTION,),
    {"litert": "it computes some wrongly, and rejects others", "coreml": "it is not converted"},
    "zeros between the elements",
    _convolution("1x5x2xf32", "2x2x3xf32", "1x8x3xf32", "lhs_dilate = [2]"),
    _has("lhs_dilation", 1),
    (Rules("op", ("dilated_operand_to_spread",)),),
)


def _pads_one_channel(_graph: Graph, node: Node) -> bool:
    """Whether a convolution of 3 dims pads an operand of one channel."""
    shape, numbers = node.operand(0).static_shape, mlir.convolution_dimension_numbers(node.raw)
    return len(shape) == 5 and shape[numbers.input_feature] == 1 and any(node.padding(3))


PADDED_CHANNEL = Quirk(
    "padded convolution of 3 dims and one channel",
    (names.CONVOLUTION,),
    {"litert": "it ends in a segmentation fault, unless the result is as large as the operand"},
    "a `pad`, and the convolution of that",
    _convolution("1x3x3x3x1xf32", "2x2x2x1x2xf32", "1x4x4x4x2xf32", "pad = [[1, 1], [1, 1], [1, 1]]"),
    _pads_one_channel,
    (Rules("op", ("padded_operand_to_pad",)),),
)


DILATED_KERNEL = Quirk(
    "convolution by a computed dilated kernel",  # an atrous one
    (names.CONVOLUTION,),
    {"coreml": "it is not converted"},
    "further rows of the batch",
    _convolution("1x5x2xf32", "2x2x3xf32", "1x3x3xf32", "rhs_dilate = [2]"),
    _is_dilated_by_computed_kernel,
    (Rules("op", ("dilated_kernel_to_batches",)),),
)


def _left_over(node: Node) -> dict[int, int]:
    """For each spatial dim along which there is one window: how many elements behind it none reads, if any."""
    found, padding = dict[int, int](), node.padding(len(node.result().static_shape) - 2)
    given, kernel = (value.static_shape for value in node.operands)
    for k, (dim, window, made) in enumerate(mlir.convolution_spatial_dimensions(node.raw)):
        apart, steps = (node.integers(name, (1,) * (k + 1))[k] for name in ("lhs_dilation", "rhs_dilation"))
        size = (given[dim] - 1) * apart + 1 + sum(padding[2 * k : 2 * k + 2])
        more = size - (kernel[window] - 1) * steps - 1
        if node.result().static_shape[made] == 1 and more > 0 and given[dim] > 0:
            found[k] = more
    return found


@over_each(names.CONVOLUTION)
def cut_left_over(_graph: Graph, node: Node) -> None:
    """Cut off what lies behind the one window of a convolution, in place: padding, and then elements.

        convolution %x[4], %k[3], stride = [2]   ->   convolution (slice %x [0:3]), %k[3], stride = [2]

    Equal: the result has one element along that dim, whose window ends before.
    """
    if not node.is_static or not (left := _left_over(node)):
        return
    build, (value, kernel), rank = Builder.before(node), node.operands, len(node.result().static_shape) - 2
    padding, sizes = list(node.padding(rank)), list(value.static_shape)
    for k, more in left.items():
        dim = mlir.convolution_spatial_dimensions(node.raw)[k][0]
        apart = node.integers("lhs_dilation", (1,) * rank)[k]
        padding[2 * k + 1] -= more
        if padding[2 * k + 1] < 0:
            last = (sizes[dim] - 1) * apart + padding[2 * k + 1]
            sizes[dim] = max(last // apart, 0) + 1
            padding[2 * k + 1] = last - (sizes[dim] - 1) * apart
    pairs = np.asarray(padding, np.int64).reshape(rank, 2)
    attributes = {"padding": mlir.dense_attribute(pairs, mlir.tensor_type((rank, 2), "i64"))}
    operands = [build.slice(value, [0] * len(sizes), sizes), kernel]
    made = build.copy_on(node, operands, [node.result().raw.type], attributes).result()
    node.result().raw.replace_all_uses_with(made.raw)
    node.raw.erase()


LEFT_OVER = Quirk(
    "convolution of one window and more",
    (names.CONVOLUTION,),
    {"iree": "its compiler takes the kernel to be as long as the operand, and rejects it"},
    "a convolution of what the window reads",
    _convolution("1x4x2xf32", "3x2x3xf32", "1x1x3xf32", "stride = [2]"),
    lambda _graph, node: bool(_left_over(node)),
    (Rewrite("cut-left-over", "cuts off what lies behind one window", cut_left_over, Place.LAST),),
)

# --- reductions ---

NUMBERS = (names.ADD, names.MAXIMUM, names.MINIMUM, names.MULTIPLY)
TRUTHS = (names.AND, names.MAXIMUM, names.MINIMUM, names.OR)
"""The operations by which numbers and truths are taken to be reduced."""


def _is_any_fold(_graph: Graph, node: Node) -> bool:
    """Whether a reduction is more than one operation of numbers, and not the place of a maximum or minimum."""
    [body, *_] = node.blocks
    element = node.operand(0).element_type
    if len(node.results) == 1:
        first = next(iter(body.nodes))
        return not is_one_op(body) or first.name not in (TRUTHS if element == "i1" else NUMBERS)
    is_place = len(node.results) == 2 and comes_of(node.operand(1), names.IOTA)
    return not (is_place and any(inner.name == names.COMPARE for inner in body.nodes))


def _starts_from_number(_graph: Graph, node: Node) -> bool:
    """Whether a maximum or minimum starts from another number than the least or greatest one."""
    first = next(iter(node.blocks[0].nodes))
    if len(node.results) > 1 or not is_one_op(node.blocks[0]) or first.name not in (names.MAXIMUM, names.MINIMUM):
        return False
    return not is_neutral(node.operand(1), first.name.removeprefix("stablehlo."))


def _is_varied(made: Node | None) -> bool:
    """Whether an op is none that makes one number everywhere of such numbers."""
    if made is not None and made.name == CONSTANT:
        return not mlir.is_splat(made.raw)
    return made is None or made.name not in MOVED_OR_ALONE


def _varies(graph: Graph) -> ComesFrom:
    """Whether a value may be more than one number, spread; not where elementwise ops make it of such constants."""
    return ComesFrom(graph, _is_varied, MOVED_OR_ALONE)


@over_each(REDUCE, of=_varies)
def reduce_one_number(varies: ComesFrom, node: Node) -> None:
    """Let a reduction of that form read the first of the numbers, spread again, in place.

        reduce(exp(dense<c>))   ->   reduce(broadcast_in_dim(exp(dense<c>)[0]))

    Equal: elementwise ops make one number of constants of one number each.
    """
    for number, value in enumerate(_computed_alike(varies, node)):
        node.raw.operands[number] = _spread(Builder.before(node), value).raw


def _computed_alike(varies: ComesFrom, node: Node) -> tuple[Value, ...]:
    """What a reduction of two elements or more reads, if each operand is of one number and one is computed; else ()."""
    values = node.operands[: len(node.results)]
    if not node.is_static or prod(values[0].static_shape[d] for d in node.integers("dimensions")) < 2:
        return ()
    return tuple(values) if any(map(_is_computed, values)) and not any(map(varies, values)) else ()


def _is_computed(value: Value) -> bool:
    made = _peel_broadcasts(value).node
    return made is None or made.name != CONSTANT


def _spread(build: Builder, value: Value) -> Value:
    shape = value.static_shape
    first = build.slice(value, [0] * len(shape), [min(1, size) for size in shape])
    return build.broadcast(build.reshape(first, ()), shape) if all(shape) else value


def _reduction(op: str, start: str, element: str, *lines: str, of: str = "%x") -> str:
    """A reduction of rows by one op, or by what `lines` compute of %a and %b."""
    x, s = f"tensor<4x32x{element}>", f"tensor<4x{element}>"
    return module(
        f"%x: {x}",
        s,
        *lines,
        f"%i = stablehlo.constant dense<{start}> : tensor<{element}>",
        f"%r = stablehlo.reduce({of} init: %i) applies stablehlo.{op} across dimensions = [1]",
        f"  : ({x}, tensor<{element}>) -> {s}",
    )


ONE_OPERATION = "it knows regions of one operation, and a place"

FOLD = Quirk(
    "reduce of any region",
    (REDUCE, names.REDUCE_WINDOW),
    {"litert": "it is not converted", "mps": ONE_OPERATION, "tt": ONE_OPERATION, "metal": "it is not legalized"},
    "slices, or halves",
    _reduction("xor", "0", "i32"),
    _is_any_fold,
    (Rules("op", ("reduce_to_slices", "reduce_to_halves", "reduce_to_float_halves")),),
)

FOLD_START = Quirk(
    "reduce to a maximum from a number",
    (REDUCE,),
    {"litert": "it reduces from the identity of an operation only"},
    "the same from the least number, and a maximum",
    _reduction("maximum", "0.5", "f32"),
    _starts_from_number,
    (Rules("op", ("reduce_to_reduce_and_start",)),),
)


def _leaves_out_number(_graph: Graph, node: Node) -> bool:
    """Whether a reduction by one operation starts from a number that shows in the result."""
    first = next(iter(node.blocks[0].nodes))
    if len(node.results) > 1 or not is_one_op(node.blocks[0]):
        return False
    return not _counts_for_nothing(_peel_broadcasts(node.operand(1)), first.name.removeprefix("stablehlo."))


def _counts_for_nothing(start: Value, name: str) -> bool:
    """The same of complex numbers, too: constants, and what is put together of constant parts."""
    made = start.node
    if made is None or not start.element.is_complex:
        return is_neutral(start, name)
    if made.name == names.COMPLEX:
        return name == "add" and all(is_neutral(part, name) for part in made.operands)
    numbers = mlir.constant_value(made.raw, is_complex=True) if made.name == CONSTANT else None
    return numbers is not None and bool(numbers.reshape(-1)[0] == {"add": 0, "multiply": 1}.get(name))


def _is_other_place(_graph: Graph, node: Node) -> bool:
    """Whether a reduction gives places, and not those of maxima alone, or from another number than the least one."""
    if len(node.results) != 2 or not comes_of(node.operand(1), names.IOTA):
        return False
    first = next(iter(node.blocks[0].nodes))
    direction = str(first.attribute("comparison_direction")).rstrip(">")
    is_greatest = first.name == names.COMPARE and direction.endswith(("GT", "GE"))
    starts = [_peel_broadcasts(value) for value in node.operands[2:]]
    is_from_least = is_neutral(starts[0], "maximum") and is_neutral(starts[1], "add")
    return not (is_greatest and is_from_least) or node.result(0).is_used


X = "tensor<4x8xf32>"

OTHER_PLACE = Quirk(
    "reduce to more than the place of a maximum",
    (REDUCE,),
    {"tt": "it knows that place alone"},
    "slices, or halves",
    module(
        f"%x: {X}",
        "tensor<4xi32>",
        "%n = stablehlo.iota dim = 1 : tensor<4x8xi32>",
        "%i = stablehlo.constant dense<0x7F800000> : tensor<f32>",
        "%z = stablehlo.constant dense<0> : tensor<i32>",
        "%s, %r = stablehlo.reduce(%x init: %i), (%n init: %z) across dimensions = [1]",
        f"  : ({X}, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)",
        "  reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {",
        "  %l = stablehlo.compare LE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  %v = stablehlo.select %l, %a, %c : tensor<i1>, tensor<f32>",
        "  %w = stablehlo.select %l, %b, %d : tensor<i1>, tensor<i32>",
        "  stablehlo.return %v, %w : tensor<f32>, tensor<i32>",
        "}",
    ),
    _is_other_place,
    (Rules("op", ("reduce_to_slices", "reduce_to_halves", "reduce_to_float_halves")),),
)


def _peel_broadcasts(value: Value) -> Value:
    """The scalar under reshapes and broadcasts: JAX broadcasts scalars to scalars."""
    while value.node is not None and value.node.name in RESHAPING:
        value = value.node.operand(0)
    return value


ANY_START = Quirk(
    "reduce from a number",
    (REDUCE, names.REDUCE_WINDOW),
    {"mps": "it leaves the number out", "tt": "it leaves the number out"},
    "the same from the identity of the operation, and the number then",
    _reduction("add", "3", "i32"),
    _leaves_out_number,
    (Rules("op", ("reduce_to_reduce_and_start",)),),
)

ONE_NUMBER = Quirk(
    "reduce of one number computed",
    (REDUCE,),
    # It computes what makes the operand within the reduction. Where no tensor is left to read then, it combines one
    # number for each vector of elements, not for each element: a sum of 32 times exp(0.5) is 2 exp(0.5) there.
    {"iree": "it adds the number once for 16 elements"},
    "the same of the first of these numbers, spread again",
    _reduction(
        *("add", "0.0", "f32", "%c = stablehlo.constant dense<0.5> : tensor<4x32xf32>"),
        "%e = stablehlo.exponential %c : tensor<4x32xf32>",
        of="%e",
    ),
    lambda graph, node: bool(_computed_alike(_varies(graph), node)),
    (Rewrite("reduce-one", "spreads the one number that a reduction reads", reduce_one_number),),
    is_reported=False,
)
