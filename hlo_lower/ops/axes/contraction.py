"""Sums of products: dot_general and convolution."""

from collections.abc import Sequence
from dataclasses import replace

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, Boundary, Cut
from hlo_lower.ops.axes.halo import MovingWindow, without_padding
from hlo_lower.ops.axes.materialize import INDEX
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import CONVOLUTION, DOT_GENERAL

SUMMED = ("f32", "f64")
"""Float types whose partial sums may be rounded to them: what is narrower would lose more than the order of a sum."""


def is_summed(element: str) -> bool:
    """Whether sums of this type may be split into partial sums of the same type."""
    return element in SUMMED or (element_type(element).is_integer and element != "i1")


@subset_rules.axes(DOT_GENERAL)
def dot_general(node: Node) -> Sequence[AxisLink] | Boundary:
    """Batching dims of all three; free dims of one operand and the result; contracting dims, whose pieces are added.

    Right: an element of the result is a sum over the contracting positions of products at its own batching and free
    positions; the sum of the sums over pieces is the same up to the order of the additions, and exactly so for
    integers, which wrap around.
    """
    left, right = node.operands
    numbers = mlir.dot_dimension_numbers(node.raw)
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    axes = [AxisLink((int(a), int(b)), (i,)) for i, (a, b) in enumerate(batch)]
    place = len(batch)
    for number, value in enumerate((left, right)):
        taken = {int(pair[number]) for pair in (*batch, *summed)}
        for dim in (d for d in range(len(value.shape)) if d not in taken):
            axes.append(AxisLink((dim, None) if number == 0 else (None, dim), (place,)))
            place += 1
    if is_summed(node.result().element_type):
        axes += [AxisLink((int(a), int(b)), (None,), "add") for a, b in summed]
    return axes


@subset_rules.axes(CONVOLUTION)
def convolution(node: Node) -> Sequence[AxisLink] | Boundary:
    """The batch of the input, the output features of the kernel, and the spatial dims of the output.

    Right: each image is convolved alone, and each feature of the output is computed with its own kernel; groups tie
    them together. For a spatial dim, of which a piece takes what it needs out of the whole input, see
    `convolution_piece`.
    """
    if node.integer("batch_group_count") != 1:
        return Boundary("its batch is in groups")
    numbers = mlir.convolution_dimension_numbers(node.raw)
    axes = [AxisLink((numbers.input_batch, None), (numbers.output_batch,))]
    if node.integer("feature_group_count") == 1:
        axes.append(AxisLink((None, numbers.kernel_output_feature), (numbers.output_feature,)))
    spatial = mlir.convolution_spatial_dimensions(node.raw)
    dilated = node.integers("lhs_dilation", (1,) * len(spatial))
    return axes + [AxisLink((None, None), (out,)) for (_, _, out), d in zip(spatial, dilated, strict=True) if d == 1]


@subset_rules.piece(CONVOLUTION)
def convolution_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Along a spatial dim the windows of a run of outputs are read out of the input, zeros outside, without padding.

    Right: padding is zeros, and output i + k of all is output k of the windows that begin at i.
    """
    spatial = mlir.convolution_spatial_dimensions(cut.node.raw)
    place = next((k for k, (_, _, out) in enumerate(spatial) if out == cut.axis.results[0]), None)
    if place is None:
        return cut.same(build)
    ones = (1,) * len(spatial)
    dim, along, out = spatial[place]
    padding = cut.node.padding(len(ones))
    window = MovingWindow(
        cut.operands[1].static_shape[along],
        cut.node.integers("window_strides", ones)[place],
        cut.node.integers("rhs_dilation", ones)[place],
        padding[2 * place],
    )
    image = cut.operands[0]
    zero = build.zero(mlir.tensor_element(image.raw.type))
    taken = window.read(build, image, dim, cut.start(build, INDEX), cut.part().sizes[out], zero)
    rest = mlir.parse_attribute(without_padding(padding, place))
    return replace(cut, operands=(taken, cut.operands[1])).same(build, {"padding": rest})
