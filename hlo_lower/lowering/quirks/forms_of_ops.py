"""The forms of one op that a target may refuse though it takes others of it, and which of them one stands in."""

from collections.abc import Callable, Mapping

from hlo_lower.facts.gather.window_order import is_in_order
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.single_ops.convolution import Convolution
from hlo_lower.lowering.single_ops.dot_of_integers import has_contracted_apart, summed_over
from hlo_lower.lowering.single_ops.reduce_halves import MOST
from hlo_lower.lowering.single_ops.reduce_window import is_one_op
from hlo_lower.ops import names
from hlo_lower.ops.axes.reduction import is_neutral
from hlo_lower.ops.spec import RESHAPING
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target

KEEPING = RESHAPING | {names.CONVERT}
"""Ops of one operand that a consumer computes where that is a constant."""


def _comes_of(value: Value, name: str) -> bool:
    """Whether a value is made by an op of this name, or is that in another shape."""
    node = value.node
    while node is not None and node.name in KEEPING:
        node = node.operand(0).node
    return node is not None and node.name == name


def _has(name: str, than: int) -> Callable[[Node], bool]:
    return lambda node: any(n > than for n in Convolution(node).each(name, than))


def _is_any_fold(node: Node) -> bool:
    """Whether a reduction is more than one operation of numbers, and not the place of a maximum or minimum."""
    [body, *_] = node.blocks
    element = node.operand(0).element_type
    if len(node.results) == 1:
        first = next(iter(body.nodes))
        return not is_one_op(body) or first.name not in (TRUTHS if element == "i1" else NUMBERS)
    is_place = len(node.results) == 2 and _comes_of(node.operand(1), names.IOTA)
    return not (is_place and any(inner.name == names.COMPARE for inner in body.nodes))


def _starts_from_number(node: Node) -> bool:
    """Whether a maximum or minimum starts from another number than the least or greatest one."""
    first = next(iter(node.blocks[0].nodes))
    if len(node.results) > 1 or not is_one_op(node.blocks[0]) or first.name not in MOST:
        return False
    return not is_neutral(node.operand(1), first.name.removeprefix("stablehlo."))


def _is_reversed_apart(node: Node) -> bool:
    dims = sorted(node.integers("dimensions"))
    return bool(dims) and dims[-1] - dims[0] >= len(dims)


NUMBERS = (names.ADD, names.MAXIMUM, names.MINIMUM, names.MULTIPLY)
TRUTHS = (names.AND, names.MAXIMUM, names.MINIMUM, names.OR)
"""The operations by which numbers and truths are taken to be reduced."""

FORMS: Mapping[str, Mapping[RefusedForm, Callable[[Node], bool]]] = {
    names.PAD: {
        RefusedForm.SPREAD: lambda node: any(node.integers("interior_padding")),
        RefusedForm.COMPUTED_PADDING: lambda node: not _comes_of(node.operand(1), names.CONSTANT),
    },
    names.DOT_GENERAL: {
        RefusedForm.EMPTY_SUM: lambda node: summed_over(node) == 0,
        RefusedForm.CONTRACTED_APART: has_contracted_apart,
    },
    names.GATHER: {RefusedForm.ORDERED_WINDOWS: lambda node: not is_in_order(node)},
    names.REDUCE: {RefusedForm.FOLD: _is_any_fold, RefusedForm.FOLD_START: _starts_from_number},
    names.REDUCE_WINDOW: {RefusedForm.FOLD: _is_any_fold},
    names.REVERSE: {RefusedForm.REVERSED_APART: _is_reversed_apart},
    names.RNG_BIT_GENERATOR: {RefusedForm.THREE_WORDS: lambda node: node.operand(0).static_shape == (3,)},
    names.CONVOLUTION: {
        RefusedForm.REVERSED_KERNEL: _has("window_reversal", 0),
        RefusedForm.BATCH_GROUPS: lambda node: node.integer("batch_group_count") > 1,
        RefusedForm.FEATURE_GROUPS: lambda node: (
            node.integer("feature_group_count") > 1 and len(Convolution(node).spatial) == 3
        ),
        RefusedForm.DILATED_OPERAND: _has("lhs_dilation", 1),
        RefusedForm.DILATED_KERNEL: lambda node: (
            _has("rhs_dilation", 1)(node) and not _comes_of(node.operand(1), names.CONSTANT)
        ),
    },
}
"""For each op its forms, in the order in which they are lowered: what one needs may be another."""

WORDS = frozenset(form.value for forms in FORMS.values() for form in forms)


def refused_op_form(target: Target, node: Node) -> RefusedForm | None:
    """The first form in which an op stands that the target refuses; None of one that it refuses in none."""
    forms = FORMS.get(node.name) if target.refused_forms else None
    if forms is None or not node.is_static or target.refuses_op(node.name) is not None:
        return None
    return next((form for form, holds in forms.items() if form.value in target.refused_forms and holds(node)), None)


def refuses_forms(target: Target) -> bool:
    """Whether a target refuses any of these forms."""
    return not WORDS.isdisjoint(target.refused_forms)
