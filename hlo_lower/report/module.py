"""What is told about a module and about several: the records of its scatters, and totals that are counted from them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hlo_lower.base.causes import AS_IT_IS, Cause, Code
from hlo_lower.base.change import Change, RefusedOps, total_refusals
from hlo_lower.base.english import kind_phrase
from hlo_lower.base.memory import MemoryCurve
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.place import is_unlocated

NO_RULE = "none"
KEPT = "kept"
LOOP = "while"
TOP = "."


@dataclass(frozen=True)
class ModuleReport:
    """A module that was classified, converted, or could not be read.

    Attributes:
      file: the module's file as the user gave it ("-" for standard input).
      op_count: ops of the input; 0 where it could not be read.
      records: one per scatter, in program order.
      target: what it is lowered for.
      oob: the out-of-bounds policy.
      scatters_left: scatters of the output; None where the module was only classified.
      verification: a verdict that found no difference, in a line; None where it was not verified.
      convert_seconds: reading, rewriting and writing; None where not measured.
      verify_seconds: None where not measured.
      error: why it could not be read or converted; None where it could.
      verdict: the verdict as plain data for the JSON report; None where it was not verified.
      group: the folder that it is counted under, among several modules.
      refused: what the target refuses of the module after lowering.
      exit_code: that of `hlo-lower convert` for it alone; where it was only classified, that of a conversion whose
        result is verified.
      is_resumed: whether it was converted before, by a run that this one goes on with; nothing else is told of it then.
      notes: what was done beside scatters, and what the result rests on, a line each.
      changes: what became of other ops, as data; the notes tell it in words.
      artifact: the file that a consumer's compiler made of it, and what became of it there; None where there is none.
      built: lines of the output by the number of the scatter that they were built for; what is the text of an earlier
        one is left out. Empty where the module was only classified.
      memory: what is live over the program order, as given, and after lowering where it was lowered; empty where it is
        not known, or was not asked for.
      around: a drawing of what stands around each scatter, by its number; empty where it was not asked for.
      best_options: the fewest options, as on the command line, under which the target takes most of the module.

    Example:
      >>> [report] = hl.classify_modules("decode.mlir")
      >>> report.totals().scatters, report.target
      (1, 'stablehlo')
    """

    file: str
    op_count: int = 0
    records: tuple[ScatterRecord, ...] = ()
    target: str = "stablehlo"
    oob: str = "xla"
    scatters_left: int | None = None
    verification: str | None = None
    convert_seconds: float | None = None
    verify_seconds: float | None = None
    error: str | None = None
    verdict: Mapping[str, Any] | None = None
    group: str = TOP
    refused: tuple[RefusedOps, ...] = ()
    exit_code: int = 0
    is_resumed: bool = False
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    artifact: Mapping[str, Any] | None = None
    built: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    memory: tuple[MemoryCurve, ...] = ()
    around: Mapping[int, str] = field(default_factory=dict[int, str])
    best_options: tuple[str, ...] = ()

    def totals(self) -> "Totals":
        """The totals of this module alone."""
        return totals([self])


@dataclass(frozen=True)
class Totals:
    """Counts over one module or several; each mapping goes from the most frequent to the least."""

    modules: int  # how many were asked for, those that could not be read included
    unreadable: int  # how many of them could not be read or converted
    op_count: int  # ops of all inputs
    scatters: int  # scatters of all inputs
    scatters_left: int | None  # scatters of all outputs; None where some module was only classified
    kinds: Mapping[str, int]  # scatters per kind
    subsets: Mapping[str, int]  # scatters per subset
    combiners: Mapping[str, int]  # scatters per combiner
    # scatters per rule; those without one under "none", those that the target takes as they are under "kept"
    rules: Mapping[str, int]
    looped: int  # scatters that end in the loop, the rule below all others
    no_rule: Mapping[Cause, int]  # why scatters have no rule, each cause without what differs from module to module
    guards_needed: int  # scatters with a rule that may leave the operand's bounds
    guards_proved_away: int  # scatters that are proved to stay within them
    guards_assumed_away: int  # scatters that are assumed to stay within them (`assume_in_bounds`)
    never_in_bounds: int  # scatters that write nothing, because no window fits
    unlocated: int  # modules with scatters that name no source of them
    guard_causes: Mapping[Cause, int]  # why guards are needed: what the written place comes from, in the same way
    refused: tuple[RefusedOps, ...]  # what the targets refuse of the modules after lowering


def totals(reports: Sequence[ModuleReport]) -> Totals:
    """Count what the records of these modules say."""
    records = [record for report in reports for record in report.records]
    bounds = Counter(record.in_bounds for record in records)
    assumed = sum(record.bounds.code is Code.ASSUMED_INSIDE for record in records)
    guarded = [record for record in records if record.rule and record.in_bounds == "unknown"]
    left = [report.scatters_left for report in reports if report.error is None]
    known = [count for count in left if count is not None]
    return Totals(
        modules=len(reports),
        unreadable=sum(report.error is not None for report in reports),
        op_count=sum(report.op_count for report in reports),
        scatters=len(records),
        scatters_left=sum(known) if left and len(known) == len(left) else None,
        kinds=_counts(record.kind for record in records),
        subsets=_counts(record.subset for record in records),
        combiners=_counts(record.combiner for record in records),
        rules=_counts(rule_of(record) for record in records),
        looped=sum(record.rule == LOOP for record in records),
        no_rule=_counts((refusal_cause(r) for r in records if rule_of(r) == NO_RULE), kind_phrase),
        guards_needed=len(guarded),
        guards_proved_away=bounds["always"] - assumed,
        guards_assumed_away=assumed,
        never_in_bounds=bounds["never"],
        unlocated=sum(bool(report.records) and all(map(is_unlocated, report.records)) for report in reports),
        guard_causes=_counts(map(guard_cause, guarded), kind_phrase),
        refused=reports[0].refused if len(reports) == 1 else total_refusals(report.refused for report in reports),
    )


def rule_of(record: ScatterRecord) -> str:
    """The rule; "kept" of a scatter that the target takes as it is, "none" of any other without one."""
    is_kept = record.why is not None and record.why.code in AS_IT_IS
    return record.rule or (KEPT if is_kept else NO_RULE)


def folders(reports: Sequence[ModuleReport]) -> list[tuple[str, list[ModuleReport]]]:
    """The modules of each folder, folders by name, the one that was given (".") first."""
    names = sorted({report.group for report in reports}, key=lambda name: (name != TOP, name))
    return [(name, [report for report in reports if report.group == name]) for name in names]


def guard_cause(record: ScatterRecord) -> Cause:
    """The kind of value that an unbounded place comes from: an argument, the result of an op."""
    return record.bounds.cause("source").kind


def refusal_cause(record: ScatterRecord) -> Cause:
    """Why a scatter has no rule: its dynamic shape, a target."""
    assert record.why is not None
    return record.why.kind


Counted = TypeVar("Counted", str, Cause)


def _counts(found: Iterable[Counted], name: Callable[[Counted], str] = str) -> dict[Counted, int]:
    """The count of each, the most frequent first, equal counts by name."""
    return dict(sorted(Counter(found).items(), key=lambda item: (-item[1], name(item[0]))))
