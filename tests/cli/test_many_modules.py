"""`hlo-lower report` over folders and of named ops, and as node data for Model Explorer."""

import json
import os
import shutil
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.api.many.files import SNIFFED, SUFFIXES
from hlo_lower.api.many.survey import survey
from hlo_lower.cli.model_explorer import COLORS, node_data
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.overview import FEW


@pytest.fixture
def zoo(folder):
    """A tree of ten modules in two folders."""
    for group in ("a", "b"):
        (folder / "zoo" / group).mkdir(parents=True)
        for number in range(5):
            source = folder / ("decode.mlir" if number % 2 else "plain.mlir")
            shutil.copy(source, folder / "zoo" / group / f"m{number}.mlir")
    return folder / "zoo"


def test_a_folder_is_reported_by_module_and_folder(zoo, folder, command):
    """One line for each of many modules, a total for each folder and for all; a page in a file holds all."""
    result = command("report zoo --jobs 1 --fail-on general")
    assert (result.code, result.err) == (0, "")
    assert "  m1.mlir    6         1  insert_slice: 1 guarded_dynamic_update_slice" in result.out.splitlines()
    assert "a   5 modules, 2 scatters" in result.out.splitlines()
    assert "total: 10 modules, 48 ops, 4 scatters" in result.out
    assert "line 4" not in result.out
    assert command("report zoo --jobs 1 --all").out.count("line 4") == 4
    result = command("report zoo -o zoo.html --jobs 1")
    assert (result.code, result.out, result.err) == (0, "wrote zoo.html\n", "")
    page = (folder / "zoo.html").read_text()
    held = json.loads(page.split('id="report">')[1].split("</script>")[0])
    assert (page.endswith("</html>\n"), sum(len(one["records"]) for one in held["modules"])) == (True, 4)


def test_what_cannot_be_read_does_not_stop_the_rest(zoo, folder, command):
    """A bad module, a missing file and an empty folder are rows with their reasons; exit code 2, --fail-on is told."""
    (zoo / "a" / "bad.mlir").write_text("this is a recipe for bread\n")
    (folder / "empty").mkdir()
    (folder / "empty" / "notes.txt").write_text("x")
    result = command("report zoo missing.mlir empty --fail-on insert_slice --jobs 1")
    assert result.code == 2
    assert "error: 1:1: " in result.out
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "missing.mlir error: no such file" in lines
    assert "empty error: is a directory without a module in it" in lines
    assert "total: 13 modules (3 failed)" in result.out
    assert result.err.splitlines() == [
        "3 of 13 modules could not be read; the report says why",
        "4 scatters of kind insert_slice (--fail-on insert_slice)",
    ]


@pytest.mark.sweep
def test_a_time_limit_ends_what_hangs(folder, command):
    """A pipe that nobody writes to would be read for ever; with --timeout it is an error."""
    os.mkfifo(folder / "pipe.mlir")
    result = command("report pipe.mlir decode.mlir --timeout 3 --jobs 1")
    assert result.code == 2
    assert "pipe.mlir   error: pipe.mlir: was not done after 3 s, the time for a module" in result.out
    assert "line 4" in result.out


def test_standard_input_among_files(folder, command, monkeypatch):
    """`-` is a module in its place; help says which files of a folder are modules, and when they are shown in full."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO((folder / "decode.mlir").read_bytes())))
    result = command("report - plain.mlir --format json --jobs 1")
    assert (result.code, result.err) == (0, "")
    first = json.loads(result.out)["modules"][0]
    assert (first["file"], first["group"], len(first["records"])) == ("-", ".", 1)
    shown = " ".join(command("report --help").out.split())
    assert [word for word in (*SUFFIXES, *SNIFFED, f"Up to {FEW} modules") if word not in shown] == []


@pytest.fixture
def softmax(folder):
    """A module with a softmax, and what is almost one."""

    def function(x):
        e = jnp.exp(x - x.max(0, keepdims=True))
        return jax.nn.softmax(x), e / e.sum(1, keepdims=True)

    x = jax.ShapeDtypeStruct((4, 8), jnp.float32)
    (folder / "softmax.mlir").write_text(jax.jit(function).lower(x).as_text())
    return folder


def test_a_module_is_raised_and_written_out_again(softmax, command):
    """What was found is told, and what was almost; the inverse gives plain ops."""
    done = command("raise softmax.mlir -o raised.mlir")
    assert (done.code, done.err) == (0, "")
    first, second, last = done.out.splitlines()
    assert last == "wrote raised.mlir"
    assert first.startswith("softmax.mlir: 1 named op: 1 softmax ")
    assert second == "  1 almost: hlo-lower report --named softmax.mlir says what it lacked"
    assert "hl.softmax" in (softmax / "raised.mlir").read_text()
    assert command("raise raised.mlir -o plain.mlir --inline").code == 0
    assert "composite" not in (softmax / "plain.mlir").read_text()
    assert hl.read(softmax / "plain.mlir").op_count == hl.read(softmax / "softmax.mlir").op_count


def test_the_report_of_named_ops(softmax, command):
    """What there is and what was almost one, as text, JSON and a page; of a folder a bad module is a row, code 2."""
    named = "  1 softmax(x 4x8xf32) {axis=1, empty_rows=nan}"
    done = command("report --named softmax.mlir")
    assert (done.code, named in done.out.splitlines()) == (0, True)
    assert "almost softmax at softmax.mlir:" in done.out
    assert "the maximum and the sum go over different axes" in done.out
    assert command("report --named softmax.mlir -o named.html").out == "wrote named.html\n"
    assert "Named ops: softmax.mlir" in (softmax / "named.html").read_text()
    (softmax / "broken.mlir").write_text("module {")
    done = command("report --named .")
    assert (done.code, named in done.out.splitlines()) == (2, True)
    assert any(line.endswith("broken.mlir: unreadable") for line in done.out.splitlines())
    assert command("report --named . -o named.json").code == 2
    told = {Path(one["file"]).name: one for one in json.loads((softmax / "named.json").read_text())}
    assert ("error" in told["broken.mlir"], told["broken.mlir"]["named"]) == (True, [])
    assert [one["name"] for one in told["softmax.mlir"]["named"]] == ["softmax"]
    assert told["softmax.mlir"]["near_misses"][0]["why"]["code"] == "other_axes"
    assert command("report --named broken.mlir").code == 2


ADDED = "scatter({}, %i, %u) <inserted=[0], to=[0]> {{add}}"
NESTED = module(
    "%x: 8xf32, %i: 1xi32, %u: f32, %n: i32",
    f"""%c = constant 1 : i32
    %0:2 = while(%k = %n, %y = %x) cond {{ %p = compare LT, %k, %c; return %p }} do {{
      %k2 = add %k, %c
      %s = {ADDED.format("%y")}
      %1:2 = while(%l = %k2, %z = %s) cond {{ %p = compare LT, %l, %c; return %p }} do {{
        %d = {ADDED.format("%z")}
        return %l, %d
      }}
      return %k2, %1#1
    }}
    %r = {ADDED.format("%0#1")}""",
)
DRAWN = """%0 = constant 8 : 1xi64; %1 = constant 1.0 : f32
    %2 = rng %1, %1, %0, distribution = UNIFORM -> 8xf32; %r = add %x, %2"""


def data_of(text, target="stablehlo"):
    """The node data of a module, as data."""
    graph = hl.read(text, "m.mlir")
    found = survey(graph, options=hl.Options(target=target))
    report = ModuleReport("m.mlir", records=found.records, target=target, refused=found.refused)
    return json.loads(node_data(graph, report))


def test_nodes_have_the_numbers_that_the_viewer_gives_them(tmp_path, folder, command):
    """Regions are numbered after the function's ops, what lies further in tells of the op around; so do refusals."""
    results = data_of(NESTED)["main"]["results"]
    assert list(results) == ["5", "6", "8"]
    told = {(one["value"], one["bgColor"]) for one in results.values()}
    assert told == {("Point add: guarded_updated_slice", COLORS["guarded"])}
    (folder / "a.mlir").write_text(NESTED)
    done = command("report a.mlir --format model-explorer")
    assert (done.code, json.loads(done.out)) == (0, data_of(NESTED))
    target, text = tmp_path / "npu.toml", module("%x: 8xf32", DRAWN)
    target.write_text('[refused]\n"stablehlo.rng" = "no kernel"\n')
    told = {"value": "refused: stablehlo.rng", "bgColor": COLORS["refused"], "textColor": "#000000"}
    assert data_of(text, str(target))["main"]["results"] == {"2": told}
    assert data_of(text) == {}  # no function without a scatter or a refusal is named


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
