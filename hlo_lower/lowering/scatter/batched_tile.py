"""One row per batch coordinate along a short axis: ragged decode, a vmapped update, cross-entropy's gradient."""

from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Offsets, Strategy
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.window import new_values, reads_current
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import BatchedTile

rules = RuleList()


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
