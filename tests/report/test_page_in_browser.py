"""The HTML reports in a browser, where there is one: answers, links, filters, keys, paper, and ten thousand modules."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from test_page import NAMED

from hlo_lower.base.causes import Code
from hlo_lower.base.change import RefusedOps
from hlo_lower.facts.scatter.record import Fact
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import render_json
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.named_ops import render_named_html

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.sweep

AXE = os.environ.get("AXE_CORE")
"""The file axe.min.js, where the rules of axe are to be asked."""


@pytest.fixture(scope="module")
def browser():
    """A browser for all tests."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as started:
        try:
            browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Exception:
            pytest.skip("no browser")
        yield browser
        browser.close()


@pytest.fixture
def zoo(decode, record):
    """Thirty modules: ten alike, ten in another folder with a loop and a refused sort, nine refused, one unreadable."""
    cost = Code.COSTS("many", 12.5)
    loop = record(
        *(2,),
        kind="general",
        combiner="mul",
        rule="scatter_to_while",
        subset="Filter",
        why=Code.CHOSEN("nothing", "many", None),
        facts=(Fact.known("strategy", "many", cost),),
    )
    sort = RefusedOps("stablehlo.sort", Code.REFUSES_OPS("npu", ("stablehlo.sort",), "no kernel"), 2, ("line 3",))
    i64 = RefusedOps("", Code.REFUSES_DTYPE("npu", "i64", None, None), 3, ("line 5",), remedy="--demote-i64")
    return [
        *(replace(decode, file=f"zoo/a/{n}.mlir", group="a") for n in range(10)),
        *(ModuleReport(f"zoo/b/{n}.mlir", 7, (record(1), loop), "npu", group="b", refused=(sort,)) for n in range(10)),
        *(
            ModuleReport(
                *(f"zoo/c/{n}.mlir", 7, (), "npu"),
                group="c",
                refused=(sort, i64),
                best_options=("--demote-i64", "--legalize"),
            )
            for n in range(9)
        ),
        ModuleReport("zoo/bad.mlir", error="zoo/bad.mlir:1:1: no module\n  next:    fix it"),
    ]


@pytest.fixture
def page(zoo, tmp_path):
    """Their page."""
    path = tmp_path / "zoo.html"
    path.write_text(render_html(zoo))
    return path


@pytest.fixture
def tab(browser):
    """A tab in which no error may occur, and which reaches nothing but files."""
    errors, asked_for = [], []
    found = browser.new_page(viewport={"width": 1280, "height": 900})
    found.on("pageerror", lambda error: errors.append(error))
    found.on("request", lambda request: asked_for.append(request.url.partition("#")[0]))
    yield found
    found.close()
    assert errors == []
    assert len({url for url in asked_for if not url.startswith("blob:")}) <= 2
    assert all(url.startswith(("file:", "blob:")) for url in asked_for)


def opened(tab, page, view):
    """Open a page at a view, anew."""
    tab.goto(f"{page.as_uri()}#{view}")
    tab.reload()
    tab.locator("main section:not([hidden])").first.wait_for()


def names(tab, view):
    """The rows of a table that are drawn."""
    return tab.locator(f"#view-{view} tr.row .open").all_inner_texts()


def status(tab, view):
    """How many rows of a table are shown, such as "12 of 784 modules"."""
    tab.locator(f"#view-{view} [role=search]").wait_for()
    return tab.locator(f"#view-{view} [role=status]").first.inner_text()


def cells(tab, what):
    """The cells of the rows of a table."""
    return [row.strip().split("\t") for row in tab.locator(what).all_inner_texts()]


def test_five_questions_are_answered(tab, page, zoo, tmp_path):
    """What is blocked, needs a guard, is written, got slower (by JSON or an earlier page), and is left in loops."""
    opened(tab, page, "overview")
    assert cells(tab, "#view-overview h3:has-text('rejects') + .wide tbody tr")[:2] == [
        ["stablehlo.sort: no kernel", "19", "38", "none known (19)"],
        ["any op on i64: not accepted", "9", "27", "--demote-i64 (9)"],
    ]
    tab.locator("a.card:has-text('rejects something')").first.click()
    assert status(tab, "modules") == "19 of 30 modules"
    opened(tab, page, "overview")
    assert cells(tab, "#view-overview h3:has-text('Guards') + .wide tbody tr") == [["argument", "10", "10"]]
    tab.locator("nav a:has-text('Modules')").first.click()
    select = tab.locator("#view-modules select[name=guard]")
    guarded = [label for label in select.locator("option").all_text_contents() if label.startswith("has guards")]
    select.select_option(label=guarded[0])
    assert status(tab, "modules") == "10 of 30 modules"
    opened(tab, page, "ops")
    tab.locator("#view-ops input[type=search]").fill("a/3 llama.py:89")
    tab.locator("#view-ops tr.row .open").first.click()
    drawn = tab.locator("#view-ops tr.detail svg.picture").first.get_attribute("aria-label")
    assert drawn.startswith("tile [:, :, pos, :] of 1x8x64x16. down, dim 2: pos of 64.")
    assert status(tab, "ops") == "1 of 88 rows"
    earlier = json.loads(render_json(zoo))
    for module in earlier["modules"][10:13]:
        next(step for step in module["evidence"] if step["code"] == "costs")["us"] = 3.0
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    opened(tab, page, "overview")
    tab.locator("input[type=file]").set_input_files(tmp_path / "earlier.json")
    tab.locator("#compared li").first.wait_for()
    assert "3 scatters: slower" in tab.locator("#compared li").all_inner_texts()
    tab.locator("#compared a[href$='change=slower']").first.click()
    assert status(tab, "ops") == "3 of 88 rows"
    opened(tab, page, "overview")
    tab.locator("a.card:has-text('in a loop')").first.click()
    assert status(tab, "ops") == "10 of 88 rows"
    opened(tab, page, "overview")
    tab.locator("input[type=file]").set_input_files(page)
    tab.locator("#compared li").first.wait_for()
    assert "0 scatters: slower" in tab.locator("#compared li").all_inner_texts()
    (tmp_path / "x.json").write_text("[]")
    tab.locator("input[type=file]").set_input_files(tmp_path / "x.json")
    tab.locator("#compared .bad").wait_for()
    assert "x.json is no report to compare with" in tab.locator("#compared").inner_text()


def test_search_facets_and_order_are_a_link(browser, tab, page):
    """Words and facets choose rows, and facets say how many; a heading orders them; the address has all of it."""
    opened(tab, page, "modules")
    tab.locator("#modules-q").fill("zoo sort")
    assert len(names(tab, "modules")) == 19
    tab.locator("select[name=folder]").first.select_option("c")
    assert len(names(tab, "modules")) == 9
    tab.locator("#view-modules th button", has_text="module").click()
    tab.locator("#view-modules th button", has_text="module").click()
    found = names(tab, "modules")
    assert found == sorted(found, reverse=True)
    heading = tab.locator("#view-modules th[aria-sort=descending]")
    assert heading.all_inner_texts() == ["module"]
    again = browser.new_page()
    again.goto(tab.url)
    assert names(again, "modules") == found
    again.close()
    tab.locator("#view-modules button", has_text="Clear").click()
    assert len(names(tab, "modules")) == 30
    opened(tab, page, "ops")
    for option in tab.locator("select[name=rule] option").all_inner_texts()[1:]:
        value, count = option.rsplit(" (", 1)
        tab.locator("#view-ops select[name=rule]").select_option(value)
        assert status(tab, "ops") == f"{count[:-1]} of 88 rows"


def test_rows_are_opened_by_a_link_and_all_at_once(tab, page):
    """Whatever is filtered, the row of a link is drawn, open, and has the focus; all open at once, evidence folded."""
    opened(tab, page, "ops?" + "rule=while")
    tab.goto(f"{page.as_uri()}#m7-s3")
    row = tab.locator("#m7-s3 .open")
    row.wait_for()
    assert row.get_attribute("aria-expanded") == "true"
    assert row.evaluate("element => element === document.activeElement")
    assert tab.locator("#m7-s3 + tr.detail svg.picture").count() == 1
    ids = tab.evaluate("[...modules, ...ops].map(row => row.id)")
    assert len(ids) == len(set(ids)) == 118
    assert tab.locator("#m7-s3 a.anchor").get_attribute("href") == "#m7-s3"
    opened(tab, page, "ops?folder=a")
    tab.locator("#view-ops button", has_text="Expand all").click()
    assert tab.locator("#view-ops tr.detail").count() == len(names(tab, "ops")) == 40
    assert tab.locator("#view-ops tr.detail details[open]").count() == 0
    tab.locator("#view-ops tr.detail summary").first.click()
    assert "clamped to [0, 63] at llama.py:87" in tab.locator("#view-ops tr.detail").first.inner_text()
    tab.locator("#view-ops button", has_text="Close all").click()
    assert tab.locator("#view-ops tr.detail").count() == 0


def test_keys_do_what_the_page_says(tab, page):
    """m and s change the view, / goes to the search, where they are letters; Enter opens a row."""
    opened(tab, page, "overview")
    tab.keyboard.press("m")
    tab.locator("#view-modules tr.row").first.wait_for()
    tab.keyboard.press("/")
    tab.keyboard.type("ms")
    assert tab.locator("#modules-q").input_value() == "ms"
    tab.locator("#modules-q").fill("")
    tab.locator("#view-modules .open").first.focus()
    tab.keyboard.press("Enter")
    assert tab.locator("#view-modules tr.detail").count() == 1


def test_paper_has_the_view_and_everything_only_if_asked(tab, page):
    """A filtered table prints its rows as they are, open ones open, with a line that names the filters; the button
    prints all views, unfolded. Nothing is wider than the page, and after it all is as before."""
    opened(tab, page, "ops?rule=while")
    tab.set_viewport_size({"width": 760, "height": 1000})
    tab.locator("#view-ops tr.row .open").first.click()
    tab.emulate_media(media="print")
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("#printed").inner_text() == "10 of 88 rows; Rule: while"
    assert tab.locator("tr.row").count() == 10
    assert tab.locator("tr.detail").count() == 1
    shown = "[...document.querySelectorAll('section')].filter(one => one.offsetHeight > 0).map(one => one.id)"
    assert tab.evaluate(shown) == ["view-ops"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 760
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen")
    tab.evaluate("window.print = () => window.dispatchEvent(new Event('beforeprint'))")
    tab.locator("#print-all").click()
    tab.emulate_media(media="print")
    rows = tab.evaluate("modules.length + ops.length + sources.length")
    assert tab.locator("tr.detail").count() == rows > 118
    assert tab.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    assert len(tab.evaluate(shown)) == 4
    assert tab.evaluate("document.documentElement.scrollWidth") <= 760
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen")
    assert status(tab, "ops") == "10 of 88 rows"
    assert tab.locator("#view-ops tr.detail").count() == 1


def test_a_line_of_a_source_leads_to_its_ops(tab, page):
    """ "llama.py:89" finds its scatters; the view of sources has one row for it, which links to each."""
    opened(tab, page, "ops?q=llama.py:89")
    found = int(status(tab, "ops").split()[0])
    assert found > 0
    opened(tab, page, "sources?q=llama.py:89")
    assert status(tab, "sources").startswith("1 of ")
    tab.locator("#view-sources tr.row .open").first.click()
    links = tab.locator("#view-sources tr.detail a")
    assert links.count() == found
    links.first.click()
    assert tab.locator("#view-ops tr.here").count() == 1


def test_classes_and_options_that_help_together_stand_in_the_overview(tab, page):
    """A table of subset by combiner leads to the scatters of a class; options that help together are one command."""
    opened(tab, page, "overview")
    rows = cells(tab, "#view-overview h3:has-text('Classes') + .wide tbody tr")
    heads = tab.locator("#view-overview h3:has-text('Classes') + .wide thead th").all_inner_texts()
    assert heads[0] == "subset"
    [loops] = [row for row in rows if row[0] == "Filter"]
    assert loops[heads.index("mul")] == "10"
    tab.locator("#view-overview h3:has-text('Classes') + .wide tr:has-text('Filter') td a").nth(1).click()
    assert status(tab, "ops") == "10 of 88 rows"
    opened(tab, page, "overview")
    [row] = cells(tab, "#view-overview h3:has-text('together') + .wide tbody tr")
    assert row[:3] == ["--demote-i64 --legalize", "9", "9"]
    assert "zoo/c/2.mlir ... -o lowered/ --target npu --demote-i64 --legalize" in row[3]


def test_names_stay_text(tab, tmp_path, record):
    """A module that is named like a tag runs nothing."""
    evil = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    bounds = Code.GUARDED(Code.ARGUMENT(0, "main", evil))
    one = record(location=evil, scope=f"a/{evil}", bounds=bounds, in_bounds="unknown", combiner=evil, kind="general")
    path = tmp_path / "evil.html"
    path.write_text(render_html([ModuleReport(evil, 7, (one,)), ModuleReport("b", error=evil)], explain=(1,)))
    for view in ("overview", "modules", "m1", "m1-s1", f"ops?q={quote(evil)}"):
        opened(tab, path, view)
        tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert tab.evaluate("window.hit") is None


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen_and_axe_finds_nothing(browser, page, width, scheme):
    """In each view, on a large and a small screen, light and dark."""
    tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    for view in ("overview", "modules", "ops", "sources", "m1", "m11-s2", "l1"):
        opened(tab, page, view)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, view
        if AXE:
            tab.evaluate(Path(AXE).read_text())
            found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], view
    tab.close()


def test_ten_thousand_modules_do_not_stall(tab, zoo, tmp_path):
    """Rows are drawn as they are needed: few at first, a search is not felt, and the last one can be linked to."""
    path = tmp_path / "many.html"
    path.write_text(render_html([replace(zoo[n % 30], file=f"zoo/{n}/{zoo[n % 30].file}") for n in range(10_000)]))
    opened(tab, path, "modules")
    assert len(names(tab, "modules")) < 500
    took = tab.evaluate("""() => { const start = performance.now(); moduleTable.state.q = "9999"; moduleTable.update();
        void document.body.offsetHeight; return performance.now() - start; }""")
    assert took < 1000
    tab.goto(f"{path.as_uri()}#m9999")
    tab.locator("#m9999 + tr.detail").wait_for()
    assert len(names(tab, "modules")) < 500
    first = names(tab, "modules")[0]
    tab.locator("#view-modules button", has_text="Earlier rows").click()
    assert names(tab, "modules")[60] == first


@pytest.fixture
def named(tab, tmp_path):
    """A tab with the page of named ops."""
    (tmp_path / "named.html").write_text(render_named_html(NAMED))
    tab.goto((tmp_path / "named.html").as_uri())
    tab.locator("a.card").first.wait_for()
    return tab


def test_the_page_of_named_ops_answers(named):
    """The overview has shares of ops and FLOPs; an op is a facet, its row opens; near misses have their reason."""
    cards = [card.replace("\n", " ") for card in named.locator("a.card").all_inner_texts()]
    shares = ["6 named ops", "25 % of the ops are in them", "100 % of the FLOPs are in them", "2 were almost one"]
    assert cards[1:5] == shares
    covered = cells(named, "#view-overview h3:has-text('Which') + .wide tbody tr")
    assert covered[0] == ["attention", "1", "2", "5", "600", "60 %"]
    lacked = cells(named, "#view-overview h3:has-text('Almost') + .wide tbody tr")
    assert [one[0].split(":")[0] for one in lacked] == ["softmax", "gelu"]
    named.locator("#view-overview a", has_text="attention").click()
    shown = named.locator("#view-ops tr.row")
    assert shown.count() == 1
    assert "line 7" in shown.first.inner_text()
    named.locator("#view-ops tr.row .open").click()
    told = named.locator("#view-ops tr.detail").inner_text()
    for words in ("x 4x8xf32", "5 ops, 300 FLOPs each time: 60 % of the module's", "softmax"):
        assert words in told
    named.goto(named.url.partition("#")[0])
    named.reload()
    named.locator("a.card", has_text="almost").click()
    assert status(named, "ops") == "2 of 5 rows"
    assert "the maximum of the same rows" in named.locator("#view-ops tr.row").first.inner_text()
    named.locator("nav a", has_text="Modules").click()
    named.locator("select[name=almost]").first.select_option("softmax")
    assert status(named, "modules") == "1 of 3 modules"


@pytest.mark.skipif(not AXE, reason="AXE_CORE names no axe.min.js")
@pytest.mark.parametrize("view", ["overview", "modules", "ops"])
def test_axe_finds_nothing_on_the_page_of_named_ops(named, view):
    """Headings, labels and colors are those that assistive technology needs."""
    named.locator("nav a", has_text=view.capitalize()).click()
    named.add_script_tag(content=Path(AXE).read_text())
    assert named.evaluate("axe.run().then(found => found.violations.map(one => one.id))") == []
