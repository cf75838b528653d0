"""Loops that a consumer rejects: by the constants they begin with, what they overwrite unread, what regions hold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder, rebuilt
from hlo_lower.ir.regions import captured_values, used_by
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ops.names import ADD, COMPARE, CONCATENATE, CONSTANT, CONVERT, GATHER, RESHAPE, SLICE, WHILE
from hlo_lower.ops.origins import CALL
from hlo_lower.ops.purity import Functional
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, Rules, module, over_each

# --- what a loop carries ---

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
                made.update(dict.fromkeys(node.results, _union(of(value) for value in used_by(node))))
        return tuple(of(value) for value in block.terminator.operands)

    def _by_function(self, function: Function) -> tuple[Numbers, ...]:
        if function.name not in self._called:
            self._called[function.name] = self.by(function.body)
        return self._called[function.name]


def _union(parts: Iterable[Numbers]) -> Numbers:
    joined = frozenset[int]()
    for part in parts:
        if part is None:
            return None
        joined |= part
    return joined


@over_each(WHILE)
def read_overwritten(graph: Graph, loop: Node) -> None:
    """Let the body of a loop of that form choose between the new value and the old one by the condition, in place.

        while (%x = %a) cond { p(%x) } do { return %n }
        ->
        while (%x = %a) cond { p(%x) } do { return select(p(%x), %n, %x) }

    Equal: the body runs only where the condition holds of what it is given, and that has no effect.
    """
    if (numbers := overwritten(graph, loop)) and Functional(graph)(loop):
        _choose(loop, numbers)


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
    [is_running] = build.inline(condition, body.arguments)
    for number in numbers:
        old, new = body.arguments[number], last.operand(number)
        last.raw.operands[number] = build.select(is_running, new, old).raw


MOST_STEPS = 2_000
"""Values that one is found to be made of; beyond that it is not known."""


@over_each(WHILE)
def hide_starts(graph: Graph, loop: Node) -> None:
    """Let a loop of that form begin and go on with the same numbers, written so that they are not known, in place.

        while (%a = %zero)   ->   %z = gather %zero[None, None], [[0, 0]]   while (%a = %z)

    Equal: the one window that is gathered is all of the operand. The converter computes a gather by two dims nowhere.
    """
    starts, returned = known_too_long(graph, loop)
    _hide(loop, starts)
    _hide(loop.blocks[1].terminator, returned)


def known_too_long(graph: Graph, loop: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which values that a loop carries are known only until another one is forgotten, and which its body makes known.

    Returns:
      Numbers of those that are to be hidden where the loop begins (those that begin as another one does among them),
      and of those where its body ends: also of those whose elements have names, which are others each time.
    """
    body, read = loop.blocks[1], _made_of(graph).by(loop.blocks[1])
    known = {number for number, value in enumerate(loop.operands) if _is_known(graph, value)}
    same = {number for number in range(len(read)) if body.terminator.operand(number) == body.argument(number)}
    once = [(number, of) for number, of in enumerate(read) if of is not None and of <= known and number not in same]
    starts = {number for number, of in once if number in known and not of <= same | {number}}
    starts |= {number for number, value in enumerate(loop.operands) if value in loop.operands[:number]}
    ends = {number for number, of in once if of <= same}
    ends |= {number for number, value in enumerate(body.terminator.operands) if _is_named(graph, value)}
    return tuple(sorted(starts)), tuple(sorted(ends))


MOST_NAMED = 10
"""Elements of a part of a concatenation; beyond that the converter names none of the whole."""

NAMING = frozenset({RESHAPE, SLICE, CONVERT})
"""Ops whose results keep the names of the elements of their operand."""


def _is_named(graph: Graph, value: Value) -> bool:
    """Whether the converter names each element of a value, which is new: a concatenation of small parts, moved."""
    node = value.node
    if node is None:
        return False
    if node.name == CALL and (callee := graph.functions[node.callee]).has_body:
        return _is_named(graph, callee.body.terminator.operand(node.results.index(value)))
    if node.name in NAMING:
        return _is_named(graph, node.operand(0))
    if node.name != CONCATENATE:
        return False
    return all(
        prod(part.static_shape) <= MOST_NAMED or _is_known(graph, part) or _is_named(graph, part)
        for part in node.operands
    )


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
        if len(seen) > MOST_STEPS or (node is not None and (node.has_regions or node.name == CALL or _is_hidden(node))):
            return False
        if node is not None:
            wanted += node.operands
        elif (given := _given_for(graph, one)) is None:
            return False
        else:
            wanted.append(given)
    return True


def _is_hidden(node: Node) -> bool:
    """Whether the converter does not compute a node, though it may be made of constants."""
    return node.name == GATHER and len(mlir.gather_dimension_numbers(node.raw).start_index_map) > 1


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


# --- regions that are calls ---

NAME = "hlo_lower_loop"


def call_bodies(graph: Graph) -> bool:
    """Make the condition and the body of each loop private functions, in place, inner loops first.

        while (%i = %0) cond { ... } do { ... }
        ->
        while (%i = %0, %x = %x) cond { call @loop_0_condition(%i, %x) } do { call @loop_0_body(%i, %x) }

    Equal: a call is what its function does. What a region takes from around it is carried as it is; constants are
    repeated.

    Returns:
      Whether there was any loop.
    """
    loops = [raw for raw in mlir.operations_within(graph.module.operation) if raw.name == WHILE]
    if not loops:
        return False
    names = iter(name for k in range(10 * len(loops)) if f"{(name := f'{NAME}_{k}')}_body" not in graph.functions)
    with mlir.active(graph.context):
        for raw in reversed(loops):  # those within one come after it
            if not is_of_calls(Node(raw)):
                _call(graph, _isolate_loop(Node(raw)), next(names))
    graph.forget()
    return True


def in_calls(change: Change) -> Change:
    """What is told of a loop that was left, and then written in calls."""
    if change.outcome is not Outcome.LEFT or change.op != WHILE:
        return change
    became = Code.BECAME("its regions as calls of functions that are not inlined", "", None)
    return replace(change, outcome=Outcome.LOWERED, why=became)


def is_of_calls(node: Node) -> bool:
    """Whether each region of a loop is one call, of what it is given, and a return of what that gives."""
    return node.name == WHILE and all(map(_is_call, node.blocks))


def _is_call(block: Block) -> bool:
    nodes = list(block.nodes)
    if len(nodes) != 2 or nodes[0].name != CALL:
        return False
    return nodes[0].operands == block.arguments and nodes[1].operands == nodes[0].results


def _isolate_loop(node: Node) -> Node:
    """Rewrite a loop so that its regions capture nothing."""
    taken = captured_values(*node.blocks)
    carried = [v for v in taken if v.node is None or v.node.name != CONSTANT]
    for block in node.blocks:
        first = next(iter(block.nodes))
        build = Builder(mlir.insert_before(first.raw), node.raw.location)
        given: dict[mlir.RawValue, mlir.RawValue] = {}
        for value in taken:
            made = value.node
            if value in carried:
                given[value.raw] = mlir.add_argument(block.raw, value.raw.type, node.raw.location)
            elif made is not None and _is_read(block, value):
                given[value.raw] = build.clone(made, [], [value.raw.type]).result().raw
        for inner in list(block.nodes):
            for raw in mlir.operations_within(inner.raw):
                for number, operand in enumerate(raw.operands):
                    if operand in given:
                        raw.operands[number] = given[operand]
    if not carried:
        return node
    body = node.blocks[1]
    last = body.terminator
    extra = body.arguments[-len(carried) :]
    Builder.before(last).op(last.name, [*last.operands, *extra], [])
    last.raw.erase()
    operands = [*node.operands, *carried]
    return rebuilt(node, operands, [v.raw.type for v in operands])


def _is_read(block: Block, value: Value) -> bool:
    return any(
        operand == value.raw for n in block.nodes for raw in mlir.operations_within(n.raw) for operand in raw.operands
    )


def _call(graph: Graph, node: Node, name: str) -> None:
    """Move the regions of a loop into functions, and call them."""
    for number, what in enumerate(("condition", "body")):
        block = node.blocks[number]
        types = [value.raw.type for value in block.arguments]
        gives = [value.raw.type for value in block.terminator.operands]
        function = _declare_function(graph, node, f"{name}_{what}", types, gives)
        mlir.move_block(block.raw, function.node.raw, 0)
        last = block.terminator
        Builder.before(last).op("func.return", list(last.operands), [])
        last.raw.erase()
        build = Builder.before(node)
        symbol = mlir.symbol_attribute(f"{name}_{what}")

        def body(
            inner: Builder,
            given: tuple[Value, ...],
            gives: Sequence[mlir.RawType] = gives,
            symbol: mlir.RawAttribute = symbol,
        ) -> Sequence[Value]:
            return inner.op(CALL, list(given), list(gives), {"callee": symbol}).results

        build.region(node, number, types, body)


def _declare_function(
    graph: Graph, node: Node, name: str, types: Sequence[mlir.RawType], gives: Sequence[mlir.RawType]
) -> Function:
    """A private function without a body yet, in front of the one that a node stands in."""
    attributes = {
        "sym_name": mlir.string_attribute(name),
        "sym_visibility": mlir.string_attribute("private"),
        "function_type": mlir.parse_attribute(f"({', '.join(map(str, types))}) -> ({', '.join(map(str, gives))})"),
        "no_inline": mlir.parse_attribute("unit"),
    }
    around = graph.function_of(node).node
    made = Builder(mlir.insert_after(around.raw), node.raw.location).op("func.func", [], [], attributes, regions=1)
    return Function(Node(made.raw))


F, C = "tensor<f32>", "tensor<i32>"


def _loop(step: str, returned: str, starts: tuple[str, str], most: str = "%n") -> str:
    """A loop that counts, and carries two numbers."""
    return module(
        f"%x: {F}, %y: {F}, %n: {C}",
        F,
        f"%zero = stablehlo.constant dense<0.0> : {F}",
        f"%three = stablehlo.constant dense<3> : {C}",
        f"%c = stablehlo.constant dense<0> : {C}",
        f"%k, %s, %r = stablehlo.while(%i = %c, %a = {starts[0]}, %b = {starts[1]}) : {C}, {F}, {F}",
        "cond {",
        f"  %p = stablehlo.compare LT, %i, {most} : ({C}, {C}) -> tensor<i1>",
        "  stablehlo.return %p : tensor<i1>",
        "} do {",
        f"  %one = stablehlo.constant dense<1> : {C}",
        f"  %j = stablehlo.add %i, %one : {C}",
        f"  %t = stablehlo.{step} : {F}",
        f"  stablehlo.return %j, {returned} : {C}, {F}, {F}",
        "}",
    )


STARTS = Quirk(
    "while from constants",
    (WHILE,),
    {"coreml": "its converter treats the loop's values as constants for too long, and ends in an error"},
    "the same numbers through a `gather`",
    _loop("add %a, %x", "%t, %a", ("%zero", "%zero"), "%three"),
    lambda graph, node: any(known_too_long(graph, node)),
    (Rewrite("hide-starts", "hides the constants that loops begin with", hide_starts),),
    is_reported=False,
)

OVERWRITTEN = Quirk(
    "while overwriting a value unread",
    (WHILE,),
    {"iree": "its compiler rejects what it makes of most of them"},
    "a `select` by the condition between the new value and the old one",
    module(
        f"%x: {F}, %y: {F}, %n: {F}",
        F,
        f"%one = stablehlo.constant dense<1.0> : {F}",
        f"%s, %r = stablehlo.while(%a = %x, %b = %y) : {F}, {F}",
        "cond {",
        f"  %p = stablehlo.compare LT, %a, %n : ({F}, {F}) -> tensor<i1>",
        "  stablehlo.return %p : tensor<i1>",
        "} do {",
        f"  %t = stablehlo.add %a, %one : {F}",
        f"  stablehlo.return %t, %a : {F}, {F}",
        "}",
    ),
    lambda graph, node: bool(overwritten(graph, node)),
    (Rewrite("read-overwritten", "lets loops read what they overwrite", read_overwritten),),
    is_reported=False,
)

LOOP = Quirk(
    "while not of calls",
    (WHILE,),
    {"litert": "it inlines functions into a loop, and then writes no loop that holds more than a call"},
    "a loop whose bodies call private functions marked `no_inline`; it is accepted although `while` is rejected",
    _loop("add %a, %b", "%t, %b", ("%x", "%y")),
    lambda _graph, node: not is_of_calls(node),
    (Rewrite("call-loops", "writes loop bodies as calls", call_bodies, Place.LAST, in_calls),),
    is_anywhere=True,
    is_exception=True,
)

# --- what a loop passes on, trip by trip ---

MOST_TRIPS, MOST_OPS = 8, 200
"""A loop of so many trips at most, of so many ops each, is short."""


def _argument_behind(graph: Graph, body: Block, value: Value) -> int | None:
    """The number of the argument of a block that a value is, also through functions; None where it is none."""
    while (made := value.node) is not None:
        if made.name != CALL or not (callee := graph.functions[made.callee]).has_body:
            return None
        number = _argument_behind(graph, callee.body, callee.body.terminator.operand(value.number))
        if number is None:
            return None
        value = made.operand(number)
    return value.number if value.block == body else None


def _passes_on(graph: Graph, body: Block) -> bool:
    """Whether a body gives an array that it is given back in another place."""
    found = [_argument_behind(graph, body, value) for value in body.terminator.operands]
    return any(number not in (None, place) and bool(body.argument(place).shape) for place, number in enumerate(found))


def _is_short(graph: Graph, loop: Node) -> bool:
    """Whether a loop counts from one constant to another, near one, and no trip has loops or branches."""
    condition, body = loop.blocks
    compared = condition.terminator.operand(0).node
    if compared is None or compared.name != COMPARE or "LT" not in str(compared.attribute("comparison_direction")):
        return False
    counter, last = compared.operands
    if counter.node is not None or counter.block != condition:
        return False
    first, most = loop.operand(counter.number).integer, last.integer
    added = body.terminator.operand(counter.number).node
    if first is None or most is None or added is None or added.name != ADD or added.operand(1).integer != 1:
        return False
    inner = [*body.nodes, *(node for call in body.nodes if call.name == CALL for node in _of_call(graph, call))]
    is_flat = not any(node.has_regions for node in inner) and len(inner) <= MOST_OPS
    return added.operand(0) == body.argument(counter.number) and most - first <= MOST_TRIPS and is_flat


def _of_call(graph: Graph, call: Node) -> Iterable[Node]:
    callee = graph.functions[call.callee]
    return callee.body.nodes if callee.has_body else ()


V = "tensor<4xi32>"

IN_TURN = Quirk(
    "short while passing values on",
    (WHILE,),
    {"iree": "of values in one buffer that it passes on it may lose one: an error in the run, or wrong numbers"},
    "its trips one after the other",
    module(
        f"%x: {V}, %y: {V}",
        V,
        f"%c = stablehlo.constant dense<0> : {C}",
        f"%three = stablehlo.constant dense<3> : {C}",
        f"%k, %s, %r = stablehlo.while(%i = %c, %a = %x, %b = %y) : {C}, {V}, {V}",
        "cond {",
        f"  %p = stablehlo.compare LT, %i, %three : ({C}, {C}) -> tensor<i1>",
        "  stablehlo.return %p : tensor<i1>",
        "} do {",
        f"  %one = stablehlo.constant dense<1> : {C}",
        f"  %j = stablehlo.add %i, %one : {C}",
        f"  %t = stablehlo.add %a, %b : {V}",
        f"  stablehlo.return %j, %t, %a : {C}, {V}, {V}",
        "}",
    ),
    lambda graph, node: _is_short(graph, node) and _passes_on(graph, node.blocks[1]),
    (Rules("control flow", ("while_to_trips",)),),
)
