"""What the tests of tiling share: a module that is prepared, what is live in it, and a loop that is made by hand."""

from pathlib import Path

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import liveness
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile.by_hand import tile_by_hand
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.prepare.normalize import prepare

HERE = Path(__file__).parent


def module_of(name):
    """The module of a file without its CHECK lines: its first line is line 1."""
    return "".join(line for line in (HERE / name).read_text().splitlines(True) if not line.startswith("//"))


LOGITS = module_of("logits.mlir")
"""Logits of 24 rows and 96 columns on line 3, their exponentials, sums of these by rows, and a product with them."""


def prepared(text):
    """A module, prepared, and its entry point."""
    graph = hl.read(text)
    prepare(graph)
    return graph, Dataflow(graph, default_subset_rules())


def live(text):
    """Bytes that are live at the peak of a module, by the estimate."""
    return liveness(prepared(text)[1]).most


def with_loops(graph, choice):
    """The text of a module with the loops of a choice."""
    emit(choice.program, choice.plan, choice.sizes)
    return to_text(graph)


def by_hand(text, line, dim, size, fuse="all", *, rules=None, is_prepared=True, **how):
    """A module with the op of a line tiled along a dim, or along several of given sizes."""
    graph = hl.read(text)
    if is_prepared:
        prepare(graph)
    sizes = {dim: size} if isinstance(dim, int) else dict(zip(dim, size, strict=True))
    tile_by_hand(graph, rules or default_subset_rules(), hl.ByHand(f"<module>:{line}", sizes, fuse, **how))
    return to_text(graph)


def are_verified(before, after, mode="reassociate"):
    """Whether verification finds two versions equal."""
    return hl.verify(before, after, level="regions", float_mode=mode).ok
