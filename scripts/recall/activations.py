"""gelu, silu, relu, relu6, hard_swish and swiglu as people write them."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, f16, f32, finds

JAX_NN = Suite("jax.nn")
NUMPY = Suite("numpy-like")
TORCH = Suite("torch.export")
LAYERS = Suite("layer libraries")

X = f32(4, 8)
ERF = finds("gelu", approximate="none")
TANH = finds("gelu", approximate="tanh")


JAX_NN.add("gelu_exact", lambda x: jax.nn.gelu(x, approximate=False), X, finds=ERF)
JAX_NN.add("gelu_tanh", lambda x: jax.nn.gelu(x, approximate=True), bf16(4, 8), finds=TANH)
NUMPY.add("gelu_by_erf", lambda x: 0.5 * x * (1 + lax.erf(x / math.sqrt(2.0))), X, finds=ERF)
NUMPY.add("gelu_by_normal_distribution", lambda x: x * jax.scipy.stats.norm.cdf(x), X, finds=ERF)
TORCH.add(
    "gelu_of_decomposed_aten", lambda x: (x * 0.5) * (lax.erf(x * 0.7071067811865476) + 1), f16(2, 4, 8), finds=ERF
)


@TORCH.case(f32(2, 4, 8), finds=TANH)
def gelu_new_of_gpt2(x):
    return 0.5 * x * (1.0 + jnp.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * jnp.power(x, 3.0))))


NUMPY.add(
    "gelu_tanh_factored", lambda x: x * 0.5 * (1 + jnp.tanh(0.7978845608 * x * (1 + 0.044715 * x * x))), X, finds=TANH
)


@NUMPY.case(X, finds=TANH)
def gelu_tanh_as_sigmoid(x):
    return x * jax.nn.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


JAX_NN.add("silu", lambda x: jax.nn.silu(x), X, finds=finds("silu"))
NUMPY.add("silu_by_exponential", lambda x: x / (1 + jnp.exp(-x)), f16(4, 8), finds=finds("silu"))
NUMPY.add("silu_by_tanh", lambda x: x * (0.5 * (jnp.tanh(x / 2) + 1)), X, finds=finds("silu"))


@TORCH.case(bf16(4, 8), finds=finds("silu"))
def silu_in_f32_cast_back(x):
    wide = x.astype(jnp.float32)
    return (wide * (1.0 / (1.0 + jnp.exp(-wide)))).astype(jnp.bfloat16)


LAYERS.add("silu_by_expit", lambda x: lax.mul(lax.logistic(x), x), X, finds=finds("silu"))
JAX_NN.add("relu", lambda x: jax.nn.relu(x), X, finds=finds("relu"))
NUMPY.add("relu_by_maximum", lambda x: jnp.maximum(0, x), bf16(4, 8), finds=finds("relu"))
NUMPY.add("relu_by_where", lambda x: jnp.where(x > 0, x, 0.0), X, finds=finds("relu"))
TORCH.add("relu_by_lower_clamp", lambda x: lax.max(x, jnp.zeros_like(x)), f16(4, 8), finds=finds("relu"))
JAX_NN.add("relu6", lambda x: jax.nn.relu6(x), X, finds=finds("relu6"))
NUMPY.add("relu6_by_clip", lambda x: jnp.clip(x, 0, 6), f16(4, 8), finds=finds("relu6"))
TORCH.add("relu6_by_clamp", lambda x: lax.clamp(jnp.bfloat16(0), x, jnp.bfloat16(6)), bf16(4, 8), finds=finds("relu6"))
NUMPY.add("relu6_maximum_last", lambda x: jnp.maximum(jnp.minimum(x, 6.0), 0.0), X, finds=finds("relu6"))
JAX_NN.add("hard_swish", lambda x: jax.nn.hard_swish(x), X, finds=finds("hard_swish"))
NUMPY.add("hard_swish_divided_last", lambda x: x * jnp.clip(x + 3, 0, 6) / 6, f16(4, 8), finds=finds("hard_swish"))
TORCH.add("hard_swish_by_clamp", lambda x: x * lax.clamp(0.0, x + 3.0, 6.0) * (1 / 6), X, finds=finds("hard_swish"))
LAYERS.add(
    "hard_swish_by_hard_sigmoid", lambda x: x * jnp.clip(x / 6 + 0.5, 0, 1), bf16(4, 8), finds=finds("hard_swish")
)


W = f32(8, 16)


JAX_NN.add("swiglu", lambda x, gate, up: jax.nn.silu(x @ gate) * (x @ up), X, W, W, finds=finds("swiglu"))


@LAYERS.case(X, f32(8, 32), finds=finds("swiglu"))
def swiglu_of_halves(x, both):
    gate, up = jnp.split(x @ both, 2, axis=-1)
    return up * jax.nn.swish(gate)


@NUMPY.case(bf16(4, 8), bf16(8, 2, 16), finds=finds("swiglu"))
def swiglu_of_one_einsum(x, both):
    hidden = jnp.einsum("bd,dgf->bgf", x, both)
    return hidden[:, 0] / (1 + jnp.exp(-hidden[:, 0])) * hidden[:, 1]


@TORCH.case(f16(2, 4, 8), f16(16, 8), f16(16, 8), f16(8, 16), finds=finds("swiglu"))
def swiglu_of_a_layer(x, gate, up, down):
    hidden = jnp.matmul(x, gate.T)
    return jnp.matmul(hidden * lax.logistic(hidden) * jnp.matmul(x, up.T), down.T)
