"""`stablehlo.reduce_window` for consumers that have none: pooling as slices, running sums by doubling."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

from hlo_lower.base.element_types import WIDE_FLOATS, type_range
from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.facts.scatter.combine import OPS, identity
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.single_ops.elementwise_region import on_tensors
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, Numbers, PlainLowering, PlainOp
from hlo_lower.ops.axes.reduction import is_neutral
from hlo_lower.ops.spec import COMBINING

FEW = 64
"""Elements of a window that are combined one by one."""


COMBINERS = {OPS[combiner]: combiner for combiner in Combiner if combiner in OPS and combiner is not Combiner.SUB}
"""By the name of an associative operation the combiner whose identity it has."""

rules = RuleList()
lowers = partial(rules.lowers, PLAIN, named={PlainOp.REDUCE_WINDOW})


@dataclass(frozen=True)
class Windows:
    """The windows of a reduction, dim by dim.

    Attributes:
      sizes, strides, dilations: of the windows.
      bases: dilations of what they lie on.
      low, high: padding.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    bases: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, node: Node) -> "Windows":
        """Those of a `reduce_window` or a `select_and_scatter`; what is not said is 1, padding 0."""
        sizes = node.integers("window_dimensions")
        rank = len(sizes)
        names, padding = ("window_strides", "window_dilations", "base_dilations"), node.padding(rank)
        strides, dilations, bases = (node.integers(name, (1,) * rank) for name in names)
        return cls(sizes, strides, dilations, bases, padding[::2], padding[1::2])

    def padded(self, build: Builder, value: Value, fill: Value) -> Value:
        """What the windows lie on."""
        return build.pad(value, fill, self.low, self.high, [base - 1 for base in self.bases])

    def at(self, build: Builder, value: Value, place: Sequence[int], counts: Sequence[int]) -> Value:
        """For each window its element at a place."""
        starts = [k * dilation for k, dilation in zip(place, self.dilations, strict=True)]
        limits = [s + (n - 1) * stride + 1 for s, n, stride in zip(starts, counts, self.strides, strict=True)]
        return build.slice(value, starts, limits, self.strides)


def window_elements(node: Node) -> int:
    """How many elements a window has."""
    return prod(node.integers("window_dimensions"))


def _padded(op: PlainLowering) -> tuple[Windows, list[Value], int]:
    """The windows, what they lie on, and how many results there are.

    XLA combines no padding, so what stands there has to change nothing: it is the identity of the region's operation,
    whatever the windows start from. Of other regions it is what they start from, which is to change nothing, too.
    """
    windows, count = Windows.of(op.node), len(op.node.results)
    values, starts = op.node.operands[:count], op.node.operands[count:]
    if 0 in op.node.result().static_shape:
        raise DoesNotApply("there is no window")
    fills = [_padding(op, start) for start in starts]
    padded = [windows.padded(op.build, value, fill) for value, fill in zip(values, fills, strict=True)]
    return windows, padded, count


def _padding(op: PlainLowering, start: Value) -> Value:
    """The identity of the operation of the region; what windows start from where that is it, or none is known."""
    [body, *_] = op.node.blocks
    if len(op.node.results) != 1 or not is_one_op(body):
        return start
    name, element = next(iter(body.nodes)).name.removeprefix("stablehlo."), start.element_type
    if element not in WIDE_FLOATS and type_range(element) is None:
        return start
    return start if is_neutral(start, name) else identity(op.build, COMBINERS[name], element)


@lowers(
    when=When(f"windows of {FEW} elements at most", lambda facts: facts.window <= FEW),
    form="slices, one for each place of a window, combined in order",
)
def reduce_window_to_slices(op: PlainLowering) -> Sequence[Value]:
    """Take the first element of all windows, then the second, and so on, and combine them.

        %r = reduce_window %x, size 2, stride 2, add   ->   (0 + %x[0::2]) + %x[1::2]

    Equal: each window is reduced from the initial value in row-major order, which is an order that the specification
    allows; padding holds what changes nothing. Integers, maxima and minima are the same bits; XLA adds floats of some
    windows (running sums of more than 16, two-dimensional ones) in an order of its own. Any region of elementwise ops,
    several operands, strides and dilations. Costs a slice and the region for each place.
    """
    build, node = op.build, op.node
    windows, padded, count = _padded(op)
    shape = node.result().static_shape
    found = [build.broadcast(start, shape) for start in node.operands[count:]]
    for place in product(*map(range, windows.sizes)):
        here = [windows.at(build, value, place, shape) for value in padded]
        found = on_tensors(op, node.blocks[0], [*found, *here])
    return found


@lowers(
    elements={Elements.SIGNED, Elements.UNSIGNED, Elements.BOOLEAN},
    form="by doubling, dim by dim: x[i] + x[i + 1], then of pairs",
)
def reduce_window_to_doublings(op: PlainLowering) -> Sequence[Value]:
    """Combine windows of one element to those of two, of two to those of four, and put the wanted size together.

        running sum of 8:   y = x + (x moved by 1);  z = y + (y moved by 2);  z + (z moved by 4)

    Equal: the region is one associative operation on integers, so parts may be combined first; the dims are
    independent of each other. Costs 2 log2(size) ops for each dim.
    """
    return _by_doubling(op)


@lowers(elements={Elements.FLOAT}, numbers={Numbers.BOUNDED}, form="the same of floats, sums in another order")
def reduce_window_to_float_doublings(op: PlainLowering) -> Sequence[Value]:
    """The same of floats, where sums may be in another order (float mode reassociate).

    Equal up to the order of sums and products; maxima and minima bit for bit. A sum of n has log2(n) roundings behind
    each other instead of n.
    """
    return _by_doubling(op)


def _by_doubling(op: PlainLowering) -> list[Value]:
    build, node = op.build, op.node
    block = node.blocks[0]
    if len(node.results) != 1 or not is_one_op(block):
        raise DoesNotApply("its region is not one associative operation")
    windows, [value], _ = _padded(op)
    shape = node.result().static_shape
    for dim, size in enumerate(windows.sizes):
        value = _along(op, value, dim, size, windows.dilations[dim])
    limits = [(n - 1) * stride + 1 for n, stride in zip(shape, windows.strides, strict=True)]
    value = build.slice(value, [0] * len(shape), limits, windows.strides)
    start = build.broadcast(node.operand(1), shape)
    return on_tensors(op, block, [start, value])


def is_one_op(block: Block) -> bool:
    """Whether a region is one associative operation of its arguments, in their order."""
    first, *rest = block.nodes
    is_one = first.name in COMBINING and len(rest) == 1 and rest[0].operands == first.results
    return is_one and first.operands == block.arguments


def _along(op: PlainLowering, value: Value, dim: int, size: int, dilation: int) -> Value:
    """Windows of a size along a dim, at every place where one fits."""
    build, block = op.build, op.node.blocks[0]
    whole = value.static_shape[dim] - (size - 1) * dilation
    found, covered, power, width = None, 0, value, 1
    while True:
        if size & width:
            piece = slice_along(build, power, dim, covered * dilation, whole)
            found = piece if found is None else on_tensors(op, block, [found, piece])[0]
            covered += width
        if covered == size:
            assert found is not None
            return found
        length = power.static_shape[dim] - width * dilation
        pair = [slice_along(build, power, dim, 0, length), slice_along(build, power, dim, width * dilation, length)]
        [power], width = on_tensors(op, block, pair), 2 * width
