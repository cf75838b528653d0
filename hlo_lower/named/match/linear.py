"""linear(x, weight, bias) = x @ weight + bias: a product without batch axes, and a bias along all that it adds.

    dot_general(x, weight) + broadcast(bias), in either order of both, with the weight as [in, out] or [out, in]

It is that and nothing else: the bias has exactly the axes that the weight adds, in their order, so that a bias of rows
or a residual is none; the result has x's axes before the weight's. Attribute: `transposed` where the weight has the
axes that are contracted behind the others, as PyTorch keeps it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.named.match.arithmetic import uncast
from hlo_lower.named.match.axis_atoms import Axis, View, are_same
from hlo_lower.named.match.matches import Found, Match, matchers
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import DOT_GENERAL


@dataclass(frozen=True)
class Side:
    """One operand of a product."""

    term: Term  # the operand
    contracted: tuple[int, ...]  # the dims that are summed
    free: tuple[int, ...]  # those that stay, as dims of the operand
    results: tuple[int, ...]  # where they stand in the product


@matchers.finds("linear", at=(DOT_GENERAL,))
def linear(anchor: Term) -> Found:
    """A product and a bias."""
    if not anchor.is_float or not (sums := list(_sums(anchor))):
        return None
    numbers = mlir.dot_dimension_numbers(anchor.node.raw)
    if len(numbers.lhs_batching_dimensions):
        return None
    for total in sums:
        view = View.of(total)
        for product, bias in (total.operands, total.operands[::-1]):
            inner = view.on(product).root(until=anchor)
            if inner.term is not anchor:
                continue
            for x, weight in _sides(anchor, numbers):
                found = _linear(view, inner, view.on(bias), x, weight)
                if found is not None:
                    return found
    return None


def _sums(term: Term, steps: int = 4) -> Iterator[Term]:
    """The sums of a value with another, through layout."""
    at: Term | None = term
    while at is not None and steps:
        steps -= 1
        users = list(at.users)
        yield from (user for user in users if user.op == "add")
        at = users[0] if len(users) == 1 and users[0].op in ("reshape", "transpose", "convert") else None


def _sides(product: Term, numbers: mlir.RawAttribute) -> Iterator[tuple[Side, Side]]:
    """Both operands, each taken for the value once."""
    first, second = product.operands
    contracted = tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)
    sides: list[Side] = []
    for term, dims in zip((first, second), contracted, strict=True):
        free = tuple(dim for dim in range(len(term.shape)) if dim not in dims)
        start = sum(len(side.free) for side in sides)
        sides.append(Side(term, dims, free, tuple(range(start, start + len(free)))))
    yield sides[0], sides[1]
    yield sides[1], sides[0]


def _linear(view: View, inner: View, bias: View, x: Side, weight: Side) -> Found:
    added = tuple(atom for dim in weight.results for atom in inner.axis(dim))
    own = tuple(atom for dim in x.results for atom in inner.axis(dim))
    if not added or not x.free or not are_same(view.atoms, (*own, *added)):
        return None
    vector = _vector(bias, added, len(weight.free))
    last, first = tuple(range(len(x.free), len(x.term.shape))), tuple(range(len(weight.contracted)))
    behind = tuple(range(len(weight.free), len(weight.term.shape)))
    if vector is None or x.contracted != last or weight.contracted not in (first, behind):
        return None
    kept, transposed = weight.term, weight.contracted != first
    beneath = uncast(kept)
    if beneath.op == "transpose" and len(kept.shape) == 2:
        kept, transposed = beneath.operands[0], not transposed
    return Match("linear", {"x": x.term, "weight": kept, "bias": vector}, [view.term], {"transposed": transposed})


def _vector(view: View, added: Axis, rank: int) -> Term | None:
    """The bias: beneath layout, of the axes that the weight adds and no other."""
    at: View | None = view
    while at is not None:
        if len(at.term.shape) == rank and are_same(at.atoms, added):
            return at.term if at.term.op not in ("constant", "iota") or at.term.scalar is None else None
        at = at.under()
    return None
