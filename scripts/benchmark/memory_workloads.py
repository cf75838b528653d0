"""Programs of which one tensor takes most of the memory, at sizes for tests and for measuring."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

F32, I32, I8 = jnp.float32, jnp.int32, jnp.int8


@dataclass(frozen=True)
class Workload:
    """A program.

    Attributes:
      name: of the program.
      build: makes the function and its arguments from sizes.
      small, full: sizes for tests, and those of the table in docs/tiling.md.
      max_temp: the bound that the full one is tiled to.
    """

    name: str
    build: Callable[..., tuple[Callable[..., object], tuple[jax.ShapeDtypeStruct, ...]]]
    small: tuple[int, ...]
    full: tuple[int, ...]
    max_temp: str

    def text(self, sizes: tuple[int, ...]) -> str:
        """The module at these sizes."""
        function, arguments = self.build(*sizes)
        return jax.jit(function).lower(*arguments).as_text()


def of(shape: tuple[int, ...], dtype: object = F32) -> jax.ShapeDtypeStruct:
    """The type of an argument."""
    return jax.ShapeDtypeStruct(shape, dtype)


def cross_entropy(tokens: int, width: int, vocabulary: int):
    """The loss of logits x @ w and its gradients to x and w: the logits and what is computed of them are large."""

    def loss(x, w, labels):
        logits = x @ w
        chosen = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
        return (jax.nn.logsumexp(logits, -1) - chosen).mean()

    arguments = (of((tokens, width)), of((width, vocabulary)), of((tokens,), I32))
    return jax.value_and_grad(loss, (0, 1)), arguments


def attention(heads: int, length: int, width: int):
    """Causal softmax attention: the scores are large."""

    def attend(q, k, v):
        scores = jnp.einsum("htd,hsd->hts", q, k) / width**0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        return jnp.einsum("hts,hsd->htd", jax.nn.softmax(scores, -1), v)

    return attend, (of((heads, length, width)),) * 3


def attention_gradient(heads: int, length: int, width: int):
    """The gradients of attention to all three arguments."""
    attend, arguments = attention(heads, length, width)
    return jax.grad(lambda q, k, v: (attend(q, k, v) ** 2).sum(), (0, 1, 2)), arguments


def experts(tokens: int, width: int, hidden: int, count: int):
    """The two best experts of each token, their weights gathered: the gathered weights are large."""

    def mixture(x, router, up, down):
        gates, chosen = jax.lax.top_k(x @ router, 2)
        inner = jax.nn.gelu(jnp.einsum("td,tkdf->tkf", x, up[chosen]))
        return jnp.einsum("tkf,tkfd,tk->td", inner, down[chosen], jax.nn.softmax(gates, -1))

    shapes = ((tokens, width), (width, count), (count, width, hidden), (count, hidden, width))
    return mixture, tuple(of(shape) for shape in shapes)


def int8_table(rows: int, width: int, tokens: int):
    """A step on a table of int8 with scales: rows gathered of the dequantized table, gradients added to it, quantized.

    The dequantized table and its gradient are large.
    """

    def step(table, scales, ids, wanted):
        dense = table.astype(F32) * scales[:, None]
        found = dense[ids]
        new = dense.at[ids].add(wanted - found)
        largest = jnp.maximum(jnp.abs(new).max(-1), 1e-6)
        return jnp.round(new / largest[:, None] * 127).astype(I8), largest / 127, ((found - wanted) ** 2).sum()

    return step, (of((rows, width), I8), of((rows,)), of((tokens,), I32), of((tokens, width)))


def _normed(x, *axes: int):
    """Values less their mean, by their deviation."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axes, keepdims=True) + 1e-5)


def prefill(layers: int, tokens: int, width: int, heads: int):
    """Layers of causal attention and a gated network, of which the last row of logits is returned, and keys and values:
    the scores of each layer are large."""

    def forward(x, qkv, out, gate, down, vocabulary):
        caches = []
        mask = jnp.tril(jnp.ones((tokens, tokens), bool))
        for layer in range(layers):
            h = (_normed(x, -1) @ qkv[layer]).reshape(tokens, 3, heads, width // heads)
            q, k, v = h[:, 0], h[:, 1], h[:, 2]
            scores = jnp.einsum("thd,shd->hts", q, k) / (width // heads) ** 0.5
            scores = jnp.where(mask, scores, -1e30)
            mixed = jnp.einsum("hts,shd->thd", jax.nn.softmax(scores, -1), v)
            x = x + mixed.reshape(tokens, width) @ out[layer]
            x = x + jax.nn.silu(_normed(x, -1) @ gate[layer]) @ down[layer]
            caches += [k, v]
        return (_normed(x, -1) @ vocabulary)[-1], caches

    shapes = ((tokens, width), (layers, width, 3 * width), (layers, width, width), (layers, width, 4 * width))
    return forward, (*map(of, shapes), of((layers, 4 * width, width)), of((width, 16 * width)))


def cached_attention(groups: int, share: int, old: int, new: int, width: int):
    """Attention of new tokens to a cache that they are concatenated to, keys and values repeated for the heads that
    share them: both repeated ones, and the scores, are large."""

    def attend(q, k, v, keys, values):
        keys, values = jnp.concatenate([keys, k], 1), jnp.concatenate([values, v], 1)
        k, v = jnp.repeat(keys, share, 0), jnp.repeat(values, share, 0)
        scores = jnp.einsum("htd,hsd->hts", q, k) / width**0.5
        seen = jnp.arange(old + new)[None, :] <= old + jnp.arange(new)[:, None]
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e30), -1)
        return jnp.einsum("hts,hsd->htd", weights, v), keys, values

    mine, cached = of((groups, new, width)), of((groups, old, width))
    return attend, (of((groups * share, new, width)), mine, mine, cached, cached)


def pair_block(length: int, width: int, heads: int):
    """A pair representation: triangle multiplication, attention around a node, and a transition, as in AlphaFold."""

    def block(z, left, right, out, qkv, bias, mixed, up, down):
        h = _normed(z, -1)
        product = jnp.einsum("ikc,jkc->ijc", jax.nn.sigmoid(h @ left), h @ right)
        z = z + _normed(product, -1) @ out
        h = _normed(z, -1)
        q, k, v = jnp.split((h @ qkv).reshape(length, length, heads, 3 * width // heads), 3, -1)
        scores = jnp.einsum("iqhc,ikhc->ihqk", q, k) / (width // heads) ** 0.5
        scores = scores + jnp.einsum("qkc,ch->hqk", h, bias)[None]
        found = jnp.einsum("ihqk,ikhc->iqhc", jax.nn.softmax(scores, -1), v)
        z = z + found.reshape(length, length, width) @ mixed
        return z + jax.nn.relu(_normed(z, -1) @ up) @ down

    square = of((width, width))
    others = (of((width, 3 * width)), of((width, heads)), square, of((width, 4 * width)), of((4 * width, width)))
    return block, (of((length, length, width)), square, square, square, *others)


def unet_block(images: int, side: int, width: int, heads: int):
    """A skip that is concatenated, two convolutions with norms, and self-attention over all positions of an image: a
    block of a diffusion model's U-Net."""

    def conv(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def block(x, skip, enter, one, other, qkv, out):
        x = conv(jnp.concatenate([x, skip], -1), enter)
        h = conv(jax.nn.silu(_normed(x, 1, 2)), one)
        x = x + conv(jax.nn.silu(_normed(h, 1, 2)), other)
        h = (_normed(x, 1, 2) @ qkv).reshape(images, side * side, 3, heads, width // heads)
        scores = jnp.einsum("bthd,bshd->bhts", h[:, :, 0], h[:, :, 1]) / (width // heads) ** 0.5
        mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, -1), h[:, :, 2])
        return x + mixed.reshape(images, side, side, width) @ out

    image, kernel = of((images, side, side, width)), of((3, 3, width, width))
    enter = of((3, 3, 2 * width, width))
    return block, (image, image, enter, kernel, kernel, of((width, 3 * width)), of((width, width)))


def through(op: str, rows: int, width: int, inner: int):
    """Two layers, an op that moves, picks or scatters their rows, and two layers more, summed by rows: what is made
    before the op and behind it is large, and only along the rows no product is split."""

    def apply(y, rows_of):
        match op:
            case "concatenate":
                return jnp.concatenate(y)
            case "reverse":
                return jnp.flip(y[0], 0)
            case "pad":
                return jax.lax.pad(y[0], F32(0.5), ((rows // 64, rows // 64, 0), (0, 0, 0)))
            case "slice":
                return y[0][rows // 64 : -rows // 32]
            case "gather":
                return jnp.take(y[0], rows_of, 0, mode="clip")
            case "dynamic_slice":
                return jax.lax.dynamic_slice_in_dim(y[0], rows_of[0], rows - rows // 64)
            case "dynamic_update_slice":
                return jax.lax.dynamic_update_slice_in_dim(y[0], y[1][: rows * 3 // 4], rows_of[0], 0)
            case "gather_windows":
                numbers = jax.lax.GatherDimensionNumbers((1, 2), (), (0,))
                windows = jax.lax.gather(y[0], rows_of[: rows // 4, None], numbers, (4, width), mode="clip")
                return windows.reshape(rows, width)
            case "gather_points":
                places = rows_of[: rows // 2]
                return y[0].at[places // 2, places % 2].get(mode="clip")
            case "reshaped_points":
                places = rows_of[: rows // 2]
                return y[0].reshape(rows // 2, 2, width).at[places // 2, places % 2].get(mode="clip")
            case "scattered_points":
                into = jnp.zeros((2, rows, width))
                return into.at[rows_of % 2, rows_of // 2].add(y[0], mode="drop").reshape(2 * rows, width)
            case "batched_gather":
                parts, picked = y[0].reshape(8, rows // 8, width), rows_of.reshape(8, -1) // 8
                return jax.vmap(lambda z, i: z.at[i].get(mode="clip"))(parts, picked).reshape(rows, width)
            case "batched_scatter":
                into, parts = jnp.zeros((8, rows // 4, width)), y[0].reshape(8, rows // 8, width)
                added = jax.vmap(lambda z, i, u: z.at[i].add(u, mode="drop"))(into, rows_of.reshape(8, -1) // 4, parts)
                return added.reshape(2 * rows, width)
            case "paired_scatter":
                parts = y[0].reshape(8, rows // 8, width)
                return jnp.zeros((2 * rows, width)).at[rows_of.reshape(8, -1)].add(parts, mode="drop")
            case "partial_scatter":
                numbers = jax.lax.ScatterDimensionNumbers((1,), (0,), (0, 1))
                places, updates = jnp.stack([rows_of, rows_of % (width // 4)], -1), y[0][:, : width * 3 // 4]
                return jax.lax.scatter_add(jnp.zeros((2 * rows, width)), places, updates, numbers, mode="drop")
            case _:
                return jnp.zeros((2 * rows, width)).at[rows_of].add(y[0], mode="drop")

    def forward(x, first, second, rows_of):
        y = apply([jnp.tanh(jnp.exp(part @ first) @ second) for part in x], rows_of)
        return jnp.exp(jnp.tanh(y @ second) @ second).sum(-1)

    parts = 2 if op in ("concatenate", "dynamic_update_slice") else 1
    x = [of((rows // 2, 2, inner) if op == "gather_points" else (rows, inner))] * parts
    return forward, (x, of((inner, width)), of((width, width)), of((rows,), I32))


def train_step(layers: int, tokens: int, width: int, heads: int, vocabulary: int):
    """A step of SGD of a small decoder, its layers unrolled: much is of middle size, in every layer."""

    def norm(x):
        h = x - x.mean(-1, keepdims=True)
        return h * jax.lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5)

    def block(x, weights):
        qkv, out, up, down = weights
        h = norm(x) @ qkv
        q, k, v = (t.reshape(tokens, heads, width // heads).transpose(1, 0, 2) for t in jnp.split(h, 3, -1))
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / (width // heads) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e30)
        x = x + jnp.einsum("hqk,hkd->qhd", jax.nn.softmax(scores, -1), v).reshape(tokens, width) @ out
        return x + jax.nn.gelu(norm(x) @ up) @ down

    def loss(weights, numbers):
        embedding, blocks, head = weights
        x = functools.reduce(block, blocks, embedding[numbers[:-1]])
        likely = jax.nn.log_softmax(x @ head)
        return -jnp.take_along_axis(likely, numbers[1:, None], -1).mean()

    def sgd(weights, numbers):
        value, gradients = jax.value_and_grad(loss)(weights, numbers)
        return value, jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients)

    of_a_block = of((width, 3 * width)), of((width, width)), of((width, 4 * width)), of((4 * width, width))
    weights = of((vocabulary, width)), (of_a_block,) * layers, of((width, vocabulary))
    return sgd, (weights, of((tokens + 1,), I32))


HALVED = ("concatenate", "scatter", "batched_scatter", "scattered_points", "paired_scatter", "partial_scatter")
"""Ops whose result has twice as many rows as what goes in."""

OPS = (
    *("concatenate", "reverse", "pad", "slice", "gather", "scatter"),
    *("dynamic_slice", "dynamic_update_slice", "gather_windows", "gather_points", "batched_scatter"),
    *("reshaped_points", "scattered_points", "batched_gather", "paired_scatter", "partial_scatter"),
)

THROUGH = tuple(
    Workload(
        f"through_{op}",
        functools.partial(through, op),
        (64, 32, 4),
        (32768 // (1 + (op in HALVED)), 256, 64),
        "3MiB",
    )
    for op in OPS
)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("cross_entropy", cross_entropy, (16, 4, 32), (2048, 512, 32000), "128MiB"),
        Workload("attention", attention, (2, 48, 8), (4, 4096, 64), "20MiB"),
        Workload("attention_gradient", attention_gradient, (2, 48, 8), (4, 4096, 64), "60MiB"),
        Workload("experts", experts, (32, 8, 16, 4), (1024, 256, 512, 16), "16MiB"),
        Workload("int8_table", int8_table, (64, 16, 8), (65536, 256, 1024), "16MiB"),
        Workload("cross_entropy_128k", cross_entropy, (16, 4, 32), (8192, 512, 131072), "400MiB"),
        Workload("attention_16k", attention, (2, 48, 8), (4, 16384, 64), "27MiB"),
        Workload("experts_4k", experts, (32, 8, 16, 4), (4096, 256, 512, 16), "40MiB"),
        Workload("prefill", prefill, (1, 32, 16, 2), (3, 2048, 512, 8), "50MiB"),
        Workload("cached_attention", cached_attention, (8, 2, 24, 8, 8), (8, 4, 7936, 256, 128), "80MiB"),
        Workload("pair_block", pair_block, (12, 8, 2), (256, 128, 4), "140MiB"),
        Workload("unet_block", unet_block, (1, 6, 8, 2), (1, 64, 320, 8), "100MiB"),
        Workload("train_step", train_step, (2, 64, 8, 2, 32), (2, 512, 128, 4, 2048), "8MiB"),
        *THROUGH,
    )
}
