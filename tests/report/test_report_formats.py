"""The JSON, Markdown, GitHub and SARIF reports, reports of many modules, the table of rules, modules without lines."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.cells import cell_len

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.change import RefusedOps
from hlo_lower.facts.scatter.record import Written
from hlo_lower.report.explain import explain
from hlo_lower.report.json_report import render_json, report_data
from hlo_lower.report.markdown import render_markdown
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.overview import FEW
from hlo_lower.report.render import render
from hlo_lower.report.rules_table import render_rules_markdown, render_rules_text
from hlo_lower.report.text import render_text

GONE = ModuleReport("bad.mlir", error="bad.mlir: gone")


def told(name):
    """A report as it has to be."""
    return Path(__file__).with_name(name).read_text()


def test_json_has_every_record(decode, of_one):
    """Each in program order, a verified module with its verdict; null is what was not measured or is not known."""
    data = json.loads(render_json([decode, of_one(operand_shape=(None, 4)), GONE]))
    module, other, gone = data["modules"]
    record, *_ = module["records"]
    needed = (
        "function location kind subset combiner indices_shape updates_shape dtype in_bounds unique rule why why_not"
    )
    assert set(needed.split()) <= set(record)
    assert (record["operand_shape"], other["records"][0]["operand_shape"]) == ([1, 8, 64, 16], [None, 4])
    assert data["rejections"][record["why_not"]] == {"loop": [0]}
    assert data["reasons"][0] == {"code": "less_specific", "than": "dynamic_update_slice"}
    assert [record["number"] for record in module["records"]] == [1, 2, 3, 4]
    assert module["verdict"] == {"ok": True}
    assert data["totals"]["kinds"] == {"insert_slice": 4, "general": 1}
    fields = ("scatters_left", "verdict", "convert_seconds", "verify_seconds", "error")
    assert [other[field] for field in fields] == [None] * 5
    assert (gone["error"], data["totals"]["unreadable"]) == ("bad.mlir: gone", 1)


def test_markdown_is_the_text_in_cells(decode, of_one):
    """Counts, a row per group, an explanation as code, and a total; names with pipes and tags stay text."""
    assert render_markdown([decode, GONE], explain=(1,)) == told("decode.md")
    text = render_markdown([of_one("a|b.mlir", location="x|y.py:1", writes=Written((1,), ("<b>`*",)))])
    row = next(line for line in text.splitlines() if line.startswith("| 1 "))
    assert ("x\\|y.py:1" in row, "&lt;b&gt;\\`\\*" in row) == (True, True)
    assert "## a\\|b.mlir" in text.splitlines()


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


def test_rules_as_markdown_and_as_text():
    """Pipes stay in their cell; the text has name, place, what is accepted, form, ops and a refusal."""
    takes, form = "subset=Windows\\|Points", "`while over the windows \\|  x `"
    expected = f"| `loop` | {takes} | {form} |"
    assert expected == render_rules_markdown([Row()]).splitlines()[2]
    text = render_rules_text([Row(), Row(name="x", refused="t rejects stablehlo.while")], width=120)
    words = ("loop", Row.place, "subset=Windows | Points", "while over the windows", "while, select")
    assert [word for word in words if word not in text] == []
    assert [word for word in ("scatter_to_loop", "Equal") if word in text] == []
    assert text.count("rejects: t rejects stablehlo.while") == 1
    assert [line for line in text.splitlines() if len(line) > 120] == []
    assert render_rules_text([Row()], width=80, proofs=True).endswith(Row.proof + "\n")


LINES = """#loc = loc(unknown)
module {
  func.func private @deep(%o: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32> loc(unknown)
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32> loc("scatter")
    return %r : tensor<8xf32> loc(unknown)
  } loc(unknown)
  func.func private @around(%o: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %r = func.call @deep(%o, %i, %u) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32> loc("jit")
    return %r : tensor<8xf32> loc(unknown)
  } loc(unknown)
  func.func public @main(%o: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %r = func.call @around(%o, %i, %u) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32> loc("f.py":7:3)
    return %r : tensor<8xf32> loc("f.py":8:1)
  } loc(unknown)
} loc(unknown)
"""  # noqa: E501


def test_an_op_of_a_function_without_lines_has_the_line_of_the_call():
    """So it is of the functions that JAX traces once; `--only` finds it there."""
    [record] = hl.classify(hl.read(LINES))
    assert record.location == "f.py:7"
    assert "locations:" not in render_text([ModuleReport("m.mlir", 7, (record,))])
    assert hl.lower(LINES, only="f.py:7").scatters_left == 0


@pytest.fixture
def tree(record):
    """Twelve modules in three folders: ten alike, one that could not be read, one of which nothing is lowered."""
    loops = (record(1, kind="general", combiner="mul", rule="while"), record(2))
    none = {"rule": "", "why": Code.DYNAMIC_SHAPE("x<?>"), "why_not": (), "bounds": Code.NOT_KNOWN()}
    refused = record(1, kind="general", in_bounds="unknown", **none)
    return [
        ModuleReport("zoo/bad.mlir", error="zoo/bad.mlir:1:1: no module\n  next:    fix it"),
        *(ModuleReport(f"zoo/jax/m{number}.mlir", 7, loops, group="jax") for number in range(10)),
        ModuleReport("zoo/poly/open.mlir", 9, (refused,), group="poly"),
    ]


def test_each_module_of_a_tree_is_a_line_below_its_folder(tree):
    """Counts, kinds or the reason; folders, the total, explanations; policies once where they agree."""
    assert render_text(tree) == told("tree.txt")
    assert render_markdown(tree) == told("tree.md")
    assert render_text(tree, explain=(2,)).count("scatter 2 of decode.mlir") == 10
    assert render_markdown(tree, explain=(2,)).count("    scatter 2 of decode.mlir") == 10
    assert "target stablehlo, oob xla; target stablehlo, oob spec" in render_text([*tree, replace(tree[1], oob="spec")])
    data = json.loads(render_json(tree))
    assert set(data) == {"version", "modules", "rules", "rejections", "reasons", "totals", "groups"}
    groups = [(group["group"], group["totals"]["scatters"], group["totals"]["looped"]) for group in data["groups"]]
    assert groups == [(".", 0, 0), ("jax", 20, 10), ("poly", 1, 0)]
    assert [module["group"] for module in data["modules"]] == [".", *["jax"] * 10, "poly"]


def test_few_modules_or_all_of_them_are_shown_in_full(tree, decode):
    """Up to FEW modules, and however many with show_all, have their tables; one folder has no table of folders."""
    for reports, how in ((tree[:FEW], {}), (tree, {"show_all": True})):
        text = render_text(reports, **how)
        assert text.count("llama.py:88 layer 0") == sum(len(report.records) for report in reports)
        assert "in the loop" in text
        assert "kinds and their rules" not in text + render_markdown(reports, **how)
    alone = [replace(decode, file=f"{number}.mlir") for number in range(FEW + 1)]
    assert "in the loop" not in render_text(alone) + render_markdown(alone)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_stay_on_the_page(tree, width):
    """Long names are shortened in the middle, cells are wrapped; only a reason may need more on the narrowest page."""
    long = replace(tree[1], file=f"zoo/jax/{'x' * 300}.mlir")
    text = render_text([*tree, long], width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= max(width, 60)
    assert "xxx.mlir" in text


def test_faults_at_their_lines(of_one):
    """GitHub has a command for each place, its own syntax escaped; SARIF has the same, with declared rules."""
    why = Code.REFUSES_OPS("npu", ("stablehlo.sort",), "50 % slower, no kernel")
    refused = RefusedOps("stablehlo.sort", why, 3, ("m.mlir:13", "llama.py:88"))
    faults = [
        ModuleReport("zoo/m.mlir", target="npu", refused=(refused,)),
        of_one("loop.mlir", rule="while", kind="reduction_add", location="loop.mlir:2"),
        ModuleReport("bad,1.mlir", error="bad,1.mlir: no MLIR\n  next: look"),
        ModuleReport("fine.mlir", 3),
    ]
    text = "npu: 3 stablehlo.sort: 50 %25 slower, no kernel; at m.mlir:13, llama.py:88, ..."
    assert render(faults, "github").splitlines() == [
        f"::error file=zoo/m.mlir,line=13,title=hlo-lower refused::{text}",
        f"::error file=llama.py,line=88,title=hlo-lower refused::{text}",
        "::warning file=loop.mlir,line=2,title=hlo-lower loop::scatter 1 (reduction_add) is a loop over its windows",
        "::error file=bad%2C1.mlir,title=hlo-lower unreadable::bad,1.mlir: no MLIR next: look",
    ]
    assert render(faults[3:], "github") == ""
    log = json.loads(render(faults, "sarif"))
    [run] = log["runs"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "hlo-lower")
    places = [r["locations"][0]["physicalLocation"] for r in run["results"]]
    lines = [(p["artifactLocation"]["uri"], p.get("region", {}).get("startLine")) for p in places]
    assert [(r["ruleId"], r["level"], *line) for r, line in zip(run["results"], lines, strict=True)] == [
        ("refused", "error", "zoo/m.mlir", 13),
        ("refused", "error", "llama.py", 88),
        ("loop", "warning", "loop.mlir", 2),
        ("unreadable", "error", "bad,1.mlir", None),
    ]
    assert {r["ruleId"] for r in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert json.loads(render(faults[3:], "sarif"))["runs"][0]["results"] == []


ADVICE = "as_text(debug_info=True)"
HERE = Path(__file__).name


def write(cache, index):
    return cache.at[index].set(1.0)


def test_a_module_without_locations_is_told_how_to_get_them():
    """Summary and explanation name the argument of as_text; exported so, lines are the program's."""
    lowered = jax.jit(write).lower(np.zeros(8, np.float32), 3)
    own, other = (hl.classify(hl.read(lowered.as_text(debug_info=located), "m.mlir"))[0] for located in (False, True))
    text = render_text([ModuleReport("m.mlir", 7, (own,))], width=200)
    assert f"  locations: none of any scatter, lines are those of the text; export again with {ADVICE}" in text
    assert f"  source:  the scatter has none, the line is of the text; export again with {ADVICE}" in explain(own)
    text, explained = render_text([ModuleReport("m.mlir", 7, (other,))], width=200), explain(other)
    line = write.__code__.co_firstlineno + 1
    assert f"{HERE}:{line}" in text
    assert f"at {HERE}:{line} in @main" in explained[0]
    assert ADVICE not in text + "".join(explained)
    reports = [ModuleReport("m.mlir", 7, (own,)), ModuleReport("m.mlir", 7, (other,)), ModuleReport("empty.mlir", 1)]
    assert "locations: none in 1 of 3 modules" in render_text(reports, width=200)
    assert report_data(reports)["totals"]["unlocated"] == 1


def test_an_exported_function_keeps_its_locations():
    """`jax.export` gives them, as an object and as the bytearray that `serialize` returns."""
    exported = jax.export.export(jax.jit(write))(np.zeros(8, np.float32), 3)
    for source in (exported, exported.serialize(), bytes(exported.serialize())):
        assert hl.classify(hl.read(source, contained=False))[0].location.startswith(HERE)
