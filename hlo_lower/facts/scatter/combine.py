"""Combiners whose updates can be combined with each other first, in any order, and then with the current value."""

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS, element_type, type_range
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.values.region import COMMUTATIVE, Combiner
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops import names
from hlo_lower.ops.spec import Role, identity_of, ops_with

OPS = {combiner: name.removeprefix("stablehlo.") for name, combiner in COMMUTATIVE.items()} | {Combiner.SUB: "add"}
"""The op that combines updates with each other: (c - a) - b = c - (a + b)."""

SUMS = frozenset({Combiner.ADD, Combiner.SUB})
EXTREMES = frozenset({Combiner.MIN, Combiner.MAX})
IDEMPOTENT = frozenset({Combiner.MIN, Combiner.MAX, Combiner.AND, Combiner.OR})
"""Combiners for which the same update counts once, however often it comes."""

MULTIPLIED = WIDE_FLOATS | {"i32", "i64", "ui32", "ui64"}
"""Element types of matrix products."""


def is_order_free(combiner: Combiner, element: str, *, reassociate: bool) -> bool:
    """Whether updates may be combined with each other first, and in any order, without a bit changing.

    Integers and truths: all of `OPS` are associative and commutative, sums and products modulo 2^width. Floats: minimum
    and maximum are (StableHLO takes IEEE 754's, in which -0 < +0 and NaN wins; the float8 types are left out, some have
    no infinity to begin with); sums and products round, so their order counts unless reassociation is asked for.
    Complex sums alike; complex products can make a NaN of an Inf and the 0 of an identity, so they stay in order.
    """
    if combiner not in OPS:
        return False
    if type_range(element) is not None:
        return True
    if combiner in IDEMPOTENT:
        return element in WIDE_FLOATS
    return reassociate and (element in WIDE_FLOATS or (combiner in SUMS and element_type(element).is_complex))


def is_float_extreme(combiner: Combiner, element: str) -> bool:
    """Whether it is the minimum or maximum of floats, a `reduce` by which is not to be trusted.

    XLA's CPU compiler loses a NaN in one; LiteRT's writes the largest finite magnitude where a constant is infinite.
    """
    return combiner in EXTREMES and element in WIDE_FLOATS


def identity(build: Builder, combiner: Combiner, element: str) -> Value:
    """The scalar that changes no update under `OPS[combiner]`, and no current value under the combiner.

    A sum begins with -0.0, because -0.0 + 0.0 is 0.0; what is subtracted begins with 0.0.
    """
    declared = element_type(element)
    if declared.is_complex:
        part = identity(build, combiner, declared.part)
        return build.complex([part, part])
    number = 0.0 if combiner is Combiner.SUB else identity_of(f"stablehlo.{OPS[combiner]}", declared)
    assert number is not None
    if declared.is_integer:
        return build.constant(int(number), (), element)
    return build.constant_array(np.asarray(number), element)


# --- whether all updates are the same: then the order of the writes does not matter, and neither does their number ---


MAX_STEPS = 20
IN_PLACE = ops_with(role=Role.ELEMENTWISE, arity=1) | {names.SLICE, names.REVERSE}
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
