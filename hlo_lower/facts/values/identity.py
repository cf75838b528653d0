"""Operations that give back what they take: barriers, and notes on where a tensor is to live."""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.names import CUSTOM_CALL, OPTIMIZATION_BARRIER
from hlo_lower.ops.purity import PLACEMENT_NOTES


def is_identity(node: Node) -> bool:
    """Whether each result of an op is its operand: a barrier, or a note on where a tensor is to live."""
    name = node.name
    if name == CUSTOM_CALL:
        return mlir.call_target(node.raw) in PLACEMENT_NOTES
    return name in (OPTIMIZATION_BARRIER, "sdy.sharding_constraint")


def seen_through(value: Value) -> Value:
    """The value that identities were made of."""
    node = value.node
    while node is not None and is_identity(node):
        value = node.operand(value.number)
        node = value.node
    return value
