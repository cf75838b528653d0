"""Products, sums and powers as exports write them: factors in any order, constants before or after, a square as a
product, a power or `chlo.square`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.named.match.terms import Term, is_rounded

CASTS = frozenset({"convert"})


@dataclass(frozen=True, eq=False)
class Product:
    """Factors, and constants."""

    factors: tuple[Term, ...]  # what is multiplied, in the order in which it stands
    divisors: tuple[Term, ...] = ()  # what is divided by
    constants: tuple[Any, ...] = ()  # numbers that are multiplied
    divided: tuple[Any, ...] = ()  # numbers that are divided by

    def times(self, other: "Product") -> "Product":
        """The product of both."""
        pairs = zip(self._parts, other._parts, strict=True)
        return Product(*(a + b for a, b in pairs))

    def over(self, other: "Product") -> "Product":
        """The quotient of both."""
        return self.times(Product(other.divisors, other.factors, other.divided, other.constants))

    @property
    def _parts(self) -> tuple[tuple[Any, ...], ...]:
        return self.factors, self.divisors, self.constants, self.divided

    def is_scaled_by(self, number: float) -> bool:
        """Whether its constants are one number, as their type rounds it or its reciprocal; 1: there are none.

        Several constants count where they are powers of 2, which round nothing.
        """
        if not self.constants and not self.divided:
            return number == 1
        if len(self.constants) == 1 and not self.divided:
            return is_rounded(self.constants[0], number)
        if len(self.divided) == 1 and not self.constants:
            return is_rounded(self.divided[0], 1 / number)
        total = 1.0
        for value in self.constants:
            total *= float(value)
        for value in self.divided:
            total /= float(value)
        return is_rounded(np.array(total).astype((*self.constants, *self.divided)[0].dtype)[()], number)


def product(term: Term, *stops: Term, depth: int = 6) -> Product:
    """A value as a product, beneath conversions between floats: at most `depth` multiplications, divisions, negations
    and powers are taken apart, no `stops`."""
    if depth and not any(term is stop for stop in stops):
        if _is_cast(term):
            return product(term.operands[0], *stops, depth=depth)
        if term.op in ("multiply", "divide"):
            first, second = (_constant_or_product(one, stops, depth - 1) for one in term.operands)
            return first.times(second) if term.op == "multiply" else first.over(second)
        if term.op == "negate":
            inner = product(term.operands[0], *stops, depth=depth - 1)
            return inner.times(Product((), constants=(_number(term, -1),)))
        if term.op == "chlo.square":
            inner = product(term.operands[0], *stops, depth=depth - 1)
            return inner.times(inner)
        if term.op == "power" and (exponent := _whole(term.operands[1])) is not None:
            inner, found = product(term.operands[0], *stops, depth=depth - 1), Product(())
            for _ in range(exponent):
                found = found.times(inner)
            return found
    return Product((term,))


def _constant_or_product(term: Term, stops: tuple[Term, ...], depth: int) -> Product:
    scalar = term.scalar
    return product(term, *stops, depth=depth) if scalar is None else Product((), constants=(scalar,))


def _number(term: Term, number: float) -> Any:
    return np.array(number).astype(mlir.dtype_of(term.element))[()]


def _whole(term: Term) -> int | None:
    """A small whole number that a term is."""
    number = term.scalar
    return int(number) if number is not None and float(number) in (1, 2, 3, 4) else None


def is_product(term: Term, factors: Sequence[Term], number: float) -> bool:
    """Whether a value is the product of a number and these factors, in any order, beneath conversions."""
    factors = [uncast(factor) for factor in factors]
    found = product(term, *factors)
    left = list(found.factors)
    for factor in factors:
        if not any(factor is one for one in left):
            return False
        left.remove(factor)
    return not left and not found.divisors and found.is_scaled_by(number)


def scalings(term: Term) -> Iterator[tuple[Term, Product]]:
    """A value as something by constants, beneath conversions: x itself by none, then what it is a multiple of, and so
    on."""
    constants = Product(())
    for _ in range(8):
        yield term, constants
        if _is_cast(term):
            term = term.operands[0]
        elif term.op == "negate":
            constants, term = constants.times(Product((), constants=(_number(term, -1),))), term.operands[0]
        elif (found := with_constant(term, "multiply")) is not None:
            constants, term = constants.times(Product((), constants=(found[1],))), found[0]
        elif term.op == "divide" and (number := term.operands[1].scalar) is not None:
            constants, term = constants.over(Product((), constants=(number,))), term.operands[0]
        else:
            return


def factor_beside(term: Term, number: float) -> Term | None:
    """The other factor of a value that is a product with a number."""
    return next((base for base, constants in scalings(term) if constants.is_scaled_by(number)), None)


MOST_IN_CHAIN = 4
"""Products that are looked at one behind the other."""

MOST_ABOVE = 24
"""Values whose users are looked at."""


def product_chain(term: Term) -> Iterator[Term]:
    """A value, its only user if that is a product, the only user of that, and so on."""
    for _ in range(MOST_IN_CHAIN):
        yield term
        user = term.only_user
        while user is not None and _is_cast(user):
            user = user.only_user
        if user is None or user.op not in ("multiply", "divide"):
            return
        term = user


def products_above(term: Term) -> Iterator[Term]:
    """All products and quotients that a value goes into, the nearest first, whatever else takes what is in between."""
    pending, seen = [term], set[int]()
    for _ in range(MOST_ABOVE):
        for user in users_of_cast(pending.pop(0)) if pending else ():
            if user.op in ("multiply", "divide") and id(user) not in seen:
                seen.add(id(user))
                pending.append(user)
                yield user


def with_constant(term: Term, op: str) -> tuple[Term, Any] | None:
    """The operand and the constant of an elementwise op of one of each, in whichever order."""
    if term.op != op:
        return None
    first, second = term.operands
    if (number := second.scalar) is not None:
        return first, number
    if (number := first.scalar) is not None and op != "subtract":
        return second, number
    return None


def plus(term: Term, number: float) -> Term | None:
    """The other term of a value that is a sum with a number, or None."""
    found = with_constant(term, "add")
    if found is not None and is_rounded(found[1], number):
        return found[0]
    found = with_constant(term, "subtract")
    return found[0] if found is not None and is_rounded(found[1], -number) else None


def one_more(term: Term) -> Term | None:
    """The user of a value, converted or not, that adds 1."""
    totals = ((user, plus(user, 1)) for user in users_of_cast(term))
    return next((user for user, base in totals if base is not None and uncast(base) is uncast(term)), None)


def square_of(term: Term) -> Term | None:
    """The base of the square that a value is."""
    if term.op == "multiply" and term.operands[0] is term.operands[1]:
        return term.operands[0]
    if term.op == "chlo.square":
        return term.operands[0]
    if term.op == "power" and term.operands[1].is_number(2):
        return term.operands[0]
    return None


def _is_cast(term: Term) -> bool:
    return term.op in CASTS and term.is_float and term.operands[0].is_float


def uncast(term: Term) -> Term:
    """A value beneath conversions between floats."""
    while _is_cast(term):
        term = term.operands[0]
    return term


def users_of_cast(term: Term) -> Iterator[Term]:
    """The users of a value and of its conversions to other floats."""
    for user in term.users:
        if _is_cast(user):
            yield from users_of_cast(user)
        else:
            yield user


def in_one_type(x: Term, result: Term) -> tuple[Term, Term]:
    """A value and what is computed of it, both in the type that the value had before it was converted. A result that is
    not converted back stays as it is."""
    if x.element == result.element:
        return x, result
    x, user = uncast(x), result.only_user
    is_back = user is not None and _is_cast(user) and user.element == x.element
    return x, user if is_back and user is not None else result
