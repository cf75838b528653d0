"""The text report: what a person reads."""

import pytest
from every_cause import CANONICALIZED, CASES, told_of

from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.record import Fact, Written
from hlo_lower.report.explain import explain
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.text import render_text


def lines_with(text, word):
    """The lines that hold a word."""
    return [line for line in text.splitlines() if word in line]


def test_headline_tells_the_module_in_a_line(decode):
    """File, ops, scatters before and after, target, policy, verification and times stand on the first line."""
    expected = (
        "decode.mlir   5,449 ops, 4 scatters -> 1   target stablehlo, oob xla   "
        "verified: 4 regions (2 distinct) as they stand; module 3 runs   0.05 s + 4.1 s"
    )
    assert expected == render_text([decode]).splitlines()[0]


def test_what_was_not_measured_says_so(record):
    """A module that was only classified has no left scatters, no verification and no time."""
    first = render_text([ModuleReport("a.mlir", 7, (record(),))]).splitlines()[0]
    expected = "a.mlir   7 ops, 1 scatter   target stablehlo, oob xla   conversion and verification not measured"
    assert expected == first


def test_unverified_conversion_says_so(record):
    """A conversion without verification prints `verification not measured`."""
    report = ModuleReport("a.mlir", 7, (record(),), scatters_left=0, convert_seconds=12.4)
    assert "verification not measured   convert 12 s" in render_text([report]).splitlines()[0]


def test_row_has_place_layer_kind_writes_rule_bounds_and_unique(decode):
    """One line tells the scatter."""
    row = lines_with(render_text([decode]), "guarded:")[0]
    expected = [
        "2",
        "llama.py:89 layer 0",
        "insert_slice",
        "tile [:, :, pos, :] of 1x8x64x16",
        "dynamic_update_slice",
        "guarded: argument pos",
        "one window",
    ]
    places = [row.index(cell) for cell in expected]
    assert sorted(places) == places


def test_alike_scatters_are_folded(decode):
    """Scatters that differ only in number and place share the line of the first one."""
    text = render_text([decode])
    assert len(lines_with(text, "proved (clamped)")) == 1
    assert "#  ×  where                   kind" in text
    assert "1  2  llama.py:88 layers 0-1  insert_slice" in text
    assert "2     llama.py:89 layer 0     insert_slice" in text
    assert lines_with(text, "more alike") == ["  ... 1 more alike (--all)"]


def test_all_shows_every_scatter(decode):
    """With --all nothing is folded."""
    text = render_text([decode], show_all=True)
    assert len(lines_with(text, "proved (clamped)")) == 2
    assert lines_with(text, "more alike") == []


@pytest.mark.parametrize(
    "change", [{"combiner": "add"}, {"dtype": "bf16"}, {"rule": "scatter_to_loop"}, {"updates_shape": (1, 8, 17)}]
)
def test_scatters_that_differ_in_a_fact_are_not_alike(record, change):
    """One differing fact keeps two scatters apart."""
    report = ModuleReport("a.mlir", 7, (record(1), record(2, **change)))
    assert lines_with(render_text([report]), "more alike") == []


def test_evidence_places_do_not_keep_alike_scatters_apart(record):
    """Evidence names source lines, which differ from layer to layer."""
    first, unique = record().facts
    facts = (Fact.known(first.name, first.value, Code.CLAMPED(0, 63).placed("other.py:1")), unique)
    other = record(2, facts=facts, location="other.py:2", scope="x/y/scatter")
    assert len(lines_with(render_text([ModuleReport("a.mlir", 7, (record(1), other))]), "more alike")) == 1


def test_summary_tells_kinds_rules_and_guards(decode):
    """Below the table stand the counts of the module."""
    text = render_text([decode])
    assert "  kinds:     3 insert_slice, 1 general" in text.splitlines()
    assert "  rules:     3 dynamic_update_slice, 1 none" in text.splitlines()
    assert "  guards:    1 needed, 2 proved away, 1 never in bounds" in text.splitlines()


def test_total_stands_below_several_modules_only(decode):
    """One module has no total; two have one."""
    assert lines_with(render_text([decode]), "total:") == []
    two = render_text([decode, ModuleReport("bad.mlir", error="bad.mlir: no such file")])
    assert lines_with(two, "total:") == ["total: 2 modules (1 failed), 5,449 ops, 4 scatters -> 1"]
    assert lines_with(two, "no such file") == ["bad.mlir   error: bad.mlir: no such file"]


@pytest.mark.parametrize("width", [60, 80, 100, 118, 140, 200])
def test_no_line_is_wider_than_the_page(decode, width):
    """The report fits the page, on narrow ones with two lines per scatter."""
    text = render_text([decode], width=width, explain=(1,))
    assert [line for line in text.splitlines() if len(line) > width] == []


@pytest.mark.parametrize("width", [80, 140])
def test_no_word_is_broken(decode, width):
    """Rules, kinds and places stand unbroken on 80 and on 140 columns."""
    text = render_text([decode], width=width)
    for word in ("dynamic_update_slice", "insert_slice", "llama.py:89", "1x8x64x16", "guarded:"):
        assert word in text


def test_plain_text_has_no_escape_codes(decode):
    """Without color there is none, with color there is some."""
    assert "\x1b" not in render_text([decode])
    assert "\x1b[" in render_text([decode], color=True)


def test_rendering_is_stable(decode):
    """The same records give the same text, whatever the environment says."""
    assert render_text([decode]) == render_text([decode])


def test_control_characters_of_a_module_do_not_reach_the_terminal(record):
    """A location with an escape code is shown, not obeyed."""
    text = render_text([ModuleReport("a\x1b]0;x\x07.mlir", 7, (record(location="\x1b[2Jx.py:1"),))], explain=(1,))
    assert "\x1b" not in text
    assert "\\x1b[2Jx.py:1" in text


def test_markup_in_names_is_text(record):
    """Square brackets are never taken for rich's markup."""
    assert "[bold]x[/bold]" in render_text(
        [ModuleReport("a.mlir", 7, (record(writes=Written((1,), ("[bold]x[/bold]",))),))]
    )


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("jit(decode)/layer_0/scatter", "llama.py:88 layer 0"),
        ("jit(decode)/model/layer_3/attention/scatter", "llama.py:88 layer 3/attention"),
        ("jit(decode)/layer_0", "llama.py:88 layer 0"),
        ("jit(f)/jvp(loss)/transpose(jvp(loss))/scatter-add", "llama.py:88"),
        ("jit(f)/while/body/closed_call/scatter", "llama.py:88"),
        ("scatter", "llama.py:88"),
        ("", "llama.py:88"),
    ],
)
def test_the_layer_is_read_from_the_scope(record, scope, expected):
    """Transforms and the op's own name are left out."""
    assert expected in render_text([ModuleReport("a.mlir", 7, (record(scope=scope),))], width=200)


def test_explain_tells_evidence_and_rules_not_chosen(record):
    """Each fact has its chain, the rule its why, and each other rule its reason."""
    expected = [
        "scatter 1 of decode.mlir   stablehlo.scatter at llama.py:88 in @main",
        "  scope:   jit(decode)/layer_0/scatter",
        "  writes:  tile [:, :, pos, :] of 1x8x64x16",
        *("           +----------------+", *["           |................|"] * 3, "           |################|"),
        *(*["           |................|"] * 4, "           +----------------+"),
        "           down, dim 2: pos of 64; across, dim 3: 16",
        "           # written",
        "           dim 1: all of 8",
        "  shapes:  operand 1x8x64x16xf32, indices 1, updates 1x8x16",
        "  kind:    insert_slice: subset Tile, combiner assign",
        "  bounds:  proved (clamped) (under oob=xla: in bounds always)",
        "  facts:",
        "    in_bounds = always",
        "      because clamped to [0, 63] at llama.py:87",
        "      because argument 3 of @main",
        "    unique = proved",
        "      because one window",
        "  rule:    dynamic_update_slice: Tile x assign, drops nothing: one window at a runtime start",
        "  not chosen, the nearest first:",
        "    loop: less specific than dynamic_update_slice",
    ]
    assert expected == explain(record())


@pytest.mark.parametrize("programs", [("clamped",), pytest.param(tuple(CASES), marks=pytest.mark.sweep)], ids=len)
def test_what_a_rule_lacks_is_among_the_facts(programs):
    """Each fact that a rule is said to miss stands in the explanation with that value."""
    seen = set()
    for case in (CASES[name] for name in programs if CASES[name].how != CANONICALIZED):
        for record in told_of(case)[0]:
            facts = {line.split(":")[0].strip() for line in explain(record)}
            lacks = [reason for other in record.why_not for reason in other.reasons if reason.code is Code.MISSES]
            assert {f"{lack['fact']} = {lack['value']}" for lack in lacks} <= facts
            seen |= {lack["fact"] for lack in lacks}
    assert {"drops", "parts", "order", "strategy", "dialect"} <= seen


def test_explain_without_a_rule_says_none(decode):
    """A scatter that nothing lowers is explained, too."""
    lines = explain(decode.records[3])
    assert "  rule:    none: no lowering for target iree" in lines
    assert "  not chosen: no other rule was a candidate" in lines


def test_explained_scatters_stand_below_their_table(decode):
    """--explain N shows the scatter of that number, and no other."""
    text = render_text([decode], explain=(2,))
    assert lines_with(text, " of decode.mlir ") == [
        "scatter 2 of decode.mlir   stablehlo.scatter at llama.py:89 in @main"
    ]


def test_module_without_scatters_is_a_headline():
    """There is no empty table."""
    expected = "a.mlir   7 ops, 0 scatters   target stablehlo, oob xla   conversion and verification not measured\n"
    assert expected == render_text([ModuleReport("a.mlir", 7)])
