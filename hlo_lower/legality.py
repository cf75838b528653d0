"""What a lowering adds to a module, held against the target: as far as it is known before, and as it was built.

Before, for the choice: a rule declares the ops that it may build; the scatter says which element types will stand on
some of them, and its region which ops come with it. This is what a rule is sure to need, so that one which cannot be
legal is no candidate. After, what was built is read op by op, regions and called functions included, and every element
type on it: nothing counts that the target does not take. What the module holds besides is not looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.analysis.identity import is_identity
from hlo_lower.causes import Cause, Code
from hlo_lower.graph import Block, Graph, Node
from hlo_lower.scatter.canonical import CanonicalScatter
from hlo_lower.scatter.dynamic import DynamicFacts, DynamicScatter
from hlo_lower.scatter.facts import Offsets, ScatterFacts
from hlo_lower.scatter.lift import can_lift
from hlo_lower.targets import Target

REGION = "stablehlo.map"
"""What a rule declares that applies the region: it becomes the region's own ops, or a map of them."""

INDICES = "stablehlo.minimum"
"""What a rule declares that reads indices at run time: it saturates those that the start type does not hold."""

RETURNS = ("stablehlo.return", "func.return")

ON_DATA = frozenset(
    f"stablehlo.{op}"
    for op in ("dynamic_slice", "dynamic_update_slice", "gather", "pad", "real_dynamic_slice", "select", "while")
)
"""Ops that a lowering uses on the operands' or the updates' elements."""

ON_STARTS = frozenset(
    f"stablehlo.{op}" for op in ("clamp", "compare", "dynamic_slice", "dynamic_update_slice", "iota", "while")
)
"""Ops that a lowering uses on starts, positions or counters."""

ON_MASKS = frozenset({"stablehlo.compare", "stablehlo.select"})
"""Ops that give or take a predicate."""


@dataclass(frozen=True)
class ScatterTarget:
    """A target as the candidates for one scatter meet it; what the registry is given for its choice.

    Attributes:
      target: the target.
      data: element types of the operands and of what the region computes them in.
      start: element type of starts.
      region: the ops that come with the region, each with the element types on it.
      indices: the ops that bring indices from run time to the start type, each with the element types on it.
    """

    target: Target
    data: frozenset[str]
    start: str
    region: frozenset[tuple[str, frozenset[str]]]
    indices: frozenset[tuple[str, frozenset[str]]] = frozenset()

    @classmethod
    def of(
        cls,
        target: Target,
        graph: Graph,
        scatter: CanonicalScatter | DynamicScatter,
        facts: ScatterFacts | DynamicFacts,
    ) -> "ScatterTarget":
        """The target for a scatter."""
        if target.restricts_only_scatter:  # then nothing of the scatter matters, and looking at it takes time
            return cls(target, frozenset(), "", frozenset())
        data = frozenset(v.element_type for v in scatter.operands) | {str(t) for t in scatter.region_types}
        start = "i64" if isinstance(facts, DynamicFacts) and facts.split else scatter.start_type
        constant = isinstance(facts, ScatterFacts) and facts.offsets is Offsets.CONSTANT
        indices = frozenset[tuple[str, frozenset[str]]]() if constant else frozenset(_index_ops(scatter, start))
        return cls(target, data, start, frozenset(_region_ops(graph, scatter.region)), indices)

    def refusals(self, ops: Sequence[str]) -> tuple[Cause, ...]:
        """What the target refuses of a rule that declares these ops: element types first, then ops."""
        needed: dict[str, frozenset[str]] = {}
        for op in ops:
            own = () if op == REGION else ((op, self._dtypes_on(op)),)
            along = self.region if op == REGION else self.indices if op == INDICES else ()
            for inner, dtypes in (*own, *along):
                needed[inner] = needed.get(inner, frozenset()) | dtypes
        return tuple(dict.fromkeys((*self._refused_dtypes(needed), *self._refused_ops(needed))))

    def _dtypes_on(self, op: str) -> frozenset[str]:
        """The element types that a rule is sure to put on an op if it builds it."""
        if not self.data:
            return frozenset()
        data = self.data if op in ON_DATA else frozenset[str]()
        start = frozenset({self.start} if op in ON_STARTS else ())
        return data | start | frozenset({"i1"} if op in ON_MASKS else ())

    def _refused_dtypes(self, needed: dict[str, frozenset[str]]) -> Iterator[Cause]:
        for dtype in sorted(frozenset[str]().union(*needed.values())):
            reason = self.target.refuses_dtype(dtype)
            if reason is not None:
                yield Code.REFUSES_DTYPE(self.target.name, dtype, None, reason or None)

    def _refused_ops(self, needed: dict[str, frozenset[str]]) -> Iterator[Cause]:
        unlisted = [op for op in sorted(needed) if self.target.refuses_op(op) == ""]
        if unlisted:
            yield Code.REFUSES_OPS(self.target.name, tuple(unlisted), None)
        for op, dtypes in sorted(needed.items()):
            reason = self.target.refuses_op(op)
            if reason:
                yield Code.REFUSES_OPS(self.target.name, (op,), reason)
            elif reason is None and (refused := sorted(d for d in dtypes if self.target.refuses_op_on(op, d))):
                yield Code.REFUSES_OP_ON(self.target.name, op, tuple(refused))


def _index_ops(scatter: CanonicalScatter | DynamicScatter, start: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The ops that indices are brought to the start type by, each with its element types."""
    own = scatter.indices.element_type
    if own != start:
        yield "stablehlo.convert", frozenset({own, start})
    for op, needed in zip(("stablehlo.maximum", INDICES), scatter.saturated, strict=True):
        if needed:
            yield op, frozenset({own})


def _region_ops(graph: Graph, region: Block) -> Iterator[tuple[str, frozenset[str]]]:
    """The ops that stand in the module once the region is applied to windows, each with its element types."""
    nodes = [node for node in _nodes_below(graph, region) if not is_identity(node)]  # they are left out
    if not can_lift(graph, region):
        yield REGION, frozenset(a.element_type for a in region.arguments if a.is_tensor)
        yield from ((node.name, dtypes_on(node)) for node in nodes)
        return
    for node in nodes:
        if node.name == "stablehlo.constant":
            yield "stablehlo.broadcast_in_dim", dtypes_on(node)
        if node.name != "func.call":
            yield node.name, dtypes_on(node)


def _nodes_below(graph: Graph, block: Block) -> Iterator[Node]:
    """The nodes of a block, those in their regions and in the functions that they call; terminators left out."""
    for node in block.nodes:
        if node.name not in RETURNS:
            yield node
            yield from _nodes_within(graph, node)


def _nodes_within(graph: Graph, node: Node) -> Iterator[Node]:
    if node.name == "func.call":
        callee = graph.functions.get(node.callee)
        blocks = (callee.body,) if callee is not None and callee.has_body else ()
    else:
        blocks = node.blocks if node.has_regions else ()
    for inner in blocks:
        yield from _nodes_below(graph, inner)


def dtypes_on(node: Node) -> frozenset[str]:
    """The element types among a node's operands and results, and the arguments of its regions."""
    arguments = (a for block in node.blocks for a in block.arguments) if node.has_regions else ()
    values = (*node.operands, *node.results, *arguments)
    return frozenset(mlir.tensor_element_name(v.raw.type) for v in values if v.is_tensor)


@dataclass(frozen=True)
class Refusal:
    """What a target refuses of what was built: the op, and why."""

    op: str
    reason: Cause


def refused_of(target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
    """The first of these ops, or of those in their regions and called functions, that the target does not take.

    Args:
      target: the target.
      graph: for the functions that are called.
      built: what a lowering built.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    for top in built:
        inner = _nodes_within(graph, top) if top.name == "func.call" or top.has_regions else ()
        for node in (top, *inner):
            key = (node.name, dtypes_on(node) if target.restricts_dtypes else frozenset[str]())
            if key not in seen:
                seen.add(key)
                reason = target.refusal(*key)
                if reason is not None:
                    return Refusal(node.name, reason)
    return None
