"""One scatter explained: the evidence of each fact, why its rule was chosen, and why the others were not."""

from hlo_lower.base.causes import Code
from hlo_lower.base.english import LEGEND, MEANINGS, join_phrases, phrase, shape_text
from hlo_lower.base.short_forms import printable
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.module import rule_of
from hlo_lower.report.picture import text_of
from hlo_lower.report.place import EXPORT_LOCATIONS, is_unlocated
from hlo_lower.report.row import bounds, rule_name, writes


def explain(record: ScatterRecord) -> list[str]:
    """The lines of an explanation, without indentation before the first level."""
    r = record
    dtype = r.dtype.split(",")[0].strip()
    drawn = text_of(r)
    lines = [
        f"scatter {r.number} of {r.file}   stablehlo.scatter at {r.location} in @{r.function}",
        *([f"  source:  the scatter has none, the line is of the text; {EXPORT_LOCATIONS}"] if is_unlocated(r) else []),
        *([f"  scope:   {r.scope}"] if r.scope else []),
        f"  writes:  {writes(r)}",
        *(f"           {line}" for line in drawn),
        f"  shapes:  operand {shape_text(r.operand_shape, dtype)}, indices {shape_text(r.indices_shape)}, "
        f"updates {shape_text(r.updates_shape)}" + (f"; dtypes {r.dtype}" if "," in r.dtype else ""),
        f"  kind:    {r.kind}: subset {r.subset}, combiner {r.combiner}",
        f"  bounds:  {bounds(r)} (under oob={r.oob}: in bounds {r.in_bounds})",
        "  facts:" if r.facts else "  facts:   none recorded",
    ]
    for fact in r.facts:
        meaning = MEANINGS.get((fact.name, fact.value), "")
        lines.append(f"    {fact.name} = {fact.value}" + (f": {meaning}" if meaning else ""))
        lines.extend([f"      because {LEGEND}"] if fact.name == "layout" else [])
        lines.extend(f"      because {phrase(step)}" for step in fact.evidence)
    lines.append(f"  rule:    {rule_name(rule_of(r))}" + (f": {why(r)}" if r.why else ""))
    lines.append("  not chosen, the nearest first:" if r.why_not else "  not chosen: no other rule was a candidate")
    nearest = sorted(r.why_not, key=lambda other: len(other.reasons))
    lines.extend(f"    {rule_name(other.rule)}: {join_phrases(other.reasons)}" for other in nearest)
    return [printable(line) for line in lines]


def why(record: ScatterRecord) -> str:
    """Why its rule: "Filter x add, drops windows: one-hot sum; about 14 us, one by one 780"; or why it has none."""
    cause = record.why
    assert cause is not None
    if cause.code is not Code.CHOSEN:
        return phrase(cause)
    combiners = set(record.combiner.split(", "))
    what = f"{record.subset} x {combiners.pop() if len(combiners) == 1 else 'general'}, drops {cause['drops']}"
    what = f"dynamic shape, {what}" if any(fact.name == "shape" for fact in record.facts) else what
    return f"{what}: {record.form}{_costs(record)}" + (f", by {cause['place']}" if cause["place"] else "")


def _costs(record: ScatterRecord) -> str:
    """ "; about 14 us, one by one 780": what the chosen form costs, and the loop; of the loop, the next best form."""
    assert record.why is not None
    steps = (step for fact in record.facts if fact.name == "strategy" for step in fact.evidence)
    costs = {str(step["strategy"]): step["us"] for step in steps}
    own, others = record.why["strategy"], [strategy for strategy in costs if strategy != record.why["strategy"]]
    if not isinstance(own, str) or not others:
        return ""
    other = others[0] if own == LOOP else LOOP
    return f"; about {costs[own]:.3g} us, {'one by one' if other == LOOP else other} {costs[other]:.3g}"


LOOP = "many"
"""The strategy of the loop over the windows."""
