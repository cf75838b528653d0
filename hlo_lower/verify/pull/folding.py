"""Laws of what combines elements: reduce, dot_general and scatter are folds over bound positions."""

from collections.abc import Callable, Generator, Sequence
from itertools import combinations, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlo_lower.base.element_types import HALF_FLOATS, ElementType, element_type
from hlo_lower.ir import mlir
from hlo_lower.ops.spec import COMBINING, identity_of
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.chunks import over_list
from hlo_lower.verify.pull.congruence import body_on_variables, same_function, scalars
from hlo_lower.verify.pull.floats import F32, is_finite, is_nan
from hlo_lower.verify.pull.moving import chosen_of, index_at, integers, undilate
from hlo_lower.verify.pull.occurrences import IN_ORDER, abstract_parts, multiple_of
from hlo_lower.verify.pull.parts import part_of, parts_of
from hlo_lower.verify.pull.prover import SOON_SECONDS, Ask, At, Pull
from hlo_lower.verify.pull.ranges import division, widened
from hlo_lower.verify.pull.sizes import LIMIT, Extent, are_known, extent, is_at_most, is_empty, is_one, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import (
    IEEE,
    POSITION,
    SIZE,
    Place,
    Term,
    choice_of,
    choose,
    element_of,
    has_variable,
    is_application,
    is_truth,
    literal,
    number,
    sort_of,
    symbols_of,
    value_of,
)
from hlo_lower.verify.read.program import Body, Op, ValueId

Terms: TypeAlias = Generator[Ask, Term, list[Term]]
Step: TypeAlias = Callable[[At, Term, list[Term]], Terms]
"""What a step of a fold makes of what the steps before it made, given its number."""


MOST_ADDENDS = 256


def combiner(body: Body) -> str:
    """The op of a body that combines its two arguments by it, in either order; "" of another body."""
    if len(body.returned) != 1 or len(body.ops) != 1 or len(body.arguments) != 2:
        return ""
    [op] = body.ops
    is_plain = op.results == body.returned and sorted(op.inputs) == sorted(body.arguments)
    return op.short_name if is_plain and op.name in COMBINING else ""


def _check_types(at: At, body: Body, elements: Sequence[str]) -> None:
    """Refuse a body that computes in other types than the operands have."""
    if [at.type(value)[1].name for value in body.arguments] != [*elements, *elements]:
        raise Beyond("a body in a wider type")


def reduce(at: At) -> Pull:
    """A fold over the positions of the reduced dims, in row-major order."""
    values, shape = at.op.inputs[: len(at.op.results)], at.operand_type(0)[0]
    dims, kept = integers(at, "dimensions"), iter(at.place)
    outer = [None if d in dims else next(kept) for d in range(len(shape))]

    def elements(here: At, along: Sequence[Term]) -> Terms:
        inner = dict(zip(dims, along, strict=True))
        place = [inner[d] if term is None else term for d, term in enumerate(outer)]
        found: list[Term] = []
        for value in values:
            found.append((yield here.value(value, place)))
        return found

    return (yield from _fold_elements(at, [shape[d] for d in dims], elements))


def reduce_window(at: At) -> Pull:
    """A fold over the positions of a window, in row-major order; elements outside the operand are the initial value.

    XLA skips those elements; if that makes a difference, the op is only a function of its operands.
    """
    count, shape = len(at.op.results), at.operand_type(0)[0]
    if not are_known(shape):
        return (yield from same_function(at))
    ones, attributes = (1,) * len(shape), at.op.raw.attributes
    names = ("window_strides", "window_dilations", "base_dilations")
    strides, steps, holes = (integers(at, name) if name in attributes else ones for name in names)
    edges = mlir.dense_integers(attributes["padding"]) if "padding" in attributes else (0,) * (2 * len(shape))
    lows, single = edges[::2], combiner(at.op.bodies[0])
    if any(edges) or max(holes, default=1) > 1:
        first = yield at.value(at.op.inputs[count], ())
        if not _may_be_repeated(single, at.element, first):
            return (yield from same_function(at))

    def elements(here: At, along: Sequence[Term]) -> Terms:
        dims = zip(at.place, strides, along, steps, lows, strict=True)
        moved = [outer * number(a) + inner * number(b) - number(low) for outer, a, inner, b, low in dims]
        test, place = undilate(moved, shape, holes)
        found: list[Term] = []
        for value, outside in zip(at.op.inputs[:count], at.op.inputs[count:], strict=True):
            asks = here.value(value, place), here.value(outside, ())
            found.append((yield from chosen_of(here, test, *asks)))
        return found

    sizes = integers(at, "window_dimensions")
    return (yield from _fold_elements(at, sizes if 0 not in shape else [*sizes, 0], elements))


def _fold_elements(at: At, sizes: Sequence[Extent], elements: Callable[[At, Sequence[Term]], Terms]) -> Pull:
    """Fold the elements at all places of some dims with an op's body, in row-major order.

    Args:
      at: where.
      sizes: the sizes of the dims.
      elements: the elements of all operands at a place of these dims.
    """
    op, count, body, element = at.op, len(at.op.results), at.op.bodies[0], at.element
    types = [at.type(value)[1].name for value in op.inputs[:count]]
    _check_types(at, body, types)
    first: list[Term] = []
    for value in op.inputs[count:]:
        first.append((yield at.value(value, ())))
    single = combiner(body)
    if is_empty(sizes):
        return first[at.result]
    if are_known(sizes) and (
        is_at_most(sizes, 1) or (is_at_most(sizes, _addends(at)) and _may_be_written_out(single, element, first[0]))
    ):
        for along in product(*map(range, sizes)):
            terms = yield from elements(at, list(map(number, along)))
            first = yield from scalars(at, body, [*first, *terms])
        return first[at.result]
    deep = at.deeper()
    along, bound = deep.bound_place(sizes)
    terms = yield from elements(deep, along)
    at.use("fold")
    if (at.prover.any_order or is_truth(element)) and neutral(single, element) is not None:
        found = _combined_or_split(deep, single, _but_for_start(at, single, terms[0], first[0]), bound, sizes)
        return at.numbers.compute(single, [first[0], found], element)
    if _is_rounded_once(at, single):
        term, begin = (at.numbers.widen(one, element) for one in (terms[0], first[0]))
        found = combine_all(deep, single, term, bound, sizes, F32)
        return at.numbers.narrow(at.numbers.compute(single, [begin, found], F32), element)
    at.use("order of a fold")
    kind, varying = ("reduce", single, element.name, at.result), _varying(sizes)
    key, ordered = (*kind, varying), (*kind, IN_ORDER)
    if single and element.name in HALF_FLOATS:
        at.use("half floats")
        terms, first = ([at.numbers.widen(t, element) for t in ts] for ts in (terms, first))
        in_f32 = ("reduce", single, F32.name, at.result, IN_ORDER)
        found = at.prover.occurrence(at, in_f32, [*terms, *first], bound, sort_of(F32), sizes=varying)
        if single in ("maximum", "minimum"):
            at.numbers.know_half(found, element)
        return at.numbers.narrow(found, element)
    is_some = are_known(sizes)  # of no elements it is the first one, which may be greater than the least number
    if (
        is_some
        and (single, element.name) == ("maximum", "i32")
        and at.prover.same([(terms[0] < first[0], z3.BoolVal(False))])
    ):
        first = [lowest()]
        found = at.prover.occurrence(at, key, [*terms, *first], bound, sort_of(element))
        if len(bound) == 1:
            total = prod(sizes)
            at.prover.know_greatest(found, total, lambda test, which: _candidates(at, test, which, total))
        return found
    if single:
        return at.prover.occurrence(at, ordered, [*terms, *first], bound, sort_of(element), sizes=varying)
    variables, steps = yield from body_on_variables(deep, body, "fold")
    return at.prover.occurrence(at, key, [*terms, *first, *steps], [*bound, *variables], sort_of(element))


def _but_for_start(at: At, single: str, term: Term, first: Term) -> Term:
    """An element of a fold that may meet its start again, with the neutral element where it is the start."""
    again, unit = choice_of(term, first), neutral(single, at.element)
    if again is None or unit is None or unit.eq(first) or not _may_be_repeated(single, at.element, first):
        return term
    at.use("start again")
    return choose(*again, unit)


def _varying(sizes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The sizes of dims that have more than one position."""
    return tuple(size for size in sizes if not is_one(size))


def _may_be_repeated(single: str, element: ElementType, first: Term) -> bool:
    """Whether a fold that begins with an element gives the same if it meets this element again."""
    if single in ("and", "or", "maximum", "minimum"):
        return True
    unit = identity_of(f"stablehlo.{single}", element)
    if unit is None or element.is_complex:
        return False
    return first.eq(literal(unit, element)) or (element.is_float and value_of(first, element) == unit)


def _may_be_written_out(single: str, element: ElementType, first: Term) -> bool:
    """Whether the order of a reduce does not matter, nor how often its initial value is taken."""
    if not single or not element.is_integer:
        return False
    if single in ("and", "or", "maximum", "minimum") or is_truth(element):
        return single != "xor"
    unit = neutral(single, element)
    return unit is not None and first.eq(unit)


def _addends(at: At) -> int:
    """Elements up to which a reduction of integers is written out: it takes less than the steps of another fold."""
    return MOST_ADDENDS if at.prover.chain > 1 else 2


def _is_rounded_once(at: At, single: str) -> bool:
    """Whether f16 or bf16 are added or multiplied in any order, and may be in f32, to be rounded at the end."""
    is_free = at.prover.reassociated and at.prover.any_order and not at.prover.is_finite_first
    if is_free and single in ("add", "multiply") and at.element.name in HALF_FLOATS:
        at.use("rounded once")
        return True
    return False


def neutral(single: str, element: ElementType) -> Term | None:
    """What a combining op gives the other operand for; None of half floats, whose steps round, and where unknown."""
    if element.is_complex or element.name in HALF_FLOATS or not (element.is_integer or element.name in IEEE):
        return None
    found = identity_of(f"stablehlo.{single}", element)
    return None if found is None else literal(found, element)


def combine_all(
    at: At, single: str, term: Term, bound: Sequence[Term], sizes: Sequence[Extent], element: ElementType | None = None
) -> Term:
    """Combine a term's elements at all places of some dims, in whatever order the consumer takes.

    Elements under a test that never holds give the neutral element. The maximum or minimum of floats is NaN if one of
    them is.
    """
    element = element or at.element
    unit, term = neutral(single, element), z3.simplify(term)
    assert unit is not None
    at.use("fold")
    is_cut = at.prover.reassociated and element.is_float
    if is_empty(sizes):
        return unit
    if are_known(sizes) and is_at_most(sizes, 1 if is_cut else _addends(at)):
        found = unit
        for along in product(*(range(n) for n in sizes if n != 1)):
            here = z3.simplify(z3.substitute(term, *zip(bound, map(number, along), strict=True)))
            found = at.numbers.compute(single, [found, here], element)
        return found
    if is_truth(element) and single != "xor" and len(bound) == 1:
        is_or = z3.is_false(unit)
        found = _exists(at, bound[0], z3.simplify(term if is_or else z3.Not(term)), _varying(sizes)[0])
        return found if is_or else z3.simplify(z3.Not(found))
    if not element.is_integer:
        at.use("any order")
    if element.is_float and single in ("maximum", "minimum") and len(bound) == 1 and not _is_no_nan(at, term, element):
        at.use("NaN of an extreme")
        its_nan = z3.simplify(is_nan(term, element))
        rest = _combine_symbolically(at, single, choose(its_nan, unit, term), bound, sizes, element)
        return choose(_exists(at, bound[0], its_nan, _varying(sizes)[0]), literal(np.nan, element), rest)
    return _combine_symbolically(at, single, term, bound, sizes, element)


def _is_no_nan(at: At, term: Term, element: ElementType) -> bool:
    """Whether a float is never NaN; not asked of one that is the result of a function wherever a test holds."""
    sides, tests = [term], list[Term]()
    leaves: list[Term] = []
    while sides:
        side = sides.pop()
        if z3.is_app_of(side, z3.Z3_OP_ITE):
            tests.append(side.arg(0))
            sides += side.children()[1:]
        else:
            leaves.append(side)
    tested = {part.number for part in parts_of(tests)}
    if any(is_application(leaf) and leaf.get_id() not in tested for leaf in leaves):
        return False
    return bool(at.prover.same([(is_nan(term, element), z3.BoolVal(False))]))


def _combine_symbolically(
    at: At, single: str, term: Term, bound: Sequence[Term], sizes: Sequence[Extent], element: ElementType
) -> Term:
    """`combine_all` for terms that are not written out, are no truth values, and, as an extreme of floats, are not
    NaN."""
    unit, term, varying = neutral(single, element), z3.simplify(term), _varying(sizes)
    assert unit is not None
    kind = ("combined", single, element.name)
    key = (*kind, varying)
    choice = choice_of(term, unit) if len(bound) == 1 else None
    if single == "add" and element.is_integer and z3.is_bv_value(term if choice is None else choice[1]):  # it counts
        found = at.prover.occurrence(at, key, [term], bound, sort_of(element), of_variables=True)
        is_count = choice is not None and choice[1].eq(number(1)) and len(varying) == 1
        if is_count and isinstance(varying[0], int):
            at.prover.know_count(found, varying[0])
        return found
    total = varying[0] if len(bound) == 1 else None
    if choice is not None and isinstance(total, int) and (one := _only(at, bound[0], choice[0], total)) is not None:
        at.use("one step")
        last, is_there = one
        return z3.simplify(choose(is_there, _substitute(choice[1], bound[0], last), unit))
    if choice is not None and total is not None:
        its = _one_number(at, bound[0], total, at.positions.ranges.simplify(choice[0]))
        if its is not None:
            changed, which, count = its
            term = at.prover.written_in(at, choose(*choice, unit), bound, [changed])
            return term if is_one(count) else combine_all(at, single, term, [which], [count], element)
    if (single, element.name) == ("maximum", "i32") and isinstance(total, int):
        numbers = choice_of(term, number(-1))
        if numbers is not None and numbers[1].eq(bound[0]):
            return greatest(at, bound[0], numbers[0], total)[0]
    if _is_free(at, single, element):
        listed = (
            over_list(at, kind, term, bound[0], total, unit) if choice is not None and isinstance(total, int) else None
        )
        if listed is not None and listed.sizes is not None:
            return in_any_order(at, kind, listed.terms, listed.bound, listed.sizes, element)
        found = in_any_order(at, kind, [term], bound, sizes, element)
    else:
        found = at.prover.occurrence(at, key, [term], bound, sort_of(element))
    if choice is None or (at.prover.reassociated and single not in ("maximum", "minimum")):
        return found
    return choose(_exists(at, bound[0], choice[0], varying[0]), found, unit)


def in_any_order(
    at: At,
    kind: tuple[Any, ...],
    terms: Sequence[Term],
    bound: Sequence[Term],
    sizes: Sequence[Extent],
    element: ElementType,
) -> Term:
    """A fold whose order does not matter, nor into which parts it is cut.

    A choice that is the same at every position is made outside, and a sum of sums of floats is one for each addend.
    """

    def of(term: Term) -> Term:
        return in_any_order(at, kind, [term], bound, sizes, element)

    if kind[0] == "combined":
        [term] = terms
        unit = neutral(kind[1], element)
        if z3.is_app_of(term, z3.Z3_OP_ITE) and not has_variable(term.arg(0), *bound):
            sides = [side if side.eq(unit) else of(side) for side in term.children()[1:]]
            return z3.simplify(choose(term.arg(0), *sides))
        if element.is_float and term.decl().name().split(":")[0] == f"add {element.name}" and kind[1] == "add":
            return at.numbers.compute("add", [of(part) for part in term.children()], element)
    if element.is_float and kind[1] not in ("maximum", "minimum"):
        at.use("reassociated")
    at.use("nested folds")
    return at.prover.occurrence(at, kind, terms, bound, sort_of(element), sizes=_varying(sizes))


def know_ranks(at: At, own: Term, rank: Term, total: int, pair: tuple[Term, Term]) -> Callable[[Term], Term]:
    """Note that each place below `total` is the rank of one element; gives the number of that at a place.

    Args:
      at, own, rank, total: where, the number of an element, its rank, and how many there are.
      pair: the number of another one, and whether this comes before it.
    """
    place = z3.BitVec("place of a rank", POSITION)
    known = at.prover.one_to_one.get(rank.decl().name().split(":")[0])
    if known is not None and known.mapped_argument(rank).eq(own):  # the same ranks were met before
        return lambda here: known.back(rank, here)
    last, _ = greatest(at, own, z3.simplify(rank == place), total)
    at.prover.know_one_to_one(rank, own, last, place, total)
    at.prover.know_order(last, total, *pair, own)
    return lambda here: z3.substitute(last, (place, here))


def _combined_or_split(at: At, single: str, term: Term, bound: Sequence[Term], sizes: Sequence[Extent]) -> Term:
    """`combine_all`; where finite floats come first, of a sum these, and then infinities: NaN is both of them."""
    is_split = at.prover.is_finite_first and single == "add" and at.element.is_float and len(bound) == 1
    if not is_split:
        return combine_all(at, single, term, bound, sizes)
    at.use("finite first")
    element, unit, its_nan = at.element, literal(-0.0, at.element), is_nan(term, at.element)
    given = choose(is_finite(term, element), term, unit)
    found = _but_for_zero(at, given, bound, sizes, ("sum", given))
    for infinity in (literal(np.inf, element), literal(-np.inf, element)):
        some = _exists(at, bound[0], z3.simplify(z3.Or(its_nan, term == infinity)), _varying(sizes)[0])
        found = choose(some, at.numbers.compute("add", [found, infinity], element), found)
    return found


def _but_for_zero(
    at: At, term: Term, bound: Sequence[Term], sizes: Sequence[Extent], made_by: tuple[str, *tuple[Term, ...]]
) -> Term:
    """A sum of finite floats in any order that is known but for the sign of a zero.

    Args:
      at, term, bound, sizes: what is summed, at which places.
      made_by: what the sign depends on: the kind of op, as a product adds zeros of either sign, and its terms.
    """
    element, zeros = at.element, [literal(zero, at.element) for zero in (0.0, -0.0)]
    told = z3.simplify(choose(z3.Or([term == zero for zero in zeros]), zeros[1], term))
    found = combine_all(at, "add", told, bound, sizes)
    kind, *terms = made_by
    key = ("sign of a zero", kind, element.name, tuple(sizes))
    sign = at.prover.occurrence(at, key, terms, bound, z3.BoolSort())
    return choose(z3.Or([found == zero for zero in zeros]), choose(sign, zeros[1], zeros[0]), found)


def _chosen_sum(at: At, terms: Sequence[Term], bound: Sequence[Term], total: Extent) -> Term | None:
    """A sum of products of which one factor is 0 or 1 and the other one finite; None of another one.

    Where the other one is 0 or 1, too, nothing is known of the sum but whether it is positive.
    """
    element = at.element
    one, zero = literal(1.0, element), literal(0.0, element)

    def holds(test: Term) -> bool:
        return bool(at.prover.same([(test, z3.BoolVal(True))]))

    for which, other in (terms, terms[::-1]):
        if not at.numbers.is_among_constants(which) or not holds(z3.Or(which == one, which == zero)):
            continue
        if not holds(is_finite(other, element)):
            continue
        at.use("product of 0 and 1")
        test = z3.simplify(which == one)
        if holds(z3.Or(other == one, other == zero)):
            some = _exists(at, bound[0], z3.simplify(z3.And(test, other == one)), total)
            key = ("positive sum", element.name, total)
            found = at.prover.occurrence(at, key, [which, other], bound, other.sort(), of_variables=True)
            at.prover.know(found, z3.And(found > 0, z3.Not(is_nan(found, element))))
            return choose(some, found, zero)
        given = choose(test, other, literal(-0.0, element))
        return _but_for_zero(at, given, bound, [total], ("product", which, other))
    return None


def _exists(at: At, which: Term, test: Term, total: Extent) -> Term:
    """Whether a test holds for one number below `total`."""
    if z3.is_false(test):
        return test
    if z3.is_true(test):
        return z3.BoolVal(total > 0) if isinstance(total, int) else z3.simplify(extent(total) != 0)
    return greatest(at, which, test, total)[1]


FEW_STEPS = 1024
"""Numbers that are tried one by one."""


def greatest(at: At, which: Term, test: Term, total: Extent) -> tuple[Term, Term]:
    """The greatest number below `total` for which a test holds, -1 where there is none; whether there is one."""
    constants, functions = symbols_of([test])
    is_of_number = not functions and not constants.keys() - {which.decl().name()}
    if is_of_number and isinstance(total, int) and total <= FEW_STEPS:
        steps = (k for k in reversed(range(total)) if z3.is_true(_substitute(test, which, number(k))))
        last = next(steps, -1)
        return number(last), z3.BoolVal(last >= 0)
    named = _only_witness(at, which, test, total)
    if named is not None:
        step, is_there = named
        return (step if z3.is_true(is_there) else z3.simplify(choose(is_there, step, number(-1)))), is_there
    if not isinstance(total, int) and not has_variable(test, which):  # of all numbers or of none
        is_there = z3.simplify(z3.And(test, extent(total) != 0))
        return z3.simplify(choose(is_there, extent(total) - number(1), number(-1))), is_there
    told = z3.simplify(z3.If(test, which, number(-1)))
    if z3.is_bv_value(told):
        return told, z3.BoolVal(False)
    # A maximum of no numbers is what it begins with, and the greatest of none is -1.
    key = ("reduce", "maximum", "i32", 0, (total,)) if isinstance(total, int) else ("greatest", total)
    last = at.prover.occurrence(at, key, [told, lowest()], [which], sort_of(element_of("i32")))
    at.prover.know_greatest(last, total, lambda its, step: _candidates(at, its, step, total))
    return last, z3.simplify(last >= 0)


def _only_witness(at: At, which: Term, test: Term, total: Extent) -> tuple[Term, Term] | None:
    """The only number below `total` for which a test can hold, and whether it holds; None if no term names that number.

    A term names it if the test is about positions alone, or about a one-to-one image of the number.
    """
    constants, functions = symbols_of([test])
    others = constants.keys() - {which.decl().name()}
    is_of_positions = not functions and all(n in at.positions.sizes or n.startswith(SIZE) for n in others)
    for step in _candidates(at, test, which, total) if is_of_positions else _mapped_back(at, test, which):
        is_no_other = z3.Implies(z3.And(test, z3.ULT(which, extent(total))), which == step)
        if at.prover.same([(is_no_other, z3.BoolVal(True))], SOON_SECONDS):
            holds = _substitute(test, which, step)
            if not is_of_positions or not isinstance(total, int):  # of 0 numbers it holds for none
                holds = z3.simplify(z3.And(z3.ULT(step, extent(total)), holds))
            is_always = at.prover.same([(holds, z3.BoolVal(True))], SOON_SECONDS)
            return step, z3.BoolVal(True) if is_always else holds
    return None


def _only(at: At, which: Term, test: Term, total: Extent) -> tuple[Term, Term] | None:
    """The one number below `total` for which a test may hold, and whether it does; None where there may be several."""
    if not isinstance(total, int) or not has_variable(test, which):
        return None
    parts = test.children() if z3.is_and(test) else [test]
    if not any(z3.is_eq(part) and has_variable(part, which) for part in parts):
        return None if symbols_of([test])[1] else _only_witness(at, which, test, total)
    other = at.deeper().positions.variable(f"other {at.depth}.", total)
    is_no_other = z3.Implies(z3.And(test, _substitute(test, which, other)), which == other)
    is_one = at.prover.same([(is_no_other, z3.BoolVal(True))], SOON_SECONDS)
    return greatest(at, which, test, total) if is_one else None


def _substitute(term: Term, variable: Term, value: Term) -> Term:
    return z3.simplify(z3.substitute(term, (variable, value)))


def dot_general(at: At) -> Pull:
    """A fold of the products over the positions of the contracted dims."""
    numbers, element = mlir.dot_dimension_numbers(at.op.raw), at.element
    batching = [list(map(int, d)) for d in (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)]
    contracting = [list(map(int, d)) for d in (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)]
    types = [at.operand_type(k) for k in (0, 1)]
    sizes = [types[0][0][d] for d in contracting[0]]
    if is_empty(sizes):
        return number(0, element.bits) if not is_truth(element) else z3.BoolVal(False)

    def places(along: Sequence[Term]) -> list[list[Term]]:
        rest, found = iter(at.place[len(batching[0]) :]), list[list[Term]]()
        for (shape, _), batch, contracted in zip(types, batching, contracting, strict=True):
            place: list[Term] = []
            for d in range(len(shape)):
                if d in batch:
                    place.append(at.place[batch.index(d)])
                else:
                    place.append(along[contracted.index(d)] if d in contracted else next(rest))
            found.append(place)
        return found

    def multiply(here: At, along: Sequence[Term]) -> Pull:
        """The product of the two integers that meet at one place of the contracted dims."""
        found: list[Term] = []
        for k, place in enumerate(places(along)):
            found.append(here.numbers.convert((yield here.operand(k, place)), types[k][1], element))
        return _product(*found)

    is_exact_sum = element.is_integer and not is_truth(element)
    if is_exact_sum and are_known(sizes) and is_at_most(sizes, _addends(at)):
        total = number(0, element.bits)
        for along in product(*map(range, sizes)):
            total = total + (yield from multiply(at, list(map(number, along))))
        return total
    deep, terms = at.deeper(), list[Term]()
    along, bound = deep.bound_place(sizes)
    if is_exact_sum and at.prover.any_order:
        return combine_all(deep, "add", (yield from multiply(deep, along)), bound, sizes)
    for k, place in enumerate(places(along)):
        terms.append((yield deep.operand(k, place)))
    return sum_of_products(at, deep, terms, bound, sizes)


def sum_of_products(at: At, deep: At, terms: list[Term], bound: Sequence[Term], sizes: Sequence[Extent]) -> Term:
    """A fold of the products of two terms, elements of the operands, over positions.

    Args:
      at: where the sum stands.
      deep: where its terms stand.
      terms: of each operand the element at a position.
      bound, sizes: the positions that are bound, and how many there are.
    """
    element, names, given = at.element, list[str](), list[str]()
    for k, term in enumerate(terms):
        its = at.operand_type(k)[1]
        given.append(its.name)
        if its.name in HALF_FLOATS:
            at.use("half floats")
            term, its = at.numbers.widen(term, its), F32
        terms[k] = z3.simplify(term)
        names.append(its.name)
    at.use("fold")
    is_exact = str(mlir.attributes_of(at.op.raw).get("precision_config")).count("HIGHEST") == len(terms)
    if (
        at.prover.is_finite_first
        and element.name in IEEE
        and names == [element.name] * 2
        and is_exact
        and len(bound) == 1
    ):
        found = _chosen_sum(deep, terms, bound, _varying(sizes)[0])
        if found is not None:
            return found
    wide = F32 if element.name in HALF_FLOATS else element
    told = _asked_of(at.op, given, wide.name)
    if names[0] == names[1] and not told:
        at.use("commutes")
        terms.sort(key=lambda term: sorted(_input_symbols(term)))
    key = ("dot_general", tuple(sorted(names)), _varying(sizes), str(sorted(told.items())), wide.name)
    if at.prover.reassociated:
        found = in_any_order(deep, (*key[:2], key[3], wide.name), terms, bound, sizes, wide)
    else:
        kind = (*key[:2], key[3], IN_ORDER, key[4])
        found = at.prover.occurrence(at, kind, terms, bound, sort_of(wide), sizes=key[2])
    return at.numbers.narrow(found, element) if wide is not element else found


HIGHEST = "#stablehlo<precision HIGHEST>"
COUNTS = ("lhs_component_count", "rhs_component_count", "num_primitive_operations")
ONE_STEP = {**dict.fromkeys(COUNTS, "1"), "allow_imprecise_accumulation": "false"}
"""What an algorithm says beside its types that takes each operand as it is, multiplies once, and sums exactly so."""


def _asked_of(op: Op, given: Sequence[str], sums: str) -> dict[str, str]:
    """How well a product is to be computed: an algorithm of one step, which rounds neither operand and sums in this
    type, is the highest precision."""
    told = {a: str(t) for a, t in op.attributes if a in ("precision_config", "algorithm")}
    asked = mlir.dot_algorithm(op.raw)
    types = [element_type(asked.get(f"{side}_precision_type", "")) for side in ("lhs", "rhs")]
    is_held = all(own.name == its or own.holds(element_type(its)) for own, its in zip(types, given, strict=True))
    if is_held and asked.items() >= (ONE_STEP | {"accumulation_type": sums}).items():
        return {"precision_config": f"[{HIGHEST}, {HIGHEST}]"}
    return {a: t for a, t in told.items() if "HIGH" in t or a == "algorithm"}


def _product(first: Term, second: Term) -> Term:
    """The product of two integers; where one is a choice between 0 and 1, a choice between 0 and the other."""
    for one, other in ((first, second), (second, first)):
        if z3.is_app_of(one, z3.Z3_OP_ITE):
            test, *ends = one.children()
            if all(z3.is_bv_value(end) and end.as_long() in (0, 1) for end in ends):
                return choose(test, *(other if end.as_long() else end for end in ends))
    return first * second


def _input_symbols(term: Term) -> list[str]:
    constants, functions = symbols_of([term])
    return [name for name in functions | constants.keys() if name.startswith(("argument ", "#"))]


def scatter(at: At) -> Pull:
    """A fold over the windows in row-major order: each combines its element where its window covers p.

    Under "xla" a window that overhangs is dropped whole, under "spec" only its elements outside.
    """
    op, count = at.op, len(at.op.results)
    numbers = mlir.ScatterNumbers.of(op.raw)
    updates = op.inputs[count + 1 :]
    shape = at.operand_type(0)[0]
    sizes, body = at.type(updates[0])[0], op.bodies[0]
    wide = [at.type(value)[1] for value in op.results]
    _check_types(at, body, [its.name for its in wide])

    def operands(here: At, values: Sequence[ValueId], place: Place) -> Terms:
        """Elements of the operand or of the updates, in the types that the body has."""
        found: list[Term] = []
        for value, its in zip(values, wide, strict=True):
            found.append(here.numbers.convert((yield here.value(value, place)), here.type(value)[1], its))
        return found

    begin = yield from operands(at, op.inputs[:count], at.place)
    outer = [d for d in range(len(sizes)) if d not in numbers.update_window_dims]
    given = dict[int, Term]()  # the scatter dims whose position is that of a batching dim of the operand
    for dim, axis in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        given[axis - (numbers.index_vector_dim < axis)] = at.place[dim]
    free: list[int] = [i for i in range(len(outer)) if i not in given and not is_one(sizes[outer[i]])]
    if is_empty(sizes):
        return begin[at.result]

    def window(here: At, parts: Sequence[Term]) -> Terms:
        """Whether the window of a step covers p, and its elements there."""
        moving = dict(zip(free, parts, strict=True))
        batch = [given[i] if i in given else moving.get(i, number(0)) for i in range(len(outer))]
        tests, place, windows = list[Term](), [number(0)] * len(sizes), iter(numbers.update_window_dims)
        for dim, size in enumerate(shape):
            reach, own = _ONE, None
            if dim not in numbers.inserted_window_dims and dim not in numbers.input_batching_dims:
                own = next(windows)
                reach = sizes[own]
            offset = at.place[dim]
            if dim in numbers.scatter_dims_to_operand_dims:
                component = numbers.scatter_dims_to_operand_dims.index(dim)
                ask, its = index_at(here, count, batch, numbers.index_vector_dim, component)
                bits = max(its.bits, POSITION) + (not is_one(reach))
                extend = z3.SignExt if its.is_signed else z3.ZeroExt
                index = yield ask
                if index.size() == POSITION:
                    index = here.positions.ranges.simplify(index)
                start, offset = extend(bits - its.bits, index), z3.ZeroExt(bits - POSITION, offset)
                if is_one(reach):  # a position is less than the size; one that is taken under a test may be any number
                    tests.append(start == offset)
                    if not _is_below(here, at.place[dim], size):
                        tests.append(z3.ULT(at.place[dim], extent(size)))
                else:
                    if here.prover.oob == "xla":
                        room, some = extent(size) - extent(reach), z3.simplify(z3.ULE(extent(reach), extent(size)))
                        tests.append(z3.And(some, z3.ULE(start, z3.ZeroExt(bits - POSITION, room))))
                    tests.append(z3.ULT(offset - start, extent(reach, bits)))
                offset = z3.simplify(z3.Extract(POSITION - 1, 0, offset - start))
            elif dim not in numbers.input_batching_dims and not is_same(reach, size):
                tests.append(z3.ULT(offset, extent(reach)))
            if own is not None:
                place[own] = number(0) if is_one(reach) else offset
        for i, dim in enumerate(outer):
            place[dim] = batch[i]
        test = z3.simplify(z3.And(*tests)) if tests else z3.BoolVal(True)
        return [test, *(yield from operands(here, updates, place))]

    while len(free) > 1 and (found := (yield from _single_numbers(at, free, [sizes[outer[i]] for i in free], window))):
        at.use("one number of a dim")
        given |= found
        free = [i for i in free if i not in found]
    steps = [sizes[outer[i]] for i in free]
    total = at.prover.product(steps, at.frame)
    single = combiner(body)
    is_once = bool(free) and _is_rounded_once(at, single)
    unit = neutral(single, F32 if is_once else at.element) if at.prover.any_order and free else None
    if unit is not None:
        deep = at.deeper()
        [which], bound = deep.bound_place([total])
        test, new = yield from window(deep, deep.positions.split(which, steps))
        if is_once:
            new = at.numbers.widen(new, at.element)
        term = choose(test, new, unit)
        if is_once:
            found = at.numbers.narrow(combine_all(deep, single, term, bound, [total], F32), at.element)
        else:
            found = _combined_or_split(deep, single, term, bound, [total])
        return at.numbers.compute(single, [begin[0], found], at.element)

    tests: list[Term] = []

    def step(here: At, which: Term, so_far: list[Term]) -> Terms:
        test, *new = yield from window(here, here.positions.split(which, steps) if free else [])
        tests.append(test)
        made = yield from scalars(here, body, [*so_far, *new])
        return [here.prover.choose(here, test, c, a) for a, c in zip(so_far, made, strict=True)]

    is_promised = at.prover.trust_flags and at.frame.side == 0 and at.frame.body is None and free
    if is_promised and mlir.is_true(op.raw, "unique_indices"):
        at.use("promise")
        if not isinstance(total, int) or total > at.prover.chain:
            deep = at.deeper()
            [which], _ = deep.bound_place([total])
            test, *new = yield from window(deep, deep.positions.split(which, steps))
            last, is_there = greatest(deep, which, test, total)
            new = [z3.substitute(term, (which, last)) for term in new]
            made = yield from scalars(at, body, [*begin, *new])
            return choose(is_there, made[at.result], begin[at.result])
        found = yield from fold(at, total, begin, step)
        at.prover.assumptions += [z3.Not(z3.And(pair)) for pair in combinations(tests, 2)]
        return found[at.result]
    at.use("order of a fold")
    return (yield from fold(at, total, begin, step))[at.result]


_ONE: Extent = 1


def _single_numbers(
    at: At, free: Sequence[int], sizes: Sequence[Extent], window: Callable[[At, Sequence[Term]], Terms]
) -> Generator[Ask, Term, dict[int, Term]]:
    """The scatter dims at one number of which alone a window covers p, as where a batch's number is an index; it."""
    deep = at.deeper()
    parts, _ = deep.bound_place(sizes)
    test, *_ = yield from window(deep, parts)
    return {free[dim]: told for dim, told in _told_numbers(deep, test, parts, sizes).items()}


def _told_numbers(at: At, test: Term, place: Place, sizes: Sequence[Extent]) -> dict[int, Term]:
    """The dims at one number of which alone a test holds, as it says that this, or a multiple of it beside other
    numbers, is equal to something else; and these numbers."""
    found: dict[int, Term] = {}
    for equal in filter(z3.is_eq, test.children() if z3.is_and(test) else [test]):
        sides = equal.children()
        for one, other in (sides, sides[::-1]):
            if not z3.is_bv(one) or one.size() != POSITION or has_variable(other, *place):
                continue
            for dim, factor in _multiples(one, place):
                told = at.positions.ranges.simplify(z3.simplify(z3.UDiv(other, number(factor))))
                is_it = dim not in found and _is_below(at, told, sizes[dim])
                if is_it and (one.eq(place[dim]) or _implies(at, test, place[dim] == told)):
                    found[dim] = told
    return found


def _multiples(term: Term, place: Place) -> list[tuple[int, int]]:
    """The dims whose positions stand in a sum, or in one side of a choice in it, and how many times each does."""
    dims, pending = {one.get_id(): dim for dim, one in enumerate(place)}, [part_of(term)]
    found: dict[tuple[int, int], None] = {}
    while pending:
        part = pending.pop()
        which, factor = multiple_of(part)
        if which in dims and 0 < factor < LIMIT:
            found[dims[which], factor] = None
        elif part.kind in (z3.Z3_OP_BADD, z3.Z3_OP_ITE):
            pending += part.operands[part.kind == z3.Z3_OP_ITE :]
    return list(found)


def _implies(at: At, test: Term, what: Term) -> bool:
    return bool(at.prover.same([(z3.Implies(test, what), z3.BoolVal(True))], SOON_SECONDS))


def _one_number(at: At, which: Term, total: Extent, test: Term) -> tuple[Term, Term, Extent] | None:
    """The steps of a fold that may do anything, where they have one number along a dim of those into which the test
    takes their numbers apart, or in all.

    Returns:
      The number of such a step, of a new variable; this; and what it is less than. None where no dim has one number.
    """
    if is_one(total):
        return None
    for one in _told_numbers(at, test, [which], [total]).values():
        at.use("one number of a dim")
        return one, number(0), 1
    if not (sizes := _dims_of(at, which, total, test)):
        return None
    place = at.positions.place(f"d{at.depth}.", sizes)
    told = at.prover.written_in(at, test, [which], [at.positions.linear(place, sizes)])
    for dim, one in _told_numbers(at, told, place, sizes).items():
        rest = [*sizes[:dim], *sizes[dim + 1 :]]
        count = at.prover.product(rest, at.frame)
        step = at.positions.variable(f"s{at.depth}.", count)
        parts = at.positions.split(step, rest)
        at.use("one number of a dim")
        return at.positions.linear([*parts[:dim], one, *parts[dim:]], sizes), step, count
    return None


def _dims_of(at: At, which: Term, total: Extent, test: Term) -> list[Extent]:
    """The sizes of the dims into which a term takes a number below a total apart, by quotients and remainders."""
    divided = (division(part.term) for part in parts_of([test]) if len(part.operands) == 2)
    factors = {by for its in divided if its is not None for given, by, _ in [its] if widened(given).eq(which)}
    sizes, rest, outer = list[Extent](), 1, total
    for by in sorted(factors):
        count = at.prover.part_of_size(total, by) if rest < by and by % rest == 0 else None
        if count is not None:
            sizes.insert(0, by // rest)
            rest, outer = by, count
    return [outer, *sizes] if sizes else []


def _is_below(at: At, term: Term, size: Extent) -> bool:
    """Whether a position is known to be less than a size."""
    its = at.positions.sizes.get(str(term.decl().name()))
    if its is not None and is_same(its, size):
        return True
    ends = at.positions.ranges.ends(term)
    return ends is not None and isinstance(size, int) and ends[0] >= 0 and ends[1] < size


# --- folds ---


def _is_free(at: At, single: str, element: ElementType) -> bool:
    """Whether it does not matter in which order, nor in which parts, elements are combined by an op."""
    is_exact = (element.is_integer and not is_truth(element)) or single in ("maximum", "minimum")
    return (is_exact or at.prover.reassociated) and at.prover.any_order and neutral(single, element) is not None


def _term_of_step(at: At, single: str, so_far: Term, after: Term, element: ElementType) -> Term | None:
    """The operand that a step combines with the result so far; None if the step does something else."""
    if not has_variable(after, so_far):
        return None
    if after.eq(so_far):
        return neutral(single, element)
    if z3.is_app_of(after, z3.Z3_OP_ITE) and not has_variable(after.arg(0), so_far):
        sides = [_term_of_step(at, single, so_far, after.arg(k), element) for k in (1, 2)]
        return None if None in sides else z3.simplify(choose(after.arg(0), *sides))
    if element.is_float:
        if after.decl().name().split(":")[0] != f"{single} {element.name}":
            return None
        for one, other in (after.children(), after.children()[::-1]):
            term = None if has_variable(other, so_far) else _term_of_step(at, single, so_far, one, element)
            if term is not None:
                return at.numbers.compute(single, [term, other], element)
        return None
    if single == "add":
        term = z3.simplify(after - so_far)
        return None if has_variable(term, so_far) else term
    if single in ("maximum", "minimum") and z3.is_app_of(after, z3.Z3_OP_ITE):
        for one, other in (after.children()[1:], after.children()[:0:-1]):
            is_it = one.eq(so_far) and not has_variable(other, so_far)
            if is_it and at.prover.same([(after, at.numbers.compute(single, [so_far, other], element))]):
                return other
    return None


def fold(at: At, total: Extent, first: list[Term], step: Step, element: ElementType | None = None) -> Terms:
    """What `total` steps make of some elements: written out where they are few; else the same as a fold that begins
    alike and whose steps are equal.

    Args:
      at, total, first, step: where, how many steps, and what they are.
      element: the type of the one element, where steps may combine it with others in any order.
    """
    if isinstance(total, int) and total <= at.prover.chain:
        for which in range(total):
            first = [z3.simplify(term) for term in (yield from step(at, number(which), first))]
        return first
    deep = at.deeper()
    [which], _ = deep.bound_place([total])
    so_far = [z3.Const(f"so far {deep.depth}.{k} {t.sort()}", t.sort()) for k, t in enumerate(first)]
    after = [z3.simplify(term) for term in (yield from step(deep, which, so_far))]
    while (its := _step_at_one_number(deep, which, total, so_far, after)) is not None:
        which, total, after = its
        if isinstance(total, int) and total <= at.prover.chain:
            for k in range(total):
                changed = [(which, number(k)), *zip(so_far, first, strict=True)]
                first = [z3.simplify(z3.substitute(term, *changed)) for term in after]
            return first
    moving = [k for k, (a, t) in enumerate(zip(so_far, after, strict=True)) if not t.eq(a)]
    if len(first) == 1 and moving and element is not None:
        for single in ("add", "multiply", "maximum", "minimum"):
            term = _term_of_step(deep, single, so_far[0], after[0], element) if _is_free(at, single, element) else None
            if term is not None:
                found = combine_all(deep, single, term, [which], [total], element)
                return [at.numbers.compute(single, [first[0], found], element)]
    if len(first) == 1 and moving:
        found = _last_writer(deep, total, first[0], which, so_far[0], after[0])
        if found is not None:
            return [found]
    at.use("fold")
    results: list[Term] = []
    for k, begin in enumerate(first):
        others = {a.decl().name() for j, a in enumerate(so_far) if j != k}
        if k not in moving:
            results.append(begin)
        elif not others & symbols_of([after[k]])[0].keys():
            results.append(
                at.prover.occurrence(at, ("fold", total), [begin, after[k]], [which, so_far[k]], begin.sort())
            )
        else:
            terms = [*first, *after]
            results.append(at.prover.occurrence(at, ("fold", total, k), terms, [which, *so_far], begin.sort()))
    return results


def _step_at_one_number(
    at: At, which: Term, total: Extent, so_far: Sequence[Term], after: Sequence[Term]
) -> tuple[Term, Extent, list[Term]] | None:
    """A step of a fold of one element as one over fewer steps, where the others do nothing."""
    choice = choice_of(after[0], so_far[0]) if len(after) == 1 else None
    one = None if choice is None or has_variable(choice[0], *so_far) else _one_number(at, which, total, choice[0])
    if one is None:
        return None
    number_, step, count = one
    return step, count, [z3.simplify(at.prover.written_in(at, after[0], [which], [number_]))]


def _last_writer(at: At, total: Extent, first: Term, which: Term, so_far: Term, after: Term) -> Term | None:
    """What a fold gives that assigns, or of which one step at most does anything; None of another one.

    The last step that writes is the greatest of all steps' numbers, -1 for one that does not write.
    """
    choice = choice_of(after, so_far)
    if choice is None or has_variable(choice[0], so_far):
        return None
    test, yes = choice
    if has_variable(yes, so_far):
        one = _only(at, which, test, total)
        if one is None:
            return None
        at.use("one step")
        yes = _substitute(yes, so_far, first)
    else:
        at.use("last writer")
        one = greatest(at, which, test, total)
    last, is_there = one
    return choose(is_there, _substitute(yes, which, last), first)


def lowest() -> Term:
    """The least number of i32."""
    return number(-(1 << 31))


MOST_MOVES = 2
"""Numbers added in a test up to which positions are moved by them."""


def _candidates(at: At, test: Term, which: Term, total: Extent) -> list[Term]:
    """Steps that may write: a position divided by what the step's number is multiplied by, the last one at most; then
    the same of a position moved by what is added in the test, as by the padding of a convolution."""
    factors, moved = {1}, set[int]()
    for part in parts_of([test]):
        children = [inner.term for inner in part.operands]
        known = [c.as_signed_long() for c in children if z3.is_bv_value(c) and c.size() == POSITION]
        if part.kind == z3.Z3_OP_BMUL and any(c.eq(which) for c in children):
            factors |= {abs(factor) for factor in known if 0 < abs(factor) < 1 << 30}
        elif part.kind == z3.Z3_OP_BADD:
            moved |= {by for by in known if 0 < abs(by) < 1 << 30}
    found, places = _mapped_back(at, test, which), _places(test, which)
    if len(moved) <= MOST_MOVES:
        places += [
            z3.simplify(place + number(by)) for by in sorted({*moved, *(-by for by in moved)}) for place in places
        ]
    for factor, place in product(sorted(factors, reverse=True), places):
        at.prover.check_time()
        step = z3.simplify(z3.UDiv(place, number(factor)))
        ends = at.positions.ranges.ends(step)
        is_below = ends is not None and isinstance(total, int) and ends[0] >= 0 and ends[1] < total
        found.append(step if is_below else choose(z3.ULT(step, extent(total)), step, extent(total) - number(1)))
    return found


def _places(test: Term, which: Term) -> list[Term]:
    """The positions that a test may compare a number with."""
    variables = [v for _, v in sorted(symbols_of([test])[0].items()) if not v.eq(which)]
    places = [*abstract_parts([test], [which])[2], *variables]
    return [place for place in dict.fromkeys(places) if z3.is_bv(place) and place.size() == POSITION]


def _mapped_back(at: At, test: Term, which: Term) -> list[Term]:
    """The numbers that are mapped to the positions of a test by the symbols that map them one to one."""
    found: list[Term] = []
    for part in parts_of([test]):
        one = at.prover.one_to_one.get(part.name.split(":")[0])
        if one is not None and one.mapped_argument(part.term).eq(which):
            found += [one.back(part.term, place) for place in _places(test, which)]
    return [step for step in found if not has_variable(step, which)]
