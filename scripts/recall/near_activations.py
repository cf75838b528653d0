"""What is no activation of its name: another constant, another tensor, another sign."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import f32, finds
from recall.near_softmaxes import NEAR

X = f32(4, 8)
NO_GELU = finds("gelu")
NO_SILU = finds("silu")
NO_SWIGLU = finds("swiglu")
ROOT = math.sqrt(2 / math.pi)


def tanh_gelu(x, half=0.5, root=ROOT, cubic=0.044715):
    return half * x * (1 + jnp.tanh(root * (x + cubic * x**3)))


NEAR.add("gelu_another_cubic", lambda x: tanh_gelu(x, cubic=0.0447), X, refuses=NO_GELU)
NEAR.add("gelu_another_half", lambda x: tanh_gelu(x, half=0.51), X, refuses=NO_GELU)
NEAR.add("gelu_another_root", lambda x: tanh_gelu(x, root=0.8), X, refuses=NO_GELU)
NEAR.add(
    "gelu_square_instead_of_cube", lambda x: 0.5 * x * (1 + jnp.tanh(ROOT * (x + 0.044715 * x * x))), X, refuses=NO_GELU
)
NEAR.add(
    "gelu_of_another_tensor", lambda x, y: 0.5 * y * (1 + jnp.tanh(ROOT * (x + 0.044715 * x**3))), X, X, refuses=NO_GELU
)
NEAR.add("gelu_exact_another_root", lambda x: 0.5 * x * (1 + lax.erf(x / (math.sqrt(2) * 1.0001))), X, refuses=NO_GELU)
NEAR.add("gelu_exact_complement", lambda x: 0.5 * x * (1 - lax.erf(x / math.sqrt(2))), X, refuses=NO_GELU)
NEAR.add("gelu_exact_plus_two", lambda x: 0.5 * x * (2 + lax.erf(x / math.sqrt(2))), X, refuses=NO_GELU)
NEAR.add("gelu_quick", lambda x: x * jax.nn.sigmoid(1.702 * x), X, refuses=(NO_GELU, NO_SILU))
NEAR.add("silu_of_another_tensor", lambda x, y: x * jax.nn.sigmoid(y), X, X, refuses=NO_SILU)
NEAR.add("silu_of_the_negative", lambda x: x * jax.nn.sigmoid(-x), X, refuses=NO_SILU)
NEAR.add("silu_mish", lambda x: x * jnp.tanh(jax.nn.softplus(x)), X, refuses=NO_SILU)
NEAR.add("silu_two_instead_of_one", lambda x: x / (2 + jnp.exp(-x)), X, refuses=NO_SILU)
NEAR.add("silu_exponential_grows", lambda x: x / (1 + jnp.exp(x)), X, refuses=NO_SILU)
NEAR.add("relu_above_a_little", lambda x: jnp.maximum(x, 1e-3), X, refuses=finds("relu"))
NEAR.add("relu_leaky", lambda x: jnp.where(x > 0, x, 0.01 * x), X, refuses=finds("relu"))
NEAR.add("relu_chosen_by_another_tensor", lambda x, y: jnp.where(y > 0, x, 0.0), X, X, refuses=finds("relu"))
NEAR.add("relu_from_below", lambda x: jnp.minimum(x, 0.0), X, refuses=finds("relu"))
NEAR.add("relu6_to_six_and_a_half", lambda x: jnp.clip(x, 0.0, 6.5), X, refuses=finds("relu6"))
NEAR.add("relu6_from_minus_one", lambda x: jnp.clip(x, -1.0, 6.0), X, refuses=(finds("relu6"), finds("relu")))
NEAR.add("hard_swish_by_a_fifth", lambda x: x * jnp.clip(x + 3, 0, 6) / 5, X, refuses=finds("hard_swish"))
NEAR.add("hard_swish_from_two", lambda x: x * jnp.clip(x + 2, 0, 6) / 6, X, refuses=finds("hard_swish"))
NEAR.add("hard_swish_of_another_tensor", lambda x, y: y * jnp.clip(x + 3, 0, 6) / 6, X, X, refuses=finds("hard_swish"))


W = f32(8, 16)


@NEAR.case(X, W, refuses=NO_SWIGLU)
def swiglu_gate_is_up(x, w):
    both = x @ w
    return jax.nn.silu(both) * both


NEAR.add("swiglu_by_gelu", lambda x, gate, up: jax.nn.gelu(x @ gate) * (x @ up), X, W, W, refuses=NO_SWIGLU)
NEAR.add(
    "swiglu_sum_instead_of_product", lambda x, gate, up: jax.nn.silu(x @ gate) + x @ up, X, W, W, refuses=NO_SWIGLU
)


NEAR.add(
    "swiglu_by_sigmoid", lambda x, gate, up: jax.nn.sigmoid(x @ gate) * (x @ up), X, W, W, refuses=(NO_SWIGLU, NO_SILU)
)
