"""Reports for a build: workflow commands of GitHub, and SARIF."""

import json

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.refusals import RefusedOps
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.render import render

REFUSED = RefusedOps(
    "stablehlo.sort",
    Code.REFUSES_OPS("npu", ("stablehlo.sort",), "50 % slower, no kernel"),
    3,
    ("m.mlir:13", "llama.py:88"),
)
LOOP = """func.func public @main(%x: tensor<4xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>) -> tensor<4xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %y = stablehlo.add %old, %new : tensor<f32>
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""


def reports():
    """A module with refused ops, one with a loop, one that cannot be read, and one of which there is nothing to say."""
    looped = tuple(hl.classify(hl.read(LOOP, "loop.mlir"), prefer="while"))
    assert looped[0].rule == "while"
    return [
        ModuleReport("zoo/m.mlir", target="npu", refused=(REFUSED,)),
        ModuleReport("loop.mlir", records=looped),
        ModuleReport("bad,1.mlir", error="bad,1.mlir: no MLIR\n  next: look"),
        ModuleReport("fine.mlir", 3),
    ]


def test_github_shows_them_at_their_lines():
    """A command for each place; what would be its own syntax is escaped; lines of the module have its path."""
    told = "npu: 3 stablehlo.sort: 50 %25 slower, no kernel; at m.mlir:13, llama.py:88, ..."
    assert render(reports(), "github").splitlines() == [
        f"::error file=zoo/m.mlir,line=13,title=hlo-lower refused::{told}",
        f"::error file=llama.py,line=88,title=hlo-lower refused::{told}",
        "::warning file=loop.mlir,line=2,title=hlo-lower loop::scatter 1 (reduction_add) is a loop over its windows",
        "::error file=bad%2C1.mlir,title=hlo-lower unreadable::bad,1.mlir: no MLIR next: look",
    ]


def test_sarif_has_the_same():
    """One run, whose results name declared rules; a module without a line has none."""
    log = json.loads(render(reports(), "sarif"))
    [run] = log["runs"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "hlo-lower")
    declared = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("refused", "error"),
        ("refused", "error"),
        ("loop", "warning"),
        ("unreadable", "error"),
    ]
    assert {r["ruleId"] for r in run["results"]} <= declared
    places = [r["locations"][0]["physicalLocation"] for r in run["results"]]
    assert [(p["artifactLocation"]["uri"], p.get("region", {}).get("startLine")) for p in places] == [
        ("zoo/m.mlir", 13),
        ("llama.py", 88),
        ("loop.mlir", 2),
        ("bad,1.mlir", None),
    ]


def test_nothing_wrong_is_nothing_said():
    """No line for GitHub, no result in SARIF."""
    fine = [ModuleReport("fine.mlir", 3)]
    assert render(fine, "github") == ""
    assert json.loads(render(fine, "sarif"))["runs"][0]["results"] == []
