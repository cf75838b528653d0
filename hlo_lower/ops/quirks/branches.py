"""Branches that a consumer computes wrongly or rejects: by where they stand, what they read, how many there are."""

from collections import Counter
from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ops.names import CASE, CONSTANT, CONVERT, IF, REDUCE, WHILE
from hlo_lower.ops.origins import CALL
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, Rules, module, over_each
from hlo_lower.ops.spec import CONSTANTS, ELEMENTWISE, LAYOUT

AROUND = (CASE, IF, WHILE)


def _is_inner(graph: Graph, node: Node, seen: set[str] | None = None) -> bool:
    """Whether a branch stands within a loop or a branch, or in a function that is called from one."""
    around = node.parent
    while around is not None and around.name != "func.func":
        if around.name in AROUND:
            return True
        around = around.parent
    seen = set() if seen is None else seen
    if around is None or (name := Function(around).name) in seen:
        return False
    seen.add(name)
    return any(_is_inner(graph, call, seen) for call in graph.calls_of(name))


@over_each(CASE)
def read_once(_graph: Graph, case: Node) -> None:
    """Let each branch of a `case` begin with a copy of each value from around it that it reads twice or more, in place.

        case (%i) { return add(%x, %x) }   ->   case (%i) { %y = convert %x; return add(%y, %y) }

    Equal: a conversion to the type that is there already changes nothing. Constants of a branch count as from around
    it, equal ones as one.
    """
    for block in case.blocks:
        for values in _taken_twice(block):
            _read_once(block, values)


def _taken_twice(block: Block) -> list[list[Value]]:
    """The values from around a block that its own ops, those in regions of them left out, take more than once.

    Equal constants stand in one list.
    """
    nodes = list(block.nodes)
    own = {value for node in nodes if node.name != CONSTANT for value in node.results}
    count = Counter(value for node in nodes for value in node.operands if value not in own)
    alike: dict[object, list[Value]] = {}
    for value in count:
        node = value.node
        is_constant = node is not None and node.name == CONSTANT
        alike.setdefault(node.raw.attributes["value"] if node is not None and is_constant else value, []).append(value)
    return [values for values in alike.values() if sum(count[value] for value in values) > 1]


def _read_once(block: Block, values: Sequence[Value]) -> None:
    first = next(iter(block.nodes))
    build = Builder(mlir.insert_before(first.raw), first.raw.location)
    made = values[0].node
    given = values[0]
    if made is not None and made.name == CONSTANT:
        given = build.clone(made, [], [given.raw.type]).result()
    copy = build.op(CONVERT, [given], [given.raw.type])
    taken = {value.raw for value in values}
    for node in list(block.nodes):
        if node != copy:
            for raw in mlir.operations_within(node.raw):
                for number, operand in enumerate(raw.operands):
                    if operand in taken:
                        raw.operands[number] = copy.result().raw
    for value in values:
        if (node := value.node) is not None and node.name == CONSTANT and not value.is_used:
            node.raw.erase()


@over_each(CASE)
def read_near(_graph: Graph, case: Node) -> None:
    """Let each branch of a `case` read a copy from the block around, where it reads from further out alone, in place.

        case (%i) { case (%j) { negate(%x) } }   ->   case (%i) { %y = convert %x;  case (%j) { negate(%y) } }

    Equal: a conversion to the type that is there already changes nothing.
    """
    for block in case.blocks:
        if (value := _read_far(case, block)) is None:
            continue
        copy = Builder.before(case).op(CONVERT, [value], [value.raw.type]).result()
        for node in block.nodes:
            for number, operand in enumerate(node.operands):
                if operand == value:
                    node.raw.operands[number] = copy.raw


def _read_far(case: Node, block: Block) -> Value | None:
    """The first value that a branch's own ops read, if none that they read is of the block around the case; None where
    one is, or where the branch begins with an op that reads nothing."""
    nodes, around = list(block.nodes), mlir.block_of(case.raw)
    own = {value for node in nodes for value in node.results}
    read = [value for node in nodes for value in node.operands if value not in own]
    if not nodes[0].operands or any(_home(value) == around for value in read):
        return None
    return read[0]


def _home(value: Value) -> mlir.RawBlock:
    """The block of which a value is an argument, or whose op gives it."""
    made = value.node
    return mlir.block_of(made.raw) if made is not None else value.raw.owner


CHEAP = ELEMENTWISE | CONSTANTS | LAYOUT | {REDUCE}
"""Ops that cost about as much as reading what they are given."""


def _is_cheap(graph: Graph, block: Block, depth: int = 4) -> bool:
    """Whether a block, and each function that it calls, holds such ops alone."""
    for node in block.nodes:
        if node.name == CALL and depth and (callee := graph.functions[node.callee]).has_body:
            if not _is_cheap(graph, callee.body, depth - 1):
                return False
        elif node.name not in CHEAP and node != block.terminator:
            return False
    return True


def _gives_several_cheap(graph: Graph, node: Node) -> bool:
    """Whether branches give two arrays or more, and cost little."""
    arrays = [value for value in node.results if value.is_tensor and value.shape]
    return len(arrays) > 1 and all(_is_cheap(graph, block) for block in node.blocks)


F = "tensor<4xf32>"
INNER = Quirk(
    "case within a loop or branch",
    (CASE, IF),
    {"litert": "it mixes up what the branches read"},
    "all its branches, and a `select` that chooses",
    module(
        f"%i: tensor<i32>, %x: {F}",
        F,
        '%r = "stablehlo.case"(%i) ({',
        f'  %s = "stablehlo.case"(%i) ({{ stablehlo.return %x : {F} }}, {{',
        f"    %a = stablehlo.add %x, %x : {F}",
        f"    stablehlo.return %a : {F}",
        f"  }}) : (tensor<i32>) -> {F}",
        f"  stablehlo.return %s : {F}",
        f"}}, {{ stablehlo.return %x : {F} }}) : (tensor<i32>) -> {F}",
    ),
    _is_inner,
    (Rules("control flow", ("branches_to_selects",)),),
    is_anywhere=True,
)

MANY = Quirk(
    "case of three branches",
    (CASE,),
    {"litert": "the interpreter does not prepare it: its branches expect other values than it gets"},
    "one `case` of two after the other",
    module(
        f"%i: tensor<i32>, %x: {F}",
        F,
        f'%r = "stablehlo.case"(%i) ({{ stablehlo.return %x : {F} }}, {{',
        f"  %a = stablehlo.add %x, %x : {F}",
        f"  stablehlo.return %a : {F}",
        "}, {",
        f"  %b = stablehlo.negate %x : {F}",
        f"  stablehlo.return %b : {F}",
        f"}}) : (tensor<i32>) -> {F}",
    ),
    lambda _graph, node: len(node.blocks) > 2,
    (Rules("control flow", ("case_to_pairs",)),),
    is_anywhere=True,
)

FAR = Quirk(
    "case reading from further out",
    (CASE,),
    {"coreml": "its converter looks in a table that a branch has only where it reads from the block around it"},
    "a copy in that block, which the branch reads",
    INNER.reproducer,
    lambda _graph, node: any(_read_far(node, block) is not None for block in node.blocks),
    (Rewrite("read-near", "copies what a branch reads from further out", read_near),),
    is_anywhere=True,
)

TWICE = Quirk(
    "case reading a value twice",
    (CASE,),
    {"coreml": "its converter names the arguments of a branch by what it reads, and then has one name twice"},
    "a copy of it, which the branch reads",
    module(
        f"%i: tensor<i32>, %x: {F}",
        F,
        '%r = "stablehlo.case"(%i) ({',
        f"  %a = stablehlo.add %x, %x : {F}",
        f"  stablehlo.return %a : {F}",
        f"}}, {{ stablehlo.return %x : {F} }}) : (tensor<i32>) -> {F}",
    ),
    lambda _graph, node: any(map(_taken_twice, node.blocks)),
    (Rewrite("read-once", "copies what a branch reads twice", read_once),),
    is_anywhere=True,
)

SEVERAL = Quirk(
    "cheap branches of several results",
    (CASE, IF),
    {"iree": "of results in one buffer it may lose one, or not wait for it: an error in the run, or wrong numbers"},
    "all its branches, and a `select` that chooses",
    module(
        f"%i: tensor<i32>, %x: {F}, %y: {F}",
        F,
        '%s:2 = "stablehlo.case"(%i) ({',
        f"  %a = stablehlo.add %x, %y : {F}",
        f"  %b = stablehlo.subtract %x, %y : {F}",
        f"  stablehlo.return %a, %b : {F}, {F}",
        f"}}, {{ stablehlo.return %x, %y : {F}, {F} }}) : (tensor<i32>) -> ({F}, {F})",
        f"%r = stablehlo.multiply %s#0, %s#1 : {F}",
    ),
    _gives_several_cheap,
    (Rules("control flow", ("branches_to_selects",)),),
)
