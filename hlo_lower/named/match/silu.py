"""silu(x) = x * sigmoid(x), and the sigmoid as exports write it.

    stablehlo.logistic                      1 / (1 + exp(-x))      in either order of the sum
    x * sigmoid(x)                          x / (1 + exp(-x))      x * (0.5 * (tanh(x / 2) + 1))

It is silu and nothing else: both factors are the same value, and the sigmoid is of that value, neither scaled nor moved
(x * sigmoid(1.702 * x) is an approximation of gelu). No attributes.
"""

from collections.abc import Iterator

from hlo_lower.base.causes import Code
from hlo_lower.named.match.arithmetic import grown, is_product, one_more, plus, scaled_from
from hlo_lower.named.match.found import Found, Match, NearMiss, matchers
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import EXPONENTIAL, LOGISTIC, TANH


def sigmoid_of(term: Term) -> Term | None:
    """What a value is the sigmoid of."""
    if term.op == "logistic":
        return term.operands[0]
    if term.op == "divide" and term.operands[0].is_number(1):
        return denominator_of(term.operands[1])
    return None


def denominator_of(term: Term) -> Term | None:
    """The x of 1 + exp(-x)."""
    power = plus(term, 1)
    if power is None or power.op != "exponential" or power.operands[0].op != "negate":
        return None
    return power.operands[0].operands[0]


def silu_of(term: Term) -> Term | None:
    """What a value is the silu of."""
    if term.op == "divide":
        x = denominator_of(term.operands[1])
        return x if x is not None and term.operands[0].is_same(x) else None
    if term.op != "multiply":
        return None
    for first, second in (term.operands, term.operands[::-1]):
        x = sigmoid_of(first)
        if x is not None and second.is_same(x):
            return x
    return None


@matchers.finds("silu", at=(LOGISTIC, EXPONENTIAL, TANH))
def silu(anchor: Term) -> Found:
    """x times its own sigmoid."""
    if anchor.op == "logistic":
        return _times_its_argument(anchor)
    if anchor.op == "tanh":
        return _of_tanh(anchor)
    x = argument_of(anchor)
    if x is None:
        return None
    for quotient in quotients_of(anchor):
        if quotient.operands[0].is_same(x):
            return Match("silu", {"x": x}, [quotient])
        if quotient.operands[0].is_number(1):
            return _times_its_argument(quotient)
    return None


def argument_of(power: Term) -> Term | None:
    """The x of exp(-x)."""
    return power.operands[0].operands[0] if power.operands[0].op == "negate" else None


def quotients_of(power: Term) -> Iterator[Term]:
    """What is divided by 1 + exp(-x)."""
    for total in power.users:
        if plus(total, 1) is power:
            yield from (user for user in total.users if user.op == "divide" and user.operands[1] is total)


def _of_tanh(anchor: Term) -> Found:
    x = scaled_from(anchor.operands[0], 0.5)
    total = one_more(anchor)
    if x is None or total is None:
        return None
    products = (found for found in grown(total) if found is not total and is_product(found, [total, x], 0.5))
    result = next(products, None)
    return None if result is None else Match("silu", {"x": x}, [result])


def _times_its_argument(sigmoid: Term) -> Found:
    x = sigmoid_of(sigmoid)
    if x is None:
        return None
    for user in sigmoid.users:
        if user.op != "multiply":
            continue
        first, second = user.operands
        other = second if first is sigmoid else first
        if other.is_same(x):
            return Match("silu", {"x": x}, [user])
        if any(other is operand for operand in x.operands) and x.op == "multiply":
            return NearMiss("silu", Code.OTHER_VALUE("the sigmoid"), user)
    return None
