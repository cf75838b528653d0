"""What a rule built, held against the target: op by op, regions and called functions included, with the element types.

Nothing counts that the target does not take. What the module holds besides is not looked at.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node
from hlo_lower.ops.names import COMPLEX, IMAG, REAL, RETURN
from hlo_lower.ops.targets.target import Target

RETURNS = (RETURN, "func.return")


PART_OPS = frozenset({REAL, IMAG, COMPLEX})
"""Ops that are of complex numbers by definition: a target that has no room for these refuses the type."""


@dataclass(frozen=True)
class Refusal:
    """What a target refuses of what was built: the op, and why."""

    op: str
    reason: Cause


def refused_of(
    target: Target, graph: Graph, built: Sequence[Node], spared: Callable[[Node], bool] | None = None
) -> Refusal | None:
    """The first of these ops, or of those in their regions and called functions, that the target does not take.

    Args:
      target: the target.
      graph: for the functions that are called.
      built: what a lowering built.
      spared: asked of one that is not taken; where it holds, that does not count.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    for top in built:
        inner = nodes_within(graph, top) if top.name == "func.call" or top.has_regions else ()
        for node in (top, *inner):
            key = (node.name, dtypes_on(node) if target.restricts_dtypes else frozenset[str]())
            if key not in seen:
                seen.add(key)
                reason = None if target.takes_whole(*key) else type_refusal(target, *key) or target.refusal(*key)
                if reason is not None and (spared is None or not spared(node)):
                    return Refusal(node.name, reason)
    return None


def type_refusal(target: Target, op: str, dtypes: frozenset[str]) -> Cause | None:
    """The element type that a target takes on no operation, where the operation itself is taken."""
    for dtype in sorted(dtypes) if target.refuses_op(op) is None or op in PART_OPS else ():
        reason = target.refuses_dtype(dtype)
        if reason is not None:
            return Code.REFUSES_DTYPE(target.name, dtype, None, reason or None)
    return None


def refused_by_name(target: Target, _graph: Graph, built: Sequence[Node]) -> Refusal | None:
    """The same of what other kinds and other element types come after: only names count, and calls are the module's."""
    names = (node.name for node in built if node.name not in ("func.call", *RETURNS, *target.composites))
    refused = ((name, target.refusal(name)) for name in names)
    return next((Refusal(op, reason) for op, reason in refused if reason is not None), None)


def nodes_within(graph: Graph, node: Node) -> Iterator[Node]:
    """The nodes in a node's regions, or in the function that it calls, at any depth; terminators left out."""
    if node.name == "func.call":
        callee = graph.functions.get(node.callee)
        blocks = (callee.body,) if callee is not None and callee.has_body else ()
    else:
        blocks = node.blocks if node.has_regions else ()
    for block in blocks:
        yield from _nodes_below(graph, block)


def _nodes_below(graph: Graph, block: Block) -> Iterator[Node]:
    for node in block.nodes:
        if node.name not in RETURNS:
            yield node
            yield from nodes_within(graph, node)


def dtypes_on(node: Node) -> frozenset[str]:
    """The element types among a node's operands and results, and the arguments of its regions."""
    arguments = (a for block in node.blocks for a in block.arguments) if node.has_regions else ()
    values = (*node.operands, *node.results, *arguments)
    return frozenset(mlir.tensor_element_name(v.raw.type) for v in values if v.is_tensor)
