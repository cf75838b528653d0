"""A loop over tiles, drawn: of each tensor what a step reads, computes or writes, as an SVG and as characters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest

from hlo_lower.base.drawing.picture import (
    LINE,
    Axis,
    Box,
    Look,
    Picture,
    element,
    extent,
    grid,
    shapes_of,
    text_at,
    two_dims,
)
from hlo_lower.base.short_forms import plural, printable
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Value
from hlo_lower.ops.axes.cut import Steps
from hlo_lower.ops.axes.parts import Filter, StridedRange, TensorSubset
from hlo_lower.tile.emit.emit_loops import is_made_inside, read_around
from hlo_lower.tile.emit.phases import Loop, LoopPlan
from hlo_lower.tile.find.demands import first_parts, part_taken

ROLES = {Look.READ: "reads", Look.HELD: "computes", Look.WRITTEN: "writes", Look.ADDED: "accumulates"}

MOST_PARTS = 4
"""Tensors of a role that are drawn, the largest."""


@dataclass(frozen=True)
class LoopPart:
    """A tensor, and the part that a step of a loop takes of it."""

    look: Look  # what the step does with it, one of ROLES
    what: str  # the tensor: "argument 1", or the op that gives it
    part: TensorSubset  # a run along one dim, or all of it

    @property
    def role(self) -> str:
        """What the step does with it, in words."""
        return ROLES[self.look]

    def __str__(self) -> str:
        return f"{self.role} {self.what}: {self.part}"

    def to_json(self) -> dict[str, str]:
        """As plain data."""
        return {"role": self.role, "what": self.what, "part": str(self.part)}

    def picture(self, step: int) -> Picture:
        """The drawing of what a step takes, by its number; what is only computed is never stored as a whole."""
        shape = self.part.shape
        axes = [_axis(dim, size, self._along(dim)) for dim, size in enumerate(shape)]
        rows, columns = two_dims(axes) if axes else (Axis(None, 1, True, ":"),) * 2
        cells = [_cells(axis, self._along(axis.dim), step) for axis in (rows, columns)]
        box = Box(cells[0], cells[1], self.look)
        return Picture(rows, columns, (box,), (), is_stored=self.look is not Look.HELD)

    def _along(self, dim: int | None) -> StridedRange | None:
        """The part of a dim; None where all of it is taken."""
        axis = None if dim is None or self.part.is_whole(dim) else self.part.axes[dim]
        return axis if isinstance(axis, StridedRange) else None


def drawn_step(steps: int, size: int) -> int:
    """The first step of the tile that is drawn: one behind the first, so that it is seen to move."""
    return -(-steps // size) * 2 // 5 * size


def in_roles(parts: Sequence[LoopPart]) -> Iterator[tuple[Sequence[LoopPart], int]]:
    """The parts that are drawn together: what is read, computed, given; and of each how many more there are."""
    for looks in ((Look.READ,), (Look.HELD,), (Look.WRITTEN, Look.ADDED)):
        found = [part for part in parts if part.look in looks]
        if found:
            yield found[:MOST_PARTS], len(found[MOST_PARTS:])


def _axis(dim: int, size: int, part: StridedRange | None) -> Axis:
    return Axis(dim, size, True, ":", unit=size) if part is None else Axis(dim, size, True, str(part), part.size)


def _cells(axis: Axis, part: StridedRange | None, step: int) -> tuple[int, int]:
    """The cells that a step takes of an axis."""
    if part is None:
        return 0, axis.size
    first = min(part.start.constant + part.start.scale * step, axis.size - part.size)
    return first, first + part.size


def _said(part: TensorSubset) -> TensorSubset:
    """A part whose filters are by names: the op that has the indices is gone once the loop is there."""
    axes = [replace(axis, index=str(axis.index)) if isinstance(axis, Filter) else axis for axis in part.axes]
    return replace(part, axes=tuple(axes))


def loop_parts(program: Dataflow, plan: LoopPlan, loop: Loop, steps: Steps) -> tuple[LoopPart, ...]:
    """The tensors that a loop is about, those of a role in order of their bytes; before it is emitted.

    Scalars, constants of one value and masks that are made in the loop are left out, and of what is computed what is
    not large.

    Args:
      program, plan, loop: what is computed, and how it is cut.
      steps: those of a tile.
    """
    dims, least = plan.labels.dims, plan.labels.core.least
    taken = first_parts(plan.labels.axes, dims, loop.nodes, loop.tiles, plan.labels.tiles(steps.size))

    def is_needed(value: Value, dim: int | None) -> bool:  # a pad may cut off all of what it takes
        return dim is None or (value, dim) in taken or value.static_shape[dim] % steps.count == 0

    def parts_of(look: Look, found: Iterable[tuple[Value, int | None]], combine: str = "") -> list[LoopPart]:
        known = [(v, dim) for v, dim in dict.fromkeys(found) if v.static_shape and is_needed(v, dim)]
        known.sort(key=lambda pair: -program.size[pair[0]])
        parts = [_said(part_taken(taken, v, dim, steps)) for v, dim in known]
        return [LoopPart(look, _name_of(program, v) + combine, part) for (v, _), part in zip(known, parts, strict=True)]

    around = [pair for pair in read_around(program, plan, loop) if not is_made_inside(program, plan, pair[0])]
    made = [value for node in loop.nodes if node not in loop.accumulators for value in node.results]
    held = [v for v in made if v not in loop.tiles and v not in program.cheap and program.size[v] >= least]
    parts = parts_of(Look.READ, around) + parts_of(Look.HELD, ((v, dims[v]) for v in held if v in dims))
    parts += parts_of(Look.WRITTEN, ((v, dims[v]) for v in loop.tiles))
    for node in loop.accumulators:
        parts += parts_of(Look.ADDED, ((v, None) for v in node.results), f" by {plan.labels.axes[node].combine}")
    return tuple(parts)


def _name_of(program: Dataflow, value: Value) -> str:
    maker = program.maker.get(value) or value.node
    return f"argument {value.number}" if maker is None else maker.name.removeprefix("stablehlo.")


WIDTH, HEIGHT = 150, 80
"""Most that a tensor takes, in pixels."""

LEFT, TOP, GAP, ARROW = 6, 6, 14, 34
"""Room around the drawing, between tensors, and between what is read, computed and given."""

EXPLAINED = (
    "One step of each loop: what it reads, computes and gives of each tensor. What is dashed is never stored whole."
)

MOST_FIGURES, MOST_CAPTIONS = 12, 8
"""Different drawings, and loops of one drawing, that are shown."""


def loop_svg(parts: Sequence[LoopPart], step: int, *, alone: bool = False) -> str:
    """The drawing of one step, by its number; "" where nothing is known of it. One that stands `alone` in a file
    brings its colours for light and dark."""
    columns = [_column(found, more, step) for found, more in in_roles(parts)]
    if not columns:
        return ""
    high, x, drawn = max(height for _, _, height in columns), float(LEFT), list[str]()
    for number, (shapes, width, height) in enumerate(columns):
        if number:
            drawn.append(_arrow(x, TOP + high / 2))
            x += ARROW
        drawn.append(f'<g transform="translate({x:.0f} {TOP + (high - height) / 2:.0f})">{shapes}</g>')
        x += width
    told = "A step of the loop " + "; ".join(map(str, parts))
    return element("loop", x + LEFT, high + 2 * TOP, printable(told), drawn, alone=alone)


def _column(parts: Sequence[LoopPart], more: int, step: int) -> tuple[str, float, float]:
    """Tensors below each other, each above its words; and their width and height."""
    drawn, y, wide = "", 0, 0.0
    for part in parts:
        picture = part.picture(step)
        width, height = extent(picture, WIDTH, HEIGHT)
        lines = [printable(f"{part.role} {part.what}"), str(part.part)]
        drawn += "".join(shapes_of(picture, 0, y, width, height))
        drawn += "".join(text_at(0, y + height + LINE * (n + 1), line) for n, line in enumerate(lines))
        y += height + LINE * len(lines) + GAP
        wide = max(wide, width, *(6.4 * len(line) for line in lines))
    if more:
        drawn += text_at(0, y + 4, f"and {more} more")
        y += LINE
    return drawn, wide, y


def _arrow(x: float, y: float) -> str:
    at = f"M{x + 8:.0f} {y:.0f}h16m-5 -5l5 5l-5 5"
    return f'<path d="{at}" fill="none" stroke="currentColor" stroke-opacity=".6" stroke-width="1.5"/>'


def loop_figures(drawn: Iterable[tuple[str, str]]) -> list[str]:
    """Figures of HTML: each drawing once, with the captions of all loops that it is of; of many the first."""
    captions: dict[str, list[str]] = {}
    for caption, svg in drawn:
        captions.setdefault(svg, []).append(escape(printable(caption)))
    captions.pop("", None)
    told = ((svg, "<br>".join(own[:MOST_CAPTIONS])) for svg, own in captions.items())
    figures = [f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" for svg, caption in told]
    more = len(figures) - MOST_FIGURES
    head = [f"<p>{EXPLAINED}</p>"] if figures else []
    return [*head, *figures[:MOST_FIGURES], *([f"<p>and {plural(more, 'other drawing')}</p>"] if more > 0 else [])]


MOST_ROWS, MOST_COLUMNS = 5, 24
COLUMNS = 76
"""Columns that drawings beside each other take at most."""


def loop_lines(parts: Sequence[LoopPart], step: int) -> list[str]:
    """The drawings of a step, those of a role beside each other; none where nothing is known of it."""
    lines: list[str] = []
    for found, more in in_roles(parts):
        row: list[list[str]] = []
        for block in (_block(part, step) for part in found):
            if row and sum(len(other[0]) + 2 for other in row) + len(block[0]) > COLUMNS:
                lines += _beside(row)
                row = []
            row.append(block)
        lines += _beside(row)
        lines += [f"and {more} more"] if more else []
    return lines


def _block(part: LoopPart, step: int) -> list[str]:
    """A tensor and its words, lines of one length."""
    picture = part.picture(step)
    lines = [printable(f"{part.role} {part.what}"), str(part.part), *grid(picture, *_size(picture))]
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def _size(picture: Picture) -> tuple[int, int]:
    """Rows and columns of characters, twice as high as wide, in the tensor's proportions as far as both can be seen."""
    rows, columns = picture.rows.size, picture.columns.size
    scale = min(MOST_ROWS / rows, MOST_COLUMNS / 2 / columns, 1)
    return max(round(rows * scale), 1), max(round(2 * columns * scale), min(columns, 2))


def _beside(blocks: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in zip_longest(*blocks):
        padded = (cell or " " * len(block[0]) for cell, block in zip(cells, blocks, strict=True))
        yield "  ".join(padded).rstrip()
