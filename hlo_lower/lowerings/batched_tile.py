"""One window per batch coordinate: ragged decode, a vmapped update, the gradient of `take_along_axis`."""

from collections.abc import Sequence

import numpy as np

from hlo_lower.graph import Builder, Value
from hlo_lower.lowerings.context import ScatterLowering
from hlo_lower.lowerings.insert_slice import SHIFTED
from hlo_lower.lowerings.window import new_values, reads_current, write_position
from hlo_lower.registry import RuleList
from hlo_lower.scatter.facts import Offsets
from hlo_lower.scatter.regime import Regime
from hlo_lower.subset.kinds import BatchedTile

rules = RuleList()

COMPARED = (
    *("stablehlo.convert", "stablehlo.transpose", "stablehlo.reshape", "stablehlo.broadcast_in_dim"),
    *("stablehlo.constant", "stablehlo.slice", "stablehlo.minimum", "stablehlo.reverse", "stablehlo.iota"),
    *("stablehlo.compare", "stablehlo.and", "stablehlo.select", "stablehlo.map"),
)


@rules.lowers(
    "stablehlo.scatter",
    subset=BatchedTile,
    offsets={Offsets.RUNTIME, Offsets.UNSOLVED},
    regime={Regime.FEW_WINDOWS},
    emits=(*SHIFTED, "stablehlo.map"),
    form="for each batch coordinate one of the window forms",
)
def scatter_to_window_per_batch(op: ScatterLowering) -> Sequence[Value]:
    """Lower few windows, one per batch coordinate, one after the other.

        %0 = the one-window form on %operand at [0, start[0], ...]
        %1 = the one-window form on %0 at [1, start[1], ...]

    Equal, because this is what the scatter does, position by position, each window dropped by itself as in the
    one-window rules; windows of different batch coordinates do not meet. Both policies. Costs the update, and as many
    ops as there are windows; a buffer is written in place.
    """
    build, layout = op.build, op.facts.layout
    positions, k = layout.positions, len(op.scatter.index_dims)
    updates = [build.reshape(u, (positions, *layout.window)) for u in op.arrangement.updates(build)]
    vectors = [build.reshape(op.arrangement.indices(build, p), (positions, k)) for p in op.arrangement.parts]
    current: list[Value] = op.scatter.promoted_operands(build)
    for number, coordinate in enumerate(np.ndindex(*layout.kept_shape)):
        own = [build.reshape(_row(build, v, number), (k,)) for v in vectors]
        windows = [build.reshape(_row(build, u, number), layout.window) for u in updates]
        starts = {
            dim: build.constant(int(coordinate[n]), (), op.scatter.start_type) for dim, n in layout.coordinates.items()
        }
        current = write_position(op, build, current, own, starts, windows)
    return current


def _row(build: Builder, value: Value, number: int) -> Value:
    rest = value.static_shape[1:]
    return build.slice(value, [number, *(0 for _ in rest)], [number + 1, *rest])


@rules.lowers(
    "stablehlo.scatter",
    subset=BatchedTile,
    offsets={Offsets.RUNTIME, Offsets.UNSOLVED},
    regime={Regime.SHORT_AXIS},
    emits=COMPARED,
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
    short that it costs less than finding each row (`hlo_lower.scatter.regime`).
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
        hit = here if hit is None else build.elementwise("and", hit, here)
    assert hit is not None
    # A window has extent 1 in the batch dims and along the axes: without those it is [kept..., whole dims].
    whole = [d for d in range(scatter.rank) if d not in batch_dims and d not in axes]
    updates = [
        build.broadcast(build.reshape(u, (*kept, *(shape[d] for d in whole))), shape, [*batch_dims, *whole])
        for u in op.arrangement.updates(build)
    ]
    proposed = new_values(op, build, operands if reads_current(op) else updates, updates)
    return [build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]
