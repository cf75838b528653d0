"""What the child processes of all consumers do: what crashes or hangs here ends only this process.

    python CONSUMER_worker.py compile IN.mlir OUT FLAGS...
    python CONSUMER_worker.py run JOB.json

A job names the modules, their arguments, and what is wanted; the answer is a JSON file beside it.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark.timing import interleave


class Runner(Protocol):
    """A module with its arguments."""

    def __call__(self) -> None:
        """Run it once, to the end."""
        ...

    def result(self) -> NDArray[Any]:
        """What the last call gave."""
        ...


@dataclass(frozen=True)
class Loaded:
    """The modules of a job on their device, and its allocator, None where it counts nothing."""

    runners: Mapping[str, Runner]
    allocator: Any = None


def main(compile_module: Callable[[str, str, list[str]], None], load: Callable[[dict[str, Any]], Loaded]) -> None:
    """Compile, or run a job.

    Args:
      compile_module: text file to compiled file, with the compiler's flags; exits with the message of a refusal.
      load: the modules of a job.
    """
    if sys.argv[1] == "compile":
        compile_module(sys.argv[2], sys.argv[3], sys.argv[4:])
        return
    job_file = Path(sys.argv[2])
    job = json.loads(job_file.read_text())
    answer = _run(job, load(job))
    job_file.with_suffix(".answer.json").write_text(json.dumps(answer))


def arguments_of(job: dict[str, Any]) -> list[NDArray[Any]]:
    """The arguments of a job's modules."""
    with np.load(job["arguments"]) as stored:
        return [stored[name] for name in stored.files]


def _run(job: dict[str, Any], loaded: Loaded) -> dict[str, Any]:
    """Run the modules of a job.

    A job: `device`, `modules` (name to path), `arguments` (an .npz of arrays in order), `donated`, and either `result`
    (one module is called, its result saved at that path, its time and memory told) or `rounds`, `budget`, `sample`.
    """
    if "result" in job:
        (runner,) = loaded.runners.values()
        return _probe(loaded.allocator, runner, job["result"])
    timings = interleave(loaded.runners, job["rounds"], budget=job["budget"], sample=job["sample"])
    return {name: {"seconds": timing.seconds, "calls": timing.calls} for name, timing in timings.items()}


def _probe(allocator: Any, runner: Runner, path: str) -> dict[str, Any]:
    """Call once, save the result if there is a path, and tell the time and the memory beyond the arguments."""
    counts = allocator is not None and allocator.has_statistics
    before = allocator.statistics if counts else {}
    start = time.perf_counter()
    runner()
    seconds = time.perf_counter() - start
    memory = None
    if counts:
        held = before["device_bytes_allocated"] - before["device_bytes_freed"]
        memory = allocator.statistics["device_bytes_peak"] - held
    if path:
        np.save(path, runner.result())
    return {"seconds": seconds, "memory": memory}
