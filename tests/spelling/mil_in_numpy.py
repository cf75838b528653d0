"""The ops of Core ML's MIL that are written for it, in NumPy, as the builder that its handlers are given."""

from math import erf, pi, sqrt

import numpy as np
import pytest

from hlo_lower.consumers import coreml_named
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read


class Runtime(np.ndarray):
    """A value that is no constant."""

    val = None


class Mil:
    """MIL's builder: each op computes, in f64."""

    def mul(self, x, y):
        return x * y

    def add(self, x, y):
        return x + y

    def layer_norm(self, x, axes, epsilon, gamma=1.0, beta=0.0):
        left = x - x.mean(tuple(axes), keepdims=True)
        return left / np.sqrt((left * left).mean(tuple(axes), keepdims=True) + epsilon) * gamma + beta

    def gelu(self, x, mode):
        if mode == "EXACT":
            return x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2
        assert mode == "TANH_APPROXIMATION"
        return x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2

    def silu(self, x):
        return x / (1 + np.exp(-x))

    def scaled_dot_product_attention(self, query, key, value, attn_mask=0.0):
        """Batch dims equal, a mask that is added and broadcast, the scale 1 / sqrt(elements)."""
        assert query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
        scores = query @ np.swapaxes(key, -1, -2) / sqrt(query.shape[-1]) + attn_mask
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ value


def handled(raised, given):
    """What the handler of the one composite of a module gives for operands."""
    graph = read(raised)
    with mlir.active(graph.context), pytest.MonkeyPatch.context() as patched:
        patched.setattr(coreml_named, "_number_type", lambda x: x.dtype.type)
        [composite] = mlir.find_named(graph.module.operation, {"stablehlo.composite"})[0]
        handler = coreml_named.HANDLERS[mlir.symbol_name(composite.attributes["name"])]
        raw = composite.attributes
        attributes = mlir.entries_of(raw["composite_attributes"]) if "composite_attributes" in raw else {}
        return np.asarray(handler(Mil(), [np.asarray(x, np.float64).view(Runtime) for x in given], attributes))
