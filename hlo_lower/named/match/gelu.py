"""gelu(x) = x * Phi(x), exact or by its tanh form.

    exact   0.5 * x * (1 + erf(x / sqrt(2)))         0.5 * x * erfc(-x / sqrt(2))       x * normal.cdf(x), by both
    tanh    0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))      x * sigmoid(2 * sqrt(2 / pi) * (...))

in any order of the factors, with x**3 as products or as a power, or x * (1 + 0.044715 * x**2). It is gelu and nothing
else: all x are one value, and 0.5, sqrt(2), sqrt(2 / pi) and 0.044715 are those numbers as the element type rounds
them (the second root also as that of 2 / pi rounded). Attribute `approximate`: "none" or "tanh".
"""

from math import pi, sqrt

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.transfer.booleans import comparison_direction
from hlo_lower.named.match.arithmetic import (
    Product,
    is_product,
    one_more,
    plus,
    product,
    products_above,
    scaled_from,
    scalings,
    with_constant,
)
from hlo_lower.named.match.found import Found, Match, NearMiss, matchers
from hlo_lower.named.match.silu import argument_of, quotients_of
from hlo_lower.named.match.terms import Term, is_rounded
from hlo_lower.ops.names import EXPONENTIAL, LOGISTIC, TANH

CUBIC = 0.044715
"""The coefficient of x**3."""


@matchers.finds("gelu", at=("chlo.erf", "chlo.erfc", TANH, LOGISTIC, EXPONENTIAL))
def gelu(anchor: Term) -> Found:
    """x times the normal distribution function of x, exact or by tanh."""
    argument = anchor.operands[0]
    if anchor.op == "exponential":
        return _of_exponential(anchor)
    if anchor.op == "logistic":
        x = _of_tanh(argument, 2 * sqrt(2 / pi))
        return None if x is None or isinstance(x, NearMiss) else _finished(anchor, x, "tanh", 1)
    if anchor.op == "chlo.erfc":
        return _finished(anchor, scaled_from(argument, -sqrt(0.5)), "none")
    total = one_more(anchor)
    if total is None:
        return None
    if anchor.op == "chlo.erf":
        chosen = next((user for user in total.users if _is_chosen(user, total, argument)), total)
        return _finished(chosen, _moved_by_nothing(scaled_from(argument, sqrt(0.5))), "none")
    x = _of_tanh(argument)
    return x if isinstance(x, NearMiss) else _finished(total, x, "tanh")


def _is_chosen(term: Term, near: Term, z: Term) -> bool:
    """Whether 1 + erf(z) is written by erfc where z is far from 0, as a normal distribution's function is."""
    if term.op != "select" or term.operands[1] is not near or term.operands[2].op != "select":
        return False
    is_positive, above, below = term.operands[2].operands
    if is_positive.op != "compare" or comparison_direction(is_positive.node) not in ("GT", "GE"):
        return False
    if is_positive.operands[0] is not z or not is_positive.operands[1].is_number(0):
        return False
    if below.op != "chlo.erfc" or below.operands[0].op != "abs" or below.operands[0].operands[0] is not z:
        return False
    return above.op == "subtract" and above.operands[0].is_number(2) and above.operands[1].is_same(below)


def _moved_by_nothing(x: Term | None) -> Term | None:
    """The x of x - 0."""
    while x is not None and x.op == "subtract" and x.operands[1].is_number(0):
        x = x.operands[0]
    return x


def _of_exponential(anchor: Term) -> Found:
    """The sigmoid written out: x / (1 + exp(-2 * sqrt(2 / pi) * (x + ...)))."""
    x = None if argument_of(anchor) is None else _of_tanh(argument_of(anchor) or anchor, 2 * sqrt(2 / pi))
    if x is None or isinstance(x, NearMiss):
        return None
    for quotient in quotients_of(anchor):
        if quotient.operands[0] is x:
            return Match("gelu", {"x": x}, [quotient], {"approximate": "tanh"})
        if quotient.operands[0].is_number(1):
            return _finished(quotient, x, "tanh", 1)
    return None


def _finished(distribution: Term, x: Term | None, approximate: str, half: float = 0.5) -> Found:
    """Half of x times twice the distribution."""
    if x is None:
        return NearMiss("gelu", Code.OTHER_CONSTANT("sqrt(2)"), distribution)
    for found in products_above(distribution):
        if is_product(found, [distribution, x], half):
            return Match("gelu", {"x": x}, [found], {"approximate": approximate})
    return NearMiss("gelu", Code.NAMED_OP_LACKS("the product with 0.5 and the value itself"), distribution)


def _of_tanh(argument: Term, root: float = sqrt(2 / pi)) -> Term | NearMiss | None:
    """The x of root * (x + 0.044715 * x**3)."""
    for polynomial, constants in scalings(argument):
        if polynomial.op == "add" and _is_scaled(constants, root):
            first, second = polynomial.operands
            if _is_cubic(second, first):
                return first
            if _is_cubic(first, second):
                return second
            return NearMiss("gelu", Code.OTHER_CONSTANT("0.044715"), polynomial)
    found = product(argument)
    if len(found.factors) == 2 and not found.divisors and _is_scaled(found, root):
        for x, other in (found.factors, found.factors[::-1]):
            quadratic = plus(other, 1)
            if quadratic is not None and is_product(quadratic, [x, x], CUBIC):
                return x
    return None


def _is_scaled(constants: Product, root: float) -> bool:
    """Whether constants are the root, or the root of 2 / pi as f32 rounds that, which may be one bit off."""
    of_rounded = float(np.sqrt(np.float32(2 / pi))) / sqrt(2 / pi)
    return constants.is_scaled_by(root) or constants.is_scaled_by(root * of_rounded)


def _is_cubic(term: Term, x: Term) -> bool:
    """Whether a term is 0.044715 * x**3."""
    found = with_constant(term, "multiply")
    if found is not None and is_rounded(found[1], CUBIC):
        return is_product(found[0], [x, x, x], 1)
    return is_product(term, [x, x, x], CUBIC)
