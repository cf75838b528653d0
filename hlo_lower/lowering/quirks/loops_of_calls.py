"""Loops whose regions are calls of private functions, for targets that take no others (`RefusedForm.LOOP`).

LiteRT's converter inlines a function into a loop and then writes no loop that holds more than a call; a function that
is marked `no_inline` stays one.
"""

from collections.abc import Sequence
from dataclasses import replace

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ops.names import CONSTANT, WHILE

CALL = "func.call"
NAME = "hlo_lower_loop"


def call_bodies(graph: Graph) -> bool:
    """Make the condition and the body of each loop private functions, in place, inner loops first.

        while (%i = %0) cond { ... } do { ... }
        ->
        while (%i = %0, %x = %x) cond { call @loop_0_condition(%i, %x) } do { call @loop_0_body(%i, %x) }

    Equal: a call is what its function does. What a region takes from around it is carried as it is; constants are
    repeated.

    Returns:
      Whether there was any loop.
    """
    loops = [raw for raw in mlir.walked(graph.module.operation) if raw.name == WHILE]
    if not loops:
        return False
    names = iter(name for k in range(10 * len(loops)) if f"{(name := f'{NAME}_{k}')}_body" not in graph.functions)
    with mlir.active(graph.context):
        for raw in reversed(loops):  # those within one come after it
            if not is_of_calls(Node(raw)):
                _call(graph, _closed(Node(raw)), next(names))
    graph.forget()
    return True


def in_calls(change: Change) -> Change:
    """What is told of a loop that was left, and then written in calls."""
    if change.outcome is not Outcome.LEFT or change.op != WHILE:
        return change
    became = Code.BECAME("its regions as calls of functions that are not inlined", "", None)
    return replace(change, outcome=Outcome.LOWERED, why=became)


def is_of_calls(node: Node) -> bool:
    """Whether each region of a loop is one call, of what it is given, and a return of what that gives."""
    return node.name == WHILE and all(map(_is_call, node.blocks))


def _is_call(block: Block) -> bool:
    nodes = list(block.nodes)
    if len(nodes) != 2 or nodes[0].name != CALL:
        return False
    return nodes[0].operands == block.arguments and nodes[1].operands == nodes[0].results


def _closed(node: Node) -> Node:
    """A loop whose regions take nothing from around them."""
    taken = _taken(node)
    carried = [v for v in taken if v.node is None or v.node.name != CONSTANT]
    for block in node.blocks:
        first = next(iter(block.nodes))
        build = Builder(mlir.insert_before(first.raw), node.raw.location)
        given: dict[mlir.RawValue, mlir.RawValue] = {}
        for value in taken:
            made = value.node
            if value in carried:
                given[value.raw] = mlir.add_argument(block.raw, value.raw.type, node.raw.location)
            elif made is not None and _is_read(block, value):
                given[value.raw] = build.clone(made, [], [value.raw.type]).result().raw
        for inner in list(block.nodes):
            for raw in mlir.walked(inner.raw):
                for number, operand in enumerate(raw.operands):
                    if operand in given:
                        raw.operands[number] = given[operand]
    if not carried:
        return node
    body = node.blocks[1]
    last = body.terminator
    extra = body.arguments[-len(carried) :]
    Builder.before(last).op(last.name, [*last.operands, *extra], [])
    last.raw.erase()
    build = Builder.before(node)
    operands = [*node.operands, *carried]
    fresh = build.op(WHILE, operands, [v.raw.type for v in operands], mlir.attributes_of(node.raw), regions=2)
    for number, block in enumerate(node.blocks):
        mlir.move_block(block.raw, fresh.raw, number)
    for before, after in zip(node.results, fresh.results, strict=False):
        before.raw.replace_all_uses_with(after.raw)
    node.raw.erase()
    return fresh


def _taken(node: Node) -> list[Value]:
    """The values that the regions of a node take from around it."""
    inside = mlir.walked(node.raw)
    own = {value for raw in inside for value in mlir.defined_by(raw)} - set(node.raw.results)
    taken = (value for raw in inside[1:] for value in raw.operands if value not in own)
    return [Value(raw) for raw in dict.fromkeys(taken)]


def _is_read(block: Block, value: Value) -> bool:
    return any(operand == value.raw for n in block.nodes for raw in mlir.walked(n.raw) for operand in raw.operands)


def _call(graph: Graph, node: Node, name: str) -> None:
    """Move the regions of a loop into functions, and call them."""
    for number, what in enumerate(("condition", "body")):
        block = node.blocks[number]
        types = [value.raw.type for value in block.arguments]
        gives = [value.raw.type for value in block.terminator.operands]
        function = _declared(graph, node, f"{name}_{what}", types, gives)
        mlir.move_block(block.raw, function.node.raw, 0)
        last = block.terminator
        Builder.before(last).op("func.return", list(last.operands), [])
        last.raw.erase()
        build = Builder.before(node)
        symbol = mlir.symbol_attribute(f"{name}_{what}")

        def body(
            inner: Builder,
            given: tuple[Value, ...],
            gives: Sequence[mlir.RawType] = gives,
            symbol: mlir.RawAttribute = symbol,
        ) -> Sequence[Value]:
            return inner.op(CALL, list(given), list(gives), {"callee": symbol}).results

        build.region(node, number, types, body)


def _declared(
    graph: Graph, node: Node, name: str, types: Sequence[mlir.RawType], gives: Sequence[mlir.RawType]
) -> Function:
    """A private function without a body yet, in front of the one that a node stands in."""
    attributes = {
        "sym_name": mlir.string_attribute(name),
        "sym_visibility": mlir.string_attribute("private"),
        "function_type": mlir.parse_attribute(f"({', '.join(map(str, types))}) -> ({', '.join(map(str, gives))})"),
        "no_inline": mlir.parse_attribute("unit"),
    }
    around = graph.function_of(node).node
    made = Builder(mlir.insert_after(around.raw), node.raw.location).op("func.func", [], [], attributes, regions=1)
    return Function(Node(made.raw))
