"""Ops that give elements other places: broadcasts, transposes, reshapes; and iota and constant, which have none yet."""

from collections.abc import Sequence
from math import gcd

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, Boundary, Cut
from hlo_lower.ops.axes.materialize import materialize
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import BROADCAST_IN_DIM, CONSTANT, IOTA, RESHAPE, TRANSPOSE


@subset_rules.axes(BROADCAST_IN_DIM)
def broadcast(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim of the result is an axis; the operand follows where it has the dim at its full size.

    Right: where the operand has extent 1, or not that dim, each position of the result reads the same elements of it.
    """
    operand, shape = node.operand(0).static_shape, node.result().static_shape
    places = node.integers("broadcast_dimensions")
    of = {d: k for k, d in enumerate(places) if operand[k] == shape[d]}
    return [AxisLink((of.get(d),), (d,)) for d in range(len(shape))]


@subset_rules.axes(TRANSPOSE)
def transpose(node: Node) -> Sequence[AxisLink] | Boundary:
    """Dim i of the result is dim permutation[i] of the operand."""
    return [AxisLink((d,), (i,)) for i, d in enumerate(node.integers("permutation"))]


def outermost(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of dims of two shapes of as many elements that are cut at the same places, in units of their own.

    Both shapes fall into the smallest groups of neighbouring dims with equal products (extents of 1 aside). The
    outermost dims of a group, of extents a and b, can be cut into gcd(a, b) equal steps: a step is the same contiguous
    piece of the group in both. 2048 tokens as 4x512 are cut into 4 steps, 512 positions of the one and 1 of the other.
    """
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        if before[i] == 1 or after[j] == 1:
            i, j = (i + 1, j) if before[i] == 1 else (i, j + 1)
            continue
        first, mine, its = (i, j), before[i], after[j]
        while mine != its:
            if mine < its:
                i += 1
                mine *= before[i]
            else:
                j += 1
                its *= after[j]
        if gcd(before[first[0]], after[first[1]]) > 1:
            found.append(first)
        i, j = i + 1, j + 1
    return found


@subset_rules.axes(RESHAPE)
def reshape(node: Node) -> Sequence[AxisLink] | Boundary:
    """The outermost dims of the groups that are split and merged (see `outermost`).

    Right: in row-major order a run of steps of the outermost dims is the same run of elements of the group before and
    after, and the other groups are untouched.
    """
    before, after = node.operand(0).static_shape, node.result().static_shape
    if 0 in before:
        return Boundary("it has no elements")
    return [AxisLink((mine,), (its,)) for mine, its in outermost(before, after)]


@subset_rules.axes(IOTA, CONSTANT)
def given(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim; there is no operand. A constant that is not the same everywhere is sliced."""
    return [AxisLink((), (d,)) for d in range(len(node.result().shape))]


@subset_rules.piece(IOTA)
def iota_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Along its own dimension the piece counts from where it begins; along another it is an iota of the piece's shape.

    Right: iota[p] = p = start + (p - start). In the element type both wrap around alike.
    """
    [piece] = cut.same(build)
    if cut.axis.results[0] != cut.node.integer("iota_dimension"):
        return [piece]
    start = cut.start(build, cut.node.result().element_type)
    return [build.add(piece, build.broadcast(start, piece.static_shape))]


@subset_rules.piece(CONSTANT)
def constant_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """A splat of the piece's shape; of other elements a part of the constant, built where the piece is."""
    [raw_type] = cut.types()
    if mlir.is_splat(cut.node.raw):
        splat = mlir.resplat(cut.node.raw.attributes["value"], raw_type)
        return [build.op(CONSTANT, [], [raw_type], {"value": splat}).result()]
    whole = build.clone(cut.node, [], [cut.node.result().raw.type]).result()
    return [materialize(build, whole, cut.part(), cut.bound)]
