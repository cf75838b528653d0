"""A loop's counter needs no clamp where the loop's bounds are known.

jaxlib's pass clamps every start of a slice into the tensor. Where that is the counter of an `scf.for` with constant
bounds, and the clamp keeps it as it is, the slice takes the counter itself: a reader sees which rows an iteration
touches.

    %k = arith.index_cast %counter; %i = arith.index_cast %k; %l = arith.maxsi %i, 0; %p = arith.minsi %l, limit
    ->
    %counter
"""

from hlo_lower import mlir
from hlo_lower.graph import Graph, Node, Value

CASTS = ("arith.index_cast", "arith.index_castui")


def drop_clamps(graph: Graph) -> bool:
    """Drop the clamps that change nothing; whether there were any."""
    loops: list[Node] = []
    graph.walk(lambda node: loops.append(node) if node.name == "scf.for" else None)
    dropped = False
    for loop in loops:
        dropped |= _drop_in(loop)
    return dropped


def _drop_in(loop: Node) -> bool:
    lower, upper = (_constant(loop.operand(number)) for number in (0, 1))
    if lower is None or upper is None or lower < 0 or upper <= lower:
        return False
    last = upper - 1
    counter = loop.blocks[0].argument(0)
    same: list[Value] = []
    for cast in [user for user in counter.users if user.name in CASTS and last <= _greatest(user.result())]:
        same += [user.result() for user in cast.result().users if user.name in CASTS]
    dropped = _replaced(same, counter)
    kept = [clamp.result() for clamp, bound in _clamps(counter, "arith.maxsi") if bound <= lower]
    dropped |= _replaced(kept, counter)
    kept = [clamp.result() for clamp, bound in _clamps(counter, "arith.minsi") if bound >= last]
    return _replaced(kept, counter) or dropped


def _replaced(values: list[Value], counter: Value) -> bool:
    for value in values:
        value.raw.replace_all_uses_with(counter.raw)
    return bool(values)


def _clamps(counter: Value, name: str) -> list[tuple[Node, int]]:
    """The clamps of a counter against a constant, each with that."""
    found: list[tuple[Node, int]] = []
    for user in counter.users:
        bounds = [_constant(value) for value in user.operands if value != counter] if user.name == name else []
        found += [(user, bound) for bound in bounds if bound is not None]
    return found


def _greatest(value: Value) -> int:
    """The greatest signed number of an integer's type."""
    return (1 << (int(str(value.raw.type).removeprefix("i")) - 1)) - 1


def _constant(value: Value) -> int | None:
    node = value.node
    if node is None or node.name != "arith.constant":
        return None
    attribute = node.attribute("value")
    return None if attribute is None else mlir.integer_of(attribute)
