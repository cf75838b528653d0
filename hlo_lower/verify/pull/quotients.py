"""What is known of quotients by sizes: z3 does not find it, as it multiplies bit by bit.

x < n * m,  n * m < 2^31   says   x / m < n,  n < 2^31       where m is not 0
x rem m < m                                                  where m is not 0
"""

from collections.abc import Iterator, Sequence
from functools import cache

from hlo_lower.verify.pull.parts import Part
from hlo_lower.verify.pull.sizes import is_small
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Term, number


def facts_of_quotients(parts: Sequence[Part]) -> list[Term]:
    """What holds of the quotients and remainders among some terms, and of the products that the dividends are below."""
    found: list[Term] = []
    products = {_key(factors): factors for part in parts if (factors := _factors(part.term)) is not None}
    for part in parts:
        if part.kind in _kinds("BUREM") and part.term.size() == POSITION:
            found.append(z3.Implies(part.term.arg(1) != 0, z3.ULT(part.term, part.term.arg(1))))
    divided = [part.term for part in parts if part.kind in _kinds("BUDIV") and part.term.size() == POSITION]
    pending = list(products.values())
    while pending:
        factors = pending.pop()
        for term in divided:
            rest = _without(factors, term.arg(1))
            if rest is None:
                continue
            if _key(rest) not in products:
                products[_key(rest)] = rest
                pending.append(rest)
            below = z3.And(is_small(_all(factors)), term.arg(1) != 0, z3.ULT(term.arg(0), _product(factors)))
            found.append(z3.Implies(below, z3.And(is_small(_all(rest)), z3.ULT(term, _product(rest)))))
    return [z3.simplify(fact) for fact in found]


_Factors = tuple[int, tuple[Term, ...]]
"""A number, and what it is multiplied by."""


def _factors(term: Term) -> _Factors | None:
    """The factors of a product of 32 bits; None of another term."""
    if not z3.is_app_of(term, z3.Z3_OP_BMUL) or term.size() != POSITION:
        return None
    numbers, others = 1, list[Term]()
    for factor in _flat(term):
        if z3.is_bv_value(factor):
            numbers *= int(factor.as_long())
        else:
            others.append(factor)
    return numbers, tuple(others)


def _flat(term: Term) -> Iterator[Term]:
    for child in term.children():
        yield from _flat(child) if z3.is_app_of(child, z3.Z3_OP_BMUL) else (child,)


def _without(factors: _Factors, divisor: Term) -> _Factors | None:
    """A product without a factor; None where it is none."""
    count, others = factors
    if z3.is_bv_value(divisor):
        by = int(divisor.as_long())
        return (count // by, others) if by > 1 and count % by == 0 else None
    for k, other in enumerate(others):
        if other.eq(divisor):
            return count, (*others[:k], *others[k + 1 :])
    return None


def _all(factors: _Factors) -> list[Term]:
    return [*([number(factors[0])] if factors[0] != 1 else []), *factors[1]]


def _product(factors: _Factors) -> Term:
    found = number(factors[0])
    for factor in factors[1]:
        found = found * factor
    return z3.simplify(found)


def _key(factors: _Factors) -> tuple[int, ...]:
    return factors[0], *sorted(factor.get_id() for factor in factors[1])


@cache
def _kinds(name: str) -> frozenset[int]:
    return frozenset(getattr(z3, f"Z3_OP_{name}{end}") for end in ("", "_I"))
