"""The text report: what a person reads."""

from pathlib import Path

import pytest
from every_cause import CASES, told_of

from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.record import Fact, Written
from hlo_lower.report.explain import explain
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.page import column_widths
from hlo_lower.report.place import Group, where
from hlo_lower.report.text import render_text


def lines_with(text, word):
    """The lines that hold a word."""
    return [line for line in text.splitlines() if word in line]


def test_a_report_of_a_module(decode):
    """What was done, a line for alike scatters, and counts; an explanation has facts and reasons."""
    assert render_text([decode], explain=(1, 4)) == Path(__file__).with_name("decode.txt").read_text()


def test_what_was_not_measured_says_so(of_one, record):
    """Of a module that was only classified, of one without scatters, which has no table, and without verification."""
    only = "a.mlir   7 ops, 1 scatter   target stablehlo, oob xla   conversion and verification not measured"
    assert render_text([of_one()]).splitlines()[0] == only
    assert render_text([ModuleReport("a.mlir", 7)]) == only.replace("1 scatter", "0 scatters") + "\n"
    report = ModuleReport("a.mlir", 7, (record(),), scatters_left=0, convert_seconds=12.4)
    assert "verification not measured   convert 12 s" in render_text([report]).splitlines()[0]


def test_all_shows_every_scatter(decode):
    """With --all nothing is folded."""
    text = render_text([decode], show_all=True)
    assert len(lines_with(text, "proved (clamped)")) == 2
    assert lines_with(text, "more alike") == []


@pytest.mark.parametrize(
    ("change", "is_alike"),
    [
        ({"combiner": "add"}, False),
        ({"dtype": "bf16"}, False),
        ({"rule": "scatter_to_loop"}, False),
        ({"updates_shape": (1, 8, 17)}, False),
        ({"location": "other.py:2", "scope": "x/y/scatter"}, True),
    ],
    ids=str,
)
def test_scatters_that_differ_in_a_fact_are_not_alike(record, change, is_alike):
    """One differing fact keeps two scatters apart; evidence names source lines, and does not."""
    evidence = Fact.known("in_bounds", "always", Code.CLAMPED(0, 63).placed("other.py:1"))
    other = record(2, **change, facts=(evidence, record().facts[1]))
    text = render_text([ModuleReport("a.mlir", 7, (record(1), other))])
    assert len(lines_with(text, "more alike")) == is_alike


def test_total_stands_below_several_modules_only(decode):
    assert lines_with(render_text([decode]), "total:") == []
    two = render_text([decode, ModuleReport("bad.mlir", error="bad.mlir: no such file")])
    assert lines_with(two, "total:") == ["total: 2 modules (1 failed), 5,449 ops, 4 scatters -> 1"]
    assert lines_with(two, "no such file") == ["bad.mlir   error: bad.mlir: no such file"]


@pytest.mark.parametrize("width", [60, 80, 100, 118, 140, 200])
def test_no_line_is_wider_than_the_page(decode, width):
    """The report fits the page, on narrow ones with two lines per scatter; from 80 columns on no word is broken."""
    text = render_text([decode], width=width, explain=(1,))
    assert [line for line in text.splitlines() if len(line) > width] == []
    words = ("dynamic_update_slice", "insert_slice", "llama.py:89", "1x8x64x16", "guarded:")
    assert width == 60 or [word for word in words if word not in render_text([decode], width=width)] == []


def test_what_a_module_says_is_text(decode, of_one):
    """Escape codes of a location are shown, not obeyed; square brackets are no markup; color is there on request."""
    text = render_text([of_one("a\x1b]0;x\x07.mlir", location="\x1b[2Jx.py:1")], explain=(1,))
    assert "\x1b" not in text + render_text([decode])
    assert "\\x1b[2Jx.py:1" in text
    assert "[bold]x[/bold]" in render_text([of_one(writes=Written((1,), ("[bold]x[/bold]",)))])
    assert "\x1b[" in render_text([decode], color=True)


@pytest.mark.parametrize(
    ("scope", "layer"),
    [
        ("jit(decode)/layer_0/scatter", " layer 0"),
        ("jit(decode)/model/layer_3/attention/scatter", " layer 3/attention"),
        ("jit(decode)/layer_0", " layer 0"),
        ("jit(f)/jvp(loss)/transpose(jvp(loss))/scatter-add", "  "),
        ("jit(f)/while/body/closed_call/scatter", "  "),
        ("scatter", "  "),
        ("", "  "),
    ],
)
def test_the_layer_is_read_from_the_scope(of_one, scope, layer):
    """Transforms and the op's own name are left out."""
    assert f"llama.py:88{layer}" in render_text([of_one(scope=scope)], width=200)


PLACES = [  # locations, in as few words as tell them; a module's own lines go without its name
    (["llama.py:8"], "llama.py:8"),
    (["llama.py:8", "llama.py:8"], "llama.py:8"),
    (["llama.py:8", "llama.py:9", "llama.py:8"], "llama.py:8, 9"),
    (["llama.py:8", "llama.py:9", "llama.py:20"], "llama.py:8 ... 20"),
    (["llama.py:8", "moe.py:3"], "llama.py:8 and 1 more"),
    (["decode.mlir:8"], "line 8"),
    (["decode.mlir:8", "decode.mlir:9"], "lines 8, 9"),
    (["unknown"], "unknown"),
    ([f"{'x' * 40}.py:7"], f"{'x' * 13}...{'x' * 13}.py:7"),
]
LAYERS = [  # a run of layers is a range; names that differ otherwise are counted
    (["layer_0"], "layer 0"),
    (["layer_0", "layer_0"], "layer 0"),
    (["layer_0", "layer_1", "layer_2"], "layers 0-2"),
    (["layer_0", "layer_2"], "layers 0, 2"),
    (["layer_0", "layer_2", "layer_4", "layer_7"], "layers 0 ... 7"),
    (["layer_0/attention", "layer_1/attention"], "layers 0-1/attention"),
    (["layer_0/attention", "layer_0/moe"], "layer 0/attention and 1 more"),
    (["encoder", "decoder"], "encoder and 1 more"),
]


@pytest.mark.parametrize(
    ("places", "scopes", "expected"),
    [
        *((places, [""] * len(places), told) for places, told in PLACES),
        *((["llama.py:88"] * len(n), [f"jit(f)/{s}/scatter" for s in n], f"llama.py:88 {told}") for n, told in LAYERS),
    ],
)
def test_where_alike_scatters_stand(record, places, scopes, expected):
    """One line, two lines, a range of lines, several files; layers."""
    group = [record(location=place, scope=scope) for place, scope in zip(places, scopes, strict=True)]
    assert where(Group(tuple(group))) == expected


@pytest.mark.parametrize(
    ("columns", "page", "expected"),
    [
        ([["ab cd"], ["efg"]], 80, ([5, 3], True)),
        ([["ab cd"], ["efg"]], 10, ([5, 3], True)),
        ([["ab cd"], ["efg"]], 9, ([2, 3], True)),
        ([["ab cd"], ["efg"]], 7, ([2, 3], True)),
        ([["ab cd"], ["efgh"]], 7, ([2, 3], False)),
        ([["a b", "ccc"], ["x\nyyyy"]], 80, ([3, 4], True)),
        ([["", ""], ["x"]], 80, ([1, 1], True)),
        ([["a b c", "a b d", "a b e"], ["x y"]], 7, ([3, 1], True)),
    ],
)
def test_columns_are_as_wide_as_their_words(columns, page, expected):
    """Each column gets its longest word, then what saves most lines; where the words do not fit, the widest is cut."""
    assert expected == column_widths(columns, page)


def test_the_page_is_never_exceeded():
    """The widths and the gaps fit the page, as long as there is a column's width for each."""
    columns = [["one two three"], ["four"], ["five sixteen"]]
    assert [page for page in range(1, 60) if sum(column_widths(columns, page)[0]) + 4 > max(page, 7)] == []


@pytest.mark.parametrize("programs", [("clamped",), pytest.param(tuple(CASES), marks=pytest.mark.sweep)], ids=len)
def test_what_a_rule_lacks_is_among_the_facts(programs):
    """Each fact that a rule is said to miss stands in the explanation with that value."""
    seen = set()
    for name in programs:
        for record in told_of(name)[0]:
            facts = {line.split(":")[0].strip() for line in explain(record)}
            lacks = [reason for other in record.why_not for reason in other.reasons if reason.code is Code.MISSES]
            assert {f"{lack['fact']} = {lack['value']}" for lack in lacks} <= facts
            seen |= {lack["fact"] for lack in lacks}
    assert {"drops", "parts", "order", "strategy", "dialect"} <= seen
