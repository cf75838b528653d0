"""Fuse an op into a loop that stands in a module: each iteration computes of it the subset that it reads.

    %e = exponential %x; while(%i, %o, %e = %e) { %t = dynamic_slice %e, %p, 0, sizes = [4, 8]; ... }
    ->
    while(%i, %o, %x = %x) { %s = dynamic_slice %x, %p, 0, sizes = [4, 8]; %t = exponential %s; ... }

The subset of the op's result is asked for by its subset rule, dim by dim, as where a loop is made (`emit/loop_body`).
What an iteration reads as a whole it computes as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlo_lower.base.arguments import texts
from hlo_lower.base.errors import InputError
from hlo_lower.facts.memory.dataflow import Dataflow, type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.loops import read_counted
from hlo_lower.ops.axes.cut import Cut, OpAxes, Steps, SubsetRules
from hlo_lower.ops.axes.parts import INDEX, Bindings, clamped_start, materialize
from hlo_lower.ops.names import DYNAMIC_SLICE, WHILE
from hlo_lower.tile.emit.loop_body import ITERATOR
from hlo_lower.tile.find.labels import lengths
from hlo_lower.tile.into_structured import fuse_into_structured
from hlo_lower.tile.prepare.loop_carries import change_carried, is_kept
from hlo_lower.tile.tiled_module import TiledLoopRecord, is_rounded


@dataclass(frozen=True)
class IntoLoop:
    """An op that is fused into a loop of the module, in the place of a loop that is made.

    Attributes:
      op: the place of the op ("llama.py:88"), with * and ?.
      into: that of the loop: a counted `stablehlo.while`; of a module in linalg an `scf.for` or `scf.forall`
        (`into_structured`).

    Raises:
      InputError: a place is not text.

    Example:
      >>> hl.IntoLoop("llama.py:88", into="llama.py:95").into
      'llama.py:95'
    """

    op: str
    into: str

    def __post_init__(self) -> None:
        texts("op", self.op, "llama.py:88")
        texts("into", self.into, "llama.py:95")


def fuse_into(graph: Graph, rules: SubsetRules, hand: IntoLoop) -> tuple[TiledLoopRecord, ...]:
    """Fuse the op; what is told of the loop.

    Raises:
      InputError: there is no such loop or op, or the loop does not read what the op gives and nothing else.
    """
    if graph.is_structured:
        return fuse_into_structured(graph, hand.op, hand.into)
    program, loop = _loop(graph, rules, hand)
    node, number = _producer(program, loop, hand)
    told, of = str(graph.location(loop)), f"{node.name}, {type_of(node.result())}"
    exact = not is_rounded(node)
    with mlir.active(graph.context):
        added = list(dict.fromkeys(node.operands))
        kept = {v: n for n, v in enumerate(loop.operands) if v in added and is_kept(loop, n)}
        count, more = len(loop.operands), [value for value in added if value not in kept]
        loop.result(number).raw.replace_all_uses_with(loop.operand(number).raw)
        loop = change_carried(loop, (), more)
        body = loop.blocks[1]
        known = {value: body.argument(n) for value, n in kept.items()}
        known |= dict(zip(more, body.arguments[count:], strict=True))
        subsets = _computed_inside(rules, node, body.argument(number), [known[value] for value in node.operands])
        body.terminator.raw.operands[number] = body.argument(number).raw
        change_carried(loop, [number], ())
        if not any(value.is_used for value in node.results):
            node.raw.erase()
    graph.forget()
    types = ", ".join(dict.fromkeys(subsets)) or "nothing"
    return (TiledLoopRecord(told, f"{types} of {of}", 1, 1, len(subsets), (), (), (), exact),)


def _loop(graph: Graph, rules: SubsetRules, hand: IntoLoop) -> tuple[Dataflow, Node]:
    """The counted loop at a place, and the block that it stands in."""
    blocks = list(Dataflow(graph, rules).blocks())
    loops = [(block, node) for block in blocks for node in block.nodes if node.name == WHILE]
    for block, node in loops:
        if fnmatchcase(str(graph.location(node)), hand.into):
            if read_counted(node) is None:
                what = "that loop does not count from one number to another"
                raise InputError(f"{graph.name}, {hand.into}", what, next_step="name another loop")
            return block, node
    places = ", ".join(dict.fromkeys(str(graph.location(node)) for _, node in loops))
    raise InputError(
        f"{graph.name}, {hand.into}",
        "no loop is there",
        facts=f"loops are at {places}" if places else "the module has none",
        next_step="--op FILE:LINE --sizes 0=4 makes one",
    )


def _producer(program: Dataflow, loop: Node, hand: IntoLoop) -> tuple[Node, int]:
    """The op at a place whose result a loop takes and leaves as it is, and the number of that operand."""
    graph, where = program.graph, f"{program.graph.name}, {hand.op}"
    there = [node for node in program.nodes if node.results and fnmatchcase(str(graph.location(node)), hand.op)]
    condition = loop.blocks[0]
    read = {
        value.node: number
        for number, value in enumerate(loop.operands)
        if value.node is not None and is_kept(loop, number) and not condition.argument(number).is_used
    }
    found = next((node for node in there if node in read and node != loop), None)
    if found is None:
        places = ", ".join(dict.fromkeys(str(graph.location(node)) for node in read if len(node.operands)))
        what = "the loop does not read the result of that op" if there else "no op is there, in the block of the loop"
        facts = f"it reads what comes from {places}" if places else "it reads arguments alone"
        raise InputError(where, what, facts=facts, next_step="name one of these ops" if places else "name another loop")
    if len(found.results) != 1 or not program.is_function(found) or captured_values(*found.blocks):
        what = f"{found.name} has several results, does more than compute, or uses outside values in its body"
        raise InputError(where, what, next_step="name another op")
    return found, read[found]


def _computed_inside(rules: SubsetRules, node: Node, argument: Value, operands: Sequence[Value]) -> list[str]:
    """Compute in a body what it reads of an argument; the types of what is computed."""
    block = argument.block
    assert block is not None
    told: list[str] = []
    whole: Value | None = None
    for user in list(dict.fromkeys(argument.users)):
        if user == block.terminator:
            continue
        build = Builder.before(user if mlir.block_of(user.raw) == block.raw else next(block.nodes))
        piece = None
        is_read = user.name == DYNAMIC_SLICE and user.operand(0) == argument
        if is_read and mlir.block_of(user.raw) == block.raw:
            piece = _subset(build, rules, node, operands, user)
        if piece is not None:
            user.result().raw.replace_all_uses_with(piece.raw)
            user.raw.erase()
        else:
            if whole is None:
                first = Builder.before(next(block.nodes))
                whole = first.copy_on(node, operands, [node.result().raw.type], {}).result()
            for number, value in enumerate(user.operands):
                if value == argument:
                    user.raw.operands[number] = whole.raw
        told.append(type_of(whole if piece is None and whole is not None else piece or argument))
    for user in list(argument.users):  # of regions within: they read it as a whole
        assert user == block.terminator, user
    return told


def _subset(build: Builder, rules: SubsetRules, node: Node, operands: Sequence[Value], read: Node) -> Value | None:
    """What a slice reads of a result, computed of subsets of the operands; None where no rule says of which."""
    sizes, shape = read.integers("slice_sizes"), node.result().static_shape
    dims = [d for d, (size, extent) in enumerate(zip(sizes, shape, strict=True)) if size != extent]
    current, taken, made = node, tuple(operands), list[Node]()
    for dim in dims:
        axes = rules.of(current)
        axis = axes.of_result(dim) if isinstance(axes, OpAxes) else None
        if axis is None or any(n != shape[dim] for n in lengths(current, axis)):
            break
        start = clamped_start(build, read.operand(1 + dim), shape[dim] - sizes[dim])
        bound = Bindings({ITERATOR: start if start.element_type == INDEX else build.convert(start, INDEX)})
        steps = Steps(ITERATOR, shape[dim], sizes[dim])
        parts = [steps.part(v.static_shape, d) for v, d in zip(taken, axis.operands, strict=True)]
        pairs = list(zip(taken, parts, strict=True))
        pieces = {pair: materialize(build, *pair, bound) for pair in dict.fromkeys(pairs)}
        taken = tuple(pieces[pair] for pair in pairs)
        [piece] = rules.build_piece(build, Cut(current, axis, steps, taken, bound))
        if piece.node is None:
            break
        made.append(piece.node)
        current, taken = piece.node, piece.node.operands
    else:
        for dropped in reversed(made[:-1]):
            dropped.raw.erase()
        return current.result() if made else None
    for dropped in reversed(made):
        dropped.raw.erase()
    return None
