"""top_k(x): the k largest elements along an axis, the largest first, and their positions.

    chlo.top_k
    sort of -x with 0, 1, 2, ... beside it, upwards, of which the first k are taken  argsort(-x)[:k]
    sort of x upwards, reversed, of which the first k are taken; or downwards        jnp.sort(x, descending=True)[:k]

It is that and nothing else: the comparator is run on all orders of two numbers (`small_programs`), the slice takes the
first k of k or more and all of the other axes, and positions are those of a stable sort, so of equal elements the first
comes first; positions of a reversed sort are none. A NaN lies where the decomposition puts it. Attributes: `k`, `axis`,
`largest` = false where they are the smallest; `gives`: "both", or "values" or "positions" where nothing takes the
other.
"""

from hlo_lower.named.match.found import AttributeValue, Found, Match, matchers
from hlo_lower.named.match.positions import is_counting
from hlo_lower.named.match.small_programs import order_of, sorts_by_the_first
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import SORT


@matchers.finds("top_k", at=("chlo.top_k",))
def top_k(anchor: Term) -> Found:
    """The op itself."""
    positions = anchor.terms.of(anchor.node.raw.results[1], anchor.frame)
    attributes = _attributes(anchor.shape[-1], len(anchor.shape) - 1, "both")
    return Match("top_k", {"x": anchor.operands[0]}, [anchor, positions], attributes)


def _attributes(k: int, axis: int, gives: str, largest: bool = True) -> dict[str, AttributeValue]:
    return {"k": k, "axis": axis, "largest": largest, "gives": gives}


@matchers.finds("top_k", at=(SORT, "func.call stablehlo.sort", "func.call stablehlo.reverse"))
def sorted_first(anchor: Term) -> Found:
    """The first k of what is sorted."""
    sort = anchor.operands[0] if anchor.op == "reverse" else anchor
    if sort.op != "sort":
        return None
    axis, results = sort.node.integer("dimension"), sort.node.raw.results
    direction = order_of(sort)
    if not direction or len(results) > 2 or (len(results) == 2 and not is_counting(sort.operands[1], axis)):
        return None
    x = sort.operands[0]
    is_negated = x.op == "negate"
    if is_negated:
        x, direction = x.operands[0], -direction
    values, positions = _of_results(anchor, sort, axis)
    if values is None and positions is None and len(results) == 1 and sort.surface is not None:
        anchor = next((user for user in sort.users if user.op == "reverse"), anchor)
        values, _ = _of_results(anchor, sort, axis)
    if anchor.op == "reverse":
        direction, positions = -direction, None
        if anchor.integers("dimensions") != (axis,):
            return None
    if values is not None and is_negated:
        values = next((user for user in values.users if user.op == "negate"), None)
    found = [one for one in (values, positions) if one is not None]
    if not found or len({one.shape for one in found}) > 1:
        return None
    gives = "both" if len(found) == 2 else "values" if values is not None else "positions"
    return Match("top_k", {"x": x}, found, _attributes(found[0].shape[axis], axis, gives, direction < 0))


def _of_results(anchor: Term, sort: Term, axis: int) -> tuple[Term | None, Term | None]:
    """The first k of what is sorted, and of the positions that are sorted along; None where nothing takes them."""
    results = sort.node.raw.results
    if anchor.op == "reverse":
        return (_first(anchor, axis), None) if len(results) == 1 else (None, None)
    firsts = [_first(sort.terms.of(result, sort.frame), axis) for result in results]
    is_kept = len(results) == 2 and _is_stable(sort) and sorts_by_the_first(sort)
    return firsts[0], firsts[1] if is_kept else None


def _is_stable(sort: Term) -> bool:
    attribute = sort.node.attribute("is_stable")
    return attribute is not None and str(attribute) == "true"


def _first(term: Term, axis: int) -> Term | None:
    """What takes the first of a value along an axis, and all along others."""
    for user in term.users:
        if user.op != "slice" or user.shape[axis] == term.shape[axis]:
            continue
        whole = all(n == m for d, (n, m) in enumerate(zip(user.shape, term.shape, strict=True)) if d != axis)
        if whole and not any(user.integers("start_indices")) and user.integers("strides")[axis] == 1:
            return user
    return None
