"""Judge batches in processes of their own: XLA and the bindings can take a process down, and that is a finding.

A batch whose process dies, or takes too long, is halved until one case stands alone.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from hlo_lower.base.processes import Lost, in_processes
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.case_outcome import CaseOutcome
from hlo_lower.testing.fuzz.judging import Judged, judge
from hlo_lower.testing.fuzz.sensitivity import FloatMode, Policy


def built_in(oob: Policy, prefer: Sequence[str] = (), float_mode: FloatMode = "exact") -> Callable[[str], Lowered]:
    """Lower to plain StableHLO under a policy."""
    options = Options(oob=oob, float_mode=float_mode, prefer=tuple(prefer))
    return lambda text: lower(text, options=options, name="fuzzed")


TIME_LIMIT = 600.0
"""Seconds for one batch."""

BATCHES_PER_PROCESS = 60
"""After about so many processes are replaced: XLA keeps memory of what it compiled (20 MB and more a batch)."""


@dataclass(frozen=True)
class BatchJudge:
    """Judges a batch, in a process."""

    oob: Policy  # the policy
    prefer: tuple[str, ...] = ()  # rules that are taken wherever they are right
    float_mode: FloatMode = "exact"  # whether sums and products of floats keep their order

    def __call__(self, batch: Sequence[Case]) -> Judged:
        return judge(batch, built_in(self.oob, self.prefer, self.float_mode), self.oob)


def judged_in_processes(
    call: Callable[[Sequence[Case]], Judged],
    batches: Iterable[Sequence[Case]],
    *,
    jobs: int,
    time_limit: float = TIME_LIMIT,
) -> Generator[tuple[Sequence[Case], Judged]]:
    """Each batch, or each of its parts, with what became of it, as they are done; `call` is pickled."""
    fresh, halves = iter(batches), list[Sequence[Case]]()
    while works := [*halves, *islice(fresh, jobs * BATCHES_PER_PROCESS)]:
        halves = list[Sequence[Case]]()
        for number, judged in in_processes(call, works, jobs=jobs, timeout=time_limit):
            batch = works[number]
            if not isinstance(judged, Lost):
                yield batch, judged
            elif len(batch) > 1:
                halves += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
            else:
                yield batch, Judged([CaseOutcome(batch[0].name, failure=judged.reason)])
