"""What the flags of a scatter promise of its rows: that no two are the same one (`unique_indices`), that they ascend.

XLA on a CPU computes the same whatever they say, and a consumer's kernel may not: so a false one shows in no result
here, and is looked at by itself.
"""

import numpy as np

from hlo_lower import mlir
from hlo_lower.verify.appended_ops import OpsBeside

UNIQUE, SORTED = "unique_indices", "indices_are_sorted"


def broken_promises(op: mlir.RawOperation) -> list[mlir.RawValue]:
    """For each promise of a scatter of numbered rows a tensor in front of it that is true where it is broken.

    Of other forms (index vectors of several components, batching dims), and of fewer than two rows, there is none.

    Args:
      op: a scatter of static shape; the context is active.
    """
    numbers, starts = mlir.ScatterNumbers.of(op), op.operands[len(op.operands) // 2]
    shape, beside = mlir.static_shape(starts.type), OpsBeside(op)
    if numbers.input_batching_dims or len(numbers.scatter_dims_to_operand_dims) != 1:
        return []
    if len(shape) != 2 or numbers.index_vector_dim != 1 or shape[0] < 2:
        return []
    found: list[mlir.RawValue] = []
    if _is_set(op, UNIQUE):
        found.append(_neighbours(beside, _ascending(op, starts), "EQ"))
    if _is_set(op, SORTED):
        found.append(_neighbours(beside, starts, "GT"))
    return found


def promises_more(first: mlir.RawModule, second: mlir.RawModule) -> bool:
    """Whether more scatters of the second module have a flag than of the first one."""
    counts = [
        [sum(_is_set(op, flag) for op in mlir.named(module.operation, ("stablehlo.scatter",))[0])
         for flag in (UNIQUE, SORTED)]
        for module in (first, second)
    ]  # fmt: skip
    return any(theirs > mine for mine, theirs in zip(*counts, strict=True))


def kept_promise(op: mlir.RawOperation, broken: mlir.RawValue) -> mlir.RawValue:
    """What stands for a promise that is kept: the same tensor, false everywhere."""
    return OpsBeside(op).constant(np.zeros(mlir.static_shape(broken.type), bool), broken.type)


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
    given, truth = list(block.arguments), mlir.tensor_type((), "i1")
    how = {
        "comparison_direction": mlir.parse_attribute("#stablehlo<comparison_direction LT>"),
        "compare_type": mlir.parse_attribute(_compared(starts)),
    }
    less = mlir.create_operation("stablehlo.compare", given, [truth], how, location=op.location, insertion_point=end)
    mlir.create_operation("stablehlo.return", list(less.results), [], location=op.location, insertion_point=end)
    return sort.results[0]


def _neighbours(beside: OpsBeside, rows: mlir.RawValue, direction: str) -> mlir.RawValue:
    """How each row compares with the one behind it."""
    count = mlir.static_shape(rows.type)[0]
    sides = [beside.slice(rows, [first, 0], [count - 1 + first, 1]) for first in (0, 1)]
    return beside.compare(direction, sides, compare_type=_compared(rows))


def _compared(rows: mlir.RawValue) -> str:
    is_unsigned = mlir.tensor_element_name(rows.type).startswith("u")
    return f"#stablehlo<comparison_type {'UNSIGNED' if is_unsigned else 'SIGNED'}>"
