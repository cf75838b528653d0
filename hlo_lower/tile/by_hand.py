"""Tile one op by hand: the op by its place, the dims and sizes of its tiles, and what is fused with it.

    hl.ByHand("sums.mlir:3", {0: 4, 1: 4})

    %sums = reduce %x by add across [1] : 80x60 -> 80
    ->
    for %i = 0 to 80 step 4, writes [i:+4] of %sums:          dim 0, of the result
      for %j = 0 to 60 step 4, accumulates by add:            dim 1, which is summed
        reduce %x[i:+4, j:+4] by add

The dims of an op are those of its first result, then those along which its pieces are combined, in the order of its
operands: a dot of m x k and k x n has the dims m, n, k. Loops over the former stand outside, for their iterations do
not meet; those over the latter inside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import cast

from hlo_lower.base.arguments import is_listed, one_of, short_repr, texts, whole
from hlo_lower.base.errors import InputError
from hlo_lower.base.short_forms import plural
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir import mlir
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.axes.cut import AxisLink, Boundary, OpAxes, SubsetRules
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.emit.phases import cut
from hlo_lower.tile.find.choose import CACHED, LARGE, CostedPlan
from hlo_lower.tile.find.labels import FUSES, NOTHING, Core, Fuse, core_of, label, label_combined, lengths
from hlo_lower.tile.find.moved_links import link_at
from hlo_lower.tile.tiled_module import TiledLoopRecord, records


@dataclass(frozen=True)
class ByHand:
    """What is asked for by hand.

    Attributes:
      op: the place of the op ("llama.py:88"), with * and ?; where several are there, the one with the largest result.
      sizes: for each dim that is cut the size of its tiles. The dims are those of the first result, then those along
        which pieces are combined: m, n and k of a dot. Loops over the former stand outside, in this order.
      fuse: what is computed in the loop with it.
      operands: in the place of `fuse` the numbers of the operands that are: the op that makes each, and no other one.
        What is read as a whole each tile computes as a whole; loops within compute of it what they cut.
      is_unrolled: whether each tile is built by itself.

    Raises:
      InputError: there is no dim, a dim or a size is not a number, or what is fused is none.

    Example:
      >>> hl.ByHand("llama.py:88", {0: 128}, fuse="producers").fuse
      'producers'
    """

    op: str
    sizes: Mapping[int, int]
    fuse: Fuse = "all"
    is_unrolled: bool = False
    operands: Sequence[int] = ()

    def __post_init__(self) -> None:
        is_given = isinstance(cast(object, self.sizes), Mapping) and bool(self.sizes)
        if not is_given:
            raise InputError("sizes", f"{short_repr(self.sizes)} names no dim", next_step="write sizes={0: 128}")
        for dim, size in self.sizes.items():
            whole("dim", dim, 0)
            whole("size", size, 1)
        one_of("fuse", self.fuse, FUSES)
        if not is_listed(cast(object, self.operands)):
            raise InputError("operands", f"{short_repr(self.operands)} are not numbers", next_step="write operands=[0]")
        for number in self.operands:
            whole("operands", number, 0)
        one_of("is_unrolled", self.is_unrolled, (False, True))
        texts("op", self.op, "llama.py:88")


def tile_by_hand(graph: Graph, rules: SubsetRules, hand: ByHand) -> tuple[TiledLoopRecord, ...]:
    """Build the loops that are asked for, one within the other; what is told of them.

    Raises:
      InputError: there is no such op, dim or size of tiles.
    """
    program = Dataflow(graph, rules)
    node = _seed(program, hand)
    _check_operands(program, node, hand)
    return _emit_nested(program, node, hand, _in_order(program, node, hand))


def choice_by_hand(program: Dataflow, hand: ByHand) -> CostedPlan:
    """The plan of the outermost loop; InputError if there is no such op, dim or size of tiles."""
    node = _seed(program, hand)
    return _choice(program, node, hand, _in_order(program, node, hand)[0])


def _emit_nested(program: Dataflow, node: Node, hand: ByHand, dims: Sequence[int]) -> tuple[TiledLoopRecord, ...]:
    """Emit a loop over the first dim, and within its body the loops over the others.

    What waits is held by the objects of the program that is changed next: so one that is erased is known to be gone. To
    read one that is erased through another object ends the process.
    """
    told, waiting = list[TiledLoopRecord](), [(node, program.block, 0)]
    while waiting:
        (node, block, depth), *others = waiting
        if depth:
            _check_tile(program, node, hand)
        now = Dataflow(program.graph, program.rules, block) if depth else program
        own = {n: n for n in now.nodes}
        choice, tiles = _choice(now, own[node], hand, dims[depth]), list[Node]()
        taken = {n for loop in choice.plan.loops for n in loop.nodes}
        others = [(own.get(other, other), its, at) for other, its, at in others if other not in taken]
        told += [replace(record, depth=depth) for record in records(now, choice.plan, choice.sizes)]
        emit(now, choice.plan, choice.sizes, tiles)
        if depth + 1 < len(dims) and not tiles:
            what = f"a tile along dim {dims[depth]} is not a value of its own"
            what += f", so that no loop over dim {dims[depth + 1]} stands within"
            raise InputError(_where(program, hand), what, next_step="name one dim, or the op that this one reads")
        left = {id(n) for n in now.nodes}
        others = [(other, its, at) for other, its, at in others if its != block or id(other) in left]
        within = tiles if depth + 1 < len(dims) else []
        waiting = [*((tile, Block(mlir.block_of(tile.raw)), depth + 1) for tile in within), *others]
    return tuple(told)


def _check_tile(program: Dataflow, tile: Node, hand: ByHand) -> None:
    """Check that what a tile is made of has the operands that are asked for, where it is another op."""
    if any(number >= len(tile.operands) for number in hand.operands):
        what = f"a tile is made by {tile.name}, which has {plural(len(tile.operands), 'operand')}"
        raise InputError(_where(program, hand), what, next_step="name one dim, or no operands")


def _choice(program: Dataflow, node: Node, hand: ByHand, dim: int) -> CostedPlan:
    """The plan of a loop over one dim of a node."""
    seed, size = node.result(), hand.sizes[dim]
    least, axis = max(1, program.size[seed] // LARGE), _axes(program, node, hand)[dim]
    core = _of_operands(program, node, hand, axis) if hand.operands else core_of(program, seed, least, hand.fuse)
    core = replace(core, is_asked=True)
    if _is_inner(program):  # what the loop around gives it writes itself
        core = replace(core, outside=program.outputs)
    labels = label_combined(program, core, axis) if axis.combine else label(program, core, dim)
    if seed not in labels.dims and node not in labels.axes:
        why = labels.refused.get(seed, "its operands cannot be cut like that")
        raise InputError(_where(program, hand), f"{node.name}: {why}", next_step="name another dim")
    for number in hand.operands:
        value = node.operand(number)
        if value in core.values - core.inside and value not in labels.dims:
            raise InputError(
                _where(program, hand),
                f"operand {number} is not computed in tiles: {labels.refused.get(value, 'nothing cuts it')}",
                next_step="name another operand, or another dim",
            )
    extent = extent_along(node, axis)
    unit = extent // labels.steps
    if size % unit or size > extent:
        raise InputError(
            _where(program, hand),
            f"tiles of {size} do not fit dim {dim} of {extent}",
            facts=f"with what is fused it is cut into {labels.steps} steps of {unit}",
            next_step=f"write --sizes {dim}={unit * min(max(1, size // unit), labels.steps)}, or --fuse none",
        )
    most = max(program.size[seed], CACHED)  # what is asked for is made in these tiles, and no smaller ones
    return CostedPlan(program, cut(program, labels), Sizes(size // unit, most, hand.is_unrolled), 0.0)


def _of_operands(program: Dataflow, node: Node, hand: ByHand, axis: AxisLink) -> Core:
    """The core of a node and what makes some of its operands.

    What the axis does not cut is made as a whole; not in a loop within another one, where it is there by then.
    """
    seed, values = node.result(), {number: node.operand(number) for number in hand.operands}
    made = {number: value for number, value in values.items() if value in program.maker}
    cut_ = {value for number, value in made.items() if axis.operands[number] is not None}
    inside = frozenset[Value]() if _is_inner(program) else frozenset(made.values()) - cut_
    return Core(seed, NOTHING, frozenset({seed}), frozenset({seed, *cut_}), inside)


def _check_operands(program: Dataflow, node: Node, hand: ByHand) -> None:
    """Check that there are the operands that are asked for, and that ops make them that a loop may hold."""
    for number in hand.operands:
        maker = program.maker.get(node.operand(number)) if number < len(node.operands) else None
        if maker is None:
            what, count = "is an argument of the function, which no op makes", len(node.operands)
            what = what if number < count else f"does not exist: {node.name} has {count}"
        elif not program.is_function(maker) or captured_values(*maker.blocks):
            what = f"comes from {maker.name}, which may do more than compute, or uses outside values in its body"
        else:
            continue
        raise InputError(_where(program, hand), f"operand {number} {what}", next_step="name another operand")


def _is_inner(program: Dataflow) -> bool:
    return program.block != program.graph.main.body


def _where(program: Dataflow, hand: ByHand) -> str:
    return f"{program.graph.name}, {hand.op}"


def axes_by_dim(program: Dataflow, node: Node, axes: OpAxes) -> dict[int, AxisLink]:
    """The axes of a node by the dim that is asked for: those of its first result, also those along which it moves
    positions, then those that combine pieces."""
    rank = len(node.result().shape)
    combined = [axis for axis in axes.axes if axis.combine]
    own = {dim: link for dim in range(rank) if (link := link_at(program, node, dim, is_asked=True)) is not None}
    return own | {rank + k: axis for k, axis in enumerate(combined)}


def extent_along(node: Node, axis: AxisLink) -> int:
    """The size of the dim that an axis is asked for by: of the result, or of the first operand that is cut."""
    return lengths(node, axis)[0 if axis.combine else -1]


def _axes(program: Dataflow, node: Node, hand: ByHand) -> dict[int, AxisLink]:
    axes = program.axes(node)
    if isinstance(axes, Boundary):
        raise InputError(_where(program, hand), f"{node.name} is not cut: {axes.reason}", next_step="name another op")
    return axes_by_dim(program, node, axes)


def _in_order(program: Dataflow, node: Node, hand: ByHand) -> list[int]:
    """The dims that are cut, the outermost first; InputError if there is none of a number."""
    axes = _axes(program, node, hand)
    for dim, size in hand.sizes.items():
        if dim not in axes:
            extents = [
                f"{d} ({extent_along(node, axis)}{', combined' * bool(axis.combine)})" for d, axis in axes.items()
            ]
            raise InputError(
                _where(program, hand),
                f"{node.name} of {node.result().raw.type} is not cut along dim {dim}",
                facts=f"it is cut along dims {', '.join(extents) or 'none'}",
                next_step=f"write --sizes {next(iter(axes))}={size}" if axes else "name another op",
            )
    return sorted(hand.sizes, key=lambda dim: bool(axes[dim].combine))


def _seed(program: Dataflow, hand: ByHand) -> Node:
    """The node with the largest first result of those at the place."""
    nodes = [node for node in program.nodes if node.results and fnmatchcase(str(program.graph.location(node)), hand.op)]
    if not nodes:
        example = str(program.graph.location(program.nodes[-1])) if program.nodes else "llama.py:88"
        raise InputError(
            _where(program, hand),
            "no op of the entry point is there",
            facts=f"places are as in {example}",
            next_step="hlo-lower report shows places; * and ? stand for letters",
        )
    return max(nodes, key=lambda node: program.size[node.result()])
