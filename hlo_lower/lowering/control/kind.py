"""Control flow, barriers and notes, for targets that refuse them. What stands in one that is kept is looked at, too."""

from collections.abc import Sequence
from dataclasses import replace

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.control import control
from hlo_lower.lowering.control.control import (
    CONSTRAINT,
    CONTROL,
    Contents,
    ControlFacts,
    ControlOp,
    Outcome,
    Placed,
    Way,
)
from hlo_lower.lowering.control.flat_copy import FlatCopy, NotFlatError
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Decision, Refused
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.lowering.engine.legality import Refusal, dtypes_on, refused_by_name, refused_of
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.plain.custom_call import NOTES
from hlo_lower.lowering.quirks.branches import refused_branches
from hlo_lower.ops.names import CASE, CUSTOM_CALL, IF, MAP, WHILE
from hlo_lower.ops.purity import Functional
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target


class ControlKind(Kind):
    """Loops, branches, maps, barriers and notes."""

    name = op = CONTROL
    ops = frozenset(op.value for op in ControlOp)
    stage = Stage.FLATTENED
    domains = ControlFacts.domains
    families = (control.rules,)

    def concerns(self, options: Options) -> bool:
        forms = options.target.refused_forms
        return super().concerns(options) or any(form.value in forms for form in (RefusedForm.INNER, RefusedForm.MANY))

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it, or it stands in one that is lowered first."""
        if not _is_refused(context, node) or _is_within_refused(context, node):
            return None
        if node.name in (CUSTOM_CALL, CONSTRAINT) and not _is_note(context, node):
            return None
        if node.name == MAP and not node.result().is_static:
            return Subject(self, node, node.name, (), nothing)
        facts = _facts(context, node)
        is_many = refused_branches(context.graph, context.target, node) is RefusedForm.MANY
        ways = (Way.ONE, Way.ALL) if node.name == IF or is_many else (Way.ALL,)
        candidates = [Candidate(replace(facts, way=way)) for way in ways]

        return Subject(self, node, _label(node), candidates, as_it_stands(context, node))

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) if node.name in (CUSTOM_CALL, CONSTRAINT) else OWNED

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """Of a `case` its name and its form alone count: what it holds is copied, and looked at afterwards."""
        cases = [node for node in built if node.name == CASE]
        others = [node for node in built if node.name != CASE]
        return refused_of(target, graph, others) or refused_by_name(target, graph, cases)

    def tell(self, context: Context, subject: Subject, decision: Decision) -> Change | None:
        if isinstance(decision, Refused):
            context.left.add(subject.node)
        return super().tell(context, subject, decision)

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        facts = subject.candidates[-1].facts if subject.candidates else None
        why = facts.why if isinstance(facts, ControlFacts) else None
        return why or super().left(context, subject, refused)


OWNED = frozenset({"dimensions"})


def _label(node: Node) -> str:
    return f"{node.name} @{mlir.call_target(node.raw)}" if node.name == CUSTOM_CALL else node.name


def _is_refused(context: Context, node: Node) -> bool:
    is_taken = context.target.refusal(node.name, dtypes_on(node)) is None
    return not is_taken or refused_branches(context.graph, context.target, node) is not None


def _is_within_refused(context: Context, node: Node) -> bool:
    """Whether a loop or a branch around it is looked at first: what that leaves of this one is read afterwards."""
    around = node.parent
    while around is not None and around.name != "func.func":
        if around.name in (WHILE, CASE, IF) and around not in context.left and _is_refused(context, around):
            return True
        around = around.parent
    return False


def _facts(context: Context, node: Node) -> ControlFacts:
    op, most = ControlOp(node.name), context.options.max_unroll
    if node.name not in (WHILE, CASE, IF):
        return ControlFacts(op, says=Placed.NOTE, contents=Contents.HARMLESS)
    is_known, why = _goes(context, node)
    if is_known or node.name == WHILE:
        return ControlFacts(op, Outcome.KNOWN if is_known else Outcome.UNKNOWN, most=most, why=why)
    why = _harm(context, node)
    return ControlFacts(op, contents=Contents.NOT if why else Contents.HARMLESS, most=most, why=why)


def _goes(context: Context, node: Node) -> tuple[bool, Cause | None]:
    """Whether a loop or branch goes a way that is known, and if not, why."""
    flat = FlatCopy(context.options.max_unroll)
    try:
        if node.name == WHILE:
            flat.loop(node)
        elif (branch := flat.taken(node)) is None:
            return False, None
        else:
            flat.block(branch)
    except NotFlatError as error:
        return False, error.why
    return True, None


def _harm(context: Context, node: Node) -> Cause | None:
    """Why the branches may not all be computed; None if they may."""
    if not Functional(context.graph)(node):
        return Code.BRANCH_WITH_EFFECT()
    flat = FlatCopy(context.options.max_unroll)
    try:
        for block in node.blocks:
            flat.block(block)
    except NotFlatError as error:
        return Code.LOOP_IN_BRANCH(error.why)
    return None


def _is_note(context: Context, node: Node) -> bool:
    """Whether all that it says is where a value lives, in a module for one device."""
    is_named = node.name == CONSTRAINT or mlir.call_target(node.raw) in NOTES
    is_same = [v.raw.type for v in node.operands] == [v.raw.type for v in node.results]
    return is_named and is_same and not context.is_partitioned
