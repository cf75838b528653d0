"""docs/json-schema.md says what the JSON report has: no more and no less."""

import json
import re
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

from every_cause import CASES, causes_of, told_of
from untyped_mlir import module as in_full

import hlo_lower as hl
from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import RefusedOps
from hlo_lower.base.english import phrase
from hlo_lower.base.memory import LoopSpan, MemoryCurve
from hlo_lower.report.json_report import VERSION, render_json
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.text import render_text

PATH = Path(__file__).parents[1] / "docs" / "json-schema.md"
DOCUMENT = PATH.read_text()
CLAMPED = in_full(
    "%cache: 64x16xf32, %pos: i32, %row: 1x16xf32",
    """%at = clamp 0, %pos, 63; %i = reshape %at -> 1xi32
    %r = scatter(%cache, %i, %row) <window=[0, 1], to=[0]> {assign}""",
)


@cache
def reports():
    """A report of every program, and of a module that could not be read."""
    found = [ModuleReport(f"{n}.mlir", 7, told_of(n)[0], group=n[0], changes=told_of(n)[1]) for n in CASES]
    rows = ("clamped", "several", "batches", "sorted along", "written once", "a run", "anywhere")
    twice = tuple(record for name in rows for record in told_of(name)[0] * 2)
    numbered = tuple(replace(record, number=n, scope=f"layer_{n}") for n, record in enumerate(twice, start=1))
    refused = RefusedOps("stablehlo.sort", Code.REFUSES_OPS("npu", ("stablehlo.sort",), None), 2, ("line 3",))
    curve = MemoryCurve((4, 8, 4), (LoopSpan(1, 2, "a.py:3"),))
    numbers = ModuleReport("twice.mlir", 7, numbered, refused=(refused,), memory=(curve,))
    return [*found, numbers, ModuleReport("bad.mlir", error="gone")]


def documented(title):
    """The fields that a table of the document has: those that are always there, and the others."""
    section = DOCUMENT.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)`(\??) \|", section, re.MULTILINE)
    assert len(rows) == section.count("\n| `") > 0
    return [{name for name, mark in rows if mark == word} for word in ("", "?")]


def written(data):
    """The objects of a report, by the title of their table."""
    modules, groups = data["modules"], data["groups"]
    records = [record for module in modules for record in module["records"]]
    claims = [record["claims"] for record in records if record.get("claims")]
    return {
        "Report": [data],
        "Module": modules,
        "Curve": [curve for module in modules for curve in module["memory"]],
        "Record": records,
        "Writes": [record["writes"] for record in records if "writes" in record],
        "Claims": claims,
        "Row range": [run for one in claims for run in one.get("runs", ())],
        "Totals": [data["totals"], *(group["totals"] for group in groups)],
        "Refused": [one for module in modules for one in module["refused"]],
        "Change": [one for module in modules for one in module["changes"]],
        "Group": groups,
    }


def test_what_is_written_has_the_documented_fields():
    """Each object has the fields that are always there, none that is not documented, and none is only documented."""
    objects = written(json.loads(render_json(reports())))
    for title, found in objects.items():
        always, others = documented(title)
        assert found, title
        assert all(always <= set(one) <= always | others for one in found), title
        assert set().union(*found) == always | others, title
    assert f"`version` is {VERSION}." in DOCUMENT
    assert json.loads(render_json([]))["version"] == VERSION


def test_references_lead_somewhere():
    """Each number is that of a row of its table, and no row is without a number."""
    data = json.loads(render_json(reports()))
    used = {record["why_not"] for module in data["modules"] for record in module["records"] if "why_not" in record}
    assert used == set(range(len(data["rejections"])))
    reasons = {n for rejection in data["rejections"] for numbers in rejection.values() for n in numbers}
    assert reasons == set(range(len(data["reasons"])))
    for module in data["modules"]:
        steps = {n for record in module["records"] for ns in (record.get("evidence") or {}).values() for n in ns}
        assert steps == set(range(len(module["evidence"])))


def test_like_records_are_what_they_are_in_full():
    """What a record leaves out is what the one that it is like has: with it, it is as it would be alone."""

    def resolved(record, evidence):
        steps = {name: [evidence[n] for n in numbers] for name, numbers in record.get("evidence", {}).items()}
        return {**record, "evidence": steps, "why_not": None}

    for report in reports():
        [module] = json.loads(render_json([report]))["modules"]
        by_number = {record["number"]: record for record in module["records"]}
        for record, own in zip(report.records, module["records"], strict=True):
            [alone] = json.loads(render_json([ModuleReport(report.file, 7, (record,))]))["modules"]
            first = by_number[own["like"]] if "like" in own else {}
            assert "like" not in first
            full = {name: value for name, value in {**first, **own}.items() if value is not None and name != "like"}
            assert resolved(full, module["evidence"]) == resolved(alone["records"][0], alone["evidence"])


def causes_table():
    """A line for each code: its fields, and the shortest words for a cause of it; a program reaches it."""
    words = defaultdict(set)
    for name in CASES:
        for cause in causes_of(name):
            words[cause.code].add(phrase(Cause(cause.code, cause.values)))
    lines = []
    assert set(Code) == set(words) == set(english.WORDS) >= set(english.KINDS)
    for code in Code:
        shortest = min(words[code], key=lambda text: (len(text), text)).replace("|", "\\|").replace("<", "&lt;")
        fields = f" ({', '.join(f'`{field}`' for field in code.fields)})" if code.fields else ""
        lines.append(f"- `{code.code}`{fields}: {shortest}")
    return "\n".join(lines)


def example():
    """The report of the module above, but for the rules that were not chosen and the totals."""
    graph = hl.read(CLAMPED, "cache.mlir")
    text = render_json([ModuleReport("cache.mlir", graph.op_count, hl.classify(graph))])
    return f"```text\n{text[: text.index(NEXT)]}\n ...\n```"


NEXT = '\n "rejections": '
MARK = "<!-- {}: tests/test_json_schema.py compares; run, it writes this anew -->\n"
BLOCKS = {"causes": causes_table, "example": example}


def renewed(text):
    """The document with its blocks as they should be."""
    for name, block in BLOCKS.items():
        before, after = text.split(MARK.format(name))
        text = "".join([before, MARK.format(name), block(), after[after.index("\n\n") :] if "\n\n" in after else "\n"])
    return text


def test_every_code_is_documented_and_the_example_is_what_is_written():
    """The list has each code with its fields and its words; the example is the report of the module in this file."""
    assert renewed(DOCUMENT) == DOCUMENT


def test_an_index_of_a_region_is_no_argument_of_a_function():
    """It is counted under the op that holds the region, and not under "argument", which a caller gives."""
    report = ModuleReport("m.mlir", 7, told_of("region")[0])
    assert report.totals().guard_causes == {Code.ARGUMENT_OF("reduce"): 1}
    assert "argument of reduce" in render_text([report] * 2)


if __name__ == "__main__":
    PATH.write_text(renewed(DOCUMENT))
