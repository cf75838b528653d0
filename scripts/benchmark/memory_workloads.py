"""Programs of which one tensor takes most of the memory, at sizes for tests and for measuring."""

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


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("cross_entropy", cross_entropy, (16, 4, 32), (2048, 512, 32000), "128MiB"),
        Workload("attention", attention, (2, 48, 8), (4, 4096, 64), "20MiB"),
        Workload("attention_gradient", attention_gradient, (2, 48, 8), (4, 4096, 64), "60MiB"),
        Workload("experts", experts, (32, 8, 16, 4), (1024, 256, 512, 16), "16MiB"),
        Workload("int8_table", int8_table, (64, 16, 8), (65536, 256, 1024), "16MiB"),
    )
}
