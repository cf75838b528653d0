"""What was measured of one version of a class on one consumer, and whether its results are right."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.classes import Case
from benchmark.timing import Timing, figures_of, ratio
from benchmark.versions import DEFAULT, LOOP, LOWERED, NATIVE, REASSOCIATE, Version

IN_ORDER = (NATIVE, LOWERED, LOOP)
"""Candidates that add floats in the order of the updates."""


@dataclass(frozen=True)
class Entry:
    """One version on one consumer.

    Attributes:
      candidate, rules: of the `Version`.
      timing: None where it was not measured.
      compile_seconds: how long the consumer took to compile it.
      memory: bytes at the peak of a call, beyond the arguments.
      note: why it was not measured, or what is to be known.
      wrong: whether its results are not those of native scatter under XLA on the CPU.
    """

    candidate: str
    rules: tuple[str, ...] = ()
    timing: Timing | None = None
    compile_seconds: float | None = None
    memory: int | None = None
    note: str = ""
    wrong: bool = False


@dataclass(frozen=True)
class Outcome:
    """All versions of one class on one consumer."""

    case: Case
    consumer: str
    entries: tuple[Entry, ...] = field(default_factory=tuple)

    def entry(self, candidate: str) -> Entry | None:
        """The entry of a candidate, None where the class has none."""
        return next((e for e in self.entries if e.candidate == candidate), None)

    def ratio(self, candidate: str, baseline: str = NATIVE) -> float | None:
        """Median of a candidate over that of another one, None where one was not measured."""
        above, below = self.entry(candidate), self.entry(baseline)
        return None if above is None or below is None else ratio(above.timing, below.timing)

    @property
    def chosen(self) -> str:
        """What the target's table chose; where floats are summed, for sums in any order, as some versions sum so."""
        return REASSOCIATE if self.case.float_sum else LOWERED

    def regret(self, candidate: str = "") -> tuple[float, str] | None:
        """Median of what was chosen over that of the fastest right version that is lowered, and which that is.

        None where one was not measured.

        Args:
          candidate: another candidate in the place of what was chosen, such as `default`.
        """
        chosen = self.entry(candidate or self.chosen)
        timed = [
            (e.timing.median, e) for e in self.entries if e.timing is not None and not e.wrong and e.candidate != NATIVE
        ]
        if chosen is None or chosen.timing is None or not timed:
            return None
        median, best = min(timed, key=lambda pair: pair[0])
        return chosen.timing.median / median, best.candidate

    def figures(self) -> dict[str, Any]:
        """Everything, for a JSON file."""
        return {
            "class": self.case.name,
            "size": self.case.size,
            "kind": self.case.kind,
            "donated": self.case.donated,
            "tolerance_of_sums_in_any_order": self.case.tolerance if self.case.float_sum else None,
            "consumer": self.consumer,
            "chosen_to_best": self.regret(),
            "default_to_best": self.regret(DEFAULT),
            "chosen_to_native": self.ratio(self.chosen),
            "candidates": [
                {
                    "candidate": e.candidate,
                    "rules": list(e.rules),
                    "seconds_per_call": figures_of(e.timing),
                    "ratio_to_native": self.ratio(e.candidate),
                    "ratio_to_loop": self.ratio(e.candidate, LOOP),
                    "compile_seconds": e.compile_seconds,
                    "peak_bytes_beyond_arguments": e.memory,
                    "note": e.note,
                    "wrong": e.wrong,
                }
                for e in self.entries
            ],
        }


def repeated(version: Version, entries: Sequence[Entry]) -> Entry:
    """The entry of a version whose module is that of an earlier one."""
    first = next(e for e in entries if e.candidate == version.same_as)
    note = f"same module as {version.same_as}" + (f"; {first.note}" if first.note else "")
    return Entry(version.candidate, version.rules, first.timing, first.compile_seconds, first.memory, note, first.wrong)


def difference(case: Case, candidate: str, result: NDArray[Any], expected: NDArray[Any], *, ordered: bool) -> str:
    """How a result differs from what is expected, "" where it does not.

    Args:
      ordered: whether the consumer adds floats in order, so that native, lowered and the loop agree bit for bit.
    """
    if result.shape != expected.shape:
        return f"shape {result.shape} instead of {expected.shape}"
    if expected.dtype == bool:  # an i1 comes back as a byte from some runtimes
        result = result.astype(bool)
    if result.dtype != expected.dtype:
        return f"{result.dtype} instead of {expected.dtype}"
    if case.float_sum and (candidate not in IN_ORDER or not ordered):
        off = float(np.max(np.abs(result.astype(np.float64) - expected)))
        limit = case.tolerance * float(np.max(np.abs(expected)))
        return "" if off <= limit else f"off by {off:.3g}, more than {limit:.3g}"
    bits = np.dtype(f"u{expected.dtype.itemsize}")
    count = int(np.sum(np.ascontiguousarray(result).view(bits) != np.ascontiguousarray(expected).view(bits)))
    return f"{count:,} of {expected.size:,} elements differ" if count else ""
