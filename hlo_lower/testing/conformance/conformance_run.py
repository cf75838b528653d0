"""Judge the suite's modules at a consumer, as they are and converted, each set of arguments by itself."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from hlo_lower.api.functions import lower
from hlo_lower.base.errors import HloLowerError
from hlo_lower.base.processes import Lost, in_processes
from hlo_lower.consumers import ConsumerOutcome, ConsumerRun, consumer_named
from hlo_lower.consumers.consumer_judge import LIMIT, MEMORY, Judge
from hlo_lower.consumers.reference import Reference
from hlo_lower.consumers.rounding import Rounding
from hlo_lower.lowering.options import Options
from hlo_lower.ops.names import SCATTER
from hlo_lower.testing.conformance.suite import SuiteModule
from hlo_lower.testing.conformance.suite_arguments import INDICES, runs_of
from hlo_lower.verify.run import CannotRunError

EXACT = Rounding((True,))
ALONE = ("crashed", "timed out")
"""After these no other run of the same process is to be believed."""


@dataclass(frozen=True)
class Settings:
    """How the suite is judged."""

    consumer: str  # its name
    options: Options  # of the conversion, target and policy included
    limit: float = LIMIT  # seconds for a version of a module
    memory: int = MEMORY  # bytes for the consumer's process


@dataclass(frozen=True)
class Check:
    """A module on one set of arguments."""

    module: str  # its name
    indices: str  # which of `INDICES`
    # native, converted: what became of the two versions
    native: ConsumerOutcome
    converted: ConsumerOutcome
    rules: str = ""  # what lowered it; "" where nothing did


def check_conformance(
    modules: Sequence[SuiteModule],
    settings: Settings,
    *,
    jobs: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Check]:
    """Judge modules; the checks of each stand together, in the order of `INDICES`. HloLowerError if the consumer is
    not installed, or the target or an option cannot be used."""
    consumer_named(settings.consumer).require()
    found: dict[int, list[Check]] = {}
    for number, checks in _judge_modules(modules, settings, jobs):
        found[number] = checks
        if progress is not None:
            progress(settings.consumer, len(found), len(modules))
    return [check for number in sorted(found) for check in found[number]]


def _judge_modules(modules: Sequence[SuiteModule], settings: Settings, jobs: int) -> Generator[tuple[int, list[Check]]]:
    if jobs == 1:
        with _judge_of(settings) as judge:
            for number, module in enumerate(modules):
                yield number, _checks(module, settings, judge)
        return
    works = [(module, settings) for module in modules]
    for number, answer in in_processes(_checks_alone, works, jobs=jobs):
        if isinstance(answer, Lost):  # the converter's own process died
            lost = ConsumerOutcome(settings.consumer, "crashed", f"the conversion: {answer.reason}")
            answer = [Check(modules[number].name, indices, lost, lost) for indices in INDICES]
        yield number, answer


_judges: dict[str, Judge] = {}
"""Of a process that judges several modules: a consumer's child may take several."""


def _checks_alone(work: tuple[SuiteModule, Settings]) -> list[Check]:
    module, settings = work
    if settings.consumer not in _judges:
        _judges[settings.consumer] = _judge_of(settings)
    return _checks(module, settings, _judges[settings.consumer])


def _judge_of(settings: Settings) -> Judge:
    return Judge(consumer_named(settings.consumer), limit=settings.limit, memory=settings.memory)


def _checks(module: SuiteModule, settings: Settings, judge: Judge) -> list[Check]:
    text, runs = module.text, runs_of(module, settings.options.oob)
    native = _each(judge, text, runs)
    converted, why_not, rules = _convert(text, module.name, settings.options)
    if why_not:
        refused = ConsumerOutcome(settings.consumer, "refused", f"not lowered: {why_not}", SCATTER)
        outcomes = [refused] * len(runs)
    elif not rules:
        outcomes = native
    else:
        outcomes = _each_in_its_types(judge, converted, runs)
    return [Check(module.name, run.what, a, b, rules) for run, a, b in zip(runs, native, outcomes, strict=True)]


def _each(judge: Judge, text: str, runs: Sequence[ConsumerRun]) -> list[ConsumerOutcome]:
    """The outcome of each run: compiled once if all are right, else what comes after a failure is judged anew."""
    outcome = judge.judge(text, runs, EXACT)
    if outcome.ok or outcome.stage == "compile" or len(runs) == 1:
        return [replace(outcome, runs=min(outcome.runs, 1))] * len(runs)
    if outcome.result in ALONE:
        return [_each(judge, text, [run])[0] for run in runs]
    right = ConsumerOutcome(outcome.consumer, "right", stage="run", runs=1)
    rest = runs[outcome.runs + 1 :]
    told = replace(outcome, runs=0, message=outcome.message.replace(f"run {outcome.runs + 1} ", "", 1))
    return [*[right] * outcome.runs, told, *(_each(judge, text, rest) if rest else ())]


def _each_in_its_types(judge: Judge, text: str, runs: Sequence[ConsumerRun]) -> list[ConsumerOutcome]:
    """The same for a version whose integers are narrower: a run whose values do not fit them is refused."""
    fitted: list[ConsumerRun | ConsumerOutcome] = []
    for run in runs:
        try:
            fitted += Reference((run,), EXACT).for_signature_of(text).runs
        except CannotRunError as error:
            fitted.append(ConsumerOutcome(judge.consumer.name, "refused", str(error)))
    kept = [run for run in fitted if isinstance(run, ConsumerRun)]
    outcomes = iter(_each(judge, text, kept) if kept else ())
    return [next(outcomes) if isinstance(one, ConsumerRun) else one for one in fitted]


def _convert(text: str, name: str, options: Options) -> tuple[str, str, str]:
    """The converted text, the error if there is none, and the rules used."""
    try:
        lowered = lower(text, options=options, name=name)
        return lowered.text, "", ", ".join(dict.fromkeys(r.rule for r in lowered.records if r.rule))
    except HloLowerError as error:
        return text, error.what + (f" ({error.nearest[0]})" if error.nearest else ""), ""
    except Exception as error:  # a mistake of ours is an entry of the table, too, not the end of the run
        return text, f"{type(error).__name__}: {error}", ""
