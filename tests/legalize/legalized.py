"""Modules as text, legalized, and what XLA gives for them."""

from functools import partial

import rewrites

from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.engine.engine import run_stage
from hlo_lower.lowering.engine.kind import Context, Stage
from hlo_lower.lowering.kinds import default_registry, kinds_of
from hlo_lower.lowering.options import Options
from hlo_lower.ops.targets.target import Target

PLAIN = Target("plain", legalize=True)

results = partial(rewrites.results, rounding="exact")


def legalized(source, target=PLAIN):
    """The text of a module or a graph after it was legalized, and the changes."""
    graph = read(source, "module.mlir", contained=False) if isinstance(source, str) else source
    changes = run_stage(Context(graph, Options(target), default_registry()), kinds_of(Stage.LEGALIZED))
    return to_text(graph), changes
