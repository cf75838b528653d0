"""Many modules as two tables: a row for each module and one for each folder, with the same cells in every format."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from hlo_lower.base.english import kind_phrase
from hlo_lower.base.short_forms import by_count, printable
from hlo_lower.report.headline import guards_text, list_counts, list_rules
from hlo_lower.report.module import NO_RULE, ModuleReport, Totals, folders, refusal_cause, rule_of, totals
from hlo_lower.report.row import rule_name

FEW = 8
"""As many modules are shown with all their scatters; of more there is a row each, unless everything is asked for."""

MODULE_HEADERS = ("module", "ops", "scatters", "kinds and their rules")
FOLDER_HEADERS = ("folder", "modules", "ops", "scatters", "kinds", "rules", "guards", "in the loop")


def is_brief(reports: Sequence[ModuleReport], *, show_all: bool) -> bool:
    """Whether the modules are too many to show each of them in full."""
    return len(reports) > FEW and not show_all


def module_row(report: ModuleReport) -> tuple[str, ...]:
    """The cells of a module, in the order of MODULE_HEADERS; one that could not be read has its reason."""
    if report.error is not None:
        return (path_in_tree(report), "", "", reason(report))
    return (path_in_tree(report), f"{report.op_count:,}", f"{len(report.records):,}", kinds_and_rules(report))


def path_in_tree(report: ModuleReport) -> str:
    """A module's name below the folder that was given."""
    return printable((PurePath(report.group) / base_name(report)).as_posix())


def base_name(report: ModuleReport) -> str:
    """A module's name within its folder."""
    return printable(PurePath(report.file).name or report.file)


def folder_rows(reports: Sequence[ModuleReport]) -> list[tuple[str, ...]]:
    """A row for each folder, in the order of FOLDER_HEADERS; none where all modules are in one."""
    named = folders(reports)
    return [_folder(name, totals(members)) for name, members in named] if len(named) > 1 else []


def kinds_and_rules(report: ModuleReport) -> str:
    """ "insert_slice: 2 dynamic_update_slice; general: 1 while, 1 none (dynamic shape)"."""
    kinds = report.totals().kinds
    told: list[str] = []
    for kind in kinds:
        rules = Counter(
            rule_name(rule) + (f" ({kind_phrase(refusal_cause(record))})" if rule == NO_RULE else "")
            for record, rule in ((record, rule_of(record)) for record in report.records if record.kind == kind)
        )
        told.append(f"{kind}: {list_counts(by_count(rules))}")
    return printable("; ".join(told))


def reason(report: ModuleReport) -> str:
    """Why a module could not be read, in a line that does not repeat its name."""
    told = (report.error or "").split("\n")[0].strip()
    return printable(f"error: {told.removeprefix(report.file).removeprefix(':').strip()}")


def share(part: int, whole: int) -> str:
    """ "8 (53%)"; "" of nothing."""
    return f"{part:,} ({100 * part / whole:.0f}%)" if whole else ""


def _folder(name: str, total: Totals) -> tuple[str, ...]:
    unreadable = f" ({total.unreadable:,} failed)" if total.unreadable else ""
    counts = (f"{total.modules:,}{unreadable}", f"{total.op_count:,}", f"{total.scatters:,}")
    if not total.scatters:
        return (printable(name), *counts, "", "", "", "")
    return (
        printable(name),
        *counts,
        list_counts(total.kinds),
        list_rules(total),
        guards_text(total),
        share(total.looped, total.scatters),
    )
