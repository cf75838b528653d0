"""A step of a loop, drawn: what it takes of each tensor, as SVG and characters, in page, notebook and docs."""

import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import hlo_lower as hl
from hlo_lower.base.drawing.picture import Look
from hlo_lower.cli.plan_page import plan_page
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.reader import read
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.axes.cut import Steps
from hlo_lower.ops.axes.tensor_subset import TensorSubset
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.loop_picture import LoopPart, drawn_step
from hlo_lower.tile.tiled_module import Tiled, records

ROOT = Path(__file__).resolve().parents[2]

TEXT = """\
func.func public @main(%x: tensor<24x8xf32>, %w: tensor<8x96xf32>) -> (tensor<24xf32>, tensor<8x96xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x8xf32>, tensor<8x96xf32>) -> tensor<24x96xf32>
  %sums = stablehlo.reduce(%logits init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<24x96xf32>, tensor<f32>) -> tensor<24xf32>
  %back = stablehlo.dot_general %x, %logits, contracting_dims = [0] x [0]
    : (tensor<24x8xf32>, tensor<24x96xf32>) -> tensor<8x96xf32>
  return %sums, %back : tensor<24xf32>, tensor<8x96xf32>
}
"""


def loops(text, place, dim, size):
    """The loops that are asked for by hand, as they are told of; nothing is built."""
    program = Dataflow(read(text, "loss.mlir"), default_subset_rules())
    choice = choice_by_hand(program, hl.ByHand(place, dim, size))
    return records(program, choice.plan, choice.sizes)


@pytest.fixture(scope="module")
def loop():
    """A loop over columns, eight at a time."""
    [found] = loops(TEXT, "loss.mlir:3", 1, 8)
    return found


def test_a_step_takes_of_each_tensor_what_it_reads_computes_and_gives(loop):
    """Columns of what has them, all of what has none, and sums; scalars are not told."""
    assert [str(part) for part in loop.parts] == [
        "reads argument 1: [:, i:+8] of 8x96",
        "reads argument 0: [:, :] of 24x8",
        "computes dot_general: [:, i:+8] of 24x96",
        "writes dot_general: [:, i:+8] of 8x96",
        "accumulates reduce by add: [:] of 24",
    ]
    assert loop.to_json()["parts"][0] == {"role": "reads", "what": "argument 1", "part": "[:, i:+8] of 8x96"}


def test_the_drawing_is_in_proportion_and_says_in_words_what_it_shows(loop):
    """Each tensor has its shape, the part its share of it at one step in all; what is never stored whole is dashed."""
    tree = ElementTree.fromstring(loop.svg(alone=True))
    told = tree.attrib["aria-label"]
    assert all(str(part) in told for part in loop.parts)
    rects = [e.attrib for e in tree.iter() if e.tag.endswith("rect")]
    pairs = list(zip(rects[::2], rects[1::2], strict=True))
    assert len(pairs) == len(loop.parts)
    assert ["stroke-dasharray" in whole for whole, _ in pairs] == [p.look is Look.HELD for p in loop.parts]
    for part, (whole, taken) in zip(loop.parts, pairs, strict=True):
        rows, columns = (1, *part.part.shape)[-2:]
        if min(rows, columns) > 1:
            assert float(whole["width"]) / float(whole["height"]) == pytest.approx(columns / rows, rel=0.2)
        share = part.part.sizes[-1] / part.part.shape[-1]
        assert float(taken["width"]) / float(whole["width"]) == pytest.approx(share, abs=0.02)
        if share < 1:
            at = (float(taken["x"]) - float(whole["x"])) / float(whole["width"])
            assert at == pytest.approx(drawn_step(96, 8) / 96, abs=0.02)
    width, height = map(float, tree.attrib["viewBox"].split()[2:])
    assert (width, height) > (300, 100)


def test_the_characters_say_the_same(loop):
    """A block for each tensor, its words above it, side by side within 76 columns."""
    lines = loop.drawing()
    assert max(map(len, lines)) <= 76
    assert [line.split("  ")[0] for line in lines if "argument 1" in line] == ["reads argument 1"]
    assert "[:, i:+8] of 24x96" in "\n".join(lines)
    [computed] = [line for line in lines if "~" in line and "|" in line][:1]
    assert computed.count("~") < computed.count(".")
    assert {"=", "~", "#", "+"} <= set("".join(lines))


def test_the_last_step_stays_inside():
    """A step that would leave the tensor is drawn moved back, as it is computed."""
    part = LoopPart(Look.READ, "argument 0", Steps("i", 10, 4).part((10, 3), 0))
    [box] = part.picture(8).boxes
    assert (box.rows, box.columns) == ((6, 10), (0, 3))


def test_a_scalar_and_a_point_can_be_drawn():
    """Of no dims there is one cell."""
    [box] = LoopPart(Look.ADDED, "reduce by add", TensorSubset.full(())).picture(0).boxes
    assert (box.rows, box.columns) == ((0, 1), (0, 1))


def test_page_notebook_and_text_show_alike_loops_once(loop):
    """Two loops of one drawing have one figure with two captions, and one block of characters with two places."""
    other = replace(loop, where="b<c>.py:9")
    tiled = Tiled(read(TEXT), (loop, other), 9216, 1600, 2048)
    for html in (plan_page(tiled, "m.mlir"), tiled._repr_html_()):
        assert html.count("<svg") == html.count("<figure>") == 1
        assert html.count("[:, i:+8] of 24x96, ") >= 2
        assert "b&lt;c&gt;.py:9: " in html
    [head, *lines] = tiled.drawing_lines()
    assert head == f"2 loops at {loop.where}, b<c>.py:9, one step"
    assert [line.removeprefix("  ") for line in lines] == loop.drawing()


def test_a_loop_of_which_nothing_is_known_is_not_drawn(loop):
    """Neither in the page nor as characters."""
    tiled = Tiled(read(TEXT), (replace(loop, parts=()),), 9216, 1600, 2048)
    assert tiled.drawing_lines() == tiled.figures() == []


def test_a_loop_within_a_loop_is_indented(loop):
    """So that what is in what is seen."""
    tiled = Tiled(read(TEXT), (loop, replace(loop, depth=1)))
    assert [line[: line.index("loop ")] for line in tiled.lines()[1:]] == ["  ", "    "]


def test_the_document_shows_what_the_page_draws(monkeypatch):
    """The figure of docs/tiling.md is the drawing of its program's loop."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.setattr(sys, "argv", ["tiling_figures"])
    from tiling_figures import PROGRAM

    [found] = loops(PROGRAM, "loss.mlir:4", 1, 500)
    assert (ROOT / "docs" / "figures" / "tiling_loop.svg").read_text() == found.svg(alone=True) + "\n"
    assert str(found).removeprefix("loss.mlir:4: ") in (ROOT / "docs" / "tiling.md").read_text()
