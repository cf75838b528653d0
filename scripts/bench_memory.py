"""Measure what tiling saves and costs: temporaries by XLA, resident size in a fresh process, time beside the original.

    python scripts/bench_memory.py --json memory.json             # the workloads of benchmark/memory_workloads.py
    python scripts/bench_memory.py --only attention --rounds 3
    python scripts/bench_memory.py --only cross_entropy_128k --norun   # temporaries alone: 12 GiB
    python scripts/bench_memory.py --small                        # whether it works

Temporaries are XLA's `temp_size_in_bytes` under the schedule that needs least memory; resident sizes grow over what is
there before the first run, results included, under XLA's defaults. Both versions run interleaved in one process; the
ratio is of the medians. Nothing is verified here but that the results are close; `hlo-lower tile` verifies.

Exit code 1: results of a workload were not close, and it was not timed.
"""

import json
import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import app, flags
from benchmark.memory_chart import memory_chart
from benchmark.memory_workloads import WORKLOADS, Workload
from benchmark.resident import arguments, resident
from benchmark.timing import interleave

import hlo_lower as hl
from hlo_lower.tile.tiled_module import shown_bytes
from hlo_lower.verify.run import exported_from_module

_ONLY = flags.DEFINE_list("only", [], "Workloads; by default all.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds of each measurement.", lower_bound=1)
_SMALL = flags.DEFINE_bool("small", False, "Small sizes, tiled to a quarter of what they need.")
_RUN = flags.DEFINE_bool("run", True, "Run both versions; else only what XLA plans is told, whatever memory there is.")
_SVG = flags.DEFINE_string("svg", None, "Draw the temporaries as a chart into this file.")
_JSON = flags.DEFINE_string("json", None, "Write the figures to this file too.")

FAR = 1e-3
"""Of the largest magnitude of a result: further apart the two versions are not close."""


def tiled(workload: Workload) -> tuple[str, hl.Tiled, float]:
    """The module, what tiling makes of it, and seconds."""
    text = workload.text(workload.small if _SMALL.value else workload.full)
    bound: str | int = workload.max_temp
    if _SMALL.value:
        bound = max(1, (hl.tile(text, max_temp=1 << 60).before or 4) // 4)
    start = time.perf_counter()
    found = hl.tile(text, max_temp=bound)
    return text, found, time.perf_counter() - start


def compiled(text: str) -> tuple[Any, list[Any]]:
    """A module compiled, and its arguments."""
    exported = exported_from_module(text)
    run = jax.jit(exported.call).lower(*exported.in_avals).compile()
    return run, [jax.device_put(a) for a in arguments(exported.in_avals)]


def are_close(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two versions' results are."""
    for a, b in zip(one, other, strict=True):
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if np.abs(x - y).max(initial=0.0) > FAR * max(1.0, np.abs(x).max(initial=0.0)):
            return False
    return True


def measure(workload: Workload) -> dict[str, Any]:
    """All figures of a workload."""
    text, found, seconds = tiled(workload)
    entry: dict[str, Any] = {"workload": workload.name, "tiling_seconds": round(seconds, 1), **found.to_json()}
    if not _RUN.value:
        return entry
    runs = [compiled(version) for version in (text, found.text)]
    entry["close"] = are_close(*(run(*given) for run, given in runs))
    if not entry["close"]:
        return entry
    calls = {
        name: (lambda run=run, given=given: jax.block_until_ready(run(*given)))
        for name, (run, given) in zip(("before", "after"), runs, strict=True)
    }
    times = interleave(calls, _ROUNDS.value)
    entry["seconds"] = {name: timing.seconds for name, timing in times.items()}
    entry["time_ratio"] = times["after"].median / times["before"].median
    entry["resident"] = [resident(version) for version in (text, found.text)]
    return entry


def line(entry: dict[str, Any]) -> str:
    """An entry, readable."""
    head = f"{entry['workload']}: temporaries {shown_bytes(entry['before'])} -> {shown_bytes(entry['after'])}"
    if "close" not in entry:
        return f"{head}, {len(entry['loops'])} loops, not run"
    if not entry["close"]:
        return f"{head}; results are not close"
    sizes = [shown_bytes(max(0, size)) if isinstance(size, int) else size for size in entry["resident"]]
    return f"{head}, resident {sizes[0]} -> {sizes[1]}, time {entry['time_ratio']:.2f}x, {len(entry['loops'])} loops"


def main(_: Sequence[str]) -> int:
    """Measure and show."""
    names = _ONLY.value or list(WORKLOADS)
    entries: list[dict[str, Any]] = []
    for name in names:
        entries.append(measure(WORKLOADS[name]))
        print(line(entries[-1]), flush=True)
        if _JSON.value:
            machine = {"cores": os.cpu_count(), "platform": platform.platform(), "jaxlib": version("jaxlib")}
            Path(_JSON.value).write_text(json.dumps({"machine": machine, "workloads": entries}, indent=1) + "\n")
    if _SVG.value:
        Path(_SVG.value).write_text(memory_chart(entries))
    return 0 if all(entry.get("close", True) for entry in entries) else 1


if __name__ == "__main__":
    app.run(main)
