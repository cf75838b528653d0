"""The root by which a norm divides: which mean of squares stands below it, of which value, with which epsilon.

    rsqrt(v + epsilon)    sqrt(v + epsilon)    (v + epsilon) ** -0.5        and, of l2_norm, guards behind the root

v is a mean of squares (rms_norm), of what is less its own mean (layer_norm, group_norm), the mean of squares less the
square of the mean, a sum of squares (l2_norm), or a value that is given (batch_norm).
"""

from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.named.match.arithmetic import uncast, with_constant
from hlo_lower.named.match.axis_atoms import View, leaves
from hlo_lower.named.match.norm_parts import Mean, mean_of, square
from hlo_lower.named.match.rows import rows
from hlo_lower.named.match.terms import Term, is_rounded

GIVEN = frozenset({"argument", "constant", "slice", "dynamic_slice", "get_tuple_element"})
"""Where a variance comes from that is not computed: parameters."""


@dataclass(frozen=True)
class Root:
    """The root by which a norm divides.

    Attributes:
      kind: "layer", "rms", "l2" or "given".
      view: the root, with the atoms of the norm's result.
      inverted: whether it is 1 / sqrt.
      epsilon: what is added below the root, or guards it.
      guard: how epsilon holds the root away from 0, as l2_norm names it.
      mean: the mean or sum of squares; None where the variance is given.
      x: the value that is normalized, beneath conversions; of a given variance that.
    """

    kind: str
    view: View
    inverted: bool
    epsilon: float
    guard: str
    mean: Mean | None
    x: Term


def root_of(view: View) -> Root | Cause | None:
    """A root as a norm's; a cause where it has the parts of one and is none.

    Args:
      view: the `rsqrt`, `sqrt` or `power`, or the guard behind it.
    """
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
    argument = below.on(term.operands[0]).root(casts=False)
    if guard == "none":
        for op, name in (("add", "add_inside"), ("maximum", "max_inside")):
            found = with_constant(argument.term, op)
            if found is not None:
                guard, epsilon, argument = name, float(found[1]), argument.on(found[0])
                break
    elif inverted:
        return None
    return _classified(view, inverted, epsilon, guard, _not_negative(argument.root()))


def _not_negative(view: View) -> View:
    """The v of max(v, 0)."""
    found = with_constant(view.term, "maximum")
    return view.on(found[0]).root() if found is not None and is_rounded(found[1], 0) else view


def _classified(view: View, inverted: bool, epsilon: float, guard: str, variance: View) -> Root | Cause | None:
    def root(kind: str, mean: Mean | None, x: Term) -> Root:
        return Root(kind, view, inverted, epsilon, guard, mean, x)

    if variance.term.op == "subtract":
        found = _fast_variance(variance)
        return root("layer", found, uncast(_squared(found))) if isinstance(found, Mean) else found
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


def _squared(mean: Mean) -> Term:
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
    """Whether the mean within a variance goes over the rows of the variance."""
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
    x = uncast(_squared(mean))
    same = uncast(single.of.term).is_same(x) and _over_the_same(mean, single)
    return mean if same else Code.OTHER_VALUE("the mean whose square is subtracted")


def _over_the_same(one: Mean, other: Mean) -> bool:
    """Whether two reductions, of the same value as it stands, keep the same atoms at the same places."""
    for first, second in zip(one.of.axes, other.of.axes, strict=True):
        mine, its = leaves(first), leaves(second)
        new = [atom in leaves(one.total.new) for atom in mine], [atom in leaves(other.total.new) for atom in its]
        if all(new[0]) and all(new[1]) and [a.extent for a in mine] == [a.extent for a in its]:
            continue
        if mine != its:
            return False
    return True
