"""Gathers that must not read out of bounds: for a consumer that does not clamp where they point (trap 51).

XLA clamps the starts of a gather by itself, so a module that lacks a clamp computes the same there as one that has it.
What is asked here is therefore not about results: whether every start lies inside, whatever the arguments are. Starts
lie inside just where a clamp is the identity; so the module, with an operation with effects before each gather that
reads its starts, is compared with the same one in which those operations read the starts clamped.
"""

import numpy as np

from hlo_lower import mlir


def with_told_starts(text: str, *, clamped: bool) -> str:
    """The same module with an operation with effects before every gather of static shape that reads its starts.

    Args:
      text: the module.
      clamped: whether it reads them clamped to where the gather's window is inside.
    """
    module = mlir.parse_module(text, mlir.make_context())
    gathers: list[mlir.RawOperation] = []

    def visit(op: mlir.RawOperation) -> None:
        if op.name == "stablehlo.gather" and all(_is_static(v.type) for v in op.operands):
            gathers.append(op)

    mlir.walk(module.operation, visit)
    with mlir.active(module.context):
        for op in gathers:
            _tell(op, _clamped(op) if clamped else op.operands[1])
    return mlir.print_module(module, locations=True)


def _is_static(raw_type: mlir.RawType) -> bool:
    tensor = mlir.read_tensor_type(raw_type)
    return tensor is not None and tensor.is_static


def _tell(op: mlir.RawOperation, starts: mlir.RawValue) -> None:
    mlir.create_operation(
        "stablehlo.custom_call",
        [starts],
        [],
        {"call_target_name": mlir.string_attribute("starts"), "has_side_effect": mlir.parse_attribute("true")},
        location=op.location,
        insertion_point=mlir.insert_before(op),
    )


def _clamped(op: mlir.RawOperation) -> mlir.RawValue:
    """The starts of a gather, clamped by an operation in front of it."""
    numbers = mlir.gather_dimension_numbers(op)
    shape = [int(n or 0) for n in mlir.tensor_shape(op.operands[0].type)]
    starts = op.operands[1]
    indices = [int(n or 0) for n in mlir.tensor_shape(starts.type)]
    dtype = mlir.dtype_of(mlir.tensor_element_name(starts.type))
    if not numbers.start_index_map or dtype is None or dtype.kind not in "iu":
        return starts
    sizes = mlir.integers_of(op.attributes["slice_sizes"])
    largest = int(np.iinfo(dtype).max)
    last = np.asarray([min(shape[d] - sizes[d], largest) for d in numbers.start_index_map], dtype)
    vector, rank = numbers.index_vector_dim, len(indices)
    along = last.reshape([-1 if d == vector else 1 for d in range(rank)]) if vector < rank else last.reshape([1] * rank)
    bounds = np.ascontiguousarray(np.broadcast_to(along, indices))
    point = mlir.insert_before(op)
    made: list[mlir.RawValue] = []
    for array in (np.zeros(indices, dtype), bounds):
        value = {"value": mlir.dense_attribute(array, starts.type)}
        constant = mlir.create_operation(
            "stablehlo.constant", [], [starts.type], value, location=op.location, insertion_point=point
        )
        made.append(constant.results[0])
    clamp = mlir.create_operation(
        "stablehlo.clamp",
        [made[0], starts, made[1]],
        [starts.type],
        location=op.location,
        insertion_point=point,
    )
    return clamp.results[0]
