"""The HTML reports without a browser: what they hold, that they need nothing else, and that names cannot leave text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome, RefusedOps
from hlo_lower.base.english import phrase
from hlo_lower.facts.scatter.record import Written
from hlo_lower.named.record import NamedRecord, NamedReport, NearMissRecord
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import render_json
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.named_ops import render_named_html
from hlo_lower.report.page_words import RECORD
from hlo_lower.report.picture import svg_of
from hlo_lower.report.row import bounds, writes

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "wbr", "br", "hr", "img", "input", "link"}


class Tags(HTMLParser):
    """The tags of a page with their attributes, its text, and what its scripts hold; raises where one is not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text, self.scripts = [], [], "", []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.open += [tag] * (tag not in VOID)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.scripts += [data] * (self.open[-1:] == ["script"])
        self.text += data * (self.open[-1:] not in (["script"], ["style"]))

    def all(self, tag, key):
        """An attribute of the tags of a name."""
        return [attributes[key] for name, attributes in self.seen if name == tag]


def held(page):
    """The report and the words that a page holds."""
    return tuple(map(json.loads, Tags(page).scripts[:2]))


def named(words, own):
    """The words of a record by their names."""
    return {name: words["texts"][n] for name, n in zip(RECORD, own, strict=True)}


@pytest.fixture
def reports(decode):
    """A converted module, one with other ops and refusals, one that could not be read."""
    refused = RefusedOps("stablehlo.sort", Code.REFUSES_OPS("npu", ("stablehlo.sort",), "no kernel"), 2, ("line 3",))
    change = Change(Outcome.LEFT, "chlo.erf", Code.NEEDS_SIZES(), "a.mlir:3")
    other = replace(decode, file="a.mlir", refused=(refused,), changes=(change,))
    return [decode, other, ModuleReport("bad.mlir", error="gone")]


def test_the_page_holds_the_json_report_and_its_words(reports):
    """For each record, step, refusal, change and reason there are the words that the other formats have."""
    data, words = held(render_html(reports))
    assert data == json.loads(render_json(reports))
    text = words["texts"]
    assert text[0] == ""
    assert len(set(text)) == len(text)
    assert len(words["reasons"]) == len(data["reasons"])
    assert text[words["reasons"][0]] == "less specific than dynamic_update_slice"
    for report, module, own in zip(reports, data["modules"], words["modules"], strict=True):
        for record, numbers in zip(report.records, own["records"], strict=True):
            found = named(words, numbers)
            assert (found["writes"], found["bounds"]) == (writes(record), bounds(record))
            assert found["picture"] == svg_of(record)
            assert found["guard"] == ("argument" if record.number == 2 else "")
        steps = {phrase(step) for record in report.records for fact in record.facts for step in fact.evidence}
        pairs = zip(module["evidence"], own["evidence"], strict=True)
        assert steps == {text[n] + (f" at {step['at']}" if "at" in step else "") for step, n in pairs}
        refused = [[text[n] for n in pair] for pair in own["refused"]]
        assert refused == [["stablehlo.sort", "no kernel"]] * len(report.refused)
        assert [text[pair[0]] for pair in own["changes"]] == [phrase(change.why) for change in report.changes]
    assert held(render_html(reports, explain=(2, 1)))[1]["open"] == [1, 2]


def test_the_rule_of_a_kept_scatter_and_the_cause_of_one_without_are_told(record):
    """What facets are made of: the rule's short name, "kept" or "none"; a cause where there is none."""
    kept = record(2, rule="", why=Code.KEPT("npu", "assign", "f32", False))
    none = record(3, rule="", why=Code.NO_LOWERING("npu"))
    _, words = held(render_html([ModuleReport("a.mlir", 7, (record(), kept, none))]))
    found = [named(words, own) for own in words["modules"][0]["records"]]
    assert [one["rule"] for one in found] == ["dynamic_update_slice", "kept", "none"]
    assert [one["cause"] for one in found] == ["", "", "no lowering for target npu"]


def test_names_cannot_leave_text(of_one):
    """Whatever a module calls its things, no tag comes of it in page, data or drawings, nor of a quote an attribute."""
    source = Code.GUARDED(Code.ARGUMENT(0, "main", EVIL))
    changes = {"writes": Written((1,), (EVIL, *":::")), "bounds": source, "combiner": EVIL, "kind": "general"}
    evil = of_one(EVIL, location=EVIL, scope=f"a/{EVIL}/b/c", **changes)
    page = render_html([evil, ModuleReport("b", error=f"{EVIL}<!--")], explain=(1,))
    assert (page.count("<script"), "<!--" in page, held(page)[0]["modules"][0]["file"]) == (3, False, EVIL)
    [drawn] = [text for text in held(page)[1]["texts"] if text.startswith("<svg")]
    assert ("<script" in drawn, "&lt;script&gt;" in drawn) == (False, True)
    page = render_html([of_one('"x" onload="y', writes=Written((1,), ('" onclick="x', *":::")))])
    [drawn] = [text for text in held(page)[1]["texts"] if text.startswith("<svg")]
    assert ('onclick="x"' in drawn, "&quot; onclick=&quot;x" in drawn) == (False, True)
    assert all("onload" not in attributes for _, attributes in Tags(page).seen)


def test_the_page_needs_nothing_else_and_is_told_without_a_script(reports):
    """It loads nothing, admits dark, narrow screens and paper; a main, headings, links to its views, and totals."""
    page = render_html(reports)
    loading = ("http:", "https:", "src=", "<link", "<img", "@import", "url(", "fetch(")
    media = ("prefers-color-scheme: dark", "max-width: 760px", 'name="viewport"', "@media print")
    assert [word for word in loading if word in page] + [word for word in media if word not in page] == []
    assert "{{" not in page.replace("${", "")
    tags = Tags(page)
    assert [tag for tag, _ in tags.seen if tag in ("main", "h1")] == ["h1", "main"]
    assert tags.all("h2", "id") == tags.all("section", "aria-labelledby")
    assert tags.all("a", "href") == ["#main", "#overview", "#modules", "#ops", "#sources"]
    assert tags.all("section", "id") == ["view-overview", "view-modules", "view-ops", "view-sources"]
    assert tags.all("html", "lang") == ["en"]
    total = "total: 3 modules (1 failed), 10,898 ops, 8 scatters -> 2 · target stablehlo, oob xla"
    for line in (total, "kinds: 6 insert_slice, 2 general", "guards: 2 needed", "refused: 2 stablehlo.sort"):
        assert line in tags.text
    tags = Tags(render_html([ModuleReport("zoo/a.mlir", 7)]))
    assert ("Scatter report: a.mlir" in tags.text, "7 ops, 0 scatters" in tags.text) == (True, True)
    assert set(re.findall(r"\btold\.(\w+)", tags.scripts[2])) - {"replaceChildren"} <= set(RECORD)


def test_alike_modules_share_their_words(decode):
    """Of 50 each adds its JSON, and not 300 bytes beside."""
    data, words = held(render_html([replace(decode, file=f"{n}.mlir") for n in range(50)]))
    assert (len(words.pop("texts")) < 40, len(data["modules"])) == (True, 50)
    assert len(json.dumps(words)) < 50 * 300


OTHER_ROWS = Code.NAMED_OP_LACKS("the maximum of the same rows")


def named_op(name, place, flops=100, **more):
    """A named op of a function that is called twice."""
    fields = {"inputs": {"x": "4x8xf32"}, "attributes": {"axis": 1}, "further": 0, **more}
    return NamedRecord(name, place, "main", 2, 5, flops, **fields)


NAMED = [
    NamedReport(
        *("zoo/llama.mlir", 40, 1000),
        (
            named_op("attention", "llama.mlir:7", 300, inner=("softmax",)),
            named_op("rms_norm", "llama.mlir:3", further=1),
        ),
        (NearMissRecord("softmax", "llama.mlir:9", OTHER_ROWS),),
    ),
    NamedReport(
        "zoo/gpt.mlir", 20, 0, (named_op("softmax", "gpt.mlir:2"),), (NearMissRecord("gelu", EVIL, OTHER_ROWS),)
    ),
    NamedReport("zoo/bad.mlir", 0, 0, (), (), "zoo/bad.mlir:1:1: no module\n  next:    fix it"),
]


def test_the_page_of_named_ops():
    """Modules are those of the JSON report, near misses have a sentence; counts without a script."""
    page = render_named_html(NAMED, ["a", "a", "b"])
    report, words = held(page)
    assert [{**one.to_json(), "group": group} for one, group in zip(NAMED, "aab", strict=True)] == report["modules"]
    assert words["modules"] == [[1], [1], []]
    assert words["texts"][1].startswith("it lacks the maximum of the same rows")
    assert EVIL not in page
    assert "<p>zoo/llama.mlir: 2 attention, 2 rms_norm</p>" in page
    assert "<p>zoo/bad.mlir: zoo/bad.mlir:1:1: no module</p>" in page
