"""swiglu(gate, up) = silu(gate) * up: two projections of one value, one of them through silu.

It is that and nothing else: one factor is a silu (`hlo_lower.named.match.silu`), the other is another
value of the same shape, which a projection gives: a product, a part of one, or a sum with a bias. Where several
products take the silu (a gradient does), both projections have to be of one value. No attributes.
"""

from collections.abc import Iterator

from hlo_lower.named.match.axis_atoms import LAYOUT
from hlo_lower.named.match.found import Found, Match, matchers
from hlo_lower.named.match.positions import beneath_moves
from hlo_lower.named.match.silu import silu, silu_of
from hlo_lower.named.match.terms import Term, above
from hlo_lower.ops.names import EXPONENTIAL, LOGISTIC
from hlo_lower.ops.spec import PICKS, short

WAY = LAYOUT | short(PICKS) | {"convert", "add", "multiply", "composite"}
"""What may stand between a projection and its gate."""


@matchers.finds(
    "swiglu",
    at=(LOGISTIC, EXPONENTIAL, "func.call stablehlo.multiply", "func.call stablehlo.divide"),
)
def swiglu(anchor: Term) -> Found:
    """A silu, written out or called, times another projection."""
    if anchor.op in ("multiply", "divide"):
        activated, gate = anchor, silu_of(anchor)
    else:
        found = silu(anchor)
        activated, gate = (next(iter(found.results)), found.inputs["x"]) if isinstance(found, Match) else (anchor, None)
    if gate is None:
        return None
    products = list(_products(activated))
    for product in products:
        if product.shape != gate.shape:
            continue
        first, second = product.operands
        up = next((one for one in (second, first) if one is not activated and not _is_of(one, activated)), None)
        if up is None or up.is_same(gate) or not (_is_projected(gate) and _is_projected(up)):
            continue
        if len(products) == 1 or _is_of_one_value(gate, up):  # a gradient multiplies by a projection of its own
            return Match("swiglu", {"gate": gate, "up": up}, [product])
    return None


def _products(activated: Term) -> Iterator[Term]:
    for user in activated.users:
        yield from (one for one in (user.users if user.op == "convert" else [user]) if one.op == "multiply")


def _is_of_one_value(gate: Term, up: Term) -> bool:
    """Whether two projections have a factor in common."""
    factors = [
        {id(beneath_moves(factor)) for at in _above(term) if at.op == "dot_general" for factor in at.operands}
        for term in (gate, up)
    ]
    return bool(factors[0] & factors[1])


def _is_of(term: Term, activated: Term) -> bool:
    return term.op == "convert" and term.operands[0] is activated


def _is_projected(term: Term) -> bool:
    """Whether a product stands above, beneath layout, parts and a bias."""
    return any(at.op == "dot_general" for at in _above(term))


def _above(term: Term) -> Iterator[Term]:
    return above(term, lambda at: at.operands[:2] if at.op in WAY else (), 12)
