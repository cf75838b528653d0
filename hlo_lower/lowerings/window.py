"""Write one window: the step that the one-window rules and the loop share.

For a tile at start s, a current value c of the tile and an update u of its size, the new value is `region(c, u)`, and

- where the tile is known to lie inside, it is written as it is;
- where whole windows are dropped, `select(inside, region(c, u), c)` is written: out of bounds that is what was read, at
  the place where it was read, because `dynamic_slice` and `dynamic_update_slice` clamp the same start alike. The select
  is as large as the update, never as the buffer, so a buffer that is written in place stays in place (trap 31);
- where elements are dropped, the tile is moved into the tensor and only the elements that it covered are changed
  (`hlo_lower.subset.tile.ShiftedTile`).
"""

from collections.abc import Mapping, Sequence

from hlo_lower.analysis import Combiner
from hlo_lower.graph import Builder, Value
from hlo_lower.lowerings.context import ScatterLowering
from hlo_lower.scatter.facts import Drops
from hlo_lower.scatter.lift import lift
from hlo_lower.subset import DynamicTile

ASSIGNING = frozenset({Combiner.ASSIGN, Combiner.ASSIGN_CONSTANT})
"""Combiners that do not read the current value."""

READING = frozenset(Combiner) - ASSIGNING - {Combiner.NO_OP}
"""Combiners that read the current value."""


def new_values(
    op: ScatterLowering,
    build: Builder,
    currents: Sequence[Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """The region on windows of current values and updates, all of one shape."""
    return lift(build, op.graph, op.scatter.region, currents, updates, captured)


def reads_current(op: ScatterLowering) -> bool:
    """Whether any operand's new value depends on a current value."""
    return any(combiner not in ASSIGNING for combiner in op.facts.region.combiners)


def write_window(
    op: ScatterLowering,
    build: Builder,
    tile: DynamicTile,
    operands: Sequence[Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """The operands after one window, dropped as the facts demand.

    Args:
      op: the scatter.
      build: where to build; a loop's body has its own.
      tile: the window's place, with the operand's shape.
      operands: the tensors to write into, in the region's types.
      updates: the window's updates, in the region's types and of the tile's size.
      captured: see `lift`.
    """
    if op.facts.drops is Drops.ELEMENTS:
        return _write_elements(op, build, tile, operands, updates, captured)
    if op.facts.drops is Drops.NOTHING:
        # A region that reads no current value is given the updates in their place: it does not look.
        currents = [tile.materialize(build, t) for t in operands] if reads_current(op) else updates
        values = new_values(op, build, currents, updates, captured)
    else:
        inside = tile.is_inside(build)
        currents = [tile.materialize(build, t) for t in operands]
        proposed = new_values(op, build, currents, updates, captured)
        values = [build.select(inside, new, old) for new, old in zip(proposed, currents, strict=True)]
    return [tile.yield_to(build, t, v) for t, v in zip(operands, values, strict=True)]


def _write_elements(
    op: ScatterLowering,
    build: Builder,
    tile: DynamicTile,
    operands: Sequence[Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None,
) -> list[Value]:
    shifted = tile.shifted(build)
    aligned = [shifted.align(build, u) for u in updates]
    covered = shifted.is_covered(build)
    currents = [shifted.tile.materialize(build, t) for t in operands]
    proposed = new_values(op, build, currents, aligned, captured)
    values = [build.select(covered, new, old) for new, old in zip(proposed, currents, strict=True)]
    return [shifted.tile.yield_to(build, t, v) for t, v in zip(operands, values, strict=True)]


def one_window(op: ScatterLowering) -> list[Value]:
    """The results of a scatter of one window."""
    scatter, build = op.scatter, op.build
    updates = [build.reshape(u, scatter.window) for u in scatter.canonical_updates(build)]
    tile = DynamicTile(scatter.operand_shape, _starts(op), scatter.window, op.facts.unchecked_dims)
    return write_window(op, build, tile, scatter.promoted_operands(build), updates)


def _starts(op: ScatterLowering) -> tuple[Value, ...]:
    """A scalar start per operand dim: a constant where it is known, else its component of the index vector."""
    scatter, build = op.scatter, op.build
    components: dict[int, Value] = {}
    runtime = [d for d in scatter.index_dims if op.facts.offsets_known[d] is None]
    if runtime:
        vector = build.reshape(scatter.canonical_indices(build), (len(scatter.index_dims),))
        for k, dim in enumerate(scatter.index_dims):
            if dim in runtime:
                components[dim] = build.reshape(build.slice(vector, [k], [k + 1]), ())
    # A constant start is brought to [-D, D], as far out as it was: it fits the start type, whatever it was before.
    known = {
        dim: max(-size, min(offset, size))
        for dim, (offset, size) in enumerate(zip(op.facts.offsets_known, scatter.operand_shape, strict=True))
        if offset is not None
    }
    constants = {offset: build.constant(offset, (), scatter.start_type) for offset in dict.fromkeys(known.values())}
    return tuple(constants[known[dim]] if dim in known else components[dim] for dim in range(scatter.rank))
