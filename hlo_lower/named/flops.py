"""How many floating-point operations an op computes: a product and a sum count one each, as does any other element."""

from collections import Counter
from collections.abc import Iterator
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Function, Graph, Node
from hlo_lower.named.take_out.listing import Listing
from hlo_lower.ops import names
from hlo_lower.ops.spec import CONSTANTS, MOVES, Role, ops_with

_CHOOSING = frozenset(
    {names.SELECT, names.COMPARE, names.CONVERT, names.SCATTER, names.AND, names.OR, names.NOT, names.XOR}
)

_NONE = MOVES | CONSTANTS | ops_with(role=Role.ENDS) | ops_with(role=Role.TUPLES) | _CHOOSING
"""Ops that move and choose."""


class Flops:
    """Counts the operations of ops of a module; each function, and each kind of op of a listed block, once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._functions: dict[str, int] = {}

    def of_function(self, function: Function, listing: Listing | None = None) -> int:
        """Those of a function with a body, by the kinds of its ops where its listing is known."""
        name = function.name
        if name not in self._functions:
            self._functions[name] = sum(self._of_block(function.body, listing))
        return self._functions[name]

    def _of_block(self, block: Block, listing: Listing | None) -> Iterator[int]:
        if listing is None:
            yield from map(self.of, block.nodes)
            return
        counts = Counter(listing.kinds)
        for kind, operation in zip(listing.kinds, listing.operations, strict=True):
            if times := counts.pop(kind, 0):
                yield times * self.of(Node(operation))

    def of(self, node: Node) -> int:
        """Those of one op on static shapes, with what it calls and its regions; 0 of a dynamic shape. A loop counts
        as one trip."""
        if node.body_name:
            function = self._graph.functions.get(node.body_name)
            return 0 if function is None or not function.has_body else self.of_function(function)
        if node.name in _NONE or not node.is_static:
            return 0
        if node.name == names.DOT_GENERAL:
            contracted = mlir.dot_dimension_numbers(node.raw).lhs_contracting_dimensions
            shape = node.operand(0).static_shape
            return 2 * prod(node.result().static_shape) * prod(shape[int(d)] for d in contracted)
        if node.name in (names.REDUCE, names.SORT):
            return prod(node.operand(0).static_shape)
        if node.name in (names.WHILE, names.CASE, names.IF):
            return sum(self.of(inner) for block in node.blocks for inner in block.nodes)
        if not node.raw.results or not node.result().is_tensor or not node.result().element.is_float:
            return 0
        return prod(node.result().static_shape)
