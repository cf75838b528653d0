"""Branches that a target may compute wrongly: for where they stand, for what they read, and more than once."""

from collections import Counter
from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.ops.names import CASE, CONSTANT, CONVERT, IF, WHILE
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target

BRANCHING = (CASE, IF)
AROUND = (*BRANCHING, WHILE)


def refused_branches(graph: Graph, target: Target, node: Node) -> RefusedForm | None:
    """The form in which a target refuses a branch: within a loop or a branch, or called from one; or one of several."""
    if node.name not in BRANCHING:
        return None
    if RefusedForm.INNER.value in target.refused_forms and _is_within(graph, node, set()):
        return RefusedForm.INNER
    if RefusedForm.MANY.value in target.refused_forms and len(node.blocks) > 2:
        return RefusedForm.MANY
    return None


def _is_within(graph: Graph, node: Node, seen: set[str]) -> bool:
    around = node.parent
    while around is not None and around.name != "func.func":
        if around.name in AROUND:
            return True
        around = around.parent
    if around is None:
        return False
    name = Function(around).name
    if name in seen:
        return False
    seen.add(name)
    return any(_is_within(graph, call, seen) for call in graph.calls_of(name))


def read_once(graph: Graph) -> None:
    """Let each branch of a `case` begin with a copy of each value from around it that it reads twice or more, in place.

        case (%i) { return add(%x, %x) }   ->   case (%i) { %y = convert %x; return add(%y, %y) }

    Equal: a conversion to the type that is there already changes nothing. Constants of a branch count as from around
    it, equal ones as one.
    """
    with mlir.active(graph.context):
        cases = [raw for raw in mlir.walked(graph.module.operation) if raw.name == CASE]  # constants are erased
        for block in (block for raw in cases for block in Node(raw).blocks):
            for values in _taken_twice(block):
                _read_once(block, values)
    graph.forget()


def reads_twice(node: Node) -> bool:
    """Whether a branch of a `case` reads a value from around it twice."""
    return node.name == CASE and any(map(_taken_twice, node.blocks))


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
            for raw in mlir.walked(node.raw):
                for number, operand in enumerate(raw.operands):
                    if operand in taken:
                        raw.operands[number] = copy.result().raw
    for value in values:
        if (node := value.node) is not None and node.name == CONSTANT and not value.is_used:
            node.raw.erase()
