"""Sums of products: dot_general and convolution."""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.graph import Node
from hlo_lower.subset.axis_link import AxisLink, Boundary
from hlo_lower.subset.rules import subset_rules

SUMMED = ("f32", "f64")
"""Float types whose partial sums may be rounded to them: what is narrower would lose more than the order of a sum."""


def is_summed(element: str) -> bool:
    """Whether sums of this type may be split into partial sums of the same type."""
    return element in SUMMED or (element.lstrip("u").startswith("i") and element != "i1")


@subset_rules.axes("stablehlo.dot_general")
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


@subset_rules.axes("stablehlo.convolution")
def convolution(node: Node) -> Sequence[AxisLink] | Boundary:
    """The batch of the input, and the output features of the kernel.

    Right: each image is convolved alone, and each feature of the output is computed with its own kernel. Groups tie
    them together, and spatial dims overlap: neither is an axis.
    """
    if node.integer("batch_group_count") != 1:
        return Boundary("its batch is in groups")
    numbers = mlir.convolution_dimension_numbers(node.raw)
    axes = [AxisLink((numbers.input_batch, None), (numbers.output_batch,))]
    if node.integer("feature_group_count") == 1:
        axes.append(AxisLink((None, numbers.kernel_output_feature), (numbers.output_feature,)))
    return axes
