"""Arithmetic of positions: row-major numbers of places, made and taken apart, and the ranges of variables."""

from collections.abc import Sequence

from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Place, Term, number


class Positions:
    """The variables of a derivation, each with its range, and the row-major numbers that were made of places."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
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

    def ends(self, term: Term) -> tuple[int, int] | None:
        """Between which numbers a term lies that is made of variables by +, *, /, rem and choices; None of another."""
        if z3.is_bv_value(term):
            return (term.as_signed_long(),) * 2
        kind, children = term.decl().kind(), term.children()
        if not children:
            size = self.sizes.get(term.decl().name())
            return None if size is None else (0, size - 1)
        if kind == z3.Z3_OP_ITE:
            is_yes, *sides = self._decided(children[0]), *(self.ends(child) for child in children[1:])
            if is_yes is not None:
                return sides[0] if is_yes else sides[1]
            (a, b), (c, d) = (end or (0, -1) for end in sides)
            return (min(a, c), max(b, d)) if None not in sides else None
        ends = [self.ends(child) for child in children]
        if kind == z3.Z3_OP_CONCAT:
            is_wider = all(end == (0, 0) for end in ends[:-1]) and ends[-1] is not None and ends[-1][0] >= 0
            return ends[-1] if is_wider else None
        if kind == z3.Z3_OP_EXTRACT:
            high, low = term.params()
            most = (1 << (high - low + 1)) - 1
            known = ends[0] is not None and ends[0][0] >= 0 and ends[0][1] >> low <= most
            return (ends[0][0] >> low, ends[0][1] >> low) if ends[0] is not None and known else (0, most)
        if None in ends:
            return None
        (least, most), *others = (end for end in ends if end is not None)
        if kind in (z3.Z3_OP_BUDIV, z3.Z3_OP_BUDIV_I, z3.Z3_OP_BUREM, z3.Z3_OP_BUREM_I):
            by, by_most = others[0]
            if by <= 0 or by != by_most or least < 0:
                return None
            return (least // by, most // by) if kind in (z3.Z3_OP_BUDIV, z3.Z3_OP_BUDIV_I) else (0, min(most, by - 1))
        if kind not in (z3.Z3_OP_BADD, z3.Z3_OP_BMUL):
            return None
        for end in others:
            corners = [a * b for a in (least, most) for b in end]
            is_sum = kind == z3.Z3_OP_BADD
            least, most = (least + end[0], most + end[1]) if is_sum else (min(corners), max(corners))
        limit = 1 << (term.size() - 1)
        return (least, most) if -limit <= least and most < limit else None

    def _decided(self, test: Term) -> bool | None:
        """Whether a comparison of terms whose ends are known holds; None where that depends on the variables."""
        if z3.is_not(test):
            found = self._decided(test.arg(0))
            return None if found is None else not found
        if test.decl().kind() not in (z3.Z3_OP_SLEQ, z3.Z3_OP_ULEQ):
            return None
        first, second, limit = self.ends(test.arg(0)), self.ends(test.arg(1)), 1 << (test.arg(0).size() - 1)
        if first is None or second is None:
            return None
        if min(*first, *second) < 0 if test.decl().kind() == z3.Z3_OP_ULEQ else max(*first, *second) >= limit:
            return None
        return True if first[1] <= second[0] else False if first[0] > second[1] else None

    def settled(self, term: Term) -> Term:
        """A term whose ends are known, without the choices that these decide."""
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            is_yes = self._decided(term.arg(0))
            if is_yes is not None:
                return self.settled(term.arg(1 if is_yes else 2))
        children = term.children()
        settled = [self.settled(child) for child in children]
        is_same = all(a.eq(b) for a, b in zip(children, settled, strict=True))
        return term if is_same else z3.simplify(z3.substitute(term, *zip(children, settled, strict=True)))

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
