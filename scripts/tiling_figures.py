"""Draw the figures of docs/tiling.md: a program's memory before and after, a loop with its subsets, and the workloads.

    python scripts/tiling_figures.py --out docs/figures --json memory.json

The last one is drawn from what `scripts/bench_memory.py --json` wrote, if it is given.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags
from benchmark.memory_chart import memory_chart
from benchmark.tiled_program import PROGRAM

import hlo_lower as hl
from hlo_lower.base.memory import memory_svg

_OUT = flags.DEFINE_string("out", "docs/figures", "Folder.")
_JSON = flags.DEFINE_list("json", [], "Figures of scripts/bench_memory.py, later files for workloads of earlier ones.")

BOUND = 64 << 20


def main(_: Sequence[str]) -> None:
    """Draw."""
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    tiled = hl.tile(PROGRAM, max_temp=BOUND, name="loss.mlir")
    (out / "tiling_memory.svg").write_text(memory_svg(tiled.memory, BOUND, alone=True) + "\n")
    (out / "tiling_loop.svg").write_text(tiled.loops[0].svg(alone=True) + "\n")
    entries = {e["workload"]: e for path in _JSON.value for e in json.loads(Path(path).read_text())["workloads"]}
    if entries:
        (out / "tiling_workloads.svg").write_text(memory_chart(list(entries.values())))


if __name__ == "__main__":
    app.run(main)
