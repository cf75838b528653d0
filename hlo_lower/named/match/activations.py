"""Activations: relu, relu6, hard_swish, silu, gelu, swiglu; and dropout of inference, which is its argument."""

from collections.abc import Iterator
from math import pi, sqrt

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.named.match.arithmetic import (
    Product,
    factor_beside,
    in_one_type,
    is_product,
    one_more,
    plus,
    product,
    product_chain,
    products_above,
    scalings,
    uncast,
    users_of_cast,
    with_constant,
)
from hlo_lower.named.match.axis_atoms import LAYOUT
from hlo_lower.named.match.erf import ENDS, ERFC, Erf, erf_of
from hlo_lower.named.match.matches import Found, Match, NearMiss, matchers
from hlo_lower.named.match.positions import beneath_moves
from hlo_lower.named.match.terms import Term, above, is_rounded
from hlo_lower.ops.names import CLAMP, DIVIDE, EXPONENTIAL, LOGISTIC, MAXIMUM, MINIMUM, MULTIPLY, SELECT, TANH
from hlo_lower.ops.spec import PICKS, short


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


def clamp_argument(term: Term, most: float) -> Term | None:
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
    x = clamp_argument(anchor, 6)
    if x is not None:
        return _hard_swish(anchor, plus(x, 3), 1 / 6) or Match("relu6", {"x": x}, [anchor])
    x = clamp_argument(anchor, 1)
    part = None if x is None else plus(x, 0.5)
    return None if part is None else _hard_swish(anchor, factor_beside(part, 1 / 6), 1)


@matchers.finds("hard_swish", at=(DIVIDE,))
def hard_swish(anchor: Term) -> Found:
    """x times its hard sigmoid, which a function of its own may give."""
    first, second = anchor.operands
    bounded = clamp_argument(first, 6) if first.op in ("clamp", "minimum", "maximum") else None
    if bounded is None or not second.is_number(6):
        return None
    return _hard_swish(anchor, plus(bounded, 3), 1)


def _hard_swish(bounded: Term, x: Term | None, factor: float) -> Found:
    if x is None:
        return None
    for found in product_chain(bounded):
        if found is not bounded and is_product(found, [bounded, x], factor):
            return Match("hard_swish", {"x": x}, [found])
    if any(user.op == "multiply" for user in bounded.users):
        return NearMiss("hard_swish", Code.NAMED_OP_LACKS("the product with the value itself and 1/6"), bounded)
    return None


def sigmoid_of(term: Term) -> Term | None:
    """The argument of the sigmoid that a value is."""
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
    """The argument of the silu that a value is."""
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
        return _silu_of_tanh(anchor)
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


def _silu_of_tanh(anchor: Term) -> Found:
    x = factor_beside(anchor.operands[0], 0.5)
    total = one_more(anchor)
    if x is None or total is None:
        return None
    products = (found for found in product_chain(total) if found is not total and is_product(found, [total, x], 0.5))
    result = next(products, None)
    return None if result is None else Match("silu", {"x": x}, [result])


def _times_its_argument(sigmoid: Term) -> Found:
    x = sigmoid_of(sigmoid)
    if x is None:
        return None
    for user in users_of_cast(sigmoid):
        if user.op != "multiply":
            continue
        first, second = user.operands
        other = second if uncast(first) is uncast(sigmoid) else first
        if uncast(other).is_same(uncast(x)):
            x, result = in_one_type(x, user)
            return Match("silu", {"x": x}, [result])
        if any(other is operand for operand in x.operands) and x.op == "multiply":
            return NearMiss("silu", Code.OTHER_VALUE("the sigmoid"), user)
    return None


CUBIC = 0.044715
"""The coefficient of x**3."""


@matchers.finds("gelu", at=(*ENDS, TANH, LOGISTIC, EXPONENTIAL))
def gelu(anchor: Term) -> Found:
    """x times the normal distribution function of x, exact or by tanh."""
    if anchor.op == "exponential":
        return _of_exponential(anchor)
    argument = anchor.operands[0] if anchor.operands else anchor
    if anchor.op == "logistic":
        x = _of_tanh(argument, 2 * sqrt(2 / pi))
        return None if x is None or isinstance(x, NearMiss) else _match_gelu(anchor, x, "tanh", 1)
    if anchor.op == "tanh":
        total = one_more(anchor)
        if total is None:
            return None
        x = _of_tanh(argument)
        return x if isinstance(x, NearMiss) else _match_gelu(total, x, "tanh")
    erf = erf_of(anchor)
    return None if erf is None else _of_erf(erf)


def _of_erf(erf: Erf) -> Found:
    if erf.op == ERFC:
        return _match_gelu(erf.term, factor_beside(erf.argument, -sqrt(0.5)), "none")
    total = one_more(erf.term)
    if total is None:
        return None
    chosen = next((user for user in total.users if _is_chosen(user, total, erf.argument)), total)
    return _match_gelu(chosen, _without_zero(factor_beside(erf.argument, sqrt(0.5))), "none")


def _is_chosen(term: Term, near: Term, z: Term) -> bool:
    """Whether 1 + erf(z) is written by erfc where z is far from 0, as a normal distribution's function is."""
    if term.op != "select" or term.operands[1] is not near or term.operands[2].op != "select":
        return False
    is_positive, above, below = term.operands[2].operands
    if is_positive.op != "compare" or comparison_direction(is_positive.node) not in ("GT", "GE"):
        return False
    if is_positive.operands[0] is not z or not is_positive.operands[1].is_number(0):
        return False
    if above.op != "subtract" or not above.operands[0].is_number(2):
        return False
    return all(_is_far(erf_of(far), z) for far in (below, above.operands[1]))


def _is_far(erf: Erf | None, z: Term) -> bool:
    """Whether it is erfc(abs(z))."""
    return erf is not None and erf.op == ERFC and erf.argument.op == "abs" and erf.argument.operands[0] is z


def _without_zero(x: Term | None) -> Term | None:
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
            return _match_gelu(quotient, x, "tanh", 1)
    return None


def _match_gelu(distribution: Term, x: Term | None, approximate: str, half: float = 0.5) -> Found:
    """Half of x times twice the distribution."""
    if x is None:
        return NearMiss("gelu", Code.OTHER_CONSTANT("sqrt(2)"), distribution)
    for found in products_above(distribution):
        if is_product(found, [distribution, x], half):
            x, result = in_one_type(x, found)
            return Match("gelu", {"x": x}, [result], {"approximate": approximate})
    return NearMiss("gelu", Code.NAMED_OP_LACKS("the product with 0.5 and the value itself"), distribution)


def _of_tanh(argument: Term, root: float = sqrt(2 / pi)) -> Term | NearMiss | None:
    """The x of root * (x + 0.044715 * x**3)."""
    for polynomial, constants in scalings(argument):
        if polynomial.op == "add" and _is_scaled(constants, root):
            first, second = map(uncast, polynomial.operands)
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
    found = with_constant(uncast(term), "multiply")
    if found is not None and is_rounded(found[1], CUBIC):
        return is_product(found[0], [x, x, x], 1)
    return is_product(term, [x, x, x], CUBIC)


WAY = LAYOUT | short(PICKS) | {"convert", "add", "multiply", "composite"}
"""What may stand between a projection and its gate."""


@matchers.finds("swiglu", at=(LOGISTIC, EXPONENTIAL, "func.call stablehlo.multiply", "func.call stablehlo.divide"))
def swiglu(anchor: Term) -> Found:
    """A silu, written out or called, times another projection."""
    if anchor.op in ("multiply", "divide"):
        activated, gate = anchor, silu_of(anchor)
    else:
        found = silu(anchor)
        activated, gate = (next(iter(found.results)), found.inputs["x"]) if isinstance(found, Match) else (anchor, None)
    if gate is None:
        return None
    products = [user for user in users_of_cast(activated) if user.op == "multiply"]
    for gated in products:
        if gated.shape != gate.shape:
            continue
        first, second = gated.operands
        up = next((one for one in (second, first) if one is not activated and not _is_of(one, activated)), None)
        if up is None or up.is_same(gate) or not (_is_projected(gate) and _is_projected(up)):
            continue
        if len(products) == 1 or _is_of_one_value(gate, up):  # a gradient multiplies by a projection of its own
            return Match("swiglu", {"gate": gate, "up": up}, [gated])
    return None


def _is_of_one_value(gate: Term, up: Term) -> bool:
    factors = [
        {id(beneath_moves(factor)) for at in _above(term) if at.op == "dot_general" for factor in at.operands}
        for term in (gate, up)
    ]
    return bool(factors[0] & factors[1])


def _is_of(term: Term, activated: Term) -> bool:
    return uncast(term) is uncast(activated)


def _is_projected(term: Term) -> bool:
    """Whether a product stands above, beneath layout, parts and a bias."""
    return any(at.op == "dot_general" for at in _above(term))


def _above(term: Term) -> Iterator[Term]:
    return above(term, lambda at: at.operands[:2] if at.op in WAY else (), 12)


ARITHMETIC = frozenset({MULTIPLY, DIVIDE, SELECT})


@matchers.finds("dropout", at=tuple(f"identity {op}" for op in (*sorted(ARITHMETIC), "func.call")))
def dropout(anchor: Term) -> Found:
    """What gives back one of its operands; the anchor is a term that is not looked through."""
    terms, beneath = anchor.terms, anchor.terms.of(anchor.raw)
    if not anchor.is_float or beneath.surface is None or _goes_on(anchor, beneath):
        return None
    chain = terms.chain_beneath(anchor.raw)
    made = [producer for raw in chain if (producer := mlir.producer(raw)) is not None]
    if not any(operation.name in ARITHMETIC for operation in made):
        return None
    x = Term(terms, beneath.surface, None, beneath.op, beneath.surface)
    return Match("dropout", {"x": x}, [anchor])


def _goes_on(anchor: Term, beneath: Term) -> bool:
    """Whether what takes the value gives it back as well: then that is the dropout."""
    takers = anchor.terms.takers_of(anchor.raw)
    return any(op.name in (*ARITHMETIC, "func.call") and term is beneath for op, term in takers)
