"""The three batch normalizations, written out as XLA does."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from jax import Array, lax

from hlo_lower.base.registry import RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import traced
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainLowering, PlainOp

rules = RuleList()


def _written_out(op: PlainLowering, function: Callable[..., Any]) -> Sequence[Value]:
    """A function of arrays with the feature last: of what is normalized, and of numbers for each feature."""
    epsilon = mlir.float_of(op.node.raw.attributes["epsilon"])
    return traced(op.build, function, *op.node.operands, feature=op.node.integer("feature_index"), epsilon=epsilon)


def _spread(value: Array, x: Array, feature: int) -> Array:
    """One number for each feature, in the shape of what is normalized."""
    return cast(Any, lax).broadcast_in_dim(value, x.shape, (feature,))


def _total(x: Array, feature: int) -> Array:
    """The sum of each feature."""
    return lax.reduce(x, np.zeros((), x.dtype), lax.add, [d for d in range(x.ndim) if d != feature])


def _count(x: Array, feature: int) -> float:
    """How many numbers a feature has."""
    return float(prod(x.shape) // max(x.shape[feature], 1))


@rules.lowers(PLAIN, named={PlainOp.BATCH_NORM_INFERENCE}, form="x * s + (offset - mean * s), s = scale * rsqrt(...)")
def batch_norm_inference_to_elementwise(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order.

        s = rsqrt(variance + epsilon) * scale;  x * s + (offset - mean * s)

    Equal: bit for bit to XLA on a CPU, which computes the factor and the shift feature by feature, too.
    """
    return _written_out(op, _inference)


def _inference(
    x: Array, scale: Array, offset: Array, mean: Array, variance: Array, *, feature: int, epsilon: float
) -> Array:
    factor = lax.rsqrt(variance + epsilon) * scale
    shift = offset - mean * factor
    return x * _spread(factor, x, feature) + _spread(shift, x, feature)


@rules.lowers(
    PLAIN, named={PlainOp.BATCH_NORM_TRAINING}, form="mean, variance E[x^2] - E[x]^2, and what inference computes"
)
def batch_norm_training_to_reduce(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order: the mean and the variance of each feature, then the normalization.

    Equal: up to the order of the two sums, which the specification leaves open.
    """
    return _written_out(op, _training)


def _training(x: Array, scale: Array, offset: Array, *, feature: int, epsilon: float) -> tuple[Array, Array, Array]:
    count = _count(x, feature)
    mean = _total(x, feature) / count
    variance = _total(x * x, feature) / count - mean * mean
    centred, root = x - _spread(mean, x, feature), lax.rsqrt(variance + epsilon)
    normalized = centred * _spread(root, x, feature)
    return normalized * _spread(scale, x, feature) + _spread(offset, x, feature), mean, variance


@rules.lowers(PLAIN, named={PlainOp.BATCH_NORM_GRAD}, form="the derivatives of a normalization, sums of each feature")
def batch_norm_grad_to_reduce(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order.

        offset' = sum(g);  scale' = sum(g * (x - mean)) * r, r = rsqrt(variance + epsilon)
        x' = scale * r / n * (n * g - offset' - (x - mean) * sum(g * (x - mean)) / (variance + epsilon))

    Equal: up to the order of the two sums, which the specification leaves open.
    """
    return _written_out(op, _gradients)


def _gradients(
    x: Array, scale: Array, mean: Array, variance: Array, grad: Array, *, feature: int, epsilon: float
) -> tuple[Array, Array, Array]:
    count, centred = _count(x, feature), x - _spread(mean, x, feature)
    root = lax.rsqrt(variance + epsilon)
    offset_grad, moment = _total(grad, feature), _total(grad * centred, feature)
    share = _spread(moment, x, feature) * centred / _spread(variance + epsilon, x, feature)
    inner = grad * count - _spread(offset_grad, x, feature) - share
    return _spread(scale * root, x, feature) / count * inner, moment * root, offset_grad
