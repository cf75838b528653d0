"""`stablehlo.gather` for consumers that do not clamp its starts, or have no gather: what a paged cache is read by.

A gather clamps its starts so that each window lies inside, as `dynamic_slice` does. Several consumers do not: they read
beyond the operand, or end. Where the target says so, and the starts are not proved to be inside, they are clamped in
front of the gather; where it has no gather at all, windows are read otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.base.registry import RuleList
from hlo_lower.facts.gather.canonical import CanonicalGather
from hlo_lower.facts.gather.facts import GatherFacts, GatherStrategy, TakenGather
from hlo_lower.facts.gather.window_order import gathered_in_order
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.ops.names import ADD, GATHER, OR

rules = RuleList()
in_its_place = partial(rules.lowers, GATHER, taken={TakenGather.NOT})


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
    inside = op.gather.clamped(op.build)
    return op.build.clone(node, [op.gather.operand, inside], [result.raw.type for result in node.results]).results


@rules.lowers(GATHER, taken={TakenGather.ORDERED}, form="gather with its positions where the axis stood; transpose")
def gather_to_ordered_gather(op: GatherLowering) -> Sequence[Value]:
    """Gather whole rows in the order of `numpy.take`, and move dims afterwards.

        %r = gather %operand, %indices, offset_dims = [0]   ->   transpose(gather %operand, %indices, offset_dims = [1])

    Equal: `offset_dims` only say which dims of the result are those of the window. Index vectors are moved last, which
    says nothing but where they stand.
    """
    return [gathered_in_order(op.build, op.gather)]


@in_its_place(strategy={GatherStrategy.EMPTY}, form="a constant without elements")
def gather_to_nothing(op: GatherLowering) -> Sequence[Value]:
    """Give a result without elements.

    Equal: two tensors without elements, of one type, are the same whatever is read.
    """
    result = op.gather.node.result()
    return [op.build.broadcast(op.build.zero(mlir.tensor_element(result.raw.type)), result.static_shape)]


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
        cut = build.bitcast(cut, element_type(element).unsigned)
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
    empty = build.broadcast(build.zero(mlir.tensor_element(gather.operand.raw.type)), shape)

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
