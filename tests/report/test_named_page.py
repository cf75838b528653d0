"""The page of named ops: what it holds, and in a browser what it answers."""

import json
import os
from pathlib import Path

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.named.record import NamedRecord, NamedReport, NearMissRecord
from hlo_lower.report.named_ops import render_named_html

EVIL = "<script>alert(1)</script>"
OTHER_ROWS = Code.NAMED_OP_LACKS("the maximum of the same rows")
AXE = os.environ.get("AXE_CORE")


def named(name, place, flops=100, **more):
    """A named op of a function that is called twice."""
    told = {"inputs": {"x": "4x8xf32"}, "attributes": {"axis": 1}, "further": 0, **more}
    return NamedRecord(name, place, "main", 2, 5, flops, **told)


REPORTS = [
    NamedReport(
        "zoo/llama.mlir",
        40,
        1000,
        (named("attention", "llama.mlir:7", 300, inner=("softmax",)), named("rms_norm", "llama.mlir:3", further=1)),
        (NearMissRecord("softmax", "llama.mlir:9", OTHER_ROWS),),
    ),
    NamedReport("zoo/gpt.mlir", 20, 0, (named("softmax", "gpt.mlir:2"),), (NearMissRecord("gelu", EVIL, OTHER_ROWS),)),
    NamedReport("zoo/bad.mlir", 0, 0, (), (), "zoo/bad.mlir:1:1: no module\n  next:    fix it"),
]


def held(page):
    """The report and the words of a page."""
    parts = page.split('<script type="application/json" id="')[1:]
    return [json.loads(part.split(">", 1)[1].split("</script>")[0]) for part in parts]


def test_the_page_holds_the_json_report_and_words_of_what_was_lacked():
    """Each module is there as in the JSON report, and each near miss has its sentence, once."""
    report, words = held(render_named_html(REPORTS, ["a", "a", "b"]))
    assert [{**one.to_json(), "group": group} for one, group in zip(REPORTS, "aab", strict=True)] == report["modules"]
    assert words["modules"] == [[1], [1], []]
    assert words["texts"][1].startswith("it lacks the maximum of the same rows")


def test_names_stay_text():
    """What a module says cannot close an element of the page, and without a script the counts are told."""
    page = render_named_html(REPORTS)
    assert EVIL not in page
    assert "<p>zoo/llama.mlir: 2 attention, 2 rms_norm</p>" in page
    assert "<p>zoo/bad.mlir: zoo/bad.mlir:1:1: no module</p>" in page


@pytest.fixture(scope="module")
def browser():
    """A browser, where there is one."""
    pytest.importorskip("playwright")
    from page_questions import chromium

    with chromium() as found:
        if found is None:
            pytest.skip("no browser")
        yield found


@pytest.fixture
def tab(browser, tmp_path):
    """A tab with the page, in which no error may occur."""
    (tmp_path / "named.html").write_text(render_named_html(REPORTS))
    found, errors = browser.new_page(viewport={"width": 1280, "height": 900}), []
    found.on("pageerror", lambda error: errors.append(error))
    found.goto((tmp_path / "named.html").as_uri())
    found.locator("a.card").first.wait_for()
    yield found
    found.close()
    assert errors == []


def rows(tab, what):
    """The cells of the rows of a table."""
    return [row.split("\t") for row in tab.locator(what).all_inner_texts()]


@pytest.mark.sweep
def test_which_and_what_they_cover_is_in_the_overview(tab):
    """Shares of ops and FLOPs, for each named op its number, the largest first, and what was almost one."""
    cards = [card.replace("\n", " ") for card in tab.locator("a.card").all_inner_texts()]
    assert cards[1:5] == [
        "6 named ops",
        "25 % of the ops are in them",
        "100 % of the FLOPs are in them",
        "2 were almost one",
    ]
    covered = rows(tab, "#view-overview h3:has-text('Which') + .wide tbody tr")
    assert covered[0] == ["attention", "1", "2", "5", "600", "60 %"]
    lacked = rows(tab, "#view-overview h3:has-text('Almost') + .wide tbody tr")
    assert [one[0].split(":")[0] for one in lacked] == ["softmax", "gelu"]


@pytest.mark.sweep
def test_a_named_op_is_a_facet_and_a_row_says_what_it_is(tab):
    """One click shows where an op is; its row opens to operands, attributes and what it covers."""
    tab.locator("#view-overview a", has_text="attention").click()
    shown = tab.locator("#view-ops tr.row")
    assert shown.count() == 1
    assert "line 7" in shown.first.inner_text()
    tab.locator("#view-ops tr.row .open").click()
    told = tab.locator("#view-ops tr.detail").inner_text()
    assert "x 4x8xf32" in told
    assert "5 ops, 300 FLOPs each time: 60 % of the module's" in told
    assert "softmax" in told


@pytest.mark.sweep
def test_near_misses_are_found_by_what_they_lacked(tab):
    """Rows of the outcome almost have the reason in the place of operands; a module's row lists its own."""
    tab.locator("a.card", has_text="almost").click()
    assert tab.locator("#view-ops [role=status]").first.inner_text() == "2 of 5 rows"
    assert "the maximum of the same rows" in tab.locator("#view-ops tr.row").first.inner_text()
    tab.locator("nav a", has_text="Modules").click()
    tab.locator("select[name=almost]").first.select_option("softmax")
    assert tab.locator("#view-modules [role=status]").first.inner_text() == "1 of 3 modules"


@pytest.mark.sweep
@pytest.mark.skipif(not AXE, reason="AXE_CORE names no axe.min.js")
@pytest.mark.parametrize("view", ["overview", "modules", "ops"])
def test_axe_finds_nothing(tab, view):
    """Headings, labels and colors are those that assistive technology needs."""
    tab.locator("nav a", has_text=view.capitalize()).click()
    tab.add_script_tag(content=Path(AXE).read_text())
    assert tab.evaluate("axe.run().then(found => found.violations.map(one => one.id))") == []
