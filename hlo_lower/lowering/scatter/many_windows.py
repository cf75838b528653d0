"""Many windows: a loop over them in the order of the scatter, the catch-all; ops for each; one per batch coordinate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Offsets, Strategy
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Block, Value
from hlo_lower.lowering.engine.kind import ScatterLowering
from hlo_lower.lowering.loops import StructuredLoop, Values
from hlo_lower.lowering.scatter.one_window import new_values, reads_current, write_position
from hlo_lower.ops.names import CONSTANT, REMAINDER, SCATTER
from hlo_lower.ops.subset import MANY_WINDOWS, BatchedTile, Subset


@dataclass(frozen=True)
class Captured:
    """The captured values of a region.

    Attributes:
      constants: those that are constants.
      carried: all others, to be invariant values of the loop.
    """

    constants: tuple[Value, ...]
    carried: tuple[Value, ...]

    def inside(self, build: Builder, taken: Sequence[Value]) -> Mapping[Value, Value]:
        """For each captured value the one to take in the loop's body, given those that came through for `carried`."""
        replaced = dict(zip(self.carried, taken, strict=True))
        for value in self.constants:
            assert value.node is not None
            replaced[value] = build.clone(value.node, [], [value.raw.type]).results[0]
        return replaced


def captured_by(region: Block) -> Captured:
    """What a region captures."""
    values = captured_values(region)
    constants = [v for v in values if v.node is not None and v.node.name == CONSTANT]
    return Captured(tuple(constants), tuple(v for v in values if v not in constants))


rules = RuleList()

WRITTEN = frozenset(Subset) - {Subset.EMPTY}
"""Every subset of which something may be written: what is never written needs no guard and has no layout."""


@rules.lowers(SCATTER, subset=WRITTEN, form="while over the windows: dynamic_slice, body, guard, dynamic_update_slice")
def scatter_to_while(op: ScatterLowering) -> Sequence[Value]:
    """Lower any scatter of static shape, window by window.

        while (i < N) {
          start  = indices[i, :], batching dims from i
          window = updates[i, ...]
          operand = the operand after this window, as in the one-window rules
        }

    Equal, because the loop does what the definition says: it applies scatter position by scatter position in row-major
    order, a whole window each (traps 16 and 45), each window reading what the windows before it left. So duplicates
    compound or the last one wins, consistently across the operands of a variadic scatter (trap 17), and floating-point
    sums keep their order. Drops are decided per window, or per element, as in the one-window rules. Both policies.
    Positions that make a run are one window of the loop (`hlo_lower.facts.scatter.layout`): the rows of a page are
    written at once, as in the rules of rows.

    Costs N iterations, each as large as the window. The loop carries the operands, so a buffer stays in place.
    """
    scatter, build, layout = op.scatter, op.build, op.facts.layout
    n, k = layout.positions, len(scatter.index_dims)
    counter_type = scatter.start_type if n < 1 << 31 else "i64"
    operands = scatter.promoted_operands(build)
    # Without dims of extent 1: XLA copies updates, before the loop, that have been given more of them.
    extents = [size for size in layout.window if size > 1]
    updates = [build.reshape(u, (n, *extents)) for u in op.arrangement.updates(build)]
    parts = op.arrangement.parts
    indices = [build.reshape(op.arrangement.indices(build, p), (n, k)) for p in parts] if k else []
    captured = captured_by(scatter.region)

    def iteration(inner: Builder, counter: Value, current: Values, invariant: Values) -> Sequence[Value]:
        all_updates, rest = invariant[: scatter.arity], invariant[scatter.arity :]
        vectors, taken = rest[: len(indices)], rest[len(indices) :]
        replaced = captured.inside(inner, taken)
        zero = inner.constant(0, (), counter_type)
        windows = [
            inner.reshape(inner.dynamic_slice(u, [counter] + [zero] * len(extents), (1, *extents)), layout.window)
            for u in all_updates
        ]
        own = [inner.reshape(inner.dynamic_slice(v, [counter, zero], (1, k)), (k,)) for v in vectors] or [None]
        coordinates = {
            dim: _coordinate(inner, counter, layout.kept_shape, number, scatter.start_type)
            for dim, number in layout.coordinates.items()
        }
        return write_position(op, inner, current, own, coordinates, windows, replaced)

    loop = StructuredLoop(n, counter_type)
    return loop.emit_while(build, operands, [*updates, *indices, *captured.carried], iteration)


def _coordinate(build: Builder, counter: Value, shape: tuple[int, ...], position: int, element: str) -> Value:
    """Coordinate `position` of the row-major index `counter` into a shape: `counter / stride % size`."""
    stride = 1
    for size in shape[position + 1 :]:
        stride *= size
    value = counter
    if stride > 1:
        value = build.divide(value, build.constant(stride, (), counter.element_type))
    if position > 0:
        value = build.elementwise(REMAINDER, value, build.constant(shape[position], (), counter.element_type))
    return build.convert(value, element)


# --- few windows: ops of its own for each ---


@rules.lowers(
    SCATTER,
    subset=MANY_WINDOWS,
    offsets={Offsets.RUNTIME, Offsets.UNSOLVED},
    strategy={Strategy.FEW_WINDOWS},
    form="a one-window form for each window, one after the other",
)
def scatter_to_unrolled(op: ScatterLowering) -> Sequence[Value]:
    """Lower few windows, one after the other.

        %0 = the one-window form on %operand at start[0]
        %1 = the one-window form on %0 at start[1]

    Equal, because this is what the scatter does, position by position in row-major order, each window reading what
    those before it left and dropped by itself as in the one-window rules. So duplicates compound or the last one wins,
    and sums keep their order. Both policies. Costs the update, and as many ops as there are windows; a buffer is
    written in place.
    """
    build, layout = op.build, op.facts.layout
    positions, k = layout.positions, len(op.scatter.index_dims)
    updates = [build.reshape(u, (positions, *layout.window)) for u in op.arrangement.updates(build)]
    parts = op.arrangement.parts
    vectors = [build.reshape(op.arrangement.indices(build, p), (positions, k)) if k else None for p in parts]
    current: list[Value] = op.scatter.promoted_operands(build)
    for number, coordinate in enumerate(np.ndindex(*layout.kept_shape)):
        own = [None if v is None else build.reshape(slice_along(build, v, 0, number, 1), (k,)) for v in vectors]
        windows = [build.reshape(slice_along(build, u, 0, number, 1), layout.window) for u in updates]
        starts = {
            dim: build.constant(int(coordinate[n]), (), op.scatter.start_type) for dim, n in layout.coordinates.items()
        }
        current = write_position(op, build, current, own, starts, windows)
    return current


# --- one row per batch coordinate along a short axis: ragged decode, a vmapped update, cross-entropy's gradient ---


@rules.lowers(
    SCATTER,
    subset=BatchedTile,
    offsets={Offsets.RUNTIME, Offsets.UNSOLVED},
    strategy={Strategy.SHORT_AXIS},
    form="select(iota == start, the updates broadcast along the axis, operand)",
)
def scatter_to_select_per_batch(op: ScatterLowering) -> Sequence[Value]:
    """Lower one row per batch coordinate along a short axis.

        %hit = compare EQ, iota along the axis, broadcast(%start)
        %r   = select(%hit, region(%operand, broadcast(%updates)), %operand)

    Equal: the window has extent 1 along the axis and is whole elsewhere, so each batch coordinate changes the one place
    where the iota is its start, and none if the start is outside: no place has its number, neither a negative one nor
    one beyond the end. So both policies, which agree at extent 1, need no guard. Each element is combined at most once.
    The bounds are as wide as the start type, never the index type (trap 7). A pass over the whole operand: for axes so
    short that it costs less than finding each row (`hlo_lower.facts.scatter.facts`).
    """
    build, scatter, layout = op.build, op.scatter, op.facts.layout
    shape = scatter.operand_shape
    k = len(scatter.index_dims)
    kept = layout.kept_shape
    batch = {n: dim for dim, n in layout.coordinates.items()}
    batch_dims = [batch[n] for n in range(len(kept))]
    operands = scatter.promoted_operands(build)
    merged = {run.operand_dim for run in layout.runs}
    axes = [d for d in scatter.index_dims if d not in layout.coordinates and d not in merged]
    indices = build.reshape(op.arrangement.indices(build, op.arrangement.parts[0]), (*kept, k))
    hit: Value | None = None
    for axis in axes:
        number = scatter.index_dims.index(axis)
        column = build.slice(indices, [*(0 for _ in kept), number], [*kept, number + 1])
        start = build.reshape(column, kept)
        plane = sorted({*batch_dims, axis})
        sizes = [shape[d] for d in plane]
        spread = build.broadcast(start, sizes, [plane.index(d) for d in batch_dims])
        here = build.compare(build.iota(sizes, plane.index(axis), scatter.start_type), "EQ", spread)
        here = build.broadcast(here, shape, plane)
        hit = here if hit is None else build.and_(hit, here)
    assert hit is not None
    # A window has extent 1 in the batch dims and along the axes: without those it is [kept..., whole dims].
    whole = [d for d in range(scatter.rank) if d not in batch_dims and d not in axes]
    updates = [
        build.broadcast(build.reshape(u, (*kept, *(shape[d] for d in whole))), shape, [*batch_dims, *whole])
        for u in op.arrangement.updates(build)
    ]
    proposed = new_values(op, build, operands if reads_current(op) else updates, updates)
    return [build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]
