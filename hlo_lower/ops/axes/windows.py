"""Ops that read or write a window: slices, updates of slices, pads, concatenations, reverses, windows that are reduced.

A dim that the window covers from end to end is an axis; so is one along which windows are reduced. Other dims along
which a window moves are none.
"""

from collections.abc import Sequence
from dataclasses import replace

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, Boundary, Cut
from hlo_lower.ops.axes.dynamic_tile import clamped_start
from hlo_lower.ops.axes.halo import MovingWindow, without_padding
from hlo_lower.ops.axes.materialize import INDEX
from hlo_lower.ops.axes.reduction import is_neutral
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import CONCATENATE, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, PAD, REDUCE_WINDOW, REVERSE, SLICE


@subset_rules.axes(SLICE)
def slice_(node: Node) -> Sequence[AxisLink] | Boundary:
    """The dims of which it takes everything: there it is the identity."""
    before, after = node.operand(0).shape, node.result().shape
    return [AxisLink((d,), (d,)) for d in range(len(after)) if before[d] == after[d]]


@subset_rules.piece(SLICE)
def slice_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """The limit of the cut dim is the piece's size."""
    limits = list(cut.node.integers("limit_indices"))
    dim = cut.axis.results[0]
    assert dim is not None
    limits[dim] = cut.part().sizes[dim]
    return cut.same(build, {"limit_indices": mlir.dense_i64(limits)})


@subset_rules.axes(DYNAMIC_SLICE)
def dynamic_slice(node: Node) -> Sequence[AxisLink] | Boundary:
    """The dims of which it takes everything; a start there is clamped to 0, for a piece as for the whole."""
    before, after = node.operand(0).shape, node.result().shape
    starts = (None,) * (len(node.operands) - 1)
    return [AxisLink((d, *starts), (d,)) for d in range(len(after)) if before[d] == after[d]]


@subset_rules.piece(DYNAMIC_SLICE)
def dynamic_slice_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """The size of the cut dim is the piece's. The other starts are clamped here, which the op does, too.

    XLA makes one slice of a slice of a slice (`subset.nested_slices`): at a start of -1 the row before the piece was
    read (`tests/tile/random_graphs.py`, program 19).
    """
    sizes = cut.part().sizes
    clamped = replace(cut, operands=(cut.operands[0], *clamped_starts(build, cut.operands, sizes)))
    return clamped.same(build, {"slice_sizes": mlir.dense_i64(sizes)})


def clamped_starts(build: Builder, operands: Sequence[Value], sizes: Sequence[int]) -> list[Value]:
    """The starts of a dynamic slice, clamped along the dims of which it does not take everything."""
    operand, *starts = operands
    bounds = [extent - size for extent, size in zip(operand.static_shape, sizes, strict=True)]
    return [clamped_start(build, start, last) if last else start for start, last in zip(starts, bounds, strict=True)]


@subset_rules.axes(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(node: Node) -> Sequence[AxisLink] | Boundary:
    """The dims of which the update covers everything; a start there is clamped to 0."""
    operand, update = node.operand(0).shape, node.operand(1).shape
    starts = (None,) * (len(node.operands) - 2)
    return [AxisLink((d, d, *starts), (d,)) for d in range(len(operand)) if operand[d] == update[d]]


@subset_rules.axes(PAD)
def pad(node: Node) -> Sequence[AxisLink] | Boundary:
    """The dims without padding, low, high or interior: there it is the identity."""
    edges = [node.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return [AxisLink((d, None), (d,)) for d, padding in enumerate(zip(*edges, strict=True)) if not any(padding)]


@subset_rules.axes(CONCATENATE)
def concatenate(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the one along which operands follow each other: there each operand has the result's extent."""
    along = node.integer("dimension")
    return [AxisLink((d,) * len(node.operands), (d,)) for d in range(len(node.result().shape)) if d != along]


@subset_rules.axes(REVERSE)
def reverse(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims that keep their order."""
    reversed_ = node.integers("dimensions")
    return [AxisLink((d,), (d,)) for d in range(len(node.result().shape)) if d not in reversed_]


@subset_rules.axes(REDUCE_WINDOW)
def reduce_window(node: Node) -> Sequence[AxisLink] | Boundary:
    """The dims along which the window is one element that moves by one, without dilation or padding; and those along
    which windows move otherwise, of which a piece takes what it needs (`reduce_window_piece`).

    Right: along the first ones element p of the result is reduced from elements p of the inputs alone. Of the others
    what is padded must change nothing: XLA combines no padding, and a piece has it as elements. So the initial value
    is neutral, or taking it again changes nothing, as each window begins with it.
    """
    half, rank = len(node.results), len(node.result().shape)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    given, edges, op = [node.integers(name, (1,) * rank) for name in names], node.padding(rank), only_op(node.blocks[0])
    name = "" if op is None or half > 1 else op.name.removeprefix("stablehlo.")
    may_pad = name in ("maximum", "minimum", "and", "or") or is_neutral(node.operand(1), name)
    axes: list[AxisLink] = []
    for dim in range(rank):
        is_padded = any(edges[2 * dim : 2 * dim + 2])
        is_single = all(values[dim] == 1 for values in given) and not is_padded
        if is_single or (given[2][dim] == 1 and (may_pad or not is_padded)):
            axes.append(AxisLink((dim if is_single else None,) * half + (None,) * half, (dim,) * half))
    return axes


@subset_rules.piece(REDUCE_WINDOW)
def reduce_window_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Along a dim in which windows move those of a run of results are read out of the inputs, without padding.

    Right: padding is the initial value, which changes nothing; result i + k of all is result k of the windows that
    begin at i.
    """
    dim = cut.axis.results[0]
    assert dim is not None
    if cut.axis.operands[0] is not None:
        return cut.same(build)
    half, ones = len(cut.node.results), (1,) * len(cut.node.result().shape)
    names = ("window_dimensions", "window_strides", "window_dilations")
    size, stride, dilation = (cut.node.integers(name, ones)[dim] for name in names)
    padding = cut.node.padding(len(ones))
    window = MovingWindow(size, stride, dilation, padding[2 * dim])
    start, count = cut.start(build, INDEX), cut.part().sizes[dim]
    taken = [window.read(build, cut.operands[k], dim, start, count, cut.operands[half + k]) for k in range(half)]
    rest = mlir.parse_attribute(without_padding(padding, dim))
    return replace(cut, operands=(*taken, *cut.operands[half:])).same(build, {"padding": rest})
