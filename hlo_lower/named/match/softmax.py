"""softmax, log_softmax and logsumexp, from the exponential of a value less its maximum.

    e = exp(x - max(x))      s = sum(e)         max and sum over the same axes of the same value
    softmax      e / s       e * (1 / s)     exp(log_softmax(x))     of where(seen, x, -inf), s of the e that are seen
    log_softmax  (x - max(x)) - log(s)          x - logsumexp(x)
    logsumexp    log(s) + max(x)

It is that and nothing else: the maximum is proved to be that of the same rows over which the sum goes, whatever layout
or conversion lies between; exp(x - m) with another m overflows elsewhere, and is none. A maximum that is not finite may
be replaced by 0, as `jax.nn.logsumexp` does, and the rows of a softmax that are -inf throughout by 0, as PyTorch does.

Attributes: `axis`, of logsumexp `axes` and `keepdims` (a softmax over several axes has no name); of softmax
`empty_rows` = "zero" where rows of -inf, or of nothing that is seen, become 0, else "nan"; `accumulate`, the type in
which it is computed, where that is not the operand's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.named.match.arithmetic import uncast
from hlo_lower.named.match.axis_atoms import LAYOUT, Axis, View, are_same, leaves
from hlo_lower.named.match.matches import AttributeValue, Found, Match, NearMiss, matchers
from hlo_lower.named.match.rows import Reduced, axes_attribute, combiner_of, reduction_of, rows
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import EXPONENTIAL

PASSED = LAYOUT | {"convert", "abs", "log"}
"""What may stand between a sum and where it is used."""


@dataclass(frozen=True)
class Shifted:
    """The exponential of a value less its maximum."""

    power: View  # the exponential, with atoms of its own
    less: Term  # the difference
    x: Term  # the value, beneath conversions
    maximum: Reduced  # its maximum
    over: Axis  # the atoms that the maximum goes over

    @property
    def attributes(self) -> dict[str, AttributeValue] | None:
        """The axes, and the type in which it is computed."""
        axes = axes_attribute(self.power, self.maximum, self.over)
        if axes is None:
            return None
        found: dict[str, AttributeValue] = {"axis": axes[0]} if len(axes) == 1 else {"axes": axes}
        if self.x.element != self.power.term.element:
            found["accumulate"] = self.power.term.element
        return found


@matchers.finds("softmax", "log_softmax", "logsumexp", at=(EXPONENTIAL,))
def softmax(anchor: Term) -> Found:
    """What an exponential of a value less its maximum becomes."""
    known = anchor.terms.found
    if anchor not in known:
        known[anchor] = _match_exponential(anchor)
    return known[anchor]


def _match_exponential(anchor: Term) -> Found:
    less = anchor.operands[0]
    if less.op in ("constant", "negate"):
        return None
    sums = [user for user in through(anchor, {"convert"}) if user.op == "reduce" and combiner_of(user) == "add"]
    if less.op != "subtract":
        if not sums:
            return None
        quotient = any(uncast(user.operands[0]) is anchor for user in anchor.users if user.op == "divide")
        return NearMiss("softmax", Code.NAMED_OP_LACKS("the subtraction of the maximum"), anchor) if quotient else None
    power = View.of(anchor)
    shifted = _subtracted_maximum(power, less)
    if isinstance(shifted, NearMiss) or shifted is None:
        return shifted
    return _softmax(shifted) or _of_the_sum(shifted, sums)


def shifted_of(anchor: Term) -> Shifted | None:
    """An exponential as that of a value less its maximum, whatever becomes of it."""
    less = anchor.operands[0]
    found = _subtracted_maximum(View.of(anchor), less) if less.op == "subtract" else None
    return found if isinstance(found, Shifted) else None


def through(term: Term, ops: "frozenset[str] | set[str]", steps: int = 40) -> Iterator[Term]:
    """The users of a value, and those behind ops of these names."""
    pending = [term]
    while pending and steps:
        steps -= 1
        for user in pending.pop().users:
            yield user
            if user.op in ops:
                pending.append(user)


def _subtracted_maximum(power: View, less: Term) -> Shifted | NearMiss | None:
    value, other = less.operands
    at = power.on(value)
    root = _where_finite(power.on(other).root())
    maximum = reduction_of(root, "maximum", from_lowest=True)  # a row of nothing but -inf gives NaN from -inf, too
    if maximum is None:
        return None
    over = rows(at, maximum)
    if over is None:
        return NearMiss("softmax", Code.OTHER_VALUE("the maximum that is subtracted"), less)
    return Shifted(power, less, uncast(value), maximum, over)


def _where_finite(view: View) -> View:
    """The m of select(is_finite(m), m, 0)."""
    term = view.term
    if term.op != "select" or term.operands[0].op != "is_finite" or not term.operands[2].is_number(0):
        return view
    return view.on(term.operands[1]).root() if term.operands[0].operands[0] is term.operands[1] else view


def _sum_of(view: View, shifted: Shifted) -> Reduced | NearMiss | None:
    """The sum of the exponential that a value is, over the rows of the maximum."""
    total = reduction_of(view, "add")
    if total is None:
        return None
    chosen = total.operand.term
    if _is_where_seen(chosen, shifted):
        total = Reduced(total.result, total.operand.on(chosen.operands[1]), total.new)
    if not uncast(total.operand.root(until=shifted.power.term).term).is_same(shifted.power.term):
        return None
    over = rows(shifted.power, total)
    if over is None or set(leaves(over)) != set(leaves(shifted.over)):
        return NearMiss("softmax", Code.OTHER_AXES("the maximum", "the sum"), total.result.term)
    return total


def _is_where_seen(term: Term, shifted: Shifted) -> bool:
    """Whether a value is chosen where the softmaxed one is, which is -inf elsewhere, and is 0 there."""
    x = shifted.x
    if term.op != "select" or x.op != "select" or not x.operands[2].is_number(-np.inf):
        return False
    return term.operands[0].is_same(x.operands[0]) and term.operands[2].is_number(0)


def _softmax(shifted: Shifted) -> Found:
    power = shifted.power.term
    for user in through(power, {"convert"}):
        if user.op not in ("divide", "multiply") or user.shape != power.shape:
            continue
        first, second = user.operands
        if user.op == "multiply" and uncast(first) is not power:
            first, second = second, first
        if uncast(first) is not power:
            continue
        divisor = shifted.power.on(second)
        if user.op == "multiply":
            root = divisor.root()
            if root.term.op != "divide" or not root.term.operands[0].is_number(1):
                continue
            divisor = root.on(root.term.operands[1])
        total = _sum_of(divisor, shifted)
        if isinstance(total, NearMiss):
            return total
        attributes = shifted.attributes
        if total is not None and attributes is not None and "axis" in attributes:
            summed = reduction_of(divisor, "add")
            is_of_some = summed is not None and _is_where_seen(summed.operand.term, shifted)
            return _with_rim(shifted, user, attributes, is_of_some=is_of_some)
    return None


def _with_rim(
    shifted: Shifted, quotient: Term, attributes: dict[str, AttributeValue], *, is_of_some: bool = False
) -> Match:
    """The softmax with what follows it: zeros for empty rows, and the conversion back."""
    result, attributes, x = quotient, {**attributes, "empty_rows": "nan"}, shifted.x
    for user in quotient.users:
        if _is_where_seen(user, shifted) and user.operands[1] is quotient:
            result, attributes["empty_rows"], is_of_some = user, "zero", True
            continue
        if user.op != "select" or user.operands[2] is not quotient or not user.operands[1].is_number(0):
            continue
        if _is_empty(View(user.operands[0], shifted.power.axes), shifted):
            result, attributes["empty_rows"] = user, "zero"
    result = _cast_back(result, shifted)
    inputs = {"x": x.operands[1], "where": x.operands[0]} if is_of_some else {"x": x}
    return Match("softmax", inputs, [result], attributes)


def _is_empty(view: View, shifted: Shifted) -> bool:
    """Whether a predicate tests that a row is -inf throughout."""
    root = view.root()
    if root.term.op == "not":
        root = root.on(root.term.operands[0]).root()
        some, expected = reduction_of(root, "or"), ("NE", "not")
    else:
        some, expected = reduction_of(root, "and"), ("EQ",)
    if some is None:
        return False
    test = some.operand.term
    if test.op == "not" and "not" in expected:
        test, expected = test.operands[0], ("EQ",)
    if test.op != "compare" or comparison_direction(test.node) not in expected:
        return False
    value, bound = test.operands
    if uncast(value) is not shifted.x or not bound.is_number(-np.inf):
        return False
    over = rows(shifted.power.on(value), Reduced(some.result, some.operand.on(value), some.new))
    return over is not None and set(leaves(over)) == set(leaves(shifted.over))


def _of_the_sum(shifted: Shifted, sums: list[Term]) -> Found:
    """log_softmax or logsumexp, from the logarithm of the sum."""
    second: Found = None
    for total in sums:
        for user in through(total, PASSED | {"add"}):
            found: Found = None
            if user.op == "subtract" and user.shape == shifted.power.term.shape:
                found = _log_softmax(shifted, user)
            elif user.op == "add" and second is None:
                second = _logsumexp(shifted, user)
            if found is not None:
                return found
    return second


def _log_softmax(shifted: Shifted, user: Term) -> Found:
    value, other = user.operands
    root = shifted.power.on(other).root()
    if value is shifted.less:
        logarithm = root
    elif uncast(value) is shifted.x and root.term.op == "add":  # less the logsumexp
        logarithm = _without_maximum(shifted, root)
    else:
        return None
    if logarithm is None or logarithm.term.op != "log":
        return None
    total = _sum_of(_of_log(logarithm), shifted)
    attributes = shifted.attributes
    if isinstance(total, NearMiss):
        return total
    if total is None or attributes is None or "axis" not in attributes:
        return None
    following = user.only_user
    if following is not None and following.op == "exponential":
        return _with_rim(shifted, following, attributes)
    return Match("log_softmax", {"x": shifted.x}, [_cast_back(user, shifted)], attributes)


def _cast_back(result: Term, shifted: Shifted) -> Term:
    user = result.only_user
    if user is not None and user.op == "convert" and user.element == shifted.x.element:
        return user
    return result


def _of_log(logarithm: View) -> View:
    view = logarithm.on(logarithm.term.operands[0]).root()
    return view.on(view.term.operands[0]) if view.term.op == "abs" else view


def _without_maximum(shifted: Shifted, total: View) -> View | None:
    """The other part of a sum of which one is the maximum, at the same rows."""
    for part, other in (total.term.operands, total.term.operands[::-1]):
        root = _where_finite(total.on(other).root())
        same = zip(root.axes, shifted.maximum.result.axes, strict=False)
        if root.term is shifted.maximum.result.term and all(are_same(a, b) for a, b in same):
            return total.on(part).root()
    return None


def _logsumexp(shifted: Shifted, user: Term) -> Found:
    view = View.of(user)
    for part, other in (user.operands, user.operands[::-1]):
        root = _where_finite(view.on(other).root())
        logarithm = view.on(part).root()
        if root.term is not shifted.maximum.result.term or logarithm.term.op != "log":
            continue
        total = reduction_of(_of_log(logarithm), "add")
        if total is None or uncast(total.operand.term) is not shifted.power.term:
            continue
        same = zip(root.axes, total.result.axes, strict=False)
        over = _sum_over(total, shifted)
        attributes = shifted.attributes
        if attributes is None or over is None or not all(are_same(a, b) for a, b in same):
            continue
        if "axis" in attributes:
            attributes["axes"] = (attributes.pop("axis"),)  # pyright: ignore[reportArgumentType] (an integer)
        attributes["keepdims"] = len(user.shape) == len(shifted.power.term.shape)
        return Match("logsumexp", {"x": shifted.x}, [user], attributes)
    return None


def _sum_over(total: Reduced, shifted: Shifted) -> Axis | None:
    """Whether a sum goes over the dims of the maximum, where both are reductions of the value as it stands."""
    dims = total.result.term.node.integers("dimensions")
    same = tuple(dims) == tuple(shifted.maximum.result.term.node.integers("dimensions"))
    return shifted.over if same and total.operand.term.shape == shifted.power.term.shape else None
