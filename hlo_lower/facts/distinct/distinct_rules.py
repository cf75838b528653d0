"""Rules for what ops leave of distinct or sorted elements.

Each function says in its docstring why what it returns is true. Sums and products are exact where the bounds of the
operands show that nothing leaves the type; where it may, only what holds modulo 2^width is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.distinct.axis_facts import (
    UNKNOWN,
    AxisFacts,
    DistinctQueries,
    Entries,
    Monotonicity,
    Ranges,
    Rule,
    best,
    compose,
    count_of,
    of_form,
    reach_of,
)
from hlo_lower.facts.forms.linear import Linear, Normalized, Position, positions
from hlo_lower.facts.forms.places import Entry, Place, origin_of, source_entry
from hlo_lower.facts.ranges.folds import running_sum
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.facts.sort.comparator import sort_order
from hlo_lower.facts.values.budget import FOLLOWED, MAX_POSITIONS
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Same
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops import names
from hlo_lower.ops.spec import MIRRORED

Hull = tuple[int, int]


def _convert(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A conversion to a type that holds all of the operand's values changes none of them."""
    operand, element_type = node.operand(0), node.result().element_type
    whole = type_range(element_type)
    if type_range(operand.element_type) is None or whole is None:
        return UNKNOWN
    found = queries.of(entries.to(operand))
    low, high = queries.hull(entries.site.to(operand))
    is_held = (whole[0] <= low and high <= whole[1]) or (found.covers and count_of(entries.axes) - 1 <= whole[1])
    return found if is_held and element_type != "i1" else UNKNOWN


def _add(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """`x + c` where c stays along the axes: the distances stay, and so does the order.

    Where the sum may wrap around it is still one-to-one modulo 2^width, so elements that differ still differ, by 1.
    Where both operands move they may be digits: see `_digits`.
    """
    if node.result().element_type == "i1":
        return UNKNOWN
    for x, c in (node.operands, node.operands[::-1]):
        if not queries.moves_with(entries.operand(c)):
            return _plus_uniform(queries, entries.to(x), queries.hull(entries.site.to(c)), _type(node))
    x, y = map(entries.to, node.operands)
    return best(_digits(queries, x, y, _type(node)), _digits(queries, y, x, _type(node)))


def _plus_uniform(queries: DistinctQueries, x: Entries, added: Hull, whole: Hull) -> AxisFacts:
    """`x + c`, c a number in a hull that stays along the axes; see `_add`."""
    found = queries.of(x)
    low, high = _hull(queries, x, found)
    if low + added[0] < whole[0] or high + added[1] > whole[1]:
        return _modulo(found)
    repeats = tuple((a + added[0], b + added[1]) for a, b in found.repeats)
    return replace(found, repeats=repeats, covers=found.covers and added == (0, 0))


def _modulo(found: AxisFacts) -> AxisFacts:
    """The facts after a map that is one-to-one modulo 2^width: elements that differ still do, by 1."""
    return AxisFacts(1, evidence=found.evidence) if found.is_distinct else UNKNOWN


def _digits(queries: DistinctQueries, x: Entries, y: Entries, whole: Hull) -> AxisFacts:
    """`x + y` where x moves along some axes alone, in steps that y never reaches across: two positions that differ in
    those are at least (x's gap - y's reach) apart; two that agree in them differ as y does along the others."""
    axes, slow = x.axes, queries.moves_with(x)
    fast = tuple(axis for axis in axes if axis not in slow)
    if not slow or not fast:
        return UNKNOWN
    x, y = x._replace(axes=slow), y._replace(axes=fast)
    first, second = queries.of(x), queries.of(y)
    (x_low, x_high), (low, high) = _hull(queries, x, first), _hull(queries, y, second)
    if not (first.is_distinct and second.is_distinct) or x_low + low < whole[0] or x_high + high > whole[1]:
        return UNKNOWN
    gap = min(first.gap - (high - low), second.gap)
    if gap <= 0:
        return UNKNOWN
    is_sorted = (
        axes == (*slow, *fast) and first.order is Monotonicity.INCREASING and second.order is Monotonicity.INCREASING
    )
    order = Monotonicity.INCREASING if is_sorted else Monotonicity.UNKNOWN
    return AxisFacts(gap, (), False, order, merge((*first.evidence, *second.evidence)))


def _subtract(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """`x - c` is a sum; `c - x` mirrors: distances stay, the order turns round, and n - 1 - perm is a permutation."""
    if node.result().element_type == "i1":
        return UNKNOWN
    a, b = map(entries.operand, node.operands)
    whole = _type(node)
    if not queries.moves_with(b):
        low, high = queries.hull(b.site)
        return _plus_uniform(queries, a, (-high, -low), whole)
    if queries.moves_with(a):
        return UNKNOWN
    found, (low, high) = queries.of(b), queries.hull(a.site)
    least, most = _hull(queries, b, found)
    if low - most < whole[0] or high - least > whole[1]:
        return _modulo(found)
    repeats = tuple((low - y, high - x) for x, y in found.repeats)
    covers = found.covers and low == high == count_of(entries.axes) - 1
    return AxisFacts(found.gap, repeats, covers, Monotonicity.UNKNOWN, found.evidence)


def _multiply(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A product with a number that is known: the distances grow by it, where nothing leaves the type."""
    if node.result().element_type == "i1":
        return UNKNOWN
    for x, c in (node.operands, node.operands[::-1]):
        low, high = queries.hull(entries.site.to(c))
        if low != high or low == 0:
            continue
        found, whole = queries.of(entries.to(x)), _type(node)
        ends = [low * end for end in _hull(queries, entries.to(x), found)]
        if min(ends) < whole[0] or max(ends) > whole[1]:
            return UNKNOWN
        repeats = tuple((min(low * a, low * b), max(low * a, low * b)) for a, b in found.repeats)
        order = found.order if low > 0 else Monotonicity.UNKNOWN
        return AxisFacts(found.gap * abs(low), repeats, found.covers and low == 1, order, found.evidence)
    return UNKNOWN


def _divide(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """Division by a positive number that stays never goes down where the dividend goes up."""
    x, d = map(entries.to, node.operands)
    if queries.moves_with(d) or queries.hull(d.site)[0] < 1:
        return UNKNOWN
    return queries.of(x).monotone()


def _clamp(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """clamp, minimum and maximum: an element stays what it is or becomes one of the bounds.

    So distinct elements are distinct except for the values of the bounds, which may repeat; a bound that no element
    goes beyond changes nothing. Between bounds that stay, the result never goes down where the operand goes up.
    """
    candidates: tuple[tuple[Entries, Entries | None, Entries | None], ...]
    if node.name == names.CLAMP:
        low, x, high = map(entries.operand, node.operands)
        candidates = ((x, low, high),)
    else:
        a, b = map(entries.operand, node.operands)
        candidates = ((a, None, b), (b, None, a)) if node.name == names.MINIMUM else ((a, b, None), (b, a, None))
    found = UNKNOWN
    for x, low, high in candidates:
        bounds = [bound for bound in (low, high) if bound is not None]
        inner = queries.of(x)
        if inner == UNKNOWN:
            continue
        least, most = _hull(queries, x, inner)
        changed: list[Hull] = []
        if low is not None and least < queries.hull(low.site)[1]:
            changed.append(queries.hull(low.site))
        if high is not None and most > queries.hull(high.site)[0]:
            changed.append(queries.hull(high.site))
        if low is not None and high is not None and queries.hull(low.site)[1] > queries.hull(high.site)[0]:
            changed.append(queries.hull(high.site))  # a low bound above the high one becomes the high one
        if not changed:
            found = best(found, inner)
            continue
        stay = not any(map(queries.moves_with, bounds))
        order = min(inner.order, Monotonicity.NON_DECREASING) if stay else Monotonicity.UNKNOWN
        repeats = tuple(dict.fromkeys((*inner.repeats, *changed)))
        found = best(found, AxisFacts(inner.gap, repeats if inner.gap else (), False, order, inner.evidence))
    return found


def _negate(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """-x: distances stay. Only the least number of the type has no opposite, and it stays what it is."""
    x = entries.to(node.operand(0))
    found = queries.of(x)
    if queries.hull(x.site)[0] <= _type(node)[0] or x.site.value.element.is_unsigned:
        return _modulo(found)
    repeats = tuple((-b, -a) for a, b in found.repeats)
    return replace(found, repeats=repeats, covers=False, order=Monotonicity.UNKNOWN)


def _type(node: Node) -> Hull:
    return type_range(node.result().element_type) or (0, 0)


def _hull(queries: DistinctQueries, entries: Entries, found: AxisFacts) -> Hull:
    """The hull of an operand; n elements that are 0 to n - 1 lie in that range whatever else is known."""
    return (0, count_of(entries.axes) - 1) if found.covers else queries.hull(entries.site)


MAPPED: Mapping[str, Rule] = {
    names.CONVERT: _convert,
    names.ADD: _add,
    names.SUBTRACT: _subtract,
    names.MULTIPLY: _multiply,
    names.DIVIDE: _divide,
    names.NEGATE: _negate,
    names.CLAMP: _clamp,
    names.MINIMUM: _clamp,
    names.MAXIMUM: _clamp,
}


# --- choices and remainders: normalised indices, drops, ring buffers ---


def _select(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A choice. Four are looked into:

    - one whose predicate is known, so that it is one of its branches;
    - `select(x < 0, x + D, x)` of a permutation, which is never negative, so it is x;
    - the same of an even run of positions with reach r < D: two elements differ by d, with gap <= d <= r, modulo 2^w
      before and, once D is added to one of them, by d, d - D or d + D, and none of those is 0 modulo 2^w if D - r and
      2^w - r - D are positive;
    - a drop: `select(mask, x, c)`, whose elements are x's or lie in the range of c, which may repeat. It is for the
      scatter to show that what lies there is written nowhere.
    """
    predicate, on_true, on_false = map(entries.operand, node.operands)
    low, high = queries.hull(predicate.site)
    if low == high:
        return queries.of(on_true if low else on_false)
    kept = _nonnegative_branch(queries, predicate.site, on_true.site, on_false.site)
    if kept is not None:
        found = queries.of(entries.to(kept.value))
        if found.covers:
            return found
    modular = best(_normalized_run(queries, entries), _congruent(queries, entries))
    if modular.gap:
        return modular
    known = UNKNOWN
    for x, c in ((on_true, on_false), (on_false, on_true)):
        low, high = queries.hull(c.site)
        if (low, high) == type_range(c.site.value.element_type):
            continue
        found = queries.of(x)
        if found.gap:
            step = Evidence.at(node, Code.DISTINCT_OR_WITHIN(low, high))
            repeats = tuple(dict.fromkeys((*found.repeats, (low, high))))
            dropped = AxisFacts(found.gap, repeats, evidence=(*found.evidence, step))
            known = dropped if not known.gap or _width(repeats) < _width(known.repeats) else known
    return known


def _nonnegative_branch(queries: DistinctQueries, predicate: Site, on_true: Site, on_false: Site) -> Site | None:
    """For a choice by `x < 0` or `x >= 0` of which x is the branch for x >= 0: x."""
    node = predicate.node
    if node is None or node.name != names.COMPARE or type_range(node.operand(0).element_type) is None:
        return None
    direction = comparison_direction(node)
    x, bound = map(predicate.to, node.operands)
    if queries.hull(x) == (0, 0):
        x, bound, direction = bound, x, MIRRORED[direction]
    kept = {"LT": on_false, "GE": on_true}.get(direction)
    return x if queries.hull(bound) == (0, 0) and kept == x else None


def _normalized_run(queries: DistinctQueries, entries: Entries) -> AxisFacts:
    """A normalised even run: see `_select`."""
    form, element = queries.forms.of(entries.entry), entries.site.value.element
    symbol = next(iter(form.terms), None)
    if not isinstance(symbol, Normalized) or form.constant or form.moved or list(form.terms.values()) != [1]:
        return UNKNOWN
    if form.width < symbol.width or element.is_unsigned or symbol.inner.width not in (0, symbol.width):
        return UNKNOWN
    known = of_form(symbol.inner, entries.axes, is_exact=False)
    if known is None:
        return UNKNOWN
    reach = reach_of(symbol.inner, entries.axes)
    gap = min(known.gap, symbol.offset - reach, (1 << symbol.width) - reach - symbol.offset)
    return AxisFacts(max(gap, 0), evidence=known.evidence) if gap > 0 else UNKNOWN


def _remainder(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A remainder of what is less than the divisor is that itself; of an even run see `_congruent`."""
    x, d = map(entries.to, node.operands)
    low, high = queries.hull(x.site)
    if low >= 0 and high < queries.hull(d.site)[0]:
        return queries.of(x)
    return _congruent(queries, entries)


def _congruent(queries: DistinctQueries, entries: Entries) -> AxisFacts:
    """What is congruent modulo m to an exact even run of reach r < m: two elements differ by d modulo m, with
    gap <= d <= r, so by at least min(gap, m - r). m of them that lie in [0, m - 1] are all of those."""
    found, axes = congruence(queries, entries.entry), entries.axes
    if found is None:
        return UNKNOWN
    known = of_form(found.form, axes, is_exact=True)
    gap = 0 if known is None else min(known.gap, found.modulus - reach_of(found.form, axes))
    if known is None or gap <= 0:
        return UNKNOWN
    low, high = queries.hull(entries.site)
    covers = count_of(axes) == found.modulus and low >= 0 and high < found.modulus
    return AxisFacts(gap, (), covers, Monotonicity.UNKNOWN, known.evidence)


def _width(ranges: Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


CHOSEN: Mapping[str, Rule] = {names.SELECT: _select, names.REMAINDER: _remainder}


# --- congruences: an element as a linear form modulo a number, as a remainder leaves it ---
#
# `jnp.mod(x, m)` is `r = remainder(x, m)`, then `select(r != 0 and (r < 0) != (m < 0), r + m, r)`: whatever the
# predicate says, both branches are congruent to x modulo m.


@dataclass(frozen=True)
class Congruence:
    """An element is congruent to a form, in whole numbers, modulo a positive number."""

    form: Linear
    modulus: int


def congruence(queries: DistinctQueries, entry: Entry, left: int = FOLLOWED) -> Congruence | None:
    """The congruence of an element of an integer tensor, or None.

    A remainder is congruent to its dividend modulo the divisor, where the dividend's form is exact; a sum with a number
    is, where it cannot wrap around; a choice is, where both branches are congruent to the same.
    """
    if left == 0:
        return None
    node = queries.ranges.sources.of(entry.site)
    if isinstance(node, Same):
        return congruence(queries, entry.of(node.site), left - 1)
    if not isinstance(node, Node):
        return None
    source = source_entry(node, entry)
    if source is not None:
        return congruence(queries, source, left - 1)
    match node.name:
        case names.REMAINDER:
            x, divisor = node.operands
            low, high = queries.hull(entry.site.to(divisor))
            form = queries.forms.of(entry.to(x))
            return Congruence(form, low) if low == high and low > 0 and queries.forms.is_exact(form, x) else None
        case names.ADD | names.SUBTRACT:
            return _sum_congruence(queries, node, entry, left)
        case names.SELECT:
            a, b = (congruence(queries, entry.to(branch), left // 2) for branch in node.operands[1:])
            if a is None or b is None or a.modulus != b.modulus:
                return None
            apart = a.form.plus(b.form, -1)
            return a if apart.is_constant and apart.constant % a.modulus == 0 else None
        case _:
            return None


def _sum_congruence(queries: DistinctQueries, node: Node, entry: Entry, left: int) -> Congruence | None:
    """A congruent element plus or minus a number that is known."""
    whole = type_range(entry.site.value.element_type)
    x, added = node.operands
    sign = 1 if node.name == names.ADD else -1
    low, high = queries.hull(entry.site.to(added))
    least, most = queries.hull(entry.site.to(x))
    if low != high or whole is None or least + sign * low < whole[0] or most + sign * low > whole[1]:
        return None
    found = congruence(queries, entry.to(x), left - 1)
    return None if found is None else Congruence(found.form.plus(Linear(sign * low)), found.modulus)


# --- what makes distinct or sorted elements: sort, top_k, gather, scatter and running sums ---


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
    return queries.at_coordinate(whole.because(step), place[dim], row.size, entries.axes)


def _top_k(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """The second result of a top_k numbers the elements that it picks from a line: k different ones of n, so each
    number once, and all of them if k = n."""
    value, place, last = entries.site.value, entries.place, len(entries.place) - 1
    if value.number != 1 or not node.operand(0).is_static or positions(place[:last]) & entries.varying:
        return UNKNOWN
    size, of = value.static_shape[last], node.operand(0).static_shape[last]
    numbers = AxisFacts(1, (), size == of, evidence=(Evidence.at(node, Code.PICKED(size, of)),))
    return queries.at_coordinate(numbers, place[last], size, entries.axes)


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
    found = compose(outer, inner, extent, count_of(picks)).because(Evidence.at(node, Code.GATHERED_APART()))
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
    return queries.at_coordinate(written.because(step), place[dim], size, entries.axes)


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
    return queries.at_coordinate(whole, place[found.dim], entries.site.value.static_shape[found.dim], entries.axes)


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
    return compose(whole, compose(moved_along, at, len(rows), count), row.size, count)


REORDERED: Mapping[str, Rule] = {
    names.SORT: _sort,
    "chlo.top_k": _top_k,
    names.GATHER: _gather,
    names.SCATTER: _scatter,
    names.REDUCE_WINDOW: _running_sum,
    names.RESHAPE: _split,
    names.CONCATENATE: _pieces,
}
