"""Whether all updates are the same: then the order of the writes does not matter, and neither does their number."""

from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import Role, named

MAX_STEPS = 20
IN_PLACE = named(role=Role.ELEMENTWISE, arity=1) | {names.SLICE, names.REVERSE}
"""Ops of one operand whose result is the same along a dim if the operand is."""


def is_uniform(scatter: CanonicalScatter, placed: frozenset[int]) -> bool:
    """Whether no update differs from another one of the same batch coordinate, nor between the rows of its window.

    Args:
      scatter: the scatter.
      placed: operand dims in which windows are placed; the update may differ along the others.
    """
    scatter_dims = scatter.scatter_dims
    window_dims = scatter.update_permutation[len(scatter_dims) :]
    batch = {n for _, n in scatter.batching}
    moving = {dim for n, dim in enumerate(scatter_dims) if n not in batch}
    moving |= {u for d, u in zip(scatter.window_dims, window_dims, strict=True) if d in placed}
    return all(moving <= constant_dims(update.raw) for update in scatter.updates)


def constant_dims(value: mlir.RawValue, depth: int = 0) -> frozenset[int]:
    """The dims along which the elements of a tensor of static shape are surely the same."""
    tensor = mlir.read_tensor_type(value.type)
    if tensor is None or not tensor.is_static:
        return frozenset()
    found = frozenset(d for d, size in enumerate(tensor.shape) if size is not None and size <= 1)
    if mlir.is_block_argument(value) or depth > MAX_STEPS:
        return found
    op, every = value.owner.operation, frozenset(range(len(tensor.shape)))
    match op.name:
        case names.CONSTANT:
            return every if mlir.is_splat(op) else found
        case names.BROADCAST_IN_DIM:
            dims = mlir.integers_of(op.attributes["broadcast_dimensions"])
            inner = constant_dims(op.operands[0], depth + 1)
            return found | {d for d in every if d not in dims or dims.index(d) in inner}
        case names.RESHAPE:
            inner = constant_dims(op.operands[0], depth + 1)
            return every if len(inner) == len(mlir.tensor_shape(op.operands[0].type)) else found
        case names.TRANSPOSE:
            inner = constant_dims(op.operands[0], depth + 1)
            permutation = mlir.integers_of(op.attributes["permutation"])
            return found | {d for d, source in enumerate(permutation) if source in inner}
        case name if name in IN_PLACE:
            return found | constant_dims(op.operands[0], depth + 1)
        case _:
            return found
