"""Loops that overwrite a value without reading it, for targets that refuse these (`RefusedForm.OVERWRITTEN`).

IREE's compiler lets the condition of a loop hand on only those values that are read after it, and then takes what the
body begins with to be as many. They are not where the body does not read a value that the condition reads, or that is
read after the loop:

    while sin(x) < 0.5: i, x = i + 1, f(i)        of the old x only the condition, or what comes after the loop, knows
"""

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.quirks.made_of import MadeOf
from hlo_lower.ops.names import WHILE
from hlo_lower.ops.purity import Functional


def read_overwritten(graph: Graph) -> None:
    """Let the body of a loop of that form choose between the new value and the old one by the condition, in place.

        while (%x = %a) cond { p(%x) } do { return %n }
        ->
        while (%x = %a) cond { p(%x) } do { return select(p(%x), %n, %x) }

    Equal: the body runs only where the condition holds of what it is given, and that has no effect.
    """
    is_functional = Functional(graph)
    with mlir.active(graph.context):
        for raw in mlir.walked(graph.module.operation):
            if raw.name == WHILE and (numbers := overwritten(graph, loop := Node(raw))) and is_functional(loop):
                _choose(loop, numbers)
    graph.forget()


def overwritten(graph: Graph, loop: Node) -> tuple[int, ...]:
    """Which values that a loop carries are read by its condition or after it, and not by its body.

    What the body computes for nothing does not count as read; a value that it returns as it was given is kept.
    """
    condition, body = loop.blocks
    made_of = MadeOf(graph, lambda _value: frozenset())
    [judged], made = made_of.by(condition), made_of.by(body)
    after = {number for number, value in enumerate(loop.results) if value.is_used}
    needed, read = after | set(judged or ()), set[int]()
    pending = list(needed)
    while pending:
        found = made[pending.pop()] or frozenset()
        read |= found
        pending += found - needed
        needed |= found
    return tuple(sorted(number for number in needed - read if loop.operand(number).is_tensor))


def _choose(loop: Node, numbers: tuple[int, ...]) -> None:
    condition, body = loop.blocks
    last = body.terminator
    build = Builder.before(last)
    [is_running] = build.inline_before(last, condition, body.arguments)
    for number in numbers:
        old, new = body.arguments[number], last.operand(number)
        last.raw.operands[number] = build.select(is_running, new, old).raw
