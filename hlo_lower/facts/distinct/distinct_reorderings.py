"""Rules for what makes distinct or sorted elements: sort, top_k, gather, scatter and running sums.

Each function says in its docstring why what it returns is true.
"""

from collections.abc import Mapping
from dataclasses import replace

from hlo_lower.base.causes import Code
from hlo_lower.facts.distinct.axis_facts import (
    UNKNOWN,
    AxisFacts,
    DistinctQueries,
    Entries,
    Monotonicity,
    Rule,
    composed,
    count_of,
    of_form,
)
from hlo_lower.facts.forms.linear import Linear, Position, positions
from hlo_lower.facts.forms.places import Entry, Place, origin_of
from hlo_lower.facts.ranges.running_sums import running_sum
from hlo_lower.facts.sort.comparator import sort_order
from hlo_lower.facts.values.budget import MAX_POSITIONS
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops import names


def _sort(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A sort puts the elements of each line along its dim into another order, every operand's into the same one.

    So what differs pairwise still does, and a permutation stays one: an iota that is carried along is an argsort. The
    operand that the comparator sorts by first goes up, and if its elements differ it goes up strictly. All of that
    holds only for a comparator that is proved to be a strict weak order.
    """
    order, number, place = sort_order(node), entries.site.value.number, entries.place
    dim = len(place) - 1 if node.attribute("dimension") is None else node.integer("dimension") % len(place)
    if order is None:
        return UNKNOWN
    found = queries.whole_dim(entries.to(node.operand(number)), dim)
    if found is None:
        return UNKNOWN
    whole, row = found
    whole = whole.without_order()
    if order.operand == number and order.is_ascending:
        whole = replace(whole, order=Monotonicity.INCREASING if whole.is_distinct else Monotonicity.NON_DECREASING)
    step = Evidence.at(node, Code.SORTED_ALONG(dim))
    return queries.picked(whole.because(step), place[dim], row.size, entries.axes)


def _top_k(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """The second result of a top_k numbers the elements that it picks from a line: k different ones of n, so each
    number once, and all of them if k = n."""
    value, place, last = entries.site.value, entries.place, len(entries.place) - 1
    if value.number != 1 or not node.operand(0).is_static or positions(place[:last]) & entries.varying:
        return UNKNOWN
    size, of = value.static_shape[last], node.operand(0).static_shape[last]
    numbers = AxisFacts(1, (), size == of, evidence=(Evidence.at(node, Code.PICKED(size, of)),))
    return queries.picked(numbers, place[last], size, entries.axes)


def _gather(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """`operand[index[p]]` with indices that differ, and lie inside so that none is clamped: different elements.

    One component of the index vector may move along the axes; the others stay, whatever they are. The operand is looked
    at along that dim, together with the dims that the remaining axes move along in the operand directly. A permutation
    of a permutation is a permutation.
    """
    operand, indices = node.operand(0), node.operand(1)
    if not (operand.is_static and indices.is_static):
        return UNKNOWN
    axes, origin, sizes = entries.axes, origin_of(node, entries.place), node.integers("slice_sizes")
    moving = {dim: queries.moves_with(entries.to(indices, at)) for dim, at in origin.starts.items()}
    moving = {dim: along for dim, along in moving.items() if along}
    if len(moving) > 1:
        return UNKNOWN
    before: list[Linear] = []
    for dim, offset in enumerate(origin.offsets):
        if dim in origin.starts and dim not in moving and operand.static_shape[dim] > 1:
            # Some place that stays: the start is clamped, so it and the whole slice lie inside.
            start = queries.fresh(operand.static_shape[dim] - sizes[dim] + 1)
            offset = offset.plus(Linear(0, {start: 1})) if start.size > 1 else offset
        before.append(offset)
    if not moving:
        return queries.of(entries.to(operand, tuple(before)))
    (dim, picks), *_ = moving.items()
    extent = operand.static_shape[dim]
    if sizes[dim] != 1 or axes[: len(picks)] != picks:
        return UNKNOWN
    inner = queries.of(entries.to(indices, origin.starts[dim], picks))
    low, high = queries.hull(entries.site.to(indices))
    is_inside = (inner.covers and count_of(picks) <= extent) or (low >= 0 and high < extent)
    if not is_inside:
        low, high = _component_hull(queries, node, entries.site.to(indices), dim)
        is_inside = low >= 0 and high < extent
    if not is_inside or positions(before) & {axis.dim for axis in picks}:
        return UNKNOWN
    row = queries.fresh(extent)
    before[dim] = Linear(0, {row: 1}) if extent > 1 else Linear(0)
    outer = queries.of(entries.to(operand, tuple(before), (row, *axes[len(picks) :])))
    found = composed(outer, inner, extent, count_of(picks)).because(Evidence.at(node, Code.GATHERED_APART()))
    # Where equal indices follow each other, the faster axes begin anew without a step up.
    is_ordered = inner.order is Monotonicity.INCREASING or len(picks) == len(axes)
    return found if is_ordered else found.without_order()


def _component_hull(queries: DistinctQueries, node: Node, indices: Site, dim: int) -> tuple[int, int]:
    """The hull of the component of an index vector that addresses a dim of the operand."""
    numbers = mlir.gather_dimension_numbers(node.raw)
    known, ivd = queries.ranges.of(indices), numbers.index_vector_dim
    if ivd == len(known.shape):
        return known.hull()
    k = numbers.start_index_map.index(dim)
    low, high = known.part(tuple(k if d == ivd else slice(None) for d in range(len(known.shape))))
    return (int(low.min()), int(high.max())) if low.size else (0, -1)


def _scatter(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """`zeros.at[perm].set(v)`: where the indices are a permutation of all rows, each row is written exactly once, so
    the result is v in another order; with `v = iota` it is the inverse of the permutation.

    Rows are single elements here, along one operand dim; every other operand dim is a batching dim or is addressed by
    the scatter position itself, so that each of its places is a case of its own.
    """
    value, place, block = entries.site.value, entries.place, node.blocks[0]
    shape = value.static_shape
    if len(node.results) != 1 or block.terminator.operand(0) != block.argument(1):
        return UNKNOWN
    numbers = mlir.ScatterNumbers.of(node.raw)
    indices, updates, ivd = node.operand(1), node.operand(2), numbers.index_vector_dim
    scatter_dims, addressed = updates.static_shape, numbers.scatter_dims_to_operand_dims
    if numbers.update_window_dims or updates.element_type != value.element_type:
        return UNKNOWN
    pairs = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    batched = {d: n - (n > ivd) for d, n in pairs}
    if len(scatter_dims) != len(shape) or sorted((*addressed, *batched)) != list(range(len(shape))):
        return UNKNOWN
    symbols = [Linear(0, {queries.fresh(n): 1}) if n > 1 else Linear(0) for n in scatter_dims]

    def component(k: int, at: list[Linear]) -> Place:
        return tuple(at) if ivd == len(indices.shape) else (*at[:ivd], Linear(k), *at[ivd:])

    rows: list[int] = []
    for k, dim in enumerate(addressed):
        form = queries.forms.of(Entry(entries.site.to(indices), component(k, symbols)))
        own = [n for n, s in enumerate(symbols) if s.terms and s.terms == form.terms and n not in batched.values()]
        is_own = bool(own) and not form.constant and not form.moved and scatter_dims[own[0]] == shape[dim]
        if is_own and shape[dim] <= 1 << max(form.width - 1, 0):
            batched[dim] = own[0]
        else:
            rows.append(dim)
    free = [n for n in range(len(scatter_dims)) if n not in batched.values()]
    if len(rows) != 1 or len(free) != 1 or scatter_dims[free[0]] != shape[rows[0]]:
        return UNKNOWN
    dim, size = rows[0], shape[rows[0]]
    if positions([c for d, c in enumerate(place) if d != dim]) & entries.varying:
        return UNKNOWN
    at = [Linear(0)] * len(scatter_dims)
    for operand_dim, n in batched.items():
        at[n] = place[operand_dim]
    position: Position = queries.fresh(size)
    at[free[0]] = Linear(0, {position: 1}) if size > 1 else Linear(0)
    index = queries.of(entries.to(indices, component(addressed.index(dim), at), (position,)))
    if not index.covers and size > 1:
        return UNKNOWN
    written = queries.of(entries.to(updates, tuple(at), (position,))).without_order()
    step = Evidence.at(node, Code.WRITTEN_ONCE(), index.evidence)
    return queries.picked(written.because(step), place[dim], size, entries.axes)


def _running_sum(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A running sum of numbers that are at least s goes up by s from one element to the next, as long as no sum leaves
    the type: with s >= 1 any two elements are at least s apart; with s = 0 it never goes down."""
    found, place = running_sum(queries.ranges, node, entries.site), entries.place
    if found is None or positions([c for d, c in enumerate(place) if d != found.dim]) & entries.varying:
        return UNKNOWN
    order = Monotonicity.INCREASING if found.step >= 1 else Monotonicity.NON_DECREASING
    known = Code.RUNNING_STEPS(found.step, found.total)
    whole = AxisFacts(
        found.step, (), False, Monotonicity.UNKNOWN if found.is_reversed else order, (Evidence.at(node, known),)
    )
    return queries.picked(whole, place[found.dim], entries.site.value.static_shape[found.dim], entries.axes)


def _split(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A reshape to fewer dims: a position along the whole of a flattened dim is as many positions as it was made
    of, in the same order, so that one axis becomes several."""
    (_, place, axes), operand, after = entries, node.operand(0), node.result().static_shape
    if not operand.is_static:
        return UNKNOWN
    long = [d for d, size in enumerate(after) if size > 1]
    if len(long) != 1 or not (place[long[0]].constant == 0 and len(place[long[0]].terms) == 1):
        return UNKNOWN
    (axis, stride), *_ = place[long[0]].terms.items()
    if not isinstance(axis, Position) or axis not in axes or stride != 1 or axis.size != after[long[0]]:
        return UNKNOWN
    if any(axis.dim in positions([c]) for d, c in enumerate(place) if d != long[0]):
        return UNKNOWN
    digits = [queries.fresh(size) for size in operand.static_shape]
    at = tuple(Linear(0, {digit: 1}) if digit.size > 1 else Linear(0) for digit in digits)
    number = axes.index(next(a for a in axes if a == axis))
    return queries.of(entries.to(operand, at, (*axes[:number], *digits, *axes[number + 1 :])))


def _pieces(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """Slices of one tensor put together along a dim, as a roll does: if they overlap nowhere, their elements are
    different ones of that tensor, and all of them if they leave nothing out."""
    if not all(operand.is_static for operand in node.operands):
        return UNKNOWN
    dim, source = node.integer("dimension"), None
    rows: list[int] = []
    for operand in node.operands:
        cut, own = operand.node, operand
        begin = 0
        if cut is not None and cut.name == names.SLICE:
            own, begin = cut.operand(0), cut.integers("start_indices")[dim]
            strides, starts = cut.integers("strides"), cut.integers("start_indices")
            if any(s != 1 for s in strides) or any(s for d, s in enumerate(starts) if d != dim):
                return UNKNOWN
        if source is not None and own != source:
            return UNKNOWN
        source = own
        rows += range(begin, begin + operand.static_shape[dim])
    if source is None or len(set(rows)) != len(rows) or len(rows) > MAX_POSITIONS:
        return UNKNOWN
    sides = zip(source.static_shape, node.result().static_shape, strict=True)
    if any(a != b for d, (a, b) in enumerate(sides) if d != dim):
        return UNKNOWN
    found = queries.whole_dim(entries.to(source), dim)
    if found is None:
        return UNKNOWN
    whole, row = found
    is_whole = len(rows) == row.size
    moved_along = AxisFacts(1, (), is_whole, evidence=(Evidence.at(node, Code.SLICES_APART()),))
    at = of_form(entries.place[dim], entries.axes, is_exact=True)
    if at is None:
        return UNKNOWN
    count = count_of(entries.axes)
    return composed(whole, composed(moved_along, at, len(rows), count), row.size, count)


REORDERED: Mapping[str, Rule] = {
    names.SORT: _sort,
    "chlo.top_k": _top_k,
    names.GATHER: _gather,
    names.SCATTER: _scatter,
    names.REDUCE_WINDOW: _running_sum,
    names.RESHAPE: _split,
    names.CONCATENATE: _pieces,
}
