"""A drawing of what is taken of a tensor as characters, for a terminal."""

from collections.abc import Iterator

from hlo_lower.base.drawing.picture import Axis, Look, Picture

MOST_ROWS, MOST_COLUMNS = 8, 32

MARKS = {
    Look.READ: "=",
    Look.HELD: "~",
    Look.WRITTEN: "#",
    Look.ADDED: "+",
    Look.AGAIN: "%",
    Look.OUTSIDE: "o",
}
LEGEND = {Look.WRITTEN: "# written", Look.AGAIN: "% may be written again", Look.OUTSIDE: "o outside, dropped"}


def picture_lines(picture: Picture) -> list[str]:
    """The lines of a drawing, and what its characters mean."""
    rows, columns = min(picture.rows.size, MOST_ROWS), min(picture.columns.size, MOST_COLUMNS)
    return [*grid(picture, rows, columns), *_words(picture)]


def grid(picture: Picture, rows: int, columns: int) -> Iterator[str]:
    """So many rows and columns of characters, each for a cell or for several; behind the right and the lower edge what
    leaves the tensor."""
    over_right = any(box.columns[1] > picture.columns.size for box in picture.boxes)
    over_below = any(box.rows[1] > picture.rows.size for box in picture.boxes)
    yield "+" + "-" * columns + "+"
    for row in range(rows):
        cells = "".join(_mark(picture, row, column, rows, columns) for column in range(columns))
        beyond = _mark(picture, row, columns, rows, columns).replace(".", "") if over_right else ""
        yield f"|{cells}|{beyond}"
    yield "+" + "-" * columns + "+"
    if over_below:
        yield " " + "".join(_mark(picture, rows, column, rows, columns) for column in range(columns)).replace(".", " ")


def _mark(picture: Picture, row: int, column: int, rows: int, columns: int) -> str:
    """What stands at a character: the last box that has one of its cells."""
    found = [
        box
        for box in picture.boxes
        if _meets(box.rows, row, rows, picture.rows) and _meets(box.columns, column, columns, picture.columns)
    ]
    return MARKS[found[-1].look] if found else "."


def _meets(cells: tuple[int, int], number: int, parts: int, axis: Axis) -> bool:
    """Whether cells are among those of a character: part `number` of `parts`, or all that lies behind the last."""
    if number >= parts:
        return cells[1] > axis.size
    return cells[0] * parts < (number + 1) * axis.size and cells[1] * parts > number * axis.size


def _words(picture: Picture) -> Iterator[str]:
    axes = [f"{way}, {axis.told}" for way, axis in (("down", picture.rows), ("across", picture.columns)) if axis.told]
    yield "; ".join(axes)
    yield "; ".join(LEGEND[look] for look in Look if any(box.look is look for box in picture.boxes))
    yield from picture.captions
