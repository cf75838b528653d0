"""What a scatter writes, drawn: where the boxes lie, the same as SVG and as characters, and the drawings of documents.

Run as a script it writes the drawings of the documents anew:

    python tests/report/test_picture.py
"""

from pathlib import Path
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import pytest
from jax.lax import GatherScatterMode, ScatterDimensionNumbers, scatter_add

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.predicates import Claims, RunClaim
from hlo_lower.facts.scatter.record import Written
from hlo_lower.report.picture import picture_of, svg_of, text_of

GUARDED = {"bounds": Code.GUARDED(Code.ARGUMENT(1, "main", None)), "in_bounds": "unknown"}


@pytest.fixture
def wrote(record):
    """A factory of records by their subset, shape, counts and index."""
    return lambda subset, shape, counts, index, **changes: record(
        operand_shape=shape, subset=subset, writes=Written(counts, index), **changes
    )


NEVER = {"bounds": Code.NOTHING_IN_BOUNDS(), "in_bounds": "never"}
RUN = {"claims": Claims("xla", (8,), runs=(RunClaim(0, 0),))}
PICTURES = {
    "a known tile": ("Tile", (8, 8), (1,), ("2:5", "1:3"), {}),
    "a window at run time": ("Tile", (64, 16), (1,), ("pos:pos+4", ":"), {}),
    "a guard: a window that leaves the operand": ("Tile", (64, 16), (1,), ("i:i+4", ":"), GUARDED),
    "a guard: one row behind it": ("Point", (64,), (1,), ("i",), GUARDED),
    "elements that the specification drops": ("Tile", (64, 16), (1,), ("i:i+4", ":"), GUARDED | {"oob": "spec"}),
    "windows that may meet": ("Windows", (32, 4), (5,), ("i:i+4", ":"), {"unique": "unknown", "combiner": "add"}),
    "windows that do not": ("Windows", (32, 4), (5,), ("i:i+4", ":"), {"unique": "proved", "combiner": "add"}),
    "a window of each batch coordinate": ("BatchedTile", (5, 40), (5,), ("b", "i"), {}),
    "rows of a run side by side": ("Rows", (64, 16), (8,), ("i", ":"), RUN),
    "the dims that tell most": ("Tile", (1, 8, 64, 16), (1,), (":", ":", "pos", ":"), {}),
    "nothing inside": ("Point", (9,), (1,), ("i",), NEVER),
    "a size that is not known": ("Filter", (None, 4), (3,), ("i", ":"), {}),
    "a column of a row": ("Tile", (4, 3), (1,), ("1:3", "2"), GUARDED),
    "a large operand": ("Tile", (100000, 5000), (1,), ("i", ":"), {}),
    "no dim": ("Full", (), (1,), (), {}),
    "no element": ("Empty", (0, 4), (1,), ("i", ":"), {}),
    "no canonical form": ("Tile", (8, 8), (), (), {"bounds": Code.NOT_KNOWN()}),
}


def pictured(record):
    """Where the boxes of a picture lie, and its characters; nothing where it is none, in any form."""
    picture, lines = picture_of(record), text_of(record)
    if picture is None:
        assert (svg_of(record), lines) == ("", [])
        return ["no picture"]
    return [f"{box.look.name.lower()} {box.rows} {box.columns}" for box in picture.boxes] + lines


def test_pictures(wrote):
    """Where boxes lie, what is dropped or may meet, and what is told of it, as the file shows."""
    told = [f"# {what}\n" + "\n".join(pictured(wrote(*case, **more))) for what, (*case, more) in PICTURES.items()]
    assert "\n\n".join(told) + "\n" == Path(__file__).with_name("pictures.txt").read_text()


def rects(svg):
    """The attributes of the rectangles of an SVG."""
    return [element.attrib for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("rect")]


def test_the_svg_has_the_shapes_proportions_and_says_in_words_what_it_shows(wrote):
    """Height to width is rows to columns; the label has every caption; nothing leaves the view box."""
    for shape in ((16, 8), (8, 64), (64, 16)):
        [operand] = [rect for rect in rects(svg_of(wrote("Full", shape, (1,), (":", ":")))) if "stroke" in rect]
        assert float(operand["height"]) / float(operand["width"]) == pytest.approx(shape[0] / shape[1], rel=0.1)
    one = wrote("Points", (1, 2000), (900,), ("i", "j"), unique="unknown", combiner="max", **GUARDED)
    for alone in (False, True):
        tree = ElementTree.fromstring(svg_of(one, alone=alone))
        assert tree.attrib["role"] == "img"
        assert tree.attrib["aria-label"].startswith("900 points [i, j] of 1x2000. across, dim 1: j of 2000. ")
        width, height = map(float, tree.attrib["viewBox"].split()[2:])
        for rect in rects(svg_of(one, alone=alone)):
            assert float(rect["x"]) + float(rect["width"]) <= width
            assert float(rect["y"]) + float(rect["height"]) <= height
            assert min(float(rect["width"]), float(rect["height"])) >= 3


DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
PROGRAMS = {  # operand, indices, updates, dimension numbers
    "Full": ((16, 8), (0,), (16, 8), ScatterDimensionNumbers((0, 1), (), ())),
    "Tile": ((16, 8), (2,), (4, 8), ScatterDimensionNumbers((0, 1), (), (0, 1))),
    "Point": ((16, 8), (2,), (), ScatterDimensionNumbers((), (0, 1), (0, 1))),
    "BatchedTile": ((6, 16), (6, 1), (6,), ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))),
    "Rows": ((16, 8), (4, 1), (4, 8), ROWS),
    "Filter": ((16, 8), (4, 1), (4, 8), ROWS),
    "Points": ((16, 8), (5, 2), (5,), ScatterDimensionNumbers((), (0, 1), (0, 1))),
    "Windows": ((16, 8), (3, 2), (3, 4, 2), ScatterDimensionNumbers((1, 2), (), (0, 1))),
}


def drawn(subset):
    """The drawing of a scatter-add of a subset, and where it stands; the indices of Rows are a base and an iota."""
    operand, indices, updates, numbers = PROGRAMS[subset]

    def scattered(x, i, u):
        at = jnp.arange(len(u), dtype=jnp.int32)[:, None] + i if subset == "Rows" else i
        return scatter_add(x, at, u, numbers, mode=GatherScatterMode.FILL_OR_DROP)

    types = (operand, jnp.float32), ((1,) if subset == "Rows" else indices, jnp.int32), (updates, jnp.float32)
    [record] = hl.classify(jax.jit(scattered).lower(*(jax.ShapeDtypeStruct(*one) for one in types)).as_text())
    assert record.subset == subset
    return svg_of(record, alone=True) + "\n", DOCS / "figures" / f"writes_{subset.lower()}.svg"


@pytest.mark.parametrize("subset", PROGRAMS)
def test_the_documents_show_what_reports_draw(subset):
    """The figure is what the function gives for a scatter of that subset, and a document shows it."""
    svg, path = drawn(subset)
    assert path.read_text() == svg
    assert f"(figures/{path.name})" in (DOCS / "glossary.md").read_text()


if __name__ == "__main__":
    for name in PROGRAMS:
        svg, path = drawn(name)
        path.write_text(svg)
