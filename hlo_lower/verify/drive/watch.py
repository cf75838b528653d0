"""What the runs of a region had of what its two pieces may come out as (`hlo_lower.verify.drive.outcomes`)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.piece import Pieces
from hlo_lower.verify.drive.aims import Aims
from hlo_lower.verify.drive.driven_runs import Run
from hlo_lower.verify.drive.outcomes import Outcomes
from hlo_lower.verify.drive.ranges import Interval, Ranges
from hlo_lower.verify.judges.devices import Runnable
from hlo_lower.verify.read.program import location_of, ops_within
from hlo_lower.verify.run import CannotRunError

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
