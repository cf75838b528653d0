"""Congruences: an element as a linear form modulo a number, as a remainder leaves it.

`jnp.mod(x, m)` is `r = remainder(x, m)`, then `select(r != 0 and (r < 0) != (m < 0), r + m, r)`: whatever the predicate
says, both branches are congruent to x modulo m.
"""

from dataclasses import dataclass

from hlo_lower.analysis.asked import Asked
from hlo_lower.analysis.frame import Frame
from hlo_lower.analysis.interval import type_range
from hlo_lower.analysis.linear import Linear
from hlo_lower.analysis.places import MOVING, Place, moved
from hlo_lower.graph import Value

MAX_FOLLOWED = 40
"""Most ops that are followed to a remainder."""


@dataclass(frozen=True)
class Congruence:
    """An element is congruent to a form, in whole numbers, modulo a positive number."""

    form: Linear
    modulus: int


def congruence(
    asked: Asked, value: Value, place: Place, frame: Frame | None, left: int = MAX_FOLLOWED
) -> Congruence | None:
    """The congruence of an element of an integer tensor at a place, or None.

    A remainder is congruent to its dividend modulo the divisor, where the dividend's form is exact; a sum with a number
    is, where it cannot wrap around; a choice is, where both branches are congruent to the same.
    """
    node = value.node
    if left == 0:
        return None
    if node is None:
        block = value.block
        if frame is None or block is None or block.owner.name != "func.func":
            return None
        return congruence(asked, frame.call.operand(value.number), place, frame.caller, left - 1)
    name = node.name.removeprefix("stablehlo.")
    if name in MOVING:
        source = moved(node, name, place) if all(o.is_static for o in node.operands) else None
        return None if source is None else congruence(asked, source[0], source[1], frame, left - 1)
    if name == "func.call":
        body = asked.intervals.callee(node)
        if body is None or not body.terminator.operand(value.number).is_static:
            return None
        return congruence(
            asked, body.terminator.operand(value.number), place, asked.intervals.enter(node, frame), left - 1
        )
    if name == "remainder":
        x, divisor = node.operands
        low, high = asked.intervals.interval(divisor, frame).hull()
        form = asked.affine.element(x, place, frame)
        return Congruence(form, low) if low == high and low > 0 and asked.affine.is_exact(form, x) else None
    if name in ("add", "subtract"):
        return _shifted(asked, value, place, frame, left)
    if name == "select":
        found = [congruence(asked, branch, place, frame, left // 2) for branch in node.operands[1:]]
        a, b = found
        if a is None or b is None or a.modulus != b.modulus:
            return None
        apart = a.form.plus(b.form, -1)
        return a if apart.is_constant and apart.constant % a.modulus == 0 else None
    return None


def _shifted(asked: Asked, value: Value, place: Place, frame: Frame | None, left: int) -> Congruence | None:
    """A congruent element plus or minus a number that is known."""
    node, whole = value.node, type_range(value.element_type)
    assert node is not None
    x, added = node.operands
    sign = 1 if node.name == "stablehlo.add" else -1
    low, high = asked.intervals.interval(added, frame).hull()
    least, most = asked.intervals.interval(x, frame).hull()
    if low != high or whole is None or least + sign * low < whole[0] or most + sign * low > whole[1]:
        return None
    found = congruence(asked, x, place, frame, left - 1)
    return None if found is None else Congruence(found.form.plus(Linear(sign * low)), found.modulus)
