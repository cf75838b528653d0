"""The least and the greatest of truths, on a consumer that has these ops for numbers only."""

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops import names
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
