"""Occurrences: what is made of terms over bound variables stands as a symbol of the parts that hold none of them.

    f(16 t + i, k), summed over k  is  #1(16 t + i), where #1(e) is the sum over k of f(e, k)

So it is one symbol at all places, in both modules. Folds in any order are seen through, too: one over the rounds of a
loop of folds is a fold over both, and dims may be cut into parts.

    sum over t < 8 of (sum over k < 16 of f(t, k))  is  the sum over t, k of f(t, k)
    sum over j < 128 of g(j)                        is  the sum over t, k of g(16 t + k)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

from hlo_lower.verify.pull.parts import operands_first, part_of
from hlo_lower.verify.pull.sizes import Extent, are_known, extent, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Term

MOST_DIMS = 4
"""Dims of a fold up to which they are taken in any order."""


@dataclass(frozen=True)
class Made:
    """What is made of terms over bound variables by something that is a function of them.

    Attributes:
      kind: what it is made by, as ("combined", "add", "f32"): other kinds are other functions.
      terms: of what, over the bound variables.
      bound: these.
      sizes: what each is less than, of a fold whose order does not matter; else None.
      parameters: the other variables, as the arguments of the symbol that stands for it.
    """

    kind: tuple[Any, ...]
    terms: tuple[Term, ...]
    bound: tuple[Term, ...]
    sizes: tuple[Extent, ...] | None = None
    parameters: tuple[Term, ...] = ()

    def at(self, arguments: Sequence[Term]) -> "Made":
        """What an application of its symbol stands for."""
        return Made(self.kind, tuple(rename_variables(self.terms, self.parameters, arguments)), self.bound, self.sizes)

    def over(self, values: Sequence[Term], bound: Sequence[Term], sizes: Sequence[Extent] | None) -> "Made":
        """The same over other variables, with terms over these in the place of its own."""
        terms = tuple(rename_variables(self.terms, self.bound, values))
        return Made(self.kind, terms, tuple(bound), None if sizes is None else tuple(sizes), self.parameters)


@dataclass(frozen=True)
class OneToOne:
    """A symbol that maps the numbers below some total one to one onto themselves, whatever its other arguments are.

    Attributes:
      term: it, applied to variables.
      which: the variable that is mapped.
      inverse: the symbol that maps back, applied to `place` and the other variables.
      place: the variable that it maps back.
    """

    term: Term
    which: Term
    inverse: Term
    place: Term

    def back(self, application: Term, place: Term) -> Term:
        """The number that an application of the symbol maps to a place, if its other arguments stay."""
        pairs = zip(self.term.children(), application.children(), strict=True)
        return z3.substitute(self.inverse, (self.place, place), *((a, b) for a, b in pairs if not a.eq(self.which)))

    def mapped_argument(self, application: Term) -> Term:
        """The argument that this application of the symbol maps."""
        return next(b for a, b in zip(self.term.children(), application.children(), strict=True) if a.eq(self.which))


def rename_variables(terms: Sequence[Term], old: Sequence[Term], new: Sequence[Term]) -> list[Term]:
    """Replace some variables in terms."""
    changed = [(a, b) for a, b in zip(old, new, strict=True) if not a.eq(b)]
    return [z3.simplify(z3.substitute(term, *changed)) for term in terms] if changed else list(terms)


IN_ORDER = "in order"
"""Part of the kind of a fold in row-major order: its positions may be counted in parts, but not in another order."""


def common_refinement(first: Sequence[Extent], second: Sequence[Extent]) -> list[Extent] | None:
    """The fewest sizes that both shapes, which have equal products, are made of. None if there are none, or if a size
    is unknown and the shapes differ."""
    if not are_known(first) or not are_known(second):
        is_one_shape = len(first) == len(second) and all(is_same(a, b) for a, b in zip(first, second, strict=True))
        return list(first) if is_one_shape else None
    if prod(first) != prod(second):
        return None
    one, other, found = list(first), list(second), list[Extent]()
    while one and other:
        size = min(one[0], other[0])
        if one[0] % size or other[0] % size:
            return None
        found.append(size)
        for rest in (one, other):
            rest[0] //= size
            if rest[0] == 1:
                del rest[0]
    return found


def as_parts(sizes: Sequence[Extent], parts: Sequence[Extent], names: Sequence[Term]) -> list[Term]:
    """Each position of a shape as the row-major number of its parts."""
    rest, found = list(zip(parts, names, strict=True)), list[Term]()
    for size in sizes:
        part, term = rest.pop(0)
        while not is_same(part, size) and part < size:
            inner, name = rest.pop(0)
            part, term = part * inner, term * extent(inner) + name
        found.append(z3.simplify(term))
    return found


def orders(sizes: Sequence[Extent]) -> list[tuple[int, ...]]:
    """The orders of dims that are tried, the given one first."""
    dims = range(len(sizes))
    return list(permutations(dims)) if len(sizes) <= MOST_DIMS else [tuple(dims)]


def abstract_parts(terms: Sequence[Term], bound: Sequence[Term]) -> tuple[list[Term], list[Term], list[Term]]:
    """Replace each largest part without a bound variable by a parameter; return the new terms, the parameters, and the
    parts.

    f(16 t + i, k) over the bound variable k becomes f(e0, k) with e0 = 16 t + i.
    """
    holds = {term.get_id(): True for term in bound}
    for part in operands_first(terms, holds):
        holds[part.number] = any(holds[inner.number] for inner in part.operands)
    parts, done = list[Term](), set[int]()
    pending = [part_of(term) for term in reversed(terms)]
    while pending:
        part = pending.pop()
        if part.number not in done:
            done.add(part.number)
            if holds[part.number]:
                pending += reversed(part.operands)
            elif part.operands or part.name:
                parts.append(part.term)
    parameters = [z3.Const(f"e{k} {part.sort()}", part.sort()) for k, part in enumerate(parts)]
    changed = list(zip(parts, parameters, strict=True))
    return [z3.substitute(term, *changed) for term in terms] if changed else list(terms), parameters, parts
