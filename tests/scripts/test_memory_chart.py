"""The chart of what tiling saves and costs is drawn from the figures beside it."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_chart import memory_chart

FIGURES = Path(__file__).parents[2] / "docs" / "figures"


def test_the_chart_of_the_docs_is_that_of_its_figures():
    """docs/figures/tiling_workloads.svg is what the JSON of the same name gives."""
    entries = json.loads((FIGURES / "tiling_workloads.json").read_text())["workloads"]
    assert memory_chart(entries) == (FIGURES / "tiling_workloads.svg").read_text()


def test_what_was_not_timed_is_told():
    """Temporaries are drawn with or without a time, less of them as a shorter bar; a time that is not there is told."""
    sizes = {"workload": "a_block", "before": 64 << 20, "after": 4 << 20}
    timed, untimed = (memory_chart([{**sizes, **more}]) for more in ({"time_ratio": 0.5}, {}))
    assert ">4.0 MiB, 16x less<" in timed
    assert (">0.50x<" in timed, "not measured" in timed) == (True, False)
    assert "not measured" in untimed
    bars = [
        float(part.split('"')[0]) for part in timed.split('<rect x="170"')[1:] for part in [part.split('width="')[1]]
    ]
    assert bars[0] > bars[1]
