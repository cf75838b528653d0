"""Reshapes that stand around the loop or branch that reads them."""

from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.names import BROADCAST_IN_DIM, CASE, IF, RESHAPE, WHILE
from hlo_lower.ops.quirks.origins import CALL
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, module, over_each, read_reshaped


def _reshaped(value: Value) -> Value | None:
    """What a value is a reshape of, or a broadcast along dims of one element."""
    made = value.node
    if made is None or made.name not in (RESHAPE, BROADCAST_IN_DIM) or not made.is_static:
        return None
    source, dims = made.operand(0), made.integers("broadcast_dimensions") if made.name == BROADCAST_IN_DIM else ()
    is_same = prod(source.static_shape) == prod(value.static_shape) and list(dims) == sorted(dims)
    return source if is_same else None


def _is_reshaped(graph: Graph, value: Value) -> bool:
    """Whether a value is a reshape, also one that a private function returns."""
    returned = _returned(graph, value)
    return _is_reshaped(graph, returned) if returned is not None else _reshaped(value) is not None


def _returned(graph: Graph, value: Value) -> Value | None:
    """What the function returns whose call gives a value, if nothing but calls names it."""
    made = value.node
    if made is None or made.name != CALL:
        return None
    callee = graph.functions[made.callee]
    is_own = callee.has_body and not callee.is_public and not graph.has_other_reference(callee.name)
    return callee.body.terminator.operand(list(made.results).index(value)) if is_own else None


def _kept(graph: Graph, loop: Node) -> list[int]:
    """Which values a loop hands on as they are, and are reshapes before it."""
    body = loop.blocks[-1]
    kept = (k for k, value in enumerate(body.arguments) if body.terminator.operand(k) == value)
    return [number for number in kept if _is_reshaped(graph, loop.operand(number))]


def _read(graph: Graph, block: Block) -> list[tuple[Node, int]]:
    """Where ops of a block read a reshape that stands around it."""
    nodes = list(block.nodes)
    own = {value for node in nodes for value in node.results}
    reads = [(node, number, value) for node in nodes for number, value in enumerate(node.operands)]
    return [(node, number) for node, number, value in reads if value not in own and _is_reshaped(graph, value)]


@over_each(WHILE, CASE, IF)
def reshape_within(graph: Graph, node: Node) -> None:
    """Reshape within a loop or branch what was reshaped around it, in place.

        %y = reshape %x; while (%c = %y) { f(%c) }   ->   while (%c = %x) { f(reshape %c) }

    Equal: what a loop hands on as it is has one value in all of its iterations, and so has what stands around a branch.
    """
    while node.name == WHILE and (numbers := _kept(graph, node)):
        for number in numbers:
            source = _source(graph, node, number)
            for block in node.blocks:
                start = Builder(mlir.insert_at_begin(block.raw), node.raw.location)
                read_reshaped(start, block.argument(number), source.raw.type)
            body = node.blocks[-1]
            body.terminator.raw.operands[number] = body.argument(number).raw
            node.raw.operands[number] = source.raw
            after = Builder(mlir.insert_after(node.raw), node.raw.location)
            read_reshaped(after, node.result(number), source.raw.type)
    for block in node.blocks:
        while reads := _read(graph, block):
            for reader, number in reads:
                before, source = reader.operand(number).raw.type, _source(graph, reader, number)
                reader.raw.operands[number] = Builder.before(reader).op(RESHAPE, [source], [before]).result().raw


def _source(graph: Graph, reader: Node, number: int) -> Value:
    """What an operand is a reshape of; where a function returns that, its callers reshape it from now on, in place."""
    while _returned(graph, reader.operand(number)) is not None:
        given = reader.operand(number).node
        assert given is not None
        function, place = graph.functions[given.callee], list(given.results).index(reader.operand(number))
        source = _source(graph, function.body.terminator, place)
        function.body.terminator.raw.operands[place] = source.raw
        mlir.set_signature(function.node.raw)
        for call in graph.calls_of(function.name):
            after = Builder(mlir.insert_after(call.raw), call.raw.location)
            read_reshaped(after, call.result(place), source.raw.type)
    source = _reshaped(reader.operand(number))
    assert source is not None
    return source


AROUND = Quirk(
    "reshape around the loop or branch that reads it",
    (WHILE, CASE, IF),
    {"coreml": "its converter ends with a `KeyError` where that is reshaped again, and nothing else reads it"},
    "the reshape within",
    module(
        "%x: tensor<2x6xf32>, %n: tensor<i32>",
        "tensor<3x4xf32>",
        "%y = stablehlo.reshape %x : (tensor<2x6xf32>) -> tensor<4x3xf32>",
        '%r = "stablehlo.case"(%n) ({',
        "  %a = stablehlo.reshape %y : (tensor<4x3xf32>) -> tensor<3x4xf32>",
        "  stablehlo.return %a : tensor<3x4xf32>",
        "}, {",
        "  %b = stablehlo.constant dense<0.0> : tensor<3x4xf32>",
        "  stablehlo.return %b : tensor<3x4xf32>",
        "}) : (tensor<i32>) -> tensor<3x4xf32>",
    ),
    lambda graph, node: (
        any(_read(graph, block) for block in node.blocks) or (node.name == WHILE and bool(_kept(graph, node)))
    ),
    (Rewrite("reshape-within", "reshapes within loops and branches", reshape_within),),
    is_anywhere=True,
)
