"""In which of the forms that a target may refuse an op stands (`RefusedForm`), and where that form is taken anyhow."""

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS
from hlo_lower.ir.view import Node
from hlo_lower.lowering.quirks.branches import reads_twice
from hlo_lower.lowering.quirks.forms_of_ops import refused_op_form
from hlo_lower.lowering.quirks.loops_of_calls import is_of_calls
from hlo_lower.lowering.quirks.refused_form import has_no_sign
from hlo_lower.ops import names
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target

REDUCING = (names.REDUCE, names.REDUCE_WINDOW)
"""Ops that begin with a constant."""

ENDS = {names.MAXIMUM: np.less, names.MINIMUM: np.greater}
"""Folds that begin with an infinity of their own: that below, or above, all numbers."""


BELOW_ZERO = {
    names.SINE: RefusedForm.ODD_BELOW_ZERO,
    names.TAN: RefusedForm.ODD_BELOW_ZERO,
    "chlo.tan": RefusedForm.ODD_BELOW_ZERO,
    names.POWER: RefusedForm.POWER_BELOW_ZERO,
}
"""Functions that a consumer may compute right only of what is not below 0."""


def form_of(node: Node) -> RefusedForm | None:
    """The form in which an op stands; None where it is none of those."""
    if node.name == names.WHILE:
        return None if is_of_calls(node) else RefusedForm.LOOP
    if node.name in BELOW_ZERO:
        is_float = node.operand(0).element_type in WIDE_FLOATS
        return BELOW_ZERO[node.name] if is_float and not has_no_sign(node.operand(0)) else None
    if node.name not in (names.CONSTANT, names.COMPARE):
        return RefusedForm.TWICE if reads_twice(node) else None
    value = node.operand(0) if node.operands else node.result()
    if not value.is_tensor or value.element_type not in WIDE_FLOATS:
        return None
    if node.name == names.COMPARE:
        return RefusedForm.TOTAL_ORDER if "TOTALORDER" in str(node.attribute("compare_type")) else None
    numbers = node.constant()
    return RefusedForm.INFINITE if numbers is not None and bool(np.isinf(numbers).any()) else None


def is_start_alone(node: Node) -> bool:
    """Whether a constant is what reductions begin with, and nothing else."""
    return node.name == names.CONSTANT and all(user.name in REDUCING for user in node.result().users)


def refused_form(target: Target, node: Node) -> RefusedForm | None:
    """The form in which a target refuses an op where it stands.

    A consumer knows a maximum or a minimum by what it begins with, and one of several results (the place of a maximum)
    as a whole; so a constant that only such reductions begin with is taken.
    """
    if (in_op := refused_op_form(target, node)) is not None:
        return in_op
    found = form_of(node)
    if found is None or found.value not in target.refused_forms:
        return None
    return (
        None if is_start_alone(node) and all(_is_known_by_start(user, node) for user in node.result().users) else found
    )


def _is_known_by_start(fold: Node, start: Node) -> bool:
    if len(fold.results) > 1:
        return True
    returned, numbers = fold.blocks[0].terminator.operand(0).node, start.constant()
    below = None if returned is None else ENDS.get(returned.name)
    return below is not None and numbers is not None and bool(below(numbers, 0).all())


def note_of(form: RefusedForm) -> str:
    """What is told of an op in such a form."""
    return f"not in the form {form.value!r}"
