"""The page of a plan: curves before and after, loops, and nothing from elsewhere."""

from xml.etree import ElementTree

import hlo_lower as hl
from hlo_lower.base.memory import memory_svg
from hlo_lower.cli.plan_page import plan_page
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.memory_curve import curves_of
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.tiled_module import Tiled, TiledLoopRecord

TEXT = """\
func.func public @main(%x: tensor<24x8xf32>, %w: tensor<8x96xf32>) -> tensor<24xf32> {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x8xf32>, tensor<8x96xf32>) -> tensor<24x96xf32>
  %sums = stablehlo.reduce(%logits init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<24x96xf32>, tensor<f32>) -> tensor<24xf32>
  return %sums : tensor<24xf32>
}
"""


def curves():
    """A module before and after a loop over four columns at a time."""
    rules = default_subset_rules()
    graph = read(TEXT)
    [before] = curves_of(graph)
    program = Dataflow(graph, rules)
    choice = choice_by_hand(program, hl.ByHand("<module>:3", 0, 4))
    emit(program, choice.plan, choice.sizes)
    return before, *curves_of(graph), to_text(graph)


def test_a_loop_lowers_the_curve():
    """Before, all of the logits are live at their op; after, four rows of them, within the span of the loop."""
    before, after, text = curves()
    assert before.most == 24 * 96 * 4
    assert "stablehlo.while" in text
    [span] = after.loops
    assert after.most < before.most / 4
    assert after.most in after.live[span.first : span.last + 1]


def test_the_drawing_is_svg():
    """It is one element of SVG that parses, with both peaks, the bound and the loop, and no reference to elsewhere."""
    before, after, _ = curves()
    drawn = memory_svg((before, after), 2048, alone=True)
    root = ElementTree.fromstring(drawn)
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert any("before: 9.0 KiB at the peak" in text for text in texts)
    assert texts.count("asked 2.0 KiB") == 2
    assert [e.text for e in root.iter() if e.tag.endswith("title")] == ["loop at <module>:3"]
    assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_page_escapes_what_it_shows():
    """Places and types are text, not markup; what is left is listed."""
    before, after, _ = curves()
    loop = TiledLoopRecord("a<b>.py:3", "[i:+4, :] of 24x96", 24, 4, 2, ("24xf32",), (), (), is_exact=False)
    tiled = Tiled(read(TEXT), (loop,), 9216, 1600, 2048, ("4.0 KiB 8x8 & more",), memory=(before, after))
    page = plan_page(tiled, "m&m.mlir")
    assert "a&lt;b&gt;.py:3" in page
    assert "4.0 KiB 8x8 &amp; more" in page
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
