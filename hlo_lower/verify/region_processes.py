"""Regions judged in processes of their own, several at a time.

A process reads both texts once, aligns them as it is told to, and judges the regions that it is given by number. That
both sides mean the same region is checked by its pieces: one that does not match is left to whoever asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from time import monotonic

from hlo_lower.base.child import count_wait
from hlo_lower.base.processes import Lost, in_processes
from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Aligner, Plan, Region, regions_of
from hlo_lower.verify.align.loops import written_out
from hlo_lower.verify.align.piece import Pieces
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.judges.judge import Terms
from hlo_lower.verify.module_runs import WholeModules
from hlo_lower.verify.patience import Deadline, at_most
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.region_verdict import RegionVerdict
from hlo_lower.verify.regions import RegionJudge, WrongAssumptionError

Settled = RegionVerdict | WrongAssumptionError


def digest(pieces: Pieces) -> str:
    """What tells a region of one process from that of another."""
    return sha256(f"{pieces.first}\0{pieces.second}".encode()).hexdigest()


@dataclass(frozen=True)
class Wanted:
    """A region that is to be judged.

    Attributes:
      plan: how the modules are aligned.
      number: of the region, in the order of `regions_of`.
      digest: of its pieces.
    """

    plan: Plan
    number: int
    digest: str


@dataclass(frozen=True)
class RegionProcesses:
    """Judges regions in processes.

    Attributes:
      texts: the two modules whose regions are judged.
      whole: the two as they were given, for what a difference means for what is returned.
      terms: how.
      jobs: how many processes.
      time_limit: seconds that each region may spend in vain.
      deadline: behind which none is begun; processes share the clock.
    """

    texts: tuple[str, str]
    whole: tuple[str, str]
    terms: Terms
    jobs: int
    time_limit: float
    deadline: Deadline

    def judge_regions(self, plan: Plan, pieces: Mapping[int, Pieces]) -> Mapping[int, Settled]:
        """Verdicts on regions by number, without those whose process died or found nothing."""
        works = [Wanted(plan, k, digest(own)) for k, own in pieces.items()]
        start = monotonic()
        answers = in_processes(self, works, jobs=self.jobs)
        given = {works[k].number: answer for k, answer in answers if not isinstance(answer, Lost)}
        count_wait(monotonic() - start)
        return {number: answer for number, answer in given.items() if answer is not None}

    def __call__(self, wanted: Wanted) -> Settled | None:
        """Judge one, in a process."""
        judge = _judge(self, wanted.plan.written_out)
        region = _regions(self, wanted.plan)[wanted.number]
        pieces = judge.pieces(region)
        if not isinstance(pieces, Pieces) or digest(pieces) != wanted.digest:
            return None
        try:
            with at_most(self.time_limit, self.deadline):
                return judge.judge_region(wanted.plan.name, region)
        except WrongAssumptionError as wrong:
            return wrong


_Loops = tuple[frozenset[int], frozenset[int]]


@lru_cache(maxsize=1)
def _programs(texts: tuple[str, str], loops: _Loops) -> tuple[Program, Program]:
    context = mlir.make_context()
    first, second = (mlir.parse_module(text, context) for text in texts)
    return Program(first, written_out(loops[0])), Program(second, written_out(loops[1]))


@lru_cache(maxsize=1)
def _judge(processes: RegionProcesses, loops: _Loops) -> RegionJudge:
    differ = WholeModules(*processes.whole).differ
    programs, interpreter = _programs(processes.texts, loops), shared_interpreter()
    return RegionJudge(*programs, processes.terms, interpreter, differ, lambda done, total: None)


@lru_cache(maxsize=2)
def _regions(processes: RegionProcesses, plan: Plan) -> list[Region]:
    programs = _programs(processes.texts, plan.written_out)
    return regions_of(Aligner(*programs, plan.dropped, dict(plan.forced)).align(plan.name))
