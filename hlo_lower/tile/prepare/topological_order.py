"""Put the nodes of a block into an order in which each stands behind what it takes; else they stay as they stand."""

from itertools import pairwise

from hlo_lower.facts.memory.dataflow import used_by
from hlo_lower.ir.view import Block, Node
from hlo_lower.ops.purity import Functional


def put_in_order(block: Block, is_function: Functional) -> None:
    """Order a block: nodes in the order in which they stand, each right behind what it needs where that stood later.

    Nodes that are not known to be functions of their operands keep their order among each other.
    """
    *nodes, terminator = block.nodes
    maker = {value: node for node in nodes for value in node.results}
    needs = {node: [maker[v] for v in used_by(node) if v in maker] for node in nodes}
    ordered = [node for node in nodes if not is_function(node)]
    for before, after in pairwise(ordered):
        needs[after].append(before)
    done: dict[Node, None] = {}
    for node in nodes:
        pending = [node]
        while pending:
            current = pending[-1]
            missing = [need for need in needs[current] if need not in done]
            if missing:
                pending += missing[:1]
            else:
                pending.pop()
                done[current] = None
    for node in done:
        node.raw.move_before(terminator.raw)
