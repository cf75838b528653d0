"""What is no activation of its name: another constant, another tensor, another sign."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import f32, finds
from recall.near_softmaxes import NEAR

X = f32(4, 8)
NO_GELU = (finds("gelu"),)
NO_SILU = (finds("silu"),)
NO_SWIGLU = (finds("swiglu"),)
ROOT = math.sqrt(2 / math.pi)


def tanh_gelu(x, half=0.5, root=ROOT, cubic=0.044715):
    return half * x * (1 + jnp.tanh(root * (x + cubic * x**3)))


@NEAR.case(X, refuses=NO_GELU)
def gelu_another_cubic(x):
    return tanh_gelu(x, cubic=0.0447)


@NEAR.case(X, refuses=NO_GELU)
def gelu_another_half(x):
    return tanh_gelu(x, half=0.51)


@NEAR.case(X, refuses=NO_GELU)
def gelu_another_root(x):
    return tanh_gelu(x, root=0.8)


@NEAR.case(X, refuses=NO_GELU)
def gelu_square_instead_of_cube(x):
    return 0.5 * x * (1 + jnp.tanh(ROOT * (x + 0.044715 * x * x)))


@NEAR.case(X, X, refuses=NO_GELU)
def gelu_of_another_tensor(x, y):
    return 0.5 * y * (1 + jnp.tanh(ROOT * (x + 0.044715 * x**3)))


@NEAR.case(X, refuses=NO_GELU)
def gelu_exact_another_root(x):
    return 0.5 * x * (1 + lax.erf(x / (math.sqrt(2) * 1.0001)))


@NEAR.case(X, refuses=NO_GELU)
def gelu_exact_complement(x):
    return 0.5 * x * (1 - lax.erf(x / math.sqrt(2)))


@NEAR.case(X, refuses=NO_GELU)
def gelu_exact_plus_two(x):
    return 0.5 * x * (2 + lax.erf(x / math.sqrt(2)))


@NEAR.case(X, refuses=(*NO_GELU, *NO_SILU))
def gelu_quick(x):
    return x * jax.nn.sigmoid(1.702 * x)


@NEAR.case(X, X, refuses=NO_SILU)
def silu_of_another_tensor(x, y):
    return x * jax.nn.sigmoid(y)


@NEAR.case(X, refuses=NO_SILU)
def silu_of_the_negative(x):
    return x * jax.nn.sigmoid(-x)


@NEAR.case(X, refuses=NO_SILU)
def silu_mish(x):
    return x * jnp.tanh(jax.nn.softplus(x))


@NEAR.case(X, refuses=NO_SILU)
def silu_two_instead_of_one(x):
    return x / (2 + jnp.exp(-x))


@NEAR.case(X, refuses=NO_SILU)
def silu_exponential_grows(x):
    return x / (1 + jnp.exp(x))


@NEAR.case(X, refuses=(finds("relu"),))
def relu_above_a_little(x):
    return jnp.maximum(x, 1e-3)


@NEAR.case(X, refuses=(finds("relu"),))
def relu_leaky(x):
    return jnp.where(x > 0, x, 0.01 * x)


@NEAR.case(X, X, refuses=(finds("relu"),))
def relu_chosen_by_another_tensor(x, y):
    return jnp.where(y > 0, x, 0.0)


@NEAR.case(X, refuses=(finds("relu"),))
def relu_from_below(x):
    return jnp.minimum(x, 0.0)


@NEAR.case(X, refuses=(finds("relu6"),))
def relu6_to_six_and_a_half(x):
    return jnp.clip(x, 0.0, 6.5)


@NEAR.case(X, refuses=(finds("relu6"), finds("relu")))
def relu6_from_minus_one(x):
    return jnp.clip(x, -1.0, 6.0)


@NEAR.case(X, refuses=(finds("hard_swish"),))
def hard_swish_by_a_fifth(x):
    return x * jnp.clip(x + 3, 0, 6) / 5


@NEAR.case(X, refuses=(finds("hard_swish"),))
def hard_swish_from_two(x):
    return x * jnp.clip(x + 2, 0, 6) / 6


@NEAR.case(X, X, refuses=(finds("hard_swish"),))
def hard_swish_of_another_tensor(x, y):
    return y * jnp.clip(x + 3, 0, 6) / 6


W = f32(8, 16)


@NEAR.case(X, W, refuses=NO_SWIGLU)
def swiglu_gate_is_up(x, w):
    both = x @ w
    return jax.nn.silu(both) * both


@NEAR.case(X, W, W, refuses=NO_SWIGLU)
def swiglu_by_gelu(x, gate, up):
    return jax.nn.gelu(x @ gate) * (x @ up)


@NEAR.case(X, W, W, refuses=NO_SWIGLU)
def swiglu_sum_instead_of_product(x, gate, up):
    return jax.nn.silu(x @ gate) + x @ up


@NEAR.case(X, W, W, refuses=(*NO_SWIGLU, *NO_SILU))
def swiglu_by_sigmoid(x, gate, up):
    return jax.nn.sigmoid(x @ gate) * (x @ up)
