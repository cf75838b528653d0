"""One window written into a short tensor by a pass over it, for consumers that read the start of a slice on the host.

A loop waits there for its device at each such read; a select is one kernel, which finds the start in the tensor itself.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.facts.scatter.facts import Drops, InBounds, Offsets, Parts
from hlo_lower.facts.values.region import ASSIGNING
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.window import new_values
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import Subset, Tile

rules = RuleList()

SHORT = When(
    "a start at run time, and as many elements as short_operand at most",
    lambda facts: (
        facts.offsets is Offsets.RUNTIME
        and facts.parts is Parts.ONE
        and prod(facts.operand_shape) <= facts.costs.short_operand
        and all(extent in (1, size) for extent, size in zip(facts.layout.window, facts.operand_shape, strict=True))
    ),
)

_CLASS: Mapping[str, Any] = {
    "subset": frozenset(Tile) - {Subset.FULL},
    "combiner": ASSIGNING,
    "when": SHORT,
    "form": "select(iota == start in every dim, update, operand)",
}


@rules.lowers(SCATTER, in_bounds={InBounds.ALWAYS}, **_CLASS)
def scatter_to_short_set(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that lies inside, as `scatter_to_guarded_short_set` does.

    Equal by the same proof, which asks for no bounds.
    """
    return _by_select(op)


@rules.lowers(SCATTER, in_bounds={InBounds.UNKNOWN}, drops={Drops.WINDOWS}, **_CLASS)
def scatter_to_guarded_short_set(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window of a short operand that is dropped where it is out of bounds.

        %hit = and, over the dims that an index addresses: compare EQ, iota, broadcast(%start)
        %r   = select(%hit, broadcast(%window), %operand)

    Equal: the window has extent 1 in each of these dims and is whole in the others, so its places are those whose
    coordinates are the start, and no others change. A start that is negative or beyond the end is the coordinate of no
    place: nothing is written, as the scatter drops the window. At extent 1 both policies are one. One window, so no
    duplicates. The iota is as wide as the start type (trap 7). Costs a pass over the operand.
    """
    return _by_select(op)


def _by_select(op: ScatterLowering) -> Sequence[Value]:
    build, scatter, window = op.build, op.scatter, op.facts.layout.window
    shape = scatter.operand_shape
    if any(window[dim] != 1 for dim in scatter.index_dims):
        raise DoesNotApply("the window is longer than 1 in a dim that an index addresses")
    starts = build.reshape(op.arrangement.indices(build, op.arrangement.parts[0]), (len(scatter.index_dims),))
    hit: Value | None = None
    for dim in range(scatter.rank):
        if dim in scatter.index_dims:
            number = scatter.index_dims.index(dim)
            start = build.reshape(build.slice(starts, [number], [number + 1]), ())
        elif window[dim] == shape[dim]:
            continue
        else:  # a dim that no index addresses is written at 0
            start = build.constant(0, (), scatter.start_type)
        sizes = (shape[dim],)
        here = build.compare(build.iota(sizes, 0, scatter.start_type), "EQ", build.broadcast(start, sizes))
        here = build.broadcast(here, shape, [dim])
        hit = here if hit is None else build.and_(hit, here)
    assert hit is not None
    whole = [dim for dim in range(scatter.rank) if window[dim] == shape[dim] != 1]
    operands = scatter.promoted_operands(build)
    updates = [
        build.broadcast(build.reshape(update, tuple(shape[dim] for dim in whole)), shape, whole)
        for update in op.arrangement.updates(build)
    ]
    proposed = new_values(op, build, updates, updates)  # a region that assigns does not look at what is there
    return [build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]
