"""Make a module ready to be tiled: calls inlined, what nothing uses erased, cheap large values made anew for each use,
products in the form of which least is copied, rows that are counted batching dims, points that are reshaped rows.

Nothing of it changes what is computed, and by itself none of it is worth writing: it is done to a copy, which is kept
only where a loop is made of it.
"""

from hlo_lower.facts.memory.dataflow import WITH_BODIES, blocks_of, cheap_values, size_of
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.purity import Functional
from hlo_lower.tile.prepare.batched_rows import batch_rows
from hlo_lower.tile.prepare.merged_points import merge_points
from hlo_lower.tile.prepare.product_forms import settle_products

REPEATED = 1 << 12
"""Bytes from which a cheap value is made anew for each use."""

MOST_INLINED = 20_000
"""Ops of the entry point beyond which calls stay calls, which are boundaries."""


def _within(node: Node) -> list[Node]:
    inner = node.blocks if node.name in WITH_BODIES else ()
    return [node, *(found for body in inner for block in blocks_of(body) for found in block.nodes)]


def inline_calls(graph: Graph) -> None:
    """Put the bodies of called functions in the place of the calls in the entry point and in its loops."""
    called: set[str] = set()
    nodes = [node for block in blocks_of(graph.main.body) for node in block.nodes]
    pending, count = [node for node in nodes if node.name == "func.call"], len(nodes)
    with mlir.active(graph.context):
        while pending and count < MOST_INLINED:
            call = pending.pop()
            function = graph.functions.get(call.callee)
            if function is None or not function.has_body:
                continue
            called.add(call.callee)
            built = mlir.inline_call(call.raw, function.node.raw)
            count += len(built)
            inside = [inner for raw in built for inner in _within(Node(raw))]
            pending += [node for node in inside if node.name == "func.call"]
    graph.forget()
    erase_uncalled(graph, called)
    graph.forget()


def erase_unused(graph: Graph) -> None:
    """Erase functions of their operands that nothing uses, in the entry point and in its loops: for one that is not cut
    all that it reads would be kept."""
    is_function = Functional(graph)
    for block in reversed(list(blocks_of(graph.main.body))):
        for node in reversed(list(block.nodes)):
            if node.results and not any(value.is_used for value in node.results) and is_function(node):
                node.raw.erase()
    graph.forget()


def repeat_cheap(graph: Graph) -> None:
    """Make values that cost nothing (`cheap_values`) anew for each of their uses, which may take other parts of
    them."""
    with mlir.active(graph.context):
        for block in list(blocks_of(graph.main.body)):
            nodes = list(block.nodes)
            cheap = cheap_values(nodes)
            for node in reversed(nodes):
                if len(node.results) == 1 and node.result() in cheap and size_of(node.result()) >= REPEATED:
                    _repeat(node)


def _repeat(node: Node) -> None:
    uses = [(use.owner.operation, int(use.operand_number)) for use in node.result().raw.uses]
    block = node.parent
    for user, number in uses[1:]:
        outer = user
        while outer.parent is not None and (block is None or outer.parent.operation != block.raw):
            outer = outer.parent.operation
        user.operands[number] = mlir.clone_before(node.raw, outer, {}).results[0]


def prepare(graph: Graph, *, is_by_hand: bool = False) -> None:
    """All of it; where an op is tiled by hand products stay as they are written, whose dims and operands are named."""
    inline_calls(graph)
    erase_unused(graph)
    if not is_by_hand:
        settle_products(graph)
    batch_rows(graph)
    merge_points(graph, keeps_results=is_by_hand)
    repeat_cheap(graph)
