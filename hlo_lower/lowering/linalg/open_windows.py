"""Convolutions and windows of open sizes in linalg, which jaxlib's pass leaves unless their channels come last and only
their batch is open.

    %r = stablehlo.convolution(%x, %k) [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1] : tensor<?x3x8x9xf32>
    ->
    %p = stablehlo.pad %x
    %r = linalg.generic ins(%p, %k) outs(%zeros) {out + element * weight}, with
        (b, f, y, x, c, v, u) -> (b, c, y + v, x + u), -> (f, c, v, u), -> (b, f, y, x)

What has a name gets it later (`structured_ops.specialize`). The size of an open dim of the result is computed of what
is padded: (size - extent) / step + 1, and not less than 0.

Groups of channels are a dim of their own of input, kernel and result, as jaxlib's pass has it for static sizes.

Equal: the same products, or elements, are combined. Channels are summed outermost, or innermost where they come last,
as jaxlib's pass has it.
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
from hlo_lower.ops import names
from hlo_lower.ops.axes.op_axes import is_one_op

OPEN = -(1 << 63)
"""The size of an open dim, where sizes are an attribute."""

FLOAT, INTEGER = ("arith.mulf", "arith.addf"), ("arith.muli", "arith.addi")

COMBINED = {
    names.ADD: FLOAT[1], names.MAXIMUM: "arith.maximumf", names.MINIMUM: "arith.minimumf",
}  # fmt: skip
"""What is done with the floats of a window."""


def convolution(build: Builder, node: Node) -> Sequence[Value] | None:
    """A convolution that jaxlib's pass leaves: in another layout, in groups, or of open windows."""
    (value, kernel, *amounts), result = node.operands, node.result()
    given, weights, made = letters_of(node)
    spatial = [letter for letter in made if letter not in "bf"]
    count = len(spatial)
    batches, groups = (mlir.integer_of(node.raw.attributes[f"{kind}_group_count"]) for kind in ("batch", "feature"))
    is_open = any(size is None for letter, size in zip(made, result.shape, strict=True) if letter != "b")
    is_last = given == ("b", *spatial, "f") == made and weights == (*spatial, "i", "o") and groups == 1
    is_named = not amounts and (node.is_static or (is_last and not is_open))  # by jaxlib's pass
    types = {one.element_type for one in (value, kernel, result)}
    element = result.element
    if is_named or len(types) > 1 or element.is_unsigned or element.is_complex or element.name == "i1":
        return None
    is_dilated = any(step != 1 for step in node.integers("lhs_dilation", (1,)))
    around = dict(zip(sorted(spatial), _pairs(node.padding(count)), strict=True))
    has_channels = groups == 1 or None not in (value.shape[given.index("f")], result.shape[made.index("f")])
    is_negative = any(one < 0 for pair in around.values() for one in pair)
    if batches != 1 or not has_channels or not kernel.is_static or is_dilated or _is_reversed(node) or is_negative:
        return None
    steps, apart = (
        dict(zip(sorted(spatial), node.integers(name, (1,) * count), strict=True))
        for name in ("window_strides", "rhs_dilation")
    )
    zero = build.zero_of(result)
    sides = [around.get(letter, (0, 0)) for letter in given]
    if amounts:
        padded = _pad_by(build, value, zero, amounts[0], [given.index(letter) for letter in sorted(spatial)])
    else:
        padded = build.pad(value, zero, [low for low, _ in sides], [high for _, high in sides])
    shape = list(result.shape)
    if groups > 1:
        padded, kernel = (
            _split(build, padded, given.index("f"), groups),
            _split(build, kernel, weights.index("o"), groups),
        )
        shape = _split_shape(shape, made.index("f"), groups)
        given, made, weights = (_with_group(letters) for letters in (given, made, weights))
    rank = len(made)
    loop = {letter: number for number, letter in enumerate(made)} | {"i": rank + count * is_last}
    within = {letter: rank + (not is_last) + number for number, letter in enumerate(sorted(spatial))}
    read = [
        ((loop[letter], steps[letter]), (within[letter], apart[letter]))
        if letter in within
        else ((loop["i" if letter == "f" else letter], 1),)
        for letter in given
    ]
    dim_of = {**loop, "o": loop["f"], "i": loop["i"], **within}
    maps = (tuple(read), dims(*(dim_of[letter] for letter in weights)), dims(*range(rank)))
    extents = {letter: (kernel.static_shape[weights.index(letter)] - 1) * apart[letter] + 1 for letter in spatial}
    sizes = [
        _size(build, padded, given.index(letter), extents.get(letter, 1), steps.get(letter, 1))
        for letter, size in zip(made, shape, strict=True)
        if size is None
    ]
    start = _filled(build, zero, mlir.tensor_type(shape, result.element_type), sizes)
    times, plus = INTEGER if element.is_integer else FLOAT
    op = _generic(build, [padded, kernel], start, maps)
    inner, (left, right, out) = _region(build, op)
    product = inner.op(times, [left, right], [left.raw.type]).result()
    inner.op("linalg.yield", [inner.op(plus, [out, product], [out.raw.type]).result()], [])
    if groups == 1:
        return op.results
    parts = {"reassociation": _joined(made.index("g"), len(made))}
    return build.op("tensor.collapse_shape", op.results, [result.raw.type], parts).results


def _pad_by(build: Builder, value: Value, zero: Value, amounts: Value, dims_: Sequence[int]) -> Value:
    """A value with so many zeros around some of its dims, [dims, 2], or so many elements less.

    What is added is not less than 0 (`tensor.pad` adds no fewer); then what is taken away is left out.
    """
    index, rank = mlir.parse_type("index"), len(value.shape)

    def amount(name: str, place: int, side: int) -> Value:
        at = [index_constant(build, n) for n in (place, side)]
        given = build.op("tensor.extract", [amounts, *at], [mlir.tensor_element(amounts.raw.type)]).result()
        number = build.op("arith.index_cast", [given], [index]).result()
        return build.op(f"arith.{name}", [number, index_constant(build, 0)], [index]).result()

    (lows, highs), (less, fewer) = (
        [[amount(name, place, side) for place in range(len(dims_))] for side in (0, 1)] for name in ("maxsi", "minsi")
    )
    wide = mlir.tensor_type([None if d in dims_ else size for d, size in enumerate(value.shape)], value.element_type)
    sides = mlir.dense_i64([OPEN if d in dims_ else 0 for d in range(rank)])
    segments = mlir.parse_attribute(f"array<i32: 1, {len(dims_)}, {len(dims_)}>")
    attributes = {"static_low": sides, "static_high": sides, "operandSegmentSizes": segments}
    scalar = build.op("tensor.extract", [zero], [mlir.tensor_element(zero.raw.type)]).result()
    padded = build.op("tensor.pad", [value, *lows, *highs], [wide], attributes, regions=1)
    block = Block(mlir.append_block(padded.raw, 0, [index] * rank, padded.raw.location))
    build.at_end(block).op("tensor.yield", [scalar], [])
    starts, sizes = list[Value](), list[Value]()
    for d in range(rank):
        size = build.op("tensor.dim", [padded.result(), index_constant(build, d)], [index]).result()
        if d in dims_:
            place = dims_.index(d)
            starts.append(build.op("arith.subi", [index_constant(build, 0), less[place]], [index]).result())
            for part in (less[place], fewer[place]):
                size = build.op("arith.addi", [size, part], [index]).result()
        if d in dims_ or value.shape[d] is None:
            sizes.append(size)
    return build.op(
        "tensor.extract_slice",
        [padded.result(), *starts, *sizes],
        [wide],
        {
            "static_offsets": sides,
            "static_sizes": mlir.dense_i64([OPEN if n is None or d in dims_ else n for d, n in enumerate(value.shape)]),
            "static_strides": mlir.dense_i64([1] * rank),
            "operandSegmentSizes": mlir.parse_attribute(f"array<i32: 1, {len(starts)}, {len(sizes)}, 0>"),
        },
    ).result()


def _with_group(letters: Sequence[str]) -> tuple[str, ...]:
    """The dims of an operand or a result whose channels are split into groups of them."""
    split = "o" if "o" in letters else "f"
    return tuple(one for letter in letters for one in (("g", letter) if letter == split else (letter,)))


def _split(build: Builder, value: Value, dim: int, groups: int) -> Value:
    """A value with the channels of one of its dims as groups of channels."""
    shape, index = _split_shape(value.shape, dim, groups), mlir.parse_type("index")
    sizes = [
        build.op("tensor.dim", [value, index_constant(build, d)], [index]).result()
        for d, size in enumerate(value.shape)
        if size is None
    ]
    attributes = {
        "reassociation": _joined(dim, len(shape)),
        "static_output_shape": mlir.dense_i64([OPEN if size is None else size for size in shape]),
    }
    raw_type = mlir.tensor_type(shape, value.element_type)
    return build.op("tensor.expand_shape", [value, *sizes], [raw_type], attributes).result()


def _split_shape(shape: Sequence[int | None], dim: int, groups: int) -> list[int | None]:
    return [*shape[:dim], groups, (shape[dim] or 0) // groups, *shape[dim + 1 :]]


def _joined(dim: int, rank: int) -> mlir.RawAttribute:
    """Which dims of so many are one: one and the next, and each other by itself."""
    parts = [[d, d + 1] if d == dim else [d] for d in range(rank) if d != dim + 1]
    return mlir.parse_attribute(str(parts))


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
    op = _generic(build, [padded, window], _filled(build, initial, result.raw.type, sizes), maps)
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


def _filled(build: Builder, number: Value, raw_type: mlir.RawType, sizes: Sequence[Value]) -> Value:
    scalar = build.op("tensor.extract", [number], [mlir.tensor_element(number.raw.type)]).result()
    return fill_empty(build, scalar, raw_type, sizes).result()


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
