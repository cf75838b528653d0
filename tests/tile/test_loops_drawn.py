"""The page of a plan: a step of a loop, drawn as SVG and characters, in page, notebook and docs; the memory curves."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from small_tiles import HERE, LOGITS, by_hand

import hlo_lower as hl
from hlo_lower.base.drawing.picture import Look
from hlo_lower.base.memory import memory_svg
from hlo_lower.cli.plan_page import plan_page
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import curves_of
from hlo_lower.ir.reader import read
from hlo_lower.ops.axes.cut import Steps
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.ops.axes.parts import TensorSubset
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.loop_picture import LoopPart, drawn_step
from hlo_lower.tile.tiled_module import Tiled, TiledLoopRecord, records

ROOT = Path(__file__).resolve().parents[2]


def loop_of(text, line, size):
    """The loop over columns that is asked for by hand, as it is told of; nothing is built."""
    program = Dataflow(read(text, "loss.mlir"), default_subset_rules())
    choice = choice_by_hand(program, hl.ByHand(f"loss.mlir:{line}", {1: size}))
    [found] = records(program, choice.plan, choice.sizes)
    return found


@pytest.fixture(scope="module")
def loop():
    """A loop over columns, eight at a time."""
    return loop_of(LOGITS, 3, 8)


def test_a_step_is_told_and_drawn_in_characters(loop):
    """Columns of what has them, all of what has none, and sums; scalars are not told. Each tensor is a block, its words
    above it, side by side within 76 columns."""
    told = "\n".join([*map(str, loop.parts), "", *loop.drawing()]) + "\n"
    assert told == (HERE / "logits_loop.txt").read_text()
    assert max(map(len, loop.drawing())) <= 76
    assert loop.to_json()["parts"][0] == {"role": "reads", "what": "argument 1", "part": "[:, i:+8] of 8x96"}


def test_the_drawing_is_in_proportion_and_says_in_words_what_it_shows(loop):
    """Each tensor has its shape, the part its share of it at one step in all; what is never stored whole is dashed."""
    tree = ElementTree.fromstring(loop.svg(alone=True))
    assert all(str(part) in tree.attrib["aria-label"] for part in loop.parts)
    rects = [e.attrib for e in tree.iter() if e.tag.endswith("rect")]
    pairs = list(zip(rects[::2], rects[1::2], strict=True))
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
    assert tuple(map(float, tree.attrib["viewBox"].split()[2:])) > (300, 100)
    # a step that would leave the tensor is drawn moved back, as it is computed; a scalar is one cell
    [box] = LoopPart(Look.READ, "argument 0", Steps("i", 10, 4).part((10, 3), 0)).picture(8).boxes
    [cell] = LoopPart(Look.ADDED, "reduce by add", TensorSubset.full(())).picture(0).boxes
    assert (box.rows, box.columns, cell.rows, cell.columns) == ((6, 10), (0, 3), (0, 1), (0, 1))


def test_page_notebook_and_text_show_alike_loops_once(loop):
    """Two loops of one drawing have one figure with two captions, and one block of characters with two places; a loop
    of which nothing is known has none, and one within another is indented."""
    tiled = Tiled(read(LOGITS), (loop, replace(loop, where="b<c>.py:9")), 9216, 1600, 2048)
    for html in (plan_page(tiled, "m.mlir"), tiled._repr_html_()):
        assert html.count("<svg") == html.count("<figure>") == 1
        assert html.count("[:, i:+8] of 24x96, ") >= 2
        assert "b&lt;c&gt;.py:9: " in html
    [head, *lines] = tiled.drawing_lines()
    assert head == f"2 loops at {loop.where}, b<c>.py:9, one step"
    assert [line.removeprefix("  ") for line in lines] == loop.drawing()
    unknown = Tiled(read(LOGITS), (replace(loop, parts=()),), 9216, 1600, 2048)
    assert unknown.drawing_lines() == unknown.figures() == []
    nested = Tiled(read(LOGITS), (loop, replace(loop, depth=1)))
    assert [line[: line.index("loop ")] for line in nested.lines()[1:]] == ["  ", "    "]


def test_the_document_shows_what_the_page_draws(monkeypatch):
    """The figure of docs/tiling.md is the drawing of its program's loop."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from benchmark.tiled_program import PROGRAM

    found = loop_of(PROGRAM, 4, 500)
    assert (ROOT / "docs" / "figures" / "tiling_loop.svg").read_text() == found.svg(alone=True) + "\n"
    assert str(found).removeprefix("loss.mlir:4: ") in (ROOT / "docs" / "tiling.md").read_text()


def test_curves_before_and_after():
    """All logits and their exponentials are live at one op, then four rows of them within the span of a loop; the
    drawing tells both peaks, the bound and the loop, and the page escapes places and types."""
    [before], [after] = curves_of(read(LOGITS)), curves_of(read(by_hand(LOGITS, 3, 0, 4)))
    [span] = after.loops
    assert before.most == 2 * 24 * 96 * 4
    assert after.most < before.most / 2
    assert after.most in after.live[span.first : span.last + 1]
    drawn = memory_svg((before, after), 2048, alone=True)
    root = ElementTree.fromstring(drawn)
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert any("before: 18.0 KiB at the peak" in text for text in texts)
    assert texts.count("asked 2.0 KiB") == 2
    assert sum(e.tag.endswith("title") and e.text.startswith("loop at <") for e in root.iter()) == 1
    assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")
    loop = TiledLoopRecord("a<b>.py:3", "[i:+4, :] of 24x96", 24, 4, 2, ("24xf32",), (), (), is_exact=False)
    tiled = Tiled(read(LOGITS), (loop,), 9216, 1600, 2048, ("4.0 KiB 8x8 & more",), memory=(before, after))
    page = plan_page(tiled, "m&m.mlir")
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert [told for told in ("a&lt;b&gt;.py:3", "4.0 KiB 8x8 &amp; more") if told not in page] == []
