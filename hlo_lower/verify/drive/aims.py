"""Runs that are aimed at outcomes which no run had: by solving what is compared for the inputs, or between two runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.piece import Pieces, module_of
from hlo_lower.verify.drive.driven_runs import Run
from hlo_lower.verify.drive.inverse import MOST, Inverse, Solution, stepped
from hlo_lower.verify.drive.outcomes import BRANCHING, Outcomes, Point
from hlo_lower.verify.drive.ranges import Interval, Ranges
from hlo_lower.verify.judges.devices import Runnable
from hlo_lower.verify.read.program import Op, ValueId, location_of, ops_within
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]

TURNS = 6
"""How often an outcome is aimed at, each time from another run."""

FURTHER = (1, 1, 1, 2, 1000, 1)
"""How far beside an equal number one lies that is to be unequal, in each turn."""

BYTES = 1 << 28
"""Bytes of all values of a piece up to which they are looked at."""

HALVINGS = 70
"""How often the way between two runs is halved."""


@dataclass
class Aims:
    """Aims at the outcomes of one piece.

    Args:
      outcomes: what is looked at.
      compiled: compiles a module.
      runs: runs that were made.
    """

    outcomes: Outcomes
    compiled: Callable[[str], Runnable]
    runs: Sequence[Run]

    def next(self) -> Iterator[Run]:
        """The runs."""
        body = self.outcomes.program.entries["main"]
        points = [point for point in self.outcomes.left() if point.op.parent is body]
        if self._look_behind({value for point in points for value in point.op.inputs}):
            for point in points:
                yield from self._at(point)

    def reaching(self, value: ValueId, target: Array) -> Iterator[Run]:
        """Runs that try to make a value of the piece a target."""
        if not self._look_behind({value}):
            return
        for turn, run in enumerate(self.runs):
            values = self.values(run.arguments)
            if values[value].shape != target.shape:
                return
            rng = np.random.default_rng(turn)
            inverse = Inverse(self.outcomes.program, values, rng, FURTHER[0])
            for solution in islice(inverse.solved(value, (target, np.ones(target.shape, bool))), MOST):
                yield Run("sought at the cut", self._applied(run.arguments, solution, 0, rng), run.is_special)

    def _look_behind(self, wanted: set[ValueId]) -> bool:
        """Make ready to look at what values are made of; whether that is possible."""
        program = self.outcomes.program
        self._arguments = list(program.entries["main"].arguments)
        self._ops, self._read = self._behind(wanted)
        if not self.runs or not self._ops:
            return False
        own = {value: value for value in range(len(program.types))}
        types = [program.types[value] for value in self._arguments]
        places = dict(enumerate(self._arguments))
        self._probe = self.compiled(module_of(program, self._ops, places, own, self._read, types))
        return True

    def _behind(self, wanted: set[ValueId]) -> tuple[list[Op], list[ValueId]]:
        """The operations behind values, and their results that are arrays."""
        program = self.outcomes.program
        body = program.entries["main"]
        needed = set(wanted)
        ops: list[Op] = []
        for op in reversed(body.ops):
            if needed.intersection(op.results):
                ops.append(op)
                needed.update(op.reads)
        ops.reverse()
        read: list[ValueId] = []
        size = 0
        for value in (v for op in ops for v in op.results):
            tensor, dtype = program.type_of(value), program.dtype_of(value)
            if tensor is not None and tensor.is_static and dtype is not None:
                read.append(value)
                size += dtype.itemsize * int(np.prod([int(n or 0) for n in tensor.shape]))
        return (ops, read) if size <= BYTES else ([], [])

    def values(self, arguments: Sequence[Array]) -> dict[ValueId, Array]:
        """What the values behind the points are in a run."""
        found = dict(zip(self._arguments, map(np.asarray, arguments), strict=True))
        return found | dict(zip(self._read, map(np.asarray, self._probe.run(arguments)), strict=True))

    def _at(self, point: Point) -> Iterator[Run]:
        for turn in range(TURNS):
            run = self.runs[turn % len(self.runs)]
            values = self.values(run.arguments)
            rng = np.random.default_rng(turn)
            inverse = Inverse(self.outcomes.program, values, rng, FURTHER[turn])
            for solution in islice(self._solutions(point, inverse, values, turn, rng), MOST):
                yield Run(f"aimed at: {point}", self._applied(run.arguments, solution, turn, rng), run.is_special)
                if not self._is_missed(point):
                    return
        yield from self._between(point)

    def _is_missed(self, point: Point) -> bool:
        return any(point is other for other in self.outcomes.missed())

    def _pair(self, point: Point) -> tuple[ValueId, ValueId]:
        places = {value: k for k, value in enumerate(point.op.raw.operands)}
        first, second = (point.op.inputs[places[value]] for value in point.pair)
        return first, second

    def _solutions(
        self, point: Point, inverse: Inverse, values: dict[ValueId, Array], turn: int, rng: np.random.Generator
    ) -> Iterator[Solution]:
        first, second = self._pair(point)
        there = values[first]
        where = np.ones(there.shape, bool) if turn % 2 == 0 else rng.random(there.shape) < 0.5
        if point.op.name in BRANCHING:
            target = int(point.outcome) if point.op.name == "stablehlo.case" else point.outcome == "0"
            yield from inverse.solved(first, (np.full(there.shape, target, there.dtype), where))
        elif point.outcome in ("true", "false"):
            yield from inverse.solved(first, (np.full(there.shape, point.outcome == "true"), where))
        elif point.outcome in ("less", "equal", "greater", "different"):
            # Beside the border, too: what the other piece has in the place of this comparison may lie there.
            sign = {"less": -1, "equal": 0}.get(point.outcome, 1)
            steps = np.full(there.shape, sign * FURTHER[turn])
            if turn > 1 and FURTHER[turn] == 1:
                steps = rng.integers(-1, 2, there.shape)
            yield from inverse.beside(first, second, steps, where)

    def _applied(
        self, arguments: Sequence[Array], solution: Solution, turn: int, rng: np.random.Generator
    ) -> list[Array]:
        """A run's arguments with what a solution says; floats perhaps some units further, as rounding spoils it."""
        found = list(arguments)
        for place, value in enumerate(self._arguments):
            if value in solution:
                target, where = solution[value]
                given = np.asarray(arguments[place])
                aimed = np.asarray(target).astype(given.dtype)
                if turn and given.dtype.kind not in "iubc":
                    aimed = stepped(aimed, rng.integers(-2, 3, aimed.shape) * (rng.random(aimed.shape) < 0.7))
                found[place] = np.where(where, aimed, given).astype(given.dtype)
        return found

    def _between(self, point: Point) -> Iterator[Run]:
        """The way between two runs, in one of which a number is less and in one greater, halved again and again."""
        if point.outcome not in ("less", "equal", "greater"):
            return
        first, second = self._pair(point)

        def side(arguments: Sequence[Array]) -> Array:
            values = self.values(arguments)
            with np.errstate(all="ignore"):
                a, b = (np.asarray(values[v]) for v in (first, second))
                b = np.broadcast_to(b, a.shape)
                return ((a > b).astype(int) - (a < b)).reshape(-1)

        signs = [side(run.arguments) for run in self.runs]
        below = next(
            ((i, j, k) for i, x in enumerate(signs) for j, y in enumerate(signs) for k in _opposite(x, y)), None
        )
        if below is None:
            return
        low, high = (list(map(np.asarray, self.runs[n].arguments)) for n in below[:2])
        for _ in range(HALVINGS):
            middle = [_middle(a, b) for a, b in zip(low, high, strict=True)]
            sign = side(middle)[below[2]]
            if sign == 0:
                yield Run(f"aimed at: {point}", middle, False)
                return
            if all(_is_same(m, e) for m, e in zip(middle, low if sign < 0 else high, strict=True)):
                break
            low, high = (middle, high) if sign < 0 else (low, middle)
        yield Run(f"aimed below: {point}", low, False)
        yield Run(f"aimed above: {point}", high, False)


def _opposite(x: Array, y: Array) -> Sequence[int]:
    """An element that is less in one run and greater in the other, if there is one."""
    found = np.flatnonzero((x < 0) & (y > 0))
    return [int(found[0])] if found.size else []


def _middle(a: Array, b: Array) -> Array:
    """The middle of two arrays; of what is no number, the first one."""
    if a.dtype == np.bool_ or a.dtype.kind == "c":
        return a
    if a.dtype.kind in "iu":
        return np.asarray((np.asarray(a, object) + np.asarray(b, object)) // 2).astype(a.dtype)
    with np.errstate(all="ignore"):
        middle = (a.astype(np.float64) / 2 + b.astype(np.float64) / 2).astype(a.dtype)
    return np.where(np.isfinite(middle.astype(np.float64)), middle, a).astype(a.dtype)


def _is_same(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


KEPT = 12
"""Runs from which others are made."""


class Watch:
    """Counts outcomes while runs are made, until each was had.

    Args:
      region, pieces: what is run.
      values: all that an input of it may be, in order, where that is known, or the least and the greatest of it.
      compiled: compiles a module.
      only_entered: whether branches and loops alone are looked at.
      no_nan: whether runs with NaN are left out.
    """

    def __init__(
        self,
        region: Region,
        pieces: Pieces,
        values: Sequence[Sequence[float] | None],
        compiled: Callable[[str], Runnable],
        *,
        only_entered: bool,
        no_nan: bool,
    ) -> None:
        counters = {place: values for place, values in enumerate(values) if values is not None}
        self.outcomes: list[Outcomes] = []
        sorts = any(op.name == "stablehlo.sort" for op in ops_within([*region.first, *region.second]))
        for text, ops in ((pieces.first, region.first), (pieces.second, region.second)):
            places = [location_of(op.raw) for op in ops_within(ops)]
            self.outcomes.append(
                Outcomes.of(text, counters, places, only_entered=only_entered, sorts=sorts, no_nan=no_nan)
            )
        self._compiled = compiled
        self._made: list[Run] = []
        self._runs: list[Runnable | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether every outcome was had."""
        return not any(outcomes.missed() for outcomes in self.outcomes)

    def add(self, run: Run) -> None:
        """Look at a run."""
        if self.is_done:
            return
        if len(self._made) < KEPT:
            self._made.append(run)
        if self._runs is None:
            try:
                self._runs = [self._compiled(o.text) if o.text else None for o in self.outcomes]
            except CannotRunError:  # XLA is no judge of the pieces either
                self.outcomes = []
                return
        for outcomes, runnable in zip(self.outcomes, self._runs, strict=True):
            if runnable is not None:
                outcomes.add(runnable.run(run.arguments))

    def next(self) -> Iterator[Run]:
        """Further runs, aimed at what none had."""
        for outcomes in self.outcomes:
            if outcomes.missed():
                try:
                    yield from Aims(outcomes, self._compiled, self._made).next()
                except CannotRunError:
                    continue

    def hold(self, within: Mapping[int, Interval]) -> None:
        """Do not ask for what cannot come where inputs, by place, lie within intervals."""
        for outcomes in self.outcomes:
            old = outcomes.ranges
            outcomes.ranges = Ranges(old.program, {**within, **old.counters}, old.sorts, old.no_nan)

    def missed(self) -> tuple[str, ...]:
        """What no run had, a line each."""
        return tuple(dict.fromkeys(str(point) for outcomes in self.outcomes for point in outcomes.left()))
