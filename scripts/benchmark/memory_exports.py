"""Models and architectures at sizes at which they need 256 MiB of temporaries and more: exported, not written to be
tiled."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from benchmark.memory_workloads import I32, of

MODELS = Path(__file__).parents[2] / "models"


@dataclass(frozen=True)
class MemoryExport:
    """A function of models/, or one of this file.

    Attributes:
      name: of it.
      source: "file:function" of models/, or a function that gives the function and its arguments.
      sizes: of a function of models/, what differs from its preset `tiny`.
      runs: whether it is run, too; else only compiled.
    """

    name: str
    source: "str | Callable[[], tuple[Callable[..., object], tuple[object, ...]]]"
    sizes: dict[str, Any] = field(default_factory=dict[str, Any])
    runs: bool = True

    def text(self) -> str:
        """The module."""
        function, arguments = self._model() if isinstance(self.source, str) else self.source()
        return jax.jit(function).lower(*arguments).as_text()

    def _model(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        assert isinstance(self.source, str)
        if str(MODELS) not in sys.path:
            sys.path.insert(0, str(MODELS))
        file, name = self.source.split(":")
        module = importlib.import_module(file)
        config = replace(module.PRESETS["tiny"], **self.sizes)
        entry = module.EXPORTS[name]
        return partial(getattr(module, name), config=config), tuple(entry["args"](config))


def graph_attention() -> tuple[Callable[..., object], tuple[object, ...]]:
    """Two layers of a graph attention network, segment softmax over the edges of each node."""
    nodes, edges, width, heads = 8192, 196608, 128, 4

    def layer(x, senders, receivers, w, score):
        h = (x @ w).reshape(nodes, heads, width // heads)
        sent, received = h[senders], h[receivers]
        logits = jax.nn.leaky_relu((jnp.concatenate([sent, received], -1) * score).sum(-1))
        most = jax.ops.segment_max(logits, receivers, nodes)
        weights = jnp.exp(logits - most[receivers])
        weights = weights / jax.ops.segment_sum(weights, receivers, nodes)[receivers]
        return jax.ops.segment_sum(weights[..., None] * sent, receivers, nodes).reshape(nodes, width)

    def network(x, senders, receivers, first, second, one, other):
        h = jax.nn.relu(layer(x, senders, receivers, first, one))
        return layer(h, senders, receivers, second, other)

    weights, scores = of((width, width)), of((heads, 2 * width // heads))
    return network, (of((nodes, width)), of((edges,), I32), of((edges,), I32), weights, weights, scores, scores)


def masked_language_model() -> tuple[Callable[..., object], tuple[object, ...]]:
    """The gradients of a BERT-like head over every position: dense, gelu, norm, a tied decoder, cross-entropy."""
    tokens, width, vocabulary = 2048, 256, 30522

    def loss(x, dense, embedding, labels):
        h = jax.nn.gelu(x @ dense)
        h = (h - h.mean(-1, keepdims=True)) * jax.lax.rsqrt(h.var(-1, keepdims=True) + 1e-5)
        logits = jax.nn.log_softmax(h @ embedding.T, -1)
        return -jnp.take_along_axis(logits, labels[:, None], -1).mean()

    arguments = of((tokens, width)), of((width, width)), of((vocabulary, width)), of((tokens,), I32)
    return jax.grad(loss, (0, 1, 2)), arguments


def vision_transformer() -> tuple[Callable[..., object], tuple[object, ...]]:
    """Two blocks of a vision transformer over 16 images of 577 patches, inference."""
    batch, length, width, heads = 16, 577, 384, 6

    def block(x, qkv, out, up, down):
        h = jax.nn.standardize(x, -1) @ qkv
        q, k, v = (t.reshape(batch, length, heads, width // heads) for t in jnp.split(h, 3, -1))
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5, -1)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width) @ out
        return x + jax.nn.gelu(jax.nn.standardize(x, -1) @ up) @ down

    def network(x, *weights):
        return block(block(x, *weights[:4]), *weights[4:])

    of_a_block = of((width, 3 * width)), of((width, width)), of((width, 4 * width)), of((4 * width, width))
    return network, (of((batch, length, width)), *of_a_block, *of_a_block)


def pairwise_distances() -> tuple[Callable[..., object], tuple[object, ...]]:
    """The eight nearest of 8,192 keys for each of 8,192 queries: all distances, the smallest ones."""

    def nearest(queries, keys):
        distances = (queries**2).sum(-1)[:, None] - 2 * queries @ keys.T + (keys**2).sum(-1)
        return jax.lax.top_k(-distances, 8)

    return nearest, (of((8192, 64)), of((8192, 64)))


def scanned_train_step() -> tuple[Callable[..., object], tuple[object, ...]]:
    """A step of SGD on the blocks of models/train_step.py in a `lax.scan`, six layers, which stacks what its gradient
    reads."""
    sys.path[:0] = [] if str(MODELS) in sys.path else [str(MODELS)]
    step = importlib.import_module("train_step")
    config = replace(step.PRESETS["tiny"], layers=6, hidden=256, heads=4, ffn=1024, length=512, batch=2, vocab=2048)

    def loss(params, tokens):
        def layer(x, weights):
            x = x + step.attention(weights, x, config)
            return x + jax.nn.gelu(step.norm(x, weights["ffn_norm"]) @ weights["w_up"]) @ weights["w_down"], None

        x = params["embedding"][tokens[:, :-1]] + params["positions"]
        x, _ = jax.lax.scan(layer, x, params["layers"])
        likely = jax.nn.log_softmax(step.norm(x, params["norm"]) @ params["head"], axis=-1)
        return -jnp.mean(jnp.take_along_axis(likely, tokens[:, 1:, None], axis=-1))

    def sgd(params, tokens):
        gradients = jax.grad(loss)(params, tokens)
        return jax.tree.map(lambda w, g: w - config.learning_rate * g, params, gradients)

    params, tokens = step.sgd_args(config)
    layers = jax.tree.map(lambda *leaves: of((len(leaves), *leaves[0].shape)), *params["layers"])
    return sgd, ({**params, "layers": layers}, tokens)


def convolutions() -> tuple[Callable[..., object], tuple[object, ...]]:
    """Two residual blocks of convolutions over 64 images of 128 x 128 x 32, inference."""
    images, size, features = 64, 128, 32

    def block(x, one, other):
        h = jax.nn.silu(jax.nn.standardize(x, -1))
        for kernel in (one, other):
            numbers = ("NHWC", "HWIO", "NHWC")
            h = jax.nn.silu(jax.lax.conv_general_dilated(h, kernel, (1, 1), "SAME", dimension_numbers=numbers))
        return x + h

    def network(x, a, b, c, d):
        return block(block(x, a, b), c, d)

    return network, (of((images, size, size, features)), *(of((3, 3, features, features)),) * 4)


TRAIN = {"hidden": 256, "heads": 4, "ffn": 1024, "length": 512}
LLAMA = {"hidden": 256, "heads": 8, "kv_heads": 4, "head_dim": 32, "ffn": 512, "vocab": 8192}
MOE = {"hidden": 256, "ffn": 1024, "experts": 8}
EXPORTS = {
    export.name: export
    for export in (
        MemoryExport("train sgd", "train_step:sgd", {**TRAIN, "layers": 1, "vocab": 16384, "batch": 4}),
        MemoryExport("train adam tied", "train_step:adam", {**TRAIN, "vocab": 8192, "batch": 6, "tied_head": True}),
        MemoryExport("train scan", scanned_train_step),
        MemoryExport("llama prefill", "llama:prefill", {**LLAMA, "max_length": 2048, "prompt": 2048, "batch": 1}),
        MemoryExport("scan prefill", "scan_layers:prefill_slices", {**LLAMA, "max_length": 2048, "prompt": 2048}),
        MemoryExport("moe capacity", "moe:capacity", {**MOE, "tokens": 8192, "slots": 4096}),
        MemoryExport("moe segments", "moe:segments", {**MOE, "tokens": 4096}),
        MemoryExport("sampling top-p", "sampling:sample_top_p", {"batch": 384, "vocab": 65536}),
        MemoryExport("graph attention", graph_attention),
        MemoryExport("masked language model", masked_language_model),
        MemoryExport("vision transformer", vision_transformer),
        MemoryExport("nearest neighbours", pairwise_distances),
        MemoryExport("convolutions", convolutions, runs=False),
    )
}
"""By name."""
