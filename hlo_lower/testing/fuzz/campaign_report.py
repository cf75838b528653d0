"""The report of a campaign, formatted from its summary."""

from collections.abc import Iterator, Mapping
from typing import Any

from hlo_lower.testing.fuzz.case_outcome import impossible_lines
from hlo_lower.testing.fuzz.families import FAMILIES
from hlo_lower.testing.fuzz.layouts import LAYOUTS


def report_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The cell table, who judged, what bites, the times and the failures."""
    cases = int(summary["cases"])
    yield from _table(summary["cells"])
    yield ""
    for title, key in (
        ("compared with", "judged_by"),
        ("not compared with XLA", "not_judged_by_XLA"),
        ("lowered module run by", "lowered_run_by"),
        ("lowered module not run by XLA", "lowered_not_run_by_XLA"),
        ("changes the result", "bites"),
        ("rules", "rule"),
    ):
        counts: Mapping[str, int] = summary[key]
        if counts:
            yield f"{title}:"
            yield from (f"  {n:7,}  {100 * n / max(cases, 1):5.1f} %  {what}" for what, n in counts.items())
    yield f"equal only without fusion and algebraic simplification: {summary['second_look']:,}"
    seconds = ", ".join(f"{step} {s:,.0f}" for step, s in summary["seconds"].items())
    yield f"seconds in {summary['jobs']} processes, added up: {seconds}"
    failed = summary["failed"]
    yield from (f"FAILED {line}" for line in failed)
    yield (
        f"{_scatters(cases)}, seeds {summary['seed']} to {summary['seed'] + summary['runs'] - 1}, "
        f"oob {summary['oob']}, {summary['wall_seconds']:,.0f} s: {len(failed)} failed"
    )


def _scatters(count: int) -> str:
    return f"{count:,} scatter{'' if count == 1 else 's'}"


def _table(cells: Mapping[str, int]) -> Iterator[str]:
    """Cases per subset and combiner family, as `classify` names them."""
    widths = [max(len(family), 5) for family in FAMILIES]
    yield "".join((f"{'':12}", *(f"  {family:>{w}}" for family, w in zip(FAMILIES, widths, strict=True))))
    for subset in LAYOUTS:
        counts = (str(cells.get(f"{subset}/{family}", "-")) for family in FAMILIES)
        yield "".join((f"{subset:12}", *(f"  {n:>{w}}" for n, w in zip(counts, widths, strict=True))))
    yield from (f"- {line}" for line in impossible_lines())
