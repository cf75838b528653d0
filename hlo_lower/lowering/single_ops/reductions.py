"""Reductions for consumers that have none, or few: windows, any region, pooling's derivative, batch normalization."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from hlo_lower.base.element_types import WIDE_FLOATS, type_range
from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.facts.scatter.combine import OPS, identity
from hlo_lower.facts.scatter.lift import lift_elementwise
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.engine.kind import OpLowering
from hlo_lower.lowering.engine.traced import build_traced
from hlo_lower.lowering.single_ops.plain_op import (
    PLAIN,
    Elements,
    Numbers,
    PlainLowering,
    PlainOp,
    Whole,
    must_not_round_otherwise,
)
from hlo_lower.ops.axes.op_axes import is_neutral, is_one_op
from hlo_lower.ops.names import ADD, BROADCAST_IN_DIM, MAXIMUM, MINIMUM
from hlo_lower.ops.quirks.sums import ANY_START, FOLD, FOLD_START, OTHER_PLACE
from hlo_lower.ops.quirks.windows import CUT, NO_IMAGE, PADDED_START, RUNNING, SEVERAL, WHOLE_DIM
from hlo_lower.ops.refused_forms import RefusedForm

# --- a region of scalars on whole tensors: what a map, a reduction or a window does to each element, to all at once ---


rules = RuleList()


def on_tensors(op: OpLowering[Any], block: Block, values: Sequence[Value]) -> list[Value]:
    """What a region of scalars returns, for each element of tensors of one shape.

    Its ops are repeated, which the target takes or refuses where they stand; broadcasts of scalars are new.

    Args:
      op: the op of which it is a region.
      block: the region.
      values: for each argument a tensor.

    Raises:
      DoesNotApply: it holds an op that is not elementwise.
    """
    known = len(op.build.built)
    found = lift_elementwise(op.build, op.graph, block, values)
    if found is None:
        raise DoesNotApply("its region holds an op that is not elementwise")
    op.build.repeated.update(made for made in op.build.built[known:] if made.name != BROADCAST_IN_DIM)
    return found


# --- `stablehlo.reduce_window` for consumers that have none: pooling as slices, running sums by doubling ---


FEW = 64
"""Elements of a window that are combined one by one."""


COMBINERS = {OPS[combiner]: combiner for combiner in Combiner if combiner in OPS and combiner is not Combiner.SUB}
"""By the name of an associative operation the combiner whose identity it has."""

WINDOW_FORMS = frozenset({Whole.WHOLE, *map(RefusedForm.of, (FOLD, WHOLE_DIM, CUT, NO_IMAGE, SEVERAL, RUNNING))})
"""What windows are taken apart for."""

lowers_window = partial(rules.lowers, PLAIN, named={PlainOp.REDUCE_WINDOW}, needs=WINDOW_FORMS)


@dataclass(frozen=True)
class Windows:
    """The windows of a reduction, dim by dim.

    Attributes:
      sizes, strides, dilations: of the windows.
      bases: dilations of what they lie on.
      low, high: padding.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    bases: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, node: Node) -> "Windows":
        """Those of a `reduce_window` or a `select_and_scatter`; what is not said is 1, padding 0."""
        sizes = node.integers("window_dimensions")
        rank = len(sizes)
        names, padding = ("window_strides", "window_dilations", "base_dilations"), node.padding(rank)
        strides, dilations, bases = (node.integers(name, (1,) * rank) for name in names)
        return cls(sizes, strides, dilations, bases, padding[::2], padding[1::2])

    def pad(self, build: Builder, value: Value, fill: Value) -> Value:
        """What the windows lie on; elements are cut by slices, as XLA on a CPU takes few pads that cut."""
        low, high = ([max(0, size) for size in sizes] for sizes in (self.low, self.high))
        wide = build.pad(value, fill, low, high, [base - 1 for base in self.bases])
        if min(self.low + self.high) >= 0:
            return wide
        starts = [max(0, -size) for size in self.low]
        ends = zip(wide.static_shape, self.high, strict=True)
        return build.slice(wide, starts, [size - max(0, -cut) for size, cut in ends])

    def at(self, build: Builder, value: Value, place: Sequence[int], counts: Sequence[int]) -> Value:
        """For each window its element at a place."""
        starts = [k * dilation for k, dilation in zip(place, self.dilations, strict=True)]
        limits = [s + (n - 1) * stride + 1 for s, n, stride in zip(starts, counts, self.strides, strict=True)]
        return build.slice(value, starts, limits, self.strides)


def _padded_windows(op: PlainLowering) -> tuple[Windows, list[Value], int]:
    """The windows, what they lie on, and how many results there are.

    XLA combines no padding, so what stands there has to change nothing: it is the identity of the region's operation,
    whatever the windows start from. Of other regions it is what they start from, which is to change nothing, too.
    """
    windows, count = Windows.of(op.node), len(op.node.results)
    values, starts = op.node.operands[:count], op.node.operands[count:]
    if 0 in op.node.result().static_shape:
        raise DoesNotApply("there is no window")
    fills = [_padding(op, start) for start in starts]
    padded = [windows.pad(op.build, value, fill) for value, fill in zip(values, fills, strict=True)]
    return windows, padded, count


def _padding(op: PlainLowering, start: Value) -> Value:
    """The identity of the operation of the region; what windows start from where that is it, or none is known."""
    [body, *_] = op.node.blocks
    if len(op.node.results) != 1 or not is_one_op(body):
        return start
    name, element = next(iter(body.nodes)).name.removeprefix("stablehlo."), start.element_type
    if element not in WIDE_FLOATS and type_range(element) is None:
        return start
    return start if is_neutral(start, name) else identity(op.build, COMBINERS[name], element)


@lowers_window(
    when=When(f"windows of {FEW} elements at most", lambda facts: facts.window <= FEW),
    form="slices, one for each place of a window, combined in order",
)
def reduce_window_to_slices(op: PlainLowering) -> Sequence[Value]:
    """Take the first element of all windows, then the second, and so on, and combine them.

        %r = reduce_window %x, size 2, stride 2, add   ->   (0 + %x[0::2]) + %x[1::2]

    Equal: each window is reduced from the initial value in row-major order, which is an order that the specification
    allows; padding holds what changes nothing. Integers, maxima and minima are the same bits; XLA adds floats of some
    windows (running sums of more than 16, two-dimensional ones) in an order of its own. Any region of elementwise ops,
    several operands, strides and dilations. Costs a slice and the region for each place.
    """
    build, node = op.build, op.node
    windows, padded, count = _padded_windows(op)
    shape = node.result().static_shape
    found = [build.broadcast(start, shape) for start in node.operands[count:]]
    for place in product(*map(range, windows.sizes)):
        here = [windows.at(build, value, place, shape) for value in padded]
        found = on_tensors(op, node.blocks[0], [*found, *here])
    return found


@lowers_window(
    elements={Elements.SIGNED, Elements.UNSIGNED, Elements.BOOLEAN},
    form="by doubling, dim by dim: x[i] + x[i + 1], then of pairs",
)
def reduce_window_to_doublings(op: PlainLowering) -> Sequence[Value]:
    """Combine windows of one element to those of two, of two to those of four, and put the wanted size together.

        running sum of 8:   y = x + (x moved by 1);  z = y + (y moved by 2);  z + (z moved by 4)

    Equal: the region is one associative operation on integers, so parts may be combined first; the dims are
    independent of each other. Costs 2 log2(size) ops for each dim.
    """
    return _by_doubling(op)


@lowers_window(
    elements={Elements.FLOAT},
    numbers={Numbers.BOUNDED},
    form="the form for integers on floats, with sums in another order",
)
def reduce_window_to_float_doublings(op: PlainLowering) -> Sequence[Value]:
    """The same of floats, where sums may be in another order (float mode reassociate).

    Equal up to the order of sums and products; maxima and minima bit for bit. A sum of n has log2(n) roundings behind
    each other instead of n.
    """
    return _by_doubling(op)


def _by_doubling(op: PlainLowering) -> list[Value]:
    build, node = op.build, op.node
    block = node.blocks[0]
    if len(node.results) != 1 or not is_one_op(block):
        raise DoesNotApply("its region is not one associative operation")
    windows, [value], _ = _padded_windows(op)
    shape = node.result().static_shape
    for dim, size in enumerate(windows.sizes):
        value = _along(op, value, dim, size, windows.dilations[dim])
    limits = [(n - 1) * stride + 1 for n, stride in zip(shape, windows.strides, strict=True)]
    value = build.slice(value, [0] * len(shape), limits, windows.strides)
    start = build.broadcast(node.operand(1), shape)
    return on_tensors(op, block, [start, value])


def _along(op: PlainLowering, value: Value, dim: int, size: int, dilation: int) -> Value:
    """Windows of a size along a dim, at every place where one fits."""
    build, block = op.build, op.node.blocks[0]
    whole = value.static_shape[dim] - (size - 1) * dilation
    found, covered, power, width = None, 0, value, 1
    while True:
        if size & width:
            piece = slice_along(build, power, dim, covered * dilation, whole)
            found = piece if found is None else on_tensors(op, block, [found, piece])[0]
            covered += width
        if covered == size:
            assert found is not None
            return found
        length = power.static_shape[dim] - width * dilation
        pair = [slice_along(build, power, dim, 0, length), slice_along(build, power, dim, width * dilation, length)]
        [power], width = on_tensors(op, block, pair), 2 * width


# --- `stablehlo.reduce` of any region and of several results, as a tree of halves ---


MOST_ONE_BY_ONE = 64

ANY = frozenset({Whole.WHOLE, RefusedForm.of(FOLD), RefusedForm.of(OTHER_PLACE)})
"""What a reduction is taken apart for."""

lowers_reduce = partial(rules.lowers, PLAIN, named={PlainOp.REDUCE})


@lowers_reduce(needs=ANY, form="slices along the dims, combined one after the other")
def reduce_to_slices(op: PlainLowering) -> Sequence[Value]:
    """Combine the elements of each dim in their order.

        %r = reduce %x, init 0, f   ->   f(f(f(0, x[0]), x[1]), x[2])

    Equal: row-major order from the initial value is an order that the specification allows. Any region of elementwise
    ops, several operands. Costs the region for each of at most 64 elements.
    """
    node, build = op.node, op.build
    values, starts, dims = _parts(node)
    shape = values[0].static_shape
    count = _count(node)
    if count > MOST_ONE_BY_ONE:
        raise DoesNotApply(f"{count:,} elements, more than {MOST_ONE_BY_ONE}, would be combined one by one")
    others = [d for d in range(len(shape)) if d not in dims]
    kept = [shape[d] for d in others]
    flat = [build.reshape(build.transpose(value, [*others, *dims]), [*kept, count]) for value in values]
    found = [build.broadcast(start, kept) for start in starts]
    for k in range(count):
        here = [build.reshape(slice_along(build, value, len(kept), k, 1), kept) for value in flat]
        found = on_tensors(op, node.blocks[0], [*found, *here])
    return found


@lowers_reduce(
    needs=ANY,
    elements={Elements.SIGNED, Elements.UNSIGNED, Elements.BOOLEAN},
    form="one half combined with the other until one is left, dim by dim",
)
def reduce_to_halves(op: PlainLowering) -> Sequence[Value]:
    """Combine the first half with the second one, by the region itself, until one element is left.

        %r = reduce %x, init 0, f   ->   f(0, f(f(x[0], x[2]), f(x[1], x[3])))

    Equal: the specification lets a reduction be done in any order and grouping, so the region has to be associative and
    commutative on what it is used for, and integers are, bit for bit. An odd element goes along. Costs log2(n) regions.
    """
    return _reduce_by_halves(op)


@lowers_reduce(
    needs=ANY,
    elements={Elements.FLOAT},
    numbers={Numbers.BOUNDED},
    form="the form for integers on floats, with sums in another order",
)
def reduce_to_float_halves(op: PlainLowering) -> Sequence[Value]:
    """The same of floats, where sums may be in another order (float mode reassociate).

    Equal up to the order of sums and products; maxima and minima bit for bit. A sum of n has log2(n) roundings behind
    each other instead of n.
    """
    if op.facts.needs is not Whole.WHOLE and _count(op.node) <= MOST_ONE_BY_ONE:
        raise DoesNotApply("few elements are combined in their order")
    return _reduce_by_halves(op)


def _count(node: Node) -> int:
    shape = node.operand(0).static_shape
    return prod(shape[dim] for dim in node.integers("dimensions"))


@rules.lowers(
    PLAIN,
    named={PlainOp.REDUCE, PlainOp.REDUCE_WINDOW},
    needs={RefusedForm.of(FOLD_START), RefusedForm.of(ANY_START), RefusedForm.of(PADDED_START)},
    form="the op from its identity, then the start",
)
def reduce_to_reduce_and_start(op: PlainLowering) -> Sequence[Value]:
    """Reduce from what changes nothing, and combine that with the start.

        maximum of %x from %s   ->   maximum(%s, maximum of %x from -Inf)

    Equal: a maximum and a minimum may be taken in any order, and of -Inf and a number it is the number, of a NaN that;
    so may what integers and truths are combined by. XLA combines no padding of windows with them. Sums and products of
    floats have the start added last then, which is another order (float mode reassociate).
    """
    build, [value, start] = op.build, op.node.operands
    name = next(iter(op.node.blocks[0].nodes)).name
    if start.element.is_complex and name != ADD:
        raise DoesNotApply("of complex numbers a sum alone begins with an identity here")
    if name not in (MAXIMUM, MINIMUM) and not start.element.is_integer:
        must_not_round_otherwise(op)
    neutral = identity(build, COMBINERS[name.removeprefix("stablehlo.")], start.element_type)
    found = build.copy_on(op.node, [value, neutral], [op.node.result().raw.type], {}).result()
    return [build.elementwise(name.removeprefix("stablehlo."), build.broadcast(start, found.static_shape), found)]


def _reduce_by_halves(op: PlainLowering) -> list[Value]:
    node, build = op.node, op.build
    values, starts, dims = _parts(node)
    found = list(values)
    for dim in dims:
        if found[0].static_shape[dim] == 0:
            raise DoesNotApply("there is nothing to reduce")
        while (size := found[0].static_shape[dim]) > 1:
            half = size // 2
            pairs = [slice_along(build, value, dim, start, half) for start in (0, half) for value in found]
            joined = on_tensors(op, node.blocks[0], pairs)
            if size % 2:
                rest = [slice_along(build, value, dim, size - 1, 1) for value in found]
                joined = [build.concatenate(list(pair), dim) for pair in zip(joined, rest, strict=True)]
            found = joined
    shape = node.result().static_shape
    found = [build.reshape(value, shape) for value in found]
    return on_tensors(op, node.blocks[0], [*(build.broadcast(start, shape) for start in starts), *found])


def _parts(node: Node) -> tuple[tuple[Value, ...], tuple[Value, ...], tuple[int, ...]]:
    """What is reduced, from what, along which dims."""
    count = len(node.results)
    return node.operands[:count], node.operands[count:], node.integers("dimensions")


# --- `stablehlo.select_and_scatter`, the derivative of a pooling, window place by window place ---


@rules.lowers(
    PLAIN,
    named={PlainOp.SELECT_AND_SCATTER},
    when=When(f"windows of {FEW} elements at most", lambda facts: facts.window <= FEW),
    form="the chosen place of each window, and for each place its sources, combined in order",
)
def select_and_scatter_to_slices(op: PlainLowering) -> Sequence[Value]:
    """Choose the place of each window, then put the sources of those that chose a place there, place by place.

        best = first place;  for each other one: select(best, here) ? stay : here
        for each place, the last first: r = chosen here ? scatter(r, source) : r

    Equal: places are compared in row-major order, padding never chosen. What meets in one element are windows that
    begin further back the further into them it lies, so places in reverse are the order of the sources, in which XLA
    combines them: bit for bit. Any regions of elementwise ops. Costs two slices and both regions for each place.
    """
    build, node = op.build, op.node
    operand, source, start = node.operands
    windows = Windows.of(node)
    counts, shape = source.static_shape, operand.static_shape
    if 0 in counts or 0 in shape:
        raise DoesNotApply("there is no window")
    if min(windows.low + windows.high) < 0:
        raise DoesNotApply("its padding is negative")
    places = list(product(*map(range, windows.sizes)))
    inside = np.pad(np.ones(shape, bool), list(zip(windows.low, windows.high, strict=True)))
    padded = windows.pad(build, operand, _zero(build, operand))
    chosen = _chosen_places(op, windows, padded, inside, places)
    found = build.broadcast(start, padded.static_shape)
    for number, place in reversed(list(enumerate(places))):
        values = _put(build, source, _zero(build, source), windows, place, padded.static_shape)
        numbers = _put(build, chosen, build.constant(-1, (), "i32"), windows, place, padded.static_shape)
        [combined] = on_tensors(op, node.blocks[1], [found, values])
        own = build.broadcast(build.constant(number, (), "i32"), padded.static_shape)
        found = build.select(build.compare(numbers, "EQ", own), combined, found)
    limits = [low + size for low, size in zip(windows.low, shape, strict=True)]
    return [build.slice(found, windows.low, limits)]


def _chosen_places(
    op: PlainLowering, windows: Windows, padded: Value, inside: NDArray[np.bool_], places: Sequence[tuple[int, ...]]
) -> Value:
    """For each window the number of the place that it chooses; -1 where all of it is padding."""
    build, counts = op.build, op.node.operand(1).static_shape
    best, chosen = windows.at(build, padded, places[0], counts), None
    seen = np.zeros(counts, bool)
    for number, place in enumerate(places):
        cut = tuple(
            slice(k, k + (n - 1) * stride + 1, stride)
            for k, n, stride in zip(place, counts, windows.strides, strict=True)
        )
        valid = inside[cut]
        here = windows.at(build, padded, place, counts)
        numbered = build.broadcast(build.constant(number, (), "i32"), counts)
        if chosen is None:
            chosen = build.constant_array(np.where(valid, number, -1), "i32")
            seen = valid.copy()
            continue
        [stays] = on_tensors(op, op.node.blocks[0], [best, here])
        if not seen.all():
            stays = build.and_(stays, build.constant_array(seen, "i1"))
        if not valid.all():
            stays = build.or_(stays, build.constant_array(~valid, "i1"))
        best, chosen = build.select(stays, best, here), build.select(stays, chosen, numbered)
        seen = seen | valid
    assert chosen is not None
    return chosen


def _put(
    build: Builder, value: Value, fill: Value, windows: Windows, place: tuple[int, ...], shape: Sequence[int]
) -> Value:
    low = list(place)
    spans = [(n - 1) * stride + 1 for n, stride in zip(value.static_shape, windows.strides, strict=True)]
    high = [size - k - span for size, k, span in zip(shape, place, spans, strict=True)]
    return build.pad(value, fill, low, high, [stride - 1 for stride in windows.strides])


def _zero(build: Builder, value: Value) -> Value:
    return build.zero_of(value)


# --- the three batch normalizations, written out as XLA does ---


def _written_out(op: PlainLowering, function: Callable[..., Any]) -> Sequence[Value]:
    """A function of arrays with the feature last: of what is normalized, and of numbers for each feature."""
    epsilon = mlir.float_of(op.node.raw.attributes["epsilon"])
    return build_traced(
        op.build, function, *op.node.operands, feature=op.node.integer("feature_index"), epsilon=epsilon
    )


def _spread(value: Array, x: Array, feature: int) -> Array:
    """One number for each feature, in the shape of what is normalized."""
    return cast(Any, lax).broadcast_in_dim(value, x.shape, (feature,))


def _total(x: Array, feature: int) -> Array:
    return lax.reduce(x, np.zeros((), x.dtype), lax.add, [d for d in range(x.ndim) if d != feature])


def _batch_norm_count(x: Array, feature: int) -> float:
    return float(prod(x.shape) // max(x.shape[feature], 1))


@rules.lowers(PLAIN, named={PlainOp.BATCH_NORM_INFERENCE}, form="x * s + (offset - mean * s), s = scale * rsqrt(...)")
def batch_norm_inference_to_elementwise(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order.

        s = rsqrt(variance + epsilon) * scale;  x * s + (offset - mean * s)

    Equal: bit for bit to XLA on a CPU, which computes the factor and the shift feature by feature, too.
    """
    return _written_out(op, _inference)


def _inference(
    x: Array, scale: Array, offset: Array, mean: Array, variance: Array, *, feature: int, epsilon: float
) -> Array:
    factor = lax.rsqrt(variance + epsilon) * scale
    shift = offset - mean * factor
    return x * _spread(factor, x, feature) + _spread(shift, x, feature)


@rules.lowers(
    PLAIN, named={PlainOp.BATCH_NORM_TRAINING}, form="mean, variance E[x^2] - E[x]^2, and what inference computes"
)
def batch_norm_training_to_reduce(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order: the mean and the variance of each feature, then the normalization.

    Equal: up to the order of the two sums, which the specification leaves open.
    """
    return _written_out(op, _training)


def _training(x: Array, scale: Array, offset: Array, *, feature: int, epsilon: float) -> tuple[Array, Array, Array]:
    count = _batch_norm_count(x, feature)
    mean = _total(x, feature) / count
    variance = _total(x * x, feature) / count - mean * mean
    centred, root = x - _spread(mean, x, feature), lax.rsqrt(variance + epsilon)
    normalized = centred * _spread(root, x, feature)
    return normalized * _spread(scale, x, feature) + _spread(offset, x, feature), mean, variance


@rules.lowers(PLAIN, named={PlainOp.BATCH_NORM_GRAD}, form="the derivatives of a normalization, sums of each feature")
def batch_norm_grad_to_reduce(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order.

        offset' = sum(g);  scale' = sum(g * (x - mean)) * r, r = rsqrt(variance + epsilon)
        x' = scale * r / n * (n * g - offset' - (x - mean) * sum(g * (x - mean)) / (variance + epsilon))

    Equal: up to the order of the two sums, which the specification leaves open.
    """
    return _written_out(op, _gradients)


def _gradients(
    x: Array, scale: Array, mean: Array, variance: Array, grad: Array, *, feature: int, epsilon: float
) -> tuple[Array, Array, Array]:
    count, centred = _batch_norm_count(x, feature), x - _spread(mean, x, feature)
    root = lax.rsqrt(variance + epsilon)
    offset_grad, moment = _total(grad, feature), _total(grad * centred, feature)
    share = _spread(moment, x, feature) * centred / _spread(variance + epsilon, x, feature)
    inner = grad * count - _spread(offset_grad, x, feature) - share
    return _spread(scale * root, x, feature) / count * inner, moment * root, offset_grad
