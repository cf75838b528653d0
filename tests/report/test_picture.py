"""What a scatter writes, drawn: where the boxes lie, and the same as SVG and as characters."""

from collections import Counter
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.predicates import Claims, RunClaim
from hlo_lower.facts.scatter.record import Written
from hlo_lower.report.picture import Look, picture_of, svg_of, text_of

GUARDED = {"bounds": Code.GUARDED(Code.ARGUMENT(1, "main", None)), "in_bounds": "unknown"}


@pytest.fixture
def wrote(record):
    """A factory of records by their shape, subset, counts and index."""

    def make(shape, subset, counts, index, **changes):
        return record(operand_shape=shape, subset=subset, writes=Written(counts, index), **changes)

    return make


def looks(picture):
    """How many boxes have each look."""
    return Counter(box.look for box in picture.boxes)


def test_a_known_tile_lies_where_it_is(wrote):
    """[2:5, 1:3] of 16x8 is rows 2 to 4, columns 1 and 2."""
    [box] = picture_of(wrote((16, 8), "Tile", (1,), ("2:5", "1:3"))).boxes
    assert (box.rows, box.columns, box.look) == ((2, 5), (1, 3), Look.WRITTEN)


def test_a_window_at_run_time_is_drawn_inside(wrote):
    """Its extent is that of the index; where it lies is some place."""
    [box] = picture_of(wrote((64, 16), "Tile", (1,), ("pos:pos+4", ":"))).boxes
    assert box.rows[1] - box.rows[0] == 4
    assert 0 <= box.rows[0] <= 60
    assert box.columns == (0, 16)


def test_a_guard_is_a_window_that_leaves_the_operand(wrote):
    """It crosses the last row, or lies behind it where it is one row."""
    picture = picture_of(wrote((64, 16), "Tile", (1,), ("i:i+4", ":"), **GUARDED))
    assert looks(picture) == {Look.WRITTEN: 1, Look.OUTSIDE: 1}
    assert picture.boxes[-1].rows == (62, 66)
    assert picture_of(wrote((64,), "Point", (1,), ("i",), **GUARDED)).boxes[-1].columns == (64, 65)
    assert "a window that leaves the operand is dropped whole (guard)" in picture.captions


def test_the_policy_says_what_is_dropped(wrote):
    """Under the specification's policy elements are dropped, not windows."""
    picture = picture_of(wrote((64, 16), "Tile", (1,), ("i:i+4", ":"), oob="spec", **GUARDED))
    assert "a window that leaves the operand is cut: what lies outside is dropped (guard)" in picture.captions


def test_windows_that_may_meet_overlap_and_others_do_not(wrote):
    """A second mark lies on the first window unless it is proved that none is written twice."""
    shape = ((32, 4), "Windows", (5,), ("i:i+4", ":"))
    met = picture_of(wrote(*shape, unique="unknown", combiner="add"))
    assert looks(met)[Look.AGAIN] == 1
    assert "windows may meet: add" in met.captions
    apart = picture_of(wrote(*shape, unique="proved"))
    assert looks(apart)[Look.AGAIN] == 0
    boxes = sorted(box.rows for box in apart.boxes)
    assert len(boxes) > 1
    assert all(first[1] <= second[0] for first, second in pairwise(boxes))


def test_each_batch_coordinate_has_its_window(wrote):
    """[b, i] draws one box in each row."""
    picture = picture_of(wrote((5, 40), "BatchedTile", (5,), ("b", "i")))
    assert [box.rows for box in picture.boxes] == [(n, n + 1) for n in range(5)]


def test_rows_of_a_run_lie_side_by_side(wrote):
    """Eight rows from a base are one box of eight rows."""
    claims = Claims("xla", (8,), runs=(RunClaim(0, 0),))
    [box] = picture_of(wrote((64, 16), "Rows", (8,), ("i", ":"), claims=claims)).boxes
    assert box.rows[1] - box.rows[0] == 8


def test_the_dims_that_tell_most_are_drawn(wrote):
    """Of four dims the one that moves and the largest of the others; the rest is a line of text, dims of one none."""
    picture = picture_of(wrote((1, 8, 64, 16), "Tile", (1,), (":", ":", "pos", ":")))
    assert (picture.rows.told, picture.columns.told) == ("dim 2: pos of 64", "dim 3: 16")
    assert picture.captions == ("dim 1: all of 8",)


def test_nothing_is_drawn_where_nothing_is_known(wrote, record):
    """No canonical form, no dim, no element: no drawing, in any form."""
    for one in (
        record(writes=Written(), bounds=Code.NOT_KNOWN()),
        wrote((), "Full", (1,), ()),
        wrote((0, 4), "Empty", (1,), ("i", ":")),
    ):
        assert (picture_of(one), svg_of(one), text_of(one)) == (None, "", [])


def test_nothing_inside_writes_nothing(wrote):
    """All that is drawn lies outside."""
    picture = picture_of(wrote((9,), "Point", (1,), ("i",), bounds=Code.NOTHING_IN_BOUNDS(), in_bounds="never"))
    assert looks(picture) == {Look.OUTSIDE: 1}
    assert "nothing is inside: nothing is written" in picture.captions


def test_a_dynamic_size_is_told_as_unknown(wrote):
    """It is drawn with some cells, and said to be of no known size."""
    assert picture_of(wrote((None, 4), "Filter", (3,), ("i", ":"))).rows.told == "dim 0: i of ?"


@pytest.mark.parametrize("shape", [(16, 8), (8, 64), (64, 16)])
def test_the_svg_has_the_shapes_proportions(wrote, shape):
    """Height to width of the operand is rows to columns."""
    [operand] = [rect for rect in rects(svg_of(wrote(shape, "Full", (1,), (":", ":")))) if "stroke" in rect]
    assert float(operand["height"]) / float(operand["width"]) == pytest.approx(shape[0] / shape[1], rel=0.1)


def rects(svg):
    """The attributes of the rectangles of an SVG."""
    return [element.attrib for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("rect")]


def test_the_svg_is_well_formed_and_says_in_words_what_it_shows(wrote):
    """Its label has what is written and every caption; nothing leaves its view box."""
    one = wrote((1, 2000), "Points", (900,), ("i", "j"), unique="unknown", combiner="max", **GUARDED)
    for alone in (False, True):
        tree = ElementTree.fromstring(svg_of(one, alone=alone))
        assert tree.attrib["role"] == "img"
        assert tree.attrib["aria-label"].startswith("900 points [i, j] of 1x2000. across, dim 1: j of 2000. ")
        width, height = map(float, tree.attrib["viewBox"].split()[2:])
        for rect in rects(svg_of(one, alone=alone)):
            assert float(rect["x"]) + float(rect["width"]) <= width
            assert float(rect["y"]) + float(rect["height"]) <= height
            assert min(float(rect["width"]), float(rect["height"])) >= 3


def test_the_text_has_a_character_for_each_cell(wrote):
    """Written cells, what leaves the operand behind its edge, and what the characters mean."""
    assert text_of(wrote((4, 3), "Tile", (1,), ("1:3", "2"), **GUARDED)) == [
        *("+---+", "|...|", "|..#|", "|..#|", "|...|", "+---+"),
        "down, dim 0: 1:3 of 4; across, dim 1: 2 of 3",
        "# written",
        "a window that leaves the operand is dropped whole (guard)",
    ]
    lines = text_of(wrote((4, 3), "Tile", (1,), ("i", ":"), **GUARDED))
    assert lines[:7] == ["+---+", "|...|", "|###|", "|...|", "|...|", "+---+", " ooo"]


def test_a_large_operand_fits_a_terminal(wrote):
    """No more than 8 rows and 32 columns of cells, and a single row is still seen."""
    lines = text_of(wrote((100000, 5000), "Tile", (1,), ("i", ":")))
    assert max(map(len, lines[:10])) == 34
    assert sum("#" in line for line in lines[:9]) == 1
