"""`mhlo` operations in the form of custom calls, as torch_xla and older JAX export them, made `chlo` operations.

    %1 = stablehlo.custom_call @mhlo.erf(%0) {mhlo.attributes = {}, mhlo.version = 1 : i64}   ->   %1 = chlo.erf %0

What such a call encodes, and when that is not known, is told by `ops/encoded_calls`; what is not known is left.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from hlo_lower.base.causes import Cause
from hlo_lower.base.registry import FactsByName, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.kind import Context, OpLowering, Refused, Subject
from hlo_lower.lowering.engine.legality import Refusal
from hlo_lower.lowering.matrices import is_lapack
from hlo_lower.lowering.plain.chlo import TakenChlo, written_out
from hlo_lower.lowering.plain.composite import LegalizedKind
from hlo_lower.lowering.sort import becomes_sort
from hlo_lower.ops import top_k_calls
from hlo_lower.ops.encoded_calls import (
    ENCODED,
    KNOWN,
    KNOWN_OF_TOP_K,
    NUMERICS,
    TOP_K,
    VERSION,
    attributes_of,
    why_unknown,
)
from hlo_lower.ops.names import CUSTOM_CALL, SORT
from hlo_lower.ops.spec import TO_FULL, TO_SHARD
from hlo_lower.ops.targets.target import Target

OWN = frozenset(
    {"call_target_name", "backend_config", "has_side_effect", "called_computations", "api_version"}
    | {"operand_layouts", "result_layouts", "output_operand_aliases", ENCODED, VERSION}
)
"""The attributes that make it a custom call; others (shardings) go over."""

NOTES = frozenset({"Sharding", TO_SHARD, TO_FULL, "annotate_device_placement"})
"""Custom calls that only say where a tensor is to live."""


class Meaning(Enum):
    """Whether it is known what it computes."""

    KNOWN = "known"
    SORTED = "sorted by a function"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class CustomCallFacts(FactsByName):
    """The facts of one custom call.

    Attributes:
      meaning, taken: the facts that rules constrain; taken is how the target takes the `chlo` operation that it is.
      calls: what it calls ("mhlo.erf"), for conditions of rules.
      attributes: those of the `chlo` operation.
      why: why its meaning is not known; None where it is.
    """

    meaning: Meaning
    taken: TakenChlo
    calls: str
    attributes: Mapping[str, mlir.RawAttribute]
    why: Cause | None = None


def custom_call_facts(node: Node, *, whole: Collection[str]) -> CustomCallFacts:
    """The facts of a custom call.

    Args:
      node: the custom call.
      whole: the names of what the target takes whole ("chlo.erf").
    """
    name = mlir.call_target(node.raw)
    taken = TakenChlo.WHOLE if KNOWN.get(name, "") in whole else TakenChlo.WRITTEN_OUT
    raw, encoded = attributes_of(node)
    why = why_unknown(node)
    if why:
        return CustomCallFacts(Meaning.UNKNOWN, taken, name, {}, why)
    if top_k_calls.comparator_of(node) is not None:
        return CustomCallFacts(Meaning.SORTED, taken, name, {})
    if name in top_k_calls.NAMES:
        with mlir.active(node.raw.context):
            count = mlir.parse_attribute(f"{top_k_calls.count_of(node)} : i64")
        return CustomCallFacts(Meaning.KNOWN, taken, name, {"k": count})
    known = {*KNOWN_OF_TOP_K, *NUMERICS}
    own = {"k": encoded["k"]} if name == TOP_K else {}
    extra = {key: value for key, value in {**encoded, **raw}.items() if key not in OWN | known}
    return CustomCallFacts(Meaning.KNOWN, taken, name, {**own, **extra})


rules = RuleList()


@rules.lowers(CUSTOM_CALL, meaning={Meaning.KNOWN}, taken={TakenChlo.WHOLE}, form="its chlo operation")
def custom_call_to_chlo(op: OpLowering[CustomCallFacts]) -> Sequence[Value]:
    """Replace a known custom call by the operation that it encodes, for a target that takes that.

    Equal: the encoding is XLA's own, read attribute by attribute; what says more than the operation is not known.
    """
    types = [result.raw.type for result in op.node.results]
    return op.build.op(KNOWN[op.facts.calls], op.node.operands[:1], types, dict(op.facts.attributes)).results


@rules.lowers(
    CUSTOM_CALL, meaning={Meaning.KNOWN}, taken={TakenChlo.WRITTEN_OUT}, form="its chlo operation, then StableHLO"
)
def custom_call_to_stablehlo(op: OpLowering[CustomCallFacts]) -> Sequence[Value]:
    """Replace a known custom call by what the operation that it encodes is written out as.

    Equal as `custom_call_to_chlo` and `chlo_to_stablehlo` are, one after the other.
    """
    return written_out(op.graph, op.build, op.node, KNOWN[op.facts.calls], op.facts.attributes)


@rules.lowers(CUSTOM_CALL, meaning={Meaning.SORTED}, form="a sort by its function, and the first of each row")
def custom_call_to_sort(op: OpLowering[CustomCallFacts]) -> Sequence[Value]:
    """Sort by the function that the call names, and take the first elements.

        %v, %i = custom_call @ApproxTopK(%x, %iota, ...) {called_computations = [@less], ...}
        ->   %s, %p = sort(%x, %iota) by less;  %v = the first of %s;  %i = the first of %p

    Equal: so XLA computes it where it does not approximate. Where the function is no order, as LT of floats with NaN,
    what comes first is the sort's own choice, before and after.
    """
    build, node = op.build, op.node
    comparator = top_k_calls.comparator_of(node)
    assert comparator is not None
    given, dim = node.operands[:2], len(node.operand(0).static_shape) - 1
    with mlir.active(node.raw.context):
        attributes = {"dimension": mlir.i64_attribute(dim), "is_stable": mlir.parse_attribute("false")}
    sort = build.op(SORT, given, [value.raw.type for value in given], attributes, regions=1)
    build.region(sort, 0, [a.raw.type for a in comparator.arguments], lambda inner, own: inner.inline(comparator, own))
    starts = [0] * (dim + 1)
    return [build.slice(s, starts, r.static_shape) for s, r in zip(sort.results, node.results, strict=True)]


class CustomCallKind(LegalizedKind):
    """Custom calls, but those that only say where a tensor is to live, and those to LAPACK (`linear_algebra`)."""

    name = op = CUSTOM_CALL
    domains = CustomCallFacts.domains
    families = (rules,)
    owned = None

    def read(self, context: Context, node: Node) -> Subject | None:
        name = mlir.call_target(node.raw)
        if name in NOTES or is_lapack(name):
            return None
        facts = custom_call_facts(node, whole=context.target.composites)
        is_top_k = KNOWN.get(name) == KNOWN[TOP_K]
        if is_top_k and facts.meaning is Meaning.KNOWN and becomes_sort(context.target, node):
            facts = replace(facts, taken=TakenChlo.WHOLE)  # as chlo.top_k, it is a sort after the scatters
        return self.subject(context, node, facts, label=f"{CUSTOM_CALL} @{name}")

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """The `chlo` operation that it is, is taken whole or looked at next, and so are sorts."""
        return super().refusal(target, graph, [node for node in built if node.name not in (*KNOWN.values(), SORT)])

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        facts = subject.candidates[0].facts
        assert isinstance(facts, CustomCallFacts)
        return facts.why or super().why_left(context, subject, refused)
