"""Verify a converted module where it is to run: the consumer's results against XLA's of the original."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

from hlo_lower.base.arguments import silent
from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.consumers.consumer import Consumer
from hlo_lower.consumers.consumer_judge import LIMIT, MEMORY, Judge
from hlo_lower.consumers.consumer_outcome import Build, ConsumerOutcome
from hlo_lower.consumers.reference import Reference, reference_of
from hlo_lower.consumers.rounding import Rounding
from hlo_lower.ops.names import SCATTER
from hlo_lower.verify.module_runs import blind
from hlo_lower.verify.run import CannotRunError, Executable

SILENT = "no scatter: the results are the same when all updates are dropped"


@dataclass(frozen=True)
class ConsumerVerdict:
    """What verification on a consumer found."""

    title: str  # of the consumer, with its version
    outcome: ConsumerOutcome | None  # what became of the converted module; None where it was not judged
    how: str = ""  # how results were compared
    not_judged: str = ""  # why it was not run, or there was nothing to compare with; or ""
    not_exercised: tuple[str, ...] = ()  # what the runs say nothing about
    seconds: float = field(compare=False, default=0.0)  # wall time

    @property
    def ok(self) -> bool:
        """Whether the consumer takes the module and, where it runs here, computes what XLA makes of the original."""
        return self.outcome is not None and self.outcome.ok

    @property
    def exit_code(self) -> int:
        """0 fine; 1 the results differ; 3 it was not judged, or the consumer refused it or died."""
        if self.ok:
            return EXIT_OK
        return EXIT_DIFFERS if self.outcome is not None and self.outcome.result == "wrong" else EXIT_NOT_LOWERED

    def summary(self) -> str:
        """One line: "IREE (llvm-cpu, local-task) 3.13.0: right in 3 runs"."""
        if self.outcome is None:
            return f"{self.title}: not judged: {self.not_judged}"
        if self.outcome.result == "right":
            return f"{self.title}: right in {self.outcome.runs} {'run' if self.outcome.runs == 1 else 'runs'}"
        return f"{self.title}: {self.outcome.result}{f': {self.outcome.message}' if self.outcome.message else ''}"

    def lines(self) -> list[str]:
        """The whole verdict, readable."""
        lines = [self.summary()]
        if self.outcome is not None:
            if self.outcome.cause:
                lines.append(f"  names: {self.outcome.cause}")
            if self.outcome.result in ("right", "wrong"):
                lines.append(f"  compared with XLA's results of the original: {self.how}")
            if self.outcome.result == "converted":
                told = (
                    f"not run: {self.not_judged}" if self.not_judged else "it does not run here: nothing was compared"
                )
                lines.append(f"  {told}{f' ({self.outcome.note})' if self.outcome.note else ''}")
        lines += [f"  not exercised: {what}" for what in self.not_exercised]
        return lines

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {"ok": self.ok, "summary": self.summary(), **asdict(self)}


def verify_on(
    consumer: Consumer,
    before: str,
    after: str,
    *,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    seed: int = 0,
    runs: int = 3,
    limit: float = LIMIT,
    memory: int = MEMORY,
    progress: Callable[[str, int, int], None] | None = None,
    build: Build | None = None,
    not_run: str = "",
) -> ConsumerVerdict:
    """Compile a converted module with a consumer, run it, and compare with XLA's results of the original.

    The limit is in seconds, the memory in bytes, 0 for no limit. With `build` the compiler makes that file, which is
    run. What is not to be run (`not_run` says why), does not run here, or has no results under XLA, is built all the
    same, and the verdict tells. InputError if the consumer is not installed, a version does not parse, or the inputs do
    not fit.
    """
    consumer.require()
    start = perf_counter()
    title = f"{consumer.title} {consumer.version()}"
    tell = progress or silent
    tell("XLA", 0, 2)
    reference: Reference | None = None
    adapted: Reference | None = None
    if not not_run and (consumer.runs or build is None):
        try:
            reference = reference_of(before, inputs=inputs, seed=seed, runs=runs)
            adapted = reference.for_signature_of(after)
        except CannotRunError as error:
            if consumer.runs and build is None:
                return ConsumerVerdict(title, None, not_judged=str(error), seconds=perf_counter() - start)
            not_run = str(error) if consumer.runs else ""  # a converter needs no numbers
    not_exercised = _not_exercised(before, reference) if consumer.runs and reference is not None else ()
    tell(consumer.name, 1, 2)
    sets, rounding = (adapted.runs, adapted.rounding) if adapted else ((), Rounding(()))
    with Judge(consumer, limit=limit, memory=memory) as judge:
        outcome = judge.judge(after, sets, rounding, build)
    tell(consumer.name, 2, 2)
    how = reference.rounding.description if reference is not None else ""
    notes = adapted.all_notes() if adapted is not None and consumer.runs else ()
    return ConsumerVerdict(title, outcome, how, not_run, (*not_exercised, *notes), perf_counter() - start)


def _not_exercised(before: str, reference: Reference) -> tuple[str, ...]:
    """Whether the comparison would notice if every scatter were dropped."""
    text = blind(before)
    if text is None or text == before or SCATTER not in before:
        return ()
    try:
        blinded = Executable(text, "exact")
        for run in reference.runs:
            results = blinded.run(run.arguments)
            if run.expected is None or reference.rounding.difference(run.expected, results, run.limits) is not None:
                return ()
    except CannotRunError:
        return ()
    return (SILENT,)
