"""What each named op computes, in NumPy and 64-bit floats: the definitions of `hlo_lower.ops.vocabulary`, worked out.

A definition takes the op's operands by their names, and its attributes. Operands beside the first may have axes of size
1 or lack axes that they are the same along, as the ops around a match leave them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from recall import lookup_definitions
from recall.attention_definition import attention

Array = Any
Definition = Callable[[Mapping[str, Array], Mapping[str, Any]], Array]
"""Gives the result, of several a tuple, or a list of all that it may be where attributes leave that open."""


def axes_of(attributes: Mapping[str, Any]) -> tuple[int, ...]:
    """The axes that an op goes along."""
    return (attributes["axis"],) if "axis" in attributes else tuple(attributes["axes"])


def placed(values: Array, rank: int, axes: tuple[int, ...]) -> Array:
    """Values along these axes of a tensor, the same along all others."""
    sizes = [size for size in values.shape if size != 1]
    if values.ndim == rank:
        return values
    shape = [1] * rank
    for axis, size in zip(axes[-len(sizes) :] if sizes else (), sizes, strict=True):
        shape[axis] = size
    return values.reshape(shape)


def softmax(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, axes = given["x"], axes_of(attributes)
    if "where" in given:
        x = np.where(given["where"].astype(bool), x, -np.inf)
        if attributes["empty_rows"] == "zero":
            x = np.where(np.isneginf(x).all(axes, keepdims=True), np.nan, x)
            return np.nan_to_num(softmax({"x": x}, attributes))
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def log_softmax(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x = given["x"]
    return x - logsumexp(given, {**attributes, "keepdims": True})


def logsumexp(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, axes = given["x"], axes_of(attributes)
    m = x.max(axes, keepdims=True)
    return (
        (np.log(np.exp(x - m).sum(axes, keepdims=True)) + m)
        if attributes["keepdims"]
        else (np.log(np.exp(x - m).sum(axes)) + m.squeeze(axes))
    )


def weighted(normed: Array, given: Mapping[str, Array], attributes: Mapping[str, Any], axes: tuple[int, ...]) -> Array:
    """With weight and bias, where there are some."""
    if "weight" in given:
        one = 1.0 if attributes.get("weight") == "one_plus" else 0.0
        normed = normed * (one + placed(given["weight"], normed.ndim, axes))
    return normed + placed(given["bias"], normed.ndim, axes) if "bias" in given else normed


def layer_norm(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, axes = given["x"], axes_of(attributes)
    normed = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + attributes["epsilon"])
    return weighted(normed, given, attributes, axes)


def rms_norm(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, axes = given["x"], axes_of(attributes)
    normed = x / np.sqrt((x * x).mean(axes, keepdims=True) + attributes["epsilon"])
    return weighted(normed, given, attributes, axes)


def l2_norm(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, epsilon = given["x"], attributes.get("epsilon", 0.0)
    total = (x * x).sum(axes_of(attributes), keepdims=True)
    root = {
        "none": lambda: np.sqrt(total),
        "add_inside": lambda: np.sqrt(total + epsilon),
        "max_inside": lambda: np.sqrt(np.maximum(total, epsilon)),
        "max_outside": lambda: np.maximum(np.sqrt(total), epsilon),
        "add_outside": lambda: np.sqrt(total) + epsilon,
    }[attributes.get("guard", "none")]
    return x / root()


def group_norm(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, channel, groups = given["x"], attributes["channel_axis"], attributes["num_groups"]
    parted = x.reshape(*x.shape[:channel], groups, x.shape[channel] // groups, *x.shape[channel + 1 :])
    axes = tuple(axis for axis in range(parted.ndim) if axis != channel and (axis > 0 or channel == 0))
    normed = (parted - parted.mean(axes, keepdims=True)) / np.sqrt(
        parted.var(axes, keepdims=True) + attributes["epsilon"]
    )
    return weighted(normed.reshape(x.shape), given, {}, (channel,))


def batch_norm(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x, axes = given["x"], (attributes["channel_axis"],)
    mean, variance = (placed(given[name], x.ndim, axes) for name in ("mean", "variance"))
    return weighted((x - mean) / np.sqrt(variance + attributes["epsilon"]), given, {}, axes)


def gelu(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    x = given["x"]
    if attributes["approximate"] == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _of_x(compute: Callable[[Array], Array]) -> Definition:
    return lambda given, _: compute(given["x"])


def swiglu(given: Mapping[str, Array], _: Mapping[str, Any]) -> Array:
    return given["gate"] / (1 + np.exp(-given["gate"])) * given["up"]


def rope(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    """With tables for each pair or for each element, along the axes that the attribute says."""
    if "rotation" in given:
        table = given["rotation"]
        return rope({"x": given["x"], "cos": table.real, "sin": table.imag}, attributes)
    x = given["x"]
    size = attributes.get("size", 0) or x.shape[-1]
    tables = (_along(given[name], x, tuple(attributes["axes"])) for name in ("cos", "sin"))
    return _turned(x, size, attributes["pairs"], *tables)


def _along(table: Array, x: Array, axes: tuple[int, ...]) -> Array:
    shape = [1] * x.ndim
    extents = [n for n in table.shape[:-1] if n > 1]
    for axis, extent in zip((*axes, x.ndim - 1), (*extents, table.shape[-1]), strict=True):
        shape[axis] = extent
    return np.broadcast_to(table.reshape(shape), (*x.shape[:-1], table.shape[-1]))


def _turned(x: Array, size: int, pairs: str, cos: Array, sin: Array) -> Array:
    """Each pair turned; what is behind them as it is."""
    part, rest = x[..., :size], x[..., size:]
    even = slice(0, size, 2) if "interleaved" in pairs else slice(0, size // 2)
    odd = slice(1, size, 2) if "interleaved" in pairs else slice(size // 2, size)
    for_pairs = cos.shape[-1] == size // 2
    a, b = part[..., even], part[..., odd]
    cos_a, sin_a = (cos, sin) if for_pairs else (cos[..., even], sin[..., even])
    cos_b, sin_b = (cos, sin) if for_pairs else (cos[..., odd], sin[..., odd])
    turned = a * cos_a - b * sin_a, b * cos_b + a * sin_b
    if pairs == "interleaved":
        return np.concatenate([np.stack(turned, -1).reshape(part.shape), rest], -1)
    return np.concatenate([*turned, rest], -1)


def accumulated(compute: Any) -> Definition:
    """Of an accumulation along an axis, from its end where it is reversed."""

    def definition(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
        axis = attributes["axis"]
        x = np.flip(given["x"], axis) if attributes.get("reverse") else given["x"]
        found = compute.accumulate(x, axis)
        return np.flip(found, axis) if attributes.get("reverse") else found

    return definition


DEFINITIONS: dict[str, Definition] = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "l2_norm": l2_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "gelu": gelu,
    "silu": _of_x(lambda x: x / (1 + np.exp(-x))),
    "relu": _of_x(lambda x: np.maximum(x, 0)),
    "relu6": _of_x(lambda x: np.clip(x, 0, 6)),
    "hard_swish": _of_x(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "dropout": _of_x(lambda x: x),
    "swiglu": swiglu,
    "rope": rope,
    "cumsum": accumulated(np.add),
    "cumprod": accumulated(np.multiply),
    "cummax": accumulated(np.maximum),
    "cummin": accumulated(np.minimum),
    "cumlogsumexp": accumulated(np.logaddexp),
    "argmax": lambda given, attributes: given["x"].argmax(attributes["axis"]),
    "argmin": lambda given, attributes: given["x"].argmin(attributes["axis"]),
    "linear": lookup_definitions.linear,
    "attention": attention,
    "embedding_lookup": lookup_definitions.embedding_lookup,
    "kv_cache_update": lookup_definitions.kv_cache_update,
    "one_hot": lookup_definitions.one_hot,
    "take_along_axis": lookup_definitions.take_along_axis,
    "top_k": lookup_definitions.top_k,
}
"""By name."""
