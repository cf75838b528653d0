"""`stablehlo.sort` for consumers that have none: what a rule is given, how rows are moved, and sorts of one row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlo_lower.base.registry import DoesNotApply, RuleList
from hlo_lower.facts.sort.canonical_sort import CanonicalSort
from hlo_lower.facts.sort.key_columns import CannotCompareError, KeyColumn, given_back, key_columns
from hlo_lower.facts.sort.sort_facts import SortFacts, SortStrategy
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.names import ADD, SORT

rules = RuleList()


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
          DoesNotApply: floats are to be compared as they are, and some are not canonical.
        """
        try:
            return key_columns(self.build, self.sort, in_bits=self.facts.in_bits)
        except CannotCompareError:
            raise DoesNotApply("a float is in order by its bits only, which the target does not give") from None

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
        return {key.operand for key in self.keys} >= set(self.sort.wanted)

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
            if key.operand in self.sort.wanted and key.operand not in found:
                element = self.sort.node.operand(key.operand).element_type
                found[key.operand] = given_back(self.build, column, element)
        for number in self.sort.wanted:
            if number not in found:
                assert order is not None
                found[number] = self._moved(number, order)
        return self.sort.results_of(self.build, found)

    def _moved(self, number: int, order: Value) -> Value:
        """An operand's rows in order."""
        operand = self.sort.node.operand(number)
        if self.sort.is_numbering(number):
            return self.build.convert(order, operand.element_type)
        column = self.sort.column(self.build, number)
        if number in self.facts.gathered:
            return gathered(self.build, column, order)
        a, rows, c = order.static_shape
        wide = (a, rows, self.sort.canonical_shape[1], c)
        hit = self.build.compare(
            self.build.broadcast(order, wide, [0, 1, 3]), "EQ", self.build.iota(wide, 2, order.element_type)
        )
        return chosen(self.build, hit, column)


def gathered(build: Builder, column: Value, order: Value) -> Value:
    """Rows of [A, n, C] by their positions [A, rows, C], element by element, all of them inside."""
    (a, n, c), shape = column.static_shape, order.static_shape
    flat = order
    if c > 1:
        flat = _times_plus(build, flat, c, build.iota(shape, 2, "i32"))
    if a > 1:
        base = build.multiply(build.iota(shape, 0, "i32"), build.constant(n * c, shape, "i32"))
        flat = build.add(flat, base)
    count = order.static_shape[0] * order.static_shape[1] * order.static_shape[2]
    rows = build.gather_rows(build.reshape(column, (a * n * c,)), build.reshape(flat, (count, 1)), 0)
    return build.reshape(rows, shape)


def _times_plus(build: Builder, value: Value, factor: int, added: Value) -> Value:
    product = build.multiply(value, build.constant(factor, value.static_shape, value.element_type))
    return build.add(product, added)


def chosen(build: Builder, hit: Value, column: Value) -> Value:
    """For each row of the result the one row that is hit: [A, rows, n, C] of truths and [A, n, C] to [A, rows, C].

    All but one row are 0, and so their sum is that row's; floats are added as the integers that their bits are, complex
    numbers part by part.

    Raises:
      DoesNotApply: its elements are of a type that is not known here.
    """
    element = column.element_type
    if column.element.is_complex:
        return build.complex([chosen(build, hit, part) for part in build.parts(column)])
    is_float = column.element.is_float and column.element.bits >= 8
    if not is_float and not column.element.is_integer:
        raise DoesNotApply(f"rows of {element} are not chosen by a sum")
    bits = build.bitcast(column, column.element.signed) if is_float or column.element.is_unsigned else column
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
    columns = {k: op.build.slice(op.sort.column(op.build, k), *op.sort.read) for k in op.sort.wanted}
    return op.sort.results_of(op.build, columns)
