"""The law of sort: a stable order is that of ranks, and an element's rank is the number of those before it.

    rank(i)   = how many j come before i: those that the comparator puts before it, and equal ones with j < i
    result[k] = operand[the i of rank k]

This holds where the comparator is a strict weak order on the elements that are sorted: asked of z3 for any three of
them. A sort that is not stable leaves the order of equal elements open, so that it has a law where none are equal.
"""

from collections.abc import Callable, Generator
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.congruence import same_function, scalars
from hlo_lower.verify.pull.folding import Terms, combined, of_rank
from hlo_lower.verify.pull.prover import Ask, At, Pull
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Term, chosen, element_of, number

MOST_WRITTEN_OUT = 8
"""Elements of a row up to which a sort is written out: it takes the square of so many comparisons."""

Row: TypeAlias = list[Term]
"""One element of each operand, which move together."""

RowAt: TypeAlias = Callable[[At, Term], Terms]
"""The row at a number."""


def sort(at: At) -> Pull:
    """The row that p[dimension] rows stand before: by ranks, written out if few, else a function of all rows."""
    try:
        return (yield from _ordered(at))
    except Beyond as reason:
        if "time" in str(reason):
            raise
        at.prover.has_closed = True
        return (yield from same_function(at))


def _ordered(at: At) -> Pull:
    shape, attributes = at.operand_type(0)[0], at.op.raw.attributes
    dim = mlir.integer_of(attributes["dimension"]) % len(shape)
    is_stable = "is_stable" in attributes and str(attributes["is_stable"]) == "true"
    size, which = shape[dim], at.place[dim]
    if size == 1:
        return (yield at.operand(at.result))

    def row(here: At, position: Term) -> Terms:
        found: Row = []
        for k in range(len(at.op.inputs)):
            found.append((yield here.operand(k, [*at.place[:dim], position, *at.place[dim + 1 :]])))
        return found

    at.prover.has_long_sort |= size > MOST_WRITTEN_OUT
    is_short = size <= (MOST_WRITTEN_OUT if at.prover.chain > 1 else 2)
    if not is_short and not at.prover.any_order:
        raise Beyond("a sort in a row-major order")
    yield from _check_order(at, row, size, is_stable=is_stable)
    at.use("ranks")
    if is_short:
        return chosen_at((yield from _written_out(at, row, size)), which)
    return (yield from _by_rank(at, row, size))


def _before(at: At, first: Row, second: Row) -> Pull:
    """Whether the comparator puts one row before another."""
    given = [term for pair in zip(first, second, strict=True) for term in pair]
    return z3.simplify((yield from scalars(at, at.op.bodies[0], given))[0])


def _check_order(at: At, row: RowAt, size: int, *, is_stable: bool) -> Generator[Ask, Term, None]:
    """Ask whether the comparator is a strict weak order on the rows, total where the sort is not stable.

    Raises:
      Beyond: that is not found.
    """
    deep, rows, places = at, list[Row](), list[Term]()
    for _ in range(3):
        deep = deep.deeper()
        places.append(deep.positions.variable(f"s{deep.depth}.", size))
        rows.append((yield from row(deep, places[-1])))

    def before(i: int, j: int) -> Pull:
        return (yield from _before(deep, rows[i], rows[j]))

    itself, forth, back = (yield from before(0, 0)), (yield from before(0, 1)), (yield from before(1, 0))
    onwards, over, backwards = (yield from before(1, 2)), (yield from before(0, 2)), (yield from before(2, 1))
    back_over = yield from before(2, 0)
    laws = [
        z3.Not(itself),
        z3.Not(z3.And(forth, back)),
        z3.Implies(z3.And(forth, onwards), over),
        z3.Implies(z3.Not(z3.Or(forth, back, onwards, backwards)), z3.Not(z3.Or(over, back_over))),
    ]
    if not is_stable:
        alike = z3.And([a == b for a, b in zip(rows[0], rows[1], strict=True)])
        laws.append(z3.Or(places[0] == places[1], forth, back, alike))
    if not at.prover.same([(z3.And(laws), z3.BoolVal(True))]):
        raise Beyond("a comparator that is no order, or leaves one open")


def chosen_at(terms: list[Term], which: Term) -> Term:
    """The term of a number among some."""
    found = terms[-1]
    for k in reversed(range(len(terms) - 1)):
        found = chosen(z3.simplify(which == number(k)), terms[k], found)
    return found


def _written_out(at: At, row: RowAt, size: int) -> Terms:
    """The results at each place: each row moves in front of those that it belongs before, and stays behind equals."""
    rows: list[Row] = []
    for last in range(size):
        rows.append((yield from row(at, number(last))))
        for k in range(last, 0, -1):
            front, back = rows[k - 1], rows[k]
            swaps = yield from _before(at, back, front)
            rows[k - 1] = [z3.simplify(chosen(swaps, b, a)) for a, b in zip(front, back, strict=True)]
            rows[k] = [z3.simplify(chosen(swaps, a, b)) for a, b in zip(front, back, strict=True)]
    return [terms[at.result] for terms in rows]


def _by_rank(at: At, row: RowAt, size: int) -> Pull:
    """operand[i] for the i whose rank is the place that is asked for."""
    dim = mlir.integer_of(at.op.raw.attributes["dimension"]) % len(at.place)
    outer = at.deeper()
    [own], _ = outer.bound_place("k", [size])
    inner = outer.deeper()
    [other], bound = inner.bound_place("k", [size])
    mine, theirs = (yield from row(outer, own)), (yield from row(inner, other))
    first = yield from _before(inner, theirs, mine)
    behind = yield from _before(inner, mine, theirs)
    comes = z3.simplify(z3.Or(first, z3.And(z3.Not(behind), other < own)))
    rank = combined(inner, "add", chosen(comes, number(1), number(0)), bound, [size], element_of("i32"))
    assert rank.decl().kind() == z3.Z3_OP_UNINTERPRETED
    at.prover.know(rank, z3.ULT(rank, number(size)))
    at.prover.ranks[rank.decl().name()] = size, [str(term) for term in rank.children()].index(str(own))
    return z3.simplify(z3.substitute(mine[at.result], (own, of_rank(outer, own, rank, at.place[dim], size))))
