"""Scatters with sizes that are known at run time only: one guarded window, or a loop over the windows.

They say the same as the rules of one window and of the loop, with `get_dimension_size` where those have numbers. A
window is placed by clamping its start, and it lies inside where clamping changed nothing: so a bound is needed once, is
built from the actual size (trap 29), and cannot overflow, as `D - W` is computed and no size is added to a start. What
a position reads and writes has extents that are known unless a size may turn out to be 0
(`hlo_lower.lowering.scatter.dynamic_shape`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.dimension_numbers import saturate
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER, DynamicFacts, DynamicScatter, Positions, WindowSizes
from hlo_lower.facts.scatter.lift import lift
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import Extent, extent_of, first_of, part, product, reshape, scalar
from hlo_lower.ir.view import Graph, Value
from hlo_lower.lowering.loops import StructuredLoop, Values
from hlo_lower.lowering.scatter.many_windows import captured_by
from hlo_lower.ops.names import REMAINDER


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
        return reshape(build, found, window, element)
    if not window:  # into a scalar, which has no extent that could be 0
        return build.reshape(first_of(build, reshape(build, found, [live], element), 1), ())
    whole = [extent if d in op.scatter.update_dim_of else 1 for d, extent in enumerate(window)]
    return part(build, reshape(build, found, whole, element), [zero] * len(whole), window)


def _last(build: Builder, size: Extent, window: Extent, element: str) -> Value:
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
        found = first_of(build, reshape(build, found, [product(build, [live, k], element)], element), k)
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


rules = RuleList()

WRITING = frozenset(Combiner) - {Combiner.NO_OP}

lowers = partial(rules.lowers, DYNAMIC_SCATTER, combiner=WRITING)


@rules.lowers(DYNAMIC_SCATTER, combiner={Combiner.NO_OP}, form="the operand")
def scatter_to_dynamic_shape_operand(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower a scatter that writes nothing, or the current value: each result is its operand, promoted if the region is.

    Equal, because whatever is written was there before. Costs nothing.
    """
    return op.scatter.promoted_operands(op.build)


@lowers(
    positions={Positions.ONE},
    window_sizes={WindowSizes.STATIC},
    form="dynamic_slice, the body, select, dynamic_update_slice; bounds from get_dimension_size",
)
def scatter_to_dynamic_shape_window(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower one window of static extents in an operand whose sizes are known at run time.

        %place = clamp(0, %start, get_dimension_size(%operand) - W)
        %old   = dynamic_slice %operand, %place
        %new   = select(%place == %start, region(%old, %window), %old)
        %r     = dynamic_update_slice %operand, %new, %place

    Equal: a start is inside exactly where clamping it into [0, D - W] changes nothing; then the window is combined and
    written there. Else it is dropped as a whole: what was read is written back. Under oob=spec only windows of extent 1
    in every dim that may be out of bounds come here, for which both policies agree. Costs the update, in place.
    """
    return _one_window(op)


@lowers(
    positions={Positions.ONE},
    window_sizes={WindowSizes.RUNTIME},
    form="real_dynamic_slice, the body, select, dynamic_update_slice; bounds and sizes from get_dimension_size",
)
def scatter_to_dynamic_shape_runtime_window(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower one window whose extents are known at run time: as a static one, read by `real_dynamic_slice`.

    Equal as there: `real_dynamic_slice` reads [place, place + W), which lies in the operand, as place <= D - W. A
    window is of such extents, too, where an inserted dim of the operand may have no place for it: W there is
    minimum(1, D), so that nothing is read and written where D is 0. Costs the update, in place.
    """
    return _one_window(op)


@lowers(
    window_sizes={WindowSizes.STATIC},
    form="while over the windows, their number from get_dimension_size; each as one window",
)
def scatter_to_dynamic_shape_while(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower any number of windows of static extents, one after the other.

        while (i < N0 * ... * Nm) { position = i in row-major order; the operand after this window }

    Equal, because scatter positions are taken in row-major order, a whole window each (traps 16 and 45), and each is
    read, combined and written as one window. Where elements are dropped one by one (oob=spec, a window that may
    overhang), the window's elements in those dims are further positions, the innermost ones: dropping an element of
    extent 1 is dropping its window, and the order between windows stays. Their starts are computed in i64 from a start
    clamped to [-W, D], so the sum is exact (trap 9). Costs N iterations.
    """
    return _loop(op)


@lowers(
    window_sizes={WindowSizes.RUNTIME},
    form="while over the windows, their number and sizes from get_dimension_size; each as one window",
)
def scatter_to_dynamic_shape_runtime_while(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower any number of windows whose extents are known at run time, one after the other.

    Equal as `scatter_to_dynamic_shape_while`, each window as `scatter_to_dynamic_shape_runtime_window`. Where there are
    no positions, the loop has no iteration, and its body reads and writes windows that are empty.
    """
    return _loop(op)


def _one_window(op: DynamicScatterLowering) -> list[Value]:
    scatter, build = op.scatter, op.build
    zero = build.constant(0, (), start_type(op))
    coordinates = dict.fromkeys(scatter.scatter_dims, zero)
    return write_window(
        op, build, op.scatter.promoted_operands(op.build), scatter.indices, scatter.updates, coordinates, {}
    )


def _loop(op: DynamicScatterLowering) -> list[Value]:
    scatter, build, facts = op.scatter, op.build, op.facts
    places = scatter.update_dim_of
    loop_dims = [*scatter.scatter_dims, *(places[d] for d in facts.split)]
    extents = [extent_of(build, scatter.updates[0], d, "i32") for d in loop_dims]
    counter_type = "i32" if sum(e != 1 for e in extents) <= 1 else "i64"
    count = scalar(build, product(build, extents, counter_type), counter_type)
    captured = captured_by(scatter.region)

    def iteration(inner: Builder, counter: Value, current: Values, invariant: Values) -> Sequence[Value]:
        indices, updates = invariant[0], invariant[1 : 1 + scatter.arity]
        replaced = captured.inside(inner, invariant[1 + scatter.arity :])
        coordinates = _unravel(inner, counter, updates[0], loop_dims)
        own = {d: inner.convert(c, start_type(op)) for d, c in coordinates.items()}
        return write_window(op, inner, current, indices, updates, own, replaced)

    invariant = [scatter.indices, *scatter.updates, *captured.carried]
    return StructuredLoop(count, counter_type).emit_while(
        build, op.scatter.promoted_operands(op.build), invariant, iteration
    )


def _unravel(build: Builder, counter: Value, updates: Value, dims: Sequence[int]) -> dict[int, Value]:
    """The coordinate in each of these dims of the updates: the row-major index `counter`, taken apart."""
    found: dict[int, Value] = {}
    rest = counter
    for number, dim in reversed(list(enumerate(dims))):
        if updates.shape[dim] == 1:
            found[dim] = build.constant(0, (), counter.element_type)
        elif all(updates.shape[d] == 1 for d in dims[:number]):
            found[dim] = rest
        else:
            extent = extent_of(build, updates, dim, counter.element_type)
            size = scalar(build, extent, counter.element_type)
            found[dim] = build.elementwise(REMAINDER, rest, size)
            rest = build.divide(rest, size)
    return found
