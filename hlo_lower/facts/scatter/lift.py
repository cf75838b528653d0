"""Lift a scatter's region from scalars to whole windows.

`region(current, update)` is defined on scalars and applied to each element of a window on its own, so an elementwise op
of the region becomes the same op on tensors of the window's shape, a constant or a captured scalar becomes a broadcast,
and a call is lifted through its callee's body. A barrier, or a note on where a scalar is to live, is left out. What no
op lifts goes through `stablehlo.map`, whose semantics are just this ("applies a map function to the inputs
elementwise", StableHLO spec, map).
"""

from collections.abc import Mapping, Sequence

from hlo_lower.facts.values.sources import is_identity
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import broadcast_like
from hlo_lower.ir.regions import captured_values, used_by
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.names import BITCAST_CONVERT, CONSTANT, MAP
from hlo_lower.ops.spec import ELEMENTWISE

LIFTED_OPS = frozenset(op for op in ELEMENTWISE if op.startswith("stablehlo.")) | {BITCAST_CONVERT}
"""Elementwise ops: on scalars and on tensors the same, element by element."""


def lift(
    build: Builder,
    graph: Graph,
    region: Block,
    currents: Sequence[Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """Apply a region to windows of current values and of updates, all of one shape, in the region's types.

    Args:
      build: where to build.
      graph: for the functions that the region calls.
      region: the update computation.
      currents, updates: one window per operand of the scatter.
      captured: for values that the region takes from around it, those to take instead (inside a loop's body).
    """
    values = [*currents, *updates]
    found = lift_elementwise(build, graph, region, values, captured)
    return _map(build, graph, region, values, captured or {}) if found is None else found


def lift_elementwise(
    build: Builder, graph: Graph, region: Block, values: Sequence[Value], captured: Mapping[Value, Value] | None = None
) -> list[Value] | None:
    """What a region of scalars returns for each element of tensors of one shape; None where an op is not elementwise.

    Args:
      build, graph, captured: as for `lift`.
      region: of any op: an update computation, what a map, a reduction or a window computes.
      values: for each argument a tensor.
    """
    if not can_lift(graph, region):
        return None
    return _Lifter(build, graph, values[-1], captured or {}).apply(region, values)


def can_lift(graph: Graph, block: Block) -> bool:
    """Whether every node of a region, and of the functions that it calls, is elementwise on scalars."""
    return all(_can_lift_node(graph, node) for node in list(block.nodes)[:-1])


def _can_lift_node(graph: Graph, node: Node) -> bool:
    if not all(v.is_tensor and v.shape == () for v in (*node.operands, *node.results)):
        return False
    if node.name == "func.call":
        callee = graph.functions.get(node.callee)
        return callee is not None and callee.has_body and can_lift(graph, callee.body)
    return node.name in LIFTED_OPS or node.name == CONSTANT or is_identity(node)


class _Lifter:
    def __init__(self, build: Builder, graph: Graph, like: Value, captured: Mapping[Value, Value]) -> None:
        self._captured = captured
        self._build = build
        self._graph = graph
        self._like = like

    def apply(self, block: Block, arguments: Sequence[Value]) -> list[Value]:
        """The values that a block returns, for arguments of the window's shape."""
        lifted = dict(zip(block.arguments, arguments, strict=True))
        for node in list(block.nodes)[:-1]:
            if node.name == CONSTANT:
                constant = self._build.clone(node, [], [node.results[0].raw.type]).results[0]
                results: Sequence[Value] = [broadcast_like(self._build, constant, self._like)]
            elif node.name == "func.call":
                inputs = [self._lift(v, lifted) for v in node.operands]
                results = self.apply(self._graph.functions[node.callee].body, inputs)
            elif is_identity(node):
                results = [self._lift(v, lifted) for v in node.operands]
            else:
                types = [mlir.tensor_type(self._like.shape, mlir.tensor_element(r.raw.type)) for r in node.results]
                results = self._build.clone(node, [self._lift(v, lifted) for v in node.operands], types).results
            lifted.update(zip(node.results, results, strict=True))
        return [self._lift(v, lifted) for v in block.terminator.operands]

    def _lift(self, value: Value, lifted: dict[Value, Value]) -> Value:
        """The window for a scalar of the region; a scalar captured from around it is broadcast (trap 23)."""
        if value not in lifted:
            lifted[value] = broadcast_like(self._build, self._captured.get(value, value), self._like)
        return lifted[value]


def _map(
    build: Builder, graph: Graph, region: Block, inputs: Sequence[Value], captured: Mapping[Value, Value]
) -> list[Value]:
    """One `stablehlo.map` per result, its region a copy of what computes that result, with what it calls inside.

    A captured scalar that is no constant is one input more, the same everywhere: XLA refuses to capture it (trap 44).
    An input that the result does not depend on is left out: XLA refuses float types of several widths in one map.
    """
    like, shape = inputs[0], inputs[0].shape
    given = [v for v in captured_values(region) if v.is_tensor and v.shape == () and not _is_constant(v)]
    windows = dict(zip(region.arguments, inputs, strict=True))
    windows.update((v, broadcast_like(build, captured.get(v, v), like)) for v in given)
    results: list[Value] = []
    for i, returned in enumerate(region.terminator.operands):
        result_type = mlir.tensor_type(shape, mlir.tensor_element(returned.raw.type))
        dimensions = {"dimensions": mlir.dense_i64(list(range(len(shape))))}
        nodes, read = _backward_slice(region, returned)
        taken = [v for v in windows if v in read] or [region.arguments[i]]
        node = build.op(MAP, [windows[v] for v in taken], [result_type], dimensions, regions=1)
        build.copy_nodes(nodes, returned, node, 0, taken, captured)
        _inline(build, graph, node, frozenset())
        results.append(node.results[0])
    return results


def _backward_slice(region: Block, returned: Value) -> tuple[list[Node], set[Value]]:
    """The nodes of a region that a value depends on, in order, and all values that they use."""
    read = {returned}
    nodes: list[Node] = []
    for node in reversed(list(region.nodes)[:-1]):
        if read.intersection(node.results):
            nodes.append(node)
            read.update(used_by(node))
    return nodes[::-1], read


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.name == CONSTANT


def _inline(build: Builder, graph: Graph, node: Node, entered: frozenset[str]) -> None:
    """Put the bodies of functions and composites in the place of their calls in a node's regions, at any depth, and
    leave identities out.

    XLA's CPU compiler takes an `if` in the region of a map, but not in a function that the region calls. A call of a
    function that has been entered, a cycle, stays.
    """
    for block in node.blocks:
        pending = [(inner, entered) for inner in block.nodes]
        while pending:
            inner, around = pending.pop()
            if is_identity(inner):
                _drop(build, inner, inner.operands)
                continue
            name = inner.body_name
            callee = graph.functions.get(name)
            if callee is None or not callee.has_body or name in around:
                _inline(build, graph, inner, around)
                continue
            copies = {a.raw: v.raw for a, v in zip(callee.body.arguments, inner.operands, strict=True)}
            for original in list(callee.body.nodes)[:-1]:
                copy = Node(mlir.clone_before(original.raw, inner.raw, copies))
                copies.update((a.raw, b.raw) for a, b in zip(original.results, copy.results, strict=True))
                pending.append((copy, around | {name}))
            returned = callee.body.terminator.operands
            _drop(build, inner, [Value(copies[value.raw]) for value in returned])


def _drop(build: Builder, node: Node, values: Sequence[Value]) -> None:
    """Use values in the place of a node's results, and erase it."""
    mlir.replace_results(node.raw, [value.raw for value in values])
    if node in build.built:
        build.built.remove(node)  # what is erased must not be looked at again
    node.raw.erase()
