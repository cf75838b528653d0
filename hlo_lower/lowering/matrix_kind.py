"""The kind of op that is linear algebra: LAPACK's calls, XLA's own, and StableHLO's factorizations."""

from collections.abc import Sequence
from dataclasses import replace

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering import eigenvalues, matrices
from hlo_lower.lowering.engine.kind import Context, Kind, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import Refusal, dtypes_on, refused_by_name
from hlo_lower.lowering.engine.refused_ops import node_label
from hlo_lower.lowering.matrices import LINEAR_ALGEBRA, MatrixFacts, Routine, is_lapack, matrix_facts
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.single_ops.plain_op import Numbers
from hlo_lower.ops.names import CHOLESKY, CUSTOM_CALL, TRIANGULAR_SOLVE, WHILE
from hlo_lower.ops.targets.target import Target


class LinearAlgebraKind(Kind):
    """Factorizations of matrices, and solves."""

    name = op = LINEAR_ALGEBRA
    ops = frozenset({CUSTOM_CALL, CHOLESKY, TRIANGULAR_SOLVE})
    stage = Stage.FLATTENED
    domains = MatrixFacts.domains
    families = (matrices.rules, eigenvalues.rules)
    owned = None

    def concerns(self, options: Options) -> bool:
        """Where an op is refused, or a legal form is asked for."""
        return options.legalize or super().concerns(options)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it and a legal form was not asked for either."""
        if node.name == CUSTOM_CALL and not is_lapack(mlir.call_target(node.raw)):
            return None
        is_refused = context.target.refusal(node.name, dtypes_on(node)) is not None
        if not is_refused and not (node.name == CUSTOM_CALL and context.options.legalize):
            return None
        label = node_label(node)
        if not node.is_static:
            return self.subject(context, node, label=label)
        is_bounded = context.options.float_mode == "reassociate"
        facts = matrix_facts(node, Numbers.BOUNDED if is_bounded else Numbers.EXACT)
        return self.subject(context, node, facts, label=label)

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """By names: element types come later, and so do loops, which are unrolled in this stage."""
        return refused_by_name(target, graph, [node for node in built if node.name != WHILE])

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        if not subject.candidates:
            return super().why_left(context, subject, refused)
        facts = subject.candidates[0].facts
        assert isinstance(facts, MatrixFacts)
        if facts.routine is Routine.UNKNOWN:
            return facts.why or super().why_left(context, subject, refused)
        allowed = replace(facts, numbers=Numbers.BOUNDED)
        if facts.numbers is Numbers.EXACT and any(
            not rule.misses(context.op_facts(subject.node, allowed)) for rule in context.registry.rules(LINEAR_ALGEBRA)
        ):
            return Code.OTHER_ROUNDINGS()
        return super().why_left(context, subject, refused)
