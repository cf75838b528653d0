"""Laws of control flow: branches are choices, counted loops folds, other loops functions of what goes in."""

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from hlo_lower.ir import mlir
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.congruence import same_function
from hlo_lower.verify.pull.folding import Terms, fold
from hlo_lower.verify.pull.parts import parts_of
from hlo_lower.verify.pull.prover import SOON_SECONDS, Ask, At, Frame, Prover, Pull
from hlo_lower.verify.pull.sizes import LIMIT, Extent, extent, is_empty
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import POSITION, Place, Term, choose, number, resize
from hlo_lower.verify.read.program import Op

MOST_ENDS = 4
"""Numbers that are tried as the most rounds of a loop."""

MOST_OPEN_ROUNDS = 16
"""Rounds that a loop may have or not up to which it is written out."""


def branches(at: At) -> Pull:
    """The result of the selected branch; of `case`, the last one for an index out of range."""
    test, bodies = z3.simplify((yield at.operand(0, ()))), at.op.bodies
    is_if = at.op.short_name == "if"
    tests = [test] if is_if else [z3.simplify(test == number(k, test.size())) for k in range(len(bodies) - 1)]
    found: Term = None
    for k in reversed(range(len(bodies))):
        test = tests[k] if k < len(tests) else None
        if test is not None and z3.is_false(test):
            continue
        term = yield at.inside(bodies[k], {}, bodies[k].returned[at.result], at.place)
        found = term if found is None or test is None else choose(test, term, found)
    return found


@dataclass(frozen=True)
class Count:
    """How a loop counts.

    Attributes:
      place: the counter's place among what the loop carries.
      begin: its first value.
      total: how often it runs, or at most.
      rounds: how often it runs where that is computed, else None.
    """

    place: int
    begin: Term
    total: Extent
    rounds: Term | None = None

    def runs(self, which: Term) -> Term:
        """Whether there is a round of a number."""
        return z3.BoolVal(True) if self.rounds is None else which < self.rounds


def count_of_loop(at: At) -> Generator[Ask, Term, Count]:
    """The counter of a loop: its place, its first value and the number of iterations.

    Raises:
      Beyond: it does not count by 1 from a number that is known to another, or to a number of the arguments' sizes.
    """
    cond, body = at.op.bodies
    program = at.prover.programs[at.frame.side]
    test = program.makers[cond.returned[0]]
    if test is None or test.short_name != "compare" or test.inputs[0] not in cond.arguments:
        raise Beyond("a loop that does not count")
    if mlir.enum_value(test.raw.attributes["comparison_direction"]) != "LT":
        raise Beyond("a loop that does not count")
    place = cond.arguments.index(test.inputs[0])
    element = at.operand_type(place)[1]
    begin = z3.simplify((yield at.operand(place, ())))
    end = z3.simplify((yield at.inside(cond, {}, test.inputs[1], ())))
    counter = z3.BitVec(f"counter {element.bits}", element.bits)
    after = yield at.inside(body, {body.arguments[place]: lambda _: counter}, body.returned[place], ())
    step = z3.simplify(after - counter)
    if not (z3.is_bv_value(begin) and z3.is_bv_value(step) and step.as_long() == 1):
        raise Beyond("a loop that does not count by 1 between known numbers")
    if not z3.is_bv_value(end):
        if (known := _computed(at, begin, end, is_signed=element.is_signed)) is not None:
            return Count(place, begin, *known)
        return Count(place, begin, _rounds(at, begin, end, is_signed=element.is_signed))
    first, last = ((t.as_signed_long() if element.is_signed else t.as_long()) for t in (begin, end))
    if last - first >= 1 << 31:
        raise Beyond("a loop of 2^31 rounds")
    return Count(place, begin, max(last - first, 0))


def _computed(at: At, begin: Term, end: Term, *, is_signed: bool) -> tuple[int, Term] | None:
    """How often a loop from 0 to a computed number runs: at most a number that stands in it, and exactly."""
    if begin.as_long() or not is_signed or end.size() != POSITION:
        return None
    ends = {
        part.term.as_signed_long()
        for part in parts_of([end])
        if z3.is_bv_value(part.term) and part.term.size() == POSITION
    }
    for most in sorted(n for n in ends if n > 0)[:MOST_ENDS]:
        if at.prover.same([(end <= number(most), z3.BoolVal(True))], SOON_SECONDS):
            return most, z3.simplify(z3.If(end > 0, end, number(0)))
    return None


def _rounds(at: At, begin: Term, end: Term, *, is_signed: bool) -> Extent:
    """How often a loop runs to a number of the arguments' sizes."""
    if not at.prover.is_open or (is_signed and begin.as_signed_long() < 0):
        raise Beyond("a loop that does not count by 1 between known numbers")
    bits = max(end.size(), POSITION) + 1
    first, last = (resize(term, bits, is_signed=is_signed) for term in (begin, end))
    total = z3.simplify(z3.If(last > first, last - first, number(0, bits)))
    if not at.prover.same([(z3.ULT(total, number(LIMIT, bits)), z3.BoolVal(True))]):
        raise Beyond("a loop of 2^31 rounds")
    return at.prover.size(z3.Extract(POSITION - 1, 0, total))


def while_(at: At) -> Pull:
    """A loop of few turns is unrolled; a counted one is a fold if each position is written from itself alone; any other
    is a function."""
    for law in (_written_out, _as_fold) if at.prover.chain > 1 else (_as_fold,):
        try:
            return (yield from law(at))
        except Beyond as reason:
            if "time" in str(reason):
                raise
    at.prover.has_closed = True
    found = yield from same_function(at)
    which = found.arg(0)
    if at.frame.side == 0:
        at.prover.loops_of_first.append(which)
    elif any(which.eq(other) for other in at.prover.loops_of_first):
        at.prover.ending.add(at.op)
    return found


def all_end(prover: Prover) -> bool:
    """Whether each loop of the second module ends: it counts, was found to end, or is a loop of the first one.

    A loop of which every result is written over shows in no result, and may still not end.
    """
    first, second = ([op for op in program.entries["main"].ops if op.bodies] for program in prover.programs)

    def ask_element(side: int, op: Op) -> None:
        place = prover.positions.place("e", prover.type_of_function(side, op.results[0])[0])
        prover.element(side, op.results[0], place)

    def is_counted(op: Op) -> bool:
        try:
            prover.run_law(count_of_loop(At(prover, Frame(1), 0, op, 0, ())))
        except Beyond:
            return False
        return True

    def ends(op: Op) -> bool:
        is_loop = op.short_name == "while" and op not in prover.ending
        return (not is_loop or is_counted(op)) and all(ends(inner) for body in op.bodies for inner in body.ops)

    if all(map(ends, second)):
        return True
    for side, op in [*((0, op) for op in first), *((1, op) for op in second if not ends(op))]:
        with suppress(Beyond):
            ask_element(side, op)
    return all(map(ends, second))


def _written_out(at: At) -> Pull:
    """What the rounds give, one after the other, each where the condition held so far."""
    cond, body = at.op.bodies
    tests: list[Term] = []
    values = [at.operand(at.result)]
    carried: list[Callable[[Place], Ask]] = [partial(at.value, value) for value in at.op.inputs]
    open_rounds = 0
    while open_rounds <= MOST_OPEN_ROUNDS and len(tests) <= at.prover.chain:
        test = z3.simplify(
            (yield at.inside(cond, dict(zip(cond.arguments, carried, strict=True)), cond.returned[0], ()))
        )
        is_known = z3.is_true(test) or z3.is_false(test)
        ends = z3.is_false(test) or (not is_known and at.prover.same([(z3.And(*tests, test), z3.BoolVal(False))]))
        if ends:
            found = yield values[-1]
            for test, value in zip(reversed(tests), reversed(values[:-1]), strict=True):
                found = found if z3.is_true(test) else choose(test, found, (yield value))
            at.use("written out")
            at.prover.ending.add(at.op)
            return found
        open_rounds += not is_known
        frame = Frame(at.frame.side, body, dict(zip(body.arguments, carried, strict=True)), at.frame)
        carried = [partial(Ask, frame, at.depth, value) for value in body.returned]
        tests.append(test)
        values.append(Ask(frame, at.depth, body.returned[at.result], at.place))
    raise Beyond("a loop of many rounds")


def _as_fold(at: At) -> Pull:
    count = yield from count_of_loop(at)
    at.prover.ending.add(at.op)
    body, bits = at.op.bodies[1], count.begin.size()
    if at.result == count.place:
        return count.begin + resize(
            extent(count.total) if count.rounds is None else count.rounds, bits, is_signed=False
        )
    first = yield at.operand(at.result)
    if is_empty([count.total]) or body.returned[at.result] == body.arguments[at.result]:
        return first
    at.use("counted loop")

    def step(here: At, which: Term, so_far: list[Term]) -> Terms:
        carried = here.prover.carried_symbol(so_far[0], at.place)

        def itself(place: Place) -> Term:
            return so_far[0] if here.prover.same(list(zip(at.place, place, strict=True))) else carried(place)

        counter = z3.simplify(count.begin + resize(which, bits, is_signed=False))
        bound = {body.arguments[at.result]: itself}
        frame = here.prover.frame_of_round(here.frame, body, (body.arguments[count.place], counter), bound)
        after = yield Ask(frame, here.depth, body.returned[at.result], at.place)
        return [choose(count.runs(which), here.prover.of_itself(after, so_far[0]), so_far[0])]

    return (yield from fold(at, count.total, [first], step, at.element))[0]
