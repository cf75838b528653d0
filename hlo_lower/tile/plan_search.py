"""Search for loops until a module's temporaries are within a budget, or nothing is gained any more.

XLA's figure for the compiled module accepts or refuses; the estimates only say in which order to try.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

from hlo_lower.base.memory import shown_bytes
from hlo_lower.facts.memory.dataflow import Dataflow, type_of
from hlo_lower.facts.memory.liveness import liveness, programs_at_peak
from hlo_lower.ir.reader import read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_bytecode, to_text
from hlo_lower.lowering.engine.nested_slices import NestedSlices
from hlo_lower.ops.axes.cut import Boundary, SubsetRules
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.find.choose import (
    LARGE,
    NARROW,
    OVERESTIMATED,
    SLIGHT,
    CostedPlan,
    choices,
    finer_part,
    sizes_for,
    within,
)
from hlo_lower.tile.find.measure import measure_temporaries, require_bytes
from hlo_lower.tile.prepare.rematerialization import RecomputedRecord, levels, recompute
from hlo_lower.tile.prepare.slice_hoisting import PulledRecord, pull_up
from hlo_lower.tile.tiled_module import TiledLoopRecord, records

ROUNDS = 12
"""Most loops, one after the other."""

TRIED = 6
"""Plans that are compiled in a round, at most."""

GAIN = 0.98
"""A plan is worth it if it leaves no more than this of the temporaries."""

SHOWN = 4
"""Values that are told to be left."""

Tell = Callable[[str, int, int], None]

Say = Callable[[str], None]
"""Told of each plan that is tried, a line each."""


def say_nothing(line: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class SearchLimits:
    """What a search may take; it ends with the best so far."""

    plans: int = 48  # that are built and compiled
    seconds: float = 600.0  # after which no other is begun; a compilation under way ends, too


@dataclass
class Search:
    """How far a search is."""

    name: str  # of the module
    module: bytes  # the module so far, as bytecode, which keeps the places that it came with
    effort: SearchLimits = field(default_factory=SearchLimits)  # what it may take
    # size, before: bytes of its temporaries, now and as it was given; 0 until they are measured
    size: int = 0
    before: int = 0
    # loops, pulled: the loops so far, and the picks that were pulled up
    loops: list[TiledLoopRecord] = field(default_factory=list[TiledLoopRecord])
    pulled: list[PulledRecord] = field(default_factory=list[PulledRecord])
    # the scans whose stacks are computed again
    recomputed: list[RecomputedRecord] = field(default_factory=list[RecomputedRecord])
    # the size, the module and the loops when last something was gained
    gained: tuple[int, bytes, tuple[TiledLoopRecord, ...]] = (0, b"", ())
    ended: str = ""  # why it ended early
    # plans, start: how many were tried, and when it began
    plans: int = 0
    say: Say = say_nothing  # who is told of each
    start: float = field(default_factory=time.monotonic)

    @property
    def is_changed(self) -> bool:
        """Whether anything was gained."""
        return bool(self.loops or self.pulled or self.recomputed)

    @property
    def seconds_left(self) -> float:
        """Seconds that it may still take."""
        return self.effort.seconds - (time.monotonic() - self.start)

    def is_over(self) -> bool:
        """Whether it took what it may; if so it says what."""
        if self.seconds_left <= 0:
            self.ended = f"it took {self.effort.seconds:g} s"
        elif self.plans >= self.effort.plans:
            self.ended = f"it tried {self.plans} plans"
        return bool(self.ended)

    def tried(self, what: str, size: int | str, budget: int) -> None:
        """Count a plan, and say what it needs, or why XLA does not compile it."""
        self.plans += 1
        needs = shown_bytes(size) if isinstance(size, int) else size
        so_far = f"{shown_bytes(self.size)} so far, {shown_bytes(budget)} asked for"
        took = time.monotonic() - self.start
        self.say(f"plan {self.plans} of {self.effort.plans}, after {took:.0f} s: {what}: {needs} ({so_far})")


@dataclass(frozen=True)
class Attempt:
    """A plan, built: the module, its text, what is told of its loops, and what is live in it."""

    module: bytes
    text: str
    loops: tuple[TiledLoopRecord, ...]
    beyond: "Beyond"
    number: int  # its place among the plans

    @property
    def computes_again(self) -> bool:
        """Whether a loop computes large values that another one computes, too."""
        return any(loop.again for loop in self.loops)

    def comes_before(self, size: int, other_size: int, other: "Attempt") -> bool:
        """Whether it is better than one that was tried before, of two sizes beyond the budget."""
        if self.computes_again != other.computes_again:
            return other.computes_again
        return size < other_size * GAIN


def search(
    original: str,
    graph: Graph,
    budget: int,
    rules: SubsetRules,
    tell: Tell,
    effort: SearchLimits,
    say: Say = say_nothing,
) -> Search:
    """Pull picks up, then make loops in a copy of the prepared graph until the temporaries of the original are
    within the budget, or nothing is gained; InputError if XLA does not compile the module."""
    found = Search(graph.name, to_bytecode(graph), effort, say=say)
    _begin(found, original, budget)
    _recompute(found, budget, 2)
    for number in range(ROUNDS):
        tell("loops", number, ROUNDS)
        if found.size < found.gained[0] * GAIN or number == 0:
            found.gained = found.size, found.module, tuple(found.loops)
        if found.size <= budget or found.is_over():
            break
        tried = (_improve(found, budget, attempts) for attempts in _levels(found, budget, rules))
        if not (any(tried) or _recompute(found, budget)):
            break
    if found.size > budget and found.loops and found.size > found.gained[0] * GAIN:  # the last loops led to nothing
        found.size, found.module, found.loops = *found.gained[:2], list(found.gained[2])
    if not found.loops and not found.recomputed and found.size >= found.before:
        found.pulled.clear()
    if found.size <= budget:
        found.ended = ""
    return found


def _begin(found: Search, original: str, budget: int) -> None:
    """Measure the module as it was given and, where that is too much, with its picks pulled up.

    The latter is taken unless XLA needs more for it. Where it needs as much, loops may need less; where there are none
    in the end, the pulls are not kept.
    """
    graph = read(found.module, found.name)
    slices = NestedSlices(graph)
    pulled = pull_up(graph)
    slices.clamp_built()
    for number, size in measure_temporaries([original, *([to_text(graph)] if pulled else [])]):
        if number == 0:
            found.size = found.before = require_bytes(size, found.name)
            if found.size <= budget:
                return
        elif isinstance(size, int) and size <= found.before:
            found.module, found.size = to_bytecode(graph), size
            found.pulled += pulled


def _recompute(found: Search, budget: int, part: int = 0) -> bool:
    """Compute what scans stack again where it is read, the fattest stacks first, until the module is within the budget;
    else as far as it needs least. Whether less is needed.

    Args:
      found: is changed; once.
      budget: bytes.
      part: do so only where the stacks are at least this part of what is beyond the budget.
    """
    if found.size <= budget or found.recomputed:
        return False
    sizes = levels(read(found.module, found.name))
    if not sizes or part * sizes[-1] < found.size - budget:
        return False
    made: list[tuple[bytes, tuple[RecomputedRecord, ...]]] = []
    texts: list[str] = []
    for level in sorted({-(-len(sizes) * number // TRIED) for number in range(1, TRIED + 1)}):
        graph = read(found.module, found.name)
        told = recompute(graph, level)
        made.append((to_bytecode(graph), told))
        texts.append(to_text(graph))
    best = -1
    for number, size in measure_temporaries(texts, max(1.0, found.seconds_left)):
        found.tried("computes again " + ", ".join(map(str, made[number][1])), size, budget)
        if isinstance(size, int) and size < found.size * GAIN:
            found.size, best = size, number
        if found.size <= budget or found.is_over():
            break
    if best >= 0:
        found.module, found.recomputed = made[best][0], list(made[best][1])
    return best >= 0


def _levels(found: Search, budget: int, rules: SubsetRules) -> Iterator["_Attempts"]:
    """The plans for all that is large, and where nothing is gained with these for what is by itself.

    Where none of the former is within the budget by the estimate, and plans in which smaller values are large, too,
    are, or leave half as much, the latter stand in their place.
    """
    attempts = _Attempts(found, budget, rules, LARGE)
    if attempts.least > budget:
        part = finer_part(Dataflow(read(found.module, found.name), rules), budget)
        finer = _Attempts(found, budget, rules, part) if part > LARGE else attempts
        attempts = finer if finer.least <= max(budget, attempts.least // 2) else attempts
    yield attempts
    yield _Attempts(found, budget, rules, NARROW)


def _improve(found: Search, budget: int, attempts: "_Attempts") -> bool:
    """Take the best of the plans that are tried, or the first that is within the budget; whether there was one.

    Where none needs less yet, the first that needs about as much and leaves less beyond the budget elsewhere
    (`Beyond`). Of those that gain one that computes no large value again is better: what is left may do without, too.
    Else a later one is if it needs clearly less.

    Args:
      found: is changed.
      budget: see `search`.
      attempts: the plans.
    """
    beyond = attempts.before
    best: tuple[int, Attempt] | None = None
    level: tuple[int, Attempt] | None = None
    for number, size in measure_temporaries(attempts, max(1.0, found.seconds_left)):
        attempt = attempts.made[number]
        found.tried("; ".join(f"loop {loop}" for loop in attempt.loops), size, budget)
        if isinstance(size, int) and size < found.size * GAIN:
            if best is None or size <= budget or attempt.comes_before(size, *best):
                best = size, attempt
        elif isinstance(size, int) and size <= found.size + budget // SLIGHT and attempt.beyond.is_level(beyond):
            level = level or (size, attempt)
        if (best and best[0] <= budget) or (level and not best) or found.is_over():
            break
    best = best or level
    if best is None:
        return False
    best = _with_larger_tiles(found, budget, attempts, *best)
    found.size, found.module = best[0], best[1].module
    found.loops += best[1].loops
    return True


def _with_larger_tiles(
    found: Search, budget: int, attempts: "_Attempts", size: int, attempt: Attempt
) -> tuple[int, Attempt]:
    """A plan, or the same with larger tiles, which are faster, where XLA needs half of the budget at most for it and no
    more than the budget for these: the estimate says less than XLA's figure of how large tiles may be."""
    larger = None if 2 * size > budget or found.is_over() else attempts.larger(attempt)
    if larger is None:
        return size, attempt
    [(_, its)] = measure_temporaries([larger.text], max(1.0, found.seconds_left))
    found.tried("; ".join(f"loop {loop}" for loop in larger.loops), its, budget)
    return (its, larger) if isinstance(its, int) and its <= budget else (size, attempt)


@dataclass(frozen=True)
class Beyond:
    """What is live by the estimate: the most, and what is beyond a budget at all places of the program order together.

    Layers that are alike need as much each, so that a loop in one of them leaves the most where it is, and has less
    beyond.
    """

    most: int
    total: int

    @staticmethod
    def of(graph: Graph, budget: int, rules: SubsetRules) -> "Beyond":
        """That of a module's entry point."""
        live = liveness(Dataflow(graph, rules)).live
        return Beyond(max(live, default=0), sum(max(0, one - budget) for one in live))

    def is_level(self, other: "Beyond") -> bool:
        """Whether as much is live at most as there, and less beyond the budget elsewhere."""
        return self.most >= GAIN * other.most and self.total <= GAIN * other.total


class _Attempts(Sequence[str]):
    """The texts of the most promising plans, each built in a copy of the module when it is asked for.

    A plan that by the estimate stays far beyond the budget stands behind those that do not, and behind such ones that
    leave less: to build it takes a part of the time in which XLA compiles it.
    """

    def __init__(self, found: Search, budget: int, rules: SubsetRules, large: int) -> None:
        self._module, self._name, self._budget, self._rules = found.module, found.name, budget, rules
        self._large = large
        self._choices = self._list_choices()
        self.before = Beyond.of(self._graph, budget, rules)
        self._count = min(TRIED, found.effort.plans - found.plans, len(self._choices))
        self._built = 0
        self._postponed: list[Attempt] = []
        self.made: list[Attempt] = []

    def _list_choices(self) -> list[CostedPlan]:
        self._graph = read(self._module, self._name)
        return choices(Dataflow(self._graph, self._rules), self._budget, self._large)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[str]: ...
    def __getitem__(self, number: int | slice) -> str | Sequence[str]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(self._count))]
        if not 0 <= number < self._count:
            raise IndexError(number)
        while len(self.made) <= number:
            self.made.append(self._next())
        return self.made[number].text

    @property
    def least(self) -> int:
        """What the best of the plans leaves, by the estimate: of the first near the budget, else of all."""
        if self._count and not self.made:
            self.made.append(self._next())
        return self.made[0].beyond.most if self.made else self.before.most

    def _next(self) -> Attempt:
        """The next plan to measure."""
        while self._built < self._count:
            attempt = self._build(self._built)
            self._built += 1
            if attempt.beyond.most <= OVERESTIMATED * self._budget:
                return attempt
            self._postponed.append(attempt)
        self._postponed.sort(key=lambda attempt: attempt.beyond.most)
        return self._postponed.pop(0)

    def larger(self, attempt: Attempt) -> Attempt | None:
        """A plan with tiles as large as the budget, by the estimate; None where these are no larger, or not faster."""
        choice = self._list_choices()[attempt.number]
        sizes = sizes_for(choice.program, choice.plan, self._budget)
        is_larger = sizes.steps > choice.sizes.steps > 1 and not choice.rank
        return self._built_of(replace(choice, sizes=sizes), attempt.number) if is_larger else None

    def _build(self, number: int) -> Attempt:
        choice = (self._choices or self._list_choices())[number]
        self._choices = []  # it belongs to a graph that is changed now
        return self._built_of(choice, number)

    def _built_of(self, choice: CostedPlan, number: int) -> Attempt:
        told = self._emit(choice)
        beyond = Beyond.of(self._graph, self._budget, self._rules)
        return Attempt(to_bytecode(self._graph), to_text(self._graph), told, beyond, number)

    def _emit(self, choice: CostedPlan) -> tuple[TiledLoopRecord, ...]:
        """Emit a plan; if one step is too large for a tile, emit loops within its loops, too. Return the records of all
        of them."""
        told = records(choice.program, choice.plan, choice.sizes)
        block = choice.program.block
        for loop in emit(choice.program, choice.plan, choice.sizes):
            program = Dataflow(self._graph, self._rules, block)
            is_one = choice.sizes.steps == 1
            inner = within(loop, program, self._budget, self._large, choice.rank) if is_one else None
            inner_told = () if inner is None else self._emit(inner)
            told += tuple(replace(record, depth=record.depth + 1) for record in inner_told)
        return told


def describe_peak(graph: Graph, rules: SubsetRules) -> tuple[str, ...]:
    """The largest values that are live at the peak, and why no loop cuts each of them."""
    program = programs_at_peak(Dataflow(graph, rules))[-1]
    found: list[str] = []
    for value in liveness(program).at_peak[:SHOWN]:
        node = program.maker[value]
        axes = program.axes(node)
        why = axes.reason if isinstance(axes, Boundary) else "no loop along its axes was found to need less"
        where = graph.location(node)
        found.append(f"{shown_bytes(program.size[value])} {type_of(value)} of {node.name} at {where}: {why}")
    return tuple(found)
