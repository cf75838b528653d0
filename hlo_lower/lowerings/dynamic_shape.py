"""Scatters with sizes that are known at run time only: one guarded window, or a loop over the windows.

They say the same as the rules of one window and of the loop, with `get_dimension_size` where those have numbers. A
window is placed by clamping its start, and it lies inside where clamping changed nothing: so a bound is needed once, is
built from the actual size (trap 29), and cannot overflow, as `D - W` is computed and no size is added to a start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.analysis import Combiner
from hlo_lower.analysis.interval import type_range
from hlo_lower.graph import Builder, Graph, Value
from hlo_lower.graph.sizes import Extent, extent_of, part, reshaped, scalar
from hlo_lower.loop import StructuredLoop
from hlo_lower.lowerings.captured import captured_by
from hlo_lower.registry import RuleList
from hlo_lower.scatter.dynamic import DYNAMIC_SCATTER, DynamicFacts, DynamicScatter, Positions, WindowSizes
from hlo_lower.scatter.lift import lift

rules = RuleList()

WRITING = frozenset(Combiner) - {Combiner.NO_OP}

WINDOW = tuple(
    f"stablehlo.{op}"
    for op in (
        *("get_dimension_size", "constant", "convert", "reshape", "slice", "dynamic_slice", "dynamic_update_slice"),
        *("clamp", "compare", "and", "subtract", "minimum", "select", "map"),
    )
)
LOOP = (*WINDOW, *(f"stablehlo.{op}" for op in ("while", "add", "multiply", "divide", "remainder")))
RUNTIME_WINDOW = tuple(
    f"stablehlo.{op}"
    for op in ("real_dynamic_slice", "dynamic_reshape", "dynamic_broadcast_in_dim", "concatenate", "add")
)


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


@rules.lowers(
    DYNAMIC_SCATTER,
    combiner={Combiner.NO_OP},
    emits=("stablehlo.convert",),
    form="the operand",
)
def scatter_to_dynamic_shape_operand(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower a scatter that writes nothing, or the current value: each result is its operand, promoted if the region is.

    Equal, because whatever is written was there before. Costs nothing.
    """
    return _promoted(op)


@rules.lowers(
    DYNAMIC_SCATTER,
    combiner=WRITING,
    positions={Positions.ONE},
    window_sizes={WindowSizes.STATIC},
    emits=WINDOW,
    form="dynamic_slice, the region, select, dynamic_update_slice; bounds from get_dimension_size",
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


@rules.lowers(
    DYNAMIC_SCATTER,
    combiner=WRITING,
    positions={Positions.ONE},
    window_sizes={WindowSizes.RUNTIME},
    emits=(*WINDOW, *RUNTIME_WINDOW),
    form="real_dynamic_slice, the region, select, dynamic_update_slice; bounds and sizes from get_dimension_size",
)
def scatter_to_dynamic_shape_runtime_window(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower one window whose extents are known at run time: as a static one, read by `real_dynamic_slice`.

    Equal as there: `real_dynamic_slice` reads [place, place + W), which lies in the operand, as place <= D - W. Costs
    the update, in place.
    """
    return _one_window(op)


@rules.lowers(
    DYNAMIC_SCATTER,
    combiner=WRITING,
    window_sizes={WindowSizes.STATIC},
    emits=LOOP,
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


@rules.lowers(
    DYNAMIC_SCATTER,
    combiner=WRITING,
    window_sizes={WindowSizes.RUNTIME},
    emits=(*LOOP, *RUNTIME_WINDOW),
    form="while over the windows, their number and sizes from get_dimension_size; each as one window",
)
def scatter_to_dynamic_shape_runtime_while(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower any number of windows whose extents are known at run time, one after the other.

    Equal as `scatter_to_dynamic_shape_while`, each window as `scatter_to_dynamic_shape_runtime_window`.
    """
    return _loop(op)


def _promoted(op: DynamicScatterLowering) -> list[Value]:
    scatter = op.scatter
    return [op.build.convert(v, t) for v, t in zip(scatter.operands, scatter.region_types, strict=True)]


def _start_type(op: DynamicScatterLowering) -> str:
    """The type of starts; i64 where an element's offset in its window is added to one."""
    return "i64" if op.facts.split else op.scatter.start_type


def _one_window(op: DynamicScatterLowering) -> list[Value]:
    scatter, build = op.scatter, op.build
    zero = build.constant(0, (), _start_type(op))
    coordinates = dict.fromkeys(scatter.scatter_dims, zero)
    return _write(op, build, _promoted(op), scatter.indices, scatter.updates, coordinates, {})


def _loop(op: DynamicScatterLowering) -> list[Value]:
    scatter, build, facts = op.scatter, op.build, op.facts
    places = scatter.update_dim_of
    loop_dims = [*scatter.scatter_dims, *(places[d] for d in facts.split)]
    extents = [extent_of(build, scatter.updates[0], d, "i32") for d in loop_dims]
    counter_type = "i32" if sum(e != 1 for e in extents) <= 1 else "i64"
    count = _product(build, [e for e in extents if e != 1], counter_type)
    captured = captured_by(scatter.region)

    def iteration(
        inner: Builder, counter: Value, current: tuple[Value, ...], invariant: tuple[Value, ...]
    ) -> Sequence[Value]:
        indices, updates = invariant[0], invariant[1 : 1 + scatter.arity]
        replaced = captured.inside(inner, invariant[1 + scatter.arity :])
        coordinates = _unravel(inner, counter, updates[0], loop_dims)
        own = {d: inner.convert(c, _start_type(op)) for d, c in coordinates.items()}
        return _write(op, inner, current, indices, updates, own, replaced)

    invariant = [scatter.indices, *scatter.updates, *captured.carried]
    return StructuredLoop(count, counter_type).emit_while(build, _promoted(op), invariant, iteration)


def _product(build: Builder, extents: Sequence[Extent], element: str) -> Value:
    factors = [scalar(build, extent, element) for extent in extents] or [build.constant(1, (), element)]
    product = factors[0]
    for factor in factors[1:]:
        product = build.elementwise("multiply", product, factor)
    return product


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
            found[dim] = build.elementwise("remainder", rest, size)
            rest = build.elementwise("divide", rest, size)
    return found


def _write(
    op: DynamicScatterLowering,
    build: Builder,
    operands: Sequence[Value],
    indices: Value,
    updates: Sequence[Value],
    coordinates: Mapping[int, Value],
    captured: Mapping[Value, Value],
) -> list[Value]:
    """The operands after the window at one position.

    Args:
      op: the scatter.
      build: where to build.
      operands: the tensors to write into, in the region's types.
      indices, updates: as given.
      coordinates: the position: a coordinate for each dim of the updates that is looped over, in the start type.
      captured: see `lift`.
    """
    scatter, facts = op.scatter, op.facts
    element, places = _start_type(op), scatter.update_dim_of
    window: list[Extent] = [
        extent_of(build, updates[0], places[d], element) if d in places and places[d] not in coordinates else 1
        for d in range(scatter.rank)
    ]
    zero = build.constant(0, (), element)
    starts = _starts(op, build, operands[0], indices, updates[0], coordinates)
    is_inside: Value | None = None
    for dim in facts.unproved:
        size = extent_of(build, operands[0], dim, element)
        last = _last(build, size, window[dim], element)
        placed = build.clamp(zero, starts[dim], last)
        here = build.compare(placed, "EQ", starts[dim])
        is_inside = here if is_inside is None else build.elementwise("and", is_inside, here)
        starts[dim] = placed
    taken: list[Extent] = [
        1 if d in coordinates else extent_of(build, updates[0], d, element) for d in range(len(scatter.updates_shape))
    ]
    first = [coordinates.get(d, zero) for d in range(len(taken))]
    windows = [
        build.convert(reshaped(build, part(build, u, first, taken), window, element), t)
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


def _last(build: Builder, size: Extent, window: Extent, element: str) -> Value:
    """The last start that is inside, D - W."""
    if isinstance(size, int) and isinstance(window, int):
        return build.constant(size - window, (), element)
    return build.elementwise("subtract", scalar(build, size, element), scalar(build, window, element))


def _starts(
    op: DynamicScatterLowering,
    build: Builder,
    operand: Value,
    indices: Value,
    updates: Value,
    coordinates: Mapping[int, Value],
) -> list[Value]:
    """The start in each operand dim: of the index vector, the position in a batching dim, or 0."""
    scatter, facts = op.scatter, op.facts
    element, k = _start_type(op), len(scatter.index_dims)
    starts = [build.constant(0, (), element)] * scatter.rank
    for operand_dim, position in scatter.batching:
        starts[operand_dim] = coordinates[scatter.scatter_dims[position]]
    if not k:
        return starts
    where = [coordinates[d] for d in scatter.scatter_dims]
    sizes = [1] * len(where)
    if scatter.index_vector_dim < len(indices.shape):
        where.insert(scatter.index_vector_dim, build.constant(0, (), element))
        sizes.insert(scatter.index_vector_dim, k)
    found = build.dynamic_slice(indices, where, sizes) if where else indices
    vector = _in_start_type(build, build.reshape(found, (k,)), element)
    for component, dim in enumerate(scatter.index_dims):
        starts[dim] = build.reshape(build.slice(vector, [component], [component + 1]), ())
    for dim in facts.split:
        place = scatter.update_dim_of[dim]
        extent = scalar(build, extent_of(build, updates, place, element), element)
        size = scalar(build, extent_of(build, operand, dim, element), element)
        low = build.elementwise("subtract", build.constant(0, (), element), extent)
        starts[dim] = build.elementwise("add", build.clamp(low, starts[dim], size), coordinates[place])
    return starts


def _in_start_type(build: Builder, vector: Value, element: str) -> Value:
    """The index vector in the start type, values beyond it saturated: they are beyond every size, too (trap 6)."""
    least, greatest = type_range(vector.element_type) or (0, 0)
    lowest, highest = type_range(element) or (0, 0)
    if greatest > highest:
        limit = build.constant(highest, vector.static_shape, vector.element_type)
        vector = build.elementwise("minimum", vector, limit)
    if least < lowest:
        limit = build.constant(lowest, vector.static_shape, vector.element_type)
        vector = build.elementwise("maximum", vector, limit)
    return build.convert(vector, element)
