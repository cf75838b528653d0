"""Memory over program order: what the curve of a module says, and that every format of a report has it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.memory import LoopSpan, MemoryCurve, memory_lines, memory_svg
from hlo_lower.facts.memory.liveness import MOST_OPS, curves_of
from hlo_lower.ir.reader import read
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import render_json
from hlo_lower.report.text import render_text

HERE = Path(__file__).parent
UP_AND_DOWN = MemoryCurve((*[0] * 500, 1000, *[10] * 499), (LoopSpan(600, 999, "<a>.py:3"),))


def test_steps_keep_the_peak_and_the_order():
    """Of 1,000 ops eight steps are told; the one op at which much is live is in one of them."""
    assert UP_AND_DOWN.steps(8) == [0, 0, 0, 0, 1000, 10, 10, 10]
    assert MemoryCurve((3, 1, 2)).steps(8) == [3, 1, 2]
    assert MemoryCurve(()).steps(8) == []


def test_a_function_stands_at_each_call_with_its_loops():
    """What is live in a function is live at its two calls, with its loop; unknown sizes have no curve."""
    [curve] = curves_of(read(HERE / "called_twice.mlir"))
    assert curve.most >= 4 * 4 * 4 * 4 * 4
    half = len(curve.live) // 2
    assert {place < half for place, size in enumerate(curve.live) if size >= 1024} == {True, False}
    first, second = curve.loops
    assert first.last < half <= second.first
    assert second.last - second.first == first.last - first.first > 0
    assert curves_of(read(module("%x: ?xf32", "%r = add %x, %x"))) == ()


def test_a_conversion_tells_both_and_a_classification_what_it_builds(tmp_path):
    """Before and after where the module is lowered, else what is given alone; a notebook shows both, folded."""
    source = HERE / "scatter.mlir"
    [given] = hl.classify_modules(source)
    [tried] = hl.classify_modules(source, target="coreml")
    [done] = hl.convert_modules(source, tmp_path / "o", verify="off", target="iree", with_texts=True)
    assert [len(one.memory) for one in (given, tried, done)] == [1, 2, 2]
    assert given.memory[0] == tried.memory[0] == done.memory[0]
    [written] = (tmp_path / "o").rglob("scatter.mlir")
    assert (done.memory[1],) == curves_of(read(written.read_text()))
    assert 'class="memory"' in hl.lower(source)._repr_html_()


def test_every_format_has_it(decode):
    """The JSON report its steps and loops, the page the drawing, what explains a scatter the same in characters."""
    report = replace(decode, memory=(UP_AND_DOWN, MemoryCurve((1, 2000, 3))))
    before, after = json.loads(render_json([report]))["modules"][0]["memory"]
    assert (before["peak"], before["ops"], max(before["steps"])) == (1000, 1000, 1000)
    assert before["loops"] == [{"first": 600, "last": 999, "where": "<a>.py:3"}]
    assert after["steps"] == [1, 2000, 3]
    texts = json.loads(re.search(r'id="words">(.*?)</script>', render_html([report]))[1])["texts"]
    assert memory_svg(report.memory) in texts
    assert "before: 1000 B at the peak, 1,000 ops, 1 loop" in render_text([report], explain=(1,))
    assert "memory over" not in render_text([report])


def test_the_drawings_are_those_of_the_curves():
    """The SVG parses, names are text in it, peaks are as high as they are large; so are columns of characters."""
    drawn = memory_svg((UP_AND_DOWN, MemoryCurve((500,))), 800, alone=True)
    root = ElementTree.fromstring(drawn)
    assert [one.text for one in root.iter() if one.tag.endswith("text")].count("asked 800 B") == 2
    assert [one.text for one in root.iter() if one.tag.endswith("title")] == ["loop at <a>.py:3"]
    assert min(map(int, re.findall(r"V(\d+)", drawn))) == 24
    rows = memory_lines((UP_AND_DOWN,))
    assert sum("#" in row for row in rows) == 5
    assert rows[-1].split() == ["loops", "=" * 24]
    assert (memory_svg((MemoryCurve((0, 0)),)), memory_lines(())) == ("", [])


def called(depth, times):
    """A module of functions, each of which calls the next one so many times; the last one holds 64 KiB for a moment."""
    inner = "; ".join(f"%{n + 1} = call @NEXT(%{n}) -> 4xf32" for n in range(times))
    functions = [
        function(f"private @f{k}", "%0: 4xf32", inner.replace("NEXT", f"f{k + 1}"), f"%{times}") for k in range(depth)
    ]
    last = """%b = broadcast_in_dim %x, dims = [1] -> 4096x4xf32; %s = transpose %b, dims = [1, 0]
        %t = slice %s [0:4, 7:8]; %r = reshape %t -> 4xf32"""
    functions.append(function(f"private @f{depth}", "%x: 4xf32", last))
    return module("%0: 4xf32", "%r = call @f0(%0) -> 4xf32", more="".join(functions))


def test_trap_54_calls_of_calls_are_no_longer_than_a_curve_may_be():
    """2^40 calls have a curve with the last one's peak; 1,500 nested ones are no error."""
    [curve], [once], [deep] = (curves_of(hl.read(called(*how))) for how in ((40, 2), (2, 1), (1500, 1)))
    assert len(curve.live) < 2 * MOST_OPS
    assert once.most == 2 * 4096 * 4 * 4  # the broadcast and its transpose
    assert once.most <= curve.most <= once.most + 40 * 2 * 16  # and what each caller holds meanwhile
    assert deep.live
