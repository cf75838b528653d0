"""softmax, log_softmax and logsumexp as people write them."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, boolean, f16, f32, finds, i32

JAX_NN = Suite("jax.nn")
NUMPY = Suite("numpy-like")
OPTAX = Suite("optax")
TORCH = Suite("torch.export")


JAX_NN.add("softmax", lambda x: jax.nn.softmax(x), f32(4, 8), finds=finds("softmax", axis=1))
JAX_NN.add(
    "softmax_middle_axis_bf16", lambda x: jax.nn.softmax(x, axis=1), bf16(4, 8, 3), finds=finds("softmax", axis=1)
)
JAX_NN.add("softmax_first_axis_f16", lambda x: jax.nn.softmax(x, axis=0), f16(4, 8), finds=finds("softmax", axis=0))


@NUMPY.case(f32(4, 8), finds=finds("softmax", axis=1))
def softmax_keepdims(x):
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


@NUMPY.case(f32(4, 8, 5), finds=finds("softmax", axis=1))
def softmax_expanded_by_none(x):
    e = jnp.exp(x - x.max(1)[:, None, :])
    return e / e.sum(1)[:, None, :]


@NUMPY.case(f32(8, 4), finds=finds("softmax", axis=1))  # its operand is the transpose, computed four times
def softmax_by_transposes(x):
    return (jnp.exp(x.T - x.T.max(-1, keepdims=True)) / jnp.exp(x.T - x.T.max(-1, keepdims=True)).sum(-1)[:, None]).T


@NUMPY.case(f32(4, 8), finds=finds("softmax", axis=1))
def softmax_multiplied_by_the_inverse(x):
    e = lax.exp(x - x.max(-1, keepdims=True))
    return e * (1.0 / e.sum(-1, keepdims=True))


@NUMPY.case(f32(8), finds=finds("softmax", axis=0))
def softmax_of_a_vector(x):
    e = jnp.exp(x - x.max())
    return e / e.sum()


@TORCH.case(bf16(2, 4, 8), finds=finds("softmax", axis=2))
def softmax_in_f32_cast_back(x):
    wide = x.astype(jnp.float32)
    shifted = wide - lax.reduce(wide, -jnp.inf, lax.max, (2,)).reshape(2, 4, 1)
    e = jnp.exp(shifted)
    return (e / lax.reduce(e, 0.0, lax.add, (2,)).reshape(2, 4, 1)).astype(jnp.bfloat16)


JAX_NN.add("log_softmax", lambda x: jax.nn.log_softmax(x), f32(4, 8), finds=finds("log_softmax", axis=1))


@JAX_NN.case(bf16(8, 4), finds=finds("log_softmax", axis=0))
def log_softmax_first_axis_bf16(x):
    return jax.nn.log_softmax(x, axis=0)


@NUMPY.case(f32(4, 8), finds=finds("log_softmax", axis=1))
def log_softmax_by_logsumexp(x):
    return x - jax.scipy.special.logsumexp(x, axis=-1, keepdims=True)


@NUMPY.case(f16(4, 8), finds=finds("log_softmax", axis=1))
def log_softmax_by_hand(x):
    shifted = x - x.max(1, keepdims=True)
    return shifted - jnp.log(jnp.exp(shifted).sum(1, keepdims=True))


@TORCH.case(bf16(2, 8), finds=finds("log_softmax", axis=1))
def log_softmax_in_f32_cast_back(x):
    wide = x.astype(jnp.float32)
    shifted = wide - jnp.max(wide, axis=1, keepdims=True)
    return (shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))).astype(jnp.bfloat16)


@OPTAX.case(f32(4, 8), i32(4), finds=finds("log_softmax", axis=1))
def log_softmax_of_a_loss(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), labels[:, None], axis=-1)
    return -picked.squeeze(-1).mean()


JAX_NN.add("logsumexp", lambda x: jax.nn.logsumexp(x, axis=-1), f32(4, 8), finds=finds("logsumexp"))


@JAX_NN.case(f16(4, 8, 3), finds=finds("logsumexp", keepdims=True))
def logsumexp_two_axes_kept(x):
    return jax.nn.logsumexp(x, axis=(1, 2), keepdims=True)


@NUMPY.case(f32(4, 8), finds=finds("logsumexp"))
def logsumexp_by_hand(x):
    m = x.max(0)
    return m + jnp.log(jnp.exp(x - m).sum(0))


@NUMPY.case(bf16(4, 8), finds=finds("logsumexp", keepdims=True))
def logsumexp_kept_bf16(x):
    m = jnp.max(x, 1, keepdims=True)
    return jnp.log(jnp.sum(jnp.exp(x - m), 1, keepdims=True)) + m


@JAX_NN.case(f32(4, 8), boolean(4, 8), finds=finds("softmax", axis=1))
def softmax_where(x, mask):
    return jax.nn.softmax(x, where=mask)


@OPTAX.case(f32(4, 8), i32(4), finds=finds("logsumexp"))
def logsumexp_of_a_loss(logits, labels):
    label = jnp.take_along_axis(logits, labels[:, None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - label
