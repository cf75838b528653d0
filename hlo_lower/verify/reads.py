"""Gathers and scatters that must stay in bounds: for a consumer that does not look where they point (trap 51).

XLA clamps the starts of a gather by itself and drops what a scatter writes outside, so a module that lacks a clamp or a
guard computes the same there as one that has it. What is asked here is therefore not about results: whether every start
lies inside, whatever the arguments are. Starts lie inside just where a clamp is the identity; so the module, with an
operation with effects before each of these ops that reads its starts, is compared with the same one in which those
operations read the starts clamped. In both a loop reads what it carries unchanged where that comes from. What the flags
of such a scatter promise is asked in the same way: an operation reads where a promise is broken, and in the other
module that it is nowhere.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from hlo_lower import mlir
from hlo_lower.verify.scatter_promises import broken_promises, kept_promise

GATHER, SCATTER = "stablehlo.gather", "stablehlo.scatter"


def with_told_starts(
    text: str, ops: Collection[str], *, clamped: bool, promises: bool = True, in_loops: bool = True
) -> str:
    """The same module with an operation with effects before every such op of static shape that reads its starts.

    Args:
      text: the module.
      ops: `GATHER`, `SCATTER` or both.
      clamped: whether it reads them clamped to where the windows are inside, and every promise kept.
      promises: whether the flags of scatters are looked at; not where the user answers for them.
      in_loops: whether those in loops and branches are looked at, too; a loop without any has no effect.
    """
    module = mlir.parse_module(text)
    found: list[mlir.RawOperation] = []
    left_out = set[str]() if in_loops else _functions_in_loops(module)

    def visit(op: mlir.RawOperation) -> None:
        if op.name == "stablehlo.while":
            _read_around(op)
        is_asked = in_loops or _function_of(op) not in (None, *left_out)
        if is_asked and op.name in ops and all(_is_static(v.type) for v in op.operands):
            found.append(op)

    mlir.walk(module.operation, visit)
    with mlir.active(module.context):
        for op in found:
            windows = _windows_of_gather(op) if op.name == GATHER else _windows_of_scatter(op)
            _tell(op, _clamped(op, windows) if clamped else windows.starts)
            for broken in broken_promises(op) if op.name == SCATTER and promises else ():
                _tell(op, kept_promise(op, broken) if clamped else broken)
    return mlir.print_module(module, locations=True)


def _read_around(loop: mlir.RawOperation) -> None:
    """Let a loop read what it carries as it is where that comes from, as constants of the function around it.

    Equal: a body that returns its argument leaves there, in every turn, what the loop was given.
    """
    condition, body = (region.blocks[0] for region in loop.regions)
    returned = body.operations[len(body.operations) - 1].operands
    for k, given in enumerate(loop.operands):
        if returned[k] == body.arguments[k]:
            body.arguments[k].replace_all_uses_with(given)
            condition.arguments[k].replace_all_uses_with(given)


def _function_of(op: mlir.RawOperation) -> str | None:
    """The function whose own body an op stands in; None where it stands in a region of another op."""
    parent = op.parent
    if parent is None or parent.name != "func.func":
        return None
    return mlir.symbol_name(parent.attributes["sym_name"])


def _functions_in_loops(module: mlir.RawModule) -> set[str]:
    """The functions that are called within loops and branches, also by one another."""
    calls: list[tuple[str | None, str]] = []

    def visit(op: mlir.RawOperation) -> None:
        if op.name == "func.call":
            calls.append((_function_of(op), mlir.symbol_name(op.attributes["callee"])))

    mlir.walk(module.operation, visit)
    found = {callee for caller, callee in calls if caller is None}
    while more := {callee for caller, callee in calls if caller in found} - found:
        found |= more
    return found


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


@dataclass(frozen=True)
class _Windows:
    """Where the windows of a gather or scatter lie.

    Attributes:
      starts: the index vectors.
      vector: the dim of the starts that holds a vector.
      placed: for each component of a vector, the last start at which a window is inside.
    """

    starts: mlir.RawValue
    vector: int
    placed: tuple[int, ...]


def _windows_of_gather(op: mlir.RawOperation) -> _Windows:
    numbers, shape = mlir.gather_dimension_numbers(op), _shape(op.operands[0])
    sizes = mlir.integers_of(op.attributes["slice_sizes"])
    placed = tuple(shape[d] - sizes[d] for d in numbers.start_index_map)
    return _Windows(op.operands[1], numbers.index_vector_dim, placed)


def _windows_of_scatter(op: mlir.RawOperation) -> _Windows:
    numbers, shape = mlir.ScatterNumbers.of(op), _shape(op.operands[0])
    count = len(op.operands) // 2
    update = _shape(op.operands[count + 1])
    left_out = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    covered = [d for d in range(len(shape)) if d not in left_out]
    sizes = dict(zip(covered, (update[d] for d in numbers.update_window_dims), strict=True))
    placed = tuple(shape[d] - sizes.get(d, 1) for d in numbers.scatter_dims_to_operand_dims)
    return _Windows(op.operands[count], numbers.index_vector_dim, placed)


def _shape(value: mlir.RawValue) -> list[int]:
    return [int(n or 0) for n in mlir.tensor_shape(value.type)]


def _clamped(op: mlir.RawOperation, windows: _Windows) -> mlir.RawValue:
    """The starts of a gather or scatter, clamped by an operation in front of it."""
    starts, indices = windows.starts, _shape(windows.starts)
    dtype = mlir.dtype_of(mlir.tensor_element_name(starts.type))
    if not windows.placed or dtype is None or dtype.kind not in "iu":
        return starts
    largest = int(np.iinfo(dtype).max)
    last = np.asarray([min(place, largest) for place in windows.placed], dtype)
    vector, rank = windows.vector, len(indices)
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
