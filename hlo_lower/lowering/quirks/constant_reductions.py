"""Reductions of what constants of one number make, for targets that refuse these (`RefusedForm.ONE_NUMBER`).

IREE's compiler computes what makes the operand within the reduction. Where no tensor is left to read then, it combines
a number once for each vector of elements, not once for each element:

    reduce add of exp(dense<0.5> : tensor<32xf32>)      is 2 exp(0.5) there
"""

from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.ops.names import CONSTANT, REDUCE
from hlo_lower.ops.spec import ELEMENTWISE, RESHAPING

CALL = "func.call"


def reduce_one_number(graph: Graph) -> None:
    """Let a reduction of that form read the first of the numbers, spread again, in place.

        reduce(exp(dense<c>))   ->   reduce(broadcast_in_dim(exp(dense<c>)[0]))

    Equal: elementwise ops make one number of constants of one number each.
    """
    is_one = _OneNumber(graph)
    with mlir.active(graph.context):
        for raw in mlir.walked(graph.module.operation):
            if raw.name == REDUCE and (values := computed_alike(is_one, node := Node(raw))):
                for number, value in enumerate(values):
                    raw.operands[number] = _spread(Builder.before(node), value).raw
    graph.forget()


def computed_alike(is_one: "_OneNumber", node: Node) -> tuple[Value, ...]:
    """What a reduction of two elements or more reads, if each operand is of one number and one is computed; else ()."""
    values = node.operands[: len(node.results)]
    if not node.is_static or prod(values[0].static_shape[d] for d in node.integers("dimensions")) < 2:
        return ()
    return tuple(values) if any(map(_is_computed, values)) and all(map(is_one, values)) else ()


def _is_computed(value: Value) -> bool:
    while value.node is not None and value.node.name in RESHAPING:
        value = value.node.operand(0)
    return value.node is None or value.node.name != CONSTANT


class _OneNumber:
    """Whether a value has one number everywhere, as elementwise ops of such constants have, through calls."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[Value, bool] = {}

    def __call__(self, value: Value) -> bool:
        if value not in self._known:
            self._known[value] = False
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Value) -> bool:
        node = value.node
        if node is None:
            owner = value.block.owner if value.block is not None else None
            if owner is None or owner.name != "func.func" or Function(owner).is_public:
                return False
            calls = self._graph.calls_of(Function(owner).name)
            return bool(calls) and all(self(call.operand(value.number)) for call in calls)
        if node.name == CONSTANT:
            return mlir.is_splat(node.raw)
        if node.name == CALL and (callee := self._graph.functions[node.callee]).has_body:
            return self(callee.body.terminator.operand(value.number))
        return (node.name in ELEMENTWISE or node.name in RESHAPING) and all(map(self, node.operands))


def _spread(build: Builder, value: Value) -> Value:
    shape = value.static_shape
    first = build.slice(value, [0] * len(shape), [min(1, size) for size in shape])
    return build.broadcast(build.reshape(first, ()), shape) if all(shape) else value
