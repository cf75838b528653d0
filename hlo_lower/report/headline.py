"""One module as a headline, and its totals as lines: the same words in text, Markdown and HTML."""

from collections.abc import Mapping, Sequence

from hlo_lower.base import english
from hlo_lower.base.causes import Cause
from hlo_lower.base.change import SCATTER, RefusedOps
from hlo_lower.base.english import kind_phrase
from hlo_lower.base.short_forms import plural, printable, seconds
from hlo_lower.report.module import ModuleReport, Totals
from hlo_lower.report.place import EXPORT_LOCATIONS
from hlo_lower.report.row import rule_name


def refused_lines(refused: Sequence[RefusedOps], *, of_many: bool = False) -> list[str]:
    """A line for each: "2 stablehlo.sort: no kernel; at line 12, line 30"; "157 stablehlo.scatter in 73 modules:
    ..."."""
    return [printable(_line(one, of_many=of_many)) for one in refused]


def _line(one: RefusedOps, *, of_many: bool) -> str:
    what = f"{plural(one.count, 'op')} on {one.reason['dtype']}" if not one.op else f"{one.count:,} {one.op}"
    within = f" in {plural(one.modules, 'module')}" if of_many else ""
    places = f"; at {', '.join(one.places)}" + (", ..." if one.count > len(one.places) else "") if one.places else ""
    remedy = f"; gone with {one.remedy}" if one.remedy else ""
    return f"{what}{within}: {reason_text(one, of_many=of_many)}{places}{remedy}"


def reason_text(one: RefusedOps, *, of_many: bool) -> str:
    """The reason: "no kernel", "not taken on i64"; of a scatter, the obstacle of the nearest lowering."""
    said = english.refusal if one.op != SCATTER else english.kind_phrase if of_many else english.phrase
    return said(one.reason)


def headline(report: ModuleReport) -> tuple[str, ...]:
    """The parts of a module's headline, its file first."""
    file = printable(report.file)
    if report.error is not None and not report.records:
        return (file, printable(f"error: {report.error}", keep="\n"))
    scatters = plural(len(report.records), "scatter")
    if report.scatters_left is not None:
        scatters += f" -> {report.scatters_left:,}"
    parts = [file, f"{plural(report.op_count, 'op')}, {scatters}", f"target {report.target}, oob {report.oob}"]
    if report.error is not None:
        return (*parts, printable(f"error: {report.error}", keep="\n"))
    if report.scatters_left is None:
        return tuple(parts)
    parts.append(f"verified: {report.verification}" if report.verification else "not verified")
    if report.verify_seconds is None:
        return (*parts, f"convert {seconds(report.convert_seconds)}")
    return (*parts, f"{seconds(report.convert_seconds)} + {seconds(report.verify_seconds)}")


def summary(total: Totals) -> list[tuple[str, str]]:
    """The totals as pairs of a title and a line; refused ops have several of them. Of one scatter its row says it."""
    refused = [("refused", line) for line in refused_lines(total.refused, of_many=total.modules > 1)]
    if not total.scatters:
        return refused
    lines = [
        ("kinds", list_counts(total.kinds)),
        ("subsets", list_counts(total.subsets)),
        ("combiners", list_counts(total.combiners)),
        ("rules", list_rules(total)),
        ("no rule", list_causes(total.no_rule)),
        ("guards", guards_text(total)),
    ]
    if total.scatters == 1:
        lines = [line for line in lines if line[0] == "no rule"]
    if total.modules > 1:
        lines.append(("guarded", list_causes(total.guard_causes)))
    lines.append(("locations", unlocated_text(total)))
    return [*((title, line) for title, line in lines if line), *refused]


def total_headline(total: Totals, of: str = "total") -> str:
    """ "total: 3 modules (1 failed), 5,449 ops, 160 scatters -> 0"."""
    unreadable = f" ({total.unreadable:,} failed)" if total.unreadable else ""
    left = "" if total.scatters_left is None else f" -> {total.scatters_left:,}"
    counts = f"{plural(total.op_count, 'op')}, {plural(total.scatters, 'scatter')}{left}"
    return f"{of}: {plural(total.modules, 'module')}{unreadable}, {counts}"


def policies(reports: Sequence[ModuleReport]) -> str:
    """ "target stablehlo, oob xla", that the modules have in common; more where they have not."""
    return "; ".join(dict.fromkeys(f"target {report.target}, oob {report.oob}" for report in reports))


def guards_text(total: Totals) -> str:
    """ "80 needed, 80 proved away, 1 never in bounds"."""
    told = f"{total.guards_needed:,} needed, {total.guards_proved_away:,} proved away"
    told += f", {total.guards_assumed_away:,} assumed away" if total.guards_assumed_away else ""
    return told + (f", {total.never_in_bounds:,} never in bounds" if total.never_in_bounds else "")


def unlocated_text(total: Totals) -> str:
    """How to give source locations to modules whose scatters have none; "none in 2 of 3 modules" where there are
    several."""
    where = f"in {total.unlocated:,} of {total.modules:,} modules" if total.modules > 1 else "of any scatter"
    return f"none {where}, lines are those of the text; {EXPORT_LOCATIONS}" if total.unlocated else ""


def list_rules(total: Totals) -> str:
    """ "160 dynamic_update_slice, 2 none"."""
    return list_counts({rule_name(rule): count for rule, count in total.rules.items()})


def list_causes(counts: Mapping[Cause, int]) -> str:
    """ "12 argument, 2 result of gather"."""
    return list_counts({kind_phrase(cause): count for cause, count in counts.items()})


def list_counts(counts: Mapping[str, int]) -> str:
    """ "160 insert_slice, 2 general"."""
    return ", ".join(f"{count:,} {printable(name)}" for name, count in counts.items())
