"""How many dims a target takes, and whether an op has more."""

from hlo_lower.ir.view import Node
from hlo_lower.ops.names import COMPOSITE, CUSTOM_CALL, RETURN
from hlo_lower.ops.targets.target import Target

ANY_OP = "*"
NOT_COUNTED = ("func.call", "func.return", RETURN, CUSTOM_CALL, COMPOSITE)


def has_refused_rank(target: Target, node: Node) -> bool:
    """Whether an operand or a result has more dims than the target takes on this op."""
    return refused_rank(target, node) is not None


def refused_rank(target: Target, node: Node) -> tuple[int, int] | None:
    """The rank of an op, and the most that the target takes on it, where that is less."""
    most = target.max_rank.get(node.name, target.max_rank.get(ANY_OP))
    if most is None or node.name in NOT_COUNTED:
        return None
    rank = max((len(value.shape) for value in (*node.operands, *node.results) if value.is_tensor), default=0)
    return (rank, most) if rank > most else None
