"""Between which numbers a term of positions lies, and which of its choices that decides.

16 t + k of t < 6, k < 16           lies between 0 and 95
i < 100 ? i : 99 of i = 16 t + k    is i
(16 t + k) / 16                     is t
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from hlo_lower.verify.pull.parts import Part, operands_first
from hlo_lower.verify.pull.sizes import LIMIT, Extent
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import SIZE, Term, number, resize

Ends: TypeAlias = tuple[int, int]
"""The least and the greatest number that a term may be: of a signed one, or of one that is never negative."""

YES, NO = (1, 1), (0, 0)
"""The ends of a test that holds, and of one that does not."""


class Ranges:
    """The ends of terms of some variables.

    Args:
      sizes: what each variable is less than, by name.

    Attributes:
      of_symbols: the ends of what a symbol gives, whatever it is applied to, by name.
      one_to_one: the symbols that map the numbers below a total one to one onto them, by name: which argument they map,
        the total, and the name of the symbol that maps back, whose arguments are otherwise the same.
    """

    def __init__(self, sizes: Mapping[str, Extent]) -> None:
        self._sizes = sizes
        self.of_symbols: dict[str, Ends] = {}
        self.one_to_one: dict[str, tuple[int, int, str]] = {}
        self._known: dict[int, tuple[Term, Ends | None, Term]] = {}
        self._most: dict[Extent, int] = {}

    def bound_size(self, size: Extent, times: int) -> None:
        """Take it that a size that is not known, so many times, is less than 2^31."""
        if times > self._most.get(size, 1):
            self._most[size] = times
            self._known.clear()

    def ends(self, term: Term) -> Ends | None:
        """The ends of a term that is made of variables by +, *, /, rem and choices; None of another one."""
        self._look(term)
        return self._known[term.get_id()][1]

    def simplify(self, term: Term) -> Term:
        """The term without the choices and divisions that its parts' ends decide."""
        self._look(term)
        return self._known[term.get_id()][2]

    def _look(self, term: Term) -> None:
        """Find the ends of a term and of what it is made of, of each part once, however often it stands there."""
        for part in operands_first([term], self._known, _ruled_operands):
            rule, known = _rules().get(part.kind), [self._known[one.number] for one in _ruled_operands(part)]
            found = self._of_leaf(part) if rule is None else rule(part.term, [ends for _, ends, _ in known])
            self._known[part.number] = (
                part.term,
                found,
                self._simplify_return(self._simplify_division(self._simplify_choice(part.term, known))),
            )

    def _simplify_choice(self, term: Term, known: list[tuple[Term, Ends | None, Term]]) -> Term:
        """The term with its parts simplified; a choice that the ends decide becomes the side that it takes.

        a <= b ? a : b is b if b <= a always holds, because both are equal where the test holds.
        """
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            test, *sides = term.children()
            if known[0][1] in (YES, NO):
                return known[1 if known[0][1] == YES else 2][2]
            if any(z3.is_app_of(test, kind) for kind in (z3.Z3_OP_SLEQ, z3.Z3_OP_ULEQ)):
                compared = test.children()
                is_of_them = all(a.eq(b) for a, b in zip(sides, compared, strict=True))
                is_of_them |= all(a.eq(b) for a, b in zip(sides, reversed(compared), strict=True))
                if is_of_them and _of_comparison(test, [self.ends(part) for part in reversed(compared)]) == YES:
                    return known[2][2]
        changed = [(part, new) for part, _, new in known if not part.eq(new)]
        return z3.simplify(z3.substitute(term, *changed)) if changed else term

    def _is_below(self, term: Term, total: int) -> bool:
        ends = self.ends(term)
        return ends is not None and ends[0] >= 0 and ends[1] < total

    def _simplify_return(self, term: Term) -> Term:
        """The number of which a symbol maps back what another one maps it to."""
        name = _symbol_of(term)
        if name not in self.one_to_one:
            return term
        which, total, back = self.one_to_one[name]
        place = term.arg(which)
        if _symbol_of(place) != back or not self._is_below(place.arg(self.one_to_one[back][0]), total):
            return term
        inner = self.one_to_one[back][0]
        others = ([a for k, a in enumerate(one.children()) if k != at] for one, at in ((term, which), (place, inner)))
        is_same = all(a.eq(b) for a, b in zip(*others, strict=True))
        return place.arg(inner) if is_same else term

    def _simplify_division(self, term: Term) -> Term:
        """Split a quotient or remainder of a sum: the parts that are multiples of the divisor, and the rest."""
        found = division(term)
        if found is None:
            return term
        given, by, is_quotient = found
        ends = self.ends(given)
        if ends is None or ends[0] < 0:
            return term
        inner = widened(given)
        if self.ends(inner) == ends and by < 1 << (inner.size() - 1):
            given = inner
        whole, rest = number(0, given.size()), number(0, given.size())
        for part in given.children() if z3.is_app_of(given, z3.Z3_OP_BADD) else [given]:
            times, factor = _factor(part)
            if times % by == 0:
                whole += number(times // by, given.size()) * factor
            else:
                rest += part
        rest = z3.simplify(rest)
        ends = self.ends(rest)
        if ends is None or ends[0] < 0:
            return term
        if ends[1] < by:
            told = whole if is_quotient else rest
        else:
            divisor = number(by, given.size())
            told = whole + z3.UDiv(rest, divisor) if is_quotient else z3.URem(rest, divisor)
        return z3.simplify(resize(told, term.size(), is_signed=False))

    def _of_leaf(self, part: Part) -> Ends | None:
        if z3.is_bv_value(part.term):
            return (part.term.as_signed_long(),) * 2
        if part.operands or part.name in self.of_symbols:
            name = part.name.split(":")[0]
            if name in self.one_to_one:
                which, total, _ = self.one_to_one[name]
                return (0, total - 1) if self._is_below(part.term.arg(which), total) else None
            return self.of_symbols.get(name)
        size = self._sizes.get(part.name)
        if size is None:
            return (0, LIMIT - 1) if part.name.startswith(SIZE) else None
        return (0, size - 1) if isinstance(size, int) else (0, (LIMIT - 1) // self._most.get(size, 1) - 1)


def _symbol_of(term: Term) -> str:
    """The name of the symbol that is applied; none of another term."""
    is_applied = z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) and term.num_args() > 0
    return term.decl().name().split(":")[0] if is_applied else ""


def _ruled_operands(part: Part) -> Sequence[Part]:
    """The operands of a part if a rule covers its kind, else none."""
    return part.operands if part.kind in _rules() else ()


def widened(term: Term) -> Term:
    """What stands behind the zeros of a term; another term itself."""
    is_behind = z3.is_app_of(term, z3.Z3_OP_CONCAT) and term.num_args() == 2 and z3.is_bv_value(term.arg(0))
    return term.arg(1) if is_behind and not term.arg(0).as_long() else term


def division(term: Term) -> tuple[Term, int, bool] | None:
    """What a term divides by which number, and whether it is the quotient; None of another term.

    z3 writes a division by a power of two as some of the bits of what is divided, after zeros. What is divided with a
    sign is taken for a number that is not negative.
    """
    kind = term.decl().kind()
    if kind in _quotients() or kind in _remainders():
        given, by = term.children()
        return (given, by.as_long(), kind in _quotients()) if z3.is_bv_value(by) and by.as_signed_long() > 0 else None
    if kind != z3.Z3_OP_CONCAT or term.num_args() != 2 or not z3.is_app_of(term.arg(1), z3.Z3_OP_EXTRACT):
        return None
    zeros, (high, low), given = term.arg(0), term.arg(1).params(), term.arg(1).arg(0)
    if given.size() > term.size() or not z3.is_bv_value(zeros) or zeros.as_long():
        return None
    if low == 0:
        return given, 1 << (high + 1), False
    return (given, 1 << low, True) if high == given.size() - 1 else None


def _factor(term: Term) -> tuple[int, Term]:
    """A term as a number times another term."""
    if z3.is_bv_value(term):
        return term.as_signed_long(), number(1, term.size())
    if z3.is_app_of(term, z3.Z3_OP_BMUL) and term.num_args() == 2 and z3.is_bv_value(term.arg(0)):
        return term.arg(0).as_signed_long(), term.arg(1)
    return 1, term


# --- the ends of an op, given those of its operands ---

Rule: TypeAlias = Callable[[Term, Sequence[Ends | None]], Ends | None]


@cache
def _rules() -> Mapping[int, Rule]:
    """The rule of each kind of term."""
    return {
        z3.Z3_OP_ITE: _of_choice,
        z3.Z3_OP_NOT: lambda _, ends: {YES: NO, NO: YES}.get(ends[0] or (0, 1)),
        z3.Z3_OP_SLEQ: _of_comparison,
        z3.Z3_OP_ULEQ: _of_comparison,
        z3.Z3_OP_BADD: _of_sum,
        z3.Z3_OP_BMUL: _of_product,
        z3.Z3_OP_CONCAT: _of_concatenation,
        z3.Z3_OP_EXTRACT: _of_bits,
        **dict.fromkeys(_quotients(), _of_quotient),
        **dict.fromkeys(_remainders(), _of_remainder),
    }


@cache
def _quotients() -> frozenset[int]:
    return frozenset({z3.Z3_OP_BUDIV, z3.Z3_OP_BUDIV_I, z3.Z3_OP_BSDIV, z3.Z3_OP_BSDIV_I})


@cache
def _remainders() -> frozenset[int]:
    return frozenset({z3.Z3_OP_BUREM, z3.Z3_OP_BUREM_I, z3.Z3_OP_BSREM, z3.Z3_OP_BSREM_I})


def _of_choice(_: Term, ends: Sequence[Ends | None]) -> Ends | None:
    test, yes, no = ends
    if test in (YES, NO):
        return yes if test == YES else no
    return None if yes is None or no is None else (min(yes[0], no[0]), max(yes[1], no[1]))


def _of_comparison(term: Term, ends: Sequence[Ends | None]) -> Ends | None:
    """Of a <= b; not where a number may be negative as one of them is read, and not as the other is."""
    first, second = ends
    if first is None or second is None:
        return None
    is_signed, limit = z3.is_app_of(term, z3.Z3_OP_SLEQ), 1 << (term.arg(0).size() - 1)
    if max(*first, *second) >= limit if is_signed else min(*first, *second) < 0:
        return None
    return YES if first[1] <= second[0] else NO if first[0] > second[1] else None


def _within(term: Term, least: int, most: int) -> Ends | None:
    """The ends of what does not wrap around."""
    limit = 1 << (term.size() - 1)
    return (least, most) if -limit <= least and most < limit else None


def _of_sum(term: Term, ends: Sequence[Ends | None]) -> Ends | None:
    told = [end for end in ends if end is not None]
    return _within(term, sum(a for a, _ in told), sum(b for _, b in told)) if len(told) == len(ends) else None


def _of_product(term: Term, ends: Sequence[Ends | None]) -> Ends | None:
    least, most = 1, 1
    for end in ends:
        if end is None:
            return None
        corners = [a * b for a in (least, most) for b in end]
        least, most = min(corners), max(corners)
    return _within(term, least, most)


def _of_concatenation(_: Term, ends: Sequence[Ends | None]) -> Ends | None:
    """Of zeros before a number that is not negative: that number."""
    *zeros, last = ends
    return last if last is not None and last[0] >= 0 and all(end == (0, 0) for end in zeros) else None


def _of_bits(term: Term, ends: Sequence[Ends | None]) -> Ends | None:
    """Some bits of a number: at most all of them are ones."""
    (high, low), given = term.params(), ends[0]
    most = (1 << (high - low + 1)) - 1
    if given is None or given[0] < 0 or given[1] >> low > most:
        return 0, most
    return given[0] >> low, given[1] >> low


def _of_quotient(_: Term, ends: Sequence[Ends | None]) -> Ends | None:
    """By a number that is known."""
    given, by = ends
    if given is None or by is None or by[0] != by[1] or by[0] <= 0 or given[0] < 0:
        return None
    return given[0] // by[0], given[1] // by[0]


def _of_remainder(_: Term, ends: Sequence[Ends | None]) -> Ends | None:
    """By a number that is known."""
    given, by = ends
    if given is None or by is None or by[0] != by[1] or by[0] <= 0 or given[0] < 0:
        return None
    return 0, min(given[1], by[0] - 1)
