"""What the flags of a scatter promise of its rows: that no two are the same one (`unique_indices`), that they ascend.

XLA on a CPU computes the same whatever they say, and a consumer's kernel may not: so a false one shows in no result
here, and is looked at by itself.
"""

import numpy as np

from hlo_lower import mlir

UNIQUE, SORTED = "unique_indices", "indices_are_sorted"


def broken_promises(op: mlir.RawOperation) -> list[mlir.RawValue]:
    """For each promise of a scatter of numbered rows a tensor in front of it that is true where it is broken.

    Of other forms (index vectors of several components, batching dims), and of fewer than two rows, there is none.

    Args:
      op: a scatter of static shape; the context is active.
    """
    numbers, starts = mlir.ScatterNumbers.of(op), op.operands[len(op.operands) // 2]
    shape = [int(n or 0) for n in mlir.tensor_shape(starts.type)]
    if numbers.input_batching_dims or len(numbers.scatter_dims_to_operand_dims) != 1:
        return []
    if len(shape) != 2 or numbers.index_vector_dim != 1 or shape[0] < 2:
        return []
    found: list[mlir.RawValue] = []
    if _is_set(op, UNIQUE):
        found.append(_neighbours(op, _ascending(op, starts), "EQ"))
    if _is_set(op, SORTED):
        found.append(_neighbours(op, starts, "GT"))
    return found


def kept_promise(op: mlir.RawOperation, broken: mlir.RawValue) -> mlir.RawValue:
    """What stands for a promise that is kept: the same tensor, false everywhere."""
    shape = [int(n or 0) for n in mlir.tensor_shape(broken.type)]
    value = {"value": mlir.dense_attribute(np.zeros(shape, bool), broken.type)}
    return _made(op, "stablehlo.constant", [], broken.type, value)


def _is_set(op: mlir.RawOperation, flag: str) -> bool:
    return flag in op.attributes and str(op.attributes[flag]) == "true"


def _ascending(op: mlir.RawOperation, starts: mlir.RawValue) -> mlir.RawValue:
    """The rows, sorted."""
    attributes = {"dimension": mlir.i64_attribute(0), "is_stable": mlir.parse_attribute("true")}
    sort = mlir.create_operation(
        "stablehlo.sort",
        [starts],
        [starts.type],
        attributes,
        regions=1,
        location=op.location,
        insertion_point=mlir.insert_before(op),
    )
    scalar = mlir.tensor_type((), mlir.tensor_element(starts.type))
    block = mlir.append_block(sort, 0, [scalar, scalar], op.location)
    end = mlir.insert_at_end(block)
    truth = mlir.tensor_type((), "i1")
    given, how = list(block.arguments), _how(starts, "LT")
    less = mlir.create_operation("stablehlo.compare", given, [truth], how, location=op.location, insertion_point=end)
    mlir.create_operation("stablehlo.return", list(less.results), [], location=op.location, insertion_point=end)
    return sort.results[0]


def _neighbours(op: mlir.RawOperation, rows: mlir.RawValue, direction: str) -> mlir.RawValue:
    """How each row compares with the one behind it."""
    count = int(mlir.tensor_shape(rows.type)[0] or 0)
    part = mlir.tensor_type((count - 1, 1), mlir.tensor_element(rows.type))
    sides: list[mlir.RawValue] = []
    for first in (0, 1):
        bounds = {
            "start_indices": mlir.dense_i64([first, 0]),
            "limit_indices": mlir.dense_i64([count - 1 + first, 1]),
            "strides": mlir.dense_i64([1, 1]),
        }
        sides.append(_made(op, "stablehlo.slice", [rows], part, bounds))
    return _made(op, "stablehlo.compare", sides, mlir.tensor_type((count - 1, 1), "i1"), _how(rows, direction))


def _how(rows: mlir.RawValue, direction: str) -> dict[str, mlir.RawAttribute]:
    is_unsigned = mlir.tensor_element_name(rows.type).startswith("u")
    return {
        "comparison_direction": mlir.parse_attribute(f"#stablehlo<comparison_direction {direction}>"),
        "compare_type": mlir.parse_attribute(f"#stablehlo<comparison_type {'UNSIGNED' if is_unsigned else 'SIGNED'}>"),
    }


def _made(
    op: mlir.RawOperation,
    name: str,
    operands: list[mlir.RawValue],
    result: mlir.RawType,
    attributes: dict[str, mlir.RawAttribute],
) -> mlir.RawValue:
    """The result of an operation in front of another one."""
    point = mlir.insert_before(op)
    return mlir.create_operation(
        name, operands, [result], attributes, location=op.location, insertion_point=point
    ).results[0]
