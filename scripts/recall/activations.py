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
ERF = (finds("gelu", approximate="none"),)
TANH = (finds("gelu", approximate="tanh"),)


@JAX_NN.case(X, finds=ERF)
def gelu_exact(x):
    return jax.nn.gelu(x, approximate=False)


@JAX_NN.case(bf16(4, 8), finds=TANH)
def gelu_tanh(x):
    return jax.nn.gelu(x, approximate=True)


@NUMPY.case(X, finds=ERF)
def gelu_by_erf(x):
    return 0.5 * x * (1 + lax.erf(x / math.sqrt(2.0)))


@NUMPY.case(X, finds=ERF)
def gelu_by_normal_distribution(x):
    return x * jax.scipy.stats.norm.cdf(x)


@TORCH.case(f16(2, 4, 8), finds=ERF)
def gelu_of_decomposed_aten(x):
    return (x * 0.5) * (lax.erf(x * 0.7071067811865476) + 1)


@TORCH.case(f32(2, 4, 8), finds=TANH)
def gelu_new_of_gpt2(x):
    return 0.5 * x * (1.0 + jnp.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * jnp.power(x, 3.0))))


@NUMPY.case(X, finds=TANH)
def gelu_tanh_factored(x):
    return x * 0.5 * (1 + jnp.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))


@NUMPY.case(X, finds=TANH)
def gelu_tanh_as_sigmoid(x):
    return x * jax.nn.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


@JAX_NN.case(X, finds=(finds("silu"),))
def silu(x):
    return jax.nn.silu(x)


@NUMPY.case(f16(4, 8), finds=(finds("silu"),))
def silu_by_exponential(x):
    return x / (1 + jnp.exp(-x))


@NUMPY.case(X, finds=(finds("silu"),))
def silu_by_tanh(x):
    return x * (0.5 * (jnp.tanh(x / 2) + 1))


@TORCH.case(bf16(4, 8), finds=(finds("silu"),))
def silu_in_f32_cast_back(x):
    wide = x.astype(jnp.float32)
    return (wide * (1.0 / (1.0 + jnp.exp(-wide)))).astype(jnp.bfloat16)


@LAYERS.case(X, finds=(finds("silu"),))
def silu_by_expit(x):
    return lax.mul(lax.logistic(x), x)


@JAX_NN.case(X, finds=(finds("relu"),))
def relu(x):
    return jax.nn.relu(x)


@NUMPY.case(bf16(4, 8), finds=(finds("relu"),))
def relu_by_maximum(x):
    return jnp.maximum(0, x)


@NUMPY.case(X, finds=(finds("relu"),))
def relu_by_where(x):
    return jnp.where(x > 0, x, 0.0)


@TORCH.case(f16(4, 8), finds=(finds("relu"),))
def relu_by_lower_clamp(x):
    return lax.max(x, jnp.zeros_like(x))


@JAX_NN.case(X, finds=(finds("relu6"),))
def relu6(x):
    return jax.nn.relu6(x)


@NUMPY.case(f16(4, 8), finds=(finds("relu6"),))
def relu6_by_clip(x):
    return jnp.clip(x, 0, 6)


@TORCH.case(bf16(4, 8), finds=(finds("relu6"),))
def relu6_by_clamp(x):
    return lax.clamp(jnp.bfloat16(0), x, jnp.bfloat16(6))


@NUMPY.case(X, finds=(finds("relu6"),))
def relu6_maximum_last(x):
    return jnp.maximum(jnp.minimum(x, 6.0), 0.0)


@JAX_NN.case(X, finds=(finds("hard_swish"),))
def hard_swish(x):
    return jax.nn.hard_swish(x)


@NUMPY.case(f16(4, 8), finds=(finds("hard_swish"),))
def hard_swish_divided_last(x):
    return x * jnp.clip(x + 3, 0, 6) / 6


@TORCH.case(X, finds=(finds("hard_swish"),))
def hard_swish_by_clamp(x):
    return x * lax.clamp(0.0, x + 3.0, 6.0) * (1 / 6)


@LAYERS.case(bf16(4, 8), finds=(finds("hard_swish"),))
def hard_swish_by_hard_sigmoid(x):
    return x * jnp.clip(x / 6 + 0.5, 0, 1)


W = f32(8, 16)


@JAX_NN.case(X, W, W, finds=(finds("swiglu"),))
def swiglu(x, gate, up):
    return jax.nn.silu(x @ gate) * (x @ up)


@LAYERS.case(X, f32(8, 32), finds=(finds("swiglu"),))
def swiglu_of_halves(x, both):
    gate, up = jnp.split(x @ both, 2, axis=-1)
    return up * jax.nn.swish(gate)


@NUMPY.case(bf16(4, 8), bf16(8, 2, 16), finds=(finds("swiglu"),))
def swiglu_of_one_einsum(x, both):
    hidden = jnp.einsum("bd,dgf->bgf", x, both)
    return hidden[:, 0] / (1 + jnp.exp(-hidden[:, 0])) * hidden[:, 1]


@TORCH.case(f16(2, 4, 8), f16(16, 8), f16(16, 8), f16(8, 16), finds=(finds("swiglu"),))
def swiglu_of_a_layer(x, gate, up, down):
    hidden = jnp.matmul(x, gate.T)
    return jnp.matmul(hidden * lax.logistic(hidden) * jnp.matmul(x, up.T), down.T)
