"""What a loop carries: values that it no longer needs go, and values that cost nothing are made in its body."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from hlo_lower.facts.memory.dataflow import cheap_values, size_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import used_by
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.linalg.loops import move_nodes, replace_all
from hlo_lower.ops.names import RETURN, WHILE
from hlo_lower.ops.purity import Functional
from hlo_lower.tile.prepare.normalize import REPEATED


def change_carried(loop: Node, dropped: Collection[int], added: Sequence[Value]) -> Node:
    """Replace a loop by one that carries other values; its operations are moved, not copied.

    Nothing but the terminators reads the `dropped` positions, inside and behind the loop; the body returns `added`
    values from around it as they are: its last arguments.
    """
    build = Builder.before(loop)
    kept = [number for number in range(len(loop.operands)) if number not in dropped]
    initial = [*(loop.operand(number) for number in kept), *added]
    types = [value.raw.type for value in initial]
    new = build.op(WHILE, initial, types, mlir.attributes_of(loop.raw), regions=2)
    for region, old in enumerate(loop.blocks):
        block = Block(mlir.append_block(new.raw, region, types, loop.raw.location))
        replace_all([old.argument(number) for number in kept], block.arguments[: len(kept)])
        returned = move_nodes(old, block)
        if region:
            returned = (*(returned[number] for number in kept), *block.arguments[len(kept) :])
        build.at_end(block).op(RETURN, returned, [])
    replace_all([loop.result(number) for number in kept], new.results[: len(kept)])
    loop.raw.erase()
    return new


def is_kept(loop: Node, number: int) -> bool:
    """Whether the body of a loop returns a carried value as it is."""
    body = loop.blocks[1]
    return body.terminator.operand(number) == body.argument(number)


def sink_cheap(loop: Node) -> Node:
    """Make cheap values (`cheap_values`) of at least `REPEATED` bytes, which a loop takes and leaves as they are, in
    its body, but those that its condition reads; the loop, or the one in its place."""
    around = list(Block(mlir.block_of(loop.raw)).nodes)
    cheap = cheap_values(around)
    places = [n for n, value in enumerate(loop.operands) if value in cheap and size_of(value) >= REPEATED]
    places = [n for n in places if is_kept(loop, n) and not loop.blocks[0].argument(n).is_used]
    if not places:
        return loop
    nodes, leaves = _made_of([loop.operand(n) for n in places], cheap)
    made = [node for node in around if node in nodes]
    before = [loop.operand(n) for n in places]
    for number, value in zip(places, before, strict=True):
        loop.result(number).raw.replace_all_uses_with(value.raw)
    count = len(loop.operands)
    loop = change_carried(loop, (), leaves)
    body = loop.blocks[1]
    first = next(body.nodes)
    build = Builder.before(first)
    known = dict(zip(leaves, body.arguments[count:], strict=True))
    for node in made:
        known.update(zip(node.results, build.copy(node, known).results, strict=True))
    for number, value in zip(places, before, strict=True):
        body.argument(number).raw.replace_all_uses_with(known[value].raw)
        body.terminator.raw.operands[number] = body.argument(number).raw
    loop = change_carried(loop, places, ())
    for node in reversed(made):
        if not any(value.is_used for value in node.results):
            node.raw.erase()
    return loop


def _made_of(values: list[Value], cheap: set[Value]) -> tuple[set[Node], list[Value]]:
    """The cheap nodes that values are computed by, and what else these read."""
    nodes: dict[Node, None] = {}
    leaves: dict[Value, None] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if value not in cheap:
            leaves[value] = None
        elif value.node is not None and value.node not in nodes:
            nodes[value.node] = None
            pending += value.node.operands
    return set(nodes), list(leaves)


# --- put the nodes of a block into an order in which each stands behind what it takes; else they stay as they stand ---


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
