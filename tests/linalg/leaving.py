"""Let a module leave in linalg: lower its scatters for a target of that dialect, then everything else."""

from typing import Any

import hlo_lower as hl
from hlo_lower.ir.reader import read
from hlo_lower.lowering.linalg.lower import LinalgReport, to_linalg
from hlo_lower.lowering.linalg.one_form import one_form
from hlo_lower.ops.targets.target import Target

LINALG = Target(
    "linalg_for_tests",
    refused={"stablehlo.scatter": "to be lowered", "stablehlo.sort": "jaxlib's pass leaves it"},
    dialect="linalg",
)


def lowered_text(source: Any, **how: Any) -> str:
    """A module with its scatters lowered for linalg, still StableHLO."""
    return hl.lower(source, target=LINALG, **how).stablehlo


def left_as_linalg(source: Any, *, named=True, parallel=False, then=None, **how) -> tuple[str, LinalgReport]:
    """The text of a module in linalg, changed once more where that is asked for, and the report."""
    graph = read(lowered_text(source, **how))
    one_form(graph)
    report = to_linalg(graph, named=named, parallel=parallel)
    if then:
        then(graph)
    return str(graph.module), report
