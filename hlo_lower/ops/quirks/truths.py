"""The least and the greatest of truths, on a consumer that has these ops for numbers only."""

from collections.abc import Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.quirks.moves import comes_of
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, module, over_each

LOGICAL = {names.MINIMUM: names.AND, names.MAXIMUM: names.OR, names.MULTIPLY: names.AND, names.ADD: names.OR}
"""What an op of numbers is of truths, as the specification has it."""


def _is_of_truths(_graph: Graph, node: Node) -> bool:
    return node.result().element_type == "i1"


@over_each(*LOGICAL)
def join_truths(graph: Graph, node: Node) -> None:
    """Take the least of truths for their `and`, the greatest for their `or`; a sum and a product, too.

    Equal: of 0 and 1 they are the same.
    """
    if _is_of_truths(graph, node):
        found = Builder.before(node).op(LOGICAL[node.name], node.operands, [node.result().raw.type]).result()
        node.result().raw.replace_all_uses_with(found.raw)
        node.raw.erase()


V = "tensor<4x6xi1>"

EXTREME = Quirk(
    "minimum or maximum of truths",
    tuple(LOGICAL),
    {"litert": "it takes these ops on numbers only", "coreml": "it takes these ops on numbers only"},
    "`and` or `or`",
    module(
        f"%x: {V}",
        "tensor<4xi1>",
        "%s = stablehlo.constant dense<true> : tensor<i1>",
        f"%r = stablehlo.reduce(%x init: %s) applies stablehlo.minimum across dimensions = [1] : ({V}, tensor<i1>) "
        "-> tensor<4xi1>",
    ),
    _is_of_truths,
    (Rewrite("join-truths", "writes the least of truths as their `and`", join_truths, Place.BEFORE_TYPES),),
    is_anywhere=True,
)

LEAST, MOST = -(2**31), 2**31 - 1
CARRIED = (names.COMPARE, names.SELECT)
"""Ops of a region that finds a place, which are as well of numbers."""


def _is_place_of_truth(_graph: Graph, node: Node) -> bool:
    """Whether truths are reduced beside their places, from a known one at place 0, as compared and selected ones."""
    value, is_pair = node.operand(0), len(node.results) == 2 and node.is_static
    if not is_pair or value.element_type != "i1" or not comes_of(node.operand(1), names.IOTA):
        return False
    start, first = node.operand(2).constant(), node.operand(3).constant()
    if (
        start is None
        or first is None
        or first.any()
        or not prod(value.static_shape[dim] for dim in node.integers("dimensions"))
    ):
        return False
    [body] = node.blocks
    truths = _truths_within(body)
    return body.terminator.operand(0) in truths and all(
        inner.name in CARRIED and (inner.name == names.COMPARE or inner.operand(0) not in truths)
        for inner in [*body.nodes][:-1]
        if any(value in truths for value in inner.operands)
    )


def _truths_within(body: Block) -> set[Value]:
    """The first operand's truths within a region: its arguments, and what is selected of them."""
    found = {body.argument(0), body.argument(len(body.arguments) // 2)}
    for inner in body.nodes:
        if inner.name == names.SELECT and all(value in found for value in [*inner.operands][1:]):
            found.add(inner.result())
    return found


@over_each(names.REDUCE)
def count_truths(graph: Graph, node: Node) -> None:
    """Find the place of the greatest or least truth as that of a number.

        reduce %x, %n, false, 0, argmax   ->   reduce convert(%x) : i32, %n, -2^31, 0, argmax

    Equal: 0 and 1 are in the order of false and true. The start is an end of i32, as consumers know it: where it is not
    chosen, it is none of the elements, and the first of these has its place, 0.
    """
    if not _is_place_of_truth(graph, node):
        return
    build, [body] = Builder.before(node), node.blocks
    truths, start = _truths_within(body), node.operand(2).constant()
    assert start is not None
    end = build.constant(MOST if bool(start) else LEAST, (), "i32")
    operands = [build.convert(node.operand(0), "i32"), node.operand(1), end, node.operand(3)]
    first, second = node.results
    types = [mlir.tensor_type(first.shape, "i32"), second.raw.type]
    made = build.op(node.name, operands, types, mlir.attributes_of(node.raw), regions=1)
    number = mlir.tensor_type((), "i32")
    scalars = [number if value in truths else value.raw.type for value in body.arguments]

    def inside(build: Builder, arguments: Sequence[Value]) -> Sequence[Value]:
        values = dict(zip(body.arguments, arguments, strict=True))
        *nodes, end = body.nodes
        for inner in nodes:
            read = [values[value] for value in inner.operands]
            if inner.name == names.COMPARE and inner.operand(0) in truths:
                direction = str(inner.attribute("comparison_direction")).rstrip(">")[-2:]
                values[inner.result()] = build.compare(read[0], direction, read[1])
            else:
                kept = number if inner.result() in truths else inner.result().raw.type
                values[inner.result()] = build.clone(inner, read, [kept]).result()
        return [values[value] for value in end.operands]

    build.region(made, 0, scalars, inside)
    first.raw.replace_all_uses_with(build.convert(made.result(0), "i1").raw)
    second.raw.replace_all_uses_with(made.result(1).raw)
    node.raw.erase()


PLACE = Quirk(
    "reduce to the place of a truth",
    (names.REDUCE,),
    {"litert": "it knows the place of an extreme number only"},
    "that of numbers",
    module(
        f"%x: {V}",
        "tensor<4xi32>",
        "%n = stablehlo.iota dim = 1 : tensor<4x6xi32>",
        "%i = stablehlo.constant dense<false> : tensor<i1>",
        "%z = stablehlo.constant dense<0> : tensor<i32>",
        "%s, %r = stablehlo.reduce(%x init: %i), (%n init: %z) across dimensions = [1]",
        f"  : ({V}, tensor<4x6xi32>, tensor<i1>, tensor<i32>) -> (tensor<4xi1>, tensor<4xi32>)",
        "  reducer(%a: tensor<i1>, %c: tensor<i1>) (%b: tensor<i32>, %d: tensor<i32>) {",
        "  %g = stablehlo.compare GT, %a, %c : (tensor<i1>, tensor<i1>) -> tensor<i1>",
        "  %e = stablehlo.compare EQ, %a, %c : (tensor<i1>, tensor<i1>) -> tensor<i1>",
        "  %l = stablehlo.compare LT, %b, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  %f = stablehlo.and %e, %l : tensor<i1>",
        "  %p = stablehlo.or %g, %f : tensor<i1>",
        "  %v = stablehlo.select %g, %a, %c : tensor<i1>, tensor<i1>",
        "  %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>",
        "  stablehlo.return %v, %w : tensor<i1>, tensor<i32>",
        "}",
    ),
    _is_place_of_truth,
    (Rewrite("count-truths", "finds places of truths as those of numbers", count_truths, Place.BEFORE_TYPES),),
)


def _given_back(node: Node) -> list[int]:
    """The truths among what a function gives that it is given."""
    return [
        number
        for number, value in enumerate(node.operands)
        if value.node is None and value.is_tensor and value.element_type == "i1"
    ]


@over_each("func.return")
def copy_given(graph: Graph, node: Node) -> None:
    """Return the `and` of a truth with itself in place of a truth that a public function is given.

    Equal: of two truths that are the same one the `and` is that truth.
    """
    if graph.function_of(node).is_public:
        for number in _given_back(node):
            value = node.operand(number)
            node.raw.operands[number] = Builder.before(node).and_(value, value).raw


GIVEN = Quirk(
    "return of truths that are given",
    ("func.return",),
    {"coreml": "its converter has one name for what a program is given and what it gives then, and ends in an error"},
    "the `and` of both",
    module(
        "%x: tensor<4xi1>, %y: tensor<4xi1>",
        "tensor<4xi1>",
        "%r = stablehlo.or %x, %y : tensor<4xi1>",
    ).replace("return %r", "return %x"),
    lambda graph, node: graph.function_of(node).is_public and bool(_given_back(node)),
    (Rewrite("copy-given", "copies truths that a program gives back", copy_given, Place.LAST),),
    is_anywhere=True,
    is_reported=False,
)
