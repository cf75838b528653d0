"""What a target refuses of modules, in lines: the same words in text, Markdown and HTML."""

from collections.abc import Sequence

from hlo_lower.base import english
from hlo_lower.base.refused import SCATTER, RefusedOps
from hlo_lower.base.short_forms import plural, printable


def refused_lines(refused: Sequence[RefusedOps], *, of_many: bool = False) -> list[str]:
    """A line for each: "2 stablehlo.sort: no kernel; at line 12, line 30"; "157 stablehlo.scatter in 73 modules: ...".

    Args:
      refused: what is refused.
      of_many: whether it is of several modules, so that these are counted.
    """
    return [printable(_line(one, of_many=of_many)) for one in refused]


def _line(one: RefusedOps, *, of_many: bool) -> str:
    what = f"{plural(one.count, 'op')} on {one.reason['dtype']}" if not one.op else f"{one.count:,} {one.op}"
    within = f" in {plural(one.modules, 'module')}" if of_many else ""
    places = f"; at {', '.join(one.places)}" + (", ..." if one.count > len(one.places) else "") if one.places else ""
    remedy = f"; gone with {one.remedy}" if one.remedy else ""
    return f"{what}{within}: {reason_told(one, of_many=of_many)}{places}{remedy}"


def reason_told(one: RefusedOps, *, of_many: bool) -> str:
    """Why: "no kernel", "not taken on i64"; of a scatter, what stands in the way of the nearest lowering."""
    said = english.refusal if one.op != SCATTER else english.told_kind if of_many else english.told
    return said(one.reason)
