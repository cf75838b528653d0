"""Programs of PyTorch that hold one named op each, in the ways in which models write it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Function = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A function and what is in it.

    Attributes:
      row: the row of the table: the op, and which gelu.
      function: of tensors.
      shapes: of its arguments; of whole numbers where they end with "i".
    """

    row: str
    function: Function
    shapes: tuple[Any, ...]


PROGRAMS: list[Program] = []


def program(row: str, *shapes: Any) -> Callable[[Function], Function]:
    """Add the function below."""

    def added(function: Function) -> Function:
        PROGRAMS.append(Program(row, function, shapes))
        return function

    return added


X, W, B = (2, 4, 8), (16, 8), (16,)
HEADS, GROUPS, MASK = (2, 4, 6, 8), (2, 2, 6, 8), (6, 6)
IDS = ((2, 4), "i")


@program("softmax", X)
def softmax(x):
    return F.softmax(x, dim=-1)


@program("softmax", X)
def softmax_by_hand(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


@program("softmax", X)
def softmax_in_f32(x):
    return F.softmax(x, dim=-1, dtype=torch.float32).to(x.dtype)


@program("softmax", X)
def softmax_of_the_middle(x):
    return x.softmax(1)


@program("layer norm", X, (8,), (8,))
def layer_norm(x, weight, bias):
    return F.layer_norm(x, (8,), weight, bias, 1e-5)


@program("layer norm", X, (8,))
def layer_norm_no_bias(x, weight):
    return F.layer_norm(x, (8,), weight, None, 1e-6)


@program("layer norm", X)
def layer_norm_alone(x):
    return F.layer_norm(x, (8,))


@program("layer norm", X, (4, 8), (4, 8))
def layer_norm_of_two_axes(x, weight, bias):
    return F.layer_norm(x, (4, 8), weight, bias)


@program("layer norm", X, (8,), (8,))
def layer_norm_in_f32(x, weight, bias):
    return F.layer_norm(x.float(), (8,), weight.float(), bias.float(), 1e-5).to(x.dtype)


@program("layer norm", X, (8,), (8,))
def layer_norm_by_hand(x, weight, bias):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + 1e-5) + bias


@program("rms norm", X, (8,))
def rms_norm(x, weight):
    return F.rms_norm(x, (8,), weight, 1e-6)


@program("rms norm", X, (8,))
def rms_norm_of_llama(x, weight):
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


@program("rms norm", X, (8,))
def rms_norm_of_gemma(x, weight):
    wide = x.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (normed * (1.0 + weight.float())).to(x.dtype)


@program("gelu, exact", X)
def gelu(x):
    return F.gelu(x)


@program("gelu, exact", X)
def gelu_by_hand(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


@program("gelu, exact", X, W, B)
def gelu_of_a_layer(x, weight, bias):
    return F.gelu(F.linear(x, weight, bias))


@program("gelu, tanh", X)
def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


@program("gelu, tanh", X)
def gelu_of_gpt2(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


@program("silu", X)
def silu(x):
    return F.silu(x)


@program("silu", X)
def silu_by_sigmoid(x):
    return x * torch.sigmoid(x)


@program("swiglu", X, W, W)
def swiglu(x, gate, up):
    return F.silu(F.linear(x, gate)) * F.linear(x, up)


@program("swiglu", X, (32, 8))
def swiglu_of_halves(x, both):
    gate, up = F.linear(x, both).chunk(2, dim=-1)
    return F.silu(gate) * up


@program("attention", HEADS, HEADS, HEADS)
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@program("attention", HEADS, HEADS, HEADS)
def attention_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@program("attention", HEADS, HEADS, HEADS, MASK)
def attention_with_an_added_mask(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@program("attention", HEADS, HEADS, HEADS)
def attention_eager(q, k, v):
    weights = F.softmax(torch.matmul(q, k.transpose(2, 3)) * 8**-0.5, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(weights, v)


@program("attention", HEADS, GROUPS, GROUPS, MASK)
def attention_of_groups(q, k, v, mask):
    k, v = (t[:, :, None].expand(2, 2, 2, 6, 8).reshape(2, 4, 6, 8) for t in (k, v))
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(8) + mask
    return torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v)


@program("linear", X, W, B)
def linear(x, weight, bias):
    return F.linear(x, weight, bias)


@program("linear", (4, 8), (8, 16), B)
def linear_by_addmm(x, weight, bias):
    return torch.addmm(bias, x, weight)


@program("linear", X, (8, 16), B)
def linear_by_matmul(x, weight, bias):
    return x @ weight + bias


@program("embedding lookup", (16, 8), IDS)
def embedding(table, ids):
    return F.embedding(ids, table)


@program("embedding lookup", (16, 8), IDS)
def embedding_by_index(table, ids):
    return table[ids]


@program("rope", HEADS, (1, 1, 6, 8), (1, 1, 6, 8))
def rope_of_halves(x, cos, sin):
    turned = torch.cat((-x[..., 4:], x[..., :4]), dim=-1)
    return x * cos + turned * sin


@program("rope", HEADS, (6, 4), (6, 4))
def rope_interleaved(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
