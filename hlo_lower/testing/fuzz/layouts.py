"""Draw forms and index columns, each meant to write one kind of subset.

What is drawn is any legal scatter of that shape of mind; `hlo_lower.classify` says what it is in the end.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.draw import Draw
from hlo_lower.testing.fuzz.index_columns import DrawnColumn, Kind, Treatment
from hlo_lower.testing.fuzz.sketch import Sketch


def draw_form(draw: Draw, subset: str, index_type: str) -> CaseForm:
    """A form that is meant to write a kind of subset."""
    sketch = Sketch(draw, index_type)
    LAYOUTS[subset](sketch)
    return sketch.finish()


# --- one kind of subset each ---


def _ones(sketch: Sketch) -> None:
    for _ in range(sketch.draw.choice((1, 0, 2))):
        sketch.scatter_dim(1)


def _many(sketch: Sketch) -> None:
    sketch.scatter_dim(sketch.draw.integer(2, 5))
    if sketch.draw.chance(25):
        sketch.scatter_dim(sketch.draw.integer(1, 3))


def _empty(sketch: Sketch) -> None:
    draw = sketch.draw
    how = draw.choice(("outside", "outside", "outside", "no positions", "empty window", "empty operand", "no place"))
    _ones(sketch) if draw.chance(40) else _many(sketch)
    if how == "no positions":
        sketch.scatter_dim(0)
    if how == "empty window":
        sketch.dim(sketch.size(), 0)
    if how == "empty operand":
        sketch.dim(0, 0)
    dim = sketch.indexed_dim()
    if how == "no place":  # an extent of 1 in a dim of none, which is legal for an inserted one
        sketch.column(sketch.dim(0, 1, inserted=True), draw.choice(("data", "uniform")))
    if how == "outside":
        size, window = sketch.sizes[dim], sketch.window[dim]
        if draw.chance(50) and sketch.holds(size + 2):
            sketch.columns[-1] = replace(sketch.columns[-1], treatment="clamped outside")
        else:
            beyond = [v for v in (size, size + 1, -window, -window - 1) if sketch.holds(v)]
            values = tuple(draw.choice(beyond) for _ in range(prod(sketch.positions))) if beyond else ()
            sketch.columns[-1] = DrawnColumn(dim, "constant" if beyond else "data", values=values)
        if draw.chance(40):
            sketch.indexed_dim()
    sketch.rest(2, partial=True)


def _full(sketch: Sketch) -> None:
    draw = sketch.draw
    _ones(sketch)
    for _ in range(draw.integer(0, 3)):
        size = sketch.size()
        how = draw.choice(("whole", "whole", "clamped", "constant", "run", "batch"))
        if how == "whole":
            sketch.dim(size, size)
        elif how == "clamped" and sketch.holds(size + 2):
            sketch.column(sketch.dim(size, size), draw.choice(("uniform", "data")), treatment="clamped")
        elif how == "run":
            sketch.column(sketch.dim(size, 1, inserted=True), "coordinate", sketch.scatter_dim(size))
        elif how == "batch":
            sketch.batch_dim(sketch.scatter_dim(size))
        else:
            sketch.columns.append(DrawnColumn(sketch.dim(size, size), "constant"))
    count = prod(sketch.positions)
    for k, column in enumerate(sketch.columns):
        if column.kind == "constant":
            sketch.columns[k] = replace(column, values=(0,) * count)
    # A run that came later has made earlier data columns longer than they have to be; they are clamped to 0.


def _tile(sketch: Sketch) -> None:
    _ones(sketch)
    draw = sketch.draw
    if draw.chance(20):  # rows that are all inside
        rows = draw.integer(2, 4)
        start = draw.integer(0, 2)
        dim = sketch.dim(rows + start + draw.integer(0, 2), 1, inserted=True)
        sketch.column(dim, "coordinate", sketch.scatter_dim(rows), offset=start)
    size = sketch.size(2)
    if draw.chance(75):
        kind: Kind = draw.choice(("uniform", "uniform", "constant"))
        treatment: Treatment = draw.choice(("", "", "normalised", "clamped")) if kind == "uniform" else ""
        sketch.column(sketch.dim(size, draw.integer(2, size)), kind, treatment=treatment)
    else:
        sketch.dim(size, draw.integer(1, size - 1))
    for _ in range(draw.integer(0, 1)):
        sketch.indexed_dim(kind=draw.choice(("uniform", "constant")))
    sketch.rest(2, partial=True)


def _point(sketch: Sketch) -> None:
    _ones(sketch)
    for _ in range(sketch.draw.integer(1, 3)):
        sketch.indexed_dim(ones=True, kind=sketch.draw.choice(("uniform", "data", "constant")))
    if sketch.draw.chance(20):
        sketch.dim(sketch.size(2), 1, inserted=sketch.draw.chance(50))


def _rows(sketch: Sketch) -> None:
    draw = sketch.draw
    for _ in range(2 if draw.chance(25) else 1):
        along = sketch.scatter_dim(draw.integer(2, 5))
        dim = sketch.dim(sketch.size(), 1, inserted=not draw.chance(25))
        kind: Kind = draw.choice(("run", "run", "run", "reversed"))
        offset = draw.choice((0, 0, 0, 1, 2))
        sketch.column(dim, kind, along, offset, draw.choice(("", "", "normalised")))
    if draw.chance(25):
        sketch.scatter_dim(1)
    if draw.chance(30):
        sketch.indexed_dim(kind=draw.choice(("uniform", "uniform", "constant")))
    sketch.rest(2, partial=True)


def _batched_tile(sketch: Sketch) -> None:
    draw = sketch.draw
    sizes = [draw.integer(2, 4) for _ in range(2 if draw.chance(30) else 1)]
    if draw.chance(12):
        sizes[0] = 18  # more windows than are unrolled
    for size in sizes:
        sketch.scatter_dim(size)
    for place, size in enumerate(sizes):
        if draw.chance(45):
            sketch.batch_dim(place)
        else:
            sketch.column(sketch.dim(size, 1, inserted=not draw.chance(20)), "coordinate", place)
    if draw.chance(25):
        along = sketch.scatter_dim(draw.integer(2, 4))
        sketch.column(sketch.dim(sketch.size(), 1, inserted=True), "mixed", along)
    else:
        sketch.indexed_dim(kind="data")
    if draw.chance(20):
        sketch.indexed_dim(kind="uniform")
    sketch.rest(1, partial=True)


def _filter(sketch: Sketch) -> None:
    draw = sketch.draw
    _many(sketch)
    constant = draw.chance(25)
    for k in range(2 if draw.chance(25) else 1):
        kind: Kind = "constant" if constant else "data" if k == 0 else draw.choice(("uniform", "strided", "data"))
        sketch.indexed_dim(ones=True, kind=kind)
    size = sketch.size(2)
    sketch.dim(size, size)
    sketch.rest(1, partial=False)


def _points(sketch: Sketch) -> None:
    draw = sketch.draw
    _many(sketch)
    if draw.chance(6):
        return  # into a scalar, or into a pinned element: every update lands at one place
    constant = draw.chance(25)
    for k in range(draw.integer(1, 3)):
        kind: Kind = (
            "constant" if constant else "data" if k == 0 else draw.choice(("uniform", "data", "strided", "run"))
        )
        sketch.indexed_dim(ones=True, kind=kind)
    if draw.chance(15):
        sketch.dim(sketch.size(), 1, inserted=draw.chance(50))


def _windows(sketch: Sketch) -> None:
    draw = sketch.draw
    _many(sketch)
    constant = draw.chance(20)
    size = sketch.size(3)
    if draw.chance(80):
        window = draw.integer(2, size)
        kind: Kind = "constant" if constant else "data"
        sketch.column(sketch.dim(size, window), kind, treatment=draw.choice(("", "", "normalised", "clamped")))
    else:
        sketch.dim(size, draw.integer(2, size - 1))
        if not draw.chance(20):  # without an index vector every window lands at the start (K = 0)
            sketch.indexed_dim(kind="constant" if constant else "data")
    for _ in range(draw.integer(0, 1)):
        sketch.indexed_dim(kind="constant" if constant else None)
    sketch.rest(1, partial=True)


LAYOUTS: Mapping[str, Callable[[Sketch], None]] = {
    "Point": _point,
    "Tile": _tile,
    "Full": _full,
    "Rows": _rows,
    "Filter": _filter,
    "Points": _points,
    "Windows": _windows,
    "BatchedTile": _batched_tile,
    "Empty": _empty,
}
"""How the form of each kind of subset is drawn, the simplest first."""
