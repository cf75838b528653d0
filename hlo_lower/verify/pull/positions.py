"""Arithmetic of positions: row-major numbers of places, made and taken apart."""

from collections.abc import Sequence

from hlo_lower.verify.pull.ranges import Ranges
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Place, Term, number


class Positions:
    """The variables of a derivation, each with its size, and the row-major numbers that were made of places.

    Attributes:
      sizes: what each variable is less than, by name.
      ranges: between which numbers terms of the variables lie.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.ranges = Ranges(self.sizes)
        self._made: dict[int, tuple[Term, list[tuple[Term, int]]]] = {}

    def variable(self, name: str, size: int) -> Term:
        """A position of a dim: less than its size, which is part of its name. Of a dim of size 1 it is 0."""
        if size == 1:
            return number(0)
        found = z3.BitVec(f"{name} of {size}", POSITION)
        self.sizes[str(found.decl().name())] = size
        return found

    def place(self, name: str, shape: Sequence[int]) -> list[Term]:
        """A variable for each dim of a shape."""
        return [self.variable(f"{name}{dim}", size) for dim, size in enumerate(shape)]

    def linear(self, place: Place, shape: Sequence[int]) -> Term:
        """The row-major number of a place."""
        kept = [(term, size) for term, size in zip(place, shape, strict=True) if size != 1]
        if not kept:
            return number(0)
        found = kept[0][0]
        for term, size in kept[1:]:
            found = found * number(size) + term
        found = z3.simplify(found)
        if len(kept) > 1:
            self._made[found.get_id()] = found, kept
        return found

    def split(self, term: Term, sizes: Sequence[int]) -> list[Term]:
        """The place in a shape of a row-major number; of a number that was made of a place, this."""
        if len(sizes) == 1:
            return [term]
        if term.get_id() in self._made:
            kept, tail, rest = list(self._made[term.get_id()][1]), list[Term](), list(sizes)
            while kept and len(rest) > 1 and kept[-1][1] == rest[-1]:
                tail.insert(0, kept.pop()[0])
                rest.pop()
            if tail:
                head = self.linear([a for a, _ in kept], [b for _, b in kept])
                return [*self.split(head, rest), *tail]
        last = number(sizes[-1])
        return [*self.split(z3.simplify(z3.UDiv(term, last)), sizes[:-1]), z3.simplify(z3.URem(term, last))]

    def reshaped(self, place: Place, shape: Sequence[int], to: Sequence[int]) -> list[Term]:
        """A place of a shape as one of another: by the smallest groups of dims that have equal products."""
        found = [number(0)] * len(to)
        i = j = 0
        while i < len(shape) or j < len(to):
            mine, theirs, first, second = 1, 1, i, j
            while mine != theirs or (i == first and j == second):
                if (mine <= theirs and i < len(shape)) or j >= len(to):
                    mine, i = mine * shape[i], i + 1
                else:
                    theirs, j = theirs * to[j], j + 1
            dims = [d for d in range(second, j) if to[d] != 1]
            if dims:
                whole = self.linear(place[first:i], shape[first:i])
                for d, part in zip(dims, self.split(whole, [to[d] for d in dims]), strict=True):
                    found[d] = part
        return found
