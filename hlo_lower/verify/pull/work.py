"""What a derivation has done, counted: limits are reached at the same point whatever else a machine does.

z3 counts its own steps, in simplifications and in questions. What is done around it is counted in the same unit.
"""

from hlo_lower.verify.pull.solver import z3

STEPS_A_SECOND = 4_000_000
"""What z3 counts in a second of one processor, mostly."""

LETTER, PULL, OCCURRENCE, QUESTION, FACT = 2, 400, 5_000, 16_000, 200
"""Steps for a letter of the texts, for an element that is asked for, for an occurrence, for a question and for a fact
that is written for it: a fit over the derivations of 60 modules, those that take long within a factor of 2."""

READ_EVERY = 16
"""Steps of z3 are read once for so many elements."""


class Work:
    """What has been done since this was made, in seconds of a processor that mostly go by meanwhile.

    Only one at a time can be in use, as z3 counts for all.
    """

    def __init__(self) -> None:
        self._counter = z3.Solver()
        self._counter.check()
        self._began = self._read()
        self._around = self._seen = self._pulled = 0

    def add(self, steps: int) -> None:
        """Count what is done around z3."""
        self._around += steps

    def _read(self) -> int:
        return int(self._counter.statistics().get_key_value("rlimit count"))

    @property
    def seconds(self) -> float:
        """What has been done."""
        self._seen = self._read() - self._began
        return self.seconds_about

    @property
    def seconds_about(self) -> float:
        """The same, where steps of z3 that were just made may be missing: it is known at once."""
        return (self._seen + self._around) / STEPS_A_SECOND

    def pull(self) -> float:
        """Count an element that is asked for; what has been done, about."""
        self._around += PULL
        self._pulled += 1
        return self.seconds if self._pulled % READ_EVERY == 0 else self.seconds_about
