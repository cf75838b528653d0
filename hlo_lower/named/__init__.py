"""Named ops: found in a module of plain ops, kept as composites, written out again."""

from collections.abc import Collection

from hlo_lower.graph import Graph, Source, read
from hlo_lower.named import attention, gelu, norms, relu, rope, silu, softmax  # noqa: F401
from hlo_lower.named.found import Match, NearMiss, matchers
from hlo_lower.named.raised import NamedModule, find_named, raise_graph

__all__ = ["Match", "NamedModule", "NearMiss", "find", "find_named", "matchers", "raise_graph"]


def find(source: Source | Graph, only: Collection[str] | None = None) -> list[Match]:
    """The named ops of a module, the largest where they overlap; each call of a function counted."""
    graph = source if isinstance(source, Graph) else read(source)
    found = find_named(graph, matchers, only)
    return [
        one.match
        for block in found.blocks
        if not block.is_within
        for _ in range(found.times(block))
        for one in block.roots
    ]
