"""Many modules classified: here, in processes, or through an executor; the same reports each time."""

import math
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from contextlib import closing
from functools import partial
from os import PathLike
from typing import TypeAlias, Unpack

from hlo_lower.api.many.files import Selected, select
from hlo_lower.api.many.module_classification import classify_one, failure_report, internal, warm_up
from hlo_lower.api.many.work_spread import SPREAD, Spread, SpreadKeywords
from hlo_lower.base.arguments import known_names, one_of, split_keywords
from hlo_lower.base.errors import InputError
from hlo_lower.base.processes import Lost, in_processes, in_turn
from hlo_lower.lowering.options import NAMES, Options, options_of
from hlo_lower.report.module import ModuleReport

MODULES_PER_JOB = 8  # fewer are not worth the start of another process, about a second
STAGE = "modules"

Answers = Generator[tuple[int, ModuleReport | Lost]]
Call: TypeAlias = Callable[[Selected], ModuleReport]


def classify_modules(
    paths: str | PathLike[str] | Sequence[str | PathLike[str] | Selected],
    *,
    options: Options | None = None,
    with_texts: bool = False,
    **keywords: Unpack[SpreadKeywords],
) -> tuple[ModuleReport, ...]:
    """Classify every scatter of many modules; one that cannot be read becomes a report with its reason.

    The reports are the same, in the same order, however the work is spread.

    Args:
      paths: a file, a folder, or several of them (see `hlo_lower.api.many.select`).
      options, or target, oob, float_mode, trust_flags, prefer and others: as in `classify`.
      with_texts: whether the reports have the text of what would be built for each scatter, which the HTML report
        shows.
      jobs: 1, the default, works in this process; more work in that many processes of their own. One that dies (a
        parser that crashes) costs the module that it was reading, and is replaced. They are spawned: a script calls
        this below `if __name__ == "__main__":`.
      executor: does the work instead, whatever it is made of (threads, processes, a cluster): one `submit` per module.
        The caller shuts it down. If it breaks, what it left is done in processes of their own. One of processes on this
        machine should use the "spawn" context, because JAX has threads.
      timeout: seconds for a module, the start of a process not counted; a process that takes longer is killed. One job
        is a process of its own then. An executor cannot be held to it.
      progress: called with a stage, how many modules are done and how many there are.

    Returns:
      One report per module, in the order of `select`.

    Raises:
      InputError: the only path is a folder without modules; there is no such target; a process cannot start; or a time
        limit is given with an executor; or an argument is of a wrong type or none of its choices.

    Example:
      >>> [report] = hl.classify_modules("decode.mlir", oob="spec")
      >>> report.file, len(report.records), report.error
      ('decode.mlir', 1, None)
    """
    known_names("classify_modules", keywords, (*SPREAD, *NAMES))
    how, meaning = split_keywords(keywords, SPREAD)
    chosen = options_of(options, meaning)
    modules = select([paths] if isinstance(paths, (str, PathLike)) else paths)
    one_of("with_texts", with_texts, (False, True))
    return reports_of(partial(classify_one, chosen, with_texts), modules, chosen, Spread(**how))


def reports_of(call: Call, modules: Sequence[Selected], options: Options, spread: Spread) -> tuple[ModuleReport, ...]:
    """Call a function on each module, spread as is asked for, and give the reports in the order of the modules.

    The function can be pickled, and gives a report whatever is wrong with a module; the options are for those that are
    lost.
    """
    prepare = partial(warm_up, options)
    if spread.executor is not None:
        answers = _through(spread.executor, call, modules, options)
    elif spread.jobs > 1 or spread.timeout is not None:
        answers = in_processes(call, modules, jobs=spread.jobs, timeout=spread.timeout, prepare=prepare)
    else:
        answers = in_turn(call, modules)
    reports: dict[int, ModuleReport] = {}
    with closing(answers):  # also when interrupted: no process goes on
        for number, answer in answers:
            reports[number] = _lost_report(options, modules[number], answer) if isinstance(answer, Lost) else answer
            if spread.progress is not None:
                spread.progress(STAGE, len(reports), len(modules))
    return tuple(reports[number] for number in range(len(modules)))


def default_jobs(modules: int) -> int:
    """How many processes suit this many modules: one for each CPU that this process may use, but no idle ones.

    A single module needs none. Several get two at least, where there are two CPUs: then a crash costs one module.
    """
    return min(_cpus(), max(2, math.ceil(modules / MODULES_PER_JOB))) if modules > 1 else 1


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lost_report(options: Options, module: Selected, lost: Lost) -> ModuleReport:
    error = InputError(module.file, lost.reason, next_step="by itself it may say more; or leave it out")
    return failure_report(options, module, str(error))


def _through(executor: Executor, call: Call, modules: Sequence[Selected], options: Options) -> Answers:
    """Submit each module; what an executor that breaks has left undone is done in processes of their own."""
    numbers: dict[Future[ModuleReport], int] = {}
    left: list[int] = []
    for number, module in enumerate(modules):
        try:
            numbers[executor.submit(call, module)] = number
        except BrokenExecutor:
            left.append(number)
    try:
        for future in as_completed(numbers):
            number = numbers[future]
            try:
                yield number, future.result()
            except (BrokenExecutor, CancelledError):
                left.append(number)
            except Exception as error:  # the answer did not come through (it cannot be pickled, a connection failed)
                yield number, failure_report(options, modules[number], internal(modules[number].file, error))
    finally:
        for future in numbers:
            future.cancel()
    left.sort()
    works = [modules[number] for number in left]
    for place, answer in in_processes(call, works, jobs=default_jobs(len(works)), prepare=partial(warm_up, options)):
        yield left[place], answer
