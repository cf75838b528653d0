"""Congruences: an element as a linear form modulo a number, as a remainder leaves it.

`jnp.mod(x, m)` is `r = remainder(x, m)`, then `select(r != 0 and (r < 0) != (m < 0), r + m, r)`: whatever the predicate
says, both branches are congruent to x modulo m.
"""

from dataclasses import dataclass

from hlo_lower.base.element_types import type_range
from hlo_lower.facts.distinct.axis_facts import DistinctQueries
from hlo_lower.facts.forms.linear import Linear
from hlo_lower.facts.forms.places import Entry, moved
from hlo_lower.facts.values.budget import FOLLOWED
from hlo_lower.facts.values.sources import Same
from hlo_lower.ir.view import Node
from hlo_lower.ops import names


@dataclass(frozen=True)
class Congruence:
    """An element is congruent to a form, in whole numbers, modulo a positive number."""

    form: Linear
    modulus: int


def congruence(queries: DistinctQueries, entry: Entry, left: int = FOLLOWED) -> Congruence | None:
    """The congruence of an element of an integer tensor, or None.

    A remainder is congruent to its dividend modulo the divisor, where the dividend's form is exact; a sum with a number
    is, where it cannot wrap around; a choice is, where both branches are congruent to the same.
    """
    if left == 0:
        return None
    node = queries.ranges.sources.of(entry.site)
    if isinstance(node, Same):
        return congruence(queries, entry.of(node.site), left - 1)
    if not isinstance(node, Node):
        return None
    source = moved(node, entry)
    if source is not None:
        return congruence(queries, source, left - 1)
    match node.name:
        case names.REMAINDER:
            x, divisor = node.operands
            low, high = queries.hull(entry.site.to(divisor))
            form = queries.forms.of(entry.to(x))
            return Congruence(form, low) if low == high and low > 0 and queries.forms.is_exact(form, x) else None
        case names.ADD | names.SUBTRACT:
            return _shifted(queries, node, entry, left)
        case names.SELECT:
            a, b = (congruence(queries, entry.to(branch), left // 2) for branch in node.operands[1:])
            if a is None or b is None or a.modulus != b.modulus:
                return None
            apart = a.form.plus(b.form, -1)
            return a if apart.is_constant and apart.constant % a.modulus == 0 else None
        case _:
            return None


def _shifted(queries: DistinctQueries, node: Node, entry: Entry, left: int) -> Congruence | None:
    """A congruent element plus or minus a number that is known."""
    whole = type_range(entry.site.value.element_type)
    x, added = node.operands
    sign = 1 if node.name == names.ADD else -1
    low, high = queries.hull(entry.site.to(added))
    least, most = queries.hull(entry.site.to(x))
    if low != high or whole is None or least + sign * low < whole[0] or most + sign * low > whole[1]:
        return None
    found = congruence(queries, entry.to(x), left - 1)
    return None if found is None else Congruence(found.form.plus(Linear(sign * low)), found.modulus)
