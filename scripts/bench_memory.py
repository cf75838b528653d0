"""Measure what tiling saves and costs: temporaries by XLA, resident size in a fresh process, time beside the original.

    python scripts/bench_memory.py --json memory.json             # the workloads of benchmark/memory_workloads.py
    python scripts/bench_memory.py --only attention --rounds 3
    python scripts/bench_memory.py --only cross_entropy --max_temp 64MiB
    python scripts/bench_memory.py --only cross_entropy_128k --norun   # temporaries alone: 12 GiB
    python scripts/bench_memory.py --small                        # whether it works
    python scripts/bench_memory.py --iree                         # what IREE's allocator counts, at middle sizes
    python scripts/bench_memory.py --exports --seconds 60         # benchmark/memory_exports.py, at a half and a quarter

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
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import app, flags
from benchmark.iree_peak import MIDDLE, iree_peak
from benchmark.memory_chart import memory_chart
from benchmark.memory_exports import EXPORTS
from benchmark.memory_workloads import WORKLOADS, Workload
from benchmark.resident import arguments, resident
from benchmark.timing import interleave

import hlo_lower as hl
from hlo_lower.base.memory import shown_bytes
from hlo_lower.tile.entry import tile
from hlo_lower.tile.find.measure import measure_temporaries, require_bytes
from hlo_lower.tile.plan_search import SearchLimits
from hlo_lower.verify.pull import derive
from hlo_lower.verify.run import exported_from_module

_ONLY = flags.DEFINE_list("only", [], "Workloads; by default all.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds of each measurement.", lower_bound=1)
_SMALL = flags.DEFINE_bool("small", False, "Small sizes, tiled to a quarter of what they need.")
_MAX_TEMP = flags.DEFINE_string("max_temp", None, "The bound, in the place of each workload's own.")
_RUN = flags.DEFINE_bool("run", True, "Run both versions; else only what XLA plans is told, whatever memory there is.")
_EXPORTS = flags.DEFINE_bool("exports", False, "Exports in the place of workloads, each at a half and at a quarter.")
_IREE = flags.DEFINE_bool("iree", False, "Workloads at middle sizes, at a quarter, on IREE: its own peak.")
_SHARES = flags.DEFINE_list("shares", ["2", "4"], "With --exports: the parts of their temporaries that are asked for.")
_SECONDS = flags.DEFINE_float("seconds", 600.0, "Seconds of a search, with --exports.")
_SVG = flags.DEFINE_string("svg", None, "Draw the temporaries as a chart into this file.")
_JSON = flags.DEFINE_string("json", None, "Write the figures to this file too.")

FAR = 1e-3
"""Of the largest magnitude of a result: further apart the two versions are not close."""


def tiled(workload: Workload) -> tuple[str, hl.Tiled, float]:
    """The module, what tiling makes of it, and seconds."""
    text = workload.text(workload.small if _SMALL.value else workload.full)
    bound: str | int = _MAX_TEMP.value or workload.max_temp
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
    timed(entry, text, found.text)
    if not entry["close"]:
        return entry
    entry["resident"] = [resident(version) for version in (text, found.text)]
    return entry


def measure_export(name: str, share: int) -> dict[str, Any]:
    """All figures of an export that is asked for a share of its temporaries."""
    text = EXPORTS[name].text()
    [(_, size)] = measure_temporaries([text])
    start = time.perf_counter()
    bound = require_bytes(size, name) // share
    found = tile(text, max_temp=bound, name=name, effort=SearchLimits(seconds=_SECONDS.value))
    entry: dict[str, Any] = {"workload": f"{name}, 1/{share}", "share": share, **found.to_json()}
    entry["tiling_seconds"] = round(time.perf_counter() - start, 1)
    start = time.perf_counter()
    entry["shown_equal"] = bool(derive(text, found.text, seconds=30, reassociated=True))
    entry["shown_seconds"] = round(time.perf_counter() - start, 1)
    if EXPORTS[name].runs and _RUN.value and found.is_changed:
        timed(entry, text, found.text)
    return entry


def timed(entry: dict[str, Any], before: str, after: str) -> None:
    """Run both versions, and note whether they are close and how long they take."""
    runs = [compiled(version) for version in (before, after)]
    entry["close"] = are_close(*(run(*given) for run, given in runs))
    if not entry["close"]:
        return
    calls = {
        name: (lambda run=run, given=given: jax.block_until_ready(run(*given)))
        for name, (run, given) in zip(("before", "after"), runs, strict=True)
    }
    times = interleave(calls, _ROUNDS.value)
    entry["seconds"] = {name: timing.seconds for name, timing in times.items()}
    entry["time_ratio"] = times["after"].median / times["before"].median


def measure_iree(name: str) -> dict[str, Any]:
    """What IREE's allocator counts for a workload of middle size, as it is and at a quarter of XLA's temporaries."""
    text = WORKLOADS[name].text(MIDDLE[name])
    [(_, size)] = measure_temporaries([text])
    found = tile(text, max_temp=require_bytes(size, name) // 4, name=name, effort=SearchLimits(seconds=_SECONDS.value))
    peaks = [iree_peak(version) for version in (text, found.text)]
    return {"workload": name, "sizes": list(MIDDLE[name]), **found.to_json(), "iree_peak": peaks}


def iree_line(entry: dict[str, Any]) -> str:
    """An entry of IREE's, readable."""
    told = [shown_bytes(peak) if isinstance(peak, int) else peak for peak in entry["iree_peak"]]
    by_xla = f"{shown_bytes(entry['before'])} -> {shown_bytes(entry['after'])}"
    return f"{entry['workload']} {entry['sizes']}: IREE {told[0]} -> {told[1]}, temporaries by XLA {by_xla}"


def export_line(entry: dict[str, Any]) -> str:
    """An entry of an export, readable."""
    told = "reached" if entry["reached"] else "not reached"
    sizes = f"{shown_bytes(entry['before'])} -> {shown_bytes(entry['after'])}, asked {shown_bytes(entry['max_temp'])}"
    ratio = f"{entry['time_ratio']:.2f}x" if "time_ratio" in entry else "not timed"
    if entry.get("close") is False:
        ratio = "results are not close"
    shown = "shown equal" if entry["shown_equal"] else "not shown equal"
    search = f"{len(entry['loops'])} loops in {entry['tiling_seconds']} s{', ' * bool(entry['ended'])}{entry['ended']}"
    return "\n   ".join([f"{entry['workload']}: {told}, {sizes}, {ratio}, {shown}, {search}", *entry["left"]])


def line(entry: dict[str, Any]) -> str:
    """An entry, readable."""
    head = f"{entry['workload']}: temporaries {shown_bytes(entry['before'])} -> {shown_bytes(entry['after'])}"
    if "close" not in entry:
        return f"{head}, {len(entry['loops'])} loops, not run"
    if not entry["close"]:
        return f"{head}; results are not close"
    sizes = [shown_bytes(max(0, size)) if isinstance(size, int) else size for size in entry["resident"]]
    return f"{head}, resident {sizes[0]} -> {sizes[1]}, time {entry['time_ratio']:.2f}x, {len(entry['loops'])} loops"


def measured_and_told(name: str, share: int) -> tuple[dict[str, Any], str]:
    """The figures that the flags ask for, and a line of them."""
    if _EXPORTS.value:
        entry = measure_export(name, share)
        return entry, export_line(entry)
    entry = measure_iree(name) if _IREE.value else measure(WORKLOADS[name])
    return entry, iree_line(entry) if _IREE.value else line(entry)


def main(_: Sequence[str]) -> int:
    """Measure and show."""
    names = _ONLY.value or list(EXPORTS if _EXPORTS.value else MIDDLE if _IREE.value else WORKLOADS)
    shares = [int(share) for share in _SHARES.value] if _EXPORTS.value else [1]
    entries: list[dict[str, Any]] = []
    for name, share in product(names, shares):
        entry, told = measured_and_told(name, share)
        entries.append(entry)
        print(told, flush=True)
        if _JSON.value:
            machine = {"cores": os.cpu_count(), "platform": platform.platform(), "jaxlib": version("jaxlib")}
            Path(_JSON.value).write_text(json.dumps({"machine": machine, "workloads": entries}, indent=1) + "\n")
    if _SVG.value:
        Path(_SVG.value).write_text(memory_chart(entries))
    return 0 if all(entry.get("close", True) for entry in entries) else 1


if __name__ == "__main__":
    app.run(main)
