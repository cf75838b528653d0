"""Terms: what one element of a tensor is, as a Python number where it is known and as a term of z3 where it is not.

A term is a `bool`, an `int` in the range of its type, or an expression of z3. What is known is computed in Python,
which keeps loop counters, iotas and masks out of the solver.
"""

from typing import Any, TypeAlias

from hlo_lower.verify.proof.elements import TRUTH, ElementKind, ProofType
from hlo_lower.verify.proof.solver import z3

Term: TypeAlias = Any


def is_known(term: Term) -> bool:
    """Whether a term is a Python number."""
    return isinstance(term, bool | int)


def lifted(term: Term, element: ProofType) -> Any:
    """A term as an expression of z3."""
    if not is_known(term):
        return term
    return z3.BoolVal(term) if element.kind is ElementKind.TRUTH else z3.BitVecVal(term, element.width)


def lowered(expression: Any, element: ProofType) -> Term:
    """An expression as a Python number where it is one."""
    if element.kind is ElementKind.TRUTH:
        return True if z3.is_true(expression) else False if z3.is_false(expression) else expression
    if z3.is_bv_value(expression):
        return element.declared.wrapped(expression.as_long())
    return expression


def simplified(expression: Any, element: ProofType) -> Term:
    """An expression as z3's own rewriting leaves it."""
    return expression if is_known(expression) else lowered(z3.simplify(expression), element)


def same(a: Term, b: Term) -> bool:
    """Whether two terms are written alike."""
    if is_known(a) or is_known(b):
        return is_known(a) and is_known(b) and a == b
    return a is b or bool(a.eq(b))


def both(*terms: Term) -> Term:
    """The conjunction of truths."""
    if any(term is False for term in terms):
        return False
    open_ones = [term for term in terms if term is not True]
    if len(open_ones) < 2:
        return open_ones[0] if open_ones else True
    return z3.And(*open_ones)


def either(*terms: Term) -> Term:
    """The disjunction of truths."""
    if any(term is True for term in terms):
        return True
    open_ones = [term for term in terms if term is not False]
    if len(open_ones) < 2:
        return open_ones[0] if open_ones else False
    return z3.Or(*open_ones)


def opposite(term: Term) -> Term:
    """The negation of a truth."""
    return not term if is_known(term) else z3.Not(term)


def chosen(condition: Term, yes: Term, no: Term, element: ProofType) -> Term:
    """`yes` where the condition holds, else `no`."""
    if is_known(condition):
        return yes if condition else no
    if same(yes, no):
        return yes
    if element.kind is ElementKind.TRUTH and is_known(yes) and is_known(no):
        return condition if yes else opposite(condition)
    return z3.If(condition, lifted(yes, element), lifted(no, element))


def equal(a: Term, b: Term, element: ProofType) -> Term:
    """Whether two terms of one type are the same value, bit for bit."""
    if same(a, b):
        return True
    if is_known(a) and is_known(b):
        return False
    if element.kind is ElementKind.INTEGER:
        for known in (a, b):
            if is_known(known) and not element.declared.least <= known <= element.declared.most:
                return False
    return simplified(lifted(a, element) == lifted(b, element), TRUTH)


def at_most(a: Term, b: Term, element: ProofType) -> Term:
    """Whether a <= b, of integers."""
    if is_known(a) and is_known(b):
        return a <= b
    if (is_known(a) and a <= element.declared.least) or (is_known(b) and b >= element.declared.most):
        return True
    x, y = lifted(a, element), lifted(b, element)
    return simplified(x <= y if element.declared.is_signed else z3.ULE(x, y), TRUTH)


def below(a: Term, b: Term, element: ProofType) -> Term:
    """Whether a < b, of integers."""
    return opposite(at_most(b, a, element))
