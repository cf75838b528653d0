"""The JSON, Markdown and HTML reports, and the table of rules."""

import json
from dataclasses import dataclass

from hlo_lower.facts.scatter.record import Written
from hlo_lower.report.json_report import render_json
from hlo_lower.report.markdown import render_markdown
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.rules_table import render_rules_markdown, render_rules_text


def test_json_record_has_the_fields_of_the_design(decode):
    """A record has at least these fields."""
    data = json.loads(render_json([decode]))
    record = data["modules"][0]["records"][0]
    needed = (
        "function location kind subset combiner operand_shape indices_shape updates_shape dtype in_bounds unique "
        "rule why why_not"
    )
    assert set() == set(needed.split()) - set(record)
    assert record["operand_shape"] == [1, 8, 64, 16]
    assert data["rejections"][record["why_not"]] == {"loop": [0]}
    assert data["reasons"][0] == {"code": "less_specific", "than": "dynamic_update_slice"}


def test_json_is_never_folded(decode):
    """Every record is there, in program order."""
    records = json.loads(render_json([decode]))["modules"][0]["records"]
    assert [record["number"] for record in records] == [1, 2, 3, 4]


def test_json_null_is_what_was_not_measured(record):
    """Times, verdict and left scatters of a module that was only classified are null, and an error is text."""
    data = json.loads(render_json([ModuleReport("a.mlir", 7, (record(),)), ModuleReport("b.mlir", error="gone")]))
    module = data["modules"][0]
    fields = ("scatters_left", "verdict", "convert_seconds", "verify_seconds", "error")
    assert [module[field] for field in fields] == [None] * 5
    assert data["modules"][1]["error"] == "gone"
    assert data["totals"]["unreadable"] == 1


def test_json_has_the_verdict_and_totals(decode):
    """A verified module carries its verdict; totals are those of the text."""
    data = json.loads(render_json([decode]))
    assert data["modules"][0]["verdict"] == {"ok": True}
    assert data["totals"]["kinds"] == {"insert_slice": 3, "general": 1}


def test_json_keeps_a_dynamic_size_as_null(record):
    """A size that is not known is null, not a number."""
    data = json.loads(render_json([ModuleReport("a.mlir", 7, (record(operand_shape=(None, 4)),))]))
    assert data["modules"][0]["records"][0]["operand_shape"] == [None, 4]


def test_markdown_has_a_table_row_per_group(decode):
    """The same cells as in the text report."""
    expected = (
        "| 1 | 2 | llama.py:88 layers 0-1 | insert_slice | tile [:, :, pos, :] of 1x8x64x16 | dynamic_update_slice "
        "| proved (clamped) | one window |"
    )
    text = render_markdown([decode])
    assert expected in text.splitlines()
    assert "- guards: 1 needed, 2 proved away, 1 never in bounds" in text.splitlines()


def test_markdown_escapes_pipes_and_tags(record):
    """A name with a pipe stays in its cell, a tag is shown as text."""
    text = render_markdown(
        [ModuleReport("a|b.mlir", 7, (record(location="x|y.py:1", writes=Written((1,), ("<b>`*",))),))]
    )
    row = next(line for line in text.splitlines() if line.startswith("| 1 "))
    assert "x\\|y.py:1" in row
    assert "&lt;b&gt;\\`\\*" in row
    assert "## a\\|b.mlir" in text.splitlines()


def test_markdown_has_the_explanation_as_code(decode):
    """An explained scatter is a code block."""
    assert "      - " not in render_markdown([decode], explain=(1,))
    assert "    scatter 1 of decode.mlir" in render_markdown([decode], explain=(1,))


def test_markdown_total_for_several(decode):
    """Several modules end in a total."""
    text = render_markdown([decode, ModuleReport("bad.mlir", error="bad.mlir: gone")])
    assert "total: 2 modules (1 failed), 5,449 ops, 4 scatters -&gt; 1" in text.splitlines()
    assert "error: bad.mlir: gone" in text.splitlines()


@dataclass(frozen=True)
class Row:
    """A rule as the table takes it."""

    name: str = "scatter_to_loop"
    classes: str = "subset=Windows|Points"
    form: str = "while over the windows | `x`"
    place: str = "lowering/scatter/loop.py:31"
    builds: tuple[str, ...] = ("stablehlo.while", "stablehlo.select")
    refused: str = ""
    proof: str = "Lower it.\n\n    %x -> %y\n\nEqual: it is the same."


def test_rules_as_markdown_escape_pipes():
    """Sets of accepted values are written with pipes, which stay in their cell."""
    text = render_rules_markdown([Row()])
    takes, form = "subset=Windows\\|Points", "`while over the windows \\|  x `"
    expected = f"| `loop` | {takes} | {form} | while, select | `lowering/scatter/loop.py:31` |"
    assert expected == text.splitlines()[2]


def test_rules_as_text_show_place_and_form():
    """The name without its prefix, the place, what it takes, the form, the ops and a refusal."""
    text = render_rules_text([Row(), Row(name="x", refused="t refuses stablehlo.while")], width=120)
    for word in (
        "loop",
        "lowering/scatter/loop.py:31",
        "subset=Windows | Points",
        "while over the windows",
        "while, select",
    ):
        assert word in text
    assert "scatter_to_loop" not in text
    assert text.count("refused: t refuses stablehlo.while") == 1
    assert [line for line in text.splitlines() if len(line) > 120] == []
    assert "Equal" not in text
    assert render_rules_text([Row()], width=80, proofs=True).endswith(Row.proof + "\n")
