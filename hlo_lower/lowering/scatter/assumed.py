"""Scatters that are assumed to write inside: their indices are clamped while they are lowered, and not in the end.

    %r = scatter(%operand, %i, %update)
    ->
    %c = clamp 0, %i, 63 {hlo_lower.assumed}; %r = scatter(%operand, %c, %update)
    ->
    %c = clamp 0, %i, 63 {hlo_lower.assumed}; %r = dynamic_update_slice %operand, %update, %c
    ->
    %r = dynamic_update_slice %operand, %update, %i

The first step changes what the module means where a window is out of bounds. The second is any lowering, which the
clamp spares a guard, and which is verified. The third changes nothing where the assumption holds: a number between
bounds is its own clamp. A consumer of linalg reads the clamps first (`hlo_lower.lowering.linalg.scalars`).
"""

from dataclasses import dataclass

import numpy as np

from hlo_lower.facts.ranges.transfer import ASSUMED
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.dimension_numbers import NotCanonicalError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.mlir import ScatterNumbers
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.kind import Context
from hlo_lower.lowering.scatter.scatters import asked_for, read_scatters
from hlo_lower.ops.cleanup import erase
from hlo_lower.ops.names import CLAMP

ALONG = "hlo_lower.along"
"""Beside it: the dim along which the components of an index vector lie; the rank where there is one component."""


@dataclass(frozen=True)
class Assumption:
    """What is assumed of the scatters of a module.

    Attributes:
      scatters: those that are assumed to write inside, each with its number and place.
      text: the lowered module with the clamps that stand for it, which can be verified; "" before it is lowered.
    """

    scatters: tuple[str, ...]
    text: str = ""

    def summary(self) -> str:
        """ "1 scatter is assumed to write inside, which is not verified"."""
        count = len(self.scatters)
        told = "1 scatter is" if count == 1 else f"{count:,} scatters are"
        return f"{told} assumed to write inside, which is not verified"


def clamp_indices(context: Context) -> Assumption:
    """Clamp the indices of scatters that are not proved to write inside, as far as `only` and `skip` leave them.

    A scatter of dynamic shape, or without a canonical form, stays as it is.
    """
    told: list[str] = []
    graph = context.graph
    with mlir.active(graph.context):
        for subject in asked_for(context, read_scatters(context)):
            record = subject.describe()
            if record.in_bounds == "unknown" and _clamp(subject.node):
                told.append(f"scatter #{subject.number} at {graph.location(subject.node)}")
    if told:
        graph.forget()
    return Assumption(tuple(told))


def _clamp(node: Node) -> bool:
    """Clamp the indices of a scatter to the starts of windows that lie inside; whether they were clamped."""
    if not all(operand.is_static for operand in node.operands):
        return False
    try:
        scatter = canonicalize(node)
    except NotCanonicalError:
        return False
    limits = [scatter.operand_shape[dim] - scatter.window[dim] for dim in scatter.index_dims]
    build, place = Builder.before(node), len(node.operands) // 2
    indices, along = node.operand(place), ScatterNumbers.of(node.raw).index_vector_dim
    held = indices.element.integer_range
    assert held is not None
    limits = [min(limit, held[1]) for limit in limits]  # no index of its type is greater
    low, high = (_bound(build, indices, along, bounds) for bounds in ([0] * len(limits), limits))
    clamp = build.clamp(low, indices, high)
    assert clamp.node is not None
    clamp.node.raw.attributes[ASSUMED] = mlir.dense_i64(limits)
    clamp.node.raw.attributes[ALONG] = mlir.dense_i64([along])
    node.raw.operands[place] = clamp.raw
    return True


def _bound(build: Builder, indices: Value, along: int, bounds: list[int]) -> Value:
    """A bound of each component, for each index vector."""
    if len(set(bounds)) == 1:
        return build.constant(bounds[0], (), indices.element_type)
    each = build.constant_array(np.asarray(bounds), indices.element_type)
    return build.broadcast(each, indices.static_shape, [along])


def is_assumed(node: Node) -> bool:
    """Whether it is a clamp that is assumed to change nothing."""
    return node.name == CLAMP and node.attribute(ASSUMED) is not None


def release_indices(graph: Graph) -> None:
    """Take the clamps away that are assumed to change nothing."""
    with mlir.active(graph.context):
        for node in filter(is_assumed, graph.nodes()):
            node.result().raw.replace_all_uses_with(node.operand(1).raw)
            erase(graph, node)
    graph.forget()
