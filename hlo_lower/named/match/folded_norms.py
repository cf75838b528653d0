"""batch_norm with its parameters folded to a scale and a shift by channel, as it is written for inference.

    scale = weight / sqrt(variance + epsilon)      shift = bias - mean * scale      x * scale + shift

It is batch_norm and nothing else: scale and shift go along the same one axis of x, the mean is multiplied by this
scale, and mean and variance are parameters; the weight may be missing.
"""

from hlo_lower.named.match.axis_atoms import LAYOUT, View, are_same
from hlo_lower.named.match.found import Found, Match, matchers
from hlo_lower.named.match.norm_products import factors, products_below
from hlo_lower.named.match.norm_roots import GIVEN, Root, root_of
from hlo_lower.named.match.rows import dims_of
from hlo_lower.named.match.softmax import through
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import POWER, RSQRT, SQRT


@matchers.finds("batch_norm", at=(RSQRT, SQRT, POWER))
def folded(anchor: Term) -> Found:
    """A value times a scale that a root divides, plus the shift that belongs to it."""
    root = root_of(View.of(anchor)) if len(anchor.shape) == 1 and anchor.scalar is None else None
    if not isinstance(root, Root) or root.kind != "given" or root.guard != "add_inside":
        return None
    for scale in (*products_below(anchor), *([anchor] if root.inverted else [])):
        weight = _weight(scale, anchor, root) if len(scale.shape) == 1 else None
        if weight is None:
            continue
        for product in through(scale, LAYOUT):
            total = product.only_user if product.op == "multiply" and len(product.shape) > 1 else None
            if total is not None and total.op == "add":
                found = _of_sum(total, product, scale, root, weight)
                if found is not None:
                    return found
    return None


def _weight(scale: Term, anchor: Term, root: Root) -> tuple[Term, ...] | None:
    """The weight of a scale, none where it is the root alone; None where it is something else."""
    found = factors(View.of(scale), lambda view: view.term is anchor) or []
    roots = [factor for factor in found if factor.view.term is anchor]
    others = [factor for factor in found if factor.view.term is not anchor]
    if len(roots) != 1 or roots[0].divides == root.inverted or len(others) > 1:
        return None
    weight = tuple(factor.view.term for factor in others)
    return weight if all(one.shape == scale.shape for one in weight) and not any(o.divides for o in others) else None


def _of_sum(total: Term, product: Term, scale: Term, root: Root, weight: tuple[Term, ...]) -> Match | None:
    whole = View.of(total)
    first, second = total.operands
    shift = whole.on(second if first is product else first).root(casts=False)
    for x, other in (product.operands, product.operands[::-1]):
        factor = whole.on(other).root(casts=False, until=scale)
        if factor.term is not scale or shift.term.op != "subtract" or shift.term.shape != scale.shape:
            continue
        bias, moved = shift.term.operands
        mean, dims = _mean(moved, scale), dims_of(whole, factor.atoms)
        if mean is None or dims is None or len(dims) != 1 or not are_same(factor.atoms, shift.atoms):
            continue
        inputs = {"x": x, **dict(zip(["weight"], weight, strict=False))}
        inputs |= {"bias": bias, "mean": mean, "variance": root.x}
        return Match("batch_norm", inputs, [total], {"epsilon": root.epsilon, "channel_axis": dims[0]})
    return None


def _mean(moved: Term, scale: Term) -> Term | None:
    """The mean of mean * scale: a parameter."""
    pairs = (moved.operands, moved.operands[::-1]) if moved.op == "multiply" else ()
    return next((one for one, other in pairs if other is scale and one.op in GIVEN), None)
