"""A point write by comparing: for consumers that have neither `dynamic_slice` nor `dynamic_update_slice`."""

from collections.abc import Sequence
from math import prod

from hlo_lower.plugin import (
    SCATTER,
    Combiner,
    Drops,
    InBounds,
    RuleList,
    ScatterLowering,
    Subset,
    Value,
    When,
    new_values,
)

MOST_ELEMENTS = 4096
"""Beyond it a pass over the operand costs more than the one element is worth; a built-in rule is taken then."""

rules = RuleList()


@rules.lowers(
    SCATTER,
    subset={Subset.POINT},
    combiner={Combiner.ASSIGN},
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    when=When(f"{MOST_ELEMENTS:,} elements at most", lambda facts: prod(facts.operand_shape) <= MOST_ELEMENTS),
    form="select(iota == start in every dim, update, operand)",
)
def scatter_to_point_select(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned element by comparing every place of the operand with where it goes.

        %hit = and, over the dims: compare EQ, iota along the dim, broadcast(%start of the dim)
        %r   = select(%hit, broadcast(%update), %operand)

    Equal: the place whose coordinates are the start is the one that the scatter writes, and no other place is changed.
    A start out of bounds, negative or beyond the end, is the coordinate of no place, so nothing is written, as the
    scatter drops the update. A window of one element is inside or outside as a whole: both policies. One update, so no
    duplicates. Costs a pass over the operand, which is not written in place.
    """
    build, scatter = op.build, op.scatter
    shape = scatter.operand_shape
    starts = build.reshape(op.arrangement.indices(build, op.arrangement.parts[0]), (len(scatter.index_dims),))
    hit: Value | None = None
    for dim in range(scatter.rank):
        if dim in scatter.index_dims:
            k = scatter.index_dims.index(dim)
            start = build.reshape(build.slice(starts, [k], [k + 1]), ())
        else:  # a dim that no index addresses is written at 0
            start = build.constant(0, (), scatter.start_type)
        place = build.iota(shape, dim, scatter.start_type)
        here = build.compare(place, "EQ", build.broadcast(start, shape))
        hit = here if hit is None else build.elementwise("and", hit, here)
    assert hit is not None  # an operand of rank 0 has no index that could be out of bounds
    updates = [build.broadcast(build.reshape(u, ()), shape) for u in op.arrangement.updates(build)]
    proposed = new_values(op, build, updates, updates)  # the region, on whole tensors
    operands = scatter.promoted_operands(build)  # in the type that the region computes in
    return [build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]
