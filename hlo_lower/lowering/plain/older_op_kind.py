"""`stablehlo.dot` and its like, for targets that have only what took their place."""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.lowering.engine.legality import Refusal, refused_by_name
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.plain import older_op
from hlo_lower.lowering.plain.chlo_kind import CARRIED
from hlo_lower.lowering.plain.older_op import OLDER, OlderFacts, OlderOp
from hlo_lower.ops.targets.target import Target


class OlderOpKind(Kind):
    """Ops that others have taken the place of."""

    name = op = OLDER
    ops = frozenset(op.value for op in OlderOp)
    stage = Stage.FLATTENED
    domains = OlderFacts.domains
    families = (older_op.rules,)

    def concerns(self, options: Options) -> bool:
        """Where an op is refused, or a legal form is asked for."""
        return options.legalize or super().concerns(options)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it and a legal form was not asked for."""
        if context.target.refusal(node.name) is None and not context.options.legalize:
            return None
        if not node.is_static:
            return Subject(self, node, node.name, (), nothing)
        facts = OlderFacts(OlderOp(node.name))
        return Subject(self, node, node.name, (Candidate(facts),), as_it_stands(context, node))

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) - {*CARRIED}

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """By names: what it became is looked at next."""
        return refused_by_name(target, graph, built)
