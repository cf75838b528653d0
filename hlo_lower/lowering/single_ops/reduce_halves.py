"""`stablehlo.reduce` of any region and of several results, as a tree of halves."""

from collections.abc import Sequence
from functools import partial
from math import prod

from hlo_lower.base.registry import DoesNotApply, RuleList
from hlo_lower.facts.scatter.combine import identity
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.single_ops.elementwise_region import on_tensors
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, Numbers, PlainLowering, PlainOp, Whole
from hlo_lower.ops.names import MAXIMUM, MINIMUM
from hlo_lower.ops.targets.refused_forms import RefusedForm

MOST_ONE_BY_ONE = 64

ANY = frozenset({Whole.WHOLE, RefusedForm.FOLD})
"""What a reduction is taken apart for."""

rules = RuleList()
lowers = partial(rules.lowers, PLAIN, named={PlainOp.REDUCE})


@lowers(needs=ANY, form="slices along the dims, combined one after the other")
def reduce_to_slices(op: PlainLowering) -> Sequence[Value]:
    """Combine the elements of each dim in their order.

        %r = reduce %x, init 0, f   ->   f(f(f(0, x[0]), x[1]), x[2])

    Equal: row-major order from the initial value is an order that the specification allows. Any region of elementwise
    ops, several operands. Costs the region for each of at most 64 elements.
    """
    node, build = op.node, op.build
    values, starts, dims = _parts(node)
    shape = values[0].static_shape
    count = _count(node)
    if count > MOST_ONE_BY_ONE:
        raise DoesNotApply(f"{count:,} elements, more than {MOST_ONE_BY_ONE}, would be combined one by one")
    others = [d for d in range(len(shape)) if d not in dims]
    kept = [shape[d] for d in others]
    flat = [build.reshape(build.transpose(value, [*others, *dims]), [*kept, count]) for value in values]
    found = [build.broadcast(start, kept) for start in starts]
    for k in range(count):
        here = [build.reshape(slice_along(build, value, len(kept), k, 1), kept) for value in flat]
        found = on_tensors(op, node.blocks[0], [*found, *here])
    return found


@lowers(
    needs=ANY,
    elements={Elements.SIGNED, Elements.UNSIGNED, Elements.BOOLEAN},
    form="one half with the other half, until one is left, dim by dim",
)
def reduce_to_halves(op: PlainLowering) -> Sequence[Value]:
    """Combine the first half with the second one, by the region itself, until one element is left.

        %r = reduce %x, init 0, f   ->   f(0, f(f(x[0], x[2]), f(x[1], x[3])))

    Equal: the specification lets a reduction be done in any order and grouping, so the region has to be associative and
    commutative on what it is used for, and integers are, bit for bit. An odd element goes along. Costs log2(n) regions.
    """
    return _halved(op)


@lowers(
    needs=ANY, elements={Elements.FLOAT}, numbers={Numbers.BOUNDED}, form="the same of floats, sums in another order"
)
def reduce_to_float_halves(op: PlainLowering) -> Sequence[Value]:
    """The same of floats, where sums may be in another order (float mode reassociate).

    Equal up to the order of sums and products; maxima and minima bit for bit. A sum of n has log2(n) roundings behind
    each other instead of n.
    """
    if op.facts.needs is RefusedForm.FOLD and _count(op.node) <= MOST_ONE_BY_ONE:
        raise DoesNotApply("few elements are combined in their order")
    return _halved(op)


def _count(node: Node) -> int:
    """How many elements each one of the result is made of."""
    shape = node.operand(0).static_shape
    return prod(shape[dim] for dim in node.integers("dimensions"))


@lowers(needs={RefusedForm.FOLD_START}, form="the same from the least or greatest number there is, and the start then")
def reduce_to_reduce_and_start(op: PlainLowering) -> Sequence[Value]:
    """Reduce from what changes nothing, and combine that with the start.

        maximum of %x from %s   ->   maximum(%s, maximum of %x from -Inf)

    Equal: a maximum and a minimum may be taken in any order, and of -Inf and a number it is the number, of a NaN that.
    """
    build, [value, start] = op.build, op.node.operands
    name = next(iter(op.node.blocks[0].nodes)).name
    least = identity(build, MOST[name], start.element_type)
    found = build.copy_on(op.node, [value, least], [op.node.result().raw.type], {}).result()
    return [build.elementwise(name.removeprefix("stablehlo."), build.broadcast(start, found.static_shape), found)]


MOST = {MAXIMUM: Combiner.MAX, MINIMUM: Combiner.MIN}


def _halved(op: PlainLowering) -> list[Value]:
    node, build = op.node, op.build
    values, starts, dims = _parts(node)
    found = list(values)
    for dim in dims:
        if found[0].static_shape[dim] == 0:
            raise DoesNotApply("there is nothing to reduce")
        while (size := found[0].static_shape[dim]) > 1:
            half = size // 2
            pairs = [slice_along(build, value, dim, start, half) for start in (0, half) for value in found]
            joined = on_tensors(op, node.blocks[0], pairs)
            if size % 2:
                rest = [slice_along(build, value, dim, size - 1, 1) for value in found]
                joined = [build.concatenate(list(pair), dim) for pair in zip(joined, rest, strict=True)]
            found = joined
    shape = node.result().static_shape
    found = [build.reshape(value, shape) for value in found]
    return on_tensors(op, node.blocks[0], [*(build.broadcast(start, shape) for start in starts), *found])


def _parts(node: Node) -> tuple[tuple[Value, ...], tuple[Value, ...], tuple[int, ...]]:
    """What is reduced, from what, along which dims."""
    count = len(node.results)
    return node.operands[:count], node.operands[count:], node.integers("dimensions")
