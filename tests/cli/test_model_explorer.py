"""Node data for Model Explorer: the nodes that the viewer numbers so, in the colour of their class."""

import json

import pytest

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.cli.model_explorer import COLORS, node_data
from hlo_lower.report.module import ModuleReport

SCATTER = """"stablehlo.scatter"({0}, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }}) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>"""

NESTED = f"""func.func @main(%x: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<f32>, %n: tensor<i32>) -> tensor<8xf32> {{
  %c = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%k = %n, %y = %x) : tensor<i32>, tensor<8xf32>
  cond {{
    %p = stablehlo.compare LT, %k, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %k2 = stablehlo.add %k, %c : tensor<i32>
    %s = {SCATTER.format("%y")}
    %1:2 = stablehlo.while(%l = %k2, %z = %s) : tensor<i32>, tensor<8xf32>
    cond {{
      %p = stablehlo.compare LT, %l, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %d = {SCATTER.format("%z")}
      stablehlo.return %l, %d : tensor<i32>, tensor<8xf32>
    }}
    stablehlo.return %k2, %1#1 : tensor<i32>, tensor<8xf32>
  }}
  %2 = {SCATTER.format("%0#1")}
  return %2 : tensor<8xf32>
}}
"""

REFUSED = """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<8> : tensor<1xi64>
  %1 = stablehlo.constant dense<1.0> : tensor<f32>
  %2 = stablehlo.rng %1, %1, %0, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  %3 = stablehlo.add %x, %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}
"""


def data_of(text, target="stablehlo"):
    """The node data of a module, as data."""
    graph = hl.read(text, "m.mlir")
    options = hl.Options(target=target)
    found = survey(graph, options=options)
    report = ModuleReport("m.mlir", records=found.records, target=target, refused=found.refused)
    return json.loads(node_data(graph, report))


def test_a_scatter_has_the_number_that_the_viewer_gives_it():
    """Regions of the function's ops are numbered after them; of what lies further in the op around is told."""
    results = data_of(NESTED)["main"]["results"]
    assert list(results) == ["5", "6", "8"]
    assert {one["value"] for one in results.values()} == {"Point add: guarded_updated_slice"}
    assert {one["bgColor"] for one in results.values()} == {COLORS["guarded"]}


def test_an_op_that_the_target_refuses_is_told(tmp_path):
    """By its name, in the colour of what is refused; the others have no data."""
    target = tmp_path / "npu.toml"
    target.write_text('[refused]\n"stablehlo.rng" = "no kernel"\n')
    told = {"value": "refused: stablehlo.rng", "bgColor": COLORS["refused"], "textColor": "#000000"}
    assert data_of(REFUSED, str(target))["main"]["results"] == {"2": told}
    assert data_of(REFUSED) == {}  # no function without a scatter or a refusal is named


@pytest.mark.sweep
def test_the_viewers_own_package_reads_them(tmp_path):
    """Its adapter draws a node of each number, and its classes take the data."""
    adapter = pytest.importorskip("ai_edge_model_explorer_adapter")
    builder = pytest.importorskip("model_explorer.node_data_builder")
    data = data_of(NESTED)
    graphs = {name: builder.GraphNodeData(**held) for name, held in data.items()}
    again = json.loads(builder.ModelNodeData(graphs).to_json_string())
    assert again["main"]["results"] == data["main"]["results"]
    (tmp_path / "m.mlir").write_text(NESTED)
    drawn = json.loads(adapter.ConvertMlirToJson(adapter.VisualizeConfig(), str(tmp_path / "m.mlir")))
    labels = {node["id"]: node["label"] for node in drawn[0]["subgraphs"][0]["nodes"]}
    found = [labels[number].removeprefix("stablehlo.") for number in data["main"]["results"]]
    assert found == ["scatter", "while", "scatter"]


def test_the_command_writes_them_for_one_file(command, refused, folder):
    """`--format model-explorer` is for one file; of several it says so."""
    (folder / "a.mlir").write_text(NESTED)
    done = command("report a.mlir --format model-explorer")
    assert (done.code, json.loads(done.out)) == (0, data_of(NESTED))
    refused("report . --format model-explorer --jobs 1", "", "node data are for one module")
