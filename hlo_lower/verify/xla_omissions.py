"""What XLA's CPU compiler leaves out of an op, written so that it does not.

jaxlib 0.10.2. Its simplifier takes a reduction over dims of one element for a reshape, whatever it starts from; and a
convolution of floats in groups of features, by a kernel as large as what it lies on, is computed as if the window was
not reversed. A version without the start, or the reversal, would be equal to what is run of the one that has it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower import mlir

REDUCE, CONVOLUTION = "stablehlo.reduce", "stablehlo.convolution"

SUMS, ONES = ("stablehlo.add", "stablehlo.or", "stablehlo.xor"), ("stablehlo.multiply",)


def write_out_omitted(module: mlir.RawModule) -> None:
    """Reduce dims of one element by a map of the region, and reverse kernels in front of convolutions, in place."""
    for op in mlir.named(module.operation, (REDUCE, CONVOLUTION))[0]:
        if op.name == CONVOLUTION:
            _reverse_kernel(op)
        elif _loses_start(op):
            _map(op)


def _reverse_kernel(convolution: mlir.RawOperation) -> None:
    """Equal: that is what a reversed window means."""
    given = convolution.attributes
    turned = list(given["window_reversal"]) if "window_reversal" in given else []
    dims = [dims[1] for dims, is_turned in zip(mlir.convolution_spatial_dimensions(convolution), turned, strict=False)
            if is_turned]  # fmt: skip
    if dims:
        kernel = convolution.operands[1]
        convolution.operands[1] = _before(convolution, "stablehlo.reverse", [kernel], kernel.type, "dimensions", dims)
        del given["window_reversal"]


def _before(
    op: mlir.RawOperation, name: str, values: list[mlir.RawValue], made: mlir.RawType, attribute: str, dims: list[int]
) -> mlir.RawValue:
    """The result of an op with one attribute, right before another op."""
    attributes, at = ({attribute: mlir.dense_i64(dims)} if attribute else {}), mlir.insert_before(op)
    new = mlir.create_operation(name, values, [made], attributes, location=op.location, insertion_point=at)
    return new.results[0]


def _loses_start(reduce: mlir.RawOperation) -> bool:
    """Whether a reduction of one tensor goes over dims of one element, from what may change that."""
    if len(reduce.results) > 1:
        return False
    value, start = (mlir.read_tensor_type(operand.type) for operand in reduce.operands)
    made, block = mlir.read_tensor_type(reduce.results[0].type), reduce.regions[0].blocks[0]
    if value is None or start is None or made is None or not value.is_static:
        return False
    types = {one.element_name for one in (value, start, made)}
    dims = mlir.integers_of(reduce.attributes["dimensions"])
    inside = {mlir.tensor_element_name(argument.type) for argument in block.arguments}
    is_plain = len(types | inside) == 1 and bool(dims) and all(value.shape[d] == 1 for d in dims)
    return is_plain and not _changes_nothing(reduce.operands[1], block)


def _changes_nothing(start: mlir.RawValue, block: mlir.RawBlock) -> bool:
    """Whether a start is a constant that the operation of a region gives the other operand for, zeros of any sign."""
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
    """Equal: of one element the region is run once, on the start and it."""
    value, start = reduce.operands
    made, block = reduce.results[0].type, reduce.regions[0].blocks[0]
    starts = _before(reduce, "stablehlo.broadcast_in_dim", [start], made, "broadcast_dimensions", [])
    values = _before(reduce, "stablehlo.reshape", [value], made, "", [])
    dims = {"dimensions": mlir.dense_i64(range(len(mlir.tensor_shape(made))))}
    where, at = reduce.location, mlir.insert_before(reduce)
    new = mlir.create_operation(
        "stablehlo.map", [starts, values], [made], dims, regions=1, location=where, insertion_point=at
    )
    types = [argument.type for argument in block.arguments]
    body = mlir.append_block(new, 0, types, where)
    known = dict(zip(block.arguments, body.arguments, strict=True))
    for inner in block.operations:
        copy = mlir.clone_into(inner.operation, body, known)
        known.update(zip(inner.operation.results, copy.results, strict=True))
    reduce.results[0].replace_all_uses_with(new.results[0])
    reduce.erase()
