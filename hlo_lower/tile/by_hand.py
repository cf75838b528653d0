"""Tile one op by hand: the op by its place, the dim and size of its tiles, and what is fused with it."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlo_lower.base.arguments import one_of, texts, whole
from hlo_lower.base.errors import InputError
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Value
from hlo_lower.ops.axes.cut import Boundary
from hlo_lower.tile.emit.emit_loops import Sizes
from hlo_lower.tile.emit.phases import cut
from hlo_lower.tile.find.choose import LARGE, CostedPlan
from hlo_lower.tile.find.labels import FUSES, Fuse, core_of, label


@dataclass(frozen=True)
class ByHand:
    """What is asked for by hand.

    Attributes:
      op: the place of the op ("llama.py:88"), with * and ?; where several are there, the one with the largest result.
      dim, size: of the tiles of its first result.
      fuse: what is computed in the loop with it.
      is_unrolled: whether each tile is built by itself.

    Raises:
      InputError: the dim, the size or what is fused is none.

    Example:
      >>> hl.ByHand("llama.py:88", dim=0, size=128, fuse="producers").fuse
      'producers'
    """

    op: str
    dim: int
    size: int
    fuse: Fuse = "all"
    is_unrolled: bool = False

    def __post_init__(self) -> None:
        whole("dim", self.dim, 0)
        whole("size", self.size, 1)
        one_of("fuse", self.fuse, FUSES)
        one_of("is_unrolled", self.is_unrolled, (False, True))
        texts("op", self.op, "llama.py:88")


def choice_by_hand(program: Dataflow, hand: ByHand) -> CostedPlan:
    """The plan that is asked for; InputError if there is no such op, dim or size of tiles."""
    seed = _seed(program, hand)
    core = core_of(program, seed, max(1, program.size[seed] // LARGE), hand.fuse)
    labels = label(program, core, hand.dim)
    extent = seed.static_shape[hand.dim]
    unit = extent // labels.steps
    if hand.size % unit or not 0 < hand.size <= extent:
        raise InputError(
            f"{program.graph.name}, {hand.op}",
            f"tiles of {hand.size} do not fit dim {hand.dim} of {extent}",
            facts=f"with what is fused it is cut into {labels.steps} steps of {unit}",
            next_step=f"write --sizes {hand.dim}={unit * max(1, hand.size // unit)}, or --fuse none",
        )
    sizes = Sizes(hand.size // unit, max(1, program.size[seed] // LARGE), hand.is_unrolled)
    return CostedPlan(program, cut(program, labels), sizes, 0.0)


def _seed(program: Dataflow, hand: ByHand) -> Value:
    nodes = [node for node in program.nodes if node.results and fnmatchcase(str(program.graph.location(node)), hand.op)]
    where = f"{program.graph.name}, {hand.op}"
    if not nodes:
        example = str(program.graph.location(program.nodes[-1])) if program.nodes else "llama.py:88"
        raise InputError(
            where,
            "no op of the entry point is there",
            facts=f"places are as in {example}",
            next_step="hlo-lower report shows places; * and ? stand for letters",
        )
    node = max(nodes, key=lambda node: program.size[node.result()])
    axes = program.axes(node)
    if isinstance(axes, Boundary):
        raise InputError(where, f"{node.name} is not cut: {axes.reason}", next_step="name another op")
    dims = [axis.results[0] for axis in axes.axes if axis.results[0] is not None]
    if hand.dim not in dims:
        raise InputError(
            where,
            f"{node.name} of {node.result().raw.type} is not cut along dim {hand.dim}",
            facts=f"it is cut along dims {', '.join(map(str, dims)) or 'none'}",
            next_step=f"write --sizes {dims[0]}={hand.size}" if dims else "name another op",
        )
    return node.result()
