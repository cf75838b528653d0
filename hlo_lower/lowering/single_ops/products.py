"""Pads, convolutions and matrix products in forms that few consumers have, or in plainer ops."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

import numpy as np

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.single_ops.plain_op import (
    PLAIN,
    Elements,
    PlainLowering,
    PlainOp,
    Whole,
    must_not_round_otherwise,
)
from hlo_lower.ops.quirks.integer_products import NARROW_CONVOLUTION
from hlo_lower.ops.quirks.sums import (
    BATCH_GROUPS,
    CONTRACTED_APART,
    DILATED_KERNEL,
    DILATED_OPERAND,
    EMPTY_SUM,
    FEATURE_GROUPS,
    MANY_CHANNELS,
    MOST_CHANNELS,
    PADDED_CHANNEL,
    REVERSED_KERNEL,
    WIDER_PRODUCT,
)
from hlo_lower.ops.refused_forms import RefusedForm

# --- `stablehlo.pad` for consumers that put nothing between elements, pad with constants only, or have none ---


rules = RuleList()


@rules.lowers(PLAIN, named={PlainOp.PAD}, form="concatenate with the padding value; slice where it is negative")
def pad_to_concatenate(op: PlainLowering) -> Sequence[Value]:
    """Put the padding value beside elements, rows and planes, dim by dim.

        %r = pad %x, %v, low = [1], high = [-1], interior = [1]
        ->
        [v] ++ reshape([[x0, v], [x1, v], [x2, v]])[:-1], and the last element of that cut

    Equal: the specification pads between the elements first, then at both ends, and where an end is negative cuts so
    many elements there; what is added at the other end is there before. Costs a concatenate and a slice for each dim.
    """
    value, fill = op.node.operands
    low, high, between = (
        op.node.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    for dim in range(len(low)):
        value = spread_along(op.build, value, fill, dim, between[dim])
        value = _pad_ends(op.build, value, fill, dim, (low[dim], high[dim]))
    return [value]


def spread_along(build: Builder, value: Value, fill: Value, dim: int, gap: int) -> Value:
    """So many of a scalar between neighbours of a dim."""
    shape = value.static_shape
    size = shape[dim]
    if not gap or size < 2:
        return value
    before, after = prod(shape[:dim]), prod(shape[dim + 1 :])
    flat = build.reshape(value, (before, size, after))
    joined = build.concatenate([flat, build.broadcast(fill, (before, size, gap * after))], 2)
    spread = build.reshape(joined, (before, size * (gap + 1), after))
    kept = slice_along(build, spread, 1, 0, size * (gap + 1) - gap)
    return build.reshape(kept, (*shape[:dim], size * (gap + 1) - gap, *shape[dim + 1 :]))


def _pad_ends(build: Builder, value: Value, fill: Value, dim: int, ends: tuple[int, int]) -> Value:
    """Pad a dim at both ends with a scalar; a negative end cuts elements."""
    shape = value.static_shape
    low, high = (build.broadcast(fill, (*shape[:dim], n, *shape[dim + 1 :])) if n > 0 else None for n in ends)
    longer = build.concatenate([part for part in (low, value, high) if part is not None], dim)
    cut_low, cut_high = (max(-n, 0) for n in ends)
    if not cut_low and not cut_high:
        return longer
    return slice_along(build, longer, dim, cut_low, longer.static_shape[dim] - cut_low - cut_high)


# --- `stablehlo.convolution` in forms that few consumers have: groups, what is dilated, a reversed kernel ---
#
# Each rule gives a convolution that adds the same products. In which order is XLA's own, by shape: of integers that is
# no matter, floats may be rounded otherwise (float mode reassociate).


MOST_GROUPS = 64
"""Convolutions that take the place of one in groups of features."""

DIMS_OF_SPACE = 3
"""Dims of a convolution whose groups of features get one each."""

lowers_convolution = partial(rules.lowers, PLAIN, named={PlainOp.CONVOLUTION})


@dataclass(frozen=True)
class Convolution:
    """A convolution as it stands: its dims, and for each spatial one what is done to it."""

    node: Node

    @cached_property
    def numbers(self) -> mlir.ConvolutionNumbers:
        """The dims of batch and features."""
        return mlir.convolution_dimension_numbers(self.node.raw)

    @cached_property
    def spatial(self) -> tuple[tuple[int, int, int], ...]:
        """The spatial dims, each as those of input, kernel and output."""
        return mlir.convolution_spatial_dimensions(self.node.raw)

    def each(self, name: str, otherwise: int = 1) -> tuple[int, ...]:
        """An attribute with a number for each spatial dim."""
        return self.node.integers(name, (otherwise,) * len(self.spatial))

    @cached_property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Low and high padding of each spatial dim."""
        flat = self.node.padding(len(self.spatial))
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    def on(
        self,
        build: Builder,
        values: Sequence[Value],
        shape: Sequence[int],
        other: Mapping[str, mlir.RawAttribute | None],
    ) -> Value:
        """The same convolution on other operands, of another shape, with other attributes; None leaves one out."""
        result = mlir.tensor_type(shape, mlir.tensor_element(self.node.result().raw.type))
        return build.copy_on(self.node, values, [result], other).result()


@lowers_convolution(needs={RefusedForm.of(NARROW_CONVOLUTION)}, form="on f32, which holds each sum")
def integer_convolution_to_float(op: PlainLowering) -> Sequence[Value]:
    """Convolve integers as f32.

        convolution %x, %k : (i8, i8) -> i32   ->   convert (convolution (convert %x), (convert %k) : f32) : i32

    Equal: each sum of products is an integer within 2^24, in any order, and f32 holds those. Of i8 these are 1,024
    products for each element.
    """
    node, build, result = op.node, op.build, op.node.result()
    factors = [build.convert(value, "f32") for value in node.operands]
    found = build.copy_on(node, factors, [mlir.tensor_type(result.static_shape, "f32")], {}).result()
    return [build.convert(found, result.element_type)]


@lowers_convolution(needs={RefusedForm.of(REVERSED_KERNEL)}, form="the kernel reversed first")
def reversed_kernel_to_reverse(op: PlainLowering) -> Sequence[Value]:
    """Reverse the kernel in the dims in which the window is reversed. Equal: that is what `window_reversal` means."""
    must_not_round_otherwise(op)
    found, [value, kernel] = Convolution(op.node), op.node.operands
    turned = found.each("window_reversal", 0)
    kernel = op.build.reverse(
        kernel, [k for (_, k, _), is_turned in zip(found.spatial, turned, strict=True) if is_turned]
    )
    return [found.on(op.build, [value, kernel], op.node.result().static_shape, {"window_reversal": None})]


@lowers_convolution(needs={RefusedForm.of(DILATED_OPERAND)}, form="zeros inserted between the elements first")
def dilated_operand_to_spread(op: PlainLowering) -> Sequence[Value]:
    """Put the zeros of `lhs_dilation` between the elements of the operand: what a transposed convolution is.

        convolution %x, %k, lhs_dilate = [2]   ->   convolution [x0, 0, x1, 0, x2], %k

    Equal: the specification pads the operand with zeros, `lhs_dilation - 1` of them between neighbours, before anything
    else. Costs an operand that is as many times larger, and as many times the products.
    """
    must_not_round_otherwise(op)
    found, [value, kernel] = Convolution(op.node), op.node.operands
    value = _spread(op.build, found, value)
    return [found.on(op.build, [value, kernel], op.node.result().static_shape, {"lhs_dilation": None})]


def _spread(build: Builder, found: Convolution, value: Value) -> Value:
    zero = build.zero_of(value)
    for (dim, _, _), dilation in zip(found.spatial, found.each("lhs_dilation"), strict=True):
        value = spread_along(build, value, zero, dim, dilation - 1)
    return value


@lowers_convolution(needs={RefusedForm.of(PADDED_CHANNEL)}, form="the operand padded with zeros first")
def padded_operand_to_pad(op: PlainLowering) -> Sequence[Value]:
    """Pad the operand with zeros, and convolve the result without padding.

        convolution %x, %k, pad = [[1, 2]]   ->   convolution (pad %x, 0, low = [1], high = [2]), %k

    Equal: that is what the specification says padding is. Costs a copy of the operand.
    """
    must_not_round_otherwise(op)
    build, found, [value, kernel] = op.build, Convolution(op.node), op.node.operands
    value = _spread(build, found, value)
    zero = build.zero(mlir.tensor_element(value.raw.type))
    for (dim, _, _), ends in zip(found.spatial, found.padding, strict=True):
        value = _pad_dim(build, value, zero, dim, ends, 0)
    return [found.on(build, [value, kernel], op.node.result().static_shape, {"lhs_dilation": None, "padding": None})]


@lowers_convolution(needs={RefusedForm.of(BATCH_GROUPS)}, form="groups of the batch become groups of features")
def batch_groups_to_feature_groups(op: PlainLowering) -> Sequence[Value]:
    """Make a group of features of each group of the batch: what the gradient of a depthwise kernel is.

        %x[G * n, ..., C], batch groups G   ->   %x[n, ..., G * C], feature groups G

    Equal: output feature o belongs to group o / (O / G) in both, and is made of part o / (O / G) of the batch, of all
    its C features, by the same numbers of the kernel. Costs a transposition.
    """
    must_not_round_otherwise(op)
    build, found, [value, kernel] = op.build, Convolution(op.node), op.node.operands
    groups = op.node.integer("batch_group_count")
    value = _beside(build, found, value, groups)
    return [found.on(build, [value, kernel], op.node.result().static_shape, _in_feature_groups(groups))]


def _in_feature_groups(groups: int) -> dict[str, mlir.RawAttribute]:
    return {"batch_group_count": mlir.i64_attribute(1), "feature_group_count": mlir.i64_attribute(groups)}


def _beside(build: Builder, found: Convolution, value: Value, groups: int) -> Value:
    """The operand with groups of its batch as groups of its features."""
    shape = value.static_shape
    batch, feature = found.numbers.input_batch, found.numbers.input_feature
    split = build.reshape(value, (*shape[:batch], groups, shape[batch] // groups, *shape[batch + 1 :]))
    others = [d for d in range(len(shape) + 1) if d != batch]
    others.insert(others.index(feature + (feature > batch)), batch)
    merged = {batch: shape[batch] // groups, feature: shape[feature] * groups}
    return build.reshape(build.transpose(split, others), [merged.get(d, n) for d, n in enumerate(shape)])


@lowers_convolution(
    needs={RefusedForm.of(FEATURE_GROUPS), RefusedForm.of(MANY_CHANNELS)},
    form="a convolution for each group of features, or for as many as there is room for; concatenate",
)
def feature_groups_to_convolutions(op: PlainLowering) -> Sequence[Value]:
    """Convolve groups of features, or of channels as many as a consumer has room for, with their part of the kernel.

    Equal: that is what the specification says.
    """
    must_not_round_otherwise(op)
    build, found, [value, kernel] = op.build, Convolution(op.node), op.node.operands
    groups, numbers, shape = op.node.integer("feature_group_count"), found.numbers, op.node.result().static_shape
    results = shape[numbers.output_feature] // groups
    at_once = max(1, MOST_CHANNELS // results) if len(found.spatial) < DIMS_OF_SPACE else 1
    firsts = range(0, groups, at_once)
    if len(firsts) > MOST_GROUPS:
        raise DoesNotApply(f"{len(firsts)} convolutions, more than {MOST_GROUPS}, would take its place")
    counts = [min(at_once, groups - first) for first in firsts]
    parts = [
        [
            _part(build, value, numbers.input_feature, first, count, groups),
            _part(build, kernel, numbers.kernel_output_feature, first, count, groups),
        ]
        for first, count in zip(firsts, counts, strict=True)
    ]
    found_parts: list[Value] = []
    for pair, count in zip(parts, counts, strict=True):
        of = [count * results if d == numbers.output_feature else size for d, size in enumerate(shape)]
        found_parts.append(found.on(build, pair, of, {"feature_group_count": mlir.i64_attribute(count)}))
    return [build.concatenate(found_parts, numbers.output_feature)]


def _part(build: Builder, value: Value, dim: int, first: int, count: int, groups: int) -> Value:
    """Some groups along a dim."""
    size = value.static_shape[dim] // groups
    return slice_along(build, value, dim, first * size, count * size)


@lowers_convolution(needs={RefusedForm.of(DILATED_KERNEL)}, form="every d-th element as a batch of its own; interleave")
def dilated_kernel_to_batches(op: PlainLowering) -> Sequence[Value]:
    """Convolve the elements that are d apart with each other, each of the d sequences as further rows of the batch.

        y[o] = sum over t of x[o + d t] k[t];  with o = d q + r:   y[d q + r] = sum over t of x_r[q + t] k[t]
        where x_r[j] = x[d j + r]

    Equal: each element is the sum of the same products, none of them with a zero that was not there but those of the
    padding, which is written out. Strides are taken of what a stride of 1 gives. Costs two transpositions for each
    dilated dim, and the products between strides. A dilated operand and groups of the batch, which a target may take,
    are written out before: an element of the operand is then one, and the batch has no order.
    """
    must_not_round_otherwise(op)
    build, found, [value, kernel] = op.build, Convolution(op.node), op.node.operands
    numbers, rank, result = found.numbers, len(found.spatial), op.node.result()
    groups = op.node.integer("batch_group_count")
    value = _spread(build, found, value if groups == 1 else _beside(build, found, value, groups))
    value = build.transpose(value, [numbers.input_batch, *(d for d, _, _ in found.spatial), numbers.input_feature])
    apart, strides = list(found.each("rhs_dilation")), list(found.each("window_strides"))
    padding, dilated = list(found.padding), [k for k, step in enumerate(apart) if step > 1]
    ordered = [result.static_shape[d] for _, _, d in found.spatial]
    zero, wanted, later = build.zero_of(value), list(ordered), list(strides)
    for k in dilated:
        size = value.static_shape[k + 1] + sum(padding[k])
        window = kernel.static_shape[found.spatial[k][1]]
        wanted[k] = -(-size // apart[k]) - window + 1
        if wanted[k] <= 0 or not prod(result.static_shape):
            raise DoesNotApply("there is no window")
        value = _pad_dim(build, value, zero, k + 1, padding[k], -size % apart[k])
        value = _in_batches(build, value, k + 1, apart[k])
        padding[k], strides[k] = (0, 0), 1
    features = result.static_shape[numbers.output_feature]
    other = {
        "dimension_numbers": mlir.plain_convolution_numbers(op.node.raw),
        "window_strides": mlir.dense_i64(strides),
        "padding": mlir.dense_attribute(
            np.asarray(padding, np.int64).reshape(rank, 2), mlir.tensor_type((rank, 2), "i64")
        ),
        "rhs_dilation": None,
        "lhs_dilation": None,
        **({} if groups == 1 else _in_feature_groups(groups)),
    }
    made = found.on(build, [value, kernel], (value.static_shape[0], *wanted, features), other)
    for k in reversed(dilated):
        made = _interleave(build, made, k + 1, apart[k])
        limits = list(made.static_shape)
        limits[k + 1] = (ordered[k] - 1) * later[k] + 1
        steps = [later[k] if d == k + 1 else 1 for d in range(rank + 2)]
        made = build.slice(made, [0] * (rank + 2), limits, steps)
    places = [numbers.output_batch, *(d for _, _, d in found.spatial), numbers.output_feature]
    return [build.transpose(made, [places.index(d) for d in range(rank + 2)])]


def _pad_dim(build: Builder, value: Value, zero: Value, dim: int, ends: tuple[int, int], more: int) -> Value:
    """Pad a dim with zeros, and with `more` of them at its end."""
    low, high = ([n if d == dim else 0 for d in range(len(value.static_shape))] for n in (ends[0], ends[1] + more))
    return build.pad(value, zero, low, high)


def _in_batches(build: Builder, value: Value, dim: int, step: int) -> Value:
    """Every step-th element of a dim as a row of the batch, dim 0: [N, P, D, R] to [step * N, P, D / step, R]."""
    shape = value.static_shape
    size, (before, after) = shape[dim] // step, (prod(shape[1:dim]), prod(shape[dim + 1 :]))
    split = build.reshape(value, (shape[0], before, size, step, after))
    moved = build.transpose(split, [3, 0, 1, 2, 4])
    return build.reshape(moved, (step * shape[0], *shape[1:dim], size, *shape[dim + 1 :]))


def _interleave(build: Builder, value: Value, dim: int, step: int) -> Value:
    """The inverse of `_in_batches`."""
    shape = value.static_shape
    before, after = prod(shape[1:dim]), prod(shape[dim + 1 :])
    split = build.reshape(value, (step, shape[0] // step, before, shape[dim], after))
    moved = build.transpose(split, [1, 2, 3, 0, 4])
    return build.reshape(moved, (shape[0] // step, *shape[1:dim], shape[dim] * step, *shape[dim + 1 :]))


# --- `stablehlo.dot_general` for consumers that multiply matrices of floats only, or not with dims in another order ---


MOST_PRODUCTS = 256
"""Products that are added one by one."""

lowers_dot = partial(rules.lowers, PLAIN, named={PlainOp.DOT_GENERAL})


@lowers_dot(
    elements={Elements.SIGNED, Elements.UNSIGNED},
    needs={Whole.WHOLE},
    when=When(f"sums of {MOST_PRODUCTS} products at most", lambda facts: facts.summed <= MOST_PRODUCTS),
    form="x[..., 0] * y[0, ...] + x[..., 1] * y[1, ...] + ...",
)
def integer_dot_to_products(op: PlainLowering) -> Sequence[Value]:
    """Add the products of columns and rows, one after the other.

    Equal: sums and products of integers wrap, in any order. Costs a multiplication and an addition of the result's size
    for each of the numbers that are summed.
    """
    build, node = op.build, op.node
    numbers = mlir.dot_dimension_numbers(node.raw)
    result = node.result()
    left, right = (build.convert(value, mlir.tensor_element(result.raw.type)) for value in node.operands)
    left = matrices(build, left, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, is_left=True)
    right = matrices(build, right, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, is_left=False)
    (batch, rows, count), columns = left.static_shape, right.static_shape[2]
    if not count:
        raise DoesNotApply("it sums nothing")
    found: Value | None = None
    for k in range(count):
        column = build.reshape(build.slice(left, [0, 0, k], [batch, rows, k + 1]), [batch, rows])
        row = build.reshape(build.slice(right, [0, k, 0], [batch, k + 1, columns]), [batch, columns])
        shape = [batch, rows, columns]
        product = build.multiply(build.broadcast(column, shape, [0, 1]), build.broadcast(row, shape, [0, 2]))
        found = product if found is None else build.add(found, product)
    assert found is not None
    return [build.reshape(found, result.static_shape)]


@lowers_dot(elements={Elements.BOOLEAN}, needs={Whole.WHOLE}, form="where the product as f32 is not 0")
def truths_to_product(op: PlainLowering) -> Sequence[Value]:
    """Multiply truth values as numbers.

        dot_general %x, %y : i1   ->   (dot_general (convert %x), (convert %y) : f32) != 0

    Equal: an element is true where `and` of any pair is. That pair gives 1, the others 0 or 1; in f32 a sum of these
    may be rounded, but not to 0.
    """
    node, build = op.node, op.build
    result = node.result()
    if {result.element_type, *(value.element_type for value in node.operands)} != {"i1"}:
        raise DoesNotApply("numbers are multiplied, too")
    numbers = [build.convert(value, "f32") for value in node.operands]
    product = build.copy_on(node, numbers, [mlir.tensor_type(result.static_shape, "f32")], {}).result()
    return [build.compare(product, "NE", build.float_splat(0.0, result.static_shape, "f32"))]


def matrices(
    build: Builder,
    value: Value,
    batch: Sequence[int],
    contracting: Sequence[int],
    *,
    is_left: bool,
    transpose: Callable[[Builder, Value, Sequence[int]], Value] = Builder.transpose,
) -> Value:
    """[batch, rows, contracted] of the left operand, [batch, contracted, columns] of the right one."""
    shape = value.static_shape
    free = [d for d in range(len(shape)) if d not in batch and d not in contracting]
    parts = [list(batch), free, list(contracting)] if is_left else [list(batch), list(contracting), free]
    moved = transpose(build, value, [d for part in parts for d in part])
    return build.reshape(moved, [prod(shape[d] for d in part) for part in parts])


@lowers_dot(
    needs={RefusedForm.of(CONTRACTED_APART)},
    form="the right operand transposed, so that its contracting dims are in the order of the left one's",
)
def dot_to_ordered_dot(op: PlainLowering) -> Sequence[Value]:
    """Move the contracting dims of the right operand into the order of those of the left one.

        dot_general %x[3, 4, 5], %y[5, 4, 2], contracting [1, 2] x [1, 0]
        ->
        dot_general %x[3, 4, 5], transpose(%y)[4, 5, 2], contracting [1, 2] x [0, 1]

    Equal: each element is the sum of the same products. In which order is XLA's own, by shape: of integers that is no
    matter, floats may be rounded otherwise (float mode reassociate).
    """
    must_not_round_otherwise(op)
    node, numbers = op.node, mlir.dot_dimension_numbers(op.node.raw)
    pairs = sorted(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    left, right = node.operands
    places, order = sorted(d for _, d in pairs), list(range(len(right.static_shape)))
    for place, (_, dim) in zip(places, pairs, strict=True):
        order[place] = dim
    moved = op.build.transpose(right, order)
    batch = f"lhs_batching_dimensions = {list(numbers.lhs_batching_dimensions)}, "
    batch += f"rhs_batching_dimensions = {list(numbers.rhs_batching_dimensions)}"
    contracted = f"lhs_contracting_dimensions = {[d for d, _ in pairs]}, rhs_contracting_dimensions = {places}"
    other = {"dot_dimension_numbers": mlir.parse_attribute(f"#stablehlo.dot<{batch}, {contracted}>")}
    return op.build.copy_on(node, [left, moved], [node.result().raw.type], other).results


@rules.lowers(
    PLAIN,
    named={PlainOp.DOT_GENERAL, PlainOp.CONVOLUTION},
    needs={RefusedForm.of(WIDER_PRODUCT)},
    form="the op on converted operands",
)
def product_to_converted_product(op: PlainLowering) -> Sequence[Value]:
    """Convert what is multiplied to the type of the result.

        dot_general %x, %y : (bf16, bf16) -> f32   ->   dot_general (convert %x), (convert %y) : (f32, f32) -> f32

    Equal: the wider type has every number of the narrower one, and the result is summed in it. Floats may be added in
    another order (float mode reassociate).
    """
    must_not_round_otherwise(op)
    raw_type = op.node.result().raw.type
    operands = [op.build.convert(value, mlir.tensor_element(raw_type)) for value in op.node.operands]
    return op.build.copy_on(op.node, operands, [raw_type], {}).results


@lowers_dot(needs={RefusedForm.of(EMPTY_SUM)}, form="zeros")
def dot_to_zeros(op: PlainLowering) -> Sequence[Value]:
    """Give zeros for what sums nothing. Equal: a sum begins with zero."""
    result = op.node.result()
    return [op.build.zeros_like(result)]
