"""Integers without signs: linalg has no `ui32`, its operations know how they read their bits.

jaxlib's pass reads unsigned types into its operations, but leaves them at the borders: in the signatures of functions,
in what loops carry, and in casts to and fro. Here every such type becomes the signless one of the same width, and the
casts between equals go. An operation that is left as it is may read the sign: it keeps its types, between casts.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.linalg_report import CAST, is_foreign
from hlo_lower.ops.names import RETURN

UNSIGNED = re.compile(r"(?<![A-WYZa-wyz_])ui(\d+)\b")
"""An unsigned type, in the text of a type: `ui32` of `tensor<4xui32>`."""


def make_signless(graph: Graph, rewritten: Collection[str]) -> tuple[str, ...]:
    """Make every unsigned type of a module signless.

    Args:
      graph: the module, after jaxlib's pass.
      rewritten: operations of other dialects that are going to be replaced; the others keep their types.

    Returns:
      The unsigned types that there were.
    """
    nodes: list[Node] = []
    graph.walk(nodes.append)
    with mlir.active(graph.context):
        types = _Types()
        if not any(types.signless(value) for node in nodes for value in _values(node)):
            return ()
        keeps = [_keeps_types(node, rewritten) for node in nodes]
        for node, is_kept in zip(nodes, keeps, strict=True):
            if is_kept:
                _fence(node, types)
        for node, is_kept in zip(nodes, keeps, strict=True):
            if not is_kept:
                _retype(node, types)
        for node in nodes:
            if node.name == CAST and [v.raw.type for v in node.operands] == [v.raw.type for v in node.results]:
                for result, operand in zip(node.results, node.operands, strict=True):
                    result.raw.replace_all_uses_with(operand.raw)
                node.raw.erase()
    return tuple(sorted(types.found))


@dataclass
class _Types:
    """Types without signs, each found once: printing a type takes long.

    Attributes:
      found: the unsigned element types that were met.
    """

    found: set[str] = field(default_factory=set[str])
    _known: dict[mlir.RawType, mlir.RawType | None] = field(default_factory=dict[mlir.RawType, mlir.RawType | None])

    def signless(self, value: Value) -> mlir.RawType | None:
        """The type of a value without signs, or None where it has none."""
        raw_type = value.raw.type
        if raw_type not in self._known:
            text = str(raw_type)
            unsigned = {m[0] for m in UNSIGNED.finditer(text)}
            self.found |= unsigned
            self._known[raw_type] = mlir.parse_type(UNSIGNED.sub(r"i\1", text)) if unsigned else None
        return self._known[raw_type]


def _values(node: Node) -> list[Value]:
    """The results of a node and the arguments of its regions."""
    return [*node.results, *_arguments(node)]


def _arguments(node: Node) -> list[Value]:
    return [argument for block in node.blocks for argument in block.arguments] if node.has_regions else []


def _keeps_types(node: Node, rewritten: Collection[str]) -> bool:
    """Whether a node is one that is left as it is, or ends a region of such a one."""
    if node.name == RETURN:
        parent = node.parent
        return parent is not None and _keeps_types(parent, rewritten)
    return is_foreign(node) and node.name != CAST and node.name not in rewritten


def _fence(node: Node, types: _Types) -> None:
    """Put casts around an operation that keeps its types: in front of operands, behind results and arguments."""
    before = Builder.before(node)
    for number, operand in enumerate(node.operands):
        if types.signless(operand) is not None:
            node.raw.operands[number] = before.op(CAST, [operand], [operand.raw.type]).result().raw
    for result in node.results:
        if (plain := types.signless(result)) is not None:
            cast = before.op(CAST, [result], [plain])
            mlir.move_after(cast.raw, node.raw)
            _put_behind(result, cast)
    for argument in _arguments(node):
        if (plain := types.signless(argument)) is not None:
            block = argument.block
            assert block is not None
            cast = _beginning(block, node).op(CAST, [argument], [plain])
            _put_behind(argument, cast)


def _beginning(block: Block, node: Node) -> Builder:
    return Builder(mlir.insert_at_begin(block.raw), node.raw.location)


def _put_behind(value: Value, cast: Node) -> None:
    """Let all users of a value use its cast instead."""
    value.raw.replace_all_uses_with(cast.result().raw)
    cast.raw.operands[0] = value.raw


def _retype(node: Node, types: _Types) -> None:
    """Give the results of a node, the arguments of its regions and the signature of a function their signless types."""
    for value in _values(node):
        plain = types.signless(value)
        if plain is not None:
            mlir.set_type(value.raw, plain)
    signature = node.attribute("function_type") if node.name == "func.func" else None
    if signature is not None and UNSIGNED.search(str(signature)):
        node.raw.attributes["function_type"] = mlir.parse_attribute(UNSIGNED.sub(r"i\1", str(signature)))
