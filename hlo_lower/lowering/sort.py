"""`stablehlo.sort`, for targets that refuse it: whole, on some element types, or by more than one key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlo_lower.base.causes import Cause
from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS, element_type, type_range
from hlo_lower.base.registry import DoesNotApply, RuleList
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.sort.canonical_sort import CanonicalSort, read_sort
from hlo_lower.facts.sort.key_columns import (
    CannotCompareError,
    KeyColumn,
    comes_first,
    from_ordered_integers,
    key_columns,
    ordered_integers,
)
from hlo_lower.facts.sort.sort_facts import ExchangeStage, SortFacts, SortStrategy, sort_strategies, stages_of
from hlo_lower.facts.sort.total_order import floats_in_total_order, may_have_one_nan
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along, sort_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.kind import Candidate, Context, Kind, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.loops import StructuredLoop, Values
from hlo_lower.lowering.types.element_type import is_cast_of_storage
from hlo_lower.ops.names import ADD, BITCAST_CONVERT, GATHER, MAXIMUM, MINIMUM, NEGATE, NOT, SLICE, SORT, XOR
from hlo_lower.ops.refused_forms import refused_form
from hlo_lower.ops.targets.target import Target

TOP_K = "chlo.top_k"

rules = RuleList()


class SortKind(Kind):
    """Sorts."""

    name = op = SORT
    stage = Stage.SORTED
    domains = SortFacts.domains
    families = (rules,)
    owned = frozenset({"dimension", "is_stable"})

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its comparator is not read, None where the target takes it."""
        target = context.target
        has_sort = target.refusal(SORT, dtypes_on(node)) is None
        if has_sort and refused_form(context.graph, target, node, SORT) is None:
            return None
        found = read_sort(node)
        if isinstance(found, Cause):
            return self.subject(context, node)
        floats = {number: floats_in_total_order(key.value) for number, key in enumerate(found.keys)}
        elements = {value.element_type for value in floats.values() if value is not None}
        has_bits, in_f32 = takes_bits(target, elements), takes_bits(target, {_in_f32(element) for element in elements})
        sources = context.analysis.sources
        one_nan = {k for k, value in floats.items() if value is not None and may_have_one_nan(sources, Site(value))}
        affine, numbers = AffineAnalysis(context.analysis), enumerate(node.operands)
        facts = sort_strategies(
            found,
            target.costs,
            _gathered_operands(target, node),
            in_bits=has_bits or in_f32,
            in_f32=in_f32 and not has_bits,
            one_nan=frozenset(one_nan),
            numbering=frozenset(k for k, value in numbers if affine.counted_dim(Site(value)) == found.dim),
            has_sort=has_sort,
            has_top_k=(has_bits or in_f32) and sorts_by_top_k(target),
        )
        readers = () if found.readers == (node,) else found.readers

        return Subject(
            kind=self,
            node=node,
            label=SORT,
            candidates=[Candidate(one) for one in facts],
            given=lambda told, build: SortLowering(found, told, build),
            readers=readers,
        )

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset({"start_indices", "limit_indices", "strides"}) if node.name == SLICE else super().owns(node)

    def nodes_to_judge(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All but casts of keys to what the target stores them in, which go when types are stored."""
        return [node for node in built if not is_cast_of_storage(target, node)]

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        found = read_sort(subject.node)
        return found if isinstance(found, Cause) else super().why_left(context, subject, refused)


def _gathered_operands(target: Target, node: Node) -> frozenset[int]:
    """The operands whose rows the target gathers by positions of i32."""
    types = enumerate(operand.element_type for operand in node.operands)
    return frozenset(k for k, element in types if target.refusal(GATHER, {element, "i32"}) is None)


def takes_bits(target: Target, elements: Iterable[str]) -> bool:
    """Whether a target takes what compares the floats among some element types as integers."""
    widths = {element: element_type(element).signed_type for element in elements if element in WIDE_FLOATS}
    return all(
        target.refusal(BITCAST_CONVERT, {element, bits}) is None and target.refusal(XOR, {bits}) is None
        for element, bits in widths.items()
    )


def _in_f32(element: str) -> str:
    """The float type in which a narrower one is compared by bits that the target does not take of its own."""
    return "f32" if element in HALF_FLOATS else element


def sorts_by_top_k(target: Target) -> bool:
    """Whether a target sorts by its own top_k of integers: its table of costs says what one of all rows costs."""
    return bool(target.costs.top_k) and target.takes_whole(TOP_K, frozenset({"i32"}))


def becomes_sort(target: Target, node: Node) -> bool:
    """Whether a top_k is made a sort, to be lowered: the target refuses sorts, does not take it whole on its type, and
    takes what floats are ordered by.

    Of one of which only the values are read a converter makes a sort: LiteRT's does, which has no kernel for that.
    """
    operand = node.operand(0)
    elements = {operand.element_type, _in_f32(operand.element_type)}
    if target.refuses_op(SORT) is None or not operand.is_static or not any(takes_bits(target, {e}) for e in elements):
        return False
    is_whole = any(target.takes_whole(TOP_K, {element, "i32"}) for element in elements)
    return not is_whole or not node.result(1).is_used


# --- what a rule is given, how rows are moved, and sorts of one row ---


@dataclass(frozen=True)
class SortLowering:
    """What a rule is given: the sort, its facts, and a builder in front of it.

    A rule orders rows by `keys`, and those that are equal by their position, which is the stable order: of a sort that
    is not stable any order of equal rows is right, so that one is.
    """

    sort: CanonicalSort
    facts: SortFacts
    build: Builder

    @property
    def node(self) -> object:
        """The sort itself."""
        return self.sort.node

    @cached_property
    def keys(self) -> list[KeyColumn]:
        """The columns that decide, [A, n, C] each.

        Raises:
          DoesNotApply: floats are to be compared as they are, and the sign of a NaN among them decides.
        """
        try:
            facts = self.facts
            return key_columns(self.build, self.sort, in_bits=facts.in_bits, in_f32=facts.in_f32, one_nan=facts.one_nan)
        except CannotCompareError:
            raise DoesNotApply(
                "ordering floats that may be NaN of any sign needs their bits, and the target cannot bitcast them"
            ) from None

    @property
    def ascending(self) -> list[bool]:
        """For each key, and the position behind them, whether it goes up."""
        return [*(key.is_ascending for key in self.keys), True]

    @cached_property
    def positions(self) -> Value:
        """The positions of the rows, [A, n, C] of i32."""
        return self.build.iota(self.sort.canonical_shape, 1, "i32")

    @cached_property
    def is_told_by_keys(self) -> bool:
        """Whether all that is read can be had from the keys: then equal rows are one and the same."""
        return {key.operand for key in self.keys} >= set(self.sort.used_results)

    def results(
        self, order: Value | None, keys: Sequence[Value] = (), columns: Mapping[int, Value] | None = None
    ) -> list[Value]:
        """The values that replace what is read.

        Args:
          order: for each row that is read its position in the operands: [A, rows, C] of i32; None if not asked.
          keys: the keys in order, as far as they are known: [A, rows, C] each.
          columns: operands in order, as far as they are known.
        """
        found = dict(columns or {})
        for key, column in zip(self.keys, keys, strict=False):
            if key.operand in self.sort.used_results and key.operand not in found:
                element = self.sort.node.operand(key.operand).element_type
                found[key.operand] = from_ordered_integers(self.build, column, element)
        for number in self.sort.used_results:
            if number not in found:
                assert order is not None
                found[number] = self._sorted_operand(number, order)
        return self.sort.results_of(self.build, found)

    def _sorted_operand(self, number: int, order: Value) -> Value:
        operand = self.sort.node.operand(number)
        if number in self.facts.numbering:
            return self.build.convert(order, operand.element_type)
        column = self.sort.column(self.build, number)
        if number in self.facts.gathered:
            return gather_rows(self.build, column, order)
        a, rows, c = order.static_shape
        wide = (a, rows, self.sort.canonical_shape[1], c)
        hit = self.build.compare(
            self.build.broadcast(order, wide, [0, 1, 3]), "EQ", self.build.iota(wide, 2, order.element_type)
        )
        return select_rows(self.build, hit, column)


def gather_rows(build: Builder, column: Value, order: Value) -> Value:
    """Rows of [A, n, C] by their positions [A, rows, C], element by element, all of them inside."""
    (a, n, c), shape = column.static_shape, order.static_shape
    flat = order
    if c > 1:
        added = build.iota(shape, 2, "i32")
        product = build.multiply(flat, build.constant(c, flat.static_shape, flat.element_type))
        flat = build.add(product, added)
    if a > 1:
        base = build.multiply(build.iota(shape, 0, "i32"), build.constant(n * c, shape, "i32"))
        flat = build.add(flat, base)
    count = order.static_shape[0] * order.static_shape[1] * order.static_shape[2]
    rows = build.gather_rows(build.reshape(column, (a * n * c,)), build.reshape(flat, (count, 1)), 0)
    return build.reshape(rows, shape)


def select_rows(build: Builder, hit: Value, column: Value) -> Value:
    """For each row of the result the one row that is hit: [A, rows, n, C] of truths and [A, n, C] to [A, rows, C].

    All but one row are 0, and so their sum is that row's; floats are added as the integers that their bits are, complex
    numbers part by part.

    Raises:
      DoesNotApply: its elements are of a type that is not known here.
    """
    element = column.element_type
    if column.element.is_complex:
        return build.complex([select_rows(build, hit, part) for part in build.parts(column)])
    is_float = column.element.is_float and column.element.bits >= 8
    if not is_float and not column.element.is_integer:
        raise DoesNotApply(f"rows of {element} are not chosen by a sum")
    bits = build.bitcast(column, column.element.signed_type) if is_float or column.element.is_unsigned else column
    narrow = bits.element_type
    summed = bits if narrow in ("i32", "i64") else build.convert(bits, "i32")
    nothing = build.constant(0, (), summed.element_type)
    wide = hit.static_shape
    taken = build.select(hit, build.broadcast(summed, wide, [0, 2, 3]), build.broadcast(nothing, wide))
    found = reduce_along(build, taken, nothing, 2, ADD)
    if element == "i1":
        return build.compare(found, "NE", build.constant(0, found.static_shape, "i32"))
    found = build.convert(found, narrow)
    return found if narrow == element else build.bitcast(found, element)


@rules.lowers(SORT, strategy={SortStrategy.NOTHING}, form="the operands")
def sort_to_operands(op: SortLowering) -> Sequence[Value]:
    """Give back rows of which there is one, or none.

        %r = stablehlo.sort %x of [A, 1, C]   ->   %x

    Equal: one row is in order, whatever the comparator says.
    """
    if op.sort.readers == (op.sort.node,):
        return op.sort.node.operands
    columns = {k: op.build.slice(op.sort.column(op.build, k), *op.sort.read) for k in op.sort.used_results}
    return op.sort.results_of(op.build, columns)


# --- where the target sorts by one key, upwards ---


@rules.lowers(SORT, strategy={SortStrategy.STABLE_SORTS}, form="a stable sort by each key, the last one first")
def sort_to_stable_sorts(op: SortLowering) -> Sequence[Value]:
    """Sort by the last key, then by the one before it, and so on, each time stably and upwards.

        sort(%x, %y) by x up, then y down   ->   sort(~%y, %x, %y), then sort(%x, ~%y, %y)

    Equal: a stable sort leaves rows that are equal by its key in the order that they are in, which is that of the later
    keys, and at first that of their positions. An integer's complement, and a number's negative, are in the order
    of the number downwards, one to one.
    """
    columns, _ = _columns(op)
    for number, is_ascending in reversed(list(enumerate(op.ascending[: len(op.keys)]))):
        key, others = columns[number], [*columns[:number], *columns[number + 1 :]]
        turned, *others = sort_rows(op.build, _upwards(op, key, is_ascending), others, axis=1, stable=True)
        columns = [*others[:number], _upwards(op, turned, is_ascending), *others[number:]]
    return _results(op, columns)


def _upwards(op: SortLowering, key: Value, is_ascending: bool) -> Value:
    """A key that goes up where this one goes up, or down; twice is once."""
    if is_ascending:
        return key
    return op.build.elementwise(NEGATE if key.element.is_float else NOT, key)


# --- where it gives the greatest of any number of integers, in order ---


@rules.lowers(SORT, strategy={SortStrategy.TOP_K}, form="top_k of all rows by each key, the last one first")
def sort_to_top_k(op: SortLowering) -> Sequence[Value]:
    """Order rows by the target's top_k of the last key, those by that of the key before it, and so on.

        sort(%x, %y) by x up   ->   %order = the indices of top_k(-1 - %x, k = n);   gather of %x and %y at %order

    Equal: keys are integers, and top_k gives the greatest first, of equal ones the one that stood first. -1 - x does
    not wrap around, and is in the order of x downwards, one to one. So each top_k is a stable sort, as in
    `sort_to_stable_sorts`. Keys behind the positions decide nothing, and rows begin in the order of the positions
    upwards. Of the first key as many are asked for as are read.
    """
    build, sort = op.build, op.sort
    (a, n, c), order = sort.canonical_shape, None
    keys = _deciding(op)
    for number, key in reversed(list(enumerate(keys))):
        turned = key.value
        if key.is_ascending:
            turned = build.subtract(build.constant(-1, turned.static_shape, turned.element_type), turned)
        column = _side_by_side(build, turned)
        column = column if order is None else gather_rows(build, column, order)
        places = _places_of_greatest(build, column, n if number else sort.last)
        order = places if order is None else gather_rows(build, order, places)
    if order is None:
        order = _side_by_side(build, op.positions)
    order = build.slice(order, [0, sort.first, 0], [a * c, sort.last, 1])
    order = build.transpose(build.reshape(order, (a, c, sort.rows)), [0, 2, 1])
    others = [k for k in sort.used_results if k not in op.facts.numbering]
    return op.results(order, columns={k: _gathered(op, k, order) for k in others})


def _deciding(op: SortLowering) -> Sequence[KeyColumn]:
    """The keys in front of the positions, and these where they go down."""
    for number, key in enumerate(op.keys):
        if key.operand in op.facts.numbering:
            return op.keys[: number if key.is_ascending else number + 1]
    return op.keys


def _side_by_side(build: Builder, column: Value) -> Value:
    """A column [A, n, C] as [A * C, n, 1]."""
    a, n, c = column.static_shape
    return build.reshape(build.transpose(column, [0, 2, 1]), (a * c, n, 1))


def _places_of_greatest(build: Builder, column: Value, count: int) -> Value:
    """Where the greatest so many of each row are: [B, n, 1] to [B, count, 1] of i32."""
    b, n, _ = column.static_shape
    types = [mlir.tensor_type((b, count), element) for element in (column.element_type, "i32")]
    found = build.op(TOP_K, [build.reshape(column, (b, n))], types, {"k": mlir.i64_attribute(count)})
    return build.reshape(found.results[1], (b, count, 1))


def _gathered(op: SortLowering, number: int, order: Value) -> Value:
    """Rows of an operand; integers of a type that the target does not gather as those that keep their order."""
    build, column = op.build, op.sort.column(op.build, number)
    if number in op.facts.gathered or not column.element.is_integer:
        return gather_rows(build, column, order)
    return from_ordered_integers(build, gather_rows(build, ordered_integers(build, column), order), column.element_type)


# --- long axes: a sorting network of compare-exchanges, written out or in a loop ---


@rules.lowers(SORT, strategy={SortStrategy.NETWORK}, form="merge exchange: slices, compare, select, concatenate")
def sort_to_network(op: SortLowering) -> Sequence[Value]:
    """Sort by Batcher's merge exchange, each stage a compare and two selects of whole slices.

        %even, %odd = the even and the odd blocks of p rows, one after the other
        %swap       = key(%lower) < key(%upper)                  as far as there is a lower row
        %upper'     = select(%swap, %lower, %upper)              for each column that goes along
        %lower'     = select(%swap, %upper, %lower)

    Equal: merge exchange sorts any number of rows by any total order, and with the position as the last key the
    comparator is one, so the result is the one that a stable sort gives. Rows i and i + d of a stage stand as far
    apart in the even blocks and the odd ones as the blocks do, so both are slices, and those without a lower row are
    the last ones: nothing is padded. Costs log2(n) ** 2 / 2 stages.
    """
    build = op.build
    columns, tail = _columns(op)
    count = len(op.ascending) - 1 + tail
    split: list[tuple[Value, Value]] = []
    block = 0
    for stage in stages_of(op.sort.canonical_shape[1]):
        if stage.block != block:
            whole = columns if not block else [_join(build, even, odd, block) for even, odd in split]
            block = stage.block
            split = [_split(build, column, block) for column in whole]
        split = _exchange(build, split, stage, count, op.ascending[:count])
    return _results(op, [_join(build, even, odd, block) for even, odd in split])


def _columns(op: SortLowering) -> tuple[list[Value], bool]:
    """What goes along: the keys, the positions where anything is told by them, and operands that are not gathered; and
    whether the positions are among them."""
    keys, sort = [key.value for key in op.keys], op.sort
    if op.is_told_by_keys:
        return keys, False
    return [*keys, op.positions, *(sort.column(op.build, k) for k in _along(op))], True


def _along(op: SortLowering) -> list[int]:
    """The operands that go along: what is read, and is neither a key, nor positions, nor gathered."""
    told = {key.operand for key in op.keys} | set(op.facts.gathered)
    return [k for k in op.sort.used_results if k not in told | op.facts.numbering]


def _results(op: SortLowering, columns: Sequence[Value]) -> list[Value]:
    sort, build = op.sort, op.build
    read = [build.slice(column, *sort.read) for column in columns]
    keys, rest = read[: len(op.keys)], read[len(op.keys) :]
    return op.results(rest[0] if rest else None, keys, dict(zip(_along(op), rest[1:], strict=False)))


def _split(build: Builder, column: Value, block: int) -> tuple[Value, Value]:
    """The even and the odd blocks of so many rows, each one after the other."""
    a, n, c = column.static_shape
    full = n // (2 * block)
    end = full * 2 * block
    halves: list[list[Value]] = [[], []]
    if full:
        pairs = build.reshape(build.slice(column, [0, 0, 0], [a, end, c]), (a, full, 2, block * c))
        own = [build.slice(pairs, [0, 0, half, 0], [a, full, half + 1, block * c]) for half in (0, 1)]
        halves = [[build.reshape(part, (a, full * block, c))] for part in own]
    middle = min(end + block, n)
    for half, (low, high) in zip(halves, ((end, middle), (middle, n)), strict=True):
        half += [build.slice(column, [0, low, 0], [a, high, c])] if high > low else []
    return build.concatenate(halves[0], 1), build.concatenate(halves[1], 1)


def _join(build: Builder, even: Value, odd: Value, block: int) -> Value:
    """The inverse of `_split`."""
    (a, evens, c), odds = even.static_shape, odd.static_shape[1]
    full = odds // block
    end = full * block
    parts: list[Value] = []
    if full:
        halves = [
            build.reshape(build.slice(half, [0, 0, 0], [a, end, c]), (a, full, 1, block * c)) for half in (even, odd)
        ]
        parts.append(build.reshape(build.concatenate(halves, 2), (a, 2 * end, c)))
    parts += [build.slice(half, [0, end, 0], [a, size, c]) for half, size in ((even, evens), (odd, odds)) if size > end]
    return build.concatenate(parts, 1)


def _exchange(
    build: Builder, split: Sequence[tuple[Value, Value]], stage: ExchangeStage, count: int, ascending: Sequence[bool]
) -> list[tuple[Value, Value]]:
    """A stage on columns in even and odd blocks; the first `count` of them decide."""
    a, evens, c = split[0][0].static_shape
    odds = split[0][1].static_shape[1]
    # Odd block k meets even block k + skip; where the upper rows are the even ones, even block k meets odd block k.
    skip = (stage.distance // stage.block + 1) // 2 * stage.block if stage.is_odd else 0
    met = evens - skip if stage.is_odd else odds
    if met <= 0:
        return list(split)

    def parts(pair: tuple[Value, Value]) -> tuple[Value, Value]:
        upper, lower = (pair[1], pair[0]) if stage.is_odd else pair
        return build.slice(upper, [0, 0, 0], [a, met, c]), build.slice(lower, [0, skip, 0], [a, skip + met, c])

    met_parts = [parts(pair) for pair in split]
    swap = comes_first(build, [low for _, low in met_parts[:count]], [up for up, _ in met_parts[:count]], ascending)
    found: list[tuple[Value, Value]] = []
    for pair, (up, low) in zip(split, met_parts, strict=True):
        upper, lower = (pair[1], pair[0]) if stage.is_odd else pair
        upper = _with(build, upper, build.select(swap, low, up), 0)
        lower = _with(build, lower, build.select(swap, up, low), skip)
        found.append((lower, upper) if stage.is_odd else (upper, lower))
    return found


def _with(build: Builder, column: Value, part: Value, start: int) -> Value:
    a, n, c = column.static_shape
    end = start + part.static_shape[1]
    parts = [build.slice(column, [0, 0, 0], [a, start, c])] if start else []
    parts.append(part)
    parts += [build.slice(column, [0, end, 0], [a, n, c])] if end < n else []
    return build.concatenate(parts, 1)


@rules.lowers(SORT, strategy={SortStrategy.LOOPED_NETWORK}, form="while over the stages of merge exchange")
def sort_to_looped_network(op: SortLowering) -> Sequence[Value]:
    """The same network, a stage in each iteration, whose block and distance stand in tables.

        while s < stages:
          %lower = dynamic_slice(concatenate(%x, %x), d[s])        row i + d, from the start again behind the end
          %swap  = %is_upper[s] & key(%lower) < key(%x)
          %x     = select(%swap, %lower, select(%swap of row i - d, row i - d, %x))

    Equal: a row is the upper one of a pair where its block of p is even, or odd, and i + d < n; then i - d of the lower
    one is it, and both take the other's columns. Whatever comes around from the end is not taken. Costs twice the
    comparisons of the network, and a text that does not grow with n.
    """
    build = op.build
    columns, tail = _columns(op)
    count = len(op.ascending) - 1 + tail
    a, n, c = op.sort.canonical_shape
    stages = stages_of(n)
    blocks = sorted({stage.block for stage in stages})
    parity = build.concatenate([_parities(build, n, block) for block in blocks], 0)
    tables = [
        build.constant_array(np.asarray(numbers), "i32")
        for numbers in (
            [stage.distance for stage in stages],
            [n - stage.distance for stage in stages],
            [blocks.index(stage.block) for stage in stages],
            [int(stage.is_odd) for stage in stages],
        )
    ]

    def iteration(inner: Builder, turn: Value, carried: Values, invariant: Values) -> Sequence[Value]:
        distance, rest, block, is_odd = (
            inner.reshape(inner.dynamic_slice(table, [turn], [1]), ()) for table in invariant[1:]
        )
        zero = inner.constant(0, (), "i32")
        shape, row = (a, n, c), (1, n)
        own = inner.dynamic_slice(invariant[0], [block, zero], [1, n])
        is_own = inner.compare(own, "EQ", inner.broadcast(is_odd, row))
        is_inside = inner.compare(inner.iota(row, 1, "i32"), "LT", inner.broadcast(rest, row))
        is_upper = inner.reshape(inner.and_(is_own, is_inside), (n,))

        def shift(twice: Value, start: Value) -> Value:
            return inner.dynamic_slice(twice, [zero, start, zero], shape)

        twice = [inner.concatenate([column, column], 1) for column in carried]
        lower = [shift(column, distance) for column in twice]
        before = comes_first(inner, lower[:count], carried[:count], op.ascending[:count])
        swap = inner.and_(inner.broadcast(is_upper, shape, [1]), before)
        back = shift(inner.concatenate([swap, swap], 1), rest)
        return [
            inner.select(swap, low, inner.select(back, shift(both, rest), column))
            for column, both, low in zip(carried, twice, lower, strict=True)
        ]

    found = StructuredLoop(len(stages), "i32").emit_while(build, columns, [parity, *tables], iteration)
    return _results(op, found)


def _parities(build: Builder, rows: int, block: int) -> Value:
    """For each row whether its block of so many is odd: [1, rows] of i32."""
    pairs = -(-rows // (2 * block))
    blocks = build.reshape(build.iota((pairs, 2, block), 1, "i32"), (1, pairs * 2 * block))
    return build.slice(blocks, [0, 0], [1, rows])


# --- short axes: count for each row those in front of it; its rank is where it goes ---


@rules.lowers(SORT, strategy={SortStrategy.RANKS}, form="rank = number of smaller rows, by all pairs; rows by rank")
def sort_to_ranks(op: SortLowering) -> Sequence[Value]:
    """Compare all pairs of rows, count those in front of each row, and put it there.

        %before = (key[j] < key[i]) | (key[j] == key[i] & j < i)     [A, i, j, C]
        %rank   = reduce add over j: convert %before                 [A, n, C]
        %order  = for each row r that is read the i with %rank[i] == r: their maximum, which is below n at any rate
        %r      = operands' rows at %order

    Equal: the comparator is a strict weak order of keys, so with the position behind them no two rows compare equal;
    the rows in front of one are then exactly those that the stable order has before it, and each rank is taken once.
    No element is computed with: it is gathered, or chosen as the integer of its bits. Costs n comparisons for each row.
    """
    build, sort = op.build, op.sort
    a, n, c = sort.canonical_shape
    pairs = (a, n, n, c)
    columns = [*(key.value for key in op.keys), op.positions]
    rows = [build.broadcast(column, pairs, [0, 1, 3]) for column in columns]
    others = [build.broadcast(column, pairs, [0, 2, 3]) for column in columns]
    before = comes_first(build, others, rows, op.ascending)
    zero = build.constant(0, (), "i32")
    rank = reduce_along(build, build.convert(before, "i32"), zero, 2, ADD)

    wide = (a, sort.rows, n, c)
    number = build.iota(wide, 1, "i32")
    if sort.first:
        number = build.add(number, build.constant(sort.first, wide, "i32"))
    hit = build.compare(build.broadcast(rank, wide, [0, 2, 3]), "EQ", number)
    columns_found = {
        k: select_rows(build, hit, sort.column(build, k))
        for k in sort.used_results
        if k not in op.facts.gathered | op.facts.numbering
    }
    order = None
    if len(columns_found) != len(sort.used_results):
        taken = build.select(hit, build.broadcast(op.positions, wide, [0, 2, 3]), build.broadcast(zero, wide))
        order = reduce_along(build, taken, zero, 2, MAXIMUM)
    return op.results(order, columns=columns_found)


# --- of which the first rows are read: find the first row, leave it out, and find the next ---


@rules.lowers(
    SORT, strategy={SortStrategy.ROUNDS}, form="k rounds: the least key and its first position, then without them"
)
def sort_to_rounds(op: SortLowering) -> Sequence[Value]:
    """Find the first of the rows that are left, once for each row that is read: top_k, argmax.

        %least = reduce minimum: select(%left, key, the greatest number)       maximum where keys go down
        %equal = %left & key == %least                                         the same with each further key
        %at    = reduce minimum: select(%equal, position, n)
        %left  = %left & position != %at

    Equal: the stable order has the row of the least first key first, of these the one of the least second key, and of
    equal rows the one that stood first; the next one is that of the rest. What fills the place of a row that is left
    out may equal a key: it counts for nothing, because rows are asked whether they are left. Costs a pass for each key
    and round.
    """
    build = op.build
    keys = [key.value for key in op.keys]
    left: Value | None = None
    found: list[list[Value]] = []
    for _ in range(op.sort.rows):
        if found:
            left = _without(build, op.positions, found[-1][-1], left)
        found.append(_round(build, keys, op.positions, op.ascending, left))
    *columns, order = (build.concatenate(rows, 1) for rows in zip(*found, strict=True))
    return op.results(order, columns)


@rules.lowers(
    SORT, strategy={SortStrategy.LOOPED_ROUNDS}, form="while over k rounds: the least key, its first position"
)
def sort_to_looped_rounds(op: SortLowering) -> Sequence[Value]:
    """The same rounds, in a loop.

        while r < k: %order[r] = position of the first row that is left; it is left out

    Equal: as the rounds one by one; each iteration writes a row of its own.
    """
    build, keys = op.build, [key.value for key in op.keys]
    (a, _, c), shape = op.sort.canonical_shape, op.positions.static_shape
    left = build.broadcast(build.constant(1, (), "i1"), shape)
    order = build.broadcast(build.constant(0, (), "i32"), (a, op.sort.rows, c))

    def iteration(inner: Builder, turn: Value, carried: Values, invariant: Values) -> Sequence[Value]:
        *columns, positions = invariant
        row = _round(inner, columns, positions, op.ascending, carried[0])
        zero = inner.constant(0, (), "i32")
        still = _without(inner, positions, row[-1], carried[0])
        return [still, inner.dynamic_update_slice(carried[1], row[-1], [zero, turn, zero])]

    loop = StructuredLoop(op.sort.rows, "i32")
    found = loop.emit_while(build, [left, order], [*keys, op.positions], iteration)
    return op.results(found[1])


def _round(
    build: Builder, keys: Sequence[Value], positions: Value, ascending: Sequence[bool], left: Value | None
) -> list[Value]:
    """One round: the keys and the position of the first row that is left, [A, 1, C] each.

    Args:
      build: where to build.
      keys, positions: [A, n, C].
      ascending: for each key whether it goes up.
      left: which rows are left; None for all.
    """
    shape, row = positions.static_shape, list[Value]()
    candidates = left
    for column, is_ascending in zip([*keys, positions], ascending, strict=True):
        end = _end(build, column, is_greatest=is_ascending)
        filled = column
        if candidates is not None:
            filled = build.select(candidates, column, build.broadcast(end, shape))
        least = reduce_along(build, filled, end, 1, MINIMUM if is_ascending else MAXIMUM)
        row.append(build.reshape(least, (shape[0], 1, shape[2])))
        if column is positions:
            break
        is_least = build.compare(column, "EQ", build.broadcast(least, shape, [0, 2]))
        candidates = is_least if candidates is None else build.and_(candidates, is_least)
    return row


def _without(build: Builder, positions: Value, gone: Value, left: Value | None) -> Value:
    """Which rows are left but for those at some positions, [A, 1, C]."""
    others = build.compare(positions, "NE", build.broadcast(gone, positions.static_shape, [0, 1, 2]))
    return others if left is None else build.and_(left, others)


def _end(build: Builder, column: Value, *, is_greatest: bool) -> Value:
    """The greatest or the least number of a column's type, a scalar."""
    limits = type_range(column.element_type)
    if limits is not None:
        return build.constant(limits[is_greatest], (), column.element_type)
    element = mlir.tensor_element(column.raw.type)
    return build.infinity(element, is_negative=not is_greatest)
