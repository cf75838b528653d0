"""How many of the named ops that are there are found, and what is found that is not there."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from recall.case import Case, Finding
from recall.finder import fits

Finder = Callable[[str], list[Finding]]


@dataclass
class Score:
    """Of one op or one source.

    Attributes:
      expected: how many are there.
      found: how many of these are found by name.
      exact: how many with all attributes that are asked of them.
    """

    expected: int = 0
    found: int = 0
    exact: int = 0

    def __iadd__(self, other: "Score") -> "Score":
        self.expected += other.expected
        self.found += other.found
        self.exact += other.exact
        return self

    @property
    def recall(self) -> float:
        """Share that is found by name."""
        return self.found / self.expected if self.expected else 1.0


@dataclass
class Recall:
    """What came of all programs.

    Attributes:
      by_op, by_source: scores.
      missed: what was not found, or with other attributes: name of the case, and what is told of it.
      near_misses: how many there were.
      false_positives: name of the near miss, and what was found in it.
      surplus: in counted modules, what is found more often than it was counted.
    """

    by_op: defaultdict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    by_source: defaultdict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    missed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    near_misses: int = 0
    false_positives: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    surplus: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def total(self) -> Score:
        """Over all sources."""
        total = Score()
        for score in self.by_source.values():
            total += score
        return total

    def add_hit(self, case: Case, find: Finder) -> None:
        """Look at a program for what it holds."""
        self.add_found(case.name, case.source, case.expected, find(case.text()))

    def add_found(self, name: str, source: str, expected: Sequence[Finding], found: Sequence[Finding]) -> None:
        """What was found of what there is."""
        for wanted in expected:
            score = _score(wanted, found)
            self.by_op[wanted.op] += score
            self.by_source[source] += score
            if score.exact < wanted.times:
                self.missed.append((name, _told(wanted, score, found)))

    def add_near_miss(self, case: Case, find: Finder) -> None:
        """Look at a near miss for what it does not hold."""
        self.near_misses += 1
        for found in find(case.text()):
            if any(fits(found, refused) for refused in case.refused):
                self.false_positives.append((case.name, _shown(found)))

    def add_counted(self, name: str, source: str, expected: Sequence[Finding], found: Sequence[Finding]) -> None:
        """A module with counts: what is missing, and what is too many of the ops that were counted."""
        self.add_found(name, source, expected, found)
        times = Counter(op.op for op in found)
        for wanted in expected:
            if times[wanted.op] > wanted.times:
                self.surplus.append((name, f"{wanted.op}: {times[wanted.op]} found, {wanted.times} counted"))


def recall_of(hits: Iterable[Case], near_misses: Iterable[Case], find: Finder) -> Recall:
    """Look at all programs."""
    recall = Recall()
    for case in hits:
        recall.add_hit(case, find)
    for case in near_misses:
        recall.add_near_miss(case, find)
    return recall


def _score(wanted: Finding, found: Sequence[Finding]) -> Score:
    named = sum(op.op == wanted.op for op in found)
    exact = sum(fits(op, wanted) for op in found)
    return Score(wanted.times, min(named, wanted.times), min(exact, wanted.times))


def _told(wanted: Finding, score: Score, found: Sequence[Finding]) -> str:
    asked = ", ".join(f"{name}={value!r}" for name, value in wanted.attributes.items())
    same = sorted({_shown(op) for op in found if op.op == wanted.op})
    others = sorted({op.op for op in found if op.op != wanted.op})
    given = "; ".join(same) or (f"only {', '.join(others)}" if others else "nothing")
    return f"{wanted.op}({asked}) {score.exact} of {wanted.times}: {given}"


def _shown(op: Finding) -> str:
    return f"{op.op}({', '.join(f'{name}={value!r}' for name, value in sorted(op.attributes.items()))})"
