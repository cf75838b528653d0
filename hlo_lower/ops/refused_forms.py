"""Which form a target refuses an op in: the quirks of `hlo_lower.ops.quirks` that the target names."""

from collections import defaultdict
from enum import Enum

from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.quirks import QUIRKS
from hlo_lower.ops.quirks.quirk import Quirk
from hlo_lower.ops.targets.target import Target


class RefusedForm(Enum):
    """A form as a fact that rules constrain: a member for each quirk, whose value is the quirk's word."""

    _ignore_ = "RefusedForm _quirk"
    RefusedForm = vars()
    for _quirk in QUIRKS:
        RefusedForm[_quirk.word] = _quirk.word

    @classmethod
    def of(cls, quirk: Quirk) -> "RefusedForm":
        """The form of a quirk."""
        return cls(quirk.word)


_BY_OP: dict[str, list[Quirk]] = defaultdict(list)
for _each in QUIRKS:
    for _op in _each.ops:
        _BY_OP[_op].append(_each)


def refused_form(graph: Graph, target: Target, node: Node, kind: str = "") -> Quirk | None:
    """The first form in which an op stands that a target refuses.

    Args:
      graph: the module.
      target: the target.
      node: the op.
      kind: the name of a kind of op: of the forms that its rules lower.
    """
    if not target.refused_forms or node.name not in _BY_OP:
        return None
    is_plain = node.is_static and target.refuses_op(node.name) is None
    for quirk in _BY_OP[node.name]:
        is_asked = quirk.is_reported and quirk.word in target.refused_forms and (not kind or quirk.is_cured_by(kind))
        if is_asked and (is_plain or quirk.is_anywhere) and quirk.finds(graph, node):
            return quirk
    return None


def refuses_forms(target: Target, kind: str) -> bool:
    """Whether a target refuses a form that rules of this kind of op lower."""
    return bool(target.refused_forms) and any(q.word in target.refused_forms and q.is_cured_by(kind) for q in QUIRKS)


def is_taken_in_its_form(graph: Graph, target: Target, node: Node) -> bool:
    """Whether an op is taken for the form in which it does not stand, though the target refuses the op."""
    exceptions = [quirk for quirk in _BY_OP.get(node.name, ()) if quirk.is_exception]
    return any(quirk.word in target.refused_forms and not quirk.finds(graph, node) for quirk in exceptions)
