"""Make a module ready to be tiled: calls inlined, cheap large values made anew for each use, transposes of dots gone,
rows that are counted batching dims.

Nothing of it changes what is computed, and by itself none of it is worth writing: it is done to a copy, which is kept
only where a loop is made of it.
"""

from hlo_lower import mlir
from hlo_lower.graph import Builder, Graph, Node, erase_uncalled
from hlo_lower.tile.batched_rows import batch_rows
from hlo_lower.tile.dataflow import WITH_BODIES, blocks_of, cheap_values, size_of

REPEATED = 1 << 12
"""Bytes from which a cheap value is made anew for each use."""

MOST_INLINED = 20_000
"""Ops of the entry point beyond which calls stay calls, which are boundaries."""


def _within(node: Node) -> list[Node]:
    """A node, and those of its bodies."""
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
            *nodes, last = function.body.nodes
            raws = [node.raw for node in nodes]
            arguments = [a.raw for a in function.body.arguments]
            template = mlir.template_of(raws, arguments, list(last.raw.operands), call.raw.location)
            built, given = mlir.inlined(template, list(call.raw.operands), call.raw)
            for result, value in zip(call.raw.results, given, strict=True):
                result.replace_all_uses_with(value)
            called.add(call.callee)
            call.raw.erase()
            count += len(built)
            inside = [inner for raw in built for inner in _within(Node(raw))]
            pending += [node for node in inside if node.name == "func.call"]
    graph.forget()
    erase_uncalled(graph, called)
    graph.forget()


def repeat_cheap(graph: Graph, least: int = REPEATED) -> None:
    """Make values that cost nothing (`cheap_values`) anew for each of their uses, which may take other parts of them.

    Args:
      graph: is changed.
      least: bytes from which that is done.
    """
    with mlir.active(graph.context):
        for block in list(blocks_of(graph.main.body)):
            nodes = list(block.nodes)
            cheap = cheap_values(nodes)
            for node in reversed(nodes):
                if len(node.results) == 1 and node.result() in cheap and size_of(node.result()) >= least:
                    _repeat(node)


def _repeat(node: Node) -> None:
    """A copy of a node for each use but the first."""
    uses = [(use.owner.operation, int(use.operand_number)) for use in node.result().raw.uses]
    block = node.parent
    for user, number in uses[1:]:
        outer = user
        while outer.parent is not None and (block is None or outer.parent.operation != block.raw):
            outer = outer.parent.operation
        user.operands[number] = mlir.clone_before(node.raw, outer, {}).results[0]


def turn_dots(graph: Graph) -> None:
    """Exchange the operands of a dot_general whose only user exchanges the free dims of its two operands.

        %d = dot_general %a, %b : 512x2048, 2048x32000 -> 512x32000;  %t = transpose %d : 32000x512
        ->  %t = dot_general %b, %a : 32000x512

    Right: a product does not depend on the order of its factors, and the free dims of the first operand come first.
    """
    with mlir.active(graph.context):
        for node in [node for block in blocks_of(graph.main.body) for node in block.nodes]:
            if node.name == "stablehlo.transpose":
                _turn(node)


def _turn(transpose: Node) -> None:
    dot = transpose.operand(0).node
    if dot is None or dot.name != "stablehlo.dot_general" or len(list(dot.result().users)) != 1:
        return
    numbers = mlir.dot_dimension_numbers(dot.raw)
    batch = len(numbers.lhs_batching_dimensions)
    left = len(dot.operand(0).shape) - batch - len(numbers.lhs_contracting_dimensions)
    rank = len(dot.result().shape)
    exchanged = (*range(batch), *range(batch + left, rank), *range(batch, batch + left))
    if transpose.integers("permutation") != exchanged:
        return
    attributes = mlir.turned_dot_attributes(dot.raw)
    if attributes is None:
        return
    build = Builder.before(transpose)
    turned = build.op("stablehlo.dot_general", dot.operands[::-1], [transpose.result().raw.type], attributes)
    transpose.result().raw.replace_all_uses_with(turned.result().raw)
    transpose.raw.erase()
    dot.raw.erase()


def prepare(graph: Graph) -> None:
    """All of it."""
    inline_calls(graph)
    turn_dots(graph)
    batch_rows(graph)
    repeat_cheap(graph)
