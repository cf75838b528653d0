"""Values that an `optimization_barrier` holds apart, for a compiler that mixes them up (IREE 3.13).

Each of its faults comes of what is taken together: two values that are one, a value that only a condition reads, values
that are stored in one buffer. A barrier returns its operands; what it gives is a value of its own.
"""

from collections.abc import Iterator, Sequence

from hlo_lower import mlir
from hlo_lower.graph import Builder, Function, Graph, Node, Value
from hlo_lower.refused_forms import RefusedForm
from hlo_lower.targets import Target

BARRIER, SCATTER, WHILE = "stablehlo.optimization_barrier", "stablehlo.scatter", "stablehlo.while"


def hold_apart(graph: Graph, target: Target) -> None:
    """Let values go through a barrier where they stand in a form that the target refuses, in place.

        scatter(%x, %i, %x)                      ->   %y = barrier %x   scatter(%x, %i, %y)
        while (%f) { %f } do { return %g }       ->   ... do { %h, _ = barrier %g, %f   return %h }
        while (%a, %b) do { while (%a, %b) }     ->   ... do { %c, %d = barrier %a, %b   while (%c, %d) }

    Equal: a barrier returns its operands. It is looked for by types and places, not by whether two values are equal: a
    compiler finds that out of other ops than these.
    """
    forms = [form for form in _HELD if form.value in target.refused_forms]
    if not forms:
        return
    with mlir.active(graph.context):
        for node in [Node(raw) for raw in mlir.walked(graph.module.operation) if raw.name in (SCATTER, WHILE)]:
            for form in forms:
                _HELD[form](graph, node)
    graph.forget()


def _hold_updates(_: Graph, node: Node) -> None:
    """Hold apart what may be written into itself: updates of the operand's type."""
    inputs = len(node.results)
    if node.name == SCATTER:
        alike = [k for k in range(inputs) if node.operand(k).raw.type == node.operand(inputs + 1 + k).raw.type]
        _hold(node, [inputs + 1 + k for k in alike])


def _hold_conditions(_: Graph, node: Node) -> None:
    """Let the body of a loop read what it carries for the condition alone."""
    if node.name != WHILE:
        return
    condition, body = node.blocks
    alone = [
        number
        for number, result in enumerate(node.results)
        if condition.argument(number).is_used and not body.argument(number).is_used and not result.is_used
    ]
    _hold(body.terminator, alone, [body.argument(number) for number in alone])


def _hold_starts(graph: Graph, node: Node) -> None:
    """Let a loop within another one begin with values of its own where two of them are what that one carries."""
    if node.name != WHILE:
        return
    carried = [number for number, value in enumerate(node.operands) if _is_carried(graph, value, set())]
    if len({node.operand(number) for number in carried}) > 1:
        _hold(node, carried)


_HELD = {
    RefusedForm.INTO_ITSELF: _hold_updates,
    RefusedForm.CONDITION_ALONE: _hold_conditions,
    RefusedForm.CARRIED_ON: _hold_starts,
}


def _is_carried(graph: Graph, value: Value, seen: set[Value]) -> bool:
    """Whether a value is what a loop carries, in its body or where that calls a function with it."""
    if value.block is None or value in seen:
        return False
    seen.add(value)
    owner = value.block.owner
    if owner.name != "func.func":
        return owner.name == WHILE
    calls = () if Function(owner).is_public else graph.calls_of(Function(owner).name)
    return any(_is_carried(graph, call.operand(value.number), seen) for call in calls)


def _hold(node: Node, numbers: Sequence[int], others: Sequence[Value] = ()) -> None:
    """Let a node read operands, those that are tensors, through one barrier, with other values that none reads."""
    held = [number for number in numbers if node.operand(number).is_tensor]
    if not held:
        return
    values = [*(node.operand(number) for number in held), *others]
    barrier = Builder.before(node).op(BARRIER, values, [value.raw.type for value in values])
    for number, result in zip(held, barrier.results, strict=False):
        node.raw.operands[number] = result.raw
