"""The text of a scatter in the module's file, the source line that it names, and what was built for it."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

import hlo_lower as hl
from hlo_lower.api.many import survey
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir.mlir import print_module
from hlo_lower.report.built_text import LOCATION, built_texts
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import report_data
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.source_text import scatter_texts, source_line

HERE = Path(__file__).parent
MODULE = (HERE / "added_rows.mlir").read_text()
OP = dedent("\n".join(MODULE.split("\n")[2:9]))
NAMED = MODULE.replace("-> tensor<8x4xf32>\n  %1", '-> tensor<8x4xf32> loc("jit(f)/scatter"("model.py":2:4))\n  %1')


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in a file, named from the folder that it is in."""
    (tmp_path / "m.mlir").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "m.mlir"


def test_the_text_of_a_scatter_is_its_op_alone(module, record, tmp_path):
    """From result to type, at most 40 lines; none where numbers differ, or of a file gone or of bytes."""
    assert scatter_texts(ModuleReport(module, 7, hl.classify(module))) == [OP]
    assert scatter_texts(ModuleReport(module, 7, (record(1), record(2)))) == []
    (tmp_path / "m.mlirbc").write_bytes(b"ML\xefR\x00\xff\xfe")
    for name in ("gone.mlir", "m.mlirbc"):
        assert scatter_texts(ModuleReport(name, 7, (record(1),))) == []
    body = "\n".join(f"  %s{n} = stablehlo.add %a, %b : tensor<f32>" for n in range(99))
    (tmp_path / "m.mlir").write_text(OP.replace("  %s = stablehlo.add %a, %b : tensor<f32>", body))
    [text] = scatter_texts(ModuleReport(module, 7, (record(1),)))
    assert (len(text.split("\n")), text.endswith("\n...")) == (41, True)


def test_the_source_line_is_that_of_the_file_that_the_module_names(tmp_path, monkeypatch):
    """Beside the module, or where the command runs; "" where it is not there, or too short."""
    (tmp_path / "model.py").write_text("def f(x):\n    return x.at[i].add(y)\n")
    [record] = hl.classify(hl.read(NAMED, "zoo/m.mlir"))
    assert (record.source, record.location, record.scope) == ("model.py", "model.py:2", "jit(f)/scatter")
    assert source_line(ModuleReport(str(tmp_path / "m.mlir")), record) == "return x.at[i].add(y)"
    assert source_line(ModuleReport("zoo/m.mlir"), record) == ""
    monkeypatch.chdir(tmp_path)
    assert source_line(ModuleReport("zoo/m.mlir"), record) == "return x.at[i].add(y)"
    (tmp_path / "model.py").write_text("def f(x):")
    assert source_line(ModuleReport("zoo/m.mlir"), record) == ""
    assert hl.classify(MODULE)[0].source == ""


@pytest.mark.parametrize("text", [MODULE, NAMED], ids=["own lines", "source lines"])
def test_what_was_built_for_a_scatter_is_what_has_its_place(text):
    """Its ops, those in a loop's body too, and none of another op."""
    lowered = hl.lower(text)
    printed = lowered.graph.module.operation.get_asm(enable_debug_info=True)
    [[number, lines]] = built_texts(printed, lowered.records).items()
    assert (number, len(lines) > 3) == (1, True)
    assert not any("negate" in line or "loc(" in line or "func.func" in line for line in lines)
    bare = [line.strip() for line in LOCATION.sub("", printed).split("\n")]
    assert {line.strip() for line in lines} <= set(bare)
    built = [line for line in bare if line.startswith("%") and "negate" not in line]
    assert [line.strip() for line in lines if line.strip().startswith("%")] == built


def test_a_loop_is_shown_whole_and_a_long_constant_is_not(record):
    """From header to end, without ops of another scope; the first of alike scatters has it. Constants are cut."""
    fields = {"location": "a.py:9", "source": "model/a.py", "scope": "jit(f)/scatter"}
    built = built_texts((HERE / "built_loop.mlir").read_text(), [record(1, **fields), record(2, **fields)])
    assert list(built) == [1]
    assert built[1][0] == "%0:2 = stablehlo.while(%a = %arg0, %b = %arg0) : tensor<f32>, tensor<f32>"
    assert (built[1][-1], len(built[1])) == ("}", 7)
    numbers = ", ".join(map(str, range(8)))
    text = MODULE.replace("  %0 =", f"  %i = stablehlo.constant dense<[{numbers}]> : tensor<8xi32>\n  %0 =", 1)
    printed = print_module(hl.lower(text).graph.module, locations=True, longest=4)
    assert ("__elided__" in printed, f"[{numbers}]" in printed) == (True, False)


def code(report):
    """Each scatter of a report's page before and after."""
    words = json.loads(render_html([report]).split('id="words">')[1].split("</script>")[0])
    lines = [[words["texts"][n] for n in block] for block in words["blocks"]]
    return [tuple("\n".join(lines[n]) for n in own) for own in words["modules"][0]["code"]]


def assert_before_and_after(report, lowered):
    """Check that a page shows the op and what it became in a text."""
    [(before, after)] = code(report)
    assert (before, "stablehlo.scatter" in after) == (OP, False)
    assert after
    assert all(line.strip() in lowered for line in after.split("\n"))


def test_the_page_has_before_and_after(module, tmp_path):
    """`convert --report R.html` shows the op and what it became; a report what would be built, whatever is refused."""
    [report] = hl.convert_modules(module, tmp_path / "out", verify="off", with_texts=True)
    assert_before_and_after(report, (tmp_path / "out" / "m.mlir").read_text())
    assert hl.convert_modules(module, tmp_path / "other", verify="off")[0].built == {}
    for target in ("stablehlo", "coreml"):
        plain, shown = (hl.classify_modules(module, target=target, with_texts=texts)[0] for texts in (False, True))
        assert report_data([plain]) == report_data([shown])
        assert code(plain) == [(OP, "")]
        assert_before_and_after(shown, hl.lower(module, target=target).text)
    assert hl.classify(hl.read(f"// a comment\n\n\n{MODULE}", "m.mlir"))[0].location == "m.mlir:6"
    assert hl.lower(hl.read(f"\n{MODULE}", "m.mlir")).records[0].location == "m.mlir:4"


def test_each_of_several_alike_scatters_shows_what_it_becomes(tmp_path):
    """The text of the first one, as with what it was."""
    second = OP.replace("%0 =", "%2 =").replace("(%arg0,", "(%1,").replace("\n", "\n  ")
    (tmp_path / "m.mlir").write_text(MODULE.replace("return %1", f"{second}\n  return %2"))
    [report] = hl.classify_modules(tmp_path / "m.mlir", with_texts=True)
    (_, first), (_, other) = code(report)
    assert first == other != ""
    assert list(report.built) == [1]


def test_what_cannot_be_lowered_is_still_told(module, monkeypatch):
    """A rule that fails is for `convert` to tell: the report is that without texts."""

    def failing(*_, **__):
        raise NotLoweredError("m.mlir", "a broken rule", next_step="report this")

    [plain] = hl.classify_modules(module)
    monkeypatch.setattr(survey, "lower_scatters", failing)
    [report] = hl.classify_modules(module, with_texts=True)
    assert (report.error, report.built) == (None, {})
    assert report_data([plain]) == report_data([report])
