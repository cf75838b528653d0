"""What XLA's CPU compiler leaves out of an op, written so that it does not.

jaxlib 0.10.2. Its simplifier takes a reduction over dims of one element for a reshape, whatever it starts from; and a
convolution of floats in groups of features, by a kernel as large as what it lies on, is computed as if the window was
not reversed. Where 0.0 is added it gives the other operand, at each level of optimization, and so keeps a sign that
-0.0 + 0.0 loses; not where the 0.0 stands behind a barrier. The same of x - -0.0. A version without the start, the
reversal or the sum would be equal to what is run of the one that has it.

A sum that reduces one element from 0.0 becomes a reshape: how often the start comes in is the implementation's
(StableHLO, `reduce`), so the sign of a zero is not said. Reductions that promote their elements XLA does not compile.
Without its simplifier the compiler dies on a scatter into a scalar, which is one into an array of one element.

Numbers that XLA converts by way of a type in between it rounds twice: an f64 to bf16 and f16 through f32, integers to
bf16 through f32, to f8E5M2 through f16. What is cut off is gathered in one bit before (rounded to odd), so that they
are rounded once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.align.appended_ops import OpsBeside

REDUCE, CONVOLUTION, SCATTER = "stablehlo.reduce", "stablehlo.convolution", "stablehlo.scatter"
CONVERT = "stablehlo.convert"

TWICE = {
    "f64": ("f16", "bf16", "f4E2M1FN"),
    "f32": ("f4E2M1FN",),
    **{f"{sign}{bits}": ("bf16", "f8E5M2", "f8E5M2FNUZ") for sign in ("i", "ui") for bits in (16, 32, 64)},
}
"""Types that XLA converts to others by way of a third one that is no exact one."""

GUARDS = 3
"""Bits behind a type's own that tell on which side of a tie a number lies; the last of them is set if others were."""

INTEGER_GUARDS = 12
"""Bits of a large integer that an f64 may not hold."""

ADDING = ("stablehlo.add", "stablehlo.subtract")

BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert", "stablehlo.transpose")

STRAIGHT = ("func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if")
"""What holds ops that are run once each; regions of others are for each element, and take no barrier."""

SUMS, ONES = ("stablehlo.add", "stablehlo.or", "stablehlo.xor"), ("stablehlo.multiply",)


def write_out_omitted(module: mlir.RawModule) -> None:
    """Reduce dims of one element by a map of the region or a reshape, reverse kernels in front of convolutions, hide
    zeros that are added, scatter into arrays instead of scalars, and round once, in place."""
    for op in mlir.named(module.operation, (REDUCE, CONVOLUTION, SCATTER, CONVERT, *ADDING))[0]:
        if op.name == CONVOLUTION:
            _reverse_kernel(op)
        elif op.name == CONVERT:
            _round_once(op)
        elif op.name == SCATTER:
            _spread(op)
        elif op.name in ADDING:
            _hide_zeros(op)
        elif _is_of_one(op):
            if len(op.results) > 1 or not _changes_nothing(op.operands[1], op.regions[0].blocks[0]):
                _map(op)
            else:
                op.results[0].replace_all_uses_with(OpsBeside(op).op("reshape", [op.operands[0]], op.results[0].type))
                op.erase()


def _reverse_kernel(convolution: mlir.RawOperation) -> None:
    """Equal: that is what a reversed window means."""
    given = convolution.attributes
    turned = list(given["window_reversal"]) if "window_reversal" in given else []
    dims = [dims[1] for dims, is_turned in zip(mlir.convolution_spatial_dimensions(convolution), turned, strict=False)
            if is_turned]  # fmt: skip
    if dims:
        kernel = convolution.operands[1]
        convolution.operands[1] = OpsBeside(convolution).op(
            "reverse", [kernel], kernel.type, dimensions=mlir.dense_i64(dims)
        )
        del given["window_reversal"]


def _hide_zeros(add: mlir.RawOperation) -> None:
    """Equal: a barrier gives what it takes."""
    if add.parent is None or add.parent.name not in STRAIGHT:
        return
    for place, value in enumerate(list(add.operands)):
        if _is_float_zero(value):
            add.operands[place] = OpsBeside(add).op("optimization_barrier", [value], value.type)


def _round_once(convert: mlir.RawOperation) -> None:
    """Equal: with its guards a number lies on the same side of the middle of the same two narrow ones."""
    value = convert.operands[0]
    source, made = (mlir.tensor_element_name(v.type) for v in (value, convert.results[0]))
    if made not in TWICE.get(source, ()) or convert.parent is None or convert.parent.name not in STRAIGHT:
        return
    if not mlir.is_static(value.type) or 0 in mlir.static_shape(value.type):
        return
    beside = OpsBeside(convert)
    if element_type(source).is_integer:
        wide = mlir.tensor_type(mlir.tensor_shape(value.type), "f64")
        value, source = beside.op("convert", [_with_guard(beside, value, source)], wide), "f64"
    bits = mlir.tensor_type(mlir.tensor_shape(value.type), element_type(source).unsigned)
    cut = element_type(source).mantissa - element_type(made).mantissa - GUARDS
    guarded = _gathered(beside, beside.op("bitcast_convert", [value], bits), cut)
    convert.operands[0] = beside.op("bitcast_convert", [guarded], value.type)


def _with_guard(beside: OpsBeside, value: mlir.RawValue, element: str) -> mlir.RawValue:
    """An integer that an f64 holds and that becomes the same narrow float: a large one without its last bits."""
    if not element.endswith("64"):
        return value
    scalar, dtype = mlir.tensor_type([], element), mlir.dtype_of(element)
    low, high = (
        beside.constant(np.asarray(v).astype(dtype), scalar) for v in (-(1 << 52) * (element == "i64"), 1 << 52)
    )
    clamped = beside.op("clamp", [low, value, high], value.type)
    kind = f"#stablehlo<comparison_type {element_type(element).compare_type}>"
    is_small = beside.compare("EQ", [value, clamped], compare_type=kind)
    return beside.op("select", [is_small, value, _gathered(beside, value, INTEGER_GUARDS)], value.type)


def _gathered(beside: OpsBeside, value: mlir.RawValue, count: int) -> mlir.RawValue:
    """An integer whose last bits are cleared, the first of them set if one was."""
    dtype = mlir.dtype_of(mlir.tensor_element_name(value.type))
    mask = (1 << count) - 1

    def everywhere(number: int) -> mlir.RawValue:
        return beside.constant(np.asarray(number).astype(dtype), value.type)

    rest = beside.op("and", [value, everywhere(mask)], value.type)
    is_some = beside.compare("NE", [rest, everywhere(0)])
    bit = beside.op("select", [is_some, everywhere(1 << (count - 1)), everywhere(0)], value.type)
    whole = beside.op("and", [value, everywhere(~mask)], value.type)
    return beside.op("or", [whole, bit], value.type)


def _spread(scatter: mlir.RawOperation) -> None:
    """Equal: the one element of an array takes what the scalar takes."""
    if any(mlir.tensor_shape(result.type) for result in scatter.results):
        return
    before, behind = OpsBeside(scatter), OpsBeside(scatter, is_behind=True)
    *_, updates = scatter.operands
    for place, value in enumerate(list(scatter.operands)):
        if place != len(scatter.results):
            scatter.operands[place] = before.reshape(value, [*mlir.static_shape(value.type), 1])
    window = len(mlir.tensor_shape(updates.type))
    vector = mlir.ScatterNumbers.of(scatter).index_vector_dim
    numbers = f"#stablehlo.scatter<update_window_dims = [{window}], index_vector_dim = {vector}>"
    scatter.attributes["scatter_dimension_numbers"] = mlir.parse_attribute(numbers)
    for result in scatter.results:
        mlir.set_type(result, mlir.tensor_type([1], mlir.tensor_element(result.type)))
        scalar = behind.reshape(result, [])
        result.replace_all_uses_with(scalar)
        scalar.owner.operands[0] = result


def _is_float_zero(value: mlir.RawValue) -> bool:
    """Whether a value is 0.0 everywhere, a constant that may be spread."""
    maker = mlir.producer(value)
    while maker is not None and maker.name in BROADCASTS:
        maker = mlir.producer(maker.operands[0])
    if maker is None or maker.name != "stablehlo.constant":
        return False
    is_complex = element_type(mlir.tensor_element_name(value.type)).is_complex
    number = mlir.constant_value(maker, is_complex=True) if is_complex or mlir.is_splat(maker) else None
    return number is not None and number.dtype.kind in "fcV" and not number.any()


def _is_of_one(reduce: mlir.RawOperation) -> bool:
    """Whether a reduction goes over dims of one element, and does not promote them."""
    count, block = len(reduce.results), reduce.regions[0].blocks[0]
    read = [mlir.read_tensor_type(value.type) for value in (*reduce.operands, *reduce.results)]
    types = [one for one in read if one is not None and one.is_static]
    dims = mlir.integers_of(reduce.attributes["dimensions"])
    if len(types) < 3 * count or not dims or any(types[0].shape[d] != 1 for d in dims):
        return False
    inside = [mlir.tensor_element_name(argument.type) for argument in block.arguments]
    return inside[:count] == inside[count:] and all(t.element_name == inside[k % count] for k, t in enumerate(types))


def _changes_nothing(start: mlir.RawValue, block: mlir.RawBlock) -> bool:
    """Whether a start is a constant that the operation of a region gives the other operand for, zeros of any sign.

    XLA's simplifier takes x + 0.0 for x wherever it stands.
    """
    maker, operations = mlir.producer(start), list(block.operations)
    number: NDArray[Any] | None = None
    if maker is not None and maker.name == "stablehlo.constant":
        number = mlir.constant_value(maker, is_complex=True)
    if number is None or len(operations) != 2:
        return False
    if number.dtype.kind == "V":  # a float of ml_dtypes
        number = number.astype(np.float64)
    name, low, high = operations[0].operation.name, -np.inf, np.inf
    if number.dtype.kind in "iu":
        bounds = np.iinfo(number.dtype)
        low, high = bounds.min, bounds.max
    elif number.dtype.kind == "b":
        low, high = 0, 1
    ones = -1 if low < 0 else high
    wanted = {"stablehlo.maximum": low, "stablehlo.minimum": high, "stablehlo.and": ones}
    wanted |= dict.fromkeys(SUMS, 0) | dict.fromkeys(ONES, 1)
    return name in wanted and bool((number == wanted[name]).all())


def _map(reduce: mlir.RawOperation) -> None:
    """Equal: of one element the region is run once, on the start and it. A map has one result: each gets one."""
    count, block, where = len(reduce.results), reduce.regions[0].blocks[0], reduce.location
    *inner, last = (operation.operation for operation in block.operations)
    values: list[mlir.RawValue] = []
    for number, value in enumerate(reduce.operands):
        made = reduce.results[number % count].type
        if number < count:
            values.append(OpsBeside(reduce).op("reshape", [value], made))
        else:
            values.append(OpsBeside(reduce).op("broadcast_in_dim", [value], made, broadcast_dimensions="array<i64>"))
    values = values[count:] + values[:count]
    for result, returned in zip(reduce.results, last.operands, strict=True):
        dims = {"dimensions": mlir.dense_i64(range(len(mlir.tensor_shape(result.type))))}
        at = mlir.insert_before(reduce)
        new = mlir.create_operation(
            "stablehlo.map", values, [result.type], dims, regions=1, location=where, insertion_point=at
        )
        body = mlir.append_block(new, 0, [argument.type for argument in block.arguments], where)
        known = dict(zip(block.arguments, body.arguments, strict=True))
        for raw in inner:
            known.update(zip(raw.results, mlir.clone_into(raw, body, known).results, strict=True))
        end = mlir.insert_at_end(body)
        mlir.create_operation(
            "stablehlo.return", [known.get(returned, returned)], [], location=where, insertion_point=end
        )
        result.replace_all_uses_with(new.results[0])
    reduce.erase()
