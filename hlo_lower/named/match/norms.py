"""layer_norm, rms_norm, l2_norm, group_norm and batch_norm, from the root that they divide by.

    rms_norm     x / sqrt(mean(x**2) + epsilon) * weight
    layer_norm   (x - mean(x)) / sqrt(mean((x - mean(x))**2) + epsilon) * weight + bias
    group_norm   layer_norm over groups of channels and all axes but the batch's, weight and bias by channel
    l2_norm      x / sqrt(sum(x**2)), held away from 0 by epsilon
    batch_norm   (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance given by channel

They are these and nothing else: what is below the root is a mean over the same rows of the same value that is
multiplied, seen through layout and conversions by its atoms (`rows`); a mean divides by exactly how many there are; a
weight depends on nothing but what is reduced (of group_norm and batch_norm: on the channel). A weight or a bias is part
of it only where nothing else takes what comes before. Attributes are those of `hlo_lower.ops.vocabulary`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod

from hlo_lower.base.causes import Cause, Code
from hlo_lower.named.match.arithmetic import uncast
from hlo_lower.named.match.axis_atoms import LAYOUT, Axis, View, leaves
from hlo_lower.named.match.found import AttributeValue, Found, Match, NearMiss, matchers
from hlo_lower.named.match.norm_parts import Mean, mean_of, square
from hlo_lower.named.match.norm_products import Factor, Parameter, factors, parameter, products_below
from hlo_lower.named.match.norm_roots import GIVEN, Root, centred_of, root_of
from hlo_lower.named.match.rows import Reduced, dims_of, rows
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import POWER, RSQRT, SQRT

NAMES = {"layer": "layer_norm", "rms": "rms_norm", "l2": "l2_norm", "given": "batch_norm"}


@dataclass(frozen=True)
class Normalized:
    """A value times what is left of a root.

    Attributes:
      product: the product so far, with atoms of its own.
      root: the root.
      x: the value, with the product's atoms.
      over: the atoms that are reduced; of a given variance those that it depends on.
      mean: the mean that is subtracted, where it is given.
      weight, bias: what there is of them.
      channel: the atoms of the channel, where weight and bias go by that.
    """

    product: View
    root: Root
    x: View
    over: Axis
    mean: Parameter | None = None
    weight: Parameter | None = None
    bias: Parameter | None = None
    channel: Axis = field(default_factory=tuple)

    @property
    def of_parameters(self) -> Axis:
        """The atoms that a weight may depend on."""
        return self.channel or self.over


@matchers.finds(
    *("layer_norm", "rms_norm", "l2_norm", "group_norm", "batch_norm"),
    at=(RSQRT, SQRT, POWER),
)
def norm(anchor: Term) -> Found:
    """What a root divides, and what follows."""
    if not anchor.shape or anchor.scalar is not None:
        return None
    roots = [anchor, *(user for user in anchor.users if user.op in ("maximum", "add") and anchor.op == "sqrt")]
    missed: NearMiss | None = None
    for term in roots:
        first = root_of(View.of(term))
        if isinstance(first, Cause):
            missed = NearMiss("layer_norm", first, anchor)
        if not isinstance(first, Root) or (first.kind not in ("l2",) and "outside" in first.guard):
            continue
        for product in products_below(term):
            found = _normalized(View.of(product), term, first)
            if isinstance(found, Normalized):
                return _match(_grown(found))
            missed = missed or (None if found is None else NearMiss(NAMES[first.kind], found, product))
    return missed


def _normalized(product: View, term: Term, first: Root) -> Normalized | Cause | None:
    """A product as a normalized value: one root, one x, at most one weight."""

    def is_whole(view: View) -> bool:
        if view.term is term:
            return True
        if first.kind in ("layer", "given"):
            return view.term.op == "subtract"
        return uncast(view.term).is_same(first.x)

    found = factors(product, is_whole)
    if found is None:
        return None
    roots = [factor for factor in found if factor.view.term is term]
    if len(roots) != 1 or len(found) not in (2, 3):
        return None
    root = root_of(roots[0].view)
    if not isinstance(root, Root) or roots[0].divides == root.inverted:
        return Code.NAMED_OP_LACKS("the division by the root") if isinstance(root, Root) and len(found) == 2 else None
    others = [factor for factor in found if factor is not roots[0]]
    for factor in others:
        if factor.divides:
            continue
        begun = _of_x(product, root, factor.view)
        if isinstance(begun, Normalized):
            return _weighted(begun, [other for other in others if other is not factor])
        if begun is not None:
            return begun
    return None


def _of_x(product: View, root: Root, factor: View) -> Normalized | Cause | None:
    """The value that is normalized, if a factor is it."""
    if root.kind == "given":
        return _of_given(product, root, factor)
    assert root.mean is not None
    x = factor
    if root.kind == "layer":
        centred = centred_of(factor)
        if not isinstance(centred, tuple):
            return centred or (
                Code.NAMED_OP_LACKS("the subtraction of the mean") if factor.term.op == "subtract" else None
            )
        x = factor.on(factor.term.operands[0])
        if not _is_made_of(root.x, centred[0]):
            return Code.OTHER_VALUE("the variance")
        if not _agree(x, centred[1], root.mean):
            return Code.OTHER_AXES("the mean", "the variance")
    elif not uncast(x.term).is_same(root.x):
        return Code.OTHER_VALUE("the mean of squares")
    base = _below(root.mean)
    over = rows(x, base)
    if over is None:
        return Code.OTHER_AXES("the root", "the value")
    return _grouped(Normalized(product, root, x, over))


def _is_made_of(term: Term, x: Term) -> bool:
    """Whether a value is another one, or that in groups; which rows these make, `rows` looks at."""
    while not term.is_same(x):
        if term.op != "reshape":
            return False
        term = uncast(term.operands[0])
    return True


def _below(mean: Mean) -> Reduced:
    """The reduction of a mean of squares as one of the value itself, which has the same atoms."""
    base = square(mean.of.term)
    assert base is not None
    base = uncast(base)
    if isinstance(centred_of(mean.of.on(base)), tuple):
        base = base.operands[0]
    return replace(mean.total, operand=mean.of.on(base))


def _agree(x: View, mean: Mean, squares: Mean) -> bool:
    """Whether the mean that is subtracted and that of the squares go over the same atoms of the value."""
    first, second = rows(x, mean.total), rows(x, _below(squares))
    return first is not None and second is not None and set(leaves(first)) == set(leaves(second))


def _of_given(product: View, root: Root, factor: View) -> Normalized | None:
    """x less a mean that is given, by the channel of the variance."""
    if factor.term.op != "subtract":
        return None
    variance = root.view.root().atoms
    value, other = (factor.on(operand) for operand in factor.term.operands)
    mean = parameter(other, product.atoms)
    if mean is None or not variance or set(mean.atoms) != set(variance) or mean.term.op not in GIVEN:
        return None
    if mean_of(other) is not None or len(product.atoms) <= len(variance) or not _is_one_axis(product, variance):
        return None
    return Normalized(product, root, value, variance, mean, channel=variance)


def _is_one_axis(view: View, atoms: Axis) -> bool:
    return len([axis for axis in view.axes if set(leaves(axis)) & set(atoms)]) == 1


def _grouped(found: Normalized) -> Normalized:
    """The same, with its channel where it is a group norm: an axis of x is split into groups, and all but the batch is
    reduced."""
    if found.root.kind != "layer":
        return found
    x, over = found.x.root(), set(leaves(found.over))
    split = [d for d in range(len(x.axes)) if 0 < len(set(x.axis(d)) & over) < len(x.axis(d))]
    if len(split) != 1:
        return found
    channel = x.axis(split[0])
    groups = [atom for atom in channel if atom not in over]
    kept = [d for d in range(len(x.axes)) if d != split[0] and not set(x.axis(d)) <= over]
    batch = [0] if split[0] and x.axis(0) else []
    if channel[: len(groups)] != tuple(groups) or kept != batch:
        return found
    return replace(found, x=x, channel=channel)


def _weighted(found: Normalized, others: Iterable[Factor]) -> Normalized | None:
    """The same with the factor that is left as its weight."""
    left = list(others)
    if not left:
        return found
    if len(left) > 1 or left[0].divides or found.root.kind == "l2":
        return None
    weight = parameter(left[0].view, found.of_parameters, may_add_one=found.root.kind == "rms")
    return None if weight is None else replace(found, weight=weight)


def _grown(found: Normalized) -> Normalized:
    """The same with the weight, the bias, the layout and the conversion that follow and that nothing else goes between.

    Atoms go down with it: those of a value that follows are told by looking up from it to what was there before.
    """
    pending: list[Term] = []
    last, term = found, found.product.term
    for _ in range(8):
        user = term.only_user
        if user is None:
            break
        if user.op == "convert" or (user.op in LAYOUT and found.channel and len(pending) < 3):
            pending.append(user)
            term = user
            continue
        grown = _by_parameter(last, user, term)
        if grown is None:
            break
        last, term, pending = grown, user, []
    ends = [user for user in pending[:1] if user.op == "convert" and user.element == uncast(last.x.term).element]
    if last.channel and not last.weight and not last.bias and last.x.term.shape != last.product.term.shape:
        ends = [user for user in pending if user.shape == last.x.term.shape][:1]
    return replace(last, product=View(ends[0], ())) if ends else last


def _by_parameter(found: Normalized, user: Term, term: Term) -> Normalized | None:
    """The same times a weight, or plus a bias; its atoms are found anew from there."""
    is_sum = user.op == "add" and found.root.kind in ("layer", "given") and found.bias is None
    is_product = user.op == "multiply" and found.weight is None and found.root.kind != "l2" and found.bias is None
    if not (is_sum or is_product):
        return None
    first, second = user.operands
    other = second if first is term else first
    whole = View.of(user)
    below = whole.on(term).root(until=found.product.term)
    if below.term is not found.product.term:
        return None
    again = _again(found, below)
    if again is None:
        return None
    part = parameter(whole.on(other), again.of_parameters, may_add_one=is_product and found.root.kind == "rms")
    if part is None:
        return None
    return replace(again, product=whole, **{"weight" if is_product else "bias": part})


def _again(found: Normalized, product: View) -> Normalized | None:
    """A normalized value whose product is seen with other atoms."""
    if found.bias is not None or found.product.term.op == "add":
        return None
    term = found.root.view.term
    again = _normalized(product, term, found.root)
    if not isinstance(again, Normalized):
        return None
    return replace(again, weight=found.weight or again.weight)


def _match(found: Normalized) -> Found:
    """The match of a normalized value."""
    root, x = found.root, found.x
    inputs: dict[str, Term] = {"x": uncast(x.term)}
    attributes: dict[str, AttributeValue] = {"epsilon": root.epsilon}
    name = NAMES[root.kind]
    if found.channel:
        channel = x if x.term.shape and set(found.channel) <= set(x.atoms) else found.product
        dims = dims_of(channel, found.channel)
        if dims is None or len(dims) != 1:
            return None
        attributes["channel_axis"] = dims[0]
    else:
        dims = dims_of(x, found.over)
        if dims is None:
            return None
        attributes["axes"] = dims
    if root.kind == "layer" and found.channel:
        name = "group_norm"
        attributes["num_groups"] = prod(a.extent for a in leaves(found.channel) if a not in leaves(found.over))
    if root.kind == "l2":
        attributes["guard"] = root.guard
    if name in ("layer_norm", "rms_norm"):
        attributes["weight"] = "none" if found.weight is None else "one_plus" if found.weight.one_plus else "plain"
    if found.weight is not None:
        inputs["weight"] = found.weight.term
    if found.bias is not None:
        inputs["bias"] = found.bias.term
    if found.mean is not None:
        inputs.update({"mean": found.mean.term, "variance": root.x})
    if root.guard == "max_inside" and root.kind != "l2":
        return NearMiss(name, Code.NAMED_OP_LACKS("the sum of variance and epsilon"), found.product.term)
    return Match(name, inputs, [found.product.term], attributes)
