"""Ops of any name on element types that the target refuses for them, where it takes the op on other ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import zip_longest
from typing import ClassVar

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import COMPLEX
from hlo_lower.base.registry import Rule
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Refused
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands
from hlo_lower.lowering.engine.legality import PART_OPS, dtypes_on
from hlo_lower.lowering.engine.sharding import FRONTEND, GSPMD, SHARDY
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.single_ops.plain_op import PlainOp
from hlo_lower.lowering.types import element_type
from hlo_lower.lowering.types.carried.carrier import PAIRED, Carrier, Form, carriers_of
from hlo_lower.lowering.types.carried.exactness import TABLE, How
from hlo_lower.lowering.types.carried.written_ops import BY_SUMS
from hlo_lower.lowering.types.element_type import ON_COMPLEX, ON_FLOATS, ON_INTEGERS, ElementTypeFacts
from hlo_lower.ops.names import BITCAST_CONVERT, CASE, CONVERT, CONVOLUTION, IF, WHILE
from hlo_lower.ops.spec import WITH_BODY
from hlo_lower.ops.targets.target import Target

CARRIED_OVER = frozenset({SHARDY, GSPMD, FRONTEND})
WITH_BODIES = WITH_BODY & TABLE.keys()
"""Ops whose body is lowered with them."""

OF_FEW = frozenset({*PART_OPS, CONVOLUTION})
"""Ops that are looked at only on types that they have a form for."""

RULED = frozenset(op.value for op in PlainOp)
"""Ops for which there are rules, once they are of real numbers."""

STORED = (Form.SIGNED, Form.WIDER, Form.PARTS)
"""How values are stored whose type a target has no room for."""

HOLDERS = frozenset({"func.func", WHILE, IF, CASE})
"""What an op has to stand in to be lowered by itself."""


class ElementTypeKind(Kind):
    """Ops on element types that are refused for them."""

    op = "stablehlo."
    stage = Stage.TYPES
    domains = ElementTypeFacts.domains
    forms: ClassVar[frozenset[Form]]

    def concerns(self, options: Options) -> bool:
        return options.target.restricts_dtypes

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it, or refuses the op itself."""
        target = context.target
        if node.name not in TABLE or is_refused_by_name(target, node):
            return None
        refused = self.carried(refused_types(target, node.name, dtypes_on(node)))
        if node.name in OF_FEW and not any(_has_form(node.name, element) for element in refused):
            return None
        parent = node.parent
        if not refused or parent is None or parent.name not in HOLDERS:
            return None
        reassociated = context.options.float_mode == "reassociate"
        facts = (facts_of(target, node, scheme) for scheme in schemes(target, refused, node))
        candidates = [Candidate(replace(known, reassociated=reassociated)) for known in facts]
        if (candidates[0].facts["carried"] if candidates else Form.WIDER) not in self.forms:
            return None
        told = f"element types {', '.join(refused)}"
        return Subject(self, node, node.name, candidates, as_it_stands(context, node), told=told)

    def carried(self, refused: list[str]) -> list[str]:
        """Those of the refused types of an op that are carried now."""
        return refused

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) - CARRIED_OVER

    def judged(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All but casts of types that it has no room for, which are gone in the end."""
        return [node for node in built if not is_cast_of_storage(target, node)]

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        types = refused_types(context.target, subject.node.name, dtypes_on(subject.node))
        name = context.target.name
        why = super().left(context, subject, refused) if subject.candidates else Code.NO_FORM_TAKEN(name, ())
        return Code.ON_TYPES(tuple(types), why)

    def title(self, rule: Rule) -> str:
        [form] = rule.constraints["carried"]
        return f"any op, {TITLES[form]}"


class IntegerTypeKind(ElementTypeKind):
    """Ops on integers that are refused for them."""

    name = ON_INTEGERS
    families = (element_type.integer_rules,)
    forms = frozenset({Form.SIGNED, Form.WIDER, Form.HALVES, Form.ITSELF})


class FloatTypeKind(ElementTypeKind):
    """Ops on floats that are refused for them."""

    name = ON_FLOATS
    families = (element_type.float_rules,)
    forms = frozenset({Form.FLOAT})


class ComplexTypeKind(ElementTypeKind):
    """Ops on complex numbers that are refused for them, before the other types: what it builds may be refused, too."""

    name = ON_COMPLEX
    stage = Stage.COMPLEX
    families = (element_type.complex_rules,)
    forms = frozenset({Form.PARTS})

    def carried(self, refused: list[str]) -> list[str]:
        """Complex ones alone: what is left of the op, on their parts, the stage of element types looks at."""
        return [element for element in refused if element in COMPLEX]

    def judged(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All but casts, and ops that there are rules for."""
        return [node for node in built if not _is_lowered_later(target, node)]


def _is_lowered_later(target: Target, node: Node) -> bool:
    if node.name == PAIRED:
        return is_cast_of_storage(target, node) or all(target.refusal(op, dtypes_on(node)) is None for op in PART_OPS)
    return target.refuses_op(node.name) is not None and node.name in RULED


TITLES: Mapping[Enum, str] = {
    Form.SIGNED: "unsigned integers that are refused for it",
    Form.WIDER: "integers that are refused for it",
    Form.FLOAT: "bf16 or f16 that is refused for it",
    Form.PARTS: "complex numbers that are refused for it",
    Form.HALVES: "64-bit integers that are refused for it",
    Form.ITSELF: "integers that are refused for it (and, or)",
}


def refused_types(target: Target, op: str, dtypes: frozenset[str]) -> list[str]:
    """The element types on an op that the target takes on no op, or not on this one."""
    return [d for d in sorted(dtypes) if target.refuses_dtype(d) is not None or target.refuses_op_on(op, d)]


def is_refused_by_name(target: Target, node: Node) -> bool:
    """Whether a target refuses an op whatever its types are; what is made of it of complex numbers may be other ops."""
    return target.refuses_op(node.name) is not None and not is_of_parts(target, node)


def is_of_parts(target: Target, node: Node) -> bool:
    """Whether an op is one of complex numbers that the target has no room for."""
    return any(element in COMPLEX and is_refused_as_such(target, element) for element in dtypes_on(node))


def is_refused_as_such(target: Target, element: str) -> bool:
    """Whether a target has no room for an element type: what holds values of it has to hold another type."""
    return target.refuses_dtype(element) is not None


def storage_of(target: Target, element: str) -> Carrier | None:
    """What a type is stored in on a target that has no room for it: an integer that holds all its numbers or bits, or
    the two parts of a complex number.

    Predicates are stored in nothing else: what compares, selects, branches and loops is of i1 by definition.
    """
    if element == "i1" or not is_refused_as_such(target, element):
        return None
    found = (carrier for carrier in carriers_of(element) if carrier.form in STORED)
    return next((carrier for carrier in found if target.refuses_dtype(carrier.after) is None), None)


def _has_form(name: str, element: str) -> bool:
    return any(TABLE[name].on(carrier.form) is not How.NONE for carrier in carriers_of(element))


def schemes(target: Target, refused: Sequence[str], node: Node) -> Iterator[Mapping[str, Carrier]]:
    """For the types that are refused of an op what each may be carried in, those first that are cheaper.

    A type that the target has no room for is carried in what it is stored in, or in the halves of that.
    """
    choices = [_choices(target, element, node) for element in refused]
    if not all(choices):
        return
    for chosen in zip_longest(*choices):
        pairs = zip(chosen, choices, strict=True)
        yield {carrier.before: carrier for carrier in (one or among[-1] for one, among in pairs)}


def _choices(target: Target, element: str, node: Node) -> list[Carrier]:
    stored = storage_of(target, element)
    if is_refused_as_such(target, element):
        return [] if stored is None else [stored, *_taken(target, node, _halves_of(stored))]
    return _taken(target, node, carriers_of(element))


def _halves_of(stored: Carrier) -> Iterator[Carrier]:
    """The halves of what a type is stored in by its bits."""
    for carrier in carriers_of(stored.after) if stored.form is Form.SIGNED else ():
        if carrier.form is Form.HALVES:
            yield replace(carrier, before=stored.before, through=stored.after)


def _taken(target: Target, node: Node, carriers: Iterable[Carrier]) -> list[Carrier]:
    """Those of the carriers on which an op has a form, and is taken."""
    found = [c for c in carriers if TABLE[node.name].on(c.form) is not How.NONE]
    taken = [c for c in found if c.form is Form.PARTS or not refused_types(target, node.name, frozenset({c.after}))]
    by_sums = sorted(found, key=lambda carrier: carrier.form is not Form.ITSELF) if node.name in BY_SUMS else []
    return taken or by_sums


def facts_of(target: Target, node: Node, scheme: Mapping[str, Carrier]) -> ElementTypeFacts:
    """The facts of an op under one choice of carriers."""
    types = (value.element_type for value in (*node.operands, *node.results) if value.is_tensor)
    types = sorted(types, key=lambda element: element not in COMPLEX)
    first = next((scheme[element] for element in types if element in scheme), next(iter(scheme.values())))

    def takes(op: str, element: str) -> bool:
        return target.refusal(f"stablehlo.{op}", (element,)) is None

    return ElementTypeFacts(first.form, node.name, scheme, takes)


def is_cast_of_storage(target: Target, node: Node) -> bool:
    """Whether an op casts between a type that the target has no room for and what it is stored in."""
    if node.name not in (CONVERT, BITCAST_CONVERT, PAIRED):
        return False
    before, after = node.operand(0).element_type, node.result().element_type
    found = (storage_of(target, element) for element in (before, after))
    return any(c is not None and {c.before, c.after} == {before, after} and c.cast == node.name for c in found)
