"""Pads, gathers and reverses in forms that few consumers have."""

from collections.abc import Sequence

import numpy as np

from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.bounds import largest_of, source_of
from hlo_lower.ops.origins import CALL
from hlo_lower.ops.quirks.quirk import Place as When
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, Rules, module, over_each
from hlo_lower.ops.spec import RESHAPING

KEEPING = RESHAPING | {names.CONVERT}
"""Ops of one operand that a consumer computes where that is a constant."""

Place = tuple[str, int]
"""("position", k) or ("window", d), d a dim of the operand."""


def comes_of(value: Value, name: str) -> bool:
    """Whether a value is made by an op of this name, or is that in another shape."""
    node = value.node
    while node is not None and node.name in KEEPING:
        node = node.operand(0).node
    return node is not None and node.name == name


def row_order(node: Node) -> list[Place] | None:
    """The dims of the result of a gather of whole rows as `numpy.take` has them, those that are indexed left out.

    The positions stand where the axis stood; of several axes, which are the first ones, in front. Core ML's converter
    gives this order, whatever `offset_dims` say. None of a gather of others than whole rows.
    """
    numbers, shape = mlir.gather_dimension_numbers(node.raw), node.operand(0).static_shape
    window, rank = node.integers("slice_sizes"), len(node.operand(1).static_shape)
    batches, indexed = len(numbers.operand_batching_dims), numbers.start_index_map
    leading = tuple(range(batches))
    if (numbers.operand_batching_dims, numbers.start_indices_batching_dims) != (leading, leading):
        return None
    one = {*leading, *indexed}
    if not indexed or any(window[d] != (1 if d in one else size) for d, size in enumerate(shape)):
        return None
    if len(indexed) > 1 and max(indexed) >= batches + len(indexed):
        return None
    windows: list[Place] = [("window", d) for d in range(len(shape)) if d not in one]
    at = batches + (indexed[0] - batches if len(indexed) == 1 else 0)
    positions: list[Place] = [("position", k) for k in range(rank - (numbers.index_vector_dim < rank))]
    before = at - batches
    return [*positions[:batches], *windows[:before], *positions[batches:], *windows[before:]]


def _is_out_of_order(_graph: Graph, node: Node) -> bool:
    """Whether a gather has its index vectors elsewhere than last or, of whole rows, its windows in another order."""
    numbers, indices = mlir.gather_dimension_numbers(node.raw), node.operand(1)
    is_plain = type_range(indices.element_type) is not None and "quant" not in str(node.operand(0).raw.type)
    if not is_plain or any(node.integers("slice_sizes")[d] == 0 for d in numbers.collapsed_slice_dims):
        return False
    if numbers.index_vector_dim != len(indices.static_shape) - 1:
        return True
    order = row_order(node)
    if order is None:
        return False
    is_dropped = set(numbers.start_index_map) <= set(numbers.collapsed_slice_dims)
    offsets = tuple(k for k, (what, _) in enumerate(order) if what == "window")
    return not is_dropped or numbers.offset_dims != offsets


def _is_reversed_apart(_graph: Graph, node: Node) -> bool:
    dims = sorted(node.integers("dimensions"))
    return bool(dims) and dims[-1] - dims[0] >= len(dims)


PADDED = "(tensor<3xf32>, tensor<f32>) -> tensor<5xf32>"

SPREAD = Quirk(
    "pad between elements",
    (names.PAD,),
    {
        "coreml": "it is not converted",
        "tt": "of several dims it puts the elements elsewhere",
        "metal": "it is not legalized",
    },
    "`concatenate` and `slice`",
    module(
        "%x: tensor<3xf32>",
        "tensor<5xf32>",
        "%v = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%r = stablehlo.pad %x, %v, low = [0], high = [0], interior = [1] : {PADDED}",
    ),
    lambda _graph, node: any(node.integers("interior_padding")),
    (Rules("op", ("pad_to_concatenate",)),),
)

WIDE = "tensor<3xi64>"

SPREAD_WIDE = Quirk(
    "pad between wide elements",
    (names.PAD,),
    {"mps": "its kernel writes elements of 32 bits at most"},
    "`concatenate` and `slice`",
    module(
        f"%x: {WIDE}",
        "tensor<5xi64>",
        "%v = stablehlo.constant dense<0> : tensor<i64>",
        "%r = stablehlo.pad %x, %v, low = [0], high = [0], interior = [1]",
        f"  : ({WIDE}, tensor<i64>) -> tensor<5xi64>",
    ),
    lambda _graph, node: any(node.integers("interior_padding")) and node.operand(0).element.bits > 32,
    (Rules("op", ("pad_to_concatenate",)),),
)

COMPUTED_PADDING = Quirk(
    "pad with a computed value",
    (names.PAD,),
    {"coreml": "it is not converted", "tt": "it is not converted"},
    "`concatenate` and `slice`",
    module(
        "%x: tensor<3xf32>, %v: tensor<f32>",
        "tensor<5xf32>",
        f"%r = stablehlo.pad %x, %v, low = [1], high = [1], interior = [0] : {PADDED}",
    ),
    lambda _graph, node: not comes_of(node.operand(1), names.CONSTANT),
    (Rules("op", ("pad_to_concatenate",)),),
)

NARROW = 32
"""Core ML stores integers of fewer bits, and has few ops for them."""

MOST_IN_FLOATS = 1 << 24
"""Up to it f32 holds every integer."""

LARGE_PADDED = Quirk(
    "pad of large integers",
    (names.PAD,),
    {"coreml": "it pads them as f32, which rounds those beyond 2^24"},
    "`concatenate` and `slice`, unless they are known to be small",
    module(
        "%x: tensor<3xi32>",
        "tensor<5xi32>",
        "%v = stablehlo.constant dense<0> : tensor<i32>",
        "%r = stablehlo.pad %x, %v, low = [1], high = [1], interior = [0]",
        "  : (tensor<3xi32>, tensor<i32>) -> tensor<5xi32>",
    ),
    lambda graph, node: (
        node.operand(0).element.is_integer and max(largest_of(graph, value) for value in node.operands) > MOST_IN_FLOATS
    ),
    (Rules("op", ("pad_to_concatenate",)),),
)

COMPLEX_PADDING = Quirk(
    "pad of complex numbers",
    (names.PAD,),
    {"iree": "its compiler ends in a segmentation fault if they are padded with a constant"},
    "`concatenate` and `slice`",
    module(
        "%x: tensor<3xcomplex<f32>>",
        "tensor<5xcomplex<f32>>",
        "%v = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>",
        "%r = stablehlo.pad %x, %v, low = [1], high = [1], interior = [0]",
        "  : (tensor<3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<5xcomplex<f32>>",
    ),
    lambda _graph, node: node.operand(0).element.is_complex,
    (Rules("op", ("pad_to_concatenate",)),),
)

ORDERED_WINDOWS = Quirk(
    "gather with windows elsewhere",
    (names.GATHER,),
    {"coreml": "it ignores the place if the shape fits, and rejects others"},
    "`gather` as `numpy.take`, transposed",
    module(
        "%x: tensor<4x4xf32>, %i: tensor<4x1xi32>",
        "tensor<4x4xf32>",
        '%r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 1, 4>, dimension_numbers = #stablehlo.gather<',
        "  offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>",
        "  : (tensor<4x4xf32>, tensor<4x1xi32>) -> tensor<4x4xf32>",
    ),
    _is_out_of_order,
    (Rules(names.GATHER, ("gather_to_ordered_gather",)),),
)


def _is_read_one_by_one(_graph: Graph, node: Node) -> bool:
    """Whether a gather of integers of fewer than 32 bits reads other than whole rows."""
    element = node.operand(0).element
    return element.is_integer and element.bits < NARROW and row_order(node) is None


@over_each(names.GATHER)
def gather_in_i32(graph: Graph, node: Node) -> None:
    """Read windows of narrow integers in i32.

        gather %x, %i : i8   ->   convert (gather (convert %x : i32), %i) : i8

    Equal: a gather moves elements, and i32 has every number of fewer bits. Costs the operand in i32.
    """
    value, element = node.operand(0), node.operand(0).element_type
    if not node.is_static or not _is_read_one_by_one(graph, node):
        return
    build, result = Builder.before(node), node.result()
    wide = mlir.tensor_type(result.static_shape, "i32")
    read = build.copy_on(node, [build.convert(value, "i32"), node.operand(1)], [wide], {}).result()
    result.raw.replace_all_uses_with(build.convert(read, element).raw)
    node.raw.erase()


NARROW_WINDOWS = Quirk(
    "gather of narrow integers in windows",
    (names.GATHER,),
    {"coreml": "it fills the result of its loop with zeros first, which it does of 32 bits alone"},
    "a `gather` of i32",
    module(
        "%x: tensor<6xi8>, %i: tensor<3x1xi32>",
        "tensor<3x2xi8>",
        '%r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 2>, dimension_numbers = #stablehlo.gather<',
        "  offset_dims = [1], start_index_map = [0], index_vector_dim = 1>}>",
        "  : (tensor<6xi8>, tensor<3x1xi32>) -> tensor<3x2xi8>",
    ),
    _is_read_one_by_one,
    (Rewrite("gather-in-i32", "reads windows of narrow integers in i32", gather_in_i32, When.BEFORE_TYPES),),
)


def _reads_no_rows(_graph: Graph, node: Node) -> bool:
    """Whether a gather has batches, or windows that are neither one element nor all along some dim."""
    numbers, shape = mlir.gather_dimension_numbers(node.raw), node.operand(0).static_shape
    indexed, window = set(numbers.start_index_map), node.integers("slice_sizes")
    is_one = all(window[d] == 1 if d in indexed else window[d] == size for d, size in enumerate(shape))
    is_vector = len(indexed) > 1 and len(node.operand(1).static_shape) == 1
    return bool(numbers.operand_batching_dims) or not indexed or not is_one or is_vector


ROWS = Quirk(
    "gather of other than rows",
    (names.GATHER,),
    {"tt": "few forms of others are converted"},
    "`gather` of rows by their numbers",
    module(
        "%x: tensor<6x4xf32>, %i: tensor<5x1xi32>",
        "tensor<5x2x4xf32>",
        '%r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 2, 4>, dimension_numbers = #stablehlo.gather<',
        "  offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>}>",
        "  : (tensor<6x4xf32>, tensor<5x1xi32>) -> tensor<5x2x4xf32>",
    ),
    _reads_no_rows,
    (Rules(names.GATHER, ("gather_to_numbered_rows",)),),
)

MOST_PADDED = 5
"""LiteRT pads tensors of at most so many dims."""


def _is_padded_in_many_dims(_graph: Graph, node: Node) -> bool:
    """Whether a gather has windows along indexed dims, and its starts, one for each of their elements, many dims."""
    numbers, window = mlir.gather_dimension_numbers(node.raw), node.integers("slice_sizes")
    rank = len(node.operand(1).static_shape)
    positions = rank - (numbers.index_vector_dim < rank)
    has_windows = any(window[d] > 1 for d in numbers.start_index_map) and not numbers.operand_batching_dims
    return has_windows and positions + sum(size > 1 for size in window) + 1 > MOST_PADDED


PADDED_WINDOWS = Quirk(
    "gather of windows of many dims",
    (names.GATHER,),
    {"litert": "it pads the starts of all elements of the windows, which have more dims than it can pad"},
    "`gather` of rows by their numbers",
    module(
        "%x: tensor<2x4x4x3xf32>, %i: tensor<3x4xi32>",
        "tensor<3x2x2x4x3xf32>",
        '%r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 2, 2, 4, 3>, dimension_numbers =',
        "  #stablehlo.gather<offset_dims = [1, 2, 3, 4], start_index_map = [0, 1, 2, 3], index_vector_dim = 1>}>",
        "  : (tensor<2x4x4x3xf32>, tensor<3x4xi32>) -> tensor<3x2x2x4x3xf32>",
    ),
    _is_padded_in_many_dims,
    (Rules(names.GATHER, ("gather_to_numbered_rows",)),),
)

BY_ROWS = (ROWS, PADDED_WINDOWS)
"""Forms of gathers that are right where they read rows by their numbers."""

REVERSED_APART = Quirk(
    "reverse of dims apart",
    (names.REVERSE,),
    {"litert": "it is not converted"},
    "a reverse of each",
    module(
        "%x: tensor<2x3x4xf32>", "tensor<2x3x4xf32>", "%r = stablehlo.reverse %x, dims = [0, 2] : tensor<2x3x4xf32>"
    ),
    _is_reversed_apart,
    (Rules(names.REVERSE, ("reverse_to_reverses",)),),
)


@over_each(names.REVERSE)
def reverse_with_sign(_graph: Graph, node: Node) -> None:
    """Reverse unsigned integers as signed ones of the same bits.

        reverse %x : ui8   ->   bitcast_convert (reverse (bitcast_convert %x) : i8) : ui8

    Equal: a reverse moves elements, and changes no bit of them.
    """
    value = node.operand(0)
    if not node.is_static or not value.element.is_unsigned:
        return
    build = Builder.before(node)
    bits = build.bitcast(value, value.element_type.removeprefix("u"))
    found = build.bitcast(build.reverse(bits, node.integers("dimensions")), value.element_type)
    node.result().raw.replace_all_uses_with(found.raw)
    node.raw.erase()


REVERSED_UNSIGNED = Quirk(
    "reverse of unsigned integers",
    (names.REVERSE,),
    {"iree": "it is not legalized"},
    "a `reverse` of signed ones of the same bits",
    module("%x: tensor<3xui32>", "tensor<3xui32>", "%r = stablehlo.reverse %x, dims = [0] : tensor<3xui32>"),
    lambda _graph, node: node.operand(0).element.is_unsigned,
    (Rewrite("reverse-with-sign", "reverses unsigned integers as signed ones", reverse_with_sign),),
    is_anywhere=True,
)

STARTING = (names.GATHER, names.DYNAMIC_SLICE, names.DYNAMIC_UPDATE_SLICE)
"""Ops that clamp where they start, so that the window lies inside."""
LEAST, MOST = -(2**31), 2**31 - 1


def _starts_and_limits(node: Node) -> tuple[int, list[int]]:
    """The first operand that is a start (an index vector of a gather), and the greatest start along each dim of it."""
    shape = node.operand(0).static_shape
    if node.name == names.GATHER:
        sizes = node.integers("slice_sizes")
        return 1, [shape[d] - sizes[d] for d in mlir.gather_dimension_numbers(node.raw).start_index_map]
    sizes = node.result().static_shape if node.name == names.DYNAMIC_SLICE else node.operand(1).static_shape
    first = 1 if node.name == names.DYNAMIC_SLICE else 2
    return first, [n - size for n, size in zip(shape, sizes, strict=True)]


def _starts_in_others(_graph: Graph, node: Node) -> bool:
    """Whether it starts at numbers of another type than i32, which holds all that are inside."""
    first, limits = _starts_and_limits(node)
    starts = node.operands[first:]
    is_other = bool(limits) and starts[0].element_type != "i32" and type_range(starts[0].element_type) is not None
    return is_other and max(limits) <= MOST


def _inside(build: Builder, starts: Value, limits: Sequence[int], vector: int) -> Value:
    """Starts as i32: those that i32 may not hold are clamped before."""
    low, high = type_range(starts.element_type) or (0, 0)
    if low < LEAST or high > MOST:
        shape, element = starts.static_shape, starts.element_type
        starts = starts if low == 0 else build.maximum(starts, build.constant(0, shape, element))
        if len(set(limits)) == 1:
            most = build.constant(limits[0], shape, element)
        else:
            most = build.broadcast(build.constant_array(np.asarray(limits), element), shape, [vector])
        starts = build.minimum(starts, most)
    return build.convert(starts, "i32")


@over_each(*STARTING)
def start_at_i32(graph: Graph, node: Node) -> None:
    """Let an op start at numbers of i32."""
    if not node.is_static or not _starts_in_others(graph, node):
        return
    build, (first, limits) = Builder.before(node), _starts_and_limits(node)
    if node.name == names.GATHER:
        vector = mlir.gather_dimension_numbers(node.raw).index_vector_dim
        node.raw.operands[1] = _inside(build, node.operand(1), limits, vector).raw
        return
    for k, limit in enumerate(limits, start=first):
        node.raw.operands[k] = _inside(build, node.operand(k), [limit], 0).raw


OTHER_STARTS = Quirk(
    "starts of another type than i32",
    STARTING,
    {"litert": "of i64 it reads elsewhere or ends the process; of narrower and unsigned ones it has no kernel"},
    "the same op at the same starts in i32, clamped before if i32 may not hold them",
    module(
        "%x: tensor<6xf32>, %i: tensor<i64>",
        "tensor<2xf32>",
        "%r = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<6xf32>, tensor<i64>) -> tensor<2xf32>",
    ),
    _starts_in_others,
    (Rewrite("narrow-starts", "gives starts in i32", start_at_i32, When.BEFORE_TYPES),),
)


def _is_made_of_constants(value: Value) -> bool:
    """Whether a value is a constant, or constants that are reshaped, put together, or written into one."""
    made = value.node
    puts_together = RESHAPING | {names.COMPLEX, names.DYNAMIC_UPDATE_SLICE}
    is_constant = made is not None and made.name == names.CONSTANT
    return is_constant or (
        made is not None and made.name in puts_together and all(map(_is_made_of_constants, made.operands))
    )


def _parts_of(build: Builder, value: Value) -> tuple[Value, Value]:
    """The parts of complex numbers: of one constant number constants, of what was put together what it was made of."""
    made, source = value.node, source_of(value).node
    if made is not None and made.name == names.COMPLEX:
        return made.operand(0), made.operand(1)
    numbers = None
    if source is not None and source.name == names.CONSTANT:
        numbers = mlir.constant_value(source.raw, is_complex=True)
    if numbers is None or not numbers.size or not np.all(numbers == numbers.flat[0]):
        return build.parts(value)
    real, imag = (
        build.float_splat(float(part), value.static_shape, value.element.part)
        for part in (numbers.flat[0].real, numbers.flat[0].imag)
    )
    return real, imag


@over_each(names.DYNAMIC_UPDATE_SLICE)
def write_parts(_graph: Graph, node: Node) -> None:
    """Write the parts of complex numbers, and put them together then.

    Equal: each element comes from the constant or from the update, with both of its parts.
    """
    value, update, *starts = node.operands
    if not node.is_static or not _is_written_complex(value):
        return
    build = Builder.before(node)
    pairs = zip(_parts_of(build, value), _parts_of(build, update), strict=True)
    written = build.complex([build.dynamic_update_slice(part, new, starts) for part, new in pairs])
    node.result().raw.replace_all_uses_with(written.raw)
    node.raw.erase()


def _is_written_complex(value: Value) -> bool:
    """Whether complex numbers that are written over are known when the module is compiled."""
    return value.element.is_complex and _is_made_of_constants(value)


WRITTEN_COMPLEX = Quirk(
    "update of a complex constant",
    (names.DYNAMIC_UPDATE_SLICE,),
    {"iree": "its compiler rejects the constant that it makes of it, or does not compute it in time"},
    "`complex` of parts that are written each",
    module(
        "%x: tensor<1xcomplex<f32>>, %i: tensor<i32>",
        "tensor<4xcomplex<f32>>",
        "%c = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>",
        "%r = stablehlo.dynamic_update_slice %c, %x, %i",
        "  : (tensor<4xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<i32>) -> tensor<4xcomplex<f32>>",
    ),
    lambda _graph, node: _is_written_complex(node.operand(0)),
    (
        Rewrite(
            "write-parts",
            "writes complex numbers part by part into constants",
            write_parts,
            When.LAST,
        ),
    ),
    is_reported=False,
)


def _is_shared_with_call(_graph: Graph, node: Node) -> bool:
    """Whether a call and an op beside it read what a reshape gives."""
    readers = {user.name == CALL for user in node.result().users}
    return readers == {True, False}


@over_each(names.RESHAPE)
def reshape_for_calls(graph: Graph, node: Node) -> None:
    """Give each call that reads a reshape one of its own.

    Equal: both reshapes give the same.
    """
    if not node.is_static or not _is_shared_with_call(graph, node):
        return
    result, value = node.result(), node.operand(0)
    for use in list(result.raw.uses):
        call = use.owner.operation
        if call.name == CALL:
            call.operands[use.operand_number] = Builder.before(Node(call)).reshape(value, result.static_shape).raw


SHARED_WITH_CALL = Quirk(
    "reshape read by a call and by an op",
    (names.RESHAPE,),
    {"iree": "its compiler ends in a segmentation fault, if the function computes what a `reduce` beside it reads"},
    "a `reshape` of its own for the call",
    """func.func public @main(%x: tensor<4x5xi1>) -> tensor<20xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.reshape %x : (tensor<4x5xi1>) -> tensor<20xi1>
  %a = call @widen(%r) : (tensor<20xi1>) -> tensor<20xi32>
  %b = stablehlo.convert %r : (tensor<20xi1>) -> tensor<20xi32>
  %s = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<20xi32>, tensor<i32>) -> tensor<i32>
  %t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> tensor<20xi32>
  %c = stablehlo.add %a, %t : tensor<20xi32>
  return %c : tensor<20xi32>
}
func.func private @widen(%x: tensor<20xi1>) -> tensor<20xi32> {
  %r = stablehlo.convert %x : (tensor<20xi1>) -> tensor<20xi32>
  return %r : tensor<20xi32>
}
""",
    _is_shared_with_call,
    (
        Rewrite(
            "reshape-for-calls",
            "reshapes for calls what is read beside them, too",
            reshape_for_calls,
            When.LAST,
        ),
    ),
    is_reported=False,
)
