"""The evaluation of both modules at symbolic positions, and the questions that it puts to z3.

A law is a generator: it yields the elements of operands that it wants (`Ask`) and returns its own. So no chain of ops
is too long for Python's stack, and what is not wanted is not computed.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import inf
from time import thread_time
from typing import Any, Literal, TypeAlias, TypeVar

from hlo_lower.base.element_types import ElementType
from hlo_lower.verify.patience import patience
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.digits import equalities_of_digits
from hlo_lower.verify.pull.floats import Arithmetic, half
from hlo_lower.verify.pull.occurrences import (
    IN_ORDER,
    Made,
    OneToOne,
    RankOrder,
    abstract_parts,
    as_parts,
    common_refinement,
    in_one_order,
    orders,
    rename_variables,
    with_joined_dims,
)
from hlo_lower.verify.pull.parts import Part, operands_first, parts_of
from hlo_lower.verify.pull.positions import Positions
from hlo_lower.verify.pull.quotients import facts_of_quotients
from hlo_lower.verify.pull.sizes import (
    LIMIT,
    Extent,
    Shape,
    Size,
    are_known,
    extent,
    is_at_most,
    is_empty,
    is_one,
    is_same,
    product_is_small,
    symbol,
)
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import (
    COMMUTING,
    IEEE,
    POSITION,
    SIZE,
    Place,
    Term,
    applications_in,
    apply_symbol,
    choice_of,
    choose,
    element_of,
    number,
    remainders_in,
    resize,
    sort_of,
    symbols_of,
)
from hlo_lower.verify.pull.work import FACT, OCCURRENCE, QUESTION, STEPS_A_SECOND, Work
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

SOON_SECONDS = 0.5
"""Time for one question that may stay open: whether two tests are the same, and what is asked in another way, too."""

PATIENCE = 8
"""So many times longer than is counted a derivation may take of its thread's processor: twice was seen."""

CLOCK_EVERY = 64
"""The clock is read once for so many elements: where other threads are at work that may take half a millisecond."""

HANGS = 20.0
"""Seconds of the clock up to which a question is never ended: many may share a processor, and what z3 answers there is
what it answers alone."""

LATER = 0.1
"""Seconds behind the deadline of a verification that a question may take: the deadline is over where it ends then."""

WITHOUT_CHOICES = ("simplify", "propagate-values", "cofactor-term-ite", "simplify", "smt")
"""z3's steps to answer what it does not answer soon: sums in another order are easy once no choice stands in them."""

WAYS: Sequence[tuple[float, float, Callable[[], Any]]] = (
    (1.0, 0.03, lambda: z3.SimpleSolver()),  # z3 is imported when it is first used
    (0.4, inf, lambda: z3.Solver()),
    (0.5, inf, lambda: z3.Then(*WITHOUT_CHOICES).solver()),
    (1.0, inf, lambda: z3.SimpleSolver()),
)
"""How a question is put to z3, one way after the other: with what share of the time that is left for it, and how much
at most. Of 586 questions of 60 modules for IREE the first way answers 560, in half the time of the second one."""

MOST_VAIN = 24
"""So often occurrences within others may be compared in vain."""

FEW_PLACES = 64
"""Places of a result that are asked about one by one, where no answer is found at any place."""

FACT_ROUNDS = 4
"""How often what is known of symbols is followed to further symbols."""

QUESTION_SECONDS = 2.0
"""Time for one question whether two folds are the same; the outputs get all that is left."""

DEPTH_OF_SIZES = 1_000
"""The least depth of what is asked for to find sizes."""

CARRIED = "carried "
"""How the symbols of what loops carry begin."""

Bound: TypeAlias = "Callable[[Place], Term | Ask]"
"""What an argument of a body is: its element at a position, or the element of another value that it is."""


@dataclass(eq=False)
class Frame:
    """A body that is looked into, or a function.

    Attributes:
      side: 0 for the first module, 1 for the second.
      body: the body; None for the functions.
      bound: what its arguments are.
      outer: the frame of what stands around it.
      shared: of a loop's round the frame of its values that depend on nothing that the loop changes but the counter.
      changing: of a loop's round the operations that depend on more of it than its counter.
      known: the elements that were asked for.
      shapes: the shapes that were asked for, of values with a size that is not known.
      asked: at how many places each value was asked for.
      name: how the variables begin at which a value is found that is asked for at several places.
    """

    side: int
    body: Body | None = None
    bound: Mapping[ValueId, Bound] = field(default_factory=dict[ValueId, Bound])
    outer: "Frame | None" = None
    shared: "Frame | None" = None
    changing: Collection[Op] = frozenset()
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])
    shapes: dict[ValueId, Shape | Beyond] = field(default_factory=dict[ValueId, Shape | Beyond])
    asked: dict[ValueId, int] = field(default_factory=dict[ValueId, int])
    name: str = "at "

    def of(self, home: Body) -> "Frame":
        """The frame of a body, this one or one around it; that of the functions for one of theirs."""
        frame = self
        while frame.body is not None and frame.body is not home:
            assert frame.outer is not None
            frame = frame.outer
        return frame

    def round_of(self, op: Op | None) -> "Frame":
        """The frame of what an operation in this body makes."""
        return self if op is None or self.shared is None or op in self.changing else self.shared


@dataclass(frozen=True, slots=True)
class Ask:
    """A wish for an element: of a value, seen from a frame, at a place, below `depth` bound positions."""

    frame: Frame
    depth: int
    value: ValueId
    place: Place


Pull: TypeAlias = Generator[Ask, Term, Term]
"""A law at work."""


class At:
    """An op whose result is asked for at a place: what a law is given.

    Attributes:
      prover, frame, depth: of the question.
      op: the op.
      result: which of its results.
      place: the position in it.
    """

    __slots__ = ("depth", "frame", "op", "place", "prover", "result")

    def __init__(self, prover: "Prover", frame: Frame, depth: int, op: Op, result: int, place: Place) -> None:
        self.prover, self.frame, self.depth = prover, frame, depth
        self.op, self.result, self.place = op, result, place

    @property
    def numbers(self) -> Arithmetic:
        """The arithmetic of elements."""
        return self.prover.numbers

    @property
    def positions(self) -> Positions:
        """The arithmetic of positions."""
        return self.prover.positions

    def type(self, value: ValueId) -> tuple[Shape, ElementType]:
        """The shape and element type of a value.

        Raises:
          Beyond: it is not a tensor, too large, or nothing is known of its sizes.
        """
        return self.prover.type_in(self.frame, value)

    def operand_type(self, number_: int) -> tuple[Shape, ElementType]:
        """The shape and element type of an operand."""
        return self.type(self.op.inputs[number_])

    @property
    def shape(self) -> Shape:
        """The shape of the result that is asked for."""
        return self.type(self.op.results[self.result])[0]

    @property
    def element(self) -> ElementType:
        """Its element type."""
        return self.type(self.op.results[self.result])[1]

    def operand(self, number_: int, place: Place | None = None) -> Ask:
        """An element of an operand; by default at the place that is asked for."""
        return self.value(self.op.inputs[number_], self.place if place is None else place)

    def value(self, value: ValueId, place: Place) -> Ask:
        """An element of any value that the op sees."""
        return Ask(self.frame, self.depth, value, place)

    def deeper(self) -> "At":
        """The same below one more bound position."""
        return At(self.prover, self.frame, self.depth + 1, self.op, self.result, self.place)

    def inside(self, body: Body, bound: Mapping[ValueId, Bound], value: ValueId, place: Place) -> Ask:
        """An element of a value of one of its bodies, given what the body's arguments are."""
        return Ask(Frame(self.frame.side, body, bound, self.frame), self.depth, value, place)

    def bound_place(self, shape: Sequence[Extent]) -> tuple[list[Term], list[Term]]:
        """A place of variables that are bound at this depth, and those of them that vary."""
        place = self.positions.place(f"k{self.depth}.", shape)
        return place, [term for term in place if not z3.is_bv_value(term)]

    def clamp_start(self, start: Term, element: ElementType, most: Term) -> Term:
        """A start index of any integer type as a position in [0, most]; unchanged if it is known to be inside.

        Args:
          start: the index.
          element: its type.
          most: a position, 0 or greater.
        """
        most = z3.simplify(most)
        known = most.as_long() if z3.is_bv_value(most) else None
        if known == 0:
            return number(0)
        term = z3.simplify(start)
        ends = self.positions.ranges.ends(term) if term.size() == POSITION else None
        if ends is not None:
            term = self.positions.ranges.simplify(term)
            if ends[0] >= 0 and known is not None and ends[1] <= known:
                return term
        bits = max(element.bits, POSITION)
        wide = resize(term, bits, is_signed=element.is_signed)
        top, zero = resize(most, bits, is_signed=False), number(0, bits)
        if element.is_unsigned and element.bits >= POSITION:
            found = z3.If(z3.UGT(wide, top), top, wide)
        else:
            found = z3.If(wide < 0, zero, z3.If(wide > top, top, wide))
        return z3.simplify(resize(found, POSITION, is_signed=False))

    def use(self, law: str) -> None:
        """Note that a law is used."""
        self.prover.used[law] = None


@dataclass(frozen=True, slots=True)
class _Begun:
    """A law at work, and where to keep what it finds."""

    law: Pull
    known: dict[tuple[Any, ...], Any]
    key: tuple[Any, ...]
    place: Place


Found = TypeVar("Found")

Order: TypeAlias = Literal["row-major", "any", "finite first"]


@dataclass(frozen=True)
class Greatest:
    """The greatest number below `total` of which a test holds, -1 if there is none, as a symbol of `formals`."""

    formals: list[Term]
    which: Term
    test: Term
    total: Extent

    def facts(self, last: Term, other: Term, total: Extent, places: Iterable[tuple[Term, Extent]]) -> Iterator[Term]:
        """What another such number below `total` says of it: that number where the totals are the same; where one total
        is m times the other, also the number of which it is a quotient by m, with a place below m as the remainder.

        Args:
          last: this one.
          other: the other one.
          total: what the other one is less than.
          places: variables and their sizes.
        """
        if is_same(total, self.total):
            yield self.fact(last, other)
        elif not isinstance(total, int) or not isinstance(self.total, int):
            return
        elif total % self.total == 0:
            yield self.fact(last, z3.UDiv(other, number(total // self.total)))
            yield self.fact(last, z3.URem(other, number(self.total)))
        elif self.total % total == 0:
            times = self.total // total
            for place in (term for term, size in places if is_same(size, times)):
                yield self.fact(last, other * number(times) + place)
                yield self.fact(last, place * number(total) + other)

    def fact(self, last: Term, step: Term) -> Term:
        """That it is not less than another number of which the test holds."""
        changed = [(self.which, step), *zip(self.formals, last.children(), strict=True)]
        return z3.Implies(z3.And(z3.ULT(step, extent(self.total)), z3.substitute(self.test, *changed)), last >= step)


class Prover:
    """Both modules, what was asked of them, and the folds and functions that were met.

    Args:
      programs: the modules.
      pull: the law of an op.
      seconds: for everything, from now on, as `work` counts them.
      oob: what a scatter does with windows that reach out: drop them ("xla"), or their outside elements ("spec").
      chain: steps of a fold up to which it is written out.
      order: that in which a scatter and a reduce combine: row-major, any, or any in which finite floats come first.
      trust_flags: whether `unique_indices` of the first module's scatters holds.
      reassociated: whether sums of floats may be in any order, and rounded otherwise.
      shares: whether what is asked for at several places is found once, at variables.
      orders: whether operands that commute are put into one order within what is made of bound variables.
      sizes: the law of the sizes of what an op gives; None where all are known.
      assumptions: what holds of the sizes of the arguments.
      work: what was done before.

    Attributes:
      has_shared, has_ordered: whether anything was.
      one_to_one: the symbols that map numbers one to one, and those of their inverses, by name.
      ranked: of those that say which element stands at a place, the order of the elements.
      counts: the symbols of how many of so many numbers a test holds for, by name.
      made: what each symbol of an occurrence stands for.
      assumptions: what is promised of the arguments.
      has_sort: whether a sort was met of more rows than are always written out.
      has_closed: whether a loop or a sort was taken as a function of its operands.
      is_pulled: whether what an output is was found in both modules, which is asked about then.
      ending: loops that were found to end, those of the second module where the first one has them, too.
      invariant: loops whose rounds keep the sizes of all that they carry.
      ordered: symbols of arguments that hold each number below the size of a dim once along it.
      loops_of_first: what stands for the first module's loops that were taken as functions.
      model: what tells apart the terms that were asked about last; None where nothing does.
    """

    def __init__(
        self,
        programs: tuple[Program, Program],
        pull: Callable[[At], Pull],
        *,
        seconds: float,
        oob: str,
        chain: int,
        order: Order = "row-major",
        trust_flags: bool = False,
        reassociated: bool = False,
        shares: bool = True,
        orders: bool = False,
        sizes: Callable[[At], Sequence[Sequence[Term]]] | None = None,
        assumptions: Sequence[Term] = (),
        work: Work | None = None,
    ) -> None:
        self.work = work or Work()
        self.programs, self._pull, self.shares, self.orders = programs, pull, shares, orders
        self.oob, self.chain, self.trust_flags, self.reassociated = oob, chain, trust_flags, reassociated
        self.assumptions: list[Term] = list(assumptions)
        self._sizes, self._extents, self._sizes_asked = sizes, dict[int, tuple[Term, Extent]](), 0
        self._examples: list[Any] = []
        self.any_order, self.is_finite_first = order != "row-major", order == "finite first"
        self._until, self._latest = self.work.seconds + seconds, thread_time() + PATIENCE * seconds
        self._deadline = patience().deadline
        self.used: dict[str, None] = {} if sizes is None else {"sizes": None}
        self.numbers, self.positions = Arithmetic(lambda law: self.used.setdefault(law), self.know), Positions()
        self.numbers.adds_known, self.numbers.reassociated = self.is_finite_first, reassociated
        self.facts: dict[str, list[tuple[list[Term], Term]]] = {}
        self.greatest: dict[str, Greatest] = {}
        self.one_to_one: dict[str, OneToOne] = {}
        self.ranked: dict[str, RankOrder] = {}
        self.counts: dict[str, int] = {}
        self.made: dict[str, Made] = {}
        self.has_closed = self.has_sort = self.has_shared = self.has_ordered = self.is_pulled = False
        self.ending: set[Op] = set()
        self.ordered: set[str] = set()
        self.loops_of_first: list[Term] = []
        self.questions = 0
        self.model: Any = None
        self.origin: dict[str, str] = {}
        self._roots = (Frame(0), Frame(1))
        self._arguments = [
            {value: place for body in program.entries.values() for place, value in enumerate(body.arguments)}
            for program in programs
        ]
        self._types: list[dict[ValueId, tuple[tuple[int, ...], ElementType]]] = [{}, {}]
        self.invariant: set[Op] = set()
        self._met: dict[tuple[Any, ...], list[tuple[Made, frozenset[str], int, Term]]] = {}
        self._looks: dict[str, tuple[Any, ...]] = {}
        self._one: dict[tuple[int, int], bool] = {}
        self._vain = self._checks = 0
        self._rounds: dict[tuple[Frame, Body, int], tuple[Frame, set[Op]]] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._same: dict[tuple[int, int], tuple[bool | None, float]] = {}
        self._tests: dict[frozenset[int], list[tuple[Term, int]]] = {}
        self._written_in: dict[tuple[Any, ...], Term] = {}
        self._named_frames = self._level = 0
        self._kept: list[Term] = []

    def type_of(self, side: int, value: ValueId) -> tuple[tuple[int, ...], ElementType]:
        """The shape and element type of a value.

        Raises:
          Beyond: it is not a tensor of static shape, or too large.
        """
        found = self._types[side].get(value)
        if found is None:
            tensor = self.programs[side].type_of(value)
            if tensor is None or not tensor.is_static:
                raise Beyond(f"a value of type {str(self.programs[side].types[value])[:60]}")
            shape = tuple(int(size or 0) for size in tensor.shape)
            count = 1
            for size in shape:
                count *= size
            if count >= 1 << (POSITION - 1):
                raise Beyond("a tensor of 2^31 elements")
            found = self._types[side][value] = shape, element_of(tensor.element_name)
        return found

    def _any_of_argument(self, place: int) -> tuple[Term, ElementType, list[Term], tuple[int, ...]]:
        """The element of an argument of the first module at any place, its type, that place, and the shape."""
        shape, element = self.type_of(0, self.programs[0].entries["main"].arguments[place])
        dims = [z3.BitVec(f"dim {k} of argument", POSITION) for k in range(len(shape))]
        return apply_symbol(f"argument {place}", dims, sort_of(element)), element, dims, shape

    def bound_argument(self, place: int, least: int, most: int) -> None:
        """Take it that the integers of an argument lie between two numbers."""
        term, element, _, _ = self._any_of_argument(place)
        if element.is_integer and element.bits > 1:
            low, high = number(least, element.bits), number(most, element.bits)
            inside = (
                z3.And(z3.ULE(low, term), z3.ULE(term, high))
                if element.is_unsigned
                else z3.And(low <= term, term <= high)
            )
            self.know(term, inside)

    def know_one_nan(self, place: int) -> None:
        """Take it that floats of an argument hold no NaN but the positive quiet one."""
        term, element, _, _ = self._any_of_argument(place)
        if element.name in IEEE:
            self.know(term, term == self.numbers.one_nan(term, element))
            self.used["NaN of arithmetic"] = None

    def order_argument(self, place: int, dim: int) -> None:
        """Take it that along a dim an argument of integers holds each number below the dim's size once."""
        term, element, dims, shape = self._any_of_argument(place)
        if element.name == "i32":
            where = z3.BitVec("place in an order", POSITION)
            back = [where if k == dim else term for k, term in enumerate(dims)]
            inverse = apply_symbol(f"place in argument {place}", back, sort_of(element))
            self.know_one_to_one(term, dims[dim], inverse, where, shape[dim])
            self.ordered |= {f"argument {place}", f"place in argument {place}"}

    # --- sizes that are not known ---

    @property
    def is_open(self) -> bool:
        """Whether sizes are not known."""
        return self._sizes is not None

    def root(self, side: int) -> Frame:
        """The frame of the functions of a module."""
        return self._roots[side]

    def type_of_function(self, side: int, value: ValueId) -> tuple[Shape, ElementType]:
        """The shape and element type of a value of a function."""
        return self.type_in(self._roots[side], value)

    def type_in(self, frame: Frame, value: ValueId) -> tuple[Shape, ElementType]:
        """The shape and element type of a value that a frame sees.

        Raises:
          Beyond: it is not a tensor, too large, or nothing is known of its sizes.
        """
        program = self.programs[frame.side]
        tensor = program.type_of(value)
        if self._sizes is None or tensor is None or tensor.is_static:
            return self.type_of(frame.side, value)
        frame = frame.of(program.homes[value])
        found = frame.shapes.get(value)
        if found is None:
            op = program.makers[value]
            frame.shapes[value] = Beyond("sizes that depend on themselves")
            try:
                if op is not None:
                    at = At(self, frame, self._depth_of_sizes, op, op.results.index(value), ())
                    dims = self._sizes(at)[at.result]
                else:
                    dims = self._dims_of_argument(frame, value)
                pairs = zip(tensor.shape, dims, strict=True)
                found = tuple(self.size(dim) if known is None else known for known, dim in pairs)
            except Beyond as reason:
                found = reason
            frame.shapes[value] = found
        if isinstance(found, Beyond):
            raise found
        return found, element_of(tensor.element_name)

    def _dims_of_argument(self, frame: Frame, value: ValueId) -> list[Term]:
        """The sizes of an argument: of the module its symbols; of a loop's body those of what went in."""
        place = self._arguments[frame.side].get(value)
        if place is not None:
            tensor = self.programs[frame.side].type_of(value)
            assert tensor is not None
            return [symbol(place, d) if n is None else number(n) for d, n in enumerate(tensor.shape)]
        owner = None if frame.body is None else frame.body.owner
        if frame.body is None or owner is None or owner.short_name != "while" or frame.outer is None:
            raise Beyond("an argument of a body of dynamic shape")
        at = At(self, frame.outer, self._depth_of_sizes, owner, 0, ())
        if owner not in self.invariant:
            raise Beyond("a loop that may change the size of what it carries")
        return [extent(n) for n in at.operand_type(frame.body.arguments.index(value))[0]]

    @property
    def _depth_of_sizes(self) -> int:
        """A depth whose bound variables are those of no term that is at work."""
        self._sizes_asked += 1
        return DEPTH_OF_SIZES + self._sizes_asked

    def size(self, term: Term) -> Extent:
        """A size as a number, or the size that it was shown to be equal to; else a new one.

        Args:
          term: what it is: of the sizes of arguments, and of arguments at known places.

        Raises:
          Beyond: it depends on a position, or on what a loop carries or a fold makes.
        """
        term = z3.simplify(term)
        if term.get_id() in self._extents:
            return self._extents[term.get_id()][1]
        if not z3.is_bv_value(term):
            self._check_closed(term)
        found: Extent | None = None
        if z3.is_bv_value(term):
            found = int(term.as_long())
            if found >= LIMIT:
                raise Beyond("a dim of 2^31 positions")
        known = dict.fromkeys(size for _, size in self._extents.values() if isinstance(size, Size))
        for other in known:
            if found is None and self._are_equal(term, other.term):
                found = other
        values = [] if found is not None else [1, *(int(v.as_long()) for v in self._values(term)[:1])]
        for value in values:
            if found is None and value < LIMIT and self._are_equal(term, number(value)):
                found = value
        if found is None:
            found = Size(f"n{len(self._extents)}", term)
        self._extents[term.get_id()] = term, found
        return found

    def part_of_size(self, total: Extent, by: int) -> Extent | None:
        """The size of which a size, that is less than 2^31, is so many times; None where no such one is known."""
        if isinstance(total, int):
            return total // by if by < total and total % by == 0 else None
        for size in dict.fromkeys(size for _, size in self._extents.values() if isinstance(size, Size)):
            is_small = (product_is_small((size, by)), z3.BoolVal(True))
            if size is not total and self.same([(extent(size) * number(by), total.term), is_small], SOON_SECONDS):
                self.positions.ranges.bound_size(size, by)
                return size
        return None

    def _are_equal(self, one: Term, other: Term) -> bool:
        """Whether two sizes are equal; not asked where sizes are known at which they are not."""
        pairs = zip(self._values(one), self._values(other), strict=True)
        if any(not a.eq(b) for a, b in pairs):
            return False
        found = self.same([(one, other)], SOON_SECONDS)
        if found is False and self.model is not None:
            self._examples.append(self.model)
        return bool(found)

    def _values(self, term: Term) -> list[Term]:
        """A size in each of the examples."""
        return [model.eval(term, model_completion=True) for model in self._examples]

    def _check_closed(self, term: Term) -> None:
        constants, functions = symbols_of([term])
        is_closed = all(name.startswith((SIZE, "argument ")) for name in (*constants, *functions))
        if not is_closed:
            raise Beyond("a size that depends on more than the arguments")

    def product(self, sizes: Sequence[Extent], frame: Frame) -> Extent:
        """The product of some sizes; one that is 2^31 or more is assumed not to be, of a tensor of the first module.

        Raises:
          Beyond: in the second module it may be as large.
        """
        kept = [size for size in sizes if not is_one(size)]
        if is_empty(kept):
            return 0
        if len(kept) <= 1:
            return kept[0] if kept else 1
        is_small = product_is_small(kept)
        if frame.side == 0 and frame.body is None:
            if not z3.is_true(is_small):
                self.assumptions.append(is_small)
        elif not self.same([(is_small, z3.BoolVal(True))]):
            raise Beyond("a tensor of 2^31 elements")
        found = number(1)
        for size in kept:
            found = found * extent(size)
        return self.size(found)

    # --- elements ---

    def element(self, side: int, value: ValueId, place: Place) -> Term:
        """The element of a value of a function at a place.

        Raises:
          Beyond: what makes it has no law, or no time is left.
        """
        return self.pull(Ask(self._roots[side], 0, value, place))

    def run_law(self, law: Generator[Ask, Term, Found]) -> Found:
        """Run a law whose result is not an element of an op."""
        try:
            ask = next(law)
            while True:
                ask = law.send(self.pull(ask))
        except StopIteration as end:
            return end.value

    def pull(self, ask: Ask) -> Term:
        """The term of the element that is asked for."""
        stack: list[_Begun] = []
        current: Ask | None = ask
        answer: Term = None
        error: Beyond | None = None
        while True:
            if current is not None:
                try:
                    begun = self._begin(current)
                except Beyond as reason:
                    error, begun = reason, None
                if isinstance(begun, _Begun):
                    stack.append(begun)
                    answer = None
                else:
                    answer = begun
            if not stack:
                if error is not None:
                    raise error
                return answer
            law, known, key, place = stack[-1].law, stack[-1].known, stack[-1].key, stack[-1].place
            try:
                current = law.throw(error) if error is not None else law.send(answer)
                error = None
            except StopIteration as end:
                stack.pop()
                current, error, answer = None, None, z3.simplify(end.value)
                known[key] = answer, place
            except Beyond as reason:
                stack.pop()
                current, error = None, reason
                known[key] = reason, place

    def _begin(self, ask: Ask) -> Any:
        """The element if it is known; otherwise the law that finds it, with the place to store the answer."""
        program = self.programs[ask.frame.side]
        frame = ask.frame.of(program.homes[ask.value])
        place = [self.positions.ranges.simplify(z3.simplify(term)) for term in ask.place]
        if ask.value in frame.bound:
            found = frame.bound[ask.value](place)
            return self._begin(found) if isinstance(found, Ask) else z3.simplify(found)
        op, key = program.makers[ask.value], (ask.value, *(term.get_id() for term in place))
        frame = frame.round_of(op)
        if key in frame.known:
            found = frame.known[key][0]
            if isinstance(found, Beyond):
                raise found
            return found
        self.check_time()
        if op is None:
            number_ = self._arguments[frame.side].get(ask.value)
            if number_ is None:
                raise Beyond("an argument of a body")
            term = apply_symbol(f"argument {number_}", place, sort_of(self.type_in(frame, ask.value)[1]))
            frame.known[key] = term, place
            return term
        frame.asked[ask.value] = frame.asked.get(ask.value, 0) + 1
        at = At(self, frame, ask.depth, op, op.results.index(ask.value), place)
        return _Begun(self._pull(at), frame.known, key, place)

    def frame_of_round(
        self, outer: Frame, body: Body, counter: tuple[ValueId, Term], bound: Mapping[ValueId, Bound]
    ) -> Frame:
        """The frame of a loop's round, which shares with others what depends on its counter alone.

        Args:
          outer: the frame of what stands around the loop.
          body: the loop's.
          counter: the argument that counts, and what it is in this round.
          bound: the other arguments.
        """
        argument, term = counter
        key = outer, body, term.get_id()
        if key not in self._rounds:
            changed, changing = set(body.arguments) - {argument}, set[Op]()
            for op in body.ops:
                if not changed.isdisjoint(op.reads):
                    changing.add(op)
                    changed.update(op.results)
            self._kept.append(term)
            self._rounds[key] = Frame(outer.side, body, {argument: lambda _: term}, outer), changing
        shared, changing = self._rounds[key]
        return Frame(outer.side, body, {argument: lambda _: term, **bound}, outer, shared, changing)

    def check_time(self) -> None:
        """Say that no time is left, where that is so: before each step of what may have many.

        Raises:
          Beyond: none is left.
          LateError: the deadline of the verification is over.
        """
        self._deadline.check()
        self._checks += 1
        is_late = self._checks % CLOCK_EVERY == 0 and thread_time() > self._latest
        if self.work.pull() > self._until or is_late:
            raise Beyond("no time is left")

    def variables_of(self, at: At) -> list[Term]:
        """Variables for the place that is asked for; what a body sees from around it holds none of them."""
        if at.frame.body is not None and at.frame.name == Frame.name:
            self._named_frames += 1
            at.frame.name = f"at {self._named_frames}."
        return self.positions.place(at.frame.name, at.shape)

    def is_known(self, name: str) -> bool:
        """Whether a symbol is of an occurrence of which more is known than what it is made of."""
        return name in self.made and name in self.facts

    def written_in(self, at: At, term: Term, variables: Place, place: Place) -> Term:
        """A term with a place in the place of variables; occurrences of numbers are those of terms that hold these."""
        new = dict[int, Term]()
        for variable, here in zip(variables, place, strict=True):
            new[variable.get_id()] = variable if variable.eq(here) else here
        for part in operands_first([term], new):
            self.check_time()
            changed = [new[inner.number] for inner in part.operands]
            is_same = all(a is b.term for a, b in zip(changed, part.operands, strict=True))
            new[part.number] = part.term if is_same else self._rebuilt(at, part, changed)
        return new[term.get_id()]

    def _rebuilt(self, at: At, part: Part, arguments: Sequence[Term]) -> Term:
        """The application of a function to other arguments."""
        old = [inner.term for inner in part.operands]
        if not part.name:
            return self.positions.ranges.simplify(
                z3.simplify(z3.substitute(part.term, *zip(old, arguments, strict=True)))
            )
        function, name = part.term.decl(), part.name.split(":")[0]
        op, _, element = name.rpartition(" ")
        if op in COMMUTING:
            return self.numbers.compute(op, arguments, element_of(element))
        made = self.made.get(name)
        is_number = any(z3.is_bv_value(b) and not z3.is_bv_value(a) for a, b in zip(old, arguments, strict=True))
        if made is None or self.is_known(name) or not is_number:
            return function(*arguments)
        key = (part.name, *(argument.get_id() for argument in arguments))
        if key not in self._written_in:
            self._level += 1  # the arguments may hold variables that are bound around this one
            bound = self._canonical_variables(made.bound, f"w{self._level}.")
            terms = [
                self.written_in(at, one, made.parameters, arguments) for one in made.over(bound, bound, None).terms
            ]
            found = self.occurrence(at, made.kind, terms, bound, part.term.sort(), sizes=made.sizes)
            self._level -= 1
            self._kept += arguments
            self._written_in[key] = found
        return self._written_in[key]

    # --- questions ---

    def same(self, pairs: Sequence[tuple[Term, Term]], seconds: float = QUESTION_SECONDS) -> bool | None:
        """Whether the terms of each pair are equal for all values; None where it is not found out.

        Raises:
          Beyond: no time is left.
        """
        goals: list[Term] = []
        for a, b in pairs:
            if a.sort() != b.sort():
                return False
            a, b = z3.simplify(a), z3.simplify(b)
            if not a.eq(b):
                goals.append(a != b)
        if not goals:
            return True
        left = self._until - self.work.seconds
        if left <= 0 or thread_time() > self._latest:
            raise Beyond("no time is left")
        goal = z3.simplify(z3.Or(goals))
        key = (goal.get_id(), sum(map(len, self.facts.values())) + len(self.assumptions))
        seconds = min(left, seconds)
        found, spent = self._same.get(key, (None, 0.0))
        if found is None and seconds > spent:  # what was not found out is asked again where there is more time
            self.questions += 1
            self._kept.append(goal)
            found = self._asked(goal, seconds)
            self._same[key] = found, seconds
        return found

    def is_possible(self) -> bool:
        """Whether what is assumed of the sizes holds for some."""
        return self._asked(z3.BoolVal(True), QUESTION_SECONDS) is False

    def _asked(self, goal: Term, seconds: float) -> bool | None:
        pending, told, greatest = [goal, *self.assumptions], set[int](), list[tuple[Term, Greatest]]()
        asserted = list(pending)
        self.model, until = None, self.work.seconds + seconds
        self.work.add(QUESTION)
        places: list[tuple[Term, Extent]] = []
        met: list[Part] = []
        for number_ in range(FACT_ROUNDS):
            parts = parts_of(pending)
            applications = [part.term for part in parts if part.name and part.number not in told]
            sized = ((term, self.positions.sizes.get(term.decl().name())) for term in applications)
            places += [(term, size) for term, size in sized if size is not None]
            pending, before = [] if number_ else remainders_in(parts), len(greatest)
            met += parts
            pending += facts_of_quotients(met) if self.is_open and number_ < 2 else []  # then sizes are known, too
            for term in applications:
                told.add(term.get_id())
                self._kept.append(term)
                pending += self._known_of(term)
                if found := self.greatest.get(term.decl().name().split(":")[0]):
                    greatest.append((term, found))
            for k, (term, its) in enumerate(greatest):
                if self.work.seconds > until:
                    return None
                others = greatest if k >= before else greatest[before:]
                more = [f for other, theirs in others for f in its.facts(term, other, theirs.total, places)]
                self.work.add(FACT * len(more))
                pending += more
            asserted += pending
            if not pending:
                break
        if self._is_true_of_digits(asserted, 0.3 * (until - self.work.seconds)):
            return True
        if self.is_open and self._is_true_of_any(asserted, 0.4 * (until - self.work.seconds)):
            return True
        asked: Any = None
        found: Any = z3.unknown
        for share, most, way in WAYS:
            asked = way()
            asked.add(*asserted)
            left = min(share * (until - self.work.seconds), most)
            asked.set("rlimit", max(1, int(STEPS_A_SECOND * left)))
            asked.set("timeout", self._milliseconds(left))
            found = asked.check()
            self._deadline.check()
            if found != z3.unknown or (most == inf and until - self.work.seconds < SOON_SECONDS):
                break
        self.model = asked.model() if found == z3.sat else None
        return True if found == z3.unsat else False if found == z3.sat else None

    def _is_true_of_digits(self, assertions: Sequence[Term], seconds: float) -> bool:
        """Whether a question is answered by what is known of numbers by their digits, whatever they are else."""
        told = equalities_of_digits(parts_of(assertions))
        if not told:
            return False
        changed = [(equality, z3.Bool(f"digits {k}")) for k, (equality, _) in enumerate(told)]
        solver = z3.Solver()
        solver.add(*(z3.substitute(assertion, *changed) for assertion in assertions))
        for (_, cases), (_, holds) in zip(told, changed, strict=True):
            solver.add(*(z3.Implies(condition, holds == equal) for condition, equal in cases))
        solver.set("rlimit", max(1, int(STEPS_A_SECOND * seconds)))
        solver.set("timeout", self._milliseconds(seconds))
        return solver.check() == z3.unsat

    def _is_true_of_any(self, assertions: Sequence[Term], seconds: float) -> bool:
        """Whether a question is answered whatever products and quotients of sizes are: each is taken for any number."""
        hard = [part.term for part in parts_of(assertions) if _is_hard(part)]
        if not hard:
            return False
        changed = [(term, z3.BitVec(f"hard {k}", term.size())) for k, term in enumerate(hard)]
        solver = z3.Solver()
        solver.add(*(z3.substitute(assertion, *changed) for assertion in assertions))
        solver.set("rlimit", max(1, int(STEPS_A_SECOND * seconds)))
        solver.set("timeout", self._milliseconds(seconds))
        return solver.check() == z3.unsat

    def _milliseconds(self, seconds: float) -> int:
        """How long a question may take by the clock whose steps are limited: only what hangs is ended so, and what goes
        on behind the deadline of the verification."""
        return int(1000 * min(max(HANGS, PATIENCE * seconds), max(self._deadline.left, 0.0) + LATER))

    def _known_of(self, term: Term) -> list[Term]:
        """What is known of the application of a symbol: its range, that it commutes, and the facts of the symbol."""
        name = term.decl().name()
        if name in self.positions.sizes:
            return [z3.ULT(term, extent(self.positions.sizes[name]))]
        if name.startswith(SIZE):
            return [term >= 0]
        symbol, found = name.split(":")[0], list[Term]()
        if term.num_args() == 2 and symbol.split(" ")[0] in COMMUTING:
            self.used["commutes"] = None
            found.append(term == term.decl()(term.arg(1), term.arg(0)))
        if symbol in self.ordered:
            self.used["numbers in order"] = None
        for formals, fact in self.facts.get(symbol, ()):
            changed = [(a, b) for a, b in zip(formals, term.children(), strict=True) if not a.eq(b)]
            found.append(z3.substitute(fact, *changed) if changed else fact)
        return found

    def same_results(
        self, first: Term, second: Term, element: ElementType, place: Place, shape: Sequence[Extent]
    ) -> bool | None:
        """Whether two elements that are returned are equal for all inputs; NaN is NaN, whatever its bits are.

        Where that is not found out soon and the shape has few places, it is asked at each of them first.
        """
        if are_known(shape) and is_at_most(shape, FEW_PLACES):
            found = self._same_results(first, second, element, 2 * SOON_SECONDS)
            if found is not None:
                return found
            for here in product(*map(range, shape)):
                given = list(zip(place, map(number, here), strict=True))
                mine, theirs = (z3.simplify(z3.substitute(term, *given)) for term in (first, second))
                found = self._same_results(mine, theirs, element, SOON_SECONDS)
                if not found:
                    break
            if found is not None:
                return found
        return self._same_results(first, second, element, inf)

    def _same_results(self, first: Term, second: Term, element: ElementType, seconds: float) -> bool | None:
        if element.is_complex and element.part in IEEE:
            part = element_of(element.part)
            pairs = [(self.numbers.one_nan(half(a, k), part)) for k in (0, 1) for a in (first, second)]
            return self.same([(pairs[0], pairs[1]), (pairs[2], pairs[3])], seconds)
        if element.name in IEEE and not first.eq(second):
            first, second = (self.numbers.one_nan(term, element) for term in (first, second))
        found, model = self.same([(first, second)], seconds), self.model
        if found is False:
            found = self._are_one_within([(first, second)])
            self.model = None if found else model
        return found

    def told_apart(self, terms: Sequence[Term]) -> str:
        """What two terms that a model tells apart are made of: the ops that only one of them has."""
        sides = [{self.origin.get(n, n.split(" ")[0]) for n in symbols_of([term])[1]} - {"argument"} for term in terms]
        if not sides[0] | sides[1]:
            return "they differ for some inputs"
        return f"only the first has {sorted(sides[0] - sides[1])}, only the second {sorted(sides[1] - sides[0])}"

    def know(self, term: Term, fact: Term) -> None:
        """Note what holds of the application of a symbol to different variables, whatever these are."""
        self.facts.setdefault(term.decl().name().split(":")[0], []).append((term.children(), z3.simplify(fact)))

    def know_greatest(self, last: Term, total: Extent, steps: Callable[[Term, Term], Sequence[Term]]) -> None:
        """Note that an occurrence is the greatest number of which a test holds, -1 if there is none.

        Args:
          last: the occurrence, of a term `test ? k : -1` over one bound variable k.
          total: what the numbers are less than.
          steps: gives numbers of which a test may hold, given the test and its variable.
        """
        name = last.decl().name().split(":")[0]
        its = self.made[name]
        [which] = its.bound
        choice = choice_of(its.terms[0], number(-1))
        if name in self.greatest or choice is None or not choice[1].eq(which):
            return
        test, _ = choice
        last = last.decl()(*its.parameters)
        found = self.greatest[name] = Greatest(list(its.parameters), which, test, total)
        self.know(last, z3.And(last >= -1, last < extent(total)))
        self.know(last, z3.Implies(last >= 0, z3.substitute(test, (which, last))))
        for step in steps(test, which):
            self.check_time()
            self.know(last, found.fact(last, step))

    def know_one_to_one(self, term: Term, which: Term, inverse: Term, place: Term, total: int) -> None:
        """Note that a symbol maps the numbers below `total` one to one onto themselves.

        Args:
          term: it, applied to variables.
          which: the one of these that is mapped.
          inverse: the symbol that maps `place` back, applied to this and the other variables.
          place, total: the variable that it maps back, and what all of these numbers are less than.
        """
        both = OneToOne(term, which, inverse, place), OneToOne(inverse, place, term, which)
        for one in both:
            back = one.back(one.term, one.term)
            fact = z3.And(z3.ULT(one.term, number(total)), back == one.which)
            self.know(one.term, z3.Implies(z3.ULT(one.which, number(total)), fact))
            name, back = (term.decl().name().split(":")[0] for term in (one.term, one.inverse))
            self.one_to_one[name] = one
            mapped = next(k for k, a in enumerate(one.term.children()) if a.eq(one.which))
            self.positions.ranges.one_to_one[name] = mapped, total, back

    def know_order(self, inverse: Term, total: int, other: Term, test: Term, own: Term) -> None:
        """Note which of two elements comes first in an order, of which `inverse` gives the elements.

        Args:
          inverse: the symbol, applied to variables, a place among them.
          total: how many elements there are.
          other, own: the numbers of two elements.
          test: whether the other one comes before the own one.
        """
        name = inverse.decl().name().split(":")[0]
        its = self.one_to_one[name]
        known = {term.decl().name() for term in (other, own, *inverse.children())}
        is_plain = all(term.num_args() == 0 for term in inverse.children())
        if is_plain and symbols_of([test])[0].keys() <= known:
            self.ranked[name] = RankOrder(its, total, other, own, test)

    def know_count(self, count: Term, total: int) -> None:
        """Note that a symbol is how many of the numbers below `total` something holds for."""
        name = count.decl().name().split(":")[0]
        if name not in self.counts:
            self.counts[name] = total
            self.positions.ranges.of_symbols[name] = 0, total
            self.know(count, z3.And(count >= 0, count <= number(total)))

    def occurrence(
        self,
        at: At,
        kind: tuple[Any, ...],
        terms: Sequence[Term],
        bound: Sequence[Term],
        sort: Any,
        *,
        sizes: tuple[Extent, ...] | None = None,
        of_variables: bool = False,
    ) -> Term:
        """What is made of terms over bound variables by something that is a function of them.

        It is the result of an earlier one of the same kind whose terms are equal, for all values of the variables; else
        a new symbol, of the parts of the terms that hold no bound variable.

        Args:
          at: where.
          kind: what it is made by.
          terms, bound: the terms, and the variables that are bound.
          sort: of the result.
          sizes: what the variables are less than, of a fold whose order does not matter, or whose kind is `IN_ORDER`.
          of_variables: whether the symbol is one of the variables that are not bound: facts may be known of it.
        """
        self.work.add(OCCURRENCE)
        given = Made(kind, tuple(z3.simplify(term) for term in terms), tuple(bound), sizes)
        while (inner := self._inner(given)) is not None:
            given = inner
        given = with_joined_dims(given, self.positions.variable)
        names = self._canonical_variables(given.bound)
        given = given.over(names, names, given.sizes)
        if self.orders:
            ordered = tuple(in_one_order(given.terms, names))
            self.has_ordered |= any(not a.eq(b) for a, b in zip(given.terms, ordered, strict=True))
            given = replace(given, terms=ordered)
        constants, functions = symbols_of(given.terms)
        if any(name.startswith(CARRIED) for name in functions):
            raise Beyond("a fold of what a loop carries")
        if of_variables:
            taken = {term.decl().name() for term in names}
            free = sorted(n for n in constants if not n.startswith(("argument ", "#", SIZE)) and n not in taken)
            shape, parameters = list(given.terms), [constants[n] for n in free]
            parts = parameters
        else:
            shape, parameters, parts = abstract_parts(given.terms, names)
        alike = given.kind, str(sort), of_variables, *(term.get_id() for term in (*shape, *names))
        if alike in self._names:
            return apply_symbol(self._names[alike], parts, sort)
        # What is equal most often holds the same arguments and occurrences: others are not asked about.
        held = frozenset(n for n in functions | constants.keys() if n.startswith(("argument ", "#")))
        looks = given.kind, str(sort), frozenset(self._looks.get(n, n) for n in held if self._looks.get(n, n))
        met, mine = self._met.setdefault(looks, []), self._variables(given)
        for one, its, _, result in reversed(met):
            if its == held and self._are_one(one, given, is_asked=False):
                return result
        theirs = [
            (one, its == held, self._variables(one) == mine, result)
            for one, its, side, result in reversed(met)
            if side != at.frame.side
        ]
        for is_likely in (True, False):
            for one, is_plain, is_of_mine, result in theirs:
                is_asked = is_of_mine is is_likely and (is_plain or is_likely)
                if is_asked and self._are_one(one, given, is_asked=True, is_within=not is_plain):
                    return result
        name = f"#{len(self.origin)}"
        self.origin[name], self._names[alike] = str(given.kind[0]), name
        self._looks[name] = looks if looks[-1] else ()
        self.made[name] = Made(given.kind, tuple(shape), given.bound, given.sizes, tuple(parameters))
        result = apply_symbol(name, parts, sort)
        met.append((given, held, at.frame.side, result))
        return result

    def _variables(self, made: Made) -> set[str]:
        """The variables of what is made that are not bound."""
        bound = {term.decl().name() for term in made.bound}
        return {name for name in symbols_of(made.terms)[0] if name in self.positions.sizes} - bound

    def _canonical_variables(self, bound: Sequence[Term], name: str = "b") -> list[Term]:
        """Bound variables under names that depend only on their order and their size or sort."""
        sizes = [self.positions.sizes.get(term.decl().name()) for term in bound]
        return [
            self.positions.variable(f"{name}{k}", size)
            if size is not None
            else z3.Const(f"{name}{k} {term.sort()}", term.sort())
            for k, (term, size) in enumerate(zip(bound, sizes, strict=True))
        ]

    def _inner(self, given: Made) -> Made | None:
        """A fold over its own positions and those of the fold that its only term is, where both are one fold."""
        if given.sizes is None or len(given.terms) != 1 or given.kind[0] != "combined":
            return None
        [term] = given.terms
        found = self.made.get(term.decl().name().split(":")[0])
        if found is None or found.sizes is None:
            return None
        is_product = found.kind[0] == "dot_general" and given.kind[1:] == ("add", found.kind[-1])
        if found.kind != given.kind and not is_product:
            return None
        inner = found.at(term.children())
        return Made(found.kind, inner.terms, (*given.bound, *inner.bound), (*given.sizes, *found.sizes))

    def _are_one(self, first: Made, second: Made, *, is_asked: bool, is_within: bool = False) -> bool:
        """Whether the terms of two occurrences of a kind are equal; of folds with sizes in whatever parts, and in any
        order but where their kind is `IN_ORDER`.

        They are compared as they stand, or z3 is asked, or z3 is asked where occurrences within them that are one are
        one symbol.
        """

        def are_equal(one: Sequence[Term], other: Sequence[Term]) -> bool:
            """Each pair by itself: where a size is 0 nothing is asked of the terms over its positions."""
            pairs = list(zip(one, other, strict=True))
            if is_within:
                return self._are_one_within(pairs)
            if not is_asked:
                return all(a.eq(b) for a, b in pairs)
            return all(self.same([pair]) for pair in pairs) if self._sizes is not None else bool(self.same(pairs))

        if first.sizes is None or second.sizes is None:
            is_like = first.sizes == second.sizes and len(first.terms) == len(second.terms)
            bound = [(a, b) for a, b in zip(first.bound, second.bound, strict=False)]
            is_like = is_like and len(first.bound) == len(second.bound) and all(a.eq(b) for a, b in bound)
            return is_like and are_equal(first.terms, second.terms)
        for order in orders(second.sizes) if IN_ORDER not in first.kind else [range(len(second.sizes))]:
            sizes = [second.sizes[d] for d in order]
            parts = common_refinement(first.sizes, sizes)
            if parts is None:
                continue
            names = [self.positions.variable(f"c{k}", n) for k, n in enumerate(parts)]
            one = rename_variables(first.terms, first.bound, as_parts(first.sizes, parts, names))
            other = rename_variables(second.terms, [second.bound[d] for d in order], as_parts(sizes, parts, names))
            if are_equal(one, other):
                return True
        return False

    def _are_one_within(self, pairs: Sequence[tuple[Term, Term]]) -> bool:
        """Whether terms are equal because of occurrences within them: each of a second term that is in no first one is
        held against one of these that looks alike, in their order.

        What an occurrence is made of may be known to be equal only here, where both stand over the same variables: a
        sum over rows and columns has its convolution at rows k0, and a loop over tiles at a start that it clamps.
        """
        sides = [
            [p for p in parts_of(terms) if self._looks.get(p.name.split(":")[0])] for terms in zip(*pairs, strict=True)
        ]
        common = {part.number for part in sides[0]} & {part.number for part in sides[1]}
        mine, theirs = ([part.term for part in side if part.number not in common] for side in sides)
        by_look = [self._by_look(terms) for terms in (mine, theirs)]
        is_alike = mine and by_look[0].keys() == by_look[1].keys()
        if not is_alike or self._vain >= MOST_VAIN or self.is_open:  # of an open size 0 nothing is asked
            return False
        equal = [both for look, terms in by_look[0].items() for both in zip(by_look[1][look], terms, strict=False)]
        found = self.same([(one, z3.substitute(other, *equal)) for one, other in pairs], SOON_SECONDS)
        found = bool(found) and all(self._are_one_application(one, other) for other, one in equal)
        self._vain += not found
        return found

    def _are_one_application(self, first: Term, second: Term) -> bool:
        """Whether two occurrences of a kind, as they are applied, are equal for all values of the variables there.

        These are renamed: the same is asked once, and none is taken for a variable that an occurrence binds.
        """
        constants = {part.name: part.term for part in parts_of([first, second]) if part.name and not part.operands}
        old = [term for name, term in constants.items() if name in self.positions.sizes or name.startswith("b")]
        new = self._canonical_variables(old, "a")
        first, second = rename_variables([first, second], old, new)
        key = first.get_id(), second.get_id()
        if key not in self._one:
            its = [self.made[term.decl().name().split(":")[0]].at(term.children()) for term in (first, second)]
            is_alike = symbols_of(its[0].terms)[1] == symbols_of(its[1].terms)[1]
            self._kept += (first, second)
            self._one[key] = self._are_one(*its, is_asked=True, is_within=not is_alike)
        return self._one[key]

    def _by_look(self, terms: Sequence[Term]) -> dict[tuple[Any, ...], list[Term]]:
        found = dict[tuple[Any, ...], list[Term]]()
        for term in terms:
            found.setdefault(self._looks[term.decl().name().split(":")[0]], []).append(term)
        return found

    def choose(self, at: At, test: Term, yes: Term, no: Term) -> Term:
        """`yes` where the test holds, else `no`. A test that equals one of the other module is replaced by that one."""
        while z3.is_app_of(yes, z3.Z3_OP_ITE) and (yes.arg(1).eq(no) or yes.arg(2).eq(no)):
            is_first = yes.arg(2).eq(no)
            inner, yes = yes.arg(0), yes.arg(1 if is_first else 2)
            test = z3.simplify(z3.And(test, inner if is_first else z3.Not(inner)))
        if yes.eq(no) or z3.is_true(test) or z3.is_false(test):
            return choose(test, yes, no)
        symbols = applications_in([test])
        if any(symbol.num_args() for symbol in symbols):
            met = self._tests.setdefault(frozenset(symbol.get_id() for symbol in symbols), [])
            for one, side in met:
                if one.eq(test) or (side != at.frame.side and self.same([(one, test)], SOON_SECONDS)):
                    return choose(one, yes, no)
            met.append((test, at.frame.side))
        return choose(test, yes, no)

    def carried_symbol(self, so_far: Term, place: Place) -> Bound:
        """A symbol for the elements that a loop carries; at `place` it equals the element that the prover follows."""
        name = f"{CARRIED}{len(self.origin)}"
        self.origin[name] = "while"
        formals = [z3.BitVec(f"dim {dim}", POSITION) for dim in range(len(place))]
        is_here = z3.And(*(a == b for a, b in zip(formals, place, strict=True)))
        self.know(
            apply_symbol(name, formals, so_far.sort()),
            z3.Implies(is_here, apply_symbol(name, formals, so_far.sort()) == so_far),
        )
        return lambda other: apply_symbol(name, other, so_far.sort())

    def of_itself(self, after: Term, so_far: Term) -> Term:
        """What a step of a loop makes of an element, where it depends on no other element of what is carried.

        Raises:
          Beyond: it was not shown that it does not.
        """
        after = z3.simplify(after)
        carried = [term for term in applications_in([after]) if term.decl().name().startswith(CARRIED)]
        if not carried:
            return after
        alone = z3.simplify(z3.substitute(after, *((term, so_far) for term in carried)))
        if not self.same([(after, alone)]):
            raise Beyond("a loop that writes a position from others")
        return alone


def _is_hard(part: Part) -> bool:
    """Whether a term is a product of two that are not numbers, or a quotient or remainder."""
    if part.kind == z3.Z3_OP_BMUL:
        return sum(not z3.is_bv_value(inner.term) for inner in part.operands) > 1
    return len(part.operands) == 2 and part.kind in _quotients()


@cache
def _quotients() -> frozenset[int]:
    names = ("BUDIV", "BUREM", "BSDIV", "BSREM", "BSMOD")
    return frozenset(getattr(z3, f"Z3_OP_{name}{end}") for name in names for end in ("", "_I"))
