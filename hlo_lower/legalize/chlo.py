"""`chlo` operations, made plain StableHLO by jaxlib's own pass, function by function.

The pass writes each one out at its place and under its location (erf as a quotient of polynomials, top_k as a sort) and
touches nothing else. It drops attributes that it does not know, so a sharding is carried over by a mark on the result.
"""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.graph import Builder, Graph, Node, replace_results
from hlo_lower.lowerings.sharding import FRONTEND, GSPMD, SHARDY

TO_STABLEHLO = "func.func(chlo-legalize-to-stablehlo)"
FROM_SHAPE = "func.func(shape-legalize-to-stablehlo)"
"""For dynamic shapes, which the first pass computes with operations of the shape dialect."""

MARK = "hlo_lower.sharded"
KEPT = "hlo_lower.kept"
CARRIED = (SHARDY, GSPMD, FRONTEND)


def write_out(graph: Graph, function: Node, nodes: Sequence[Node], kept: Sequence[Node] = ()) -> None:
    """Replace the `chlo` operations of a function.

    Args:
      graph: the module.
      function: the function.
      nodes: the `chlo` operations in it that go; they are gone then, or still there if the pass leaves them.
      kept: all others in it. The pass knows no exceptions, so a custom call stands in for each while it runs.

    Raises:
      mlir.PassError: the pass fails.
    """
    marks = [mark for node in nodes if (mark := _marked(node)) is not None]
    is_static = all(value.is_static for node in nodes for value in (*node.operands, *node.results))
    names, attributes = [node.name for node in kept], [mlir.attributes_of(node.raw) for node in kept]
    named = {"call_target_name": mlir.parse_attribute(f'"{KEPT}"')}
    away = [replaced(node, "stablehlo.custom_call", named) for node in kept]
    mlir.run_pass(function.raw, TO_STABLEHLO)
    if not is_static:
        mlir.run_pass(function.raw, FROM_SHAPE)
    for name, stand_in, own in zip(names, away, attributes, strict=True):
        replaced(stand_in, name, own)
    for mark in marks:
        producer = mark.operand(0).node
        for name in CARRIED:
            attribute = mark.attribute(name)
            if producer is not None and attribute is not None and len(producer.results) == len(mark.operands):
                producer.raw.attributes[name] = attribute
        mark.raw.erase()


def replaced(node: Node, name: str, attributes: dict[str, mlir.RawAttribute]) -> Node:
    """Another operation with a node's operands and result types, in its place."""
    made = Builder.before(node).op(name, node.operands, [result.raw.type for result in node.results], attributes)
    replace_results(node, made.results)
    node.raw.erase()
    return made


def _marked(node: Node) -> Node | None:
    """A note behind an operation that holds its shardings, or None where it has none."""
    attributes = {name: value for name, value in mlir.attributes_of(node.raw).items() if name in CARRIED}
    if not attributes:
        return None
    build = Builder(mlir.insert_after(node.raw), node.raw.location)
    own = {"call_target_name": mlir.parse_attribute(f'"{MARK}"'), "has_side_effect": mlir.parse_attribute("true")}
    return build.op("stablehlo.custom_call", node.results, [], {**own, **attributes})
