"""Show that two pieces are equal: each value of the second one is a part of one of the first, laws all the way."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.parts.counted_whiles import Scope, sliced_at
from hlo_lower.verify.parts.counting import counted
from hlo_lower.verify.parts.op_parts import Goal, Law, OpParts, Part, Run, integers, shape_of
from hlo_lower.verify.parts.place_laws import PLACE_LAWS, whole
from hlo_lower.verify.parts.positions import ZERO, Position, shifted
from hlo_lower.verify.parts.sum_laws import NEUTRAL, SUM_LAWS, combiner_of, outermost_position, summed_extents
from hlo_lower.verify.parts.tile_writes import Box, Writes, covers
from hlo_lower.verify.parts.turned_products import add_turned, turn_products, turned
from hlo_lower.verify.parts.window_laws import WINDOW_LAWS
from hlo_lower.verify.read.meanings import is_splat
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

Array = NDArray[Any]

LAWS: dict[str, Law] = {**PLACE_LAWS, **SUM_LAWS, **WINDOW_LAWS}
"""The law of each op that has one; others are the same only as a whole."""

MOST_GOALS = 200_000
"""Goals after which it is given up."""

DEEPEST = 60_000
"""Frames of Python: a module's ops follow each other to a depth of thousands."""


SUMMED = ("f32", "f64")
"""Floats of which parts of sums may be rounded to the type itself."""


def are_equal_by_parts(first: str, second: str, *, reassociated: bool, name: str = "main") -> bool:
    """Whether a function of two modules is shown to give the same, whatever its arguments are.

    Args:
      first, second: the modules. What the first one returns behind the second one's results is not looked at.
      name: the function.
      reassociated: whether float sums may be in another order; else no op that sums floats is cut.

    Returns:
      False where it is not shown, which says nothing.
    """
    context = mlir.make_context()
    modules = mlir.parse_module(first, context), mlir.parse_module(second, context)
    with mlir.active(context):
        for module in modules:
            turn_products(module)
        add_turned(modules[0])
    programs = Program(modules[0]), Program(modules[1])
    bodies = programs[0].entries[name], programs[1].entries[name]
    if any(op.has_effects for body in bodies for op in body.ops):
        return False
    if len(bodies[1].returned) > len(bodies[0].returned):
        return False
    with _deep():
        try:
            shown = _Shown(programs, bodies, reassociated=reassociated)
            outputs = zip(bodies[0].returned, bodies[1].returned, strict=False)
            return all(shown.is_part(y, shown.all_of(x)) for x, y in outputs) and shown.ends(*bodies)
        except (_TooManyGoalsError, RecursionError):
            return False


class _TooManyGoalsError(Exception):
    """It takes too long."""


@contextmanager
def _deep() -> Generator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Shown:
    """What is shown of two pieces so far.

    By induction over the goals: each is reduced to goals about what its values are computed from. What an iteration of
    a loop writes is shown for a counter that may be any; what it carries is read only where it is written into.
    """

    def __init__(self, programs: tuple[Program, Program], bodies: tuple[Body, Body], *, reassociated: bool) -> None:
        self._a, self._b = programs
        self._may_sum = reassociated
        self._table = Table()
        first, second = (
            Side(program, body, 0, {}, self._table) for program, body in zip(programs, bodies, strict=True)
        )
        self._around = dict(first.numbers), dict(second.numbers)
        self._first = Scope(self._a, self._around[0], self._table.known)
        self._second = Scope(self._b, self._around[1], self._table.known)
        self._second.enter(bodies[1])
        self._writes = Writes(self._b, self._second)
        self._known: dict[Goal, bool] = {}
        self._repeated: set[Op] = set()

    def all_of(self, value: ValueId) -> Part:
        """All of a value of the first piece."""
        return Part(value, (ZERO,) * len(shape_of(self._a, value)))

    def ends(self, first: Body, second: Body) -> bool:
        """Whether the second piece ends where the first one does: each of its loops counts to a constant, or is a loop
        of the first one, on the same values.

        Asked once its results are shown. A loop of which every result is written over, or that nobody reads, shows no
        result and may still not end.
        """
        known = {self._first.number(value) for op in first.ops for value in op.results}

        def is_repeated(op: Op) -> bool:
            numbers = [self._second.number(value) for value in op.results]
            return op in self._repeated or (bool(numbers) and all(n is not None and n in known for n in numbers))

        def all_end(body: Body) -> bool:
            return all(is_repeated(op) or ends(op) for op in body.ops if op.bodies)

        def ends(op: Op) -> bool:
            return (op.name != "stablehlo.while" or op in self._second.loops) and all(map(all_end, op.bodies))

        return all_end(second)

    def is_part(self, value: ValueId, part: Part) -> bool:
        """Whether a value of the second piece is a part of one of the first."""
        goal = value, part
        if goal not in self._known:
            if len(self._known) > MOST_GOALS:
                raise _TooManyGoalsError
            self._known[goal] = False  # until it is shown
            self._known[goal] = self._fits(*goal) and any(way(*goal) for way in self._ways(part))
        return self._known[goal]

    def _ways(self, part: Part) -> "list[Any]":
        """How a part may be shown, cheap ones first."""
        if part.dropped:
            return [self._by_slice, self._by_reshape]
        if part.summed:
            return [self._by_law, self._by_tiles, self._by_sums]
        return [
            *(self._is_same, self._is_known, self._counts_alike, self._by_slice, self._of_slice),
            *(self._by_tiles, self._by_sums, self._in_order, self._by_law, self._by_turned),
        ]

    def _fits(self, y: ValueId, part: Part) -> bool:
        """Whether the value has the part's type, and the part lies inside."""
        one, other = self._a.type_of(part.value), self._b.type_of(y)
        if one is None or other is None or not (one.is_static and other.is_static):
            return False
        extents, sizes = shape_of(self._a, part.value), part.sizes(shape_of(self._b, y))
        if one.element_name != other.element_name or sizes is None:
            return False
        bounds = [offset.bounds for offset in part.offsets]
        return all(low >= 0 and high + s <= n for (low, high), s, n in zip(bounds, sizes, extents, strict=True))

    def _is_whole(self, y: ValueId, part: Part) -> bool:
        is_at_zero = all(offset == ZERO for offset in part.offsets)
        return is_at_zero and shape_of(self._b, y) == shape_of(self._a, part.value)

    # --- what needs no law ---

    def _is_same(self, y: ValueId, part: Part) -> bool:
        """The same value number, of what is computed of the same alike; an argument is one of these."""
        number = self._second.number(y)
        return number is not None and self._is_whole(y, part) and number == self._first.number(part.value)

    def _is_known(self, y: ValueId, part: Part) -> bool:
        """Tensors that are known, element by element, or the same everywhere."""
        one, other = self._first.known(part.value), self._second.known(y)
        if one is None or other is None:
            return False
        if is_splat(one) and is_splat(other):
            index = (0,) * one.ndim
            return one[index].tobytes() == other[index].tobytes()
        if not all(offset.is_constant for offset in part.offsets):
            return False
        window = tuple(slice(o.constant, o.constant + n) for o, n in zip(part.offsets, other.shape, strict=True))
        return np.ascontiguousarray(one[window]).tobytes() == np.ascontiguousarray(other).tobytes()

    def _counts_alike(self, y: ValueId, part: Part) -> bool:
        """Both count along one dim, from where the part begins."""
        one = counted(self._a, self._first, part.value)
        other = None if one is None else counted(self._b, self._second, y)
        if one is None or other is None or one[0] != other[0]:
            return False
        return one[1].plus(part.offsets[one[0]]) == other[1]

    def _by_slice(self, y: ValueId, part: Part) -> bool:
        """A slice at o of a part that begins at p - o is the part that begins at p."""
        offsets = sliced_at(self._b, self._second, y)
        if offsets is None:
            return False
        op = self._second.maker(y)
        assert op is not None
        places = iter(offsets)
        moved = tuple(ZERO if d in part.dropped else next(places) for d in range(len(part.offsets)))
        return self.is_part(op.inputs[0], replace(part, offsets=shifted(part.offsets, moved, -1)))

    def _by_reshape(self, y: ValueId, part: Part) -> bool:
        """A part without its dims of one position is the part, reshaped."""
        op = self._second.maker(y)
        if op is None or op.name != "stablehlo.reshape":
            return False
        is_alike = shape_of(self._b, op.inputs[0]) == part.sizes(shape_of(self._b, y))
        return is_alike and self.is_part(op.inputs[0], replace(part, dropped=()))

    def _of_slice(self, y: ValueId, part: Part) -> bool:
        """A part that begins at p of a slice at o begins at p + o of what is sliced."""
        offsets = sliced_at(self._a, self._first, part.value)
        if offsets is None:
            return False
        op = self._a.makers[part.value]
        assert op is not None
        return self.is_part(y, Part(op.inputs[0], shifted(part.offsets, offsets)))

    # --- loops ---

    def _by_tiles(self, y: ValueId, part: Part) -> bool:
        """Tiles that are written cover it, each the part that stands there: what is below does not matter."""
        found = self._writes.tiles_of(y)
        boxes = [Box(w.offsets, shape_of(self._b, w.tile), w.loops) for w in found.writes]
        if not boxes or not covers(boxes, shape_of(self._b, y), once=False):
            return False
        parts = [Part(part.value, shifted(part.offsets, w.offsets), part.summed) for w in found.writes]
        return all(self.is_part(w.tile, its) for w, its in zip(found.writes, parts, strict=True))

    def _by_sums(self, y: ValueId, part: Part) -> bool:
        """What is added to what the sum leaves alone, in all iterations together, is each term once."""
        op = self._a.makers[part.value]
        combiner = None if op is None else combiner_of(op)
        if op is None or combiner is None or not self._may_be_split(op, combiner):
            return False
        found = self._writes.added_to(y, combiner)
        if not found.writes or not self._is_neutral(self._second.known(found.base), combiner):
            return False
        terms = part.summed or tuple((ZERO, n) for n in summed_extents(self._a, op))
        boxes: list[Box] = []
        for write in found.writes:
            offsets = shifted(part.offsets, write.offsets)
            runs = self._runs_of(write.tile, op, terms, Part(part.value, offsets))
            if runs is None:
                return False
            starts = tuple(own.plus(term, -1) for (own, _), (term, _) in zip(runs, terms, strict=True))
            sizes = (*shape_of(self._b, write.tile), *(n for _, n in runs))
            boxes.append(Box((*write.offsets, *starts), sizes, write.loops))
        return covers(boxes, (*shape_of(self._b, y), *(n for _, n in terms)), once=True)

    def _may_be_split(self, op: Op, combiner: str) -> bool:
        """Whether parts of a sum may be combined: of floats only where their order is free. That of maxima and minima
        always is, as StableHLO has them: -0 is below 0, and NaN is what any of them with a NaN is."""
        element = self._element(op.results[0])
        if op.name == "stablehlo.reduce" and not self._is_neutral(self._first.known(op.inputs[1]), combiner):
            return False
        if element_type(element).is_integer or combiner in ("maximum", "minimum"):
            return True
        return self._may_sum and element in SUMMED

    def _element(self, value: ValueId) -> str:
        tensor = self._a.type_of(value)
        return "" if tensor is None else tensor.element_name

    def _is_neutral(self, array: Array | None, combiner: str) -> bool:
        """Whether a tensor is, everywhere, what a combiner leaves alone."""
        if array is None or not (array.ndim == 0 or is_splat(array)):
            return False
        value = array[(0,) * array.ndim]
        kind = array.dtype.kind
        if combiner in ("maximum", "minimum"):
            is_least = combiner == "maximum"
            if kind == "b":
                return bool(value) != is_least
            if kind in "iu":
                limits = np.iinfo(array.dtype)
                return bool(value == (limits.min if is_least else limits.max))
            return bool(value == (-np.inf if is_least else np.inf))
        neutral = NEUTRAL[combiner]
        if kind == "b":
            return bool(value) == (neutral != 0)
        return bool(value == np.array(neutral).astype(array.dtype))

    def _runs_of(self, tile: ValueId, op: Op, terms: tuple[Run, ...], part: Part) -> tuple[Run, ...] | None:
        """The terms that a tile of a sum sums, sought among where slices begin."""
        sizes = self._summed_sizes(tile, op.name)
        if sizes is None or len(sizes) != len(terms):
            return None
        choices: list[list[Run]] = []
        for (start, length), size in zip(terms, sizes, strict=True):
            same = [(start, length)] if size == length else []
            choices.append(same or [(start.plus(p), size) for p in self._starts(tile, size, length)])
        for runs in product(*choices):
            if self.is_part(tile, Part(part.value, part.offsets, tuple(runs))):
                return tuple(runs)
        return None

    def _summed_sizes(self, tile: ValueId, name: str) -> tuple[int, ...] | None:
        """How much the op that makes a tile sums."""
        op = self._second.maker(tile)
        if op is not None and op.name == name:
            return summed_extents(self._b, op)
        found = self._writes.tiles_of(tile)
        return self._summed_sizes(found.writes[0].tile, name) if found.writes else None

    def _starts(self, tile: ValueId, size: int, length: int) -> list[Position]:
        """Positions at which the terms of a tile may begin: those of the loops around it, and of a rest."""
        found: dict[Position, None] = {}
        op = self._second.maker(tile)
        body = None if op is None else op.parent
        while body is not None:
            for reader in body.ops:
                for offset in sliced_at(self._b, self._second, reader.results[0]) or () if reader.results else ():
                    found[offset] = None
            loop = self._second.loops.get(body.owner) if body.owner is not None else None
            if loop is not None:
                position = Position.of(loop.counter).times(size)
                found[position] = found[position.at_most(length - size)] = None
            body = None if body.owner is None else body.owner.parent
        found[Position(length - size)] = None
        inside = [p for p in found if p.bounds[0] >= 0 and p.bounds[1] + size <= length]
        return sorted(inside, key=lambda p: p.is_constant)

    def _in_order(self, y: ValueId, part: Part) -> bool:
        """A scatter whose updates go in run after run, first to last, each into what the ones before left."""
        op = self._a.makers[part.value]
        if op is None or op.name != "stablehlo.scatter" or len(op.results) != 1 or not self._may_cut(op):
            return False
        place = outermost_position(self._a, op)
        chain = self._threaded(y, None)
        if place is None or chain is None or (len(chain[0]) < 2 and not any(loop for _, loop in chain[0])):
            return False
        length = shape_of(self._a, op.inputs[1])[place]
        following = 0
        for piece, loop in reversed(chain[0]):
            size = shape_of(self._b, piece.inputs[1])[place]
            counter = self._second.loops[loop].counter if loop is not None else None
            trips = 1 if counter is None else counter.trips
            start = Position(following).plus(Position() if counter is None else Position.of(counter).times(size))
            its = Part(part.value, part.offsets, ((start, size),))
            goals = SUM_LAWS[op.name](self._asked(op, piece, its))
            if goals is None or not all(self.is_part(*goal) for goal in goals[1:]):
                return False
            following += trips * size
        return following == length and self.is_part(chain[1], Part(op.inputs[0], part.offsets))

    def _threaded(self, value: ValueId, end: ValueId | None) -> tuple[list[tuple[Op, Op | None]], ValueId] | None:
        """The scatters that write into each other, the last first, each with the loop that it stands in; and into what
        the first one writes."""
        found: list[tuple[Op, Op | None]] = []
        while value != end:
            op = self._b.makers[value]
            if op is None:
                break
            if op.name == "stablehlo.scatter":
                found.append((op, None))
                value = op.inputs[0]
            elif op.name == "stablehlo.while" and op in self._second.loops and end is None:
                place = op.results.index(value)
                loop = self._second.loops[op]
                inner = self._threaded(loop.body.returned[place], loop.body.arguments[place])
                if inner is None or inner[1] != loop.body.arguments[place] or len(inner[0]) != 1:
                    break
                found += [(piece, op) for piece, _ in inner[0]]
                value = op.inputs[place]
            else:
                break
        return (found, value) if found else None

    # --- laws ---

    def _asked(self, op: Op, other: Op, part: Part) -> OpParts:
        return OpParts(
            (self._a, self._b),
            op,
            other,
            part,
            lambda place: self._is_same_body(op, other, place),
            lambda which, value, last: (self._first, self._second)[which].unclamped(value, last),
        )

    def _by_law(self, y: ValueId, part: Part) -> bool:
        """The op that makes the value is the first one's on parts of its operands."""
        op, other = self._a.makers[part.value], self._second.maker(y)
        if op is None or other is None or op.name != other.name or op.has_effects or other.has_effects:
            return False
        if len(op.results) != len(other.results) or len(op.inputs) != len(other.inputs):
            return False
        if op.results.index(part.value) != other.results.index(y):
            return False
        asked = self._asked(op, other, part)
        goals = whole(asked) if not part.summed else None
        if goals is not None and all(self.is_part(*goal) for goal in goals):
            self._repeated.add(other)
            return True
        law = LAWS.get(op.name)
        if law is None or not self._may_cut(op):
            return False
        goals = law(asked)
        return goals is not None and all(self.is_part(*goal) for goal in goals)

    def _by_turned(self, y: ValueId, part: Part) -> bool:
        """A transpose of a part of the product with its factors exchanged."""
        op, other = self._a.makers[part.value], self._second.maker(y)
        if op is None or other is None or (op.name, other.name) != ("stablehlo.dot_general", "stablehlo.transpose"):
            return False
        order = integers(other, "permutation")
        value = turned(op, order)
        offsets = tuple(part.offsets[order.index(dim)] for dim in range(len(order)))
        return value is not None and self.is_part(other.inputs[0], Part(value, offsets))

    def _may_cut(self, op: Op) -> bool:
        """Whether an op may be computed in parts: one that sums floats, in an order that its sizes decide, only where
        the order is free."""
        if op.name not in SUM_LAWS or self._may_sum:
            return True
        return all(element_type(self._element(value)).is_integer for value in op.results)

    def _is_same_body(self, op: Op, other: Op, place: int) -> bool:
        """Whether regions are one function; one that reads what stands in a loop is taken as another."""
        try:
            numbers = [
                self._table.region(program, its.bodies[place], around, 1)
                for program, its, around in zip((self._a, self._b), (op, other), self._around, strict=True)
            ]
        except KeyError:
            return False
        return numbers[0] == numbers[1]
