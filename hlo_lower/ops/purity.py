"""Which ops are functions of their operands: given equal ones they give equal results, each time that they run.

An op with a side effect is none, and neither is one that reads a state: two `stablehlo.rng` with equal operands are two
numbers. Only ops that are known to be functions count; of an op that nobody knows nothing follows. The random bits of
`rng_bit_generator` are one: it is given its state.
"""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node
from hlo_lower.ops.encoded_calls import why_unknown
from hlo_lower.ops.names import CUSTOM_CALL, SCATTER
from hlo_lower.ops.spec import CONTROL, ops_with

PURE_OPS = (ops_with(is_pure=True) - CONTROL - {SCATTER}) | {"builtin.unrealized_conversion_cast"}
"""Those of them that end and have no record of their own: erasing one whose results nobody uses changes nothing."""

FUNCTIONS = PURE_OPS | CONTROL | {SCATTER, "sdy.sharding_constraint", "func.return"}
"""Ops that are, as far as what stands in their regions is."""

PLACEMENT_NOTES = ("Sharding", "annotate_device_placement")
"""Custom calls that return what they take."""


class Functional:
    """Answers for the ops of one graph, each function of it looked at once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[str, bool] = {}

    def __call__(self, node: Node) -> bool:
        """Whether a node, with what it calls and what stands in its regions, is a function of its operands."""
        if node.name in FUNCTIONS and not node.has_regions:
            return True
        if node.body_name:
            return self._body(node.body_name)
        called: set[str] = set()
        return (
            _is_known(node)
            and _holds(node.blocks if node.has_regions else (), called)
            and all(self._body(name) for name in sorted(called))
        )

    def _body(self, name: str) -> bool:
        """The same of all that a function runs, the functions included that it calls."""
        if name not in self._known:
            reached, pending, holds = {name}, [name], True
            while pending and holds:
                current = pending.pop()
                if current in self._known:
                    holds = self._known[current]
                    continue
                function, called = self._graph.functions.get(current), set[str]()
                holds = function is not None and function.has_body and _holds((function.body,), called)
                pending += sorted(called - reached)
                reached |= called
            self._known[name] = holds
        return self._known[name]


def _holds(blocks: tuple[Block, ...] | list[Block], called: set[str]) -> bool:
    """Whether all ops in blocks are known to be functions; the functions that they call are collected."""
    pending = list(blocks)
    while pending:
        for node in pending.pop().nodes:
            if node.body_name:
                called.add(node.body_name)
            elif not _is_known(node):
                return False
            pending.extend(node.blocks if node.has_regions else ())
    return True


def _is_known(node: Node) -> bool:
    if node.name == CUSTOM_CALL:
        return mlir.call_target(node.raw) in PLACEMENT_NOTES or why_unknown(node) is None
    return node.name in FUNCTIONS
