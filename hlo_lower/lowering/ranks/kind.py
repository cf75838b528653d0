"""Ops of static shape on tensors of more dims than the target takes."""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.ranks import rank
from hlo_lower.lowering.ranks.rank import RANK, Dims, RankFacts
from hlo_lower.lowering.ranks.refused_rank import has_refused_rank
from hlo_lower.ops import names
from hlo_lower.ops.axes.elementwise import ELEMENTWISE

_SLICES = (names.SLICE, names.DYNAMIC_SLICE, names.DYNAMIC_UPDATE_SLICE)
_ALONG = (*_SLICES, names.CONCATENATE, names.PAD, names.REVERSE, names.IOTA)
BY_NAME = {
    **dict.fromkeys(ELEMENTWISE, Dims.ELEMENTWISE),
    **dict.fromkeys(_ALONG, Dims.ALONG),
    names.CONSTANT: Dims.WRITTEN,
    names.TRANSPOSE: Dims.TRANSPOSED,
    names.BROADCAST_IN_DIM: Dims.BROADCAST,
    names.REDUCE: Dims.REDUCED,
    names.DOT_GENERAL: Dims.CONTRACTED,
}
"""What each op does with its dims."""


class RankKind(Kind):
    """Ops of many dims; the reshapes between two of them meet."""

    name = op = RANK
    ops = frozenset(BY_NAME)
    stage = Stage.RANKS
    domains = RankFacts.domains
    families = (rank.rules,)
    owned = frozenset(
        (
            *("permutation", "broadcast_dimensions", "dimensions", "dimension", "iota_dimension", "slice_sizes"),
            *("start_indices", "limit_indices", "strides", "dot_dimension_numbers", "precision_config", "algorithm"),
            *("edge_padding_low", "edge_padding_high", "interior_padding", "comparison_direction", "compare_type"),
            *("result_accuracy", "value"),
        )
    )

    def concerns(self, options: Options) -> bool:
        return bool(options.target.max_rank)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None of few dims."""
        if not has_refused_rank(context.target, node):
            return None
        if not node.is_static:
            return Subject(self, node, node.name, (), nothing)
        facts = RankFacts(BY_NAME[node.name], reassociated=context.options.float_mode == "reassociate")
        return Subject(self, node, node.name, [Candidate(facts)], as_it_stands(context, node))


def join_reshapes(graph: Graph) -> None:
    """Let each reshape of a reshape read what that one reads, in place; what nobody reads then goes."""
    with mlir.active(graph.context):
        reshapes = [Node(raw) for raw in mlir.walked(graph.module.operation) if raw.name == names.RESHAPE]
        for node in reshapes:
            before = node.operand(0).node
            if before is not None and before.name == names.RESHAPE:
                node.raw.operands[0] = before.operand(0).raw
            if node.operand(0).raw.type == node.result().raw.type:
                node.result().raw.replace_all_uses_with(node.operand(0).raw)
        for node in reversed(reshapes):
            if not node.result().is_used:
                node.raw.erase()
    graph.forget()
