"""Where the elements of a value come from, where an operation only moves them: through regions, calls and loops."""

from collections.abc import Mapping, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.lowering.integers64.width_roles import MOVED
from hlo_lower.lowering.plain.custom_call import NOTES
from hlo_lower.ops import names
from hlo_lower.ops.spec import CONTROL, WITH_BODY

FOLDING = frozenset({names.REDUCE, names.REDUCE_WINDOW})
COLLECTIVE = frozenset({names.ALL_REDUCE, names.REDUCE_SCATTER})
BRANCHING = frozenset({names.CASE, names.IF})
WITH_REGIONS = WITH_BODY | CONTROL | {"sdy.manual_computation"}
"""Operations whose regions' arguments and results are known."""


class MovedSources:
    """The sources of values of one graph.

    Args:
      graph: the module.
      callers: for each function the nodes that call it or, as composites, name it.
    """

    def __init__(self, graph: Graph, callers: Mapping[str, Sequence[Node]]) -> None:
        self._functions = graph.functions
        self._callers = callers

    def of(self, value: Value) -> list[Value] | None:
        """The values whose elements a value consists of; None where it is computed, or given from outside."""
        node = value.node
        if node is None:
            block = value.block
            return None if block is None else self._of_argument(block, value.number)
        return self._of_result(node, value.number)

    def _of_result(self, node: Node, number: int) -> list[Value] | None:
        name = node.name
        if name in MOVED:
            return [node.operand(i) for i in MOVED[name]] if number == 0 else None
        if name == names.CONCATENATE:
            return list(node.operands)
        if name in (names.OPTIMIZATION_BARRIER, names.SORT):
            return [node.operand(number)]
        if name == names.CUSTOM_CALL:
            return [node.operand(number)] if mlir.call_target(node.raw) in NOTES else None
        if node.body_name:
            function = self._functions.get(node.body_name)
            return None if function is None or not function.has_body else [function.body.terminator.operand(number)]
        if name not in WITH_REGIONS:
            return None
        if name in BRANCHING:
            return [block.terminator.operand(number) for block in node.blocks]
        if name == names.WHILE:
            return [node.operand(number), node.blocks[1].terminator.operand(number)]
        returned = node.blocks[-1].terminator.operand(number)
        count = len(node.results)
        if name in FOLDING:
            return [node.operand(number), node.operand(count + number), returned]
        if name == names.SELECT_AND_SCATTER:
            return [node.operand(2), returned]
        if name in (names.MAP, "sdy.manual_computation"):
            return [returned]
        return [node.operand(number), returned]  # a scatter, a collective reduction

    def _of_argument(self, block: Block, number: int) -> list[Value] | None:
        owner = block.owner
        name = owner.name
        if name == "func.func":
            function = Function(owner)
            callers = self._callers.get(function.name, ())
            return None if function.is_public else [call.operand(number) for call in callers]
        if name == names.WHILE:
            return [owner.operand(number), owner.blocks[1].terminator.operand(number)]
        if name == names.SORT:
            return [owner.operand(number // 2)]
        if name in (names.MAP, "sdy.manual_computation"):
            return [owner.operand(number)]
        if name == names.SELECT_AND_SCATTER:
            if block == owner.blocks[0]:
                return [owner.operand(0)]
            return [owner.operand(1), owner.operand(2), block.terminator.operand(0)]
        count = len(owner.results)
        k = number % count
        returned = block.terminator.operand(k)
        if name in FOLDING:
            return [owner.operand(k), owner.operand(count + k), returned]
        if name == names.SCATTER:
            return [owner.operand(k), returned] if number < count else [owner.operand(count + 1 + k)]
        return [owner.operand(k), returned] if name in COLLECTIVE else None
