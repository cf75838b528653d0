"""`stablehlo.select_and_scatter`, the derivative of a pooling, window place by window place."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.single_ops.elementwise_region import on_tensors
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.lowering.single_ops.reduce_window import FEW, Windows

rules = RuleList()


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
    padded = windows.padded(build, operand, _zero(build, operand))
    chosen = _chosen(op, windows, padded, inside, places)
    found = build.broadcast(start, padded.static_shape)
    for number, place in reversed(list(enumerate(places))):
        values = _put(build, source, _zero(build, source), windows, place, padded.static_shape)
        numbers = _put(build, chosen, build.constant(-1, (), "i32"), windows, place, padded.static_shape)
        [combined] = on_tensors(op, node.blocks[1], [found, values])
        own = build.broadcast(build.constant(number, (), "i32"), padded.static_shape)
        found = build.select(build.compare(numbers, "EQ", own), combined, found)
    limits = [low + size for low, size in zip(windows.low, shape, strict=True)]
    return [build.slice(found, windows.low, limits)]


def _chosen(
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
    """One value for each window at its place, others elsewhere."""
    low = list(place)
    spans = [(n - 1) * stride + 1 for n, stride in zip(value.static_shape, windows.strides, strict=True)]
    high = [size - k - span for size, k, span in zip(shape, place, spans, strict=True)]
    return build.pad(value, fill, low, high, [stride - 1 for stride in windows.strides])


def _zero(build: Builder, value: Value) -> Value:
    return build.zero(mlir.tensor_element(value.raw.type))
