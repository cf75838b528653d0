"""Two row-major numbers are equal where their digits are: z3 does not find it, as it multiplies bit by bit.

110 i + 10 j + k = 110 p + 10 q + r    is    i = p, j = q, k = r    where i, p < 2^31 / 110, j, q < 11, k, r < 10
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hlo_lower.verify.pull.parts import Part
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Term, number

MOST_CASES = 4
"""Cases of choices among the terms of a sum."""

MOST_ADDENDS = 16

LIMIT = 1 << (POSITION - 1)
"""What the numbers are less than: they do not wrap."""

_Sum = dict[int, tuple[Term, int]]
"""Terms that are added, by z3's number of them, each with what it is multiplied by."""


def equalities_of_digits(parts: Sequence[Part]) -> list[tuple[Term, list[tuple[Term, Term]]]]:
    """The equalities of numbers of several digits among some terms, and what each of them is equal to where a condition
    holds: the condition, and the equality of all digits."""
    found = list[tuple[Term, list[tuple[Term, Term]]]]()
    for part in parts:
        if part.kind == z3.Z3_OP_EQ and z3.is_bv(part.operands[0].term) and part.operands[0].term.size() == POSITION:
            told = [one for test, terms, rest in _cases(part.term) if (one := _by_digits(test, terms, rest))]
            if told:
                found.append((part.term, told))
    return found


def _cases(equality: Term) -> Iterator[tuple[list[Term], _Sum, int]]:
    """The difference of both sides as a sum and a number, for each side of the choices that are added in it."""
    pending = [(list[Term](), [(equality.arg(0), 1), (equality.arg(1), -1)])]
    count = 0
    while pending and count < MOST_CASES:
        tests, added = pending.pop()
        terms, rest = _sum_of(added)
        if len(terms) > MOST_ADDENDS:
            return
        choice = next((one for one in terms.values() if z3.is_app_of(one[0], z3.Z3_OP_ITE)), None)
        if choice is None:
            count += 1
            yield tests, terms, rest
            continue
        term, times = choice
        others = [one for one in terms.values() if one is not choice]
        for k, test in ((1, term.arg(0)), (2, z3.Not(term.arg(0)))):
            pending.append(([*tests, test], [*others, (term.arg(k), times), (number(1), rest)]))


def _sum_of(added: list[tuple[Term, int]]) -> tuple[_Sum, int]:
    """What is added, each term once, and the number beside it."""
    found, rest, pending = _Sum(), 0, list(added)
    while pending:
        term, times = pending.pop()
        if z3.is_bv_value(term):
            rest += times * term.as_signed_long()
        elif z3.is_app_of(term, z3.Z3_OP_BADD):
            pending += [(part, times) for part in term.children()]
        elif z3.is_app_of(term, z3.Z3_OP_BMUL) and term.num_args() == 2 and z3.is_bv_value(term.arg(0)):
            pending.append((term.arg(1), times * term.arg(0).as_signed_long()))
        else:
            before = found.get(term.get_id(), (term, 0))[1]
            found[term.get_id()] = term, before + times
    return {key: one for key, one in found.items() if one[1]}, rest


def _by_digits(tests: list[Term], terms: _Sum, rest: int) -> tuple[Term, Term] | None:
    """When, and how, the difference of two sums is 0 by their digits; None where they are not of digits."""
    sides: tuple[dict[int, Term], dict[int, Term]] = {}, {}
    for term, times in terms.values():
        side = sides[times < 0]
        if abs(times) in side:
            return None
        side[abs(times)] = term
    places = sorted({*sides[0], *sides[1]}, reverse=True)
    if len(places) < 2 or places[0] >= LIMIT or abs(rest) >= LIMIT:
        return None
    sizes = [LIMIT // places[0], *(above // below for above, below in pairwise(places))]
    numbers, left = list[int](), abs(rest)
    for place in places:
        numbers.append(left // place)
        left %= place
    if left:
        return None
    conditions, equal = list(tests), list[Term]()
    for place, size, more in zip(places, sizes, numbers, strict=True):
        digits = [side.get(place, number(0)) for side in sides]
        digits[rest < 0] = z3.simplify(digits[rest < 0] + number(more))
        conditions += [z3.ULT(digit, number(size)) for digit in digits]
        equal.append(digits[0] == digits[1])
    return z3.And(conditions), z3.And(equal)
