"""The law of a list that is gone through in chunks, from one place to another, as a tiled scatter goes through those of
its updates that a tile has.

    sum over t, c of (test ? f(list[low + n t + c]) : 0)  is  sum over k of (low <= k < high ? f(list[k]) : 0)

It holds where the test says that the number in the list is one from low to high, and holds for each such number: each
is met at one t and c, because numbers of other chunks are others. Both are asked of z3.

    low <= list.first(x)    how many of a sorted list come before x: k < low  says  list[k] comes before x

A list that holds each number below its length once is gone through in whatever order: k may be the number itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hlo_lower.verify.pull.integers import Integers, UnreadError
from hlo_lower.verify.pull.occurrences import Made
from hlo_lower.verify.pull.parts import parts_of
from hlo_lower.verify.pull.prover import At
from hlo_lower.verify.pull.sizes import LIMIT
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Term, choice_of, choose, has_variable, number


@dataclass(frozen=True)
class Sum:
    """A sum over chunks, and the numbers within them.

    Attributes:
      chunk, within: the number of a chunk, and that of an element in it.
      chunks, size: how many of each there are.
      tests: what holds where an element is added.
      term: the element.
    """

    chunk: Term
    within: Term
    chunks: int
    size: int
    tests: tuple[Term, ...]
    term: Term


def over_list(at: At, kind: tuple[Any, ...], term: Term, which: Term, total: int, unit: Term) -> Made | None:
    """A sum over chunks of a list as one over the numbers in the list; None of another one.

    Args:
      at: where.
      kind: what combines.
      term: what a chunk gives, `unit` where it has nothing.
      which, total: the number of a chunk, and how many chunks there are.
      unit: what the combiner leaves alone.
    """
    given = _read(at, kind, term, which, total, unit)
    if given is None:
        return None
    variables = given.chunk, given.within
    for place, listed in _places_in_lists(at, given):
        order = at.prover.ranked[listed]
        key = at.positions.variable("place", order.size)
        met = [t for t in _applications([*given.tests, given.term], listed) if order.place(t).eq(place)]
        there = [(one, z3.substitute(one, (place, key))) for one in met]
        tests = [z3.simplify(z3.substitute(test, *there)) for test in given.tests]
        value = z3.simplify(z3.substitute(given.term, *there))
        if has_variable(value, *variables):
            continue
        rest = [test for test in tests if not has_variable(test, *variables)]
        own = [test for test in tests if has_variable(test, *variables)]
        counts = [part.term for part in parts_of(own) if part.name.split(":")[0] in at.prover.counts]
        for low, high in permutations(dict.fromkeys(counts), 2):
            if _is_gone_through(at, given, own, (place, order.size), (low, high)):
                before = [_comes_before(at, count, listed, key) for count in (low, high)]
                if before[0] is None or before[1] is None:
                    return None
                met_here = z3.simplify(choose(z3.And(z3.Not(before[0]), before[1], *rest), value, unit))
                return _over_elements(at, kind, met_here, listed, key)
    return None


def _over_elements(at: At, kind: tuple[Any, ...], term: Term, listed: str, key: Term) -> Made | None:
    """A sum over all places of a list as one over the numbers of the elements there; None where it holds more of a
    place than the number there."""
    order, read = at.prover.ranked[listed], _applications([term], listed)
    if len(read) != 1 or not order.place(read[0]).eq(key):  # of two lists one number has two places
        return None
    mine = at.positions.variable("listed", order.size)
    found = at.positions.ranges.simplify(z3.simplify(z3.substitute(term, (read[0], mine))))
    if has_variable(found, key):
        return None
    turned = z3.simplify(z3.substitute(found, (mine, number(order.size - 1) - mine)))
    found = min(found, turned, key=lambda one: len(parts_of([one])))  # of all numbers, from either end
    at.use("chunks of a list")
    return Made(kind, (found,), (mine,), (order.size,))


def _read(at: At, kind: tuple[Any, ...], term: Term, which: Term, total: int, unit: Term) -> Sum | None:
    """A sum over chunks of sums of one dim, each of what a test holds for."""
    outer = choice_of(term, unit)
    if outer is None:
        return None
    made = at.prover.made.get(outer[1].decl().name().split(":")[0])
    if made is None or made.kind != kind or made.sizes is None or len(made.sizes) != 1:
        return None
    [size] = made.sizes
    if not isinstance(size, int) or size == 1:
        return None
    within = at.positions.variable("within", size)
    inner = choice_of(made.at(outer[1].children()).over([within], [within], made.sizes).terms[0], unit)
    if inner is None:
        return None
    tests = [one for test in (outer[0], inner[0]) for one in _conjuncts(test)]
    return Sum(which, within, total, size, tuple(_without_choices(at, tests)), inner[1])


def _conjuncts(test: Term) -> list[Term]:
    """Tests of which all hold where one does."""
    if z3.is_and(test):
        return [one for child in test.children() for one in _conjuncts(child)]
    if z3.is_not(test) and z3.is_or(test.arg(0)):
        return [one for child in test.arg(0).children() for one in _conjuncts(z3.simplify(z3.Not(child)))]
    return [test]


def _without_choices(at: At, tests: Sequence[Term]) -> Iterator[Term]:
    """Tests, where one says that a choice equals what one of its sides never is: that the other side is taken, and
    equals it."""
    for test in tests:
        others = [one for one in tests if not one.eq(test)]
        sides: list[Term] = test.children() if z3.is_eq(test) else []
        for choice, other in zip(sides, sides[::-1], strict=True):
            if z3.is_app_of(choice, z3.Z3_OP_ITE):
                taken, yes, no = choice.children()
                if at.prover.same([(z3.And(no == other, *others), z3.BoolVal(False))]):
                    yield from _conjuncts(taken)
                    yield z3.simplify(yes == other)
                    break
        else:
            yield test


def _places_in_lists(at: At, given: Sum) -> Iterator[tuple[Term, str]]:
    """The places of an element of a chunk in the lists that are read there, each with the name of the list's symbol."""
    seen = set[tuple[int, str]]()
    for part in parts_of([*given.tests, given.term]):
        name = part.name.split(":")[0]
        if name in at.prover.ranked:
            place = at.prover.ranked[name].place(part.term)
            if has_variable(place, given.within) and (place.get_id(), name) not in seen:
                seen.add((place.get_id(), name))
                yield place, name


def _applications(terms: Sequence[Term], listed: str) -> list[Term]:
    return [part.term for part in parts_of(terms) if part.name.split(":")[0] == listed]


def _is_gone_through(
    at: At, given: Sum, tests: Sequence[Term], places: tuple[Term, int], ends: tuple[Term, Term]
) -> bool:
    """Whether the tests hold at exactly one chunk and number for each place of a list from `low` to `high`, and at no
    others.

    A chunk's first place may be moved back, as at the end of the list: only the place counts.
    """
    (place, length), (low, high), size = places, ends, given.size
    begin = z3.simplify(place - given.within)
    if has_variable(begin, given.within) or max(length, given.chunks * size) >= LIMIT // 4:
        return False
    read = Integers()
    first, last = read.name(low, 0, length), read.name(high, 0, length)
    chunk = read.name(given.chunk, 0, max(given.chunks, length // size + 1))
    try:
        start, (least, most) = read.of(begin), read.ends(begin)
        within = read.name(given.within, min(0, -most), max(size, length - least))
        whole = read.of(z3.And(*tests))
    except UnreadError:
        return False
    known, which = z3.And(*read.known), start + within
    is_in_chunk = z3.And(which - first >= size * chunk, which - first < size * chunk + size)
    is_chosen = z3.And(chunk < given.chunks, within >= 0, within < size, whole)
    is_met = z3.And(first <= which, which < last, is_in_chunk)
    return bool(at.prover.same([(z3.Implies(known, is_chosen == is_met), z3.BoolVal(True))]))


def _comes_before(at: At, count: Term, listed: str, key: Term) -> Term | None:
    """What says of a place of a list that it is below a count: that what is counted holds there, where that holds at
    the beginning of the list alone."""
    order, made = at.prover.ranked[listed], at.prover.made[count.decl().name().split(":")[0]]
    its = made.at(count.children())
    choice = choice_of(its.terms[0], number(0))
    if choice is None or len(its.bound) != 1 or at.prover.counts[count.decl().name().split(":")[0]] != order.size:
        return None
    [test, which] = choice[0], its.bound[0]
    early, late = (at.positions.variable(name, order.size) for name in ("early", "late"))
    applied = [one for one in _applications([test], listed) if order.place(one).eq(which)]
    if not applied:
        return None

    def number_at(place: Term) -> Term:
        return z3.substitute(applied[0], (which, place))

    comes = order.comes(number_at(early), number_at(late))
    first, second = (z3.substitute(test, (which, place)) for place in (early, late))
    is_beginning = z3.Implies(z3.And(z3.ULT(early, late), comes, second), first)
    if not at.prover.same([(is_beginning, z3.BoolVal(True))]):
        return None
    return z3.simplify(z3.substitute(test, (which, key)))
