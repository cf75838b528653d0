"""Write one window: the step that all the rules of windows share.

For a tile at start s, a current value c of the tile and an update u of its size, the new value is `region(c, u)`, and

- where the tile is known to lie inside, it is written as it is;
- in a guarded dim, out of which the whole window is dropped, `select(inside, region(c, u), c)` is written: out of
  bounds that is what was read, at the place where it was read, the start clamped into the tensor. The select is as
  large as the update, never as the buffer, so a buffer that is written in place stays in place (trap 31);
- in a masked dim, out of which elements are dropped, the tile is moved into the tensor and only the elements that it
  covered are changed (`hlo_lower.ops.axes.dynamic_tile.ShiftedTile`).

A run that wraps is written in two parts, the negative rows first (trap 39). Where it does not wrap, both parts are the
same window: assigned twice it is what it was after the first time, and combined it would count twice, so then the
second part is left out by the select.
"""

from collections.abc import Mapping, Sequence

from hlo_lower.facts.scatter.arrange import Part
from hlo_lower.facts.scatter.lift import lift
from hlo_lower.facts.values.region import ASSIGNING, Combiner
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.ops.axes.dynamic_tile import DynamicTile

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
    return op.facts.region.reads_current


def write_position(
    op: ScatterLowering,
    build: Builder,
    operands: Sequence[Value],
    vectors: Sequence[Value | None],
    coordinates: Mapping[int, Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """The operands after one kept position: its window, or the parts of its wrapped run.

    Args:
      op: the scatter.
      build: where to build; a loop's body has its own.
      operands: the tensors to write into, in the region's types.
      vectors: for each part of the arrangement the index vector, [K] in the start type; None where it is not needed.
      coordinates: for operand dims that a batch dim addresses, their start.
      updates: the window's updates, in the region's types and of the layout's window.
      captured: see `lift`.
    """
    parts = op.arrangement.parts
    starts = [_starts(op, build, part, vector, coordinates) for part, vector in zip(parts, vectors, strict=True)]
    current = list(operands)
    for number, (part, own) in enumerate(zip(parts, starts, strict=True)):
        tile = DynamicTile(
            op.scatter.operand_shape, own, op.facts.layout.window, op.facts.guarded_dims, op.facts.masked_dims
        )
        is_apart = None
        for run in part.by_last_row if reads_current(op) else ():
            here = build.compare(own[run.operand_dim], "NE", starts[0][run.operand_dim])
            is_apart = here if is_apart is None else build.and_(is_apart, here)
        current = _write(op, build, tile, current, updates, number, is_apart, captured)
    return current


def _write(
    op: ScatterLowering,
    build: Builder,
    tile: DynamicTile,
    operands: Sequence[Value],
    updates: Sequence[Value],
    part: int,
    condition: Value | None,
    captured: Mapping[Value, Value] | None,
) -> list[Value]:
    """The operands after one tile, if the condition holds."""
    tile, inside = tile.inside(build)
    if inside is not None:
        condition = inside if condition is None else build.and_(condition, inside)
    shifted = tile.shifted(build, spare=part)
    place = shifted.tile
    aligned = [shifted.align(build, u) for u in updates]
    covered = shifted.is_covered(build)
    if condition is None and covered is None:
        # A region that reads no current value is given the updates in their place: it does not look.
        currents = [place.materialize(build, t) for t in operands] if reads_current(op) else updates
        values = new_values(op, build, currents, updates, captured)
        return [place.yield_to(build, t, v) for t, v in zip(operands, values, strict=True)]
    if covered is not None and condition is not None:
        condition = build.and_(covered, build.broadcast(condition, covered.static_shape))
    chosen = covered if condition is None else condition
    assert chosen is not None
    currents = [place.materialize(build, t) for t in operands]
    proposed = new_values(op, build, currents, aligned, captured)
    values = [build.select(chosen, new, old) for new, old in zip(proposed, currents, strict=True)]
    return [place.yield_to(build, t, v) for t, v in zip(operands, values, strict=True)]


def one_window(op: ScatterLowering) -> list[Value]:
    """The results of a scatter whose positions make one window."""
    build, scatter = op.build, op.scatter
    updates = [build.reshape(u, op.facts.layout.window) for u in op.arrangement.updates(build)]
    needed = any(op.facts.offsets_known[d] is None for d in scatter.index_dims)
    vectors = [op.arrangement.indices(build, part) if needed else None for part in op.arrangement.parts]
    k = (len(scatter.index_dims),)
    flat = [None if v is None else build.reshape(v, k) for v in vectors]
    return write_position(op, build, scatter.promoted_operands(build), flat, {}, updates)


def _starts(
    op: ScatterLowering, build: Builder, part: Part, vector: Value | None, coordinates: Mapping[int, Value]
) -> tuple[Value, ...]:
    """A scalar start per operand dim: the coordinate, a constant where it is known, else from the index vector."""
    scatter = op.scatter
    moved = {run.operand_dim: run for run in part.by_last_row}
    starts: dict[int, Value] = dict(coordinates)
    known: dict[int, int] = {}
    for dim, size in enumerate(scatter.operand_shape):
        offset = op.facts.offsets_known[dim] if dim in scatter.index_dims else 0
        if dim not in starts and offset is not None:
            # Brought to [-W, D], as far out as it was, a constant start fits the start type, whatever it was.
            known[dim] = max(-op.facts.layout.window[dim], min(offset, size))
    for k, dim in enumerate(scatter.index_dims):
        if dim not in starts and dim not in known:
            assert vector is not None
            component = build.reshape(build.slice(vector, [k], [k + 1]), ())
            starts[dim] = op.arrangement.first_of(build, moved[dim], component) if dim in moved else component
    constants = {offset: build.constant(offset, (), scatter.start_type) for offset in dict.fromkeys(known.values())}
    return tuple(starts[d] if d in starts else constants[known[d]] for d in range(scatter.rank))
