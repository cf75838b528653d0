"""What a rule built that the target refuses for its element types alone, and that the stage of element types lowers."""

from collections.abc import Callable

from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Subject
from hlo_lower.lowering.engine.legality import RETURNS, dtypes_on
from hlo_lower.lowering.types.kind import (
    WITH_BODIES,
    ComplexTypeKind,
    FloatTypeKind,
    IntegerTypeKind,
    is_refused_by_name,
    refused_types,
    storage_of,
)
from hlo_lower.ops.names import CASE, IF, WHILE

MOVING = frozenset({"func.call", WHILE, IF, CASE, *RETURNS})
"""Ops that get other types as they stand, where those are what a type is stored in."""


class Later:
    """Says of ops whether they will be lowered; it tries those of the same name and types once.

    Args:
      context: the module.
      can_lower: whether a rule lowers an op into what the target takes; nothing is left of the trial.
    """

    def __init__(self, context: Context, can_lower: Callable[[Subject], bool]) -> None:
        self._context = context
        self._can_lower = can_lower
        self._kinds = (ComplexTypeKind(), IntegerTypeKind(), FloatTypeKind())
        self._known: dict[tuple[object, ...], bool] = {}

    def lowers(self, node: Node) -> bool:
        """Whether an op that is refused will be lowered, alone or with what it stands in, or stored otherwise."""
        parent = node.parent
        if parent is not None and parent.name in WITH_BODIES:
            return self.lowers(parent)
        target = self._context.target
        refused = refused_types(target, node.name, dtypes_on(node))
        if not refused or is_refused_by_name(target, node):
            return False
        if node.name in MOVING:
            becomes = {d: storage_of(target, d) for d in dtypes_on(node)}
            return not refused_types(target, node.name, frozenset(c.after if c else d for d, c in becomes.items()))
        inner = tuple(n.name for block in node.blocks for n in block.nodes) if node.has_regions else ()
        types = tuple(str(value.raw.type) for value in (*node.operands, *node.results))
        key = (node.name, types, inner)
        if key not in self._known:
            subjects = filter(None, (kind.read(self._context, node) for kind in self._kinds))
            self._known[key] = any(map(self._can_lower, subjects))
        return self._known[key]
