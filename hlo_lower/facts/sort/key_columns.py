"""The keys of a sort as tensors [A, n, C] of signed integers, or of floats without NaN, in which `<` and `=` decide."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hlo_lower.base.element_types import WIDE_FLOATS, element_type, type_range
from hlo_lower.facts.sort.canonical_sort import CanonicalSort
from hlo_lower.facts.sort.comparator import SortKey, canonical_source
from hlo_lower.facts.sort.total_order import floats_in_total_order, may_be_negative_zero
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.names import DIVIDE, NOT


@dataclass(frozen=True)
class KeyColumn:
    """One column of keys.

    Attributes:
      value: [A, n, C].
      is_ascending: whether the keys go up.
      operand: the number of the operand that the column is, or that it gives back; None where it gives back none.
    """

    value: Value
    is_ascending: bool
    operand: int | None = None


def key_columns(
    build: Builder, sort: CanonicalSort, *, in_bits: bool, in_f32: bool = False, one_nan: Collection[int] = ()
) -> list[KeyColumn]:
    """The columns that order rows as the comparator does, the first one first.

    Args:
      build: where to build.
      sort: the sort.
      in_bits: whether floats are compared as the integers of their bits; else a float is several columns: whether it
        is NaN, itself, and of one that the comparator does not make canonical whether it is a zero without a sign.
      in_f32: whether the bits of a narrower float are those of the same number in f32, whose order is the same.
      one_nan: the numbers of keys all of whose NaN may be taken for the positive one.

    Raises:
      CannotCompareError: a float may have any NaN, and its bits are not to be taken.
    """
    found: list[KeyColumn] = []
    for number, key in enumerate(sort.keys):
        source = None if in_bits else floats_in_total_order(key.value)
        if source is None or canonical_source(key.value) is not None:
            found += _columns(build, sort, key, in_bits=in_bits, in_f32=in_f32)
        elif number in one_nan:
            columns = total_order_columns(build, _comparator_column(build, sort, source))
            found += [KeyColumn(column, key.is_ascending) for column in columns]
        else:
            raise CannotCompareError
    return found


class CannotCompareError(Exception):
    """A float whose NaN only its bits order, where these are not to be taken."""


def comes_first(build: Builder, left: Sequence[Value], right: Sequence[Value], ascending: Sequence[bool]) -> Value:
    """Whether rows are in front of others by their keys, strictly: the first keys decide, of equal ones the next."""
    found: Value | None = None
    for a, b, is_ascending in reversed(list(zip(left, right, ascending, strict=True))):
        before = build.compare(a, "LT" if is_ascending else "GT", b)
        if found is not None:
            before = build.or_(before, build.and_(build.compare(a, "EQ", b), found))
        found = before
    assert found is not None
    return found


def from_ordered_integers(build: Builder, column: Value, element: str) -> Value:
    """The operand whose column of keys this is: the inverse of `ordered_integers`."""
    if element == "i1":
        return build.compare(column, "NE", build.constant(0, column.static_shape, column.element_type))
    if element in WIDE_FLOATS:
        bits = build.convert(column, element_type(element).signed_type)
        return build.bitcast(_flip_negative(build, bits), element)
    if element in ("ui32", "ui64"):
        return build.bitcast(_flip_sign_bit(build, column), element)
    return build.convert(column, element)


def ordered_integers(build: Builder, value: Value) -> Value:
    """Integers or floats as signed integers of 32 or 64 bits in the same order, one to one.

    Narrow integers are extended; the first bit of unsigned ones is flipped. The bits of positive floats are in order;
    of negative floats all bits but the sign are flipped. That is IEEE 754's total order.
    """
    element = value.element_type
    if element in WIDE_FLOATS:
        turned = _flip_negative(build, build.bitcast(value, value.element.signed_type))
        return build.convert(turned, "i32") if value.element.bits < 32 else turned
    if element in ("ui32", "ui64"):
        return _flip_sign_bit(build, build.bitcast(value, value.element.signed_type))
    return value if element in ("i32", "i64") else build.convert(value, "i32")


def total_order_columns(build: Builder, value: Value) -> list[Value]:
    """Floats as columns that order them totally, but for NaN, which are one, behind all numbers.

        x != x;   select(x != x, 0, x);   x == 0 and not 1 / x < 0

    Numbers are ordered by themselves; of those that are equal only zeros differ, of which 1 / x is an infinity of
    their sign; that column is left out where no zero has a sign.
    """
    is_nan, zero = build.compare(value, "NE", value), build.zeros_like(value)
    columns = [build.convert(is_nan, "i32"), build.select(is_nan, zero, value)]
    if may_be_negative_zero(value):
        is_zero = build.and_(build.compare(value, "EQ", zero), build.elementwise(NOT, has_sign(build, value)))
        columns.append(build.convert(is_zero, "i32"))
    return columns


def has_sign(build: Builder, value: Value) -> Value:
    """Whether numbers are below zero, or a zero with a sign."""
    turned = inverse(build, value)
    return build.compare(turned, "LT", build.zeros_like(turned))


def inverse(build: Builder, value: Value) -> Value:
    """1 / x of floats, in f32 of half floats; of zeros it is infinities of their signs."""
    wide = value if value.element.bits >= 32 else build.convert(value, "f32")
    return build.elementwise(DIVIDE, build.float_splat(1.0, wide.static_shape, wide.element_type), wide)


def _flip_negative(build: Builder, bits: Value) -> Value:
    """Flip all bits but the sign of negative integers; it is its own inverse."""
    most = build.constant(int(bits.element.most), bits.static_shape, bits.element_type)
    return build.select(build.compare(bits, "LT", 0), build.elementwise("xor", bits, most), bits)


def _flip_sign_bit(build: Builder, bits: Value) -> Value:
    lowest = build.constant(int(bits.element.least), bits.static_shape, bits.element_type)
    return build.elementwise("xor", bits, lowest)


def _columns(build: Builder, sort: CanonicalSort, key: SortKey, *, in_bits: bool, in_f32: bool) -> list[KeyColumn]:
    number = key.value.number // 2 if key.value.block == sort.node.blocks[0] else None
    canonical = canonical_source(key.value)
    if type_range(key.value.element_type) is not None:
        return [
            KeyColumn(ordered_integers(build, _comparator_column(build, sort, key.value)), key.is_ascending, number)
        ]
    if canonical is not None:
        value = _in_bits_of(build, _comparator_column(build, sort, canonical), in_f32=in_f32)
        is_nan, zero = build.compare(value, "NE", value), build.zeros_like(value)
        if not in_bits:
            first = KeyColumn(build.convert(is_nan, "i32"), key.is_ascending)
            return [first, KeyColumn(build.select(is_nan, zero, value), key.is_ascending)]
        column = ordered_integers(build, build.select(build.compare(value, "EQ", zero), zero, value))
        most = int(element_type(value.element.signed_type).most)
        highest = build.constant(most, column.static_shape, column.element_type)
        return [KeyColumn(build.select(is_nan, highest, column), key.is_ascending)]
    column = _comparator_column(build, sort, key.value)
    value = _in_bits_of(build, column, in_f32=in_f32)
    return [KeyColumn(ordered_integers(build, value), key.is_ascending, number if value is column else None)]


def _in_bits_of(build: Builder, value: Value, *, in_f32: bool) -> Value:
    """The floats whose bits are compared; those of narrower ones in f32, which has each of them."""
    return build.convert(value, "f32") if in_f32 and value.element.is_float and value.element.bits < 32 else value


def _comparator_column(build: Builder, sort: CanonicalSort, value: Value) -> Value:
    """A value that a comparator computes from one side's elements, for all elements at once: [A, n, C]."""
    block, shape = sort.node.blocks[0], sort.canonical_shape
    found: dict[Value, Value] = {}

    def of(value: Value) -> Value:
        if value not in found:
            found[value] = compute(value)
        return found[value]

    def compute(value: Value) -> Value:
        node = value.node
        if value.block == block:
            return sort.column(build, value.number // 2)
        if node is None or node.parent != block.owner:
            return build.broadcast(value, shape)
        operands = [of(operand) for operand in node.operands]
        if not operands:
            return build.broadcast(build.clone(node, [], [value.raw.type]).result(), shape)
        return build.clone(node, operands, [mlir.tensor_type(shape, mlir.tensor_element(value.raw.type))]).result()

    return of(value)
