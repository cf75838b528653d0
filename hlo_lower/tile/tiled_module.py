"""What tiling gives: the module, its loops, and what XLA needs for its temporaries before and after."""

from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import Any, Literal

from hlo_lower.base.memory import MemoryCurve, memory_folded, shown_bytes
from hlo_lower.base.short_forms import plural
from hlo_lower.facts.memory.dataflow import Dataflow, is_of_integers, type_of
from hlo_lower.ir.view import Node, Value
from hlo_lower.ir.writer import Writable
from hlo_lower.ops.axes.cut import AxisLink, Steps
from hlo_lower.ops.spec import PRODUCTS, Role, ops_with
from hlo_lower.tile.emit.emit_loops import Sizes
from hlo_lower.tile.emit.loop_body import ITERATOR
from hlo_lower.tile.emit.phases import Loop, LoopPlan
from hlo_lower.tile.loop_picture import LoopPart, drawn_step, loop_figures, loop_lines, loop_parts, loop_svg
from hlo_lower.tile.prepare.rematerialization import RecomputedRecord
from hlo_lower.tile.prepare.slice_hoisting import PulledRecord


@dataclass(frozen=True)
class TiledLoopRecord:
    """A loop that was made."""

    where: str  # the place of the value that it was made for ("llama.py:88")
    subset: str  # the part of that value that a tile computes, or that it reads where it is combined; readable
    # steps, size: all steps, and those of a tile
    steps: int
    size: int
    ops: int  # how many operations it computes
    tiles: tuple[str, ...]  # the types of the results that it writes tile by tile
    accumulators: tuple[str, ...]  # those that it accumulates, each with its combiner
    again: tuple[str, ...]  # the types of what it computes again that an earlier loop computed, the largest first
    is_exact: bool  # whether no float sum is split, nor computed by an op whose order XLA chooses by its size
    parts: tuple[LoopPart, ...] = ()  # what a step takes of each tensor that it is about
    depth: int = 0  # how many loops of its plan it is within

    def __str__(self) -> str:
        told = [f"{self.where}: {self.subset}, {self.ops} ops"]
        told += [f"writes {', '.join(self.tiles)}"] if self.tiles else []
        told += [f"accumulates {', '.join(self.accumulators)}"] if self.accumulators else []
        told += [f"computes {', '.join(self.again)} again"] if self.again else []
        return "; ".join(told)

    def svg(self, *, alone: bool = False) -> str:
        """The drawing of a step; "" where nothing is known of it. `alone`: whether it is a file of its own."""
        return loop_svg(self.parts, drawn_step(self.steps, self.size), alone=alone)

    def drawing(self) -> list[str]:
        """The same as characters, a line each."""
        return loop_lines(self.parts, drawn_step(self.steps, self.size))

    def to_json(self) -> dict[str, Any]:
        """What is told of it, as plain data."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}  # parts may be of ops, which have no copy
        return {**told, "parts": [part.to_json() for part in self.parts]}


@dataclass(frozen=True, repr=False)
class Tiled(Writable):
    """A tiled module.

    Attributes:
      graph: the module.
      loops: the loops that were made, in the order in which they were chosen.
      before, after: bytes of temporaries that XLA plans; None where it was not asked.
      max_temp: the bound that was asked for, or None.
      left: the largest values that are still stored at the peak, each with why it is not tiled.
      pulled: the slices and gathers that were pulled up, without a loop.
      recomputed: the scans of which rows of stacks are computed again where they are read.
      ended: why the search ended before it had tried what it could; "" where it did not.
      memory: what is live over program order, before and after; an estimate.

    Example:
      >>> tiled = hl.Tiled(hl.read("decode.mlir"), (), before=4096, after=4096, max_temp=8192)
      >>> tiled.reached, tiled.summary()
      (True, '0 loops, temporaries 4.0 KiB -> 4.0 KiB, asked 8.0 KiB')
    """

    loops: tuple[TiledLoopRecord, ...]
    before: int | None = None
    after: int | None = None
    max_temp: int | None = None
    left: tuple[str, ...] = ()
    pulled: tuple[PulledRecord, ...] = ()
    recomputed: tuple[RecomputedRecord, ...] = ()
    ended: str = ""
    memory: tuple[MemoryCurve, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"<Tiled {self.graph.name}: {self.summary()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the lines, a step of each loop drawn, and the memory over program order, folded."""
        parts = [f"<p>{escape(line)}</p>" for line in self.lines()] + self.figures()
        return "\n".join(filter(None, [*parts, memory_folded(self.memory, self.max_temp)]))

    def drawing_lines(self) -> list[str]:
        """The drawings of the loops as characters, alike ones once, each below the places of its loops."""
        drawn: dict[tuple[str, ...], list[str]] = {}
        for loop in self.loops:
            drawn.setdefault(tuple(loop.drawing()), []).append(loop.where)
        told = (
            (plural(len(places), "loop"), ", ".join(dict.fromkeys(places)), lines) for lines, places in drawn.items()
        )
        return [
            line
            for count, where, lines in told
            if lines
            for line in (f"{count} at {where}, one step", *(f"  {line}" for line in lines))
        ]

    def figures(self) -> list[str]:
        """The drawings of the loops as HTML, alike ones once."""
        return loop_figures((str(loop), loop.svg()) for loop in self.loops)

    @property
    def reached(self) -> bool:
        """Whether the temporaries are within the bound."""
        return self.max_temp is None or (self.after is not None and self.after <= self.max_temp)

    @property
    def is_changed(self) -> bool:
        """Whether it is another program than the module that it was made of."""
        return bool(self.loops or self.pulled or self.recomputed)

    @property
    def is_exact(self) -> bool:
        """Whether the results are the same bit for bit; else within the bound of another order of float sums."""
        return all(change.is_exact for change in (*self.loops, *self.pulled))  # what is computed again is exact

    @property
    def float_mode(self) -> Literal["exact", "reassociate"]:
        """How it is compared with the module that it was made of."""
        return "exact" if self.is_exact else "reassociate"

    def to_json(self) -> dict[str, Any]:
        """What is told of it, as plain data."""
        told = {"before": self.before, "after": self.after, "max_temp": self.max_temp, "reached": self.reached}
        changes = {"loops": [loop.to_json() for loop in self.loops], "pulled": [asdict(pull) for pull in self.pulled]}
        changes["recomputed"] = [asdict(scan) for scan in self.recomputed]
        return {**told, **changes, "left": list(self.left), "ended": self.ended}

    def summary(self) -> str:
        """One line: how many loops, and the temporaries before and after."""
        loops = f"{len(self.loops)} loop{'s' * (len(self.loops) != 1)}"
        if self.before is None or self.after is None:
            return loops
        bound = "" if self.max_temp is None else f", asked {shown_bytes(self.max_temp)}"
        return f"{loops}, temporaries {shown_bytes(self.before)} -> {shown_bytes(self.after)}{bound}"

    def lines(self) -> list[str]:
        """All that was done, a line each: the summary, the picks, the scans, the loops, what is left, and an early
        end."""
        changes = [f"  pulled up {pull}" for pull in self.pulled]
        changes += [f"  computes again {scan}" for scan in self.recomputed]
        changes += [f"  {'  ' * loop.depth}loop {loop}" for loop in self.loops]
        ended = [f"  search ended early: {self.ended}"] if self.ended else []
        return [self.summary(), *changes, *(f"  left {what}" for what in self.left), *ended]


def records(program: Dataflow, plan: LoopPlan, sizes: Sizes) -> tuple[TiledLoopRecord, ...]:
    """What is told of the loops of a plan; before they are emitted."""
    return tuple(_record(program, plan, loop, sizes) for loop in plan.loops)


def _record(program: Dataflow, plan: LoopPlan, loop: Loop, sizes: Sizes) -> TiledLoopRecord:
    labels, seed = plan.labels, plan.labels.core.seed
    maker = program.maker[seed]
    told, dim = (seed, labels.dims[seed]) if seed in labels.dims else _combined_part(maker, labels.axes[maker])
    size = min(sizes.steps, labels.steps)
    tile = Steps(ITERATOR, labels.steps, size)
    combined = [f"{type_of(v)} by {labels.axes[n].combine}" for n in loop.accumulators for v in n.results]
    again = sorted((v for node in loop.again for v in node.results), key=lambda v: -program.size[v])
    return TiledLoopRecord(
        str(program.graph.location(maker)),
        str(tile.part(told.static_shape, dim)),
        labels.steps,
        size,
        len(loop.nodes) + len({program.maker[value] for value in labels.core.inside}),
        tuple(type_of(value) for value in loop.tiles),
        tuple(combined),
        tuple(dict.fromkeys(type_of(value) for value in again[:3])),
        not any(is_rounded(node) for node in loop.nodes),
        loop_parts(program, plan, loop, tile),
    )


def _combined_part(node: Node, axis: AxisLink) -> tuple[Value, int]:
    """The first operand that is cut along an axis along which pieces are combined, and its dim."""
    pairs = zip(node.operands, axis.operands, strict=True)
    return next((value, dim) for value, dim in pairs if dim is not None)


ROUNDED = PRODUCTS | ops_with(role=Role.FOLDS)
"""Ops that sum, in an order that XLA chooses by the sizes."""


def is_rounded(node: Node) -> bool:
    """Whether a node sums floats, so that XLA may round otherwise where it has other sizes."""
    if node.name in ROUNDED:
        return any(not is_of_integers(value) for value in node.results)
    return False
