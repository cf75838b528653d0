"""Arithmetic of positions: row-major numbers of places, made and taken apart."""

from collections.abc import Sequence
from math import prod

from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.ranges import Ranges
from hlo_lower.verify.pull.sizes import Extent, are_known, extent, is_one, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Place, Term, number


class Positions:
    """The variables of a derivation, each with its size, and the row-major numbers that were made of places.

    Attributes:
      sizes: what each variable is less than, by name.
      ranges: between which numbers terms of the variables lie.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, Extent] = {}
        self.ranges = Ranges(self.sizes)
        self._made: dict[int, tuple[Term, list[tuple[Term, Extent]]]] = {}

    def variable(self, name: str, size: Extent) -> Term:
        """A position of a dim: less than its size, which is part of its name. Of a dim of size 1 it is 0."""
        if is_one(size):
            return number(0)
        found = z3.BitVec(f"{name} of {size}", POSITION)
        self.sizes[str(found.decl().name())] = size
        return found

    def place(self, name: str, shape: Sequence[Extent]) -> list[Term]:
        """A variable for each dim of a shape."""
        return [self.variable(f"{name}{dim}", size) for dim, size in enumerate(shape)]

    def linear(self, place: Place, shape: Sequence[Extent]) -> Term:
        """The row-major number of a place, of a shape of fewer than 2^31 places."""
        kept = [(term, size) for term, size in zip(place, shape, strict=True) if not is_one(size)]
        if not kept:
            return number(0)
        found = kept[0][0]
        for term, size in kept[1:]:
            found = found * extent(size) + term
        found = z3.simplify(found)
        if len(kept) > 1:
            self._made[found.get_id()] = found, kept
        return found

    def split(self, term: Term, sizes: Sequence[Extent]) -> list[Term]:
        """The place in a shape of a row-major number; of a number that was made of a place, this."""
        if len(sizes) == 1:
            return [term]
        if term.get_id() in self._made:
            kept, tail, rest = list(self._made[term.get_id()][1]), list[Term](), list(sizes)
            while kept and len(rest) > 1 and is_same(kept[-1][1], rest[-1]):
                tail.insert(0, kept.pop()[0])
                rest.pop()
            if tail:
                head = self.linear([a for a, _ in kept], [b for _, b in kept])
                return [*self.split(head, rest), *tail]
        last = extent(sizes[-1])
        return [*self.split(z3.simplify(z3.UDiv(term, last)), sizes[:-1]), z3.simplify(z3.URem(term, last))]

    def reshape(self, place: Place, shape: Sequence[Extent], to: Sequence[Extent]) -> list[Term]:
        """Map a place of one shape to a place of another, by the smallest groups of dims with equal products.

        Raises:
          Beyond: sizes that are not known stand in groups of several dims on both sides, or their products differ.
        """
        if not are_known(shape) or not are_known(to):
            return self._reshape_unknown(place, shape, to)
        if prod(shape) != prod(to):  # sizes that became known, of an op that is not valid
            raise Beyond("a reshape to another number of elements")
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

    def _reshape_unknown(self, place: Place, shape: Sequence[Extent], to: Sequence[Extent]) -> list[Term]:
        """`reshape` for unknown sizes with equal products: equal dims at either end map to each other.

        If a size is 0, there is no place. Otherwise the dims between the ends have equal products, too.
        """
        found = [number(0)] * len(to)
        mine, theirs = ([d for d, size in enumerate(sizes) if not is_one(size)] for sizes in (shape, to))
        for end in (0, -1):
            while mine and theirs and is_same(shape[mine[end]], to[theirs[end]]):
                found[theirs.pop(end)] = place[mine.pop(end)]
        if len(mine) > 1 and len(theirs) > 1:
            raise Beyond("a reshape of several dims of sizes that are not known into several others")
        if mine and theirs:  # of one dim into several or several into one, which has fewer than 2^31 positions
            whole = self.linear([place[d] for d in mine], [shape[d] for d in mine])
            for d, part in zip(theirs, self.split(whole, [to[d] for d in theirs]), strict=True):
                found[d] = part
        return found
