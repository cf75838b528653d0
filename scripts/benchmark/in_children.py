"""Measure a class on a consumer that runs in child processes: each step has a time limit, and a crash is an entry of
the table. `on_iree` and `on_litert` say which worker compiles and runs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmark.outcome import Entry, Outcome, difference, repeated
from benchmark.timing import Timing
from benchmark.versions import Prepared, Version
from hlo_lower.consumers import Consumer

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    """A consumer as it is measured.

    Attributes:
      title: as in tables.
      consumer: what it is made of.
      worker: the file that a child runs; see `worker`.
      flags: what its compiler is given.
      suffix: of compiled modules.
      device: where they run.
      counting_device: one whose allocator counts what a call takes, "" where there is none.
      ordered: whether it adds floats in the order of the updates.
      environment: variables of the children.
    """

    title: str
    consumer: Consumer
    worker: Path
    flags: tuple[str, ...] = ()
    suffix: str = "bin"
    device: str = ""
    counting_device: str = ""
    ordered: bool = True
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def installed(self) -> str:
        """The version, "" where something that it needs is not installed."""
        return self.consumer.version()


class RefusedError(Exception):
    """A child that did not do what it was asked for, and why, in a line."""


def measure(prepared: Prepared, on: Measured, *, rounds: int, budget: float, sample: float, limit: float) -> Outcome:
    """Compile each version, check the result of its first call, then time those that are right, interleaved.

    Args:
      prepared: the class.
      on: the consumer.
      rounds, budget, sample: as `benchmark.timing.interleave` takes them.
      limit: seconds that a child may take to compile one version or to call it once.
    """
    with TemporaryDirectory(prefix="bench_") as folder:
        return _Measurement(prepared, on, Path(folder), limit).outcome(rounds, budget, sample)


class _Measurement:
    def __init__(self, prepared: Prepared, on: Measured, folder: Path, limit: float) -> None:
        self._prepared, self._on, self._folder, self._limit = prepared, on, folder, limit
        self._arguments = folder / "arguments.npz"
        np.savez(self._arguments, *prepared.arguments)

    def outcome(self, rounds: int, budget: float, sample: float) -> Outcome:
        """The entries of all versions."""
        versions = self._prepared.versions
        probed = {v.candidate: self._probe(v) for v in versions if not v.same_as}
        quick = [name for name, e in probed.items() if e.timing is not None and e.timing.median <= budget]
        if quick:
            probed |= self._timed({name: probed[name] for name in quick}, rounds, budget, sample)
        entries: list[Entry] = []
        for version in versions:
            entries.append(repeated(version, entries) if version.same_as else probed[version.candidate])
        return Outcome(self._prepared.case, self._on.title, tuple(entries))

    def _probe(self, version: Version) -> Entry:
        """Compile a version and call it once; its timing is that call, until there is a better one."""
        name = version.candidate
        if version.refused:
            return Entry(name, version.rules, note=version.refused)
        (self._folder / f"{name}.mlir").write_text(version.text)
        start, compiled = time.perf_counter(), None
        try:
            files = [f"{name}.mlir", f"{name}.{self._on.suffix}"]
            self._child(["compile", *files, *self._on.flags], self._limit, "refused", "compile")
            compiled = time.perf_counter() - start
            saved = self._folder / f"{name}.npy"
            told = self._run(f"probe_{name}", [name], {"result": str(saved)}, self._limit)
            memory = self._memory(name)
        except RefusedError as error:
            return Entry(name, version.rules, compile_seconds=compiled, note=str(error))
        case, expected = self._prepared.case, self._prepared.reference
        wrong = difference(case, name, np.load(saved), expected, ordered=self._on.ordered)
        saved.unlink()
        note = f"wrong results: {wrong}" if wrong else ""
        timing = None if wrong else Timing((told["seconds"],), 1)
        return Entry(name, version.rules, timing, compiled, memory, note, bool(wrong))

    def _memory(self, name: str) -> int | None:
        """Bytes that one call allocates beyond its arguments, None where that could not be found out."""
        if not self._on.counting_device:
            return None
        wanted = {"result": "", "device": self._on.counting_device}
        try:
            return self._run(f"memory_{name}", [name], wanted, self._limit)["memory"]
        except RefusedError:
            return None

    def _timed(self, entries: dict[str, Entry], rounds: int, budget: float, sample: float) -> dict[str, Entry]:
        """Entries with the timings of an interleaved run; where that ends badly, of their first calls as before."""
        wanted = {"rounds": rounds, "budget": budget, "sample": sample}
        limit = self._limit + 3 * len(entries) * (budget + 1)
        try:
            told = self._run("timing", list(entries), wanted, limit)
        except RefusedError as error:
            return {name: replace(entry, note=f"first call only; {error}") for name, entry in entries.items()}
        timings = {name: Timing(tuple(one["seconds"]), one["calls"]) for name, one in told.items()}
        return {name: replace(entry, timing=timings[name]) for name, entry in entries.items()}

    def _run(self, job: str, names: Sequence[str], wanted: dict[str, Any], limit: float) -> dict[str, Any]:
        request = {
            "device": self._on.device,
            "modules": {name: str(self._folder / f"{name}.{self._on.suffix}") for name in names},
            "arguments": str(self._arguments),
            "donated": self._prepared.case.donated,
            **wanted,
        }
        (self._folder / f"{job}.json").write_text(json.dumps(request))
        self._child(["run", f"{job}.json"], limit, "failed", "run")
        return json.loads((self._folder / f"{job}.answer.json").read_text())

    def _child(self, arguments: Sequence[str], limit: float, verb: str, doing: str) -> None:
        """Run the worker.

        Raises:
          RefusedError: it took longer than the limit, in seconds, or ended otherwise than well.
        """
        process = subprocess.Popen(
            [sys.executable, str(self._on.worker), *arguments],
            cwd=self._folder,
            env={**os.environ, **self._on.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            _, told = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise RefusedError(f"{doing}: not done within {limit:,.0f} s") from None
        finally:
            _end(process)
        if process.returncode:
            raise RefusedError(f"{verb}: {_reason(told, process.returncode)}")


def _end(process: "subprocess.Popen[str]") -> None:
    """End a child and what it started: the worker of the compiler is a process of its own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _reason(told: str, code: int) -> str:
    """The first line of an error that says what it is."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    errors = [line.split("error: ", 1)[1] for line in lines if "error: " in line]
    if errors:
        return errors[0][:200]
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return lines[-1][:200] if lines else f"exit code {code}"
