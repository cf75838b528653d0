"""Loops that begin with constants which become one another, for targets that refuse these (`RefusedForm.STARTS`).

Core ML's converter takes for known what a loop begins with, as long as the body gives the same number; what then turns
out to change it forgets, once, and looks again. A value that was known only because another one was is an error then:

    a, b = 0, 0;  while ...: a, b = a + x, a        b is 0 as long as a is known to be; forgotten too late
    a = true;     while ...: a = false              what is forgotten is known again

Of two values that begin as one it takes one for the other where either stays the same.
"""

from collections.abc import Iterable
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.lowering.quirks.made_of import MadeOf
from hlo_lower.ops.names import WHILE

CALL = "func.call"
MOST_STEPS = 2_000
"""Values that one is found to be made of; beyond that it is not known."""


def hide_starts(graph: Graph) -> None:
    """Let a loop of that form begin and go on with the same numbers, written so that they are not known, in place.

        while (%a = %zero)   ->   %z = gather %zero[None, None], [[0, 0]]   while (%a = %z)

    Equal: the one window that is gathered is all of the operand. The converter computes a gather by two dims nowhere.
    """
    with mlir.active(graph.context):
        for raw in mlir.walked(graph.module.operation):
            if raw.name == WHILE:
                starts, returned = known_too_long(graph, Node(raw))
                _hide(Node(raw), starts)
                _hide(Node(raw).blocks[1].terminator, returned)
    graph.forget()


def known_too_long(graph: Graph, loop: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which values that a loop carries are known only until another one is forgotten, and which its body makes known.

    Returns:
      Numbers of those that are to be hidden where the loop begins (those that begin as another one does among them),
      and of those where its body ends.
    """
    body, read = loop.blocks[1], _made_of(graph).by(loop.blocks[1])
    known = {number for number, value in enumerate(loop.operands) if _is_known(graph, value)}
    same = {number for number in range(len(read)) if body.terminator.operand(number) == body.argument(number)}
    once = [(number, of) for number, of in enumerate(read) if of is not None and of <= known and number not in same]
    starts = {number for number, of in once if number in known and not of <= same | {number}}
    starts |= {number for number, value in enumerate(loop.operands) if value in loop.operands[:number]}
    return tuple(sorted(starts)), tuple(number for number, of in once if of <= same)


def _made_of(graph: Graph) -> MadeOf:
    """Of values from around a body only those that may be made of constants change nothing."""
    return MadeOf(graph, lambda value: frozenset() if _is_known(graph, value) else None)


def _is_known(graph: Graph, value: Value) -> bool:
    """Whether a value may be made of constants alone; arguments are what a function or a loop is called with."""
    wanted, seen = [value], set[Value]()
    while wanted:
        one = wanted.pop()
        if one in seen:
            continue
        seen.add(one)
        node = one.node
        if len(seen) > MOST_STEPS or (node is not None and (node.has_regions or node.name == CALL)):
            return False
        if node is not None:
            wanted += node.operands
        elif (given := _given_for(graph, one)) is None:
            return False
        else:
            wanted.append(given)
    return True


def _given_for(graph: Graph, argument: Value) -> Value | None:
    """What an argument stands for at the first call of its function, or in the first trip of its loop."""
    assert argument.block is not None
    owner = argument.block.owner
    if owner.name == WHILE:
        return owner.operand(argument.number)
    calls = graph.calls_of(Function(owner).name) if owner.name == "func.func" and not Function(owner).is_public else ()
    return next((call.operand(argument.number) for call in calls), None)


def _hide(node: Node, numbers: Iterable[int]) -> None:
    """Let a node read the same numbers as the one window of a gather by two dims; one number as the first of two, and
    none, of which nothing is to be known, as they stand."""
    for number in numbers:
        value = node.operand(number)
        build, shape = Builder.before(node), value.static_shape
        count = prod(shape)
        if not count:
            continue
        rows = (
            build.reshape(value, (1, 1, count)) if count > 1 else build.broadcast(build.reshape(value, ()), (1, 1, 2))
        )
        window = build.gather_window(rows, build.constant(0, (2,), "i32"), (0, 1))
        node.raw.operands[number] = build.reshape(build.slice(window, [0], [count]), shape).raw
