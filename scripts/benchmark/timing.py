"""Time candidates interleaved in one process."""

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

SAMPLE_SECONDS = 0.1
"""Least duration of a sample: a call of tens of microseconds is repeated until it takes this long."""

CLOCK = "BENCH_CLOCK"
"""The variable, which children inherit, that says what a second is: of `CLOCKS`."""

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
"""Processor time is that of all threads of the process: what is left to measure where others keep the machine busy."""


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one figure per round, and how many calls a round is the mean of."""

    seconds: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        """The fastest round."""
        return min(self.seconds)

    @property
    def high(self) -> float:
        """The slowest round."""
        return max(self.seconds)

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.seconds)


@dataclass(frozen=True)
class _Plan:
    rounds: int
    calls: int


def interleave(
    candidates: Mapping[str, Callable[[], None]],
    rounds: int,
    *,
    calls: int = 1,
    budget: float | None = None,
    sample: float = SAMPLE_SECONDS,
) -> dict[str, Timing]:
    """Time candidates in turn, the order turning from round to round.

    Each candidate is called once or twice untimed first; that sets how many calls make a sample and, under a budget,
    how many rounds it takes part in. One call that is over the budget by itself is the only round.

    Args:
      candidates: what is called, by name; a call ends when its work is done.
      rounds: the most rounds.
      calls: the fewest calls in a round.
      budget: seconds that all rounds of one candidate may take together.
      sample: seconds that a round lasts at least.
    """
    gc.collect()
    gc.freeze()  # what is there already is not walked again before each sample, which would take longer than the sample
    try:
        return _interleave(candidates, rounds, calls, budget, sample)
    finally:
        gc.unfreeze()


def _interleave(
    candidates: Mapping[str, Callable[[], None]], rounds: int, calls: int, budget: float | None, sample: float
) -> dict[str, Timing]:
    once = {name: _first_calls(call, budget) for name, call in candidates.items()}
    plans = {name: _plan(seconds, rounds, calls, budget, sample) for name, seconds in once.items()}
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            if turn < plans[name].rounds:
                seconds[name].append(_sample(candidates[name], plans[name].calls))
    return {name: Timing(tuple(seconds[name]) or (once[name],), max(1, plans[name].calls)) for name in names}


def _first_calls(call: Callable[[], None], budget: float | None) -> float:
    """Seconds of a call that is not the first, unless the first one was over the budget."""
    cold = _sample(call, 1)
    return cold if budget is not None and cold > budget else _sample(call, 1)


def _plan(once: float, rounds: int, calls: int, budget: float | None, sample: float) -> _Plan:
    calls = max(calls, min(5000, int(sample / once)))
    if budget is None:
        return _Plan(rounds, calls)
    if once > budget:
        return _Plan(0, 1)
    calls = max(1, min(calls, int(budget / once)))
    return _Plan(max(1, min(rounds, int(budget / (once * calls)))), calls)


def _sample(call: Callable[[], None], calls: int) -> float:
    gc.collect()
    now = CLOCKS[os.environ.get(CLOCK, "wall")]
    start = now()
    for _ in range(calls):
        call()
    return (now() - start) / calls


def shown(timing: Timing | None) -> str:
    """A timing in milliseconds: the median, the lowest and the highest round."""
    if timing is None:
        return "not measured"
    if timing.rounds == 1:
        return f"{timing.median * 1e3:9.3f} (1 round)"
    return f"{timing.median * 1e3:9.3f} ({timing.low * 1e3:.3f} to {timing.high * 1e3:.3f})"


def ratio(candidate: Timing | None, baseline: Timing | None) -> float | None:
    """Median of the candidate over median of the baseline, None where one was not measured."""
    if candidate is None or baseline is None:
        return None
    return candidate.median / baseline.median


def figures_of(timing: Timing | None) -> dict[str, float | int | Sequence[float]] | None:
    """A timing for a JSON file."""
    if timing is None:
        return None
    return {
        "median": timing.median,
        "low": timing.low,
        "high": timing.high,
        "rounds": timing.rounds,
        "calls": timing.calls,
        "seconds": list(timing.seconds),
    }
