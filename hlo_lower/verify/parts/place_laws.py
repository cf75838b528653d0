"""Laws of ops that compute each element by itself, or move elements: elementwise ops, broadcasts, reshapes, sorts."""

from collections.abc import Iterable
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ops.spec import ELEMENTWISE
from hlo_lower.verify.parts.op_parts import Goal, OpParts, Run, all_goals, integers
from hlo_lower.verify.parts.positions import ZERO


def each(asked: OpParts) -> list[Goal] | None:
    """Element p comes of elements p: each operand in the same part, scalars whole."""
    if not asked.has_same_attributes():
        return None
    runs = {d: asked.run(d) for d in range(len(asked.result))}
    return all_goals(
        [asked.goal(k, runs if asked.shape(k) == asked.result else None) for k in range(len(asked.first.inputs))]
    )


def broadcast_in_dim(asked: OpParts) -> list[Goal] | None:
    """Result[p] = operand[p of its dims, 0 where it has one position]: a part of the result needs the same part.

    Dims of one position may be gone from the second one's operand.
    """
    operand, dims = asked.shape(0), integers(asked.first, "broadcast_dimensions")
    of_result = {d: k for k, d in enumerate(dims)}
    kept = [of_result.get(d, -1) for d in integers(asked.second, "broadcast_dimensions")]
    if kept != sorted(kept) or -1 in kept:
        return None
    runs = {k: asked.run(d) for k, d in enumerate(dims) if operand[k] == asked.result[d]}
    return all_goals([asked.goal(0, runs, tuple(k for k in range(len(dims)) if k not in kept))])


def transpose(asked: OpParts) -> list[Goal] | None:
    """Dim i of the result is dim permutation[i] of the operand."""
    if not asked.has_same_attributes():
        return None
    order = integers(asked.first, "permutation")
    return all_goals([asked.goal(0, {d: asked.run(i) for i, d in enumerate(order)})])


def reshape(asked: OpParts) -> list[Goal] | None:
    """Elements keep their order. Both shapes fall into groups of neighbouring dims of equal products; a part that is
    cut in the first dims of its groups alone (those of one position aside) is a run of each group's elements, and the
    operand is cut into the same runs, where they begin and end between positions of its own first dims."""
    runs: dict[int, Run] = {}
    for mine, its in groups(asked.shape(0), asked.result):
        if all(asked.takes_all(d) for d in its):
            continue
        first = next((d for d in its if asked.result[d] != 1), None)
        if first is None or any(not asked.takes_all(d) for d in its if d != first):
            return None
        inner = prod(asked.result[d] for d in its if d > first)
        outer = next(d for d in mine if asked.shape(0)[d] != 1)
        unit = prod(asked.shape(0)[d] for d in mine if d > outer)
        offset, size = asked.run(first)
        begin = offset.times(inner).over(unit)
        if begin is None or size * inner % unit:
            return None
        runs[outer] = begin, size * inner // unit
    return all_goals([asked.goal(0, runs)])


def groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of neighbouring dims of two shapes that have equal products; none where there are no
    elements."""
    if 0 in before:
        return []
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        mine: list[int] = []
        its: list[int] = []
        a = b = 1
        while not (mine or its) or a != b:
            if j >= len(after) or (i < len(before) and a <= b):
                mine.append(i)
                a *= before[i]
                i += 1
            else:
                its.append(j)
                b *= after[j]
                j += 1
        found.append((mine, its))
    return found


def beside(asked: OpParts, taken: Iterable[int], count: int | None = None) -> list[Goal] | None:
    """Along other dims than those that are taken whole, operands are cut as the result is: all, or the first ones."""
    dims = set(taken)
    if not asked.has_same_attributes() or not all(asked.takes_all(d) for d in dims):
        return None
    runs = {d: asked.run(d) for d in range(len(asked.result)) if d not in dims}
    cut = len(asked.first.inputs) if count is None else count
    return all_goals([asked.goal(k, runs if k < cut else None) for k in range(len(asked.first.inputs))])


def concatenate(asked: OpParts) -> list[Goal] | None:
    """Along other dims than its own each operand is cut as the result is."""
    return beside(asked, [mlir.integer_of(asked.first.raw.attributes["dimension"])])


def reverse(asked: OpParts) -> list[Goal] | None:
    """Dims that keep their order are cut alike."""
    return beside(asked, integers(asked.first, "dimensions"))


def pad(asked: OpParts) -> list[Goal] | None:
    """Dims without padding are cut alike; the others are whole."""
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    edges = zip(*(integers(asked.first, name) for name in names), strict=True)
    return beside(asked, [d for d, edge in enumerate(edges) if any(edge)], 1)


def sort(asked: OpParts) -> list[Goal] | None:
    """Each line along the sorted dim is sorted by itself."""
    along = mlir.integer_of(asked.first.raw.attributes["dimension"]) % len(asked.result)
    return beside(asked, [along]) if asked.is_same_body(0) else None


def top_k(asked: OpParts) -> list[Goal] | None:
    """Each line along the last dim is searched by itself."""
    return beside(asked, [len(asked.result) - 1])


def whole(asked: OpParts) -> list[Goal] | None:
    """The same op on the same operands, with results of the same types.

    Results that nobody reads count: the next state of `rng_bit_generator` says how many numbers were drawn, and what a
    custom call computes may be told by the type of any of its results.
    """
    if not asked.has_same_attributes() or any(o != ZERO for o in asked.part.offsets):
        return None
    if asked.types_of_results(0) != asked.types_of_results(1):
        return None
    if len(asked.first.bodies) != len(asked.second.bodies):
        return None
    if not all(asked.is_same_body(place) for place in range(len(asked.first.bodies))):
        return None
    return all_goals([asked.goal(k) for k in range(len(asked.first.inputs))])


PLACE_LAWS = {
    **dict.fromkeys(ELEMENTWISE, each),
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.transpose": transpose,
    "stablehlo.reshape": reshape,
    "stablehlo.concatenate": concatenate,
    "stablehlo.reverse": reverse,
    "stablehlo.pad": pad,
    "stablehlo.sort": sort,
    "chlo.top_k": top_k,
}
