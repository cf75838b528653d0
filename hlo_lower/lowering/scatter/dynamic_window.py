"""One window of a scatter of dynamic shape: read, combined with its update, and written at one position.

A size that is known at run time only may be 0 there, and every operation must have a legal type all the same: a loop
of no iterations has a body, and no element can be sliced from a dim that has none. So the extent that is read and
written at a position, which is 1 in the dims that count positions and in the inserted ones, is there

    live = minimum(1, the sizes of these dims)

of which nothing is read and nothing written where it is 0, as there is no position or no place for a window. Where the
sizes are known, so is it: shape refinement makes a 1 of it, and of what is read a slice of static extents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.facts.scatter.dimension_numbers import saturate
from hlo_lower.facts.scatter.dynamic import DynamicFacts, DynamicScatter
from hlo_lower.facts.scatter.lift import lift
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import Extent, extent_of, first_of, part, product, reshaped, scalar
from hlo_lower.ir.view import Graph, Value


@dataclass(frozen=True)
class DynamicScatterLowering:
    """One scatter of dynamic shape to be lowered; what a rule is given.

    Attributes:
      scatter: the scatter.
      facts: what is known of it.
      graph: the module, for the functions that the region calls.
      build: builds in front of the scatter.
    """

    scatter: DynamicScatter
    facts: DynamicFacts
    graph: Graph
    build: Builder


def start_type(op: DynamicScatterLowering) -> str:
    """The type of starts; i64 where an element's offset in its window is added to one."""
    return "i64" if op.facts.split else op.scatter.start_type


def write_window(
    op: DynamicScatterLowering,
    build: Builder,
    operands: Sequence[Value],
    indices: Value,
    updates: Sequence[Value],
    coordinates: Mapping[int, Value],
    captured: Mapping[Value, Value],
) -> list[Value]:
    """The operands after the window at one position.

    A start is inside where clamping it into [0, D - W] changes nothing. D - W is never negative: W is 0 wherever D is.

    Args:
      op: the scatter.
      build: where to build.
      operands: the tensors to write into, in the region's types.
      indices, updates: as given.
      coordinates: the position: a coordinate for each dim of the updates that is looped over, in the start type.
      captured: see `lift`.
    """
    scatter, facts = op.scatter, op.facts
    element = start_type(op)
    live = _live(op, build, operands[0], updates[0])
    window = _extents(op, build, updates[0], live)
    zero = build.constant(0, (), element)
    starts = _starts(op, build, operands[0], indices, updates[0], coordinates, live)
    is_inside: Value | None = None
    for dim in facts.unproved:
        size = extent_of(build, operands[0], dim, element)
        last = _last(build, size, window[dim], element)
        placed = build.clamp(zero, starts[dim], last)
        here = build.compare(placed, "EQ", starts[dim])
        is_inside = here if is_inside is None else build.and_(is_inside, here)
        starts[dim] = placed
    windows = [
        build.convert(_update_at(op, build, u, coordinates, live, window), t)
        for u, t in zip(updates, scatter.region_types, strict=True)
    ]
    reads = facts.region.reads_current or is_inside is not None
    currents = [part(build, operand, starts, window) for operand in operands] if reads else windows
    values = lift(build, op.graph, scatter.region, currents, windows, captured)
    if is_inside is not None:
        values = [build.select(is_inside, new, old) for new, old in zip(values, currents, strict=True)]
    if not scatter.rank:
        return values
    return [build.dynamic_update_slice(o, v, starts) for o, v in zip(operands, values, strict=True)]


def _live(op: DynamicScatterLowering, build: Builder, operand: Value, updates: Value) -> Extent:
    """1, or at run time 0 where there is no position, or no place in an inserted dim."""
    positions, inserted = op.facts.vanishing
    element = start_type(op)
    sizes = [extent_of(build, updates, d, element) for d in positions]
    sizes += [extent_of(build, operand, d, element) for d in inserted]
    live: Extent = 1
    for size in sizes:
        live = build.minimum(scalar(build, live, element), scalar(build, size, element))
    return live


def _extents(op: DynamicScatterLowering, build: Builder, updates: Value, live: Extent) -> list[Extent]:
    """The extents of what is read and written of an operand: those of the window, and of nothing where none is live.

    Where every dim is in the window, the first of them is empty then.
    """
    scatter, element = op.scatter, start_type(op)
    places = {d: place for d, place in scatter.update_dim_of.items() if d not in op.facts.split}
    found = [extent_of(build, updates, places[d], element) if d in places else live for d in range(scatter.rank)]
    if found and len(places) == scatter.rank:
        found[0] = product(build, [found[0], live], element)
    return found


def _update_at(
    op: DynamicScatterLowering,
    build: Builder,
    updates: Value,
    coordinates: Mapping[int, Value],
    live: Extent,
    window: Sequence[Extent],
) -> Value:
    """The update at one position, in the shape of what is read of an operand."""
    element = start_type(op)
    zero = build.constant(0, (), element)
    dims = range(len(op.scatter.updates_shape))
    taken = [live if d in coordinates else extent_of(build, updates, d, element) for d in dims]
    found = part(build, updates, [coordinates.get(d, zero) for d in dims], taken)
    if isinstance(live, int) or (coordinates and window):
        return reshaped(build, found, window, element)
    if not window:  # into a scalar, which has no extent that could be 0
        return build.reshape(first_of(build, reshaped(build, found, [live], element), 1), ())
    whole = [extent if d in op.scatter.update_dim_of else 1 for d, extent in enumerate(window)]
    return part(build, reshaped(build, found, whole, element), [zero] * len(whole), window)


def _last(build: Builder, size: Extent, window: Extent, element: str) -> Value:
    """The last start that is inside, D - W."""
    if isinstance(size, int) and isinstance(window, int):
        return build.constant(size - window, (), element)
    return build.subtract(scalar(build, size, element), scalar(build, window, element))


def _starts(
    op: DynamicScatterLowering,
    build: Builder,
    operand: Value,
    indices: Value,
    updates: Value,
    coordinates: Mapping[int, Value],
    live: Extent,
) -> list[Value]:
    """The start in each operand dim: of the index vector, the position in a batching dim, or 0.

    An index vector that is not live is one of zeros.
    """
    scatter, facts = op.scatter, op.facts
    element, k = start_type(op), len(scatter.index_dims)
    starts = [build.constant(0, (), element)] * scatter.rank
    for operand_dim, position in scatter.batching:
        starts[operand_dim] = coordinates[scatter.scatter_dims[position]]
    if not k:
        return starts
    where = [coordinates[d] for d in scatter.scatter_dims]
    sizes: list[Extent] = [live] * len(where)
    if scatter.index_vector_dim < len(indices.shape):
        where.insert(scatter.index_vector_dim, build.constant(0, (), element))
        sizes.insert(scatter.index_vector_dim, k)
    found = part(build, indices, where, sizes)
    if not found.is_static:
        found = first_of(build, reshaped(build, found, [product(build, [live, k], element)], element), k)
    vector = saturate(build, build.reshape(found, (k,)), element, scatter.beyond(element))
    for component, dim in enumerate(scatter.index_dims):
        starts[dim] = build.reshape(build.slice(vector, [component], [component + 1]), ())
    for dim in facts.split:
        place = scatter.update_dim_of[dim]
        extent = scalar(build, extent_of(build, updates, place, element), element)
        size = scalar(build, extent_of(build, operand, dim, element), element)
        low = build.subtract(build.constant(0, (), element), extent)
        starts[dim] = build.add(build.clamp(low, starts[dim], size), coordinates[place])
    return starts
