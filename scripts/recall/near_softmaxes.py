"""What is not a softmax, a log_softmax or a logsumexp, although it has the same parts."""

import jax
import jax.numpy as jnp

from recall.case import Suite, boolean, f32, finds

NEAR = Suite("near misses")

X = f32(8, 8)
NO_SOFTMAX = finds("softmax")


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_maximum_of_the_other_axis(x):
    e = jnp.exp(x - x.max(0, keepdims=True))
    return e / e.sum(1, keepdims=True)


@NEAR.case(f32(4, 8, 8), refuses=NO_SOFTMAX)
def softmax_maximum_of_columns_in_a_square(x):
    e = jnp.exp(x - x.max(1)[:, :, None])
    return e / e.sum(2)[:, :, None]


@NEAR.case(X, X, refuses=NO_SOFTMAX)
def softmax_maximum_of_another_tensor(x, y):
    e = jnp.exp(x - y.max(1)[None, :])
    return e / e.sum(1, keepdims=True)


@NEAR.case(f32(4, 6, 8), refuses=NO_SOFTMAX)
def softmax_sum_over_one_axis_more_than_the_maximum(x):
    e = jnp.exp(x - x.max(2, keepdims=True))
    return e / e.sum((1, 2), keepdims=True)


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_sum_divides_other_rows(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1)[None, :]


@NEAR.case(X, X, refuses=NO_SOFTMAX)
def softmax_sum_of_another_tensor(x, y):
    m = x.max(1, keepdims=True)
    return jnp.exp(x - m) / jnp.exp(y - m).sum(1, keepdims=True)


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_sum_plus_one(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / (1 + e.sum(1, keepdims=True))


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_sum_not_shifted(x):
    return jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x).sum(1, keepdims=True)


@NEAR.case(X, boolean(8, 8), refuses=NO_SOFTMAX)
def softmax_masked_above_the_line_only(x, mask):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return jnp.where(mask, e, 0.0) / e.sum(1, keepdims=True)


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_mean_instead_of_sum(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.mean(1, keepdims=True)


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_of_sigmoids(x):
    s = jax.nn.sigmoid(x - x.max(1, keepdims=True))
    return s / s.sum(1, keepdims=True)


@NEAR.case(X, refuses=NO_SOFTMAX)
def softmax_of_expm1(x):
    e = jnp.expm1(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@NEAR.case(X, refuses=finds("log_softmax"))
def log_softmax_sum_not_shifted(x):
    shifted = x - x.max(1, keepdims=True)
    return shifted - jnp.log(jnp.exp(x).sum(1, keepdims=True))


@NEAR.case(X, refuses=finds("log_softmax"))
def log_softmax_by_log1p(x):
    shifted = x - x.max(1, keepdims=True)
    return shifted - jnp.log1p(jnp.exp(shifted).sum(1, keepdims=True))


@NEAR.case(X, refuses=finds("log_softmax"))
def log_softmax_sum_of_the_other_axis(x):
    shifted = x - x.max(1, keepdims=True)
    return shifted - jnp.log(jnp.exp(shifted).sum(0, keepdims=True))


@NEAR.case(X, refuses=finds("logsumexp"))
def logsumexp_another_maximum_added(x):
    m, other = x.max(1), x.max(0)
    return jnp.log(jnp.exp(x - m[:, None]).sum(1)) + other


@NEAR.case(X, refuses=finds("logsumexp"))
def logsumexp_of_means(x):
    m = x.max(1)
    return jnp.log(jnp.exp(x - m[:, None]).mean(1)) + m
