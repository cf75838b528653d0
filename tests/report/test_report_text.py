"""The text report, what a person reads, and the totals that every report has."""

from dataclasses import replace
from pathlib import Path

import pytest
from every_cause import CASES, told_of

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.english import kind_phrase
from hlo_lower.facts.scatter.record import Fact, Written
from hlo_lower.report.explain import explain
from hlo_lower.report.module import ModuleReport, folders, guard_cause, refusal_cause, totals
from hlo_lower.report.page import column_widths
from hlo_lower.report.place import Group, where
from hlo_lower.report.text import render_text


def lines_with(text, word):
    """The lines that hold a word."""
    return [line for line in text.splitlines() if word in line]


def test_a_report_of_a_module(decode):
    """What was done, a line for alike scatters, and counts; an explanation has facts and reasons; --all folds none."""
    assert render_text([decode], explain=(1, 4)) == Path(__file__).with_name("decode.txt").read_text()
    text = render_text([decode], show_all=True)
    assert (len(lines_with(text, "proved (clamped)")), lines_with(text, "more alike")) == (2, [])


def test_what_was_not_measured_says_so(of_one, record):
    """Of a module that was only classified, one without scatters, and verification; places that are not known."""
    only = "a.mlir   7 ops, 1 scatter   target stablehlo, oob xla"
    assert render_text([of_one()]).splitlines()[0] == only
    assert render_text([ModuleReport("a.mlir", 7)]) == only.replace("1 scatter", "0 scatters") + "\n"
    report = ModuleReport("a.mlir", 7, (record(),), scatters_left=0, convert_seconds=12.4)
    assert "not verified   convert 12 s" in render_text([report]).splitlines()[0]
    for counts, told in (((), "windows of 1x8x64x16"), ((1,), "one window of 1x8x64x16")):
        assert told in render_text([of_one(writes=Written(counts, ()))], width=200)


@pytest.mark.parametrize(
    ("change", "is_alike"),
    [
        ({"combiner": "add"}, False),
        ({"rule": "scatter_to_loop"}, False),
        ({"updates_shape": (1, 8, 17)}, False),
        ({"location": "other.py:2", "scope": "x/y/scatter"}, True),
    ],
    ids=str,
)
def test_scatters_that_differ_in_a_fact_are_not_alike(record, change, is_alike):
    """One differing fact keeps two scatters apart; evidence names source lines, and does not."""
    evidence = Fact.known("in_bounds", "always", Code.CLAMPED(0, 63).with_place("other.py:1"))
    other = record(2, **change, facts=(evidence, record().facts[1]))
    text = render_text([ModuleReport("a.mlir", 7, (record(1), other))])
    assert len(lines_with(text, "more alike")) == is_alike


@pytest.mark.parametrize("width", [60, 80, 118, 200])
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
    ("places", "scopes", "expected"),
    [  # of alike scatters, in as few words as tell them; a module's own lines go without its name
        ("llama.py:8 llama.py:9 llama.py:8", "", "llama.py:8, 9"),
        ("llama.py:8 llama.py:9 llama.py:20", "", "llama.py:8 ... 20"),
        ("llama.py:8 moe.py:3", "", "llama.py:8 and 1 more"),
        ("decode.mlir:8", "", "line 8"),
        ("decode.mlir:8 decode.mlir:9", "", "lines 8, 9"),
        ("unknown", "", "unknown"),
        (f"{'x' * 40}.py:7", "", f"{'x' * 13}...{'x' * 13}.py:7"),
        # layers: a run is a range; transforms and the op's own name are left out
        ("m.py:8", "jit(f)/layer_0", "m.py:8 layer 0"),
        ("m.py:8", "jit(f)/model/layer_3/attention/scatter", "m.py:8 layer 3/attention"),
        ("m.py:8", "jit(f)/while/body/closed_call/scatter", "m.py:8"),
        ("m.py:8", "jit(f)/jvp(loss)/transpose(jvp(loss))/scatter-add", "m.py:8"),
        ("m.py:8", "layer_0/scatter layer_2/scatter", "m.py:8 layers 0, 2"),
        ("m.py:8", "layer_0/x layer_2/x layer_4/x layer_7/x", "m.py:8 layers 0 ... 7/x"),
        ("m.py:8", "layer_0/attention layer_0/moe", "m.py:8 layer 0/attention and 1 more"),
        ("m.py:8", "encoder decoder", "m.py:8 encoder and 1 more"),
    ],
)
def test_where_alike_scatters_stand(record, places, scopes, expected):
    """One line, two lines, a range of lines, several files; layers."""
    group = [record(location=place, scope=scope) for place in places.split() for scope in scopes.split() or [""]]
    assert where(Group(tuple(group))) == expected


@pytest.mark.parametrize(
    ("columns", "page", "expected"),
    [
        ([["ab cd"], ["efg"]], 10, ([5, 3], True)),
        ([["ab cd"], ["efg"]], 9, ([2, 3], True)),
        ([["ab cd"], ["efgh"]], 7, ([2, 3], False)),
        ([["a b", "ccc"], ["x\nyyyy"]], 80, ([3, 4], True)),
        ([["a b c", "a b d", "a b e"], ["x y"]], 7, ([3, 1], True)),
    ],
)
def test_columns_are_as_wide_as_their_words(columns, page, expected):
    """Each column gets its longest word, then what saves most lines; where the words do not fit, the widest is cut."""
    assert expected == column_widths(columns, page)


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


def test_totals_count_what_is_known_of_all(decode, record, of_one):
    """What was not measured of one is not in total; a scatter without a rule is counted by why, not as guarded."""
    gather, bad = Code.RESULT_OF("gather"), ModuleReport("bad.mlir", error="gone")
    refused = record(1, rule="", why=Code.DYNAMIC_SHAPE("?xf32"), in_bounds="unknown", bounds=Code.NOT_KNOWN())
    guarded = record(2, in_bounds="unknown", bounds=Code.GUARDED(gather))
    total = totals([ModuleReport("a.mlir", 7, (refused, guarded, record(3, rule="while")))])
    assert (total.guards_needed, total.guard_causes) == (1, {gather: 1})
    assert (total.no_rule, total.looped) == ({Code.DYNAMIC_SHAPE(None): 1}, 1)
    assert (totals([decode, decode, bad]).scatters_left, totals([decode, of_one()]).scatters_left) == (2, None)
    assert (totals([]).scatters, totals([]).scatters_left, totals([]).kinds) == (0, None, {})
    groups = [replace(decode, group=group) for group in ("b", ".", "a/c", "b")]
    assert [(name, len(members)) for name, members in folders(groups)] == [(".", 1), ("a/c", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("cause", "is_guard", "expected"),
    [
        (Code.ARGUMENT(3, "main", "pos"), True, "argument"),
        (Code.ARGUMENT_OF("reduce"), True, "argument of reduce"),
        (Code.RESULT_OF_CALL("f"), True, "result of a call"),
        (Code.NOT_KNOWN(), True, "not known"),
        (Code.QUANTIZED("!quant.uniform<i8:f32, 0.1>"), False, "quantized element type"),
        (Code.KEPT_UNSUPPORTED(Code.DYNAMIC_SHAPE("tensor<?x5xf32>")), False, "dynamic shape"),
        (Code.NO_LOWERING("iree"), False, "no lowering for target iree"),
    ],
)
def test_causes_are_counted_without_names_and_numbers(record, cause, is_guard, expected):
    """A guard is counted by what the index comes from, a missing rule by its reason, without what differs by module."""
    found = guard_cause(record(bounds=Code.GUARDED(cause))) if is_guard else refusal_cause(record(rule="", why=cause))
    assert kind_phrase(found) == expected


def lowering(op, rule, place, count=1):
    """An op besides scatters that was lowered by a rule."""
    return Change(Outcome.LOWERED, f"stablehlo.{op}", Code.BECAME("other ops", rule, None), f"a.py:{place}", count)


def test_long_lists_of_what_is_lowered_are_summed_up_by_rule():
    """Of few lines each is shown; of many the sum of each rule, with how to see all; verbose shows all."""
    few = tuple(lowering("sort", "sort_to_network", n) for n in range(3))
    sorts = [lowering("sort", "sort_to_network", n, 2) for n in range(5)]
    many = (*sorts, *(lowering("abs", "abs_to_max", n) for n in range(4)))

    def told(changes, **how):
        report = ModuleReport("a.mlir", 7, changes=changes, notes=("before", *map(str, changes), "after"))
        return [line.strip() for line in render_text([report], **how).splitlines()[1:]]

    assert told(few) == ["before", *map(str, few), "after"]
    assert told(many) == [
        "before",
        "lowered: 10 ops by sort_to_network: 10 stablehlo.sort",
        "lowered: 4 ops by abs_to_max: 4 stablehlo.abs",
        "(9 lines with --verbose)",
        "after",
    ]
    assert told(many, verbose=True) == ["before", *map(str, many), "after"]
