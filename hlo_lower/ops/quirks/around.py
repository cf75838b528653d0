"""Reshapes that stand around the loop or branch that reads them."""

from collections.abc import Iterator
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.names import BROADCAST_IN_DIM, CASE, IF, RESHAPE, WHILE
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, module, over_each, read_reshaped


def _reshaped(value: Value) -> Value | None:
    """What a value is a reshape of, or a broadcast along dims of one element."""
    made = value.node
    if made is None or made.name not in (RESHAPE, BROADCAST_IN_DIM) or not made.is_static:
        return None
    source, dims = made.operand(0), made.integers("broadcast_dimensions") if made.name == BROADCAST_IN_DIM else ()
    is_same = prod(source.static_shape) == prod(value.static_shape) and list(dims) == sorted(dims)
    return source if is_same else None


def _kept(loop: Node) -> Iterator[int]:
    """Which values a loop hands on as they are, and are reshapes before it."""
    body = loop.blocks[-1]
    for number, value in enumerate(loop.operands):
        if body.terminator.operand(number) == body.argument(number) and _reshaped(value) is not None:
            yield number


def _read(block: Block) -> list[tuple[Node, int]]:
    """Where ops of a block read a reshape that stands around it."""
    nodes = list(block.nodes)
    own = {value for node in nodes for value in node.results}
    reads = [(node, number, value) for node in nodes for number, value in enumerate(node.operands)]
    return [(node, number) for node, number, value in reads if value not in own and _reshaped(value) is not None]


@over_each(WHILE, CASE, IF)
def reshape_within(_graph: Graph, node: Node) -> None:
    """Reshape within a loop or branch what was reshaped around it, in place.

        %y = reshape %x; while (%c = %y) { f(%c) }   ->   while (%c = %x) { f(reshape %c) }

    Equal: what a loop hands on as it is has one value in all of its iterations, and so has what stands around a branch.
    """
    while node.name == WHILE and (numbers := list(_kept(node))):
        for number in numbers:
            _carry_source(node, number)
    for block in node.blocks:
        while reads := _read(block):
            for reader, number in reads:
                source, before = _reshaped(reader.operand(number)), reader.operand(number).raw.type
                assert source is not None
                reader.raw.operands[number] = Builder.before(reader).op(RESHAPE, [source], [before]).result().raw


def _carry_source(loop: Node, number: int) -> None:
    source = _reshaped(loop.operand(number))
    assert source is not None
    for block in loop.blocks:
        start = Builder(mlir.insert_at_begin(block.raw), loop.raw.location)
        read_reshaped(start, block.argument(number), source.raw.type)
    body, result = loop.blocks[-1], loop.result(number)
    body.terminator.raw.operands[number] = body.argument(number).raw
    loop.raw.operands[number] = source.raw
    read_reshaped(Builder(mlir.insert_after(loop.raw), loop.raw.location), result, source.raw.type)


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
    lambda _graph, node: any(map(_read, node.blocks)) or (node.name == WHILE and any(True for _ in _kept(node))),
    (Rewrite("reshape-within", "reshapes within loops and branches", reshape_within),),
    is_anywhere=True,
)
