"""Ops that modules hold which were HLO before, as those of TensorFlow, and that others have taken the place of."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.kind import Context, Kind, OpLowering, Stage, Subject
from hlo_lower.lowering.engine.legality import Refusal, refused_by_name
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.plain.chlo import written_out
from hlo_lower.ops import names
from hlo_lower.ops.targets.target import Target

OLDER = "older op"
"""The name under which rules for these ops are registered."""

FROM_DEPRECATED = "func.func(stablehlo-legalize-deprecated-ops)"


class OlderOp(Enum):
    """Which op it is."""

    BROADCAST = names.BROADCAST
    DOT = names.DOT
    SET_DIMENSION_SIZE = names.SET_DIMENSION_SIZE
    TORCH_INDEX_SELECT = names.TORCH_INDEX_SELECT


@dataclass(frozen=True)
class OlderFacts(FactsByName):
    """The fact of one such op: which it is."""

    named: OlderOp


OlderLowering = OpLowering[OlderFacts]

rules = RuleList()


@rules.lowers(OLDER, named={OlderOp.BROADCAST, OlderOp.DOT}, form="jaxlib's form of its successor")
def deprecated_to_present(op: OlderLowering) -> Sequence[Value]:
    """Write it as the op that took its place, which jaxlib's pass does.

        %r = stablehlo.dot %x, %w              ->   stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        %r = stablehlo.broadcast %x, sizes = [2]   ->   stablehlo.broadcast_in_dim %x, dims = [1]

    Equal: that op was defined to take this one's place. Costs nothing.
    """
    attributes = mlir.attributes_of(op.node.raw)
    return written_out(op.graph, op.build, op.node, op.node.name, attributes, FROM_DEPRECATED)


@rules.lowers(OLDER, named={OlderOp.SET_DIMENSION_SIZE}, form="the operand, whose dim has that size")
def set_dimension_size_to_operand(op: OlderLowering) -> Sequence[Value]:
    """Take the operand where the size is a constant, that of the dim: HLO has one behind each top_k.

        %r = set_dimension_size(%x, %size), dim = d   ->   %x

    Equal: no element is cut, and the result's type says what it did. Costs nothing.

    Raises:
      DoesNotApply: the size is another one, or not known: what lies beyond it does not count then, and a tensor of
        static shape cannot say so.
    """
    value, size = op.node.operands
    if size.integer != value.static_shape[op.node.integer("dimension")]:
        raise DoesNotApply("the size that is set is not a constant, the dim's own")
    return [value]


@rules.lowers(OLDER, named={OlderOp.TORCH_INDEX_SELECT}, form="gather of slices of one element in that dim")
def torch_index_select_to_gather(op: OlderLowering) -> Sequence[Value]:
    """Write it as a gather; the leading dims that both operands share become batching dims.

        %r = torch_index_select %x, %i, dim = d, batch_dims = b
          ->   gather %x, %i, start_index_map = [d], collapsed_slice_dims = [d], of slices that are 1 there

    Equal: an index out of bounds is clamped by both. Costs nothing.
    """
    value, index = op.node.operands
    dim, batch = op.node.integer("dim"), op.node.integer("batch_dims")
    shape, found = value.static_shape, op.node.results[0].static_shape
    rank = len(index.static_shape)
    offsets = [d for d in range(batch, len(found)) if not dim <= d < dim + rank - batch]
    numbers = f"offset_dims = {offsets}, collapsed_slice_dims = [{dim}], "
    if batch:
        dims = list(range(batch))
        numbers += f"operand_batching_dims = {dims}, start_indices_batching_dims = {dims}, "
    numbers += f"start_index_map = [{dim}], index_vector_dim = {rank}"
    sizes = [1 if d < batch or d == dim else size for d, size in enumerate(shape)]
    return [op.build.gather(value, index, numbers, sizes, found)]


class OlderOpKind(Kind):
    """Ops that others have taken the place of."""

    name = op = OLDER
    ops = frozenset(op.value for op in OlderOp)
    stage = Stage.FLATTENED
    domains = OlderFacts.domains
    families = (rules,)
    owned = None

    def concerns(self, options: Options) -> bool:
        """Where an op is refused, or a legal form is asked for."""
        return options.legalize or super().concerns(options)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it and a legal form was not asked for."""
        if context.target.refusal(node.name) is None and not context.options.legalize:
            return None
        if not node.is_static:
            return self.subject(context, node)
        return self.subject(context, node, OlderFacts(OlderOp(node.name)))

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """By names: what it became is looked at next."""
        return refused_by_name(target, graph, built)
