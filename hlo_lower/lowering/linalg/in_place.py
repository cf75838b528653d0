"""Tiles of `scf.forall` computed where they are written: bufferization allocates nothing for them and copies none.

What a loop fills from end to end it begins with `tensor.empty`; what computes a tile gets the slice of the result as
its destination, in the place of a `tensor.empty` of its own:

    %r = scf.forall (%i) = (0) to (96) step (32) shared_outs(%o = %zeros) {
      %e = tensor.empty(); %f = linalg.fill ins(%c) outs(%e); %t = linalg.matmul ins(%a, %b) outs(%f)
      scf.forall.in_parallel { tensor.parallel_insert_slice %t into %o[0, %i] [8, 32] [1, 1] } }
    ->
    %r = scf.forall (%i) = (0) to (96) step (32) shared_outs(%o = %empty) {
      %s = tensor.extract_slice %o[0, %i] [8, 32] [1, 1]
      %f = linalg.fill ins(%c) outs(%s); %t = linalg.matmul ins(%a, %b) outs(%f)
      scf.forall.in_parallel { tensor.parallel_insert_slice %t into %o[0, %i] [8, 32] [1, 1] } }

Equal: of a `tensor.empty` nothing is read, so anything may stand in its place. A `linalg.map` may write over what it
reads, element by element, where nothing else reads that.
"""

from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.loops import PLACE, READ, WRITE
from hlo_lower.lowering.linalg.structured_ops import fill_empty

EMPTY, MAP, CONSTANT = "tensor.empty", "linalg.map", "arith.constant"

DEEPEST = 64
"""Operations of which one writes over what the other gives, beyond which none is looked at."""


@dataclass(frozen=True)
class _Slot:
    """The operand of a node that is an empty tensor, in which a value is computed in the end."""

    node: Node
    number: int


def write_in_place(graph: Graph) -> bool:
    """Compute the tiles of each `scf.forall`, and what each `scf.for` accumulates, in their places; whether there were
    any."""
    nodes = graph.nodes()
    with mlir.active(graph.context):
        count = sum(_sums_in_place(loop) for loop in nodes if loop.name == "scf.for")
        tiled = [loop for loop in nodes if loop.name == "scf.forall"]
        return sum(map(_tiles_in_place, tiled)) + count > 0  # outer ones first: inner ones write theirs


def _sums_in_place(loop: Node) -> int:
    """How many of the values that a loop carries are written over by what they become."""
    [block] = loop.blocks
    count = 0
    for carried, given in zip(block.arguments[1:], block.terminator.operands, strict=True):
        node = given.node
        if node is not None and node.name == MAP and set(carried.users) == {node}:
            out = node.operand(len(node.operands) - 1)
            if out.node is not None and out.node.name == EMPTY and out.raw.type == carried.raw.type:
                node.raw.operands[len(node.operands) - 1] = carried.raw
                count += 1
    return count


def _tiles_in_place(loop: Node) -> int:
    """How many tiles of a loop, and of those behind it that were moved back, are computed in their places."""
    [block] = loop.blocks
    *_, together = block.nodes
    behind = Block(mlir.block_of(loop.raw))
    last = [users[0] for result in loop.results if len(users := list(result.users)) == 1 and users[0].name == WRITE]
    count = sum(_in_place(behind, write) for write in last if write.operand(1) in loop.results)
    return count + sum(_in_place(block, write) for write in list(together.blocks[0].nodes))


def _in_place(block: Block, write: Node) -> bool:
    """Whether what a slice is written with is computed in it; a block holds both."""
    if write.name == WRITE and mlir.block_of(write.raw) != block.raw:
        return False
    value, result, *places = write.operands
    slot = _slot(block, value)
    if slot is None:
        return False
    order = {node: number for number, node in enumerate(block.nodes)}
    at = order[_around(block, slot.node)]
    read = [value.node for value in (result, *places) if value.node is not None]
    if any(order.get(node, -1) >= at for node in read):
        return False
    kept = {name: write.raw.attributes[name] for name in PLACE}
    kept["operandSegmentSizes"] = mlir.parse_attribute(f"array<i32: 1, {len(places)}, 0, 0>")
    before = Builder.before(_around(block, slot.node))
    place = before.op(READ, [result, *places], [value.raw.type], kept).result()
    slot.node.raw.operands[slot.number] = place.raw
    return True


def _around(block: Block, node: Node) -> Node:
    """The node of a block that is another one, or around it."""
    while mlir.block_of(node.raw) != block.raw:
        parent = node.parent
        assert parent is not None
        node = parent
    return node


def _slot(block: Block, value: Value, depth: int = 0) -> _Slot | None:
    """Where a value is computed; None where that is no empty tensor, or something else reads what is computed there."""
    node = value.node
    number = None if node is None or mlir.block_of(node.raw) != block.raw else _destination(node, value.number)
    if node is None or number is None or depth > DEEPEST:
        return None
    given = node.operand(number)
    if given.node is None or given.raw.type != value.raw.type:
        return None
    if given.node.name == CONSTANT and mlir.is_splat(given.node.raw) and given.is_static:
        return _fill_slot(node, number, given.node)
    if given.node.name != EMPTY:
        return _slot(block, given, depth + 1) if len(list(given.users)) == 1 else None
    for read in node.operands[:number] if node.name == MAP else ():
        if read.raw.type == value.raw.type and len(list(read.users)) == 1:
            found = _slot(block, read, depth + 1)
            if found is not None:
                node.raw.operands[number] = read.raw
                return found
    return _Slot(node, number)


def _fill_slot(node: Node, number: int, constant: Node) -> _Slot:
    """Replace the constant that a node overwrites by an empty tensor that is filled with the constant's value."""
    build, raw_type = Builder.before(node), constant.result().raw.type
    element = mlir.tensor_element(raw_type)
    value = build.op(CONSTANT, [], [element], {"value": mlir.splat_value(constant.raw.attributes["value"])}).result()
    fill = fill_empty(build, value, raw_type)
    node.raw.operands[number] = fill.result().raw
    return _Slot(fill, 1)


def _destination(node: Node, result: int) -> int | None:
    """The operand that a result of a node is written over."""
    if node.name.startswith("linalg."):
        return len(node.operands) - len(node.results) + result
    if node.name in ("scf.forall", "scf.for"):
        return len(node.operands) - len(node.results) + result
    return 1 if node.name == WRITE else None
