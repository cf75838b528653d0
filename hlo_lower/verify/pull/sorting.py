"""The law of sort: a stable order is that of ranks, and an element's rank is the number of those before it.

    rank(i)   = how many j come before i: those that the comparator puts before it, and equal ones with j < i
    result[k] = operand[the i of rank k]

Rows that were sorted before, and are compared by what stands there, are in the order of both: the numbers that they had
before are ranked, and of two equal ones the one that came first in the earlier order comes first.

This holds where the comparator is a strict weak order on the elements that are sorted: asked of z3 for any three of
them. A sort that is not stable leaves the order of equal elements open, so that it has a law where none are equal.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.congruence import same_function, scalars
from hlo_lower.verify.pull.folding import Terms, combine_all, know_ranks
from hlo_lower.verify.pull.parts import parts_of
from hlo_lower.verify.pull.prover import Ask, At, Pull
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Place, Term, choose, chosen_at, element_of, has_variable, number

ALWAYS_WRITTEN_OUT = 2
MOST_WRITTEN_OUT = 8
"""Elements of a row up to which a sort is written out, in each attempt and in that of many steps: each pair
is compared."""

Row: TypeAlias = list[Term]
"""One element of each operand, which move together."""


@dataclass(frozen=True)
class Rows:
    """What is sorted.

    Attributes:
      dim, size: the dim along which, and how many rows there are.
      row: the row at a number.
      before: whether one row comes before another.
      is_stable: whether equal rows stay in their order.
    """

    dim: int
    size: int
    row: Callable[[At, Term], Terms]
    before: Callable[[At, Row, Row], Pull]
    is_stable: bool = True


def sort(at: At) -> Pull:
    """result[p] is of the row that p[dimension] rows precede; if that is not known, a function of all rows."""
    shape = at.operand_type(0)[0]
    dim = mlir.integer_of(at.op.raw.attributes["dimension"]) % len(shape)
    size = shape[dim]
    if not isinstance(size, int):
        return (yield from _pull_as_function(at))

    def row(here: At, position: Term) -> Terms:
        found: Row = []
        for k in range(len(at.op.inputs)):
            found.append((yield here.operand(k, _with(at.place, dim, position))))
        return found

    def before(here: At, first: Row, second: Row) -> Pull:
        given = [term for pair in zip(first, second, strict=True) for term in pair]
        return z3.simplify((yield from scalars(here, at.op.bodies[0], given))[0])

    return (yield from _pull_sorted(at, Rows(dim, size, row, before, mlir.is_true(at.op.raw, "is_stable"))))


def top_k(at: At) -> Pull:
    """result[p] is of the row that a stable sort, greatest first, puts at p; floats have their total order."""
    (shape, element), index = at.operand_type(0), at.type(at.op.results[1])[1]
    dim, size = len(shape) - 1, shape[-1]
    if not isinstance(size, int):
        return (yield from _pull_as_function(at))

    def row(here: At, position: Term) -> Terms:
        value = yield here.operand(0, _with(at.place, dim, position))
        return [value, here.numbers.convert(position, element_of("i32"), index)]

    def before(here: At, first: Row, second: Row) -> Pull:
        yield from ()
        kind = "TOTALORDER" if element.is_float else ""
        return z3.simplify(here.numbers.compare("GT", first[0], second[0], element, kind))

    return (yield from _pull_sorted(at, Rows(dim, size, row, before)))


def _with(place: Place, dim: int, position: Term) -> list[Term]:
    return [*place[:dim], position, *place[dim + 1 :]]


def _pull_sorted(at: At, rows: Rows) -> Pull:
    try:
        return (yield from _pull_by_order(at, rows))
    except Beyond as reason:
        if "time" in str(reason):
            raise
        return (yield from _pull_as_function(at))


def _pull_as_function(at: At) -> Pull:
    at.prover.has_closed = True
    return (yield from same_function(at))


def _pull_by_order(at: At, rows: Rows) -> Pull:
    """The element of the row that the order puts at the place that is asked for.

    Raises:
      Beyond: no order is found, or the rows are too many to be written out where a fold is in row-major order.
    """
    which = at.place[rows.dim]
    if rows.size == 1:
        return (yield from rows.row(at, which))[at.result]
    at.prover.has_sort |= rows.size > ALWAYS_WRITTEN_OUT
    is_short = rows.size <= (MOST_WRITTEN_OUT if at.prover.chain > 1 else ALWAYS_WRITTEN_OUT)
    if not is_short and not at.prover.any_order:
        raise Beyond("a sort of many rows")
    yield from _check_order(at, rows)
    at.use("ranks")
    if is_short:
        return chosen_at((yield from _written_out(at, rows)), which)
    return (yield from _by_rank(at, rows))


def _check_order(at: At, rows: Rows) -> Generator[Ask, Term, None]:
    """Ask whether the rows have a strict weak order, with nothing but alike rows equal where the sort is not stable.

    Raises:
      Beyond: that is not found.
    """
    deep, three, places = at, list[Row](), list[Term]()
    for _ in range(3):
        deep = deep.deeper()
        places.append(deep.positions.variable(f"s{deep.depth}.", rows.size))
        three.append((yield from rows.row(deep, places[-1])))

    def before(i: int, j: int) -> Pull:
        return (yield from rows.before(deep, three[i], three[j]))

    itself, forth, back = (yield from before(0, 0)), (yield from before(0, 1)), (yield from before(1, 0))
    onwards, over, backwards = (yield from before(1, 2)), (yield from before(0, 2)), (yield from before(2, 1))
    back_over = yield from before(2, 0)
    laws = [
        z3.Not(itself),
        z3.Not(z3.And(forth, back)),
        z3.Implies(z3.And(forth, onwards), over),
        z3.Implies(z3.Not(z3.Or(forth, back, onwards, backwards)), z3.Not(z3.Or(over, back_over))),
    ]
    if not rows.is_stable:
        alike = z3.And([a == b for a, b in zip(three[0], three[1], strict=True)])
        laws.append(z3.Or(places[0] == places[1], forth, back, alike))
    if not at.prover.same([(z3.And(laws), z3.BoolVal(True))]):
        raise Beyond("a comparator that is no order, or leaves one open")


def _written_out(at: At, given: Rows) -> Terms:
    """The results at each place: each row moves in front of those that it belongs before, and stays behind equals."""
    rows: list[Row] = []
    for last in range(given.size):
        rows.append((yield from given.row(at, number(last))))
        for k in range(last, 0, -1):
            front, back = rows[k - 1], rows[k]
            swaps = yield from given.before(at, back, front)
            rows[k - 1] = [z3.simplify(choose(swaps, b, a)) for a, b in zip(front, back, strict=True)]
            rows[k] = [z3.simplify(choose(swaps, a, b)) for a, b in zip(front, back, strict=True)]
    return [terms[at.result] for terms in rows]


def _by_rank(at: At, rows: Rows) -> Pull:
    """operand[i] for the i whose rank is the place that is asked for."""
    outer = at.deeper()
    [own], _ = outer.bound_place([rows.size])
    mine = yield from rows.row(outer, own)
    others = tuple(term.get_id() for dim, term in enumerate(at.place) if dim != rows.dim)
    key = ("ranks", *at.op.results, *others)
    if key not in at.frame.known:
        inner = outer.deeper()
        [other], bound = inner.bound_place([rows.size])
        theirs = yield from rows.row(inner, other)
        first = yield from rows.before(inner, theirs, mine)
        behind = yield from rows.before(inner, mine, theirs)
        before = _order_before(at, (first, behind), own, other, rows.size)
        first, behind, stood = (first, behind, other < own) if before is None else before.tests
        comes = z3.simplify(z3.Or(first, z3.And(z3.Not(behind), stood)))
        rank = combine_all(inner, "add", choose(comes, number(1), number(0)), bound, [rows.size], element_of("i32"))
        number_of = know_ranks(outer, own, rank, rows.size, (other, comes))
        at.frame.known[key] = (number_of, before), at.place
    (number_of, before), _ = at.frame.known[key]
    row = number_of(at.place[rows.dim])
    return z3.simplify(z3.substitute(mine[at.result], (own, row if before is None else before.place_of(row))))


@dataclass(frozen=True)
class Before:
    """The order in which rows stand that are sorted again.

    Attributes:
      tests: by the numbers that two rows had in front of that order: whether the other one comes first, whether it
        comes behind, and whether it stood in front.
      place_of: gives the place where that order puts a number.
    """

    tests: tuple[Term, Term, Term]
    place_of: Callable[[Term], Term]


def _order_before(at: At, tests: Sequence[Term], own: Term, other: Term, size: int) -> Before | None:
    """The order in which rows stand of which tests read nothing but the numbers that they had before.

    Equal: the places are these numbers' ranks, one to one, so that counting over the ones counts over the others. Of
    two places one is in front where the number there comes first in that order.
    """
    parts = parts_of(tests)
    for name in dict.fromkeys(part.name.split(":")[0] for part in parts):
        order = at.prover.ranked.get(name)
        if order is None or order.size != size:
            continue
        read = [part.term for part in parts if part.name.split(":")[0] == name]
        numbers = [next((one for one in read if order.place(one).eq(place)), None) for place in (other, own)]
        if numbers[0] is None or numbers[1] is None:
            continue
        stood = order.comes(numbers[0], numbers[1])
        both = [at.positions.variable(name, size) for name in ("first.", "second.")]
        given = list(zip(numbers, both, strict=True))
        found = [z3.simplify(z3.substitute(test, *given)) for test in (*tests, stood)]
        if not any(has_variable(test, own, other) for test in found):
            at.use("order of an order")
            first, behind, stood = (z3.substitute(test, *zip(both, (other, own), strict=True)) for test in found)
            return Before((first, behind, stood), partial(order.inverse.back, numbers[1]))
    return None
