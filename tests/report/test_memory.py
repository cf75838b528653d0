"""Memory over program order: what the curve of a module says, and that every format of a report has it."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import hlo_lower as hl
from hlo_lower.base.memory import LoopSpan, MemoryCurve, memory_lines, memory_svg
from hlo_lower.facts.memory.memory_curve import MOST_OPS, curves_of
from hlo_lower.ir.reader import read
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import render_json
from hlo_lower.report.text import render_text

CALLED = """
func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = call @twice(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = call @twice(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}
func.func private @twice(%y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %big = stablehlo.dot_general %y, %y, batching_dims = [] x [], contracting_dims = [] x []
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x4x4xf32>
  %p:2 = stablehlo.while(%i = %zero, %v = %y) : tensor<i32>, tensor<4x4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %s = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %s : tensor<i32>, tensor<4x4xf32>
  }
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%big init: %f) applies stablehlo.add across dimensions = [2, 3]
    : (tensor<4x4x4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %z = stablehlo.add %r, %p#1 : tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}
"""

SCATTER = """
func.func public @main(%cache: tensor<64x16xf32>, %pos: tensor<1xi32>, %row: tensor<1x16xf32>) -> tensor<64x16xf32> {
  %twice = stablehlo.add %cache, %cache : tensor<64x16xf32>
  %r = "stablehlo.scatter"(%twice, %pos, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) : (tensor<64x16xf32>, tensor<1xi32>, tensor<1x16xf32>) -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}"""

UP_AND_DOWN = MemoryCurve((*[0] * 500, 1000, *[10] * 499), (LoopSpan(600, 999, "<a>.py:3"),))


def test_steps_keep_the_peak_and_the_order():
    """Of 1,000 ops eight steps are told; the one op at which much is live is in one of them."""
    assert UP_AND_DOWN.steps(8) == [0, 0, 0, 0, 1000, 10, 10, 10]
    assert MemoryCurve((3, 1, 2)).steps(8) == [3, 1, 2]
    assert MemoryCurve(()).steps(8) == []


def test_a_function_stands_at_each_call_with_its_loops():
    """What is live in a called function is live at the call, twice here, and its loop is a span there."""
    [curve] = curves_of(read(CALLED))
    assert curve.most >= 4 * 4 * 4 * 4 * 4
    peaks = [place for place, size in enumerate(curve.live) if size >= 1024]
    half = len(curve.live) // 2
    assert {place < half for place in peaks} == {True, False}
    assert len(curve.loops) == 2
    assert curve.loops[0].last < half <= curve.loops[1].first
    assert curve.loops[1].last - curve.loops[1].first == curve.loops[0].last - curve.loops[0].first > 0


def test_unknown_sizes_have_no_curve():
    """A module of symbolic shape is not told as if what is not known were nothing."""
    text = "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> { %y = stablehlo.add %x, %x : tensor<?xf32>\n"
    assert curves_of(read(text + "return %y : tensor<?xf32> }")) == ()


def test_a_conversion_tells_both_and_a_classification_what_it_builds(tmp_path):
    """Before and after where the module is lowered, for a target that is not built for what is given alone."""
    (tmp_path / "m.mlir").write_text(SCATTER)
    [given] = hl.classify_modules(tmp_path / "m.mlir")
    [tried] = hl.classify_modules(tmp_path / "m.mlir", target="coreml")
    [done] = hl.convert_modules(tmp_path / "m.mlir", tmp_path / "o", verify="off", target="iree", with_texts=True)
    assert [len(one.memory) for one in (given, tried, done)] == [1, 2, 2]
    assert given.memory[0] == tried.memory[0] == done.memory[0]
    [written] = (tmp_path / "o").rglob("m.mlir")
    assert (done.memory[1],) == curves_of(read(written.read_text()))


def test_every_format_has_it(decode):
    """The JSON report its steps and loops, the page the drawing, what explains a scatter the same in characters."""
    report = replace(decode, memory=(UP_AND_DOWN, MemoryCurve((1, 2000, 3))))
    before, after = json.loads(render_json([report]))["modules"][0]["memory"]
    assert (before["peak"], before["ops"], max(before["steps"])) == (1000, 1000, 1000)
    assert before["loops"] == [{"first": 600, "last": 999, "where": "<a>.py:3"}]
    assert after["steps"] == [1, 2000, 3]
    page = render_html([report])
    texts = json.loads(re.search(r'id="words">(.*?)</script>', page)[1])["texts"]
    assert memory_svg(report.memory) in texts
    told = render_text([report], explain=(1,))
    assert "before: 1000 B at the peak, 1,000 ops, 1 loop" in told
    assert "memory over" not in render_text([report])


def test_the_drawings_are_those_of_the_curves():
    """The SVG parses, names are text in it, peaks are as high as they are large; so are columns of characters."""
    drawn = memory_svg((UP_AND_DOWN, MemoryCurve((500,))), 800, alone=True)
    root = ElementTree.fromstring(drawn)
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert texts.count("asked 800 B") == 2
    assert [one.text for one in root.iter() if one.tag.endswith("title")] == ["loop at <a>.py:3"]
    heights = re.findall(r"V(\d+)", drawn)
    assert min(map(int, heights)) == 24
    rows = memory_lines((UP_AND_DOWN,))
    assert sum("#" in row for row in rows) == 5
    assert rows[-1].split() == ["loops", "=" * 24]
    assert memory_svg((MemoryCurve((0, 0)),)) == ""
    assert memory_lines(()) == []


def test_a_notebook_shows_it():
    """A lowered module shows what is live in it, folded."""
    assert 'class="memory"' in hl.lower(SCATTER)._repr_html_()


def called(depth, times):
    """A module of functions, each of which calls the next one so many times; the last one holds 64 KiB for a moment."""
    lines = []
    for k in range(depth):
        calls = [f"%{n + 1} = func.call @f{k + 1}(%{n}) : (tensor<4xf32>) -> tensor<4xf32>" for n in range(times)]
        lines.append(f"func.func private @f{k}(%0: tensor<4xf32>) -> tensor<4xf32> {{ {chr(10).join(calls)}")
        lines.append(f"return %{times} : tensor<4xf32> }}")
    return "\n".join(
        [
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {",
            "%r = func.call @f0(%x) : (tensor<4xf32>) -> tensor<4xf32>",
            "return %r : tensor<4xf32> }",
            *lines,
            f"func.func private @f{depth}(%x: tensor<4xf32>) -> tensor<4xf32> {{",
            "%b = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<4096x4xf32>",
            "%s = stablehlo.transpose %b, dims = [1, 0] : (tensor<4096x4xf32>) -> tensor<4x4096xf32>",
            "%t = stablehlo.slice %s [0:4, 7:8] : (tensor<4x4096xf32>) -> tensor<4x1xf32>",
            "%r = stablehlo.reshape %t : (tensor<4x1xf32>) -> tensor<4xf32>",
            "return %r : tensor<4xf32> }",
        ]
    )


def test_trap_54_calls_of_calls_are_no_longer_than_a_curve_may_be():
    """Forty functions that call the next one twice are 2^40 calls; the peak of the last one stands in the curve."""
    [curve] = curves_of(hl.read(called(40, 2)))
    [once] = curves_of(hl.read(called(2, 1)))
    assert len(curve.live) < 2 * MOST_OPS
    assert once.most == 2 * 4096 * 4 * 4  # the broadcast and its transpose
    assert once.most <= curve.most <= once.most + 40 * 2 * 16  # and what each caller holds meanwhile


def test_functions_that_call_one_another_very_deep_have_a_curve():
    """Three thousand of them are no error; what the deepest ones hold is not looked at."""
    [curve] = curves_of(hl.read(called(3000, 1)))
    assert curve.live
