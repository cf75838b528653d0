"""One module converted: lowered, put into a form, verified, and told of. Nothing is written to a file here."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from hlo_lower.api.module_forms import lowered_bytes
from hlo_lower.api.verified import more_careful
from hlo_lower.base.errors import EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.ir.mlir import print_module
from hlo_lower.ir.reader import Source, read
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.report.built_text import LONGEST, built_texts
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.neighbourhood import neighbourhoods
from hlo_lower.verify import Verdict

Judge = Callable[[Lowered], Verdict]


@dataclass(frozen=True)
class Converted:
    """A module after lowering, in the form that it is written in."""

    lowered: Lowered  # the module
    data: bytes  # it in its form
    verdict: Verdict | None  # what verification found; None where it was not asked for
    report: ModuleReport  # what is told of it, with the exit code of its conversion


def convert_source(
    source: Source, name: str, options: Options, form: str, judge: Judge | None, *, with_texts: bool = False
) -> Converted:
    """Convert a module into a form of `hlo_lower.api.module_forms.FORMS`; `judge`, if given, verifies the result.

    With texts, the report holds what was built for each scatter and the memory over program order. Raises InputError if
    the module cannot be read or has no such form, and NotLoweredError if a scatter has no lowering and may not stay.
    """
    start = perf_counter()
    lowered = lower(source, name=name, options=options)
    data = lowered_bytes(lowered, form)
    written = perf_counter()
    verdict = None if judge is None else judge(lowered)
    if judge is not None and verdict is not None:
        first, (lowered, verdict) = lowered, more_careful(source, lowered, verdict, judge)
        data = data if lowered is first else lowered_bytes(lowered, form)
    is_left = lowered.refused or lowered.unsupported or lowered.variants_left
    report = ModuleReport(
        name,
        lowered.op_count,
        lowered.records,
        options.target.name,
        options.oob,
        scatters_left=lowered.scatters_left,
        verification=verdict.summary() if verdict is not None and verdict.ok else None,
        convert_seconds=written - start,
        verify_seconds=None if verdict is None else perf_counter() - written,
        verdict=None if verdict is None else verdict.to_json(),
        refused=lowered.refused,
        exit_code=(verdict.exit_code if verdict is not None else EXIT_OK) or (EXIT_NOT_LOWERED if is_left else EXIT_OK),
        notes=lowered.notes,
        changes=lowered.changes,
        **(_for_a_page(source, name, lowered) if with_texts else {}),
    )
    return Converted(lowered, data, verdict, report)


def _for_a_page(source: Source, name: str, lowered: Lowered) -> dict[str, Any]:
    """What is told on a page alone: the text of what was built, and the memory before and after."""
    from hlo_lower.facts.memory.liveness import curves_of

    text = print_module(lowered.graph.module, locations=True, longest=LONGEST)
    built, given = built_texts(text, lowered.records), read(source, name)
    return {"built": built, "memory": curves_of(given, lowered.graph), "around": neighbourhoods(given)}
