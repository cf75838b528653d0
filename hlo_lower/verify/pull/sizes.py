"""Sizes of dims: numbers, and for a module of symbolic sizes terms of the sizes of its arguments.

    size 0.1            the size of dim 1 of argument 0: any number from 0 on that 31 bits hold
    2 * size 0.1 + 1    what a shape computation made of it, as bits that wrap where it does

A law that does not say what it does with such a size is beyond: a `Size` is not compared with a number, and
nothing is computed with it, but as its term.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NoReturn, TypeAlias, TypeGuard

from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, SIZE, Term, number

LIMIT = 1 << (POSITION - 1)
"""What every size is less than."""


class Size:
    """A size that is not known: one that was shown to be equal to another is that object.

    Attributes:
      name: of its own.
      term: what it is, of the sizes of arguments and of their elements at places that are numbers.
    """

    __slots__ = ("name", "term")

    def __init__(self, name: str, term: Term) -> None:
        self.name, self.term = name, term

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            return self is other
        return _refuse()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _no(self, _: object) -> NoReturn:
        _refuse()

    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _no
    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _no

    def __index__(self) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise Beyond("a law of sizes that are known")


Extent: TypeAlias = int | Size
"""The size of a dim."""

Shape: TypeAlias = tuple[Extent, ...]


def extent(size: Extent, bits: int = POSITION) -> Term:
    """A size as a term."""
    if isinstance(size, int):
        return number(size, bits)
    return size.term if bits == POSITION else z3.ZeroExt(bits - POSITION, size.term)


def is_one(size: Extent) -> bool:
    """Whether a size is known to be 1."""
    return isinstance(size, int) and size == 1


def is_empty(sizes: Iterable[Extent]) -> bool:
    """Whether a size is known to be 0."""
    return any(isinstance(size, int) and size == 0 for size in sizes)


def is_same(one: Extent, other: Extent) -> bool:
    """Whether two sizes are known to be equal."""
    return one is other or (isinstance(one, int) and isinstance(other, int) and one == other)


def are_known(sizes: Sequence[Extent]) -> TypeGuard[Sequence[int]]:
    """Whether all sizes are numbers."""
    return all(isinstance(size, int) for size in sizes)


def is_at_most(sizes: Sequence[Extent], most: int) -> bool:
    """Whether it is known that a shape has at most so many places."""
    return are_known(sizes) and prod(sizes) <= most


def product_is_small(sizes: Sequence[Extent]) -> Term:
    """That the product of some sizes is less than `LIMIT`, however large they are."""
    return is_small([extent(size) for size in sizes])


def is_small(terms: Sequence[Term]) -> Term:
    """The same of terms: those that are numbers as one."""
    known = prod(term.as_long() for term in terms if z3.is_bv_value(term))
    others = sorted((term for term in terms if not z3.is_bv_value(term)), key=lambda term: term.get_id())
    bits = POSITION * (len(others) + 2)
    found = number(min(known, LIMIT), bits)
    for term in others:
        found = found * z3.ZeroExt(bits - POSITION, term)
    return z3.simplify(z3.ULT(found, number(LIMIT, bits)))


def symbol(argument: int, dim: int) -> Term:
    """The size of a dim of an argument."""
    return z3.BitVec(f"{SIZE}{argument}.{dim}", POSITION)
