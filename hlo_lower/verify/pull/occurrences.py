"""Occurrences: what is made of terms over bound variables stands as a symbol of the parts that hold none of them.

    f(16 t + i, k), summed over k  is  #1(16 t + i), where #1(e) is the sum over k of f(e, k)

So it is one symbol at all places, in both modules. Folds in any order are seen through, too: one over the rounds of a
loop of folds is a fold over both, and dims may be cut into parts.

    sum over t < 8 of (sum over k < 16 of f(t, k))  is  the sum over t, k of f(t, k)
    sum over j < 128 of g(j)                        is  the sum over t, k of g(16 t + k)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from typing import Any
from zlib import crc32

from hlo_lower.verify.pull.parts import Part, operands_first, part_of, parts_of
from hlo_lower.verify.pull.sizes import LIMIT, Extent, are_known, extent, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import COMMUTING, POSITION, Term, number, symbols_of

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


@dataclass(frozen=True)
class RankOrder:
    """A symbol that gives the number of the element that an order puts at each place below a size.

    Attributes:
      inverse: that symbol, applied to variables, of which it maps one.
      size: how many elements there are.
      other, own: the numbers of two elements.
      test: whether the other one comes before the own one.
    """

    inverse: OneToOne
    size: int
    other: Term
    own: Term
    test: Term

    def place(self, application: Term) -> Term:
        """The place that an application of the symbol is of."""
        return self.inverse.mapped_argument(application)

    def comes(self, first: Term, second: Term) -> Term:
        """Whether one element comes before another, both given by applications of the symbol to all but a place."""
        pairs = zip(self.inverse.term.children(), first.children(), strict=True)
        given = [(a, b) for a, b in pairs if not a.eq(self.inverse.which)]
        return z3.substitute(self.test, (self.other, first), (self.own, second), *given)


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


def in_one_order(terms: Sequence[Term], bound: Sequence[Term]) -> list[Term]:
    """Put the operands of functions that commute in an order that depends on what they are of the bound variables, and
    on the rest only where that leaves two orders.

    Over the bound variable k both f(p) + g(k) and g(k) + f(16 t + i) become f(..) + g(k).
    """
    new, holds = dict[int, Term](), {term.get_id(): True for term in bound}
    looks: dict[int, tuple[int, ...]] = {}  # of the functions within that are met first, tests of choices aside
    for part in operands_first(terms, new):
        operands = [new[one.number] for one in part.operands]
        number, within = part.number, [looks[one.number] for one in part.operands]
        holds[number] = holds.get(number, False) or any(holds[one.number] for one in part.operands)
        looks[number] = ()
        if holds[number] and operands:
            if len(operands) == 2 and part.name.split(" ")[0] in COMMUTING:
                order = sorted((0, 1), key=lambda k: within[k])
                operands = [operands[k] for k in order]
            met = tuple(sorted({look for its in within[part.kind == z3.Z3_OP_ITE :] for look in its}))
            looks[number] = (hash((crc32(part.name.encode()), *met)),) if part.name else met
        new[number] = _applied(part, operands)
    return [new[term.get_id()] for term in terms]


def with_joined_dims(made: Made, variable: Callable[[str, Extent], Term]) -> Made:
    """Take two dims of a fold for one where its terms hold their row-major number alone, as those of a loop over tiles
    do.

        sum over t < 8, k < 16 of g(16 t + k)  is  sum over j < 128 of g(j)

    Args:
      made: the fold.
      variable: gives the variable of a name below a size.
    """
    if made.sizes is None or len(made.sizes) < 2 or not are_known(made.sizes):
        return made
    for outer, inner in _joinable(made.terms, made.bound, made.sizes, is_ordered=IN_ORDER in made.kind):
        times = made.sizes[inner]
        size = made.sizes[outer] * times
        whole = variable(f"j{len(made.sizes)}.", size)
        terms = _over_number(made.terms, made.bound[outer], made.bound[inner], times, whole)
        if size < LIMIT and terms is not None:
            bound, sizes = list(made.bound), list(made.sizes)
            bound[outer], sizes[outer] = whole, size
            del bound[inner], sizes[inner]
            return with_joined_dims(replace(made, terms=terms, bound=tuple(bound), sizes=tuple(sizes)), variable)
    return made


def _joinable(
    terms: Sequence[Term], bound: Sequence[Term], sizes: Sequence[int], *, is_ordered: bool
) -> list[tuple[int, int]]:
    """Pairs of dims of which terms seem to hold a row-major number alone: found without making any term."""
    dims = {term.get_id(): dim for dim, term in enumerate(bound)}
    alone = {dims[which] for which, _ in (multiple_of(part_of(term)) for term in terms) if which in dims}
    sums = set[tuple[int, ...]]()
    for part in parts_of(terms):
        held = [(dims[which], factor) for which, factor in map(multiple_of, part.operands) if which in dims]
        if held and _is_sum(part):
            sums.add(tuple(sum(factor for dim, factor in held if dim == d) for d in range(len(bound))))
        elif held and multiple_of(part)[0] not in dims:
            alone |= {dim for dim, _ in held}
    return [
        (outer, inner)
        for outer, inner in permutations(range(len(bound)), 2)
        if alone.isdisjoint((outer, inner))
        and (not is_ordered or inner == outer + 1)
        and all((row[outer] - row[inner] * sizes[inner]) % (1 << POSITION) == 0 for row in sums)
    ]


def _is_sum(part: Part) -> bool:
    """Whether a part is a sum of positions."""
    return part.kind == z3.Z3_OP_BADD and part.term.size() == POSITION


def _over_number(terms: Sequence[Term], outer: Term, inner: Term, times: int, whole: Term) -> tuple[Term, ...] | None:
    """Terms of two variables as terms of `times * outer + inner`; None where they hold anything else of these."""
    new, variables = dict[int, Term](), (outer.get_id(), inner.get_id())
    for part in operands_first(terms, new):
        operands = [new[one.number] for one in part.operands]
        new[part.number] = _applied(part, operands)
        if _is_sum(part):
            factors, rest = [0, 0], list[Term]()
            for one, changed in zip(part.operands, operands, strict=True):
                which, factor = multiple_of(one)
                if which in variables:
                    factors[variables.index(which)] += factor
                else:
                    rest.append(changed)
            if factors[1] and (factors[0] - factors[1] * times) % (1 << POSITION) == 0:
                new[part.number] = z3.simplify(sum(rest, whole * number(factors[1])))
    found = tuple(new[term.get_id()] for term in terms)
    constants, _ = symbols_of(found)
    return None if any(term.decl().name() in constants for term in (outer, inner)) else found


def multiple_of(part: Part) -> tuple[int, int]:
    """Of which part a part is a multiple, by its number, and how many times."""
    if part.kind == z3.Z3_OP_BMUL and len(part.operands) == 2 and z3.is_bv_value(part.operands[0].term):
        return part.operands[1].number, part.operands[0].term.as_long()
    return part.number, 1


def _applied(part: Part, operands: Sequence[Term]) -> Term:
    """What a part's function gives for other operands; all are written in, so that z3 looks no deeper."""
    pairs = [(one.term, other) for one, other in zip(part.operands, operands, strict=True)]
    if all(one is other for one, other in pairs):
        return part.term
    return part.term.decl()(*operands) if part.name else z3.substitute(part.term, *pairs)


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
