"""Known errors of XLA's CPU scatter (trap 46): where it is no judge, and where it must not even be run.

jaxlib 0.10.2. Some are worse than a wrong result. A scatter by indices of a type that is too narrow for its dim may
corrupt the heap of the process that runs it, and so does a variadic one with the same value as two operands (`free():
invalid next size`), whether the two are one SSA value, equal constants or equal broadcasts, an `optimization_barrier`
in between or not. Level one passes each operand as its own argument and is safe; a whole module that may hold such a
scatter is not run.
"""

from collections.abc import Hashable
from math import prod

from hlo_lower import mlir
from hlo_lower.verify.module_index import ModuleIndex, function_of

_NARROW = {"i2": 1, "ui2": 2, "i4": 3, "ui4": 4, "i8": 7, "ui8": 8, "i16": 15, "ui16": 16}
"""Bits of the largest value of an index type in which XLA's bounds may wrap."""

_SAME_ELEMENTS = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.optimization_barrier"})
"""Ops that are seen through: of two equal values they make two equal values."""

_MAX_DEPTH = 12


def why_xla_errs(index: ModuleIndex, scatter: mlir.RawOperation) -> str:
    """Why XLA is no judge of a scatter, "" if no error of it is known."""
    numbers = mlir.scatter_dimension_numbers(scatter)
    arity = len(scatter.results)
    values = list(scatter.operands)
    operand, indices, updates = (mlir.read_tensor_type(values[i].type) for i in (0, arity, arity + 1))
    if operand is None or indices is None or updates is None:
        return "its types are not tensors"
    window = set(numbers.update_window_dims)
    positions = prod(size or 0 for d, size in enumerate(updates.shape) if d not in window)
    if not len(numbers.scattered_dims_to_operand_dims) and positions > 1:
        return "applies several updates at an empty index vector once or not at all (openxla/xla#48716)"
    bits = _NARROW.get(indices.element_name)
    if bits is not None and any((size or 0) > (1 << bits) - 1 for size in operand.shape):
        return "builds its bounds in a narrow index type (openxla/xla#48718)"
    region = scatter.regions[0].blocks[0].arguments
    if any(mlir.tensor_element_name(region[i].type) != mlir.tensor_element_name(values[i].type) for i in range(arity)):
        return "returns the narrow type of a promoting region"
    returned = scatter.regions[0].blocks[0].operations
    for value in returned[len(returned) - 1].operands:
        is_constant = not mlir.is_block_argument(value) and value.owner.name == "stablehlo.constant"
        if is_constant and mlir.tensor_element_name(value.type) == "i2":
            return "writes a negative i2 constant over its neighbours in the byte"
    if arity > 1 and _may_share_operands(index, scatter):
        return "corrupts memory where two operands are the same value (openxla/xla#29362)"
    return ""


def why_xla_errs_in(module: mlir.RawModule) -> str:
    """The same of all scatters of a module, and of its comparisons."""
    if mlir.any_operation(module.operation, _is_of_two_bits):
        return "finds no negative i2 equal to a constant"
    index = ModuleIndex(module)
    return next((reason for scatter in index.scatters if (reason := why_xla_errs(index, scatter))), "")


def _is_of_two_bits(op: mlir.RawOperation) -> bool:
    return op.name == "stablehlo.compare" and mlir.tensor_element_name(op.operands[0].type) == "i2"


def _may_share_operands(index: ModuleIndex, scatter: mlir.RawOperation) -> bool:
    """Whether two operands are, or may become by inlining and merging of equal ops, the same value."""
    operands = list(scatter.operands)[: len(scatter.results)]
    for path in index.call_paths(function_of(scatter)):
        keys = [(str(v.type), _key(v, path, 0)) for v in operands]
        if len(set(keys)) < len(keys):
            return True
    return False


def _key(value: mlir.RawValue, path: tuple[mlir.RawOperation, ...], depth: int) -> Hashable:
    """The same for two values that are computed alike from the same values, entered by the calls of path."""
    if mlir.is_block_argument(value):
        if value.owner.owner.operation.name == "func.func" and path:
            return _key(path[0].operands[mlir.argument_number(value)], path[1:], depth)
        return value
    op = value.owner.operation
    number = mlir.result_number(value)
    if op.name == "stablehlo.constant":
        return ("constant", _content(op))
    if op.name in _SAME_ELEMENTS:
        return _key(op.operands[number if len(op.results) > 1 else 0], path, depth)
    if depth > _MAX_DEPTH or len(op.regions):
        return value
    attributes = tuple(sorted((name, str(a)) for name, a in mlir.attributes_of(op).items()))
    return (op.name, number, attributes, *(_key(v, path, depth + 1) for v in op.operands))


def _content(constant: mlir.RawOperation) -> bytes:
    """The elements of a constant, one if they are all the same; nothing where they cannot be read."""
    value = mlir.constant_value(constant)
    if value is None or not value.size:
        return b""
    first = value.reshape(-1)[:1]
    return first.tobytes() if not any(value.strides) else value.tobytes()
