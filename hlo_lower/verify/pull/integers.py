"""Terms of positions as integers, where none overflows: z3 multiplies and divides bits one by one, integers not.

t < (high - low + 319) / 320  and  320 t <= k - low  and  k < high      is asked of integers
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from hlo_lower.verify.pull.parts import Part, operands_first
from hlo_lower.verify.pull.ranges import Ends
from hlo_lower.verify.pull.sizes import LIMIT
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Term


class UnreadError(Exception):
    """A term that has no integer, or that may overflow."""


class Integers:
    """Integers for terms that were named, and for what is made of them by +, *, / by a number, and choices.

    Attributes:
      known: what holds of them.
    """

    def __init__(self) -> None:
        self.known: list[Term] = []
        self._found: dict[int, tuple[Term, Ends | None, Term]] = {}

    def name(self, term: Term, least: int, most: int) -> Term:
        """An integer for a term that lies between two numbers."""
        found = z3.Int(f"integer {len(self._found)}")
        self.known.append(z3.And(found >= least, found <= most))
        self._found[term.get_id()] = found, (least, most), term
        return found

    def of(self, term: Term) -> Term:
        """The integer of a term, or the truth of a test.

        Raises:
          UnreadError: it has none.
        """
        for part in operands_first([term], self._found):
            operands = [self._found[one.number][:2] for one in part.operands]
            found, ends = self._made(part, [a for a, _ in operands], [b for _, b in operands])
            if ends is not None and not (ends[0] >= -LIMIT and ends[1] < LIMIT):
                raise UnreadError
            self._found[part.number] = found, ends, part.term
        return self._found[term.get_id()][0]

    def ends(self, term: Term) -> Ends:
        """Between which numbers a term that was read lies."""
        found = self._found[term.get_id()][1]
        if found is None:
            raise UnreadError
        return found

    def _made(self, part: Part, terms: Sequence[Term], ends: Sequence[Ends | None]) -> tuple[Term, Ends | None]:
        """What a part is of the integers of its operands, and between which numbers it lies; None of a test."""
        if z3.is_bv_value(part.term) and part.term.size() == POSITION:
            value = part.term.as_signed_long()
            return z3.IntVal(value), (value, value)
        if part.kind in _tests():
            if any(end is not None and end[0] < 0 for end in ends) and part.kind in _unsigned():
                raise UnreadError
            if len({end is None for end in ends}) > 1 or (part.kind in _of_numbers() and None in ends):
                raise UnreadError
            return _tests()[part.kind](*terms), None
        numbers = [end for end in ends if end is not None]
        if part.kind == z3.Z3_OP_ITE and len(numbers) == 2:
            (a, b), (c, d) = numbers
            return z3.If(*terms), (min(a, c), max(b, d))
        if len(numbers) != len(ends) or not numbers:
            raise UnreadError
        if part.kind == z3.Z3_OP_BADD:
            return z3.Sum(*terms), (sum(a for a, _ in numbers), sum(b for _, b in numbers))
        if part.kind == z3.Z3_OP_BMUL and len(numbers) == 2 and numbers[0][0] == numbers[0][1]:
            products = [numbers[0][0] * end for end in numbers[1]]
            return numbers[0][0] * terms[1], (min(products), max(products))
        if part.kind in (z3.Z3_OP_BSDIV, z3.Z3_OP_BSDIV_I) and numbers[1][0] == numbers[1][1] > 0:
            return self._quotient(terms[0], numbers[0], numbers[1][0])
        raise UnreadError

    def _quotient(self, given: Term, ends: Ends, by: int) -> tuple[Term, Ends]:
        """A quotient, towards zero, by a number above 0."""
        found = z3.Int(f"quotient {len(self._found)}")
        above, below = z3.And(by * found <= given, given < by * found + by), z3.And(by * found >= given, found <= 0)
        self.known += [z3.Implies(given >= 0, above), z3.Implies(given < 0, z3.And(below, given > by * found - by))]
        return found, (-(-ends[0] // by) if ends[0] < 0 else ends[0] // by, max(0, ends[1] // by))


@cache
def _tests() -> Mapping[int, Callable[..., Any]]:
    return {
        z3.Z3_OP_TRUE: lambda: z3.BoolVal(True),
        z3.Z3_OP_FALSE: lambda: z3.BoolVal(False),
        z3.Z3_OP_AND: z3.And,
        z3.Z3_OP_OR: z3.Or,
        z3.Z3_OP_NOT: z3.Not,
        z3.Z3_OP_EQ: operator.eq,
        z3.Z3_OP_SLEQ: operator.le,
        z3.Z3_OP_SLT: operator.lt,
        z3.Z3_OP_SGEQ: operator.ge,
        z3.Z3_OP_SGT: operator.gt,
        z3.Z3_OP_ULEQ: operator.le,
        z3.Z3_OP_ULT: operator.lt,
        z3.Z3_OP_UGEQ: operator.ge,
        z3.Z3_OP_UGT: operator.gt,
    }


@cache
def _unsigned() -> frozenset[int]:
    return frozenset((z3.Z3_OP_ULEQ, z3.Z3_OP_ULT, z3.Z3_OP_UGEQ, z3.Z3_OP_UGT))


@cache
def _of_numbers() -> frozenset[int]:
    return _unsigned() | {z3.Z3_OP_SLEQ, z3.Z3_OP_SLT, z3.Z3_OP_SGEQ, z3.Z3_OP_SGT}
