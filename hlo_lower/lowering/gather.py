"""`stablehlo.gather` for consumers that do not clamp its starts, or have no gather: what a paged cache is read by.

A gather clamps its starts so that each window lies inside, as `dynamic_slice` does. Several consumers do not: they read
beyond the operand, or end. Where the target says so, and the starts are not proved to be inside, they are clamped in
front of the gather; where it has no gather at all, windows are read otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import WIDE_FLOATS, element_type, type_range
from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.facts.gather.canonical import CanonicalGather, gather_in_order, read_gather
from hlo_lower.facts.gather.facts import GatherFacts, GatherStrategy, TakenGather, gather_facts
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import Extent, broadcast_like, extent_of, scalar, vector
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.kind import Candidate, Context, Kind, OpLowering, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.loops import StructuredLoop, Values
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.ranks import refused_rank
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.ops.names import ADD, GATHER, OR
from hlo_lower.ops.quirks.moves import BY_ROWS
from hlo_lower.ops.refused_forms import refused_form

rules = RuleList()
in_its_place = partial(rules.lowers, GATHER, taken={TakenGather.NOT})


class GatherKind(Kind):
    """Gathers of static shape."""

    name = op = GATHER
    stage = Stage.LOWERED
    domains = GatherFacts.domains
    families = (rules,)
    owned = frozenset({"dimension_numbers", "slice_sizes", "indices_are_sorted"})

    def concerns(self, options: Options) -> bool:
        return bool(options.target.gather or options.target.max_rank) or super().concerns(options)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where it has no canonical one, None where it then needs none."""
        takes = taken_by(context, node)
        if not node.is_static:
            return None
        found = read_gather(node)
        if found is None:
            return None if takes is TakenGather.WHOLE else self.subject(context, node)
        facts = gather_facts(found, context.analysis, takes=takes, costs=context.target.costs_there)
        otherwise = replace(facts, taken=TakenGather.NOT)
        strategies = [Candidate(otherwise.with_strategy(strategy), own="strategy") for strategy in facts.strategies]
        if facts.taken is not TakenGather.NOT:
            strategies.insert(0, Candidate(facts))
        strategies.append(Candidate(otherwise.with_strategy(GatherStrategy.MANY)))

        return Subject(self, node, GATHER, strategies, lambda told, build: GatherLowering(found, told, build))

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        if not subject.candidates:
            return Code.NO_CANONICAL_GATHER()
        return super().why_left(context, subject, refused)


def taken_by(context: Context, node: Node) -> TakenGather:
    """How a target takes a gather."""
    target = context.target
    types = dtypes_on(node)
    if target.refusal(GATHER, types) is not None:
        found = read_gather(node) if node.is_static else None
        if found is None or target.refusal(GATHER, {found.operand.element_type, found.start_type}) is not None:
            return TakenGather.NOT
        is_of_rows = refused_form(context.graph, target, node, GATHER) in BY_ROWS
        return TakenGather.ROWS if is_of_rows else TakenGather.AT_OTHERS
    if refused_rank(target, node) is not None:
        return TakenGather.ROWS
    if (form := refused_form(context.graph, target, node, GATHER)) is not None:
        return TakenGather.ROWS if form in BY_ROWS else TakenGather.ORDERED
    return TakenGather.IN_BOUNDS if target.gather else TakenGather.WHOLE


@dataclass(frozen=True)
class GatherLowering:
    """What a rule is given: the gather, its facts, and a builder in front of it."""

    gather: CanonicalGather
    facts: GatherFacts
    build: Builder

    def starts(self) -> dict[int, Value]:
        """For each operand dim that is not read from 0 the starts of all windows, inside: [count]."""
        return self.gather.starts(self.build, clamp=not self.facts.in_bounds)


@rules.lowers(GATHER, taken={TakenGather.WHOLE}, form="the gather itself")
def gather_to_itself(op: GatherLowering) -> Sequence[Value]:
    """Leave a gather that the target takes: any, or one whose starts are proved to be in bounds.

        %r = stablehlo.gather %operand, %indices   ->   the same

    Equal: it is the same operation, and clamping starts that are inside changes none of them.
    """
    return op.gather.node.results


@rules.lowers(GATHER, taken={TakenGather.IN_BOUNDS}, form="gather(operand, clamp(0, starts, D - W))")
def gather_to_clamped_gather(op: GatherLowering) -> Sequence[Value]:
    """Clamp the starts in front of the gather.

        %inside = minimum(maximum(%indices, 0), D - W)      along the index vector, in the indices' own type
        %r      = stablehlo.gather %operand, %inside

    Equal: the specification clamps a start to [0, D - W] before it reads; clamping twice is clamping once. A type that
    does not hold D - W holds nothing beyond it either, so its own greatest value does as the bound. The flag that
    indices are sorted stays true, because clamping keeps their order.
    """
    node = op.gather.node
    inside = op.gather.clamped_indices(op.build)
    return op.build.clone(node, [op.gather.operand, inside], [result.raw.type for result in node.results]).results


@rules.lowers(GATHER, taken={TakenGather.AT_OTHERS}, form="gather(operand, clamp(0, starts, D - W) as i32)")
def gather_to_gather_at_others(op: GatherLowering) -> Sequence[Value]:
    """Give the starts in another type, where the target refuses a gather for the type of its starts alone.

        %inside = convert (minimum(maximum(%indices, 0), D - W))
        %r      = stablehlo.gather %operand, %inside            and in the order of `numpy.take`, as below

    Equal: as with clamped starts, which the other type holds: it holds every size.
    """
    inside = op.build.convert(op.gather.clamped_indices(op.build), op.gather.start_type)
    return [gather_in_order(op.build, op.gather, inside)]


@rules.lowers(GATHER, taken={TakenGather.ORDERED}, form="gather with its positions in the place of the axis; transpose")
def gather_to_ordered_gather(op: GatherLowering) -> Sequence[Value]:
    """Gather whole rows in the order of `numpy.take`, and move dims afterwards.

        %r = gather %operand, %indices, offset_dims = [0]   ->   transpose(gather %operand, %indices, offset_dims = [1])

    Equal: `offset_dims` only say which dims of the result are those of the window. Index vectors are moved last, which
    says nothing but where they stand.
    """
    return [gather_in_order(op.build, op.gather, op.gather.indices)]


@rules.lowers(GATHER, taken={TakenGather.ROWS}, form="gather of rows by their numbers")
def gather_to_numbered_rows(op: GatherLowering) -> Sequence[Value]:
    """Gather rows of [rows, width] by their numbers, one for each place of a window along the dims that it is in.

        %r = gather %operand[6, 4], windows [2, 4] at starts s   ->   rows [s, s + 1] of %operand, reshaped

    Equal: an element stands at its start and its place in the window, in row-major order of those dims; the dims that a
    window has whole are the row. Starts are clamped before, so that all rows are in bounds.
    """
    build, gather = op.build, op.gather
    shape, window, count = gather.shape, gather.window, gather.count
    if 0 in (*shape, count, *window):
        raise DoesNotApply("there is nothing to read")
    starts = op.starts()
    placed = [d for d in range(len(shape)) if d in starts or window[d] < shape[d]]
    whole = [d for d in range(len(shape)) if d not in placed]
    places = (count, *(window[d] for d in placed))
    number = build.constant(0, places, gather.start_type)
    for k, d in enumerate(placed, start=1):
        at = build.iota(places, k, gather.start_type)
        at = build.add(at, build.broadcast(starts[d], places, [0])) if d in starts else at
        number = build.add(build.multiply(number, build.constant(shape[d], places, gather.start_type)), at)
    width = prod(shape[d] for d in whole)
    table = build.reshape(build.transpose(gather.operand, [*placed, *whole]), (prod(shape[d] for d in placed), width))
    found = build.gather_rows(table, build.reshape(number, (prod(places), 1)), 0)
    spread = build.reshape(found, (*places, *(shape[d] for d in whole)))
    order = [*placed, *whole]
    return [gather.result_of(build, build.transpose(spread, [0, *(1 + order.index(d) for d in range(len(order)))]))]


@in_its_place(strategy={GatherStrategy.EMPTY}, form="a constant without elements")
def gather_to_nothing(op: GatherLowering) -> Sequence[Value]:
    """Give a result without elements.

    Equal: two tensors without elements, of one type, are the same whatever is read.
    """
    result = op.gather.node.result()
    return [op.build.zeros_like(result)]


@in_its_place(strategy={GatherStrategy.FEW}, form="for each window a dynamic_slice; concatenate")
def gather_to_dynamic_slices(op: GatherLowering) -> Sequence[Value]:
    """Read each window by an op of its own: the pages of a short table.

        %w[n] = dynamic_slice %operand, starts[n]           0 in dims that are neither indexed nor batching
        %r    = concatenate %w[0], %w[1], ...               under the result's order of dims

    Equal: position n reads the window at its clamped start, and so does `dynamic_slice`, which clamps alike. Batching
    dims start at the position's own coordinate.
    """
    build, gather = op.build, op.gather
    starts = op.starts()
    windows: list[Value] = []
    for k in range(gather.count):
        own = {d: build.reshape(build.slice(column, [k], [k + 1]), ()) for d, column in starts.items()}
        windows.append(_window(build, gather, gather.operand, own))
    return [gather.result_of(build, build.concatenate(windows, 0))]


@in_its_place(
    strategy={GatherStrategy.SHORT_AXIS},
    form="sum over the rows of select(iota == row, operand, 0), floats as integers of their bits",
)
def gather_to_compare_sum(op: GatherLowering) -> Sequence[Value]:
    """Read rows of a short operand by comparing each row's number with each that is asked for.

        %bits = bitcast_convert %operand                             floats as integers of as many bits
        %hit  = %row[n] == iota over the rows                        [B, N, D]
        %r    = reduce add over the rows: select(%hit, %bits, 0)     [B, N, W]; "or" of truths; and back

    Equal: exactly one row is hit, because clamped starts are inside, and 0 changes nothing that is added to it. Floats
    are added as the integers that their bits are, because their own sum would lose the sign of -0.0, the payload of a
    NaN and, where a machine flushes them, subnormal numbers; no row is multiplied, so nothing of one row reaches
    another. With several indexed dims the row's number is their starts in row-major order, each one clamped before.
    """
    build, gather = op.build, op.gather
    numbers, batching = gather.numbers, gather.batching
    element = gather.operand.element_type
    order = [*batching, *numbers.start_index_map]
    others = [d for d in range(len(gather.shape)) if d not in order]
    shape = gather.shape
    b, w = prod(shape[d] for d in batching), prod(gather.window[d] for d in others)
    rows = prod(shape[d] for d in numbers.start_index_map)
    cut = build.slice(
        gather.operand, [0] * len(shape), [shape[d] if d in order else gather.window[d] for d in range(len(shape))]
    )
    if element in WIDE_FLOATS:
        cut = build.bitcast(cut, element_type(element).unsigned_type)
    table = build.reshape(build.transpose(cut, [*order, *others]), (b, rows, w))

    places = [*batching.values(), *(k for k in range(len(gather.positions)) if k not in batching.values())]
    row = build.reshape(_row(build, gather, op.starts()), gather.positions)
    n = gather.count // max(b, 1)
    row = build.reshape(build.transpose(row, places), (b, n))
    flat = (b, n, rows)
    hit = build.compare(build.broadcast(row, flat, [0, 1]), "EQ", build.iota(flat, 2, gather.start_type))

    wide = (*flat, w)
    nothing = build.constant(0, (), cut.element_type)
    chosen = build.select(
        build.broadcast(hit, wide, [0, 1, 2]), build.broadcast(table, wide, [0, 2, 3]), build.broadcast(nothing, wide)
    )
    found = reduce_along(build, chosen, nothing, 2, OR if element == "i1" else ADD)
    spread = build.reshape(found, (*(gather.positions[k] for k in places), w))
    back = [places.index(k) for k in range(len(places))]
    windows = build.reshape(build.transpose(spread, [*back, len(places)]), (gather.count, *gather.window))
    if element in WIDE_FLOATS:
        windows = build.bitcast(windows, element)
    return [gather.result_of(build, windows)]


@in_its_place(form="while over the windows: dynamic_slice, dynamic_update_slice")
def gather_to_while(op: GatherLowering) -> Sequence[Value]:
    """Read the windows one after the other.

        while n < N: %r[n] = dynamic_slice %operand, starts[n]

    Equal: as with one op for each window; each iteration writes a place of the result that no other one writes.
    """
    build, gather = op.build, op.gather
    starts = op.starts()
    shape = (gather.count, *gather.window)
    empty = build.broadcast(build.zero_of(gather.operand), shape)

    def iteration(inner: Builder, turn: Value, carried: Values, invariant: Values) -> Sequence[Value]:
        operand, *columns = invariant
        own = {
            d: inner.reshape(inner.dynamic_slice(column, [turn], [1]), ())
            for d, column in zip(starts, columns, strict=True)
        }
        zero = inner.constant(0, (), gather.start_type)
        window = _window(inner, gather, operand, own)
        return [inner.dynamic_update_slice(carried[0], window, [turn, *(zero for _ in gather.window)])]

    loop = StructuredLoop(gather.count, gather.start_type)
    found = loop.emit_while(build, [empty], [gather.operand, *starts.values()], iteration)
    return [gather.result_of(build, found[0])]


def _window(build: Builder, gather: CanonicalGather, operand: Value, starts: Mapping[int, Value]) -> Value:
    """The window at scalar starts, 0 where a dim has none: [1, *window]."""
    zero = build.constant(0, (), gather.start_type)
    at = [starts.get(d, zero) for d in range(len(gather.shape))]
    return build.reshape(build.dynamic_slice(operand, at, gather.window), (1, *gather.window))


def _row(build: Builder, gather: CanonicalGather, starts: dict[int, Value]) -> Value:
    """The number of the row that each window is, indexed dims in row-major order: [count]."""
    row: Value | None = None
    for d in gather.numbers.start_index_map:
        if row is not None:
            size = build.constant(gather.shape[d], row.static_shape, gather.start_type)
            row = build.multiply(row, size)
        row = starts[d] if row is None else build.add(row, starts[d])
    assert row is not None
    return row


# --- gathers whose shapes are known at run time only, and sizes given as a value ---


dynamic_gather_rules, plain_rules = RuleList(), RuleList()

DYNAMIC_GATHER = "stablehlo.gather of dynamic shape"
"""The op name under which rules for these are registered."""


@dataclass(frozen=True)
class DynamicGatherFacts(FactsByName):
    """How the target takes it."""

    taken: TakenGather


@dynamic_gather_rules.lowers(DYNAMIC_GATHER, taken={TakenGather.WHOLE}, form="the gather itself")
def dynamic_shape_gather_to_itself(op: OpLowering[DynamicGatherFacts]) -> Sequence[Value]:
    """Leave a gather that the target takes. Equal: it is the same operation."""
    return op.node.results


@dynamic_gather_rules.lowers(
    DYNAMIC_GATHER,
    taken={TakenGather.IN_BOUNDS},
    form="gather(operand, clamp(0, starts, D - W)), D and the shape of the starts from get_dimension_size",
)
def dynamic_shape_gather_to_clamped_gather(op: OpLowering[DynamicGatherFacts]) -> Sequence[Value]:
    """Clamp the starts in front of the gather, by limits that are computed at run time.

    Equal: as with static shapes. A limit that the indices' type does not hold
    becomes the type's greatest value before it is converted, which bounds nothing either.
    """
    build, node = op.build, op.node
    operand, indices = node.operands
    numbers, window = mlir.gather_dimension_numbers(node.raw), node.integers("slice_sizes")
    element = indices.element_type
    low, high = type_range(element) or (0, 0)
    limits = [_limit(build, operand, d, window[d], element, high) for d in numbers.start_index_map]
    if low < 0:
        zeros = broadcast_like(build, build.constant(0, (), element), indices)
        indices = build.maximum(indices, zeros)
    if limits:
        is_implicit = numbers.index_vector_dim == len(indices.shape)
        bound = scalar(build, limits[0], element) if is_implicit else vector(build, limits, element)
        bound = broadcast_like(build, bound, indices, [] if is_implicit else [numbers.index_vector_dim])
        indices = build.minimum(indices, bound)
    return build.clone(node, [operand, indices], [result.raw.type for result in node.results]).results


@plain_rules.lowers(PLAIN, named={PlainOp.DYNAMIC_GATHER}, form="gather with these sizes as an attribute")
def dynamic_gather_to_gather(op: PlainLowering) -> Sequence[Value]:
    """Make an attribute of sizes that are a constant, and clamp the starts, which not every consumer does.

    Equal: the sizes are the only difference between the two ops, and clamping twice is clamping once.
    """
    build, node = op.build, op.node
    operand, indices, sizes = node.operands
    found = sizes.constant()
    if found is None:
        raise DoesNotApply("its sizes are not constant")
    attributes = {**mlir.attributes_of(node.raw), "slice_sizes": mlir.dense_i64([int(n) for n in found])}
    made = build.op(GATHER, [operand, indices], [node.result().raw.type], attributes)
    gather = read_gather(made)
    if gather is None:
        raise DoesNotApply("it has no canonical form")
    inside = gather.clamped_indices(build)
    clamped = build.clone(made, [operand, inside], [node.result().raw.type])
    build.forget(made)
    made.raw.erase()
    return clamped.results


def _limit(build: Builder, operand: Value, dim: int, window: int, element: str, high: int) -> Extent:
    """The greatest start in a dim, in the indices' type."""
    extent = extent_of(build, operand, dim, "i32")
    if isinstance(extent, int):
        return min(extent - window, high)
    limit = build.subtract(extent, build.constant(window, (), "i32"))
    if high < (1 << 31) - 1:
        limit = build.minimum(limit, build.constant(high, (), "i32"))
    return build.convert(limit, element)


class DynamicGatherKind(GatherKind):
    """Gathers of dynamic shape."""

    name = DYNAMIC_GATHER
    domains = DynamicGatherFacts.domains
    families = (dynamic_gather_rules,)

    def read(self, context: Context, node: Node) -> Subject | None:
        if node.is_static:
            return None
        return self.subject(context, node, DynamicGatherFacts(taken_by(context, node)))

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        return Code.ONLY_CLAMPED()
