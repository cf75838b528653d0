"""layer_norm, rms_norm, l2_norm, group_norm and batch_norm, from the root by which a norm divides."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.named.match.arithmetic import plus, square_of, uncast, with_constant
from hlo_lower.named.match.axis_atoms import LAYOUT, Axis, View, are_same, leaves
from hlo_lower.named.match.matches import AttributeValue, Found, Match, NearMiss, matchers
from hlo_lower.named.match.rows import Reduced, dims_of, reduction_of, rows
from hlo_lower.named.match.softmax import through
from hlo_lower.named.match.terms import Term, is_rounded
from hlo_lower.ops.names import BATCH_NORM_TRAINING, POWER, RSQRT, SQRT

TRAINED = BATCH_NORM_TRAINING.removeprefix("stablehlo.")


@dataclass(frozen=True)
class Mean:
    """The mean of a value over rows, or its sum."""

    of: View  # what is summed, seen with the atoms of where the mean is used, and new ones along what is summed
    total: Reduced  # the sum
    divided: bool  # whether it is divided by how many there are


def mean_of(view: View) -> Mean | None:
    """The mean, or the sum, that a value is, beneath layout and conversions."""
    root = view.root()
    scaled = root
    divisor: Any = None
    for op in ("divide", "multiply"):
        found = with_constant(root.term, op)
        if found is not None and (op == "multiply" or root.term.operands[0] is found[0]):
            divisor, scaled = (op, found[1]), root.on(found[0])
            break
    total = reduction_of(scaled, "add")
    if total is None:
        return None
    if divisor is None:
        return Mean(total.operand, total, False)
    op, number = divisor
    elements = prod(atom.extent for atom in leaves(total.new))
    is_count = elements and is_rounded(number, elements if op == "divide" else 1 / elements)
    return Mean(total.operand, total, True) if is_count else None


def square(term: Term) -> Term | None:
    """The value of which a term is the square, or the square of the absolute value, beneath conversions."""
    found = square_of(uncast(term))
    if found is None:
        return None
    return found.operands[0] if found.op == "abs" else found


STEPS = 40
"""Most ops that are looked at below a root."""

PASSED = LAYOUT | {"convert", "multiply", "divide"}
"""What lies between a root and the product that it goes into."""


@dataclass(frozen=True)
class Factor:
    """A factor of a product."""

    view: View  # the factor, with the atoms of the product
    divides: bool  # whether it divides


def products_below(root: Term) -> Iterator[Term]:
    """Products that a root goes into, the nearest first."""
    pending, steps, seen = [root], STEPS, set[int]()
    while pending and steps:
        for user in pending.pop(0).users:
            steps -= 1
            if user.op not in PASSED or id(user) in seen:
                continue
            seen.add(id(user))
            pending.append(user)
            if user.op in ("multiply", "divide"):
                yield user


def factors(view: View, is_whole: Callable[[View], bool], depth: int = 10) -> list[Factor] | None:
    """The factors of a product, those that are whole not taken apart; None where one is a number but 1."""
    found: list[Factor] = []
    pending = [(view, False, depth)]
    while pending:
        at, divides, left = pending.pop(0)
        term = at.term
        if is_whole(at) or not left:
            found.append(Factor(at, divides))
        elif term.op in ("multiply", "divide"):
            pending.append((at.on(term.operands[0]), divides, left - 1))
            pending.append((at.on(term.operands[1]), divides != (term.op == "divide"), left - 1))
        elif term.op in LAYOUT or term.op == "convert":
            below = at.under()
            if below is None:
                return None
            pending.append((below, divides, left))
        elif (number := term.scalar) is not None:
            if float(number) != 1:
                return None
        else:
            found.append(Factor(at, divides))
    return found


@dataclass(frozen=True)
class Parameter:
    """A weight or bias: the operand, its atoms, and whether 1 is added to it."""

    term: Term
    atoms: Axis
    one_plus: bool = False


def parameter(view: View, within: Axis, *, may_add_one: bool = False) -> Parameter | None:
    """A weight or bias that depends on nothing but these atoms, in their order; beneath layout and conversions."""
    root = view.root()
    atoms = root.atoms
    if not atoms or not set(atoms) <= set(leaves(within)):
        return None
    if [atom for atom in leaves(within) if atom in atoms] != list(atoms):
        return None
    if may_add_one:
        below = plus(root.term, 1)
        if below is not None:
            inner = root.on(below).root()
            return Parameter(uncast(inner.term), atoms, True)
    return Parameter(uncast(root.term), atoms)


GIVEN = frozenset({"argument", "constant", "slice", "dynamic_slice", "get_tuple_element"})
"""Where a variance comes from that is not computed: parameters."""


@dataclass(frozen=True)
class Root:
    """The root by which a norm divides."""

    kind: str  # "layer", "rms", "l2" or "given"
    view: View  # the root, with the atoms of the norm's result
    inverted: bool  # whether it is 1 / sqrt
    epsilon: float  # what is added below the root, or guards it
    guard: str  # how epsilon holds the root away from 0, as l2_norm names it
    mean: Mean | None  # the mean or sum of squares; None where the variance is given
    x: Term  # the value that is normalized, beneath conversions; of a given variance that


def root_of(view: View) -> Root | Cause | None:
    """The `rsqrt`, `sqrt` or `power`, or the guard behind it, as a norm's root; a cause where it almost is one."""
    term, guard, epsilon = view.term, "none", 0.0
    if term.op in ("maximum", "add"):
        found = with_constant(term, term.op)
        if found is None:
            return None
        guard, epsilon = ("max_outside" if term.op == "maximum" else "add_outside"), float(found[1])
        root = view.on(found[0]).root()
        term = root.term
        below = root
    else:
        below = view
    if term.op == "power":
        if not term.operands[1].is_number(-0.5):
            return None
        inverted = True
    elif term.op in ("rsqrt", "sqrt"):
        inverted = term.op == "rsqrt"
    else:
        return None
    argument = below.on(term.operands[0]).root()
    if guard == "none":
        for op, name in (("add", "add_inside"), ("maximum", "max_inside")):
            found = with_constant(argument.term, op)
            if found is not None:
                guard, epsilon, argument = name, float(found[1]), argument.on(found[0])
                break
    elif inverted:
        return None
    return _classify(view, inverted, epsilon, guard, _not_negative(argument.root()))


def _not_negative(view: View) -> View:
    """The v of max(v, 0)."""
    found = with_constant(view.term, "maximum")
    return view.on(found[0]).root() if found is not None and is_rounded(found[1], 0) else view


def _classify(view: View, inverted: bool, epsilon: float, guard: str, variance: View) -> Root | Cause | None:
    def root(kind: str, mean: Mean | None, x: Term) -> Root:
        return Root(kind, view, inverted, epsilon, guard, mean, x)

    if variance.term.op == "subtract":
        found = _fast_variance(variance)
        return root("layer", found, uncast(_base_of_square(found))) if isinstance(found, Mean) else found
    mean = mean_of(variance)
    if mean is None:
        return root("given", None, variance.term) if variance.term.op in GIVEN and variance.term.is_float else None
    base = square(mean.of.term)
    if base is None:
        return None
    if not mean.divided:
        return root("l2", mean, uncast(base))
    centred = uncast(base)
    if centred.op == "subtract":
        found = centred_of(mean.of.on(centred))
        if isinstance(found, tuple):
            x, about = found
            if not _same_rows(mean.of.on(centred.operands[0]), about, mean):
                return Code.OTHER_AXES("the mean", "the variance")
            return root("layer", mean, x)
        if found is not None:
            return found
    return root("rms", mean, centred)


def _base_of_square(mean: Mean) -> Term:
    base = square(mean.of.term)
    assert base is not None
    return base


def centred_of(view: View) -> tuple[Term, Mean] | Cause | None:
    """The x of x - mean(x), and its mean; a cause where the mean is of another value."""
    if view.term.op != "subtract":
        return None
    value, other = view.term.operands
    mean = mean_of(view.on(other))
    if mean is None or not mean.divided:
        return None
    if rows(view.on(value), mean.total) is None:
        return Code.OTHER_VALUE("the mean that is subtracted")
    return uncast(value), mean


def _same_rows(x: View, about: Mean, variance: Mean) -> bool:
    over = rows(x, about.total)
    return over is not None and set(leaves(over)) == set(leaves(variance.total.new))


def _fast_variance(variance: View) -> Mean | Cause | None:
    """The mean of squares in mean(x**2) - mean(x)**2, both over the same rows of x."""
    squares, other = (variance.on(operand) for operand in variance.term.operands)
    mean = mean_of(squares)
    about = square(other.root().term)
    if mean is None or about is None or not mean.divided or square(mean.of.term) is None:
        return None
    single = mean_of(other.root().on(about))
    if single is None or not single.divided:
        return None
    x = uncast(_base_of_square(mean))
    same = uncast(single.of.term).is_same(x) and _over_the_same(mean, single)
    return mean if same else Code.OTHER_VALUE("the mean whose square is subtracted")


def _over_the_same(one: Mean, other: Mean) -> bool:
    for first, second in zip(one.of.axes, other.of.axes, strict=True):
        mine, its = leaves(first), leaves(second)
        new = [atom in leaves(one.total.new) for atom in mine], [atom in leaves(other.total.new) for atom in its]
        if all(new[0]) and all(new[1]) and [a.extent for a in mine] == [a.extent for a in its]:
            continue
        if mine != its:
            return False
    return True


@matchers.finds("batch_norm", at=(RSQRT, SQRT, POWER))
def folded_batch_norm(anchor: Term) -> Found:
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


NAMES = {"layer": "layer_norm", "rms": "rms_norm", "l2": "l2_norm", "given": "batch_norm"}


@dataclass(frozen=True)
class Normalized:
    """A value times the inverse of a root."""

    product: View  # the product so far, with atoms of its own
    root: Root  # the root
    x: View  # the value, with the product's atoms
    over: Axis  # the atoms that are reduced; of a given variance those that it depends on
    mean: Parameter | None = None  # the mean that is subtracted, where it is given
    # weight, bias: what there is of them
    weight: Parameter | None = None
    bias: Parameter | None = None
    channel: Axis = field(default_factory=tuple)  # the atoms of the channel, where weight and bias go by that

    @property
    def of_parameters(self) -> Axis:
        """The atoms that a weight may depend on."""
        return self.channel or self.over


@matchers.finds(*("layer_norm", "rms_norm", "l2_norm", "group_norm", "batch_norm"), at=(RSQRT, SQRT, POWER))
def norm(anchor: Term) -> Found:
    """The norm whose root the anchor is."""
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
            found = _normalized_product(View.of(product), term, first)
            if isinstance(found, Normalized):
                return _match(_absorb_users(found))
            missed = missed or (None if found is None else NearMiss(NAMES[first.kind], found, product))
    return missed


@matchers.finds("layer_norm", "group_norm", at=(BATCH_NORM_TRAINING,))
def of_rows(anchor: Term) -> Found:
    """A `batch_norm_training` whose features are rows, by ones and zeros, and what follows: torch_xla's layer norm.

    reshape [1, rows, n] -> batch_norm_training -> reshape back -> multiply weight -> add bias
    """
    for product in (*(user for user in anchor.users if user.op == "reshape"), anchor):
        found = _of_features(View.of(product))
        if found is not None:
            return _match(_absorb_users(found))
    return None


def _weighted_features(product: View) -> Normalized | None:
    """A normalized value times a weight."""
    found = factors(product, lambda view: _of_features(view) is not None) or []
    begun = [(factor, base) for factor in found if (base := _of_features(factor.view)) is not None]
    if len(begun) != 1 or begun[0][0].divides:
        return None
    [(features, base)] = begun
    return _with_weight(replace(base, product=product), [factor for factor in found if factor is not features])


def _of_features(product: View) -> Normalized | None:
    """The result of a `batch_norm_training`, or a reshape of it that undoes one of its operand, as a normalized value:
    the mean and the variance of a feature go over all that it has."""
    normed = product if product.term.op == TRAINED else product.beneath()
    if normed is None or normed.term.op != TRAINED:
        return None
    value, scale, offset = normed.term.operands
    if not (scale.is_number(1) and offset.is_number(0)):
        return None
    x = normed.on(value)
    if normed is not product:
        below = x.beneath() if value.op == "reshape" else None
        if below is None or below.term.shape != product.term.shape:
            return None
        x = product.on(below.term)  # in row-major order both are the same elements
    attributes = normed.term.node.raw.attributes
    feature = set(normed.axis(mlir.integer_of(attributes["feature_index"])))
    over = tuple(atom for atom in normed.atoms if atom not in feature)
    epsilon = mlir.float_of(attributes["epsilon"])
    root = Root("layer", normed, True, epsilon, "add_inside", None, uncast(x.term))
    return _with_groups(Normalized(product, root, x, over)) if over else None


def _normalized_product(product: View, term: Term, first: Root) -> Normalized | Cause | None:
    """The normalized value that a product is: one root, one x, at most one weight."""

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
            return _with_weight(begun, [other for other in others if other is not factor])
        if begun is not None:
            return begun
    return None


def _of_x(product: View, root: Root, factor: View) -> Normalized | Cause | None:
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
    return _with_groups(Normalized(product, root, x, over))


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


def _with_groups(found: Normalized) -> Normalized:
    """Add the channel if it is a group norm: an axis of x is split into groups, and all axes but the batch are
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


def _with_weight(found: Normalized, others: Iterable[Factor]) -> Normalized | None:
    """Add the remaining factor, if there is one, as the weight; None where it cannot be the weight."""
    left = list(others)
    if not left:
        return found
    if len(left) > 1 or left[0].divides or found.root.kind == "l2":
        return None
    weight = parameter(left[0].view, found.of_parameters, may_add_one=found.root.kind == "rms")
    return None if weight is None else replace(found, weight=weight)


def _absorb_users(found: Normalized) -> Normalized:
    """Absorb the users: the weight, the bias, the layout and the conversion that follow one after the other.

    The atoms of a user are found by looking up from it to the value before it.
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
    """A normalized value again, its product with other atoms."""
    if found.bias is not None or found.product.term.op == "add":
        return None
    term = found.root.view.term
    again = _weighted_features(product) if term.op == TRAINED else _normalized_product(product, term, found.root)
    if not isinstance(again, Normalized):
        return None
    return replace(again, weight=found.weight or again.weight)


def _match(found: Normalized) -> Found:
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
