"""Loops that carry what a target refuses: constants that become one another, and values overwritten unread."""

from collections.abc import Callable, Iterable
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ops.names import WHILE
from hlo_lower.ops.purity import Functional

CALL = "func.call"

Numbers = frozenset[int] | None


class MadeOf:
    """What the results of blocks are made of: numbers of the block's arguments; None where that is not known.

    Attributes:
      graph: the module.
      around: what a value from around a block counts as.
    """

    def __init__(self, graph: Graph, around: Callable[[Value], Numbers]) -> None:
        self._graph, self._around = graph, around
        self._called: dict[str, tuple[Numbers, ...]] = {}

    def by(self, block: Block) -> tuple[Numbers, ...]:
        """For each value that a block returns."""
        made: dict[Value, Numbers] = {value: frozenset({number}) for number, value in enumerate(block.arguments)}

        def of(value: Value) -> Numbers:
            return made[value] if value in made else self._around(value)

        for node in block.nodes:
            if node.name == CALL and (callee := self._graph.functions[node.callee]).has_body:
                given = [of(value) for value in node.operands]
                inner = self._by_function(callee)
                found = [None if read is None else _union(given[number] for number in read) for read in inner]
                made.update(zip(node.results, found, strict=True))
            else:
                made.update(dict.fromkeys(node.results, _union(of(value) for value in all_read(node))))
        return tuple(of(value) for value in block.terminator.operands)

    def _by_function(self, function: Function) -> tuple[Numbers, ...]:
        if function.name not in self._called:
            self._called[function.name] = self.by(function.body)
        return self._called[function.name]


def all_read(node: Node) -> list[Value]:
    """What a node reads, from around its regions too."""
    if not node.has_regions:
        return list(node.operands)
    walked = [Node(raw) for raw in mlir.walked(node.raw)]
    own = {value for inner in walked for value in inner.results}
    own |= {argument for inner in walked if inner.has_regions for block in inner.blocks for argument in block.arguments}
    return [value for inner in walked for value in inner.operands if value not in own]


def _union(parts: Iterable[Numbers]) -> Numbers:
    joined = frozenset[int]()
    for part in parts:
        if part is None:
            return None
        joined |= part
    return joined


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
