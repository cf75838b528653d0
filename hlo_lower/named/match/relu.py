"""relu(x) = max(x, 0), relu6(x) = min(max(x, 0), 6), hard_swish(x) = x * relu6(x + 3) / 6.

    relu        maximum(x, 0)      select(x > 0, x, 0)
    relu6       clamp(0, x, 6)     minimum(maximum(x, 0), 6)
    hard_swish  x times relu6 of x + 3, divided by 6 or times 1/6, in any order; x times x / 6 + 0.5 between 0 and 1

They are these and nothing else: the bounds are the constants 0 and 6, of floats, and both x of hard_swish are one
value. No attributes.
"""

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.transfer.booleans import comparison_direction
from hlo_lower.named.match.arithmetic import grown, is_product, plus, scaled_from, with_constant
from hlo_lower.named.match.found import Found, Match, NearMiss, matchers
from hlo_lower.named.match.terms import Term, is_rounded
from hlo_lower.ops.names import CLAMP, DIVIDE, MAXIMUM, MINIMUM, SELECT


def relu_of(term: Term) -> Term | None:
    """The x of max(x, 0)."""
    if not term.is_float:
        return None
    found = with_constant(term, "maximum")
    if found is not None:
        return found[0] if is_rounded(found[1], 0) else None
    if term.op != "select" or not term.operands[2].is_number(0):
        return None
    predicate, x, _ = term.operands
    if predicate.op != "compare" or not predicate.operands[0].is_same(x) or not predicate.operands[1].is_number(0):
        return None
    return x if comparison_direction(predicate.node) in ("GT", "GE") else None


def bounded_by(term: Term, most: float) -> Term | None:
    """The x of min(max(x, 0), most)."""
    if not term.is_float:
        return None
    if term.op == "clamp":
        low, x, high = term.operands
        return x if low.is_number(0) and high.is_number(most) else None
    found = with_constant(term, "minimum")
    if found is not None:
        return relu_of(found[0]) if is_rounded(found[1], most) else None
    found = with_constant(term, "maximum")
    if found is not None and is_rounded(found[1], 0):
        inner = with_constant(found[0], "minimum")
        return inner[0] if inner is not None and is_rounded(inner[1], most) else None
    return None


@matchers.finds("relu", at=(MAXIMUM, SELECT))
def relu(anchor: Term) -> Found:
    """The larger of x and 0."""
    x = relu_of(anchor)
    return None if x is None else Match("relu", {"x": x}, [anchor])


@matchers.finds("relu6", "hard_swish", at=(CLAMP, MINIMUM, MAXIMUM))
def relu6(anchor: Term) -> Found:
    """x between 0 and 6; where that is of x + 3 and multiplied by x / 6, hard_swish."""
    x = bounded_by(anchor, 6)
    if x is not None:
        return _hard_swish(anchor, plus(x, 3), 1 / 6) or Match("relu6", {"x": x}, [anchor])
    x = bounded_by(anchor, 1)
    part = None if x is None else plus(x, 0.5)
    return None if part is None else _hard_swish(anchor, scaled_from(part, 1 / 6), 1)


@matchers.finds("hard_swish", at=(DIVIDE,))
def hard_swish(anchor: Term) -> Found:
    """x times its hard sigmoid, which a function of its own may give."""
    first, second = anchor.operands
    bounded = bounded_by(first, 6) if first.op in ("clamp", "minimum", "maximum") else None
    if bounded is None or not second.is_number(6):
        return None
    return _hard_swish(anchor, plus(bounded, 3), 1)


def _hard_swish(bounded: Term, x: Term | None, factor: float) -> Found:
    if x is None:
        return None
    for found in grown(bounded):
        if found is not bounded and is_product(found, [bounded, x], factor):
            return Match("hard_swish", {"x": x}, [found])
    if any(user.op == "multiply" for user in bounded.users):
        return NearMiss("hard_swish", Code.NAMED_OP_LACKS("the product with the value itself and 1/6"), bounded)
    return None
