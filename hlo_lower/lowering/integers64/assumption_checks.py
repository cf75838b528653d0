"""One more result of every public function: whether what was assumed of a module held in this run.

    func.func public @main(%0: tensor<f32>) -> (tensor<i32>, tensor<i1> {jax.result_info = "assumptions_hold"})

What is tested in a loop is carried by it, what is tested in a branch is a result of the branch, what is tested in a
private function is a result of that.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.core
import jax.export
import numpy as np

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.lowering.integers64.overflow import fits
from hlo_lower.ops.names import CASE, IF, WHILE

RESULT = "assumptions_hold"


def give_result(graph: Graph, tested: Collection[Node]) -> None:
    """Give each public function of a module one more result, true where all tests were true; in place.

    Args:
      graph: the module, its integers narrowed.
      tested: the nodes that are tested (`overflow.fits`), all in reach of a public function.

    Raises:
      NotLoweredError: a public function is named otherwise than by calls, so that its type cannot change.
    """
    with mlir.active(graph.context):
        _Threading(graph, tested).run()
    graph.forget()


class _Threading:
    def __init__(self, graph: Graph, tested: Collection[Node]) -> None:
        self._graph = graph
        self._tests: dict[Block, list[Value]] = {}  # by block, as what a node is hashed by changes with its operands
        for node in tested:
            self._tests.setdefault(Block(mlir.block_of(node.raw)), []).append(fits(node))
        self._functions = graph.functions
        self._known: dict[str, bool] = {}

    def run(self) -> None:
        for name, function in self._functions.items():
            if function.is_public and function.has_body:
                self._gives(name)

    def _gives(self, name: str) -> bool:
        """Whether a function gives what was tested, as its last result; it does from now on."""
        if name not in self._known:
            function = self._functions.get(name)
            self._known[name] = function is not None and function.has_body and self._extend(function)
        return self._known[name]

    def _extend(self, function: Function) -> bool:
        held = self._held(function.body)
        if not held and not function.is_public:
            return False
        if self._graph.has_other_reference(function.name):
            what = f"@{function.name} is named by a composite or a custom call, and so cannot get a result more"
            raise NotLoweredError(self._graph.name, what, next_step="convert without --checked, or with --legalize")
        _name_result(function)
        _return_also(function.body, held)
        mlir.set_signature(function.node.raw)
        return True

    def _held(self, block: Block) -> list[Value]:
        """Whether each of the tests held of which a block knows."""
        found = self._tests.get(block, [])
        for node in list(block.nodes):
            if node.name == "func.call":
                found += [_called(node)] if self._gives(node.callee) else []
            elif node.name == WHILE:
                inner = self._held(node.blocks[1])
                found += [_carried(node, inner)] if inner else []
            elif node.name in (CASE, IF):
                branches = [self._held(branch) for branch in node.blocks]
                found += [_chosen(node, branches)] if any(branches) else []
        return found


def _all_of(build: Builder, held: Sequence[Value]) -> Value:
    if not held:
        return build.constant(1, (), "i1")
    found = held[0]
    for other in held[1:]:
        found = build.and_(found, other)
    return found


def _return_also(block: Block, held: Sequence[Value]) -> None:
    """Let a block return whether all tests held, behind what it returns."""
    last = block.terminator
    build = Builder.before(last)
    build.op(last.name, [*last.operands, _all_of(build, held)], [], mlir.attributes_of(last.raw))
    last.raw.erase()


def _replaced(node: Node, operands: Sequence[Value]) -> Node:
    """A node with one result more, its regions moved over, in the place of another one."""
    build = Builder.before(node)
    types = [*(value.raw.type for value in node.results), mlir.tensor_type((), "i1")]
    attributes = mlir.attributes_of(node.raw)
    fresh = build.op(node.name, operands, types, attributes, regions=len(node.raw.regions))
    for number, block in enumerate(node.blocks):
        mlir.move_block(block.raw, fresh.raw, number)
    for before, after in zip(node.results, fresh.results, strict=False):
        before.raw.replace_all_uses_with(after.raw)
    node.raw.erase()
    return fresh


def _called(node: Node) -> Value:
    return _replaced(node, node.operands).results[-1]


def _carried(node: Node, held: Sequence[Value]) -> Value:
    """A loop that carries whether its tests held in all trips so far."""
    start = Builder.before(node).constant(1, (), "i1")
    body = node.blocks[1]
    for block in node.blocks:
        mlir.add_argument(block.raw, start.raw.type, node.raw.location)
    _return_also(body, [body.arguments[-1], *held])
    return _replaced(node, [*node.operands, start]).results[-1]


def _chosen(node: Node, branches: Sequence[Sequence[Value]]) -> Value:
    for block, held in zip(node.blocks, branches, strict=True):
        _return_also(block, held)
    return _replaced(node, node.operands).results[-1]


def _name_result(function: Function) -> None:
    """Say what the result is, in the place where JAX says what a result is."""
    raw, count = function.node.raw, len(function.body.terminator.operands)
    given = [str(entry) for entry in raw.attributes["res_attrs"]] if "res_attrs" in raw.attributes else ["{}"] * count
    if function.is_public or "res_attrs" in raw.attributes:
        told = f'{{jax.result_info = "{RESULT}"}}' if function.is_public else "{}"
        raw.attributes["res_attrs"] = mlir.parse_attribute(f"[{', '.join([*given, told])}]")


def with_result(graph: Graph) -> jax.export.Exported | None:
    """The `Exported` that a graph came from: it gives a pair, of what it gave and of whether the assumptions held.

    None where it came from none.
    """
    exported: Any = graph.exported
    if exported is None:
        return None
    tree: Any = jax.tree_util
    given = exported.out_tree.unflatten([0] * exported.out_tree.num_leaves)
    return replace(
        exported,
        out_tree=tree.tree_structure((given, 0)),
        out_avals=(*exported.out_avals, jax.core.ShapedArray((), np.dtype(np.bool_))),
        _out_named_shardings=(*exported._out_named_shardings, None),  # pyright: ignore[reportPrivateUsage]
        out_shardings_hlo=(*exported.out_shardings_hlo, None),
        mlir_module_serialized=mlir.module_portable_artifact(graph.module),
    )
