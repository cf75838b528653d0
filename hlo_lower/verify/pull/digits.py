"""Two row-major numbers are equal where their digits are: z3 does not find it, as it multiplies bit by bit.

110 i + 10 j + k = 110 p + 10 q + r    is    i = p, j = q, k = r    where i, p < 2^31 / 110, j, q < 11, k, r < 10
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hlo_lower.verify.pull.parts import Part, once
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Term, number

MOST_CASES = 4
"""Cases of choices among the terms of a sum."""

MOST_ADDENDS = 16

LIMIT = 1 << (POSITION - 1)
"""What the numbers are less than: they do not wrap."""

_Sum = dict[int, tuple[Part, int]]
"""Terms that are added, by z3's number of them, each with what it is multiplied by."""


def equalities_of_digits(parts: Sequence[Part]) -> list[tuple[Term, list[tuple[Term, Term]]]]:
    """The equalities of numbers of several digits among some terms, and what each of them is equal to where a condition
    holds: the condition, and the equality of all digits."""
    return [(part.term, told) for part in parts if part.kind == z3.Z3_OP_EQ and (told := _equality_of_digits(part))]


@once
def _equality_of_digits(equality: Part) -> list[tuple[Term, Term]]:
    """What an equality is equal to where a condition holds; nothing where it is none of numbers of several digits."""
    first = equality.operands[0].term
    if not z3.is_bv(first) or first.size() != POSITION:
        return []
    return [told for test, terms, rest in _cases(equality) if (told := _by_digits(test, terms, rest))]


def _cases(equality: Part) -> Iterator[tuple[list[Term], _Sum, int]]:
    """The difference of both sides as a sum and a number, for each side of the choices that are added in it."""
    first, second = equality.operands
    pending = [(list[Term](), [(first, 1), (second, -1)], 0)]
    count = 0
    while pending and count < MOST_CASES:
        tests, added, beside = pending.pop()
        terms, rest = _sum_of(added, beside)
        if len(terms) > MOST_ADDENDS:
            return
        choice = next((one for one in terms.values() if one[0].kind == z3.Z3_OP_ITE), None)
        if choice is None:
            count += 1
            yield tests, terms, rest
            continue
        part, times = choice
        others = [one for one in terms.values() if one is not choice]
        test, *sides = part.operands
        for side, holds in zip(sides, (test.term, z3.Not(test.term)), strict=True):
            pending.append(([*tests, holds], [*others, (side, times)], rest))


def _sum_of(added: Sequence[tuple[Part, int]], rest: int) -> tuple[_Sum, int]:
    """What is added, each term once, and the number beside it, which is at first `rest`."""
    found, pending = _Sum(), list(added)
    while pending:
        part, times = pending.pop()
        if part.kind == z3.Z3_OP_BNUM:
            rest += times * part.term.as_signed_long()
        elif part.kind == z3.Z3_OP_BADD:
            pending += [(operand, times) for operand in part.operands]
        elif part.kind == z3.Z3_OP_BMUL and len(part.operands) == 2 and part.operands[0].kind == z3.Z3_OP_BNUM:
            pending.append((part.operands[1], times * part.operands[0].term.as_signed_long()))
        else:
            before = found.get(part.number, (part, 0))[1]
            found[part.number] = part, before + times
    return {key: one for key, one in found.items() if one[1]}, rest


def _by_digits(tests: list[Term], terms: _Sum, rest: int) -> tuple[Term, Term] | None:
    """When, and how, the difference of two sums is 0 by their digits; None where they are not of digits."""
    sides: tuple[dict[int, Term], dict[int, Term]] = {}, {}
    for part, times in terms.values():
        side = sides[times < 0]
        if abs(times) in side:
            return None
        side[abs(times)] = part.term
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
