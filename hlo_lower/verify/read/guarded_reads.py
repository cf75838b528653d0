"""Gathers and scatters that must stay in bounds: for a consumer that does not look where they point (trap 51).

XLA clamps the starts of a gather by itself and drops what a scatter writes outside, so a module that lacks a clamp or a
guard computes the same there as one that has it. What is asked here is therefore not about results: whether every start
lies inside, whatever the arguments are. Starts lie inside just where a clamp is the identity; so the module, with an
operation with effects before each of these ops that reads its starts, is compared with the same one in which those
operations read the starts clamped. In both a loop reads what it carries unchanged where that comes from. What the flags
of an operation promise is asked in the same way: an operation reads where a promise is broken, and in the other
module that it is nowhere.
"""

from collections.abc import Collection

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.drive.input_roles import columns_of
from hlo_lower.verify.read.index_promises import broken_promises, kept_promise

GATHER, SCATTER = "stablehlo.gather", "stablehlo.scatter"
INDEXED = (GATHER, SCATTER, "stablehlo.dynamic_gather")


def with_told_starts(text: str, ops: Collection[str], *, clamped: bool, in_loops: bool = True) -> str:
    """The same module with an operation with effects before every such op of static shape that reads its starts, and
    before each that is marked (`index_promises.PROMISED`) one that reads where its promises are broken.

    Args:
      text: the module.
      ops: `GATHER`, `SCATTER`, both or none.
      clamped: whether it reads them clamped to where the windows are inside, and every promise kept.
      in_loops: whether those in loops and branches are looked at, too; a loop without any has no effect.
    """
    module = mlir.parse_module(text)
    left_out = set[str]() if in_loops else _functions_in_loops(module)
    asked, _ = mlir.named(module.operation, INDEXED)
    for loop in mlir.named(module.operation, ("stablehlo.while",))[0]:
        _read_around(loop)
    with mlir.active(module.context):
        for op in asked:
            is_inside = not in_loops and _function_of(op) in (None, *left_out)
            if is_inside or not all(mlir.is_static(v.type) for v in op.operands):
                continue
            if op.name in ops:
                _tell(op, _clamped(op) if clamped else op.operands[columns_of(op)[0]])
            for broken in broken_promises(op):
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
    found, _ = mlir.named(module.operation, ("func.call",))
    calls = [(_function_of(op), mlir.symbol_name(op.attributes["callee"])) for op in found]
    found = {callee for caller, callee in calls if caller is None}
    while more := {callee for caller, callee in calls if caller in found} - found:
        found |= more
    return found


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
    """The starts of a gather or scatter, clamped by an operation in front of it."""
    number, vector, columns = columns_of(op)
    starts = op.operands[number]
    shape, dtype = mlir.static_shape(starts.type), mlir.dtype_of(mlir.tensor_element_name(starts.type))
    if not columns or dtype is None or dtype.kind not in "iu":
        return starts
    largest, rank = int(np.iinfo(dtype).max), len(shape)
    last = np.asarray([min(column.size - column.window, largest) for column in columns], dtype)
    along = last.reshape([-1 if d == vector else 1 for d in range(rank)]) if vector < rank else last.reshape([1] * rank)
    beside = OpsBeside(op)
    low, high = (
        beside.constant(np.ascontiguousarray(np.broadcast_to(a, shape)), starts.type) for a in (along * 0, along)
    )
    return beside.op("clamp", [low, starts, high], starts.type)
