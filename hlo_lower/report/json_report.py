"""The report as JSON: every record in full, never folded; null is what was not measured.

    {"format_version": 1,
     "modules": [{"file", "group", "op_count", "scatters", "error", ..., "totals": {...}, "records": [{...}]}],
     "totals":  {"modules", "unreadable", "scatters", "kinds": {...}, "subsets": {...}, "rules": {...}, ...},
     "groups":  [{"group", "totals": {...}}]}

A record has the fields of `ScatterRecord`, totals those of `Totals`: each mapping goes from the most frequent name to
the least. A group is a folder of the selection; a module without a folder of its own is in ".". The same modules give
the same text.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hlo_lower.report.module import ModuleReport, folders, totals

FORMAT_VERSION = 1


def report_data(reports: Sequence[ModuleReport]) -> dict[str, Any]:
    """The modules, their records and the totals as plain data."""
    return {
        "format_version": FORMAT_VERSION,
        "modules": [_module(report) for report in reports],
        "totals": asdict(totals(reports)),
        "groups": [{"group": name, "totals": asdict(totals(members))} for name, members in folders(reports)],
    }


def render_json(reports: Sequence[ModuleReport]) -> str:
    """Render modules as JSON text."""
    return json.dumps(report_data(reports), indent=2, ensure_ascii=False) + "\n"


def _module(report: ModuleReport) -> dict[str, Any]:
    return {
        "file": report.file,
        "group": report.group,
        "op_count": report.op_count,
        "scatters": len(report.records),
        "scatters_left": report.scatters_left,
        "target": report.target,
        "oob": report.oob,
        "verification": report.verification,
        "verdict": None if report.verdict is None else dict(report.verdict),
        "convert_seconds": report.convert_seconds,
        "verify_seconds": report.verify_seconds,
        "error": report.error,
        "notes": list(report.notes),
        "totals": asdict(report.totals()),
        "records": [record.to_json() for record in report.records],
    }
