"""One scatter, or several alike ones, as the cells of a table row: the same in text, Markdown and HTML."""

from itertools import groupby

from hlo_lower.report.alike import Group
from hlo_lower.report.module import NO_RULE
from hlo_lower.report.wording import printable
from hlo_lower.scatter.record import ScatterRecord

HEADERS = ("#", "where", "kind", "writes", "rule", "bounds", "unique")
LONGEST_WHERE = 32


def cells(group: Group) -> tuple[str, ...]:
    """The cells of a row, in the order of HEADERS."""
    record = group.first
    number = f"{record.number}" if group.count == 1 else f"{record.number} ×{group.count}"
    words = (where(record), kind(record), record.writes, rule_name(record.rule), record.bounds, unique(record))
    return (number, *(printable(word) for word in words))


def where(record: ScatterRecord) -> str:
    """The source place, and the layer where the scope names one: "llama.py:88  layer_0"."""
    place = record.location
    if len(place) > LONGEST_WHERE:
        place = ".../" + place.rpartition("/")[2]
    layer = scope_layer(record.scope)
    return f"{place}  {layer}" if layer else place


def scope_layer(scope: str) -> str:
    """What a scope says about the place in the model: its names without the transforms around and the op at its end.

    "jit(decode)/layer_0/attention/scatter" gives "layer_0/attention"; repeats and all but the last two are left out.
    """
    names = [name for name in scope.split("/")[:-1] if name and "(" not in name and ")" not in name]
    plain = [name for name, _ in groupby(names) if name not in ("pjit", "while", "body", "cond", "closed_call")]
    return "/".join(plain[-2:])


def kind(record: ScatterRecord) -> str:
    """The kind; the combiner with it where the kind does not tell it ("general: max")."""
    return f"{record.kind}: {record.combiner}" if record.kind == "general" else record.kind


def rule_name(rule: str) -> str:
    """A rule's name without what all of them share ("scatter_to_dynamic_update_slice")."""
    return rule.removeprefix("scatter_to_") or NO_RULE


def unique(record: ScatterRecord) -> str:
    """ "one window" where that is the proof, else proved, claimed or unknown."""
    one_window = any(fact.name == "unique" and fact.evidence == ("one window",) for fact in record.facts)
    return "one window" if one_window else record.unique
