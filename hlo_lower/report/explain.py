"""One scatter explained: the evidence of each fact, why its rule was chosen, and why the others were not."""

from hlo_lower.report.module import rule_of
from hlo_lower.report.row import rule_name
from hlo_lower.report.wording import printable, shape_text
from hlo_lower.scatter.record import ScatterRecord


def explain(record: ScatterRecord) -> list[str]:
    """The lines of an explanation, without indentation before the first level."""
    r = record
    dtype = r.dtype.split(",")[0].strip()
    lines = [
        f"scatter {r.number} of {r.file}   stablehlo.scatter at {r.location} in @{r.function}",
        *([f"  scope:   {r.scope}"] if r.scope else []),
        f"  writes:  {r.writes}",
        f"  shapes:  operand {shape_text(r.operand_shape, dtype)}, indices {shape_text(r.indices_shape)}, "
        f"updates {shape_text(r.updates_shape)}" + (f"; dtypes {r.dtype}" if "," in r.dtype else ""),
        f"  kind:    {r.kind}: subset {r.subset}, combiner {r.combiner}",
        f"  bounds:  {r.bounds} (under oob={r.oob}: in bounds {r.in_bounds})",
        "  facts:" if r.facts else "  facts:   none recorded",
    ]
    for fact in r.facts:
        lines.append(f"    {fact.name} = {fact.value}")
        lines.extend(f"      because {step}" for step in fact.evidence)
    lines.append(f"  rule:    {rule_name(rule_of(r))}" + (f": {r.why}" if r.why else ""))
    lines.append("  not chosen, the nearest first:" if r.why_not else "  not chosen: no other rule was a candidate")
    nearest = sorted(r.why_not, key=lambda other: other.reason.count(";"))
    lines.extend(f"    {rule_name(other.rule)}: {other.reason.replace('scatter_to_', '')}" for other in nearest)
    return [printable(line) for line in lines]
