"""`stablehlo.scatter` of a shape that is known at run time only."""

from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.canonical import NotCanonicalError
from hlo_lower.facts.scatter.describe import describe_dynamic
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER, DynamicFacts, classify_dynamic, read_dynamic
from hlo_lower.facts.scatter.facts import FloatMode, OutOfBounds
from hlo_lower.facts.values.region import refuse_side_effects
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage
from hlo_lower.lowering.scatter import dynamic_shape
from hlo_lower.lowering.scatter.dynamic_shape import DynamicScatterLowering
from hlo_lower.lowering.scatter.kind import OWNED, ScatterSubject, about, refused_as_it_stands, refused_as_unreduced
from hlo_lower.lowering.scatter.rules import class_name
from hlo_lower.ops.names import SCATTER


class DynamicScatterKind(Kind):
    """Scatters of dynamic shape."""

    name = DYNAMIC_SCATTER
    op = SCATTER
    stage = Stage.SCATTERS
    domains = DynamicFacts.domains
    families = (dynamic_shape.rules,)
    owned = OWNED

    def read(self, context: Context, node: Node) -> ScatterSubject | None:
        """What is known of it."""
        if all(operand.is_static for operand in node.operands):
            return None
        if (refused := refused_as_unreduced(self, context, node)) is not None:
            return refused
        graph, options, number = context.graph, context.options, context.numbers[node]
        try:
            refuse_side_effects(graph, node.blocks[0])
            scatter = read_dynamic(node, narrowed=options.target.index_type == "i32")
        except NotCanonicalError as error:
            return refused_as_it_stands(self, context, node, error.cause)
        oob, float_mode = OutOfBounds(options.oob), FloatMode(options.float_mode)
        facts = classify_dynamic(scatter, context.analysis, oob, float_mode)
        record = describe_dynamic(graph, number, scatter, facts)

        dtype = ", ".join(v.element_type for v in scatter.operands)
        told = f"combiner={facts.combiner.value} positions={facts.positions.value} dtype={dtype}"
        told += f" window_sizes={facts.window_sizes.value} drops={facts.drops.value}"
        return ScatterSubject(
            kind=self,
            node=node,
            label=SCATTER,
            candidates=(Candidate(facts),),
            given=lambda told, build: DynamicScatterLowering(scatter, told, graph, build),
            told=f"{told} oob={facts.oob.value}",
            number=number,
            describe=lambda: record,
            **about(context, node),
        )

    def title(self, rule: Rule) -> str:
        return class_name(rule)
