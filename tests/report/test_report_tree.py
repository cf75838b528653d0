"""The report of many modules: a line for each, totals by folder, and everything folded on one page."""

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from hlo_lower.base.causes import Code
from hlo_lower.report.json_report import render_json
from hlo_lower.report.markdown import render_markdown
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.overview import FEW
from hlo_lower.report.text import render_text


@pytest.fixture
def tree(decode, record):
    """Twelve modules in three folders: ten alike, one that could not be read, one of which nothing is lowered."""
    loops = (record(1, kind="general", combiner="mul", rule="while"), record(2))
    alike = [ModuleReport(f"zoo/jax/m{number}.mlir", 7, loops, group="jax") for number in range(10)]
    why = Code.DYNAMIC_SHAPE("x<?>")
    none = {"rule": "", "why": why, "why_not": (), "in_bounds": "unknown", "bounds": Code.NOT_KNOWN()}
    refused = record(1, kind="general", **none)
    return [
        ModuleReport("zoo/bad.mlir", error="zoo/bad.mlir:1:1: no module\n  next:    fix it"),
        *alike,
        ModuleReport("zoo/poly/open.mlir", 9, (refused,), group="poly"),
    ]


def test_each_module_is_a_line_below_its_folder(tree):
    """Counts, kinds with their rules, or the reason; no table of scatters."""
    lines = render_text(tree).splitlines()
    assert lines[:2] == ["target stablehlo, oob xla", "module       ops  scatters  kinds and their rules"]
    assert "  m0.mlir      7         2  general: 1 while; insert_slice: 1 dynamic_update_slice" in lines
    assert "  open.mlir    9         1  general: 1 none (dynamic shape)" in lines
    assert "  bad.mlir                  error: 1:1: no module" in lines
    assert "jax   10 modules, 20 scatters" in lines
    assert not any("llama.py:88" in line for line in lines)


def test_folders_have_totals(tree):
    """A row each, with the share that ends in the loop; then the total of all."""
    text = render_text(tree)
    row = next(line.split("  ") for line in text.splitlines() if line.startswith("jax  ") and "%" in line)
    assert [cell.strip() for cell in row if cell] == [
        *("jax", "10", "70", "20"),
        *("10 general, 10 insert_slice", "10 dynamic_update_slice, 10 while", "0 needed, 20 proved away", "10 (50%)"),
    ]
    assert "total: 12 modules (1 failed), 79 ops, 21 scatters" in text.splitlines()
    assert "  no rule:   1 dynamic shape" in text.splitlines()


def test_few_modules_or_all_of_them_are_shown_in_full(tree):
    """Up to FEW modules, and however many with show_all, have their tables."""
    for reports, how in ((tree[:FEW], {}), (tree, {"show_all": True})):
        text = render_text(reports, **how)
        assert text.count("llama.py:88 layer 0") == sum(len(report.records) for report in reports)
        assert "kinds and their rules" not in text
        assert "in the loop" in text
        assert "kinds and their rules" not in render_markdown(reports, **how)


def test_one_folder_has_no_table_of_folders(decode):
    """Totals by folder that repeat the total are left out."""
    reports = [replace(decode, file=f"{number}.mlir") for number in range(12)]
    for rendered in (render_text(reports), render_markdown(reports)):
        assert "in the loop" not in rendered


def test_explained_scatters_stand_below_the_lines(tree):
    """Number 2 of each module that has one."""
    assert render_text(tree, explain=(2,)).count("scatter 2 of decode.mlir") == 10
    assert render_markdown(tree, explain=(2,)).count("    scatter 2 of decode.mlir") == 10


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_lines_stay_on_the_page(tree, width):
    """Long names are shortened in the middle, cells are wrapped; only a reason may need more on the narrowest page."""
    long = replace(tree[1], file=f"zoo/jax/{'x' * 300}.mlir")
    text = render_text([*tree, long], width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= max(width, 60)
    assert "xxx.mlir" in text


def test_markdown_has_the_same_rows(tree):
    """Modules by their path in the tree, folders, and the total."""
    lines = render_markdown(tree).splitlines()
    assert "| jax/m0.mlir | 7 | 2 | general: 1 while; insert_slice: 1 dynamic_update_slice |" in lines
    assert "| bad.mlir |  |  | error: 1:1: no module |" in lines
    folder = next(line for line in lines if line.startswith("| poly "))
    assert folder == "| poly | 1 | 9 | 1 | 1 general | 1 none | 0 needed, 0 proved away | 0 (0%) |"
    assert "total: 12 modules (1 failed), 79 ops, 21 scatters" in lines


def test_json_has_groups(tree):
    """Each folder with its totals, in the order of the other formats; each module says which is its own."""
    data = json.loads(render_json(tree))
    assert set(data) == {"version", "modules", "rules", "rejections", "reasons", "totals", "groups"}
    assert [group["group"] for group in data["groups"]] == [".", "jax", "poly"]
    assert [module["group"] for module in data["modules"]] == [".", *["jax"] * 10, "poly"]
    assert sum(group["totals"]["scatters"] for group in data["groups"]) == data["totals"]["scatters"] == 21
    assert data["groups"][1]["totals"]["looped"] == 10


def test_policies_are_told_once(tree):
    """All modules have one policy; where they do not, each is told."""
    assert "target stablehlo, oob xla; target stablehlo, oob spec" in render_text([*tree, replace(tree[1], oob="spec")])
