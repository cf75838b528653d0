"""A step of a loop over tiles as characters, for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from hlo_lower.base.drawing.picture import Picture
from hlo_lower.base.drawing.picture_text import grid
from hlo_lower.base.short_forms import printable
from hlo_lower.tile.loop_picture import LoopPart, in_roles

MOST_ROWS, MOST_COLUMNS = 5, 24
WIDTH = 76
"""Columns that drawings beside each other take at most."""


def loop_lines(parts: Sequence[LoopPart], step: int) -> list[str]:
    """The drawings of a step, those of a role beside each other; none where nothing is known of it."""
    lines: list[str] = []
    for found, more in in_roles(parts):
        row: list[list[str]] = []
        for block in (_block(part, step) for part in found):
            if row and sum(len(other[0]) + 2 for other in row) + len(block[0]) > WIDTH:
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
