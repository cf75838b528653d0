"""Known errors of XLA's CPU scatter (trap 46): where it is no judge, and where it must not even be run.

jaxlib 0.10.2. Some are worse than a wrong result. A scatter by indices of a type that is too narrow for its dim may
corrupt the heap of the process that runs it, and so does a variadic one with the same value as two operands (`free():
invalid next size`), whether the two are one SSA value, equal constants or equal broadcasts, an `optimization_barrier`
in between or not. Level one passes each operand as its own argument and is safe; a whole module that may hold such a
scatter is not run.
"""

from collections.abc import Hashable
from math import prod

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.read.program import Program, ValueId, ops_within
from hlo_lower.verify.read.scatter_positions import position_of, scatters_of

_SAME_ELEMENTS = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.optimization_barrier"})
"""Ops that are seen through: of two equal values they make two equal values."""

_MAX_DEPTH = 12


def why_xla_errs(module: mlir.RawModule) -> list[str]:
    """For each scatter of a module why XLA is no judge of it, "" if no error of it is known."""
    scatters = scatters_of(module)
    shared = (
        _with_shared_operands(module)
        if any(len(scatter.results) > 1 for scatter in scatters)
        else set[mlir.RawOperation]()
    )
    several = "corrupts memory where two operands are the same value (openxla/xla#29362)"
    return [_why_it_errs(scatter) or (several if scatter in shared else "") for scatter in scatters]


def why_xla_errs_in(module: mlir.RawModule) -> str:
    """The first of these reasons, or one of the module's comparisons."""
    if mlir.any_operation(module.operation, _is_of_two_bits):
        return "finds no negative i2 equal to a constant"
    return next(filter(None, why_xla_errs(module)), "")


def _is_of_two_bits(op: mlir.RawOperation) -> bool:
    return op.name == "stablehlo.compare" and mlir.tensor_element_name(op.operands[0].type) == "i2"


def why_no_judge(module: mlir.RawModule) -> str:
    """Why XLA is no judge of a module, with the scatter, "" where no error is known."""
    known = zip(scatters_of(module), why_xla_errs(module), strict=True)
    told = (f"XLA is no judge of {position_of(op, n)}: it {why}" for n, (op, why) in enumerate(known, start=1) if why)
    return next(told, "")


def _why_it_errs(scatter: mlir.RawOperation) -> str:
    """Why XLA is no judge of a scatter, wherever it stands."""
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
    index = element_type(indices.element_name)
    if 2 <= index.integer_bits <= 16 and any((size or 0) > index.most for size in operand.shape):
        return "builds its bounds in a narrow index type (openxla/xla#48718)"
    region = scatter.regions[0].blocks[0].arguments
    if any(mlir.tensor_element_name(region[i].type) != mlir.tensor_element_name(values[i].type) for i in range(arity)):
        return "returns the narrow type of a promoting region"
    returned = scatter.regions[0].blocks[0].operations
    for value in returned[len(returned) - 1].operands:
        is_constant = not mlir.is_block_argument(value) and value.owner.name == "stablehlo.constant"
        if is_constant and mlir.tensor_element_name(value.type) == "i2":
            return "writes a negative i2 constant over its neighbours in the byte"
    return ""


def _with_shared_operands(module: mlir.RawModule) -> set[mlir.RawOperation]:
    """The scatters two operands of which are, or may become by inlining and merging of equal ops, the same value."""
    program, found = Program(module), set[mlir.RawOperation]()
    for op in ops_within([op for body in program.entries.values() for op in body.ops]):
        if op.name == "stablehlo.scatter":
            keys = [(program.types[v], _key(program, v, 0)) for v in op.inputs[: len(op.results)]]
            if len(set(keys)) < len(keys):
                found.add(op.raw)
    return found


def _key(program: Program, value: ValueId, depth: int) -> Hashable:
    """The same for two values that are computed alike from the same values."""
    op = program.makers[value]
    if op is None:
        return value
    place = op.results.index(value)
    if op.name == "stablehlo.constant":
        return ("constant", _content(op.raw))
    if op.name in _SAME_ELEMENTS:
        return _key(program, op.inputs[place if len(op.results) > 1 else 0], depth)
    if depth > _MAX_DEPTH or op.bodies:
        return value
    return (op.name, place, op.attributes, *(_key(program, v, depth + 1) for v in op.inputs))


def _content(constant: mlir.RawOperation) -> bytes:
    """The elements of a constant, one if they are all the same; nothing where they cannot be read."""
    value = mlir.constant_value(constant)
    if value is None or not value.size:
        return b""
    first = value.reshape(-1)[:1]
    return first.tobytes() if not any(value.strides) else value.tobytes()
