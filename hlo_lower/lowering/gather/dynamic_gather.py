"""Gathers whose shapes are known at run time only, for consumers that do not clamp starts; sizes given as a value."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import type_range
from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.facts.gather.canonical import read_gather
from hlo_lower.facts.gather.facts import TakenGather
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import Extent, broadcast_like, extent_of, scalar, vector
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Refused
from hlo_lower.lowering.engine.kind import Candidate, Subject, as_it_stands
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.lowering.gather.kind import GatherKind, taken_by
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.ops.names import GATHER

rules, plain_rules = RuleList(), RuleList()

DYNAMIC_GATHER = "stablehlo.gather of dynamic shape"
"""The op name under which rules for these are registered."""


@dataclass(frozen=True)
class DynamicGatherFacts(FactsByName):
    """How the target takes it."""

    taken: TakenGather


@rules.lowers(DYNAMIC_GATHER, taken={TakenGather.WHOLE}, form="the gather itself")
def dynamic_shape_gather_to_itself(op: OpLowering[DynamicGatherFacts]) -> Sequence[Value]:
    """Leave a gather that the target takes. Equal: it is the same operation."""
    return op.node.results


@rules.lowers(
    DYNAMIC_GATHER,
    taken={TakenGather.IN_BOUNDS},
    form="gather(operand, clamp(0, starts, D - W)), D and the shape of the starts from get_dimension_size",
)
def dynamic_shape_gather_to_clamped_gather(op: OpLowering[DynamicGatherFacts]) -> Sequence[Value]:
    """Clamp the starts in front of the gather, by limits that are computed at run time.

    Equal: as with static shapes (`hlo_lower.lowering.gather.gather`). A limit that the indices' type does not hold
    becomes the type's greatest value before it is converted, which bounds nothing either.
    """
    build, node = op.build, op.node
    operand, indices = node.operands
    numbers, window = mlir.gather_dimension_numbers(node.raw), node.integers("slice_sizes")
    element = indices.element_type
    low, high = type_range(element) or (0, 0)
    limits = [_limit(build, operand, d, window[d], element, high) for d in numbers.start_index_map]
    if low < 0:
        zeros = broadcast_like(build, build.constant(0, (), element), indices)
        indices = build.maximum(indices, zeros)
    if limits:
        is_implicit = numbers.index_vector_dim == len(indices.shape)
        bound = scalar(build, limits[0], element) if is_implicit else vector(build, limits, element)
        bound = broadcast_like(build, bound, indices, [] if is_implicit else [numbers.index_vector_dim])
        indices = build.minimum(indices, bound)
    return build.clone(node, [operand, indices], [result.raw.type for result in node.results]).results


@plain_rules.lowers(PLAIN, named={PlainOp.DYNAMIC_GATHER}, form="gather with these sizes as an attribute")
def dynamic_gather_to_gather(op: PlainLowering) -> Sequence[Value]:
    """Make an attribute of sizes that are a constant, and clamp the starts, which not every consumer does.

    Equal: the sizes are the only difference between the two ops, and clamping twice is clamping once.
    """
    build, node = op.build, op.node
    operand, indices, sizes = node.operands
    found = sizes.constant()
    if found is None:
        raise DoesNotApply("its sizes are no constant")
    attributes = {**mlir.attributes_of(node.raw), "slice_sizes": mlir.dense_i64([int(n) for n in found])}
    made = build.op(GATHER, [operand, indices], [node.result().raw.type], attributes)
    gather = read_gather(made)
    if gather is None:
        raise DoesNotApply("it has no canonical form")
    inside = gather.clamped(build)
    clamped = build.clone(made, [operand, inside], [node.result().raw.type])
    build.forget(made)
    made.raw.erase()
    return clamped.results


def _limit(build: Builder, operand: Value, dim: int, window: int, element: str, high: int) -> Extent:
    """The greatest start in a dim, in the indices' type."""
    extent = extent_of(build, operand, dim, "i32")
    if isinstance(extent, int):
        return min(extent - window, high)
    limit = build.subtract(extent, build.constant(window, (), "i32"))
    if high < (1 << 31) - 1:
        limit = build.minimum(limit, build.constant(high, (), "i32"))
    return build.convert(limit, element)


class DynamicGatherKind(GatherKind):
    """Gathers of dynamic shape."""

    name = DYNAMIC_GATHER
    domains = DynamicGatherFacts.domains
    families = (rules,)

    def read(self, context: Context, node: Node) -> Subject | None:
        if node.is_static:
            return None
        candidates = (Candidate(DynamicGatherFacts(taken_by(context.target, node))),)
        return Subject(self, node, GATHER, candidates, as_it_stands(context, node))

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        return Code.ONLY_CLAMPED()
