"""Integer arithmetic modulo 2^w, as XLA computes it where the specification leaves it open.

Division by zero gives all bits set, its remainder is the dividend, and the least value divided by -1 is itself; a shift
by the width or more gives zeros, or copies of the sign.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.terms import Term, at_most, below, chosen, equal, is_known, lifted, lowered

_operator: Any = operator  # its stubs leave some of it unknown

Operation = Callable[..., Term]
"""A function of an element type and terms."""


def _ring(operation: Any) -> Operation:
    """An operation that is the same on numbers and, modulo 2^w, on bit-vectors."""

    def compute(element: ProofType, *terms: Term) -> Term:
        if all(map(is_known, terms)):
            return element.declared.wrapped(operation(*terms))
        return lowered(operation(*(lifted(term, element) for term in terms)), element)

    return compute


_sum, _product, _difference, negated = map(_ring, (_operator.add, _operator.mul, _operator.sub, _operator.neg))


def added(element: ProofType, a: Term, b: Term) -> Term:
    """a + b."""
    for known, other in ((a, b), (b, a)):
        if is_known(known) and known == 0:
            return other
    return _sum(element, a, b)


def subtracted(element: ProofType, a: Term, b: Term) -> Term:
    """a - b."""
    return a if is_known(b) and b == 0 else _difference(element, a, b)


def multiplied(element: ProofType, a: Term, b: Term) -> Term:
    """a * b."""
    for known, other in ((a, b), (b, a)):
        if is_known(known) and known in (0, 1):
            return other if known else 0
    for factor, other in ((a, b), (b, a)):
        condition = _as_truth(factor)
        if condition is not None:
            return chosen(condition, other, 0, element)
    return _product(element, a, b)


def _as_truth(term: Term) -> Term | None:
    """The truth of which a term is the number, 1 or 0: what masks are multiplied by."""
    if is_known(term) or not z3.is_app_of(term, z3.Z3_OP_ITE):
        return None
    condition, yes, no = term.children()
    is_number = z3.is_bv_value(yes) and z3.is_bv_value(no) and (yes.as_long(), no.as_long()) == (1, 0)
    return condition if is_number else None


def least(element: ProofType, a: Term, b: Term) -> Term:
    """The smaller one."""
    return chosen(at_most(a, b, element), a, b, element)


def greatest(element: ProofType, a: Term, b: Term) -> Term:
    """The larger one."""
    return chosen(at_most(b, a, element), a, b, element)


def clamped(element: ProofType, low: Term, value: Term, high: Term) -> Term:
    """min(max(value, low), high)."""
    return least(element, greatest(element, value, low), high)


def divided(element: ProofType, a: Term, b: Term) -> Term:
    """a / b, rounded towards zero."""
    ones = element.declared.wrapped(-1)
    if is_known(a) and is_known(b):
        quotient = abs(a) // abs(b) if b else 0
        return element.declared.wrapped(quotient if (a < 0) == (b < 0) else -quotient) if b else ones
    x, y = lifted(a, element), lifted(b, element)
    quotient = x / y if element.declared.is_signed else z3.UDiv(x, y)
    return chosen(equal(b, 0, element), ones, quotient, element)


def remaining(element: ProofType, a: Term, b: Term) -> Term:
    """a - a / b * b, with the sign of a."""
    if is_known(a) and is_known(b):
        rest = abs(a) % abs(b) if b else abs(a)
        return element.declared.wrapped(-rest if a < 0 else rest)
    x, y = lifted(a, element), lifted(b, element)
    return chosen(equal(b, 0, element), a, z3.SRem(x, y) if element.declared.is_signed else z3.URem(x, y), element)


def absolute(element: ProofType, a: Term) -> Term:
    """|a|; of the least value itself."""
    return chosen(below(a, 0, element), negated(element, a), a, element)


def sign(element: ProofType, a: Term) -> Term:
    """-1, 0 or 1."""
    return chosen(
        below(a, 0, element), element.declared.wrapped(-1), chosen(equal(a, 0, element), 0, 1, element), element
    )


def _shifted(of_z3: Any) -> Operation:
    """A shift, of bit-vectors only."""

    def compute(element: ProofType, a: Term, b: Term) -> Term:
        return lowered(z3.simplify(of_z3(lifted(a, element), lifted(b, element))), element)

    return compute


def _logically(a: Any, b: Any) -> Any:
    return z3.LShR(a, b)


def converted(term: Term, source: ProofType, target: ProofType) -> Term:
    """An integer in another integer type: cut off, or extended by zeros or by its sign."""
    if is_known(term):
        return target.declared.wrapped(term)
    if target.width <= source.width:
        return term if target.width == source.width else lowered(z3.Extract(target.width - 1, 0, term), target)
    extend = z3.SignExt if source.declared.is_signed else z3.ZeroExt
    return lowered(extend(target.width - source.width, term), target)


OPERATIONS: Mapping[str, Operation] = {
    "add": added,
    "subtract": subtracted,
    "multiply": multiplied,
    "negate": negated,
    "maximum": greatest,
    "minimum": least,
    "clamp": clamped,
    "divide": divided,
    "remainder": remaining,
    "abs": absolute,
    "sign": sign,
    "and": _ring(_operator.and_),
    "or": _ring(_operator.or_),
    "xor": _ring(_operator.xor),
    "not": _ring(_operator.invert),
    "shift_left": _shifted(_operator.lshift),
    "shift_right_arithmetic": _shifted(_operator.rshift),
    "shift_right_logical": _shifted(_logically),
}
"""By the name of the StableHLO operation, for terms of one integer type."""
