"""Side effects in a scatter's region: how often and in which order they happen is not kept, so they are refused.

A scatter runs its region once for each element that is written; what it is lowered to may run it for elements that are
dropped as well, or for several results once each. For a pure region that is the same.
"""

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.scatter.dimension_numbers import NotCanonicalError
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node
from hlo_lower.ops.names import CUSTOM_CALL, RNG
from hlo_lower.ops.spec import Role, named

_EFFECTS = named(role=Role.HOST) | {RNG}
"""Ops that read or move a state outside of the module; `rng_bit_generator` is given its state and is none of them."""


def refuse_side_effects(graph: Graph, region: Block) -> None:
    """Refuse a region that has a side effect itself or in a function that it calls, composites included.

    Raises:
      NotCanonicalError: naming the op.
    """
    entered: set[str] = set()
    pending = [region]
    while pending:
        for node in pending.pop().nodes:
            told = _effect(node)
            if told is not None:
                raise NotCanonicalError(told)
            pending.extend(node.blocks if node.has_regions else ())
            callee = graph.functions.get(node.body_name)
            if callee is not None and callee.has_body and callee.name not in entered:
                entered.add(callee.name)
                pending.append(callee.body)


def _effect(node: Node) -> Cause | None:
    """The side effect that a node has, or None."""
    if node.name in _EFFECTS:
        return Code.SIDE_EFFECT(node.name, None)
    if node.name == CUSTOM_CALL:
        has = node.attribute("has_side_effect")
        if has is not None and bool(has.value):
            return Code.SIDE_EFFECT(node.name, mlir.call_target(node.raw))
    return None
