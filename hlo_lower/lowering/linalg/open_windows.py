"""Convolutions and windows of open sizes in linalg, which jaxlib's pass leaves unless their channels come last.

    %r = stablehlo.convolution(%x, %k) [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1] : tensor<?x3x8x9xf32>
    ->
    %p = stablehlo.pad %x
    %r = linalg.generic ins(%p, %k) outs(%zeros) {out + element * weight}, with
        (b, f, y, x, c, v, u) -> (b, c, y + v, x + u), -> (f, c, v, u), -> (b, f, y, x)

What has a name gets it later (`structured_ops.specialize`). The size of an open dim of the result is computed of what
is padded: (size - extent) / step + 1, and not less than 0.

Equal: the same products, or elements, are combined. Channels are summed outermost, as jaxlib's pass has it.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.linalg.convolution_forms import letters_of
from hlo_lower.lowering.linalg.loops import index_constant
from hlo_lower.lowering.linalg.structured_ops import (
    IndexMap,
    dims,
    fill_empty,
    iterators_attribute,
    maps_attribute,
    rank_of,
)
from hlo_lower.ops.axes.op_axes import is_one_op

FLOAT, INTEGER = ("arith.mulf", "arith.addf"), ("arith.muli", "arith.addi")

COMBINED = {
    "stablehlo.add": FLOAT[1], "stablehlo.maximum": "arith.maximumf", "stablehlo.minimum": "arith.minimumf",
}  # fmt: skip
"""What is done with the floats of a window."""


def convolution(build: Builder, node: Node) -> Sequence[Value] | None:
    """A convolution in a layout that jaxlib's pass does not name."""
    (value, kernel), result = node.operands, node.result()
    given, weights, made = letters_of(node)
    spatial = [letter for letter in made if letter not in "bf"]
    rank, count = len(made), len(spatial)
    is_last = given == ("b", *spatial, "f") == made and weights == (*spatial, "i", "o")
    types = {one.element_type for one in (value, kernel, result)}
    element = result.element
    if node.is_static or is_last or len(types) > 1 or element.is_unsigned or element.is_complex or element.name == "i1":
        return None
    is_grouped = any(mlir.integer_of(node.raw.attributes[f"{kind}_group_count"]) != 1 for kind in ("batch", "feature"))
    is_dilated = any(step != 1 for step in node.integers("lhs_dilation", (1,)))
    around = dict(zip(sorted(spatial), _pairs(node.padding(count)), strict=True))
    if is_grouped or is_dilated or _is_reversed(node) or any(one < 0 for pair in around.values() for one in pair):
        return None
    steps, apart = (
        dict(zip(sorted(spatial), node.integers(name, (1,) * count), strict=True))
        for name in ("window_strides", "rhs_dilation")
    )
    zero = build.zero(mlir.tensor_element(result.raw.type))
    sides = [around.get(letter, (0, 0)) for letter in given]
    padded = build.pad(value, zero, [low for low, _ in sides], [high for _, high in sides])
    loop = {letter: number for number, letter in enumerate(made)} | {"i": rank}
    within = {letter: rank + 1 + number for number, letter in enumerate(sorted(spatial))}
    read = [
        ((loop[letter], steps[letter]), (within[letter], apart[letter]))
        if letter in within
        else ((loop["i" if letter == "f" else letter], 1),)
        for letter in given
    ]
    names = {"o": loop["f"], "i": loop["i"], **within}
    maps = (tuple(read), dims(*(names[letter] for letter in weights)), dims(*range(rank)))
    extents = {
        letter: (kernel.static_shape[weights.index(letter)] - 1) * apart[letter] + 1 if kernel.is_static else 0
        for letter in spatial
    }
    if not kernel.is_static:
        return None
    sizes: list[Value] = []
    for letter, size in zip(made, result.shape, strict=True):
        if size is None:
            sizes.append(_size(build, padded, given.index(letter), extents.get(letter, 1), steps.get(letter, 1)))
    start = _filled(build, zero, result, sizes)
    times, plus = INTEGER if element.is_integer else FLOAT
    op = _generic(build, [padded, kernel], start, maps)
    inner, (left, right, out) = _region(build, op)
    product = inner.op(times, [left, right], [left.raw.type]).result()
    inner.op("linalg.yield", [inner.op(plus, [out, product], [out.raw.type]).result()], [])
    return op.results


def windows(build: Builder, node: Node) -> Sequence[Value] | None:
    """A reduce_window of one value of floats by one op."""
    if node.is_static or len(node.results) != 1 or not is_one_op(node.blocks[0]):
        return None
    (value, initial), result = node.operands, node.result()
    rank, ones = len(value.shape), (1,) * len(value.shape)
    name = next(iter(node.blocks[0].nodes)).name
    around = _pairs(node.padding(rank))
    is_spread = any(step != 1 for step in node.integers("base_dilations", ones))
    if name not in COMBINED or not result.element.is_float or is_spread or any(n < 0 for one in around for n in one):
        return None
    extents, steps = node.integers("window_dimensions"), node.integers("window_strides", ones)
    apart = node.integers("window_dilations", ones)
    padded = build.pad(value, initial, [low for low, _ in around], [high for _, high in around])
    along = [dim for dim in range(rank) if extents[dim] != 1]
    read = [
        ((dim, steps[dim]), (rank + along.index(dim), apart[dim])) if dim in along else ((dim, steps[dim]),)
        for dim in range(rank)
    ]
    maps = (tuple(read), dims(*range(rank, rank + len(along))), dims(*range(rank)))
    sizes = [
        _size(build, padded, dim, (extents[dim] - 1) * apart[dim] + 1, steps[dim])
        for dim, size in enumerate(result.shape)
        if size is None
    ]
    raw_type = mlir.tensor_type([extents[dim] for dim in along], result.element_type)
    window = build.op("tensor.empty", [], [raw_type]).result()
    op = _generic(build, [padded, window], _filled(build, initial, result, sizes), maps)
    inner, (given, _, out) = _region(build, op)
    inner.op("linalg.yield", [inner.op(COMBINED[name], [out, given], [out.raw.type]).result()], [])
    return op.results


def _is_reversed(node: Node) -> bool:
    return "true" in str(node.attribute("window_reversal"))


def _pairs(amounts: Sequence[int]) -> list[tuple[int, int]]:
    """The low and the high amount of each dim."""
    return list(zip(amounts[::2], amounts[1::2], strict=True))


def _size(build: Builder, value: Value, dim: int, extent: int, step: int) -> Value:
    """How many windows of an extent there are along an open dim."""
    index = mlir.parse_type("index")
    size = build.op("tensor.dim", [value, index_constant(build, dim)], [index]).result()
    if extent == step == 1:
        return size
    for name, number in (("subi", extent), ("floordivsi", step), ("addi", 1), ("maxsi", 0)):
        size = build.op(f"arith.{name}", [size, index_constant(build, number)], [index]).result()
    return size


def _filled(build: Builder, number: Value, like: Value, sizes: Sequence[Value]) -> Value:
    scalar = build.op("tensor.extract", [number], [mlir.tensor_element(number.raw.type)]).result()
    return fill_empty(build, scalar, like.raw.type, sizes).result()


def _generic(build: Builder, operands: Sequence[Value], start: Value, maps: Sequence[IndexMap]) -> Node:
    rank = rank_of(maps)
    attributes = {
        "indexing_maps": maps_attribute(rank, maps),
        "iterator_types": iterators_attribute(rank, maps[-1]),
        "operandSegmentSizes": mlir.parse_attribute(f"array<i32: {len(operands)}, 1>"),
    }
    return build.op("linalg.generic", [*operands, start], [start.raw.type], attributes, regions=1)


def _region(build: Builder, op: Node) -> tuple[Builder, tuple[Value, ...]]:
    elements = [mlir.tensor_element(value.raw.type) for value in op.operands]
    block = Block(mlir.append_block(op.raw, 0, elements, op.raw.location))
    return build.at_end(block), block.arguments
