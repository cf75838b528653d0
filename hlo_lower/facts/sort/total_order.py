"""The total order of floats without their bits: what it asks for, and the ways in which comparators write it.

IEEE 754 puts negative NaN before all numbers, -0.0 before 0.0, and positive NaN behind them. Comparisons and a division
tell all of this but the bits of a NaN. Those are open where an operation has computed it: IEEE 754 interprets the sign
of a NaN in copies, negations, magnitudes and the total order alone, and leaves that of every other result to whoever
computes it. So a NaN that was computed may be taken for the positive one.
"""

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS, type_range
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.facts.values.budget import FOLLOWED
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import OneOf, Same, Sources
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.bounds import source_of
from hlo_lower.ops.quirks.floats import WITHOUT_SIGN
from hlo_lower.ops.spec import ANY_NAN, has_one_nan, nan_operands


def may_have_one_nan(sources: Sources, site: Site) -> bool:
    """Whether every NaN among floats may be taken for the positive one: they were computed, or are constants without
    another one.

    Args:
      sources: what sites come from.
      site: the floats; an argument of a comparator stands for the operand that it compares.
    """
    pending, seen = [site], set[Site]()
    while pending:
        here = pending.pop()
        if here in seen or here.value.element_type not in WIDE_FLOATS:
            continue
        seen.add(here)
        block = here.value.block
        if block is not None and block.owner.name == names.SORT:
            pending.append(here.to(block.owner.operand(here.value.number // 2)))
            continue
        origin = sources.of(here)
        more = list(origin.sites) if isinstance(origin, OneOf) else [origin.site] if isinstance(origin, Same) else None
        if more is None and isinstance(origin, Node):
            operands = _behind(origin, here.value.number)
            more = None if operands is None else [here.to(origin.operand(k)) for k in operands]
        if more is None or len(seen) > FOLLOWED:
            return False
        pending += more
    return True


def _behind(node: Node, number: int) -> tuple[int, ...] | None:
    """The operands whose NaN a result of an op has; None where the op says nothing of it."""
    if node.name in (names.REDUCE, names.REDUCE_WINDOW):
        returned = node.blocks[0].terminator.operand(number).node
        return () if returned is not None and returned.name in ANY_NAN else None
    if node.name == names.CONSTANT:
        numbers = node.constant()
        return () if numbers is not None and has_one_nan(numbers) else None
    if node.name == names.SORT:
        return (number,)
    if node.name == names.SELECT and _replaces_nan(node):
        return (1,)
    return nan_operands(node.name, len(node.operands))


def _replaces_nan(node: Node) -> bool:
    """Whether a select takes another float than what it tests for NaN, and chooses that, or numbers, otherwise."""
    test = node.operand(0).node
    if test is None or test.name != names.COMPARE or test.operand(0) != test.operand(1):
        return False
    is_total = "TOTALORDER" in str(test.attribute("compare_type"))
    return comparison_direction(test) == "NE" and not is_total and _is_or_number(node.operand(2), test.operand(0))


def _is_or_number(value: Value, other: Value) -> bool:
    """Whether each float of a value is that of another one, or no NaN."""
    while value != other:
        made = value.node
        if made is None or made.name != names.SELECT:
            numbers = None if made is None else source_of(value).constant()
            return numbers is not None and bool((numbers == numbers).all())
        if not _is_or_number(made.operand(1), other):
            return False
        value = made.operand(2)
    return True


def may_be_negative_zero(value: Value) -> bool:
    """Whether -0.0 may be among floats, as far as what chooses and moves them says."""
    pending, seen = [source_of(value)], set[Value]()
    while pending:
        here = pending.pop()
        made, numbers = here.node, here.constant()
        if here in seen or (made is not None and made.name in WITHOUT_SIGN):
            continue
        seen.add(here)
        if numbers is not None and not bool(np.any((numbers == 0) & np.signbit(numbers.astype(np.float64)))):
            continue
        if made is None or made.name != names.SELECT or len(seen) > FOLLOWED:
            return True
        is_zero, chosen, other = made.operands
        test = is_zero.node
        is_tested = test is not None and test.name == names.COMPARE and comparison_direction(test) == "EQ"
        is_tested = is_tested and test is not None and "TOTALORDER" not in str(test.attribute("compare_type"))
        is_replaced = is_tested and test is not None and test.operand(0) == other and _is_zero(test.operand(1))
        pending += [source_of(one) for one in ((chosen,) if is_replaced else (chosen, other))]
    return False


def _is_zero(value: Value) -> bool:
    numbers = source_of(value).constant()
    return numbers is not None and bool((numbers == 0).all())


def floats_in_total_order(key: Value) -> Value | None:
    """The floats that a key puts in their total order: those that are compared so, or whose bits are; else None.

    %bits = bitcast_convert %x;  %key = select(%bits < 0, %bits xor MAX, %bits)          and MAX - %bits for xor
    """
    if key.element_type in WIDE_FLOATS:
        return key
    chosen = key.node
    if chosen is None or chosen.name != names.SELECT or type_range(key.element_type) is None:
        return None
    test, turned, bits = chosen.operands
    made = test.node
    if made is None or made.name != names.COMPARE or made.operand(0) != bits or not _is_number(made.operand(1), 0):
        return None
    source = _float_of_bits(bits)
    is_turned = source is not None and _turns_all_but_sign(turned, source)
    return source if is_turned and comparison_direction(made) == "LT" and key.element.is_signed else None


def _float_of_bits(bits: Value) -> Value | None:
    """The floats whose bits these integers are."""
    while bits.node is not None and bits.node.name == names.BITCAST_CONVERT:
        operand = bits.node.operand(0)
        if operand.element.bits != bits.element.bits:
            return None
        if operand.element_type in WIDE_FLOATS:
            return operand
        bits = operand
    return None


def _turns_all_but_sign(value: Value, source: Value) -> bool:
    """Whether integers are the bits of negative floats with all but the sign turned."""
    made = value.node
    while made is not None and made.name == names.BITCAST_CONVERT and type_range(made.operand(0).element_type):
        made = made.operand(0).node
    if made is None or made.name not in (names.XOR, names.SUBTRACT):
        return False
    most = (1 << made.operand(0).element.bits - 1) - 1
    first, second = made.operands
    if made.name == names.XOR and _is_number(second, most):
        first, second = second, first
    return _is_number(first, most) and _float_of_bits(second) == source


def _is_number(value: Value, number: int) -> bool:
    known = value.constant()
    return known is not None and known.size == 1 and int(known.reshape(-1)[0]) == number
