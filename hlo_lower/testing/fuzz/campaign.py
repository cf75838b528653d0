"""Run many seeds: in batches, in several processes, resumable, with every failure shrunk and written down."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, cast

import numpy as np

from hlo_lower.base.errors import InputError
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.testing.fuzz.campaign_worker import TIME_LIMIT, BatchJudge, built_in, judged_in_processes
from hlo_lower.testing.fuzz.case import ARGUMENT_SETS, Case, case_of_seed, recorded_case, seed_of
from hlo_lower.testing.fuzz.case_arguments import arguments_of
from hlo_lower.testing.fuzz.case_outcome import CaseOutcome, Tally, from_json, impossible_lines, to_json
from hlo_lower.testing.fuzz.families import FAMILIES
from hlo_lower.testing.fuzz.judging import Judged
from hlo_lower.testing.fuzz.layouts import LAYOUTS
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.sensitivity import FloatMode, Policy, reference
from hlo_lower.testing.fuzz.shrink import shrink

LOST = ("the process that worked on it died", "was not done")
"""How failures begin that ended a process (`hlo_lower.base.processes.Lost`)."""


def kind_of(failure: str) -> str:
    """What sort of failure it is, for shrinking: one sort does not become another."""
    return next((kind for kind in ("not lowered", *LOST) if failure.startswith(kind)), "differs")


def write_finding(
    folder: Path, name: str, case: Case, oob: Policy, failure: str, command: str, lower: Callable[[str], Lowered] | None
) -> None:
    """Write NAME.mlir, NAME.lowered.mlir, NAME.npz and NAME.txt into a folder; `lower` is None where that takes the
    process down."""
    folder.mkdir(parents=True, exist_ok=True)
    text = module_text([case])
    (folder / f"{name}.mlir").write_text(f"// oob={oob}: {failure.splitlines()[0]}\n{text}")
    lowered = ""
    if lower is not None:
        try:
            lowered = lower(text).text
        except Exception as error:  # it may be what failed
            lowered = f"// not lowered: {type(error).__name__}: {error}".replace("\n", "\n// ") + "\n"
    (folder / f"{name}.lowered.mlir").write_text(lowered)
    arrays: dict[str, np.ndarray] = {}
    for k in range(ARGUMENT_SETS):
        arguments = arguments_of(case, k)
        arrays |= {f"set{k}_argument{n}": _storable(a) for n, a in enumerate(arguments.all)}
        arrays |= {f"set{k}_expected{n}": _storable(a) for n, a in enumerate(reference(case, arguments, oob))}
    np.savez(folder / f"{name}.npz", **arrays)  # pyright: ignore[reportArgumentType] the keywords are arrays
    told = (failure, "", f"regimes: {', '.join(case.regimes)}", f"repeat:  {command}", "", str(case))
    (folder / f"{name}.txt").write_text("\n".join(told) + "\n")


def _storable(array: np.ndarray) -> np.ndarray:
    """The array, or its bits where its type is not NumPy's own."""
    known = array.dtype.kind in "iufcb" and array.dtype.name in np.sctypeDict
    return array if known else array.view(f"u{array.dtype.itemsize}")


def report_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The cell table, who judged, what bites, the times and the failures."""
    cases = int(summary["cases"])
    yield from _table(summary["cells"])
    yield ""
    for title, key in (
        ("compared with", "judged_by"),
        ("not compared with XLA", "not_judged_by_XLA"),
        ("lowered module run by", "lowered_run_by"),
        ("lowered module not run by XLA", "lowered_not_run_by_XLA"),
        ("changes the result", "bites"),
        ("rules", "rule"),
    ):
        counts: Mapping[str, int] = summary[key]
        if counts:
            yield f"{title}:"
            yield from (f"  {n:7,}  {100 * n / max(cases, 1):5.1f} %  {what}" for what, n in counts.items())
    yield f"equal only without fusion and algebraic simplification: {summary['second_look']:,}"
    seconds = ", ".join(f"{step} {s:,.0f}" for step, s in summary["seconds"].items())
    yield f"seconds in {summary['jobs']} processes, added up: {seconds}"
    failed = summary["failed"]
    yield from (f"FAILED {line}" for line in failed)
    yield (
        f"{_scatters(cases)}, seeds {summary['seed']} to {summary['seed'] + summary['runs'] - 1}, "
        f"oob {summary['oob']}, {summary['wall_seconds']:,.0f} s: {len(failed)} failed"
    )


def _scatters(count: int) -> str:
    return f"{count:,} scatter{'' if count == 1 else 's'}"


def _table(cells: Mapping[str, int]) -> Iterator[str]:
    """Cases per subset and combiner family, as `classify` names them."""
    widths = [max(len(family), 5) for family in FAMILIES]
    yield "".join((f"{'':12}", *(f"  {family:>{w}}" for family, w in zip(FAMILIES, widths, strict=True))))
    for subset in LAYOUTS:
        counts = (str(cells.get(f"{subset}/{family}", "-")) for family in FAMILIES)
        yield "".join((f"{subset:12}", *(f"  {n:>{w}}" for n, w in zip(counts, widths, strict=True))))
    yield from (f"- {line}" for line in impossible_lines())


BATCH = 12
"""Cases in one module. Compiling takes 60 ms of a core for each case at 8 to 32 of them, 70 ms at 4."""

MOST_SHRUNK = 10
"""Failures that are shrunk; those that follow are only written down."""

STATE = "state.jsonl"
SUMMARY = "summary.json"

Tell = Callable[[int, int, int, float, int], None]
"""Told how many cases are done, how many failed, how many there are, and in how many seconds how many of them were
judged since the start: what is resumed took no time."""


def silent(done: int, failed: int, runs: int, seconds: float, new: int) -> None:
    """No progress."""


OF_OLD: dict[str, Any] = {"prefer": [], "float_mode": "exact"}
"""What a run had whose state does not say."""


@dataclass
class Campaign:
    """What is run, and where it is kept.

    Attributes:
      seed: the first seed; run i has seed + i.
      runs: how many.
      oob: the policy.
      jobs: processes.
      out: the folder of the state, the summary and what failed.
      prefer: rules that are taken wherever they are right, and sizes ("mask_elements=64").
      float_mode: whether sums and products of floats keep their order.
      command: how a person repeats one seed, with {seed} and {oob} to be filled in.
    """

    seed: int
    runs: int
    oob: Policy
    jobs: int
    out: Path
    prefer: tuple[str, ...] = ()
    float_mode: FloatMode = "exact"
    command: str = "python scripts/difftest.py --seed {seed} --runs 1 --oob {oob}"
    show: Callable[[str], None] = print
    """Given each failure, then its smallest module."""
    tally: Tally = field(default_factory=Tally)
    failures: list[CaseOutcome] = field(default_factory=list[CaseOutcome])
    wall: float = 0.0
    """Seconds, those of earlier runs that this one resumes included."""

    def run(self, *, resume: bool = False, tell: Tell = silent) -> None:
        """Judge every seed that is not judged yet.

        Raises:
          InputError: the folder holds another run, or one that was not finished and is not to be resumed.
        """
        done = self._open(resume=resume)
        todo = [s for s in range(self.seed, self.seed + self.runs) if s not in done]
        start, before, resumed = monotonic(), self.wall, self.tally.count("cases")
        jobs = min(self.jobs, max(len(todo) // BATCH, 1))
        with (self.out / STATE).open("a") as state:
            for batch, judged in self._judge_batches(_batches(todo), jobs):
                self.tally.extend(judged.outcomes, judged.seconds)
                self.wall = before + monotonic() - start
                self.failures += [o for o in judged.outcomes if o.failure]
                for outcome in judged.outcomes:
                    if outcome.failure:
                        self._keep(outcome, next(c for c in batch if c.name == outcome.name))
                line = {"outcomes": [to_json(o) for o in judged.outcomes], "seconds": dict(judged.seconds)}
                state.write(json.dumps({**line, "wall": round(self.wall, 1)}) + "\n")
                state.flush()
                now = self.tally.count("cases")
                tell(now, len(self.failures), self.runs, monotonic() - start, now - resumed)
        (self.out / SUMMARY).write_text(json.dumps(self.summary(), indent=1) + "\n")

    def summary(self) -> dict[str, Any]:
        """The figures as plain data."""
        tally = self.tally
        kinds = ("judged by", "not judged by XLA", "lowered run by", "lowered not run by XLA", "bites", "rule")
        return {
            "seed": self.seed,
            "runs": self.runs,
            "oob": self.oob,
            "prefer": list(self.prefer),
            "float_mode": self.float_mode,
            "jobs": self.jobs,
            "cases": tally.count("cases"),
            "failed": [f"{o.name}: {o.failure}" for o in self.failures],
            "wall_seconds": round(self.wall, 1),
            "second_look": tally.count("second look"),
            "seconds": {step: round(s, 1) for step, s in tally.seconds.items()},
            **{kind.replace(" ", "_"): tally.of(kind) for kind in kinds},
            "cells": {f"{subset}/{family}": n for (subset, family), n in tally.cells().items()},
        }

    def _open(self, *, resume: bool) -> set[int]:
        """The seeds that are judged already; a new state file where none is to be resumed."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / STATE
        header = {"first_seed": self.seed, "oob": self.oob, "prefer": list(self.prefer), "float_mode": self.float_mode}
        if path.exists():
            lines = list(_lines(path))
            found = {key: lines[0].get(key, OF_OLD.get(key)) for key in header} if lines else {}
            names = {o["name"] for line in lines[1:] for o in line["outcomes"]}
            if resume and found != header:
                raise _other_run(path, found, header)
            if not resume and lines and len(names) < int(lines[0].get("runs", 0)):
                raise _unfinished_error(path, len(names))
            if resume:
                # Without a last line that was cut off, which what follows would be appended to.
                kept = [{**header, "runs": self.runs}, *lines[1:]]
                path.write_text("".join(json.dumps(line) + "\n" for line in kept))
                return self._resume(lines[1:])
        path.write_text(json.dumps({**header, "runs": self.runs}) + "\n")
        return set()

    def _resume(self, lines: Sequence[dict[str, Any]]) -> set[int]:
        done: set[int] = set()
        for line in lines:
            outcomes = [from_json(o) for o in line["outcomes"]]
            wanted = [o for o in outcomes if seed_of(o.name) < self.seed + self.runs]
            self.tally.extend(wanted, line["seconds"])
            self.failures += [o for o in wanted if o.failure]
            self.wall = float(line["wall"])
            done |= {seed_of(o.name) for o in outcomes}
        return done

    def _judge_batches(
        self, batches: Iterable[Sequence[Case]], jobs: int, time_limit: float = TIME_LIMIT
    ) -> Generator[tuple[Sequence[Case], Judged]]:
        call = BatchJudge(self.oob, self.prefer, self.float_mode)
        return judged_in_processes(call, batches, jobs=jobs, time_limit=time_limit)

    def _keep(self, outcome: CaseOutcome, case: Case) -> None:
        """Write a failure down, then a smaller one that fails alike."""
        seed, kind = seed_of(case.name), kind_of(outcome.failure)
        command = self.command.format(seed=seed, oob=self.oob) + "".join(f" --prefer {name}" for name in self.prefer)
        command += "" if self.float_mode == "exact" else f" --float_mode {self.float_mode}"
        lower = None if kind in LOST else built_in(self.oob, self.prefer, self.float_mode)
        write_finding(self.out, f"seed{seed}", case, self.oob, outcome.failure, command, lower)
        is_shrunk = len(self.failures) <= MOST_SHRUNK
        more = "\nlooking for a smaller module that fails alike, up to some minutes"
        self.show(f"{outcome.name}: {outcome.failure}{more * is_shrunk}")
        if not is_shrunk:
            return
        messages: dict[Case, str] = {}

        def fails(cases: Sequence[Case]) -> list[bool]:
            failed: dict[Case, bool] = {}
            for batch, judged in self._judge_batches([cases], 1, 120.0):
                for case, found in zip(batch, judged.outcomes, strict=True):
                    failed[case] = bool(found.failure) and kind_of(found.failure) == kind
                    messages[case] = found.failure
            return [failed[case] for case in cases]

        small, _ = shrink(case, recorded_case(seed)[1], fails)
        write_finding(
            self.out, f"seed{seed}.small", small, self.oob, messages.get(small, outcome.failure), command, lower
        )
        self.show(f"{outcome.name}: the smallest that was found to fail alike:\n{module_text([small])}")


def _batches(seeds: Sequence[int]) -> Iterator[list[Case]]:
    for start in range(0, len(seeds), BATCH):
        yield [case_of_seed(seed) for seed in seeds[start : start + BATCH]]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a state file; the last one may have been cut off."""
    for line in path.read_text().splitlines():
        try:
            yield cast(dict[str, Any], json.loads(line))
        except json.JSONDecodeError:
            return


def _other_run(path: Path, found: dict[str, Any], asked: dict[str, Any]) -> InputError:
    told: list[str] = []
    for run in (found, asked):
        words = [f"seed {run.get('first_seed')}", f"oob {run.get('oob')}", *run.get("prefer", ())]
        mode = run.get("float_mode", OF_OLD["float_mode"])
        told.append(", ".join([*words, *([] if mode == OF_OLD["float_mode"] else [mode])]))
    return InputError(
        str(path),
        "is the state of another run",
        facts=f"it has {told[0]}; asked for {told[1]}",
        next_step="name the same --seed, --oob, --float_mode and --prefer, or another --out",
    )


def _unfinished_error(path: Path, done: int) -> InputError:
    return InputError(
        str(path),
        f"is the state of a run that was not finished ({done} cases are done)",
        next_step="--resume goes on with it; remove the file or name another --out to begin anew",
    )
