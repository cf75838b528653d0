"""The subset rules of StableHLO and chlo ops: products first, that is dot_general and convolution."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, inf, prod

from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops.axes.cut import THREADED, AxisLink, Boundary, Cut, SubsetRules, subset_rules
from hlo_lower.ops.axes.parts import INDEX, DynamicTile, batch_of, clamped_position, clamped_start, is_run, materialize
from hlo_lower.ops.names import (
    AND,
    BROADCAST_IN_DIM,
    CONCATENATE,
    CONSTANT,
    CONVOLUTION,
    DOT_GENERAL,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    GATHER,
    IOTA,
    PAD,
    REDUCE,
    REDUCE_WINDOW,
    RESHAPE,
    REVERSE,
    SCATTER,
    SLICE,
    SORT,
    TRANSPOSE,
    WHILE,
)
from hlo_lower.ops.spec import COMBINING, ELEMENTWISE, identity_of, short

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
    zero = build.zero_of(image)
    taken = window.read(build, image, dim, cut.start(build, INDEX), cut.part().sizes[out], zero)
    rest = mlir.parse_attribute(without_padding(padding, place))
    return replace(cut, operands=(taken, cut.operands[1])).same(build, {"padding": rest})


# --- ops whose dims are axes or are taken whole: elementwise ops, reductions, sorts and top_k ---


@subset_rules.axes(*sorted(ELEMENTWISE))
def elementwise(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim is an axis of all operands and the result; a scalar (of select, of clamp) is taken whole.

    Right: element p of the result depends on the elements p of the operands alone.
    """
    shape = node.result().shape
    dims = range(len(shape))
    return [AxisLink(tuple(d if value.shape == shape else None for value in node.operands), (d,)) for d in dims]


@subset_rules.axes(SORT)
def sort(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the sorted one. Right: each line along that dim is sorted by itself."""
    count, rank = len(node.results), len(node.result().shape)
    along = rank - 1 if node.attribute("dimension") is None else node.integer("dimension") % rank
    return [AxisLink((d,) * count, (d,) * count) for d in range(rank) if d != along]


@subset_rules.axes("chlo.top_k")
def top_k(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the last, along which the largest are sought. Right: each line is searched by itself."""
    return [AxisLink((d,), (d, d)) for d in range(len(node.operand(0).shape) - 1)]


COMBINERS = short(COMBINING)
"""Ops by which pieces of a reduction may be combined."""


@subset_rules.axes(REDUCE)
def reduce(node: Node) -> Sequence[AxisLink] | Boundary:
    """Dims that are not reduced, for any region; reduced ones where one op combines.

    Right: an element of the result is reduced from its own elements of the inputs. StableHLO leaves the order of a
    reduction open. The initial value goes into the whole, once; a piece begins with what the op leaves alone.
    """
    half = len(node.results)
    reduced = node.integers("dimensions")
    kept = [d for d in range(len(node.operand(0).shape)) if d not in reduced]
    initial = (None,) * half
    axes = [AxisLink((d,) * half + initial, (place,) * half) for place, d in enumerate(kept)]
    combiner = combiner_of(node)
    if combiner is not None:
        axes += [AxisLink((d, None), (None,), combiner) for d in reduced]
    return axes


@subset_rules.piece(REDUCE)
def reduce_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """A piece of what is reduced begins with what the op leaves alone, whatever the whole begins with."""
    start, combiner = cut.node.operand(1), cut.axis.combine
    if not combiner or is_neutral(start, combiner):
        return cut.same(build)
    element = start.element_type
    identity = identity_of(f"stablehlo.{combiner}", element_type(element))
    assert identity is not None
    is_whole = element_type(element).is_integer
    neutral = build.constant(int(identity), (), element) if is_whole else build.float_splat(identity, (), element)
    return replace(cut, operands=(cut.operands[0], neutral)).same(build)


def combiner_of(node: Node) -> str | None:
    """The name of the elementwise op that a region of two scalars consists of; None where it is more."""
    op = only_op(node.blocks[0]) if len(node.results) == 1 else None
    name = "" if op is None else op.name.removeprefix("stablehlo.")
    element = node.result().element_type
    if name in ("add", "multiply") and not (is_summed(element) or element == "i1"):
        return None
    return name if name in COMBINERS else None


def is_one_op(block: Block) -> bool:
    """Whether a region is one associative operation of its arguments, in their order."""
    first, *rest = block.nodes
    is_one = first.name in COMBINING and len(rest) == 1 and rest[0].operands == first.results
    return is_one and first.operands == block.arguments


def is_neutral(start: Value, name: str) -> bool:
    """Whether an initial value is a constant that an op leaves alone: of a sum a zero of either sign, as after a start
    of 0.0 no zero shows."""
    given = start.constant()
    low, high = type_range(start.element_type) or (-inf, inf)
    wanted = {"multiply": 1, "maximum": low, "minimum": high, "and": -1 if low < 0 else high}.get(name, 0)
    return name in COMBINERS and given is not None and bool(given.reshape(-1)[0] == wanted)


# --- ops that give elements other places, and iota and constant, which have none yet ---


@subset_rules.axes(BROADCAST_IN_DIM)
def broadcast(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim of the result is an axis; the operand follows where it has the dim at its full size.

    Right: where the operand has extent 1, or not that dim, each position of the result reads the same elements of it.
    """
    operand, shape = node.operand(0).static_shape, node.result().static_shape
    places = node.integers("broadcast_dimensions")
    of = {d: k for k, d in enumerate(places) if operand[k] == shape[d]}
    return [AxisLink((of.get(d),), (d,)) for d in range(len(shape))]


@subset_rules.axes(TRANSPOSE)
def transpose(node: Node) -> Sequence[AxisLink] | Boundary:
    """Dim i of the result is dim permutation[i] of the operand."""
    return [AxisLink((d,), (i,)) for i, d in enumerate(node.integers("permutation"))]


def outermost(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of dims of two shapes of as many elements that are cut at the same places, in units of their own.

    Both shapes fall into the smallest groups of neighbouring dims with equal products (extents of 1 aside). The
    outermost dims of a group, of extents a and b, can be cut into gcd(a, b) equal steps: a step is the same contiguous
    piece of the group in both. 2048 tokens as 4x512 are cut into 4 steps, 512 positions of the one and 1 of the other.
    """
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        if before[i] == 1 or after[j] == 1:
            i, j = (i + 1, j) if before[i] == 1 else (i, j + 1)
            continue
        first, mine, its = (i, j), before[i], after[j]
        while mine != its:
            if mine < its:
                i += 1
                mine *= before[i]
            else:
                j += 1
                its *= after[j]
        if gcd(before[first[0]], after[first[1]]) > 1:
            found.append(first)
        i, j = i + 1, j + 1
    return found


@subset_rules.axes(RESHAPE)
def reshape(node: Node) -> Sequence[AxisLink] | Boundary:
    """The outermost dims of the groups that are split and merged (see `outermost`).

    Right: in row-major order a run of steps of the outermost dims is the same run of elements of the group before and
    after, and the other groups are untouched.
    """
    before, after = node.operand(0).static_shape, node.result().static_shape
    if 0 in before:
        return Boundary("it has no elements")
    return [AxisLink((mine,), (its,)) for mine, its in outermost(before, after)]


@subset_rules.axes(IOTA, CONSTANT)
def source_axes(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim; there is no operand. A constant that is not the same everywhere is sliced."""
    return [AxisLink((), (d,)) for d in range(len(node.result().shape))]


@subset_rules.piece(IOTA)
def iota_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Along its own dimension the piece counts from where it begins; along another it is an iota of the piece's shape.

    Right: iota[p] = p = start + (p - start). In the element type both wrap around alike. What is no run has its
    positions written out.
    """
    [piece] = cut.same(build)
    if cut.axis.results[0] != cut.node.integer("iota_dimension"):
        return [piece]
    element, shape = cut.node.result().element_type, piece.static_shape
    taken = cut.along()
    if not is_run(taken):
        places = build.convert(cut.bound.positions(build, taken), element)
        return [build.broadcast(places, shape, [*batch_of(taken), cut.node.integer("iota_dimension")])]
    return [build.add(piece, build.broadcast(cut.start(build, element), shape))]


@subset_rules.piece(CONSTANT)
def constant_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """A splat of the piece's shape; of other elements a part of the constant, built where the piece is."""
    [raw_type] = cut.types()
    if mlir.is_splat(cut.node.raw):
        splat = mlir.resplat(cut.node.raw.attributes["value"], raw_type)
        return [build.op(CONSTANT, [], [raw_type], {"value": splat}).result()]
    whole = build.clone(cut.node, [], [cut.node.result().raw.type]).result()
    return [materialize(build, whole, cut.part(), cut.bound)]


# --- gather and scatter ---
#
# The dims of the index tensor, batching dims, and window dims that are covered from end to end; of a scatter also the
# dims that its indices count along.


def index_dims(rank: int, vector: int) -> list[int]:
    """The dims of an index tensor that count positions: all but the one that holds the index vector."""
    return [d for d in range(rank) if d != vector]


@subset_rules.axes(GATHER)
def gather(node: Node) -> Sequence[AxisLink] | Boundary:
    """Dims of the index tensor; with them batching dims of the operand; offset dims that take all of a dim.

    Right: a window is read for each position of the index tensor, by itself. Where a window covers a dim its start is
    clamped to 0, for a piece of the dim as for all of it.
    """
    operand, indices = node.operands
    numbers = mlir.gather_dimension_numbers(node.raw)
    batch = [d for d in range(len(node.result().shape)) if d not in numbers.offset_dims]
    places = index_dims(len(indices.shape), numbers.index_vector_dim)
    batching = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    axes = [AxisLink((batching.get(i), i), (r,)) for i, r in zip(places, batch, strict=True)]
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    windows = [d for d in range(len(operand.shape)) if d not in gone]
    sizes = node.integers("slice_sizes")
    for dim, offset in zip(windows, numbers.offset_dims, strict=True):
        if sizes[dim] == operand.shape[dim]:
            axes.append(AxisLink((dim, None), (offset,)))
    return axes


@subset_rules.piece(GATHER)
def gather_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Where a window dim is cut its slice size is the piece's; a batching dim keeps 1. See `clamped_position`."""
    dim = cut.axis.operands[0]
    numbers = mlir.gather_dimension_numbers(cut.node.raw)
    sizes = list(cut.node.integers("slice_sizes"))
    operand, indices = cut.operands
    if dim is not None and dim not in numbers.operand_batching_dims:
        sizes[dim] = operand.static_shape[dim]
    last = [operand.static_shape[d] - sizes[d] for d in numbers.start_index_map]
    moved = replace(cut, operands=(operand, clamped_position(build, indices, last, numbers.index_vector_dim)))
    return moved.same(build, {"slice_sizes": mlir.dense_i64(sizes)})


@subset_rules.axes(SCATTER)
def scatter(node: Node) -> Sequence[AxisLink] | Boundary:
    """Window dims that are covered and not indexed; batching dims; dims that are indexed; the outermost scatter dim,
    threaded.

    Right: along a covered window dim and a batching dim each position of the result is written from the updates of the
    same position. Scatter positions are applied in row-major order: pieces of the outermost dim of more than one
    position, one after the other, each into what the ones before left, are the same positions in the same order, so
    the last writer and the order of sums stay. A window out of bounds is dropped by itself, in a piece as in the whole.
    For a dim that is indexed, of which a window takes one position, see `scatter_piece`.
    """
    count = len(node.results)
    operand, indices, updates = node.operand(0), node.operand(count), node.operand(count + 1)
    numbers = mlir.ScatterNumbers.of(node.raw)

    def axis(mine: int | None, index: int | None, its: int | None, combine: str = "") -> AxisLink:
        return AxisLink((mine,) * count + (index,) + (its,) * count, (mine,) * count, combine)

    axes: list[AxisLink] = []
    gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    windows = [d for d in range(len(operand.shape)) if d not in gone]
    for mine, its in zip(windows, numbers.update_window_dims, strict=True):
        if operand.shape[mine] == updates.shape[its] and mine not in numbers.scatter_dims_to_operand_dims:
            axes.append(axis(mine, None, its))
    places = index_dims(len(indices.shape), numbers.index_vector_dim)
    positions = [d for d in range(len(updates.shape)) if d not in numbers.update_window_dims]
    update_dim = dict(zip(places, positions, strict=True))
    for mine, index in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        axes.append(axis(mine, index, update_dim[index]))
    first = next((i for i in places if indices.shape[i] != 1), None)
    if first is not None and first not in numbers.scatter_indices_batching_dims:
        axes.append(axis(None, first, update_dim[first], THREADED))
    counted = [d for d in numbers.scatter_dims_to_operand_dims if d in numbers.inserted_window_dims]
    axes += [axis(d, None, None) for d in counted if is_countable(indices.element_type, operand.static_shape[d])]
    return axes


def is_countable(element: str, extent: int) -> bool:
    """Whether an index type tells positions below an extent from all that are not, whatever is subtracted from them."""
    dtype = mlir.dtype_of(element)
    if dtype is None or dtype.kind not in "iu":
        return False
    return extent <= 1 << (8 * dtype.itemsize - (dtype.kind == "i"))


def counted_dim(node: Node, axis: AxisLink) -> int | None:
    """The indexed dim of a scatter along which it is cut; None along another axis."""
    numbers = mlir.ScatterNumbers.of(node.raw)
    dim = axis.results[0]
    return dim if dim in numbers.scatter_dims_to_operand_dims and dim in numbers.inserted_window_dims else None


CARRYING = (WHILE, SCATTER)
"""What gives the operands that a loop over positions carries, or an unrolled one hands on, as they are."""


@subset_rules.piece(SCATTER)
def scatter_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Along an indexed dim a piece gets all updates, its start subtracted from the indices: what is outside is dropped.

    Right: with s the start, n the size and D the extent, an index i of w bits is in the piece iff s <= i < s + n <= D.
    i - s, as w bits wrap around, is in [0, n) iff i is in [s, s + n) modulo 2**w; where D <= 2**(w - 1), or 2**w of an
    unsigned type (`is_countable`), no index below 0 or above D is congruent to one of these. So the piece drops exactly
    what goes elsewhere or nowhere, and the rest keeps its order. Indices that wrap around are not sorted any more.
    """
    numbers, count = mlir.ScatterNumbers.of(cut.node.raw), len(cut.node.results)
    dim = counted_dim(cut.node, cut.axis)
    indices = cut.operands[count] if dim is None else _from_start(build, cut, numbers, dim)
    moved = replace(cut, operands=(*cut.operands[:count], indices, *cut.operands[count + 1 :]))
    components = len(numbers.scatter_dims_to_operand_dims)
    source = cut.operands[0].node  # what a loop carries is no slice; what an unrolled one begins with may be
    is_carried = cut.axis.combine == THREADED and (source is None or source.name in CARRYING)
    if not is_carried and components and prod(indices.static_shape) == components:
        return _one_position(build, moved, numbers)
    return moved.same(build, {} if dim is None else {"indices_are_sorted": mlir.parse_attribute("false")})


def _from_start(build: Builder, cut: Cut, numbers: mlir.ScatterNumbers, dim: int) -> Value:
    """The indices of a scatter, counted along a dim from where the piece begins."""
    indices = cut.operands[len(cut.node.results)]
    shape, vector = indices.static_shape, numbers.index_vector_dim
    start = cut.start(build, indices.element_type)
    if vector == len(shape) or shape[vector] == 1:
        moved = build.broadcast(start, shape)
    else:
        place = numbers.scatter_dims_to_operand_dims.index(dim)
        here = build.compare(build.iota(shape, vector, "i32"), "EQ", build.constant(place, shape, "i32"))
        moved = build.select(here, build.broadcast(start, shape), build.constant(0, shape, indices.element_type))
    return build.subtract(indices, moved)


def _one_position(build: Builder, cut: Cut, numbers: mlir.ScatterNumbers) -> Sequence[Value]:
    """A scatter of one position, written at the clamped place; where that is another, the operands stay as they are.

    XLA makes a slice, an update and a select of it, too, but does not clamp the slice's start, and adds it to that of
    a slice that it reads from: what it wrote back to a piece stood outside of it.
    """
    count = len(cut.node.results)
    operands, indices, counted = cut.operands[:count], cut.operands[count], numbers.scatter_dims_to_operand_dims
    gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    windows = [d for d in range(len(operands[0].shape)) if d not in gone]
    extents = [cut.operands[-1].static_shape[d] for d in numbers.update_window_dims]
    sizes = dict.fromkeys(gone, 1) | dict(zip(windows, extents, strict=True))
    last = [operands[0].static_shape[d] - sizes[d] for d in counted]
    clamped = clamped_position(build, indices, last, numbers.index_vector_dim)
    is_there = build.reshape(build.compare(indices, "EQ", clamped), (len(counted),))
    each = [build.reshape(build.slice(is_there, (k,), (k + 1,)), ()) for k in range(len(counted))]
    inside = functools.reduce(functools.partial(build.elementwise, AND), each)
    written = replace(cut, operands=(*operands, clamped, *cut.operands[count + 1 :])).same(build)
    return [build.select(inside, new, old) for new, old in zip(written, operands, strict=True)]


# --- windows that move along a dim: which positions of the operand a run of results reads, and the operand there ---
#
# Results i to i + n of windows of `reach` positions that move by `stride` read positions b to b + L of the operand: `b
# = i * stride - low`, `L = (n - 1) * stride + reach`. Neighbouring runs overlap: that is the halo. What of them lies
# outside the operand is padding.


@dataclass(frozen=True)
class MovingWindow:
    """The windows along a dim.

    Attributes:
      size: positions that a window reads.
      stride: how far the next one is.
      dilation: how far apart its positions are.
      low: positions of padding in front of the operand.
    """

    size: int
    stride: int
    dilation: int
    low: int

    @property
    def reach(self) -> int:
        """Positions from its first to its last."""
        return (self.size - 1) * self.dilation + 1

    def read(self, build: Builder, operand: Value, dim: int, start: Value, count: int, fill: Value) -> Value:
        """What `count` windows read, from that at a scalar start on: positions outside are `fill`.

        The nearest positions that lie inside are read, S of the L; padded by L on either side they hold the ones that
        are wanted at L - shift, where shift, in [-S, L], is how far they were moved.
        """
        length = (count - 1) * self.stride + self.reach
        shape = operand.static_shape
        begin = _scaled_start(build, start, self.stride, -self.low)
        zero = build.constant(0, (), INDEX)
        starts = tuple(begin if d == dim else zero for d in range(len(shape)))
        sizes = tuple(length if d == dim else n for d, n in enumerate(shape))
        shifted = DynamicTile(shape, starts, sizes, masked=(dim,)).shift(build)
        inside = shifted.tile.materialize(build, operand)
        margin = [length if d == dim else 0 for d in range(len(shape))]
        padded = build.pad(inside, fill, margin, margin)
        place = build.subtract(build.constant(length, (), INDEX), shifted.shifts[dim])
        return build.dynamic_slice(padded, [place if d == dim else zero for d in range(len(shape))], sizes)


def _scaled_start(build: Builder, start: Value, factor: int, by: int) -> Value:
    """A start times a factor, plus an offset."""
    if factor != 1:
        start = build.multiply(start, build.constant(factor, (), INDEX))
    return build.add(start, build.constant(by, (), INDEX)) if by else start


def without_padding(padding: Sequence[int], at: int) -> str:
    """The text of a padding attribute, low and high of each dim, with none at one."""
    pairs = [[0, 0] if d == at else list(padding[2 * d : 2 * d + 2]) for d in range(len(padding) // 2)]
    return f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>"


# --- ops that read or write a window: slices, updates of slices, pads, reverses, windows that are reduced ---
#
# A dim that the window covers from end to end is an axis; so is one along which windows are reduced. Other dims along
# which a window moves are none.


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
    sizes, (operand, *_) = cut.part().sizes, cut.operands
    starts = clamped_starts(build, cut.operands, sizes)
    read, dim = operand.node, cut.axis.results[0]
    if dim is not None and read is not None and _slices_only(read, dim):  # of both one slice is made
        operand, starts[dim] = read.operand(0), read.operand(1 + dim)
        starts = [build.convert(start, starts[dim].element_type) for start in _within(build, starts, operand, sizes)]
    clamped = replace(cut, operands=(operand, *starts))
    return clamped.same(build, {"slice_sizes": mlir.dense_i64(sizes)})


def _within(build: Builder, starts: Sequence[Value], operand: Value, sizes: Sequence[int]) -> list[Value]:
    """Starts of which none is too great for another type: of a dim of which everything is taken it is 0."""
    bounds = [extent - size for extent, size in zip(operand.static_shape, sizes, strict=True)]
    return [
        start if last else build.constant(0, (), start.element_type) for start, last in zip(starts, bounds, strict=True)
    ]


def _slices_only(node: Node, dim: int) -> bool:
    """Whether a node is a dynamic slice that takes all of every other dim."""
    if node.name != DYNAMIC_SLICE:
        return False
    pairs = zip(node.integers("slice_sizes"), node.operand(0).static_shape, strict=True)
    return all(size == extent or d == dim for d, (size, extent) in enumerate(pairs))


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


def takes_runs(node: Node, axis: AxisLink) -> bool:
    """Whether a piece along an axis is built from where it begins, so that it is to be a run: windows that move, and a
    dim that a scatter indexes."""
    if node.name == SCATTER:
        return counted_dim(node, axis) is not None
    return node.name in (CONVOLUTION, REDUCE_WINDOW) and all(dim is None for dim in axis.operands)


# --- all rules ---


def default_subset_rules() -> SubsetRules:
    """The subset rules of StableHLO and chlo ops."""
    return subset_rules
