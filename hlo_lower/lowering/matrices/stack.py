"""Matrices of one shape, one or a batch of them, and loops over their rows and columns.

Steps are JAX functions (`hlo_lower.lowering.engine.traced`) of arrays whose last dims are those of a matrix or a
vector. They read a row or column by its number at run time and mask out what stands before it by comparing an iota
with that number, so that one loop body serves all steps, and a target without loops gets them one after the other.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import traced
from hlo_lower.lowering.loops.structured import StructuredLoop

COUNTER = "i32"


def flat(build: Builder, value: Value, rank: int) -> Value:
    """A value whose last `rank` dims are those of one matrix or vector, its batch dims as one, if there are any."""
    split = len(value.static_shape) - rank
    sizes, own = value.static_shape[:split], value.static_shape[split:]
    return build.reshape(value, (*((prod(sizes),) if sizes else ()), *own))


def transposed(build: Builder, matrices: Value) -> Value:
    """The transposed matrices."""
    *batch, row, column = range(len(matrices.static_shape))
    return build.transpose(matrices, [*batch, column, row])


def steps(build: Builder, count: int, carried: Sequence[Value], step: Callable[..., Any], **given: Any) -> list[Value]:
    """What is carried after so many steps, each a function of its number and of what is carried."""
    if count == 1:
        return traced(build, step, build.constant(0, (), COUNTER), *carried, **given)

    def body(inner: Builder, number: Value, values: tuple[Value, ...], _: tuple[Value, ...]) -> Sequence[Value]:
        return traced(inner, step, number, *values, **given)

    return StructuredLoop(count, COUNTER).emit_while(build, carried, (), body) if count else list(carried)


def places(count: int) -> Array:
    """The numbers of rows or columns."""
    return lax.iota(jnp.int32, count)


def part(x: Array, number: Array, axis: int = -1) -> Array:
    """What stands at a place along an axis, without that axis: a column of a matrix, an element of a vector."""
    starts = [jnp.int32(0)] * x.ndim
    starts[axis] = number
    sizes = list(x.shape)
    sizes[axis] = 1
    return lax.squeeze(lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False), (axis,))


def outer(left: Array, right: Array) -> Array:
    """The products of the elements of two vectors: rows are the first one's."""
    return left[..., :, None] * right[..., None, :]
