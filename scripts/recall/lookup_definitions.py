"""What lookups, caches, extremes and products with a bias compute, in NumPy: positions out of bounds by attributes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = Any
Given, Attributes = Mapping[str, Array], Mapping[str, Any]


def places(positions: Array, size: int, attributes: Attributes) -> tuple[Array, Array]:
    """Positions as whole numbers from the first on, and which of them are in bounds."""
    found = positions.astype(np.int64)
    if attributes["negative"] == "from_end":
        found = np.where(found < 0, found + size, found)
    return np.clip(found, 0, size - 1), (found >= 0) & (found < size)


def rows(found: Array, is_inside: Array, attributes: Attributes) -> Array:
    """What was looked up, with what stands for what is out of bounds."""
    other = {"clamp": found, "fill": np.nan, "zero": 0.0}[attributes["outside"]]
    return np.where(is_inside, found, other)


def embedding_lookup(given: Given, attributes: Attributes) -> Array:
    at, is_inside = places(given["positions"], given["table"].shape[0], attributes)
    return rows(given["table"][at], is_inside[..., None], attributes)


def one_hot(given: Given, attributes: Attributes) -> Array:
    at, is_inside = places(given["positions"], attributes["depth"], attributes)
    return np.moveaxis(rows(np.eye(attributes["depth"])[at], is_inside[..., None], attributes), -1, attributes["axis"])


def take_along_axis(given: Given, attributes: Attributes) -> Array:
    x, axis, positions = given["x"], attributes["axis"], given["positions"]
    is_single = positions.ndim < x.ndim
    at, is_inside = places(np.expand_dims(positions, axis) if is_single else positions, x.shape[axis], attributes)
    found = rows(np.take_along_axis(x, at, axis), is_inside, attributes)
    return found.squeeze(axis) if is_single else found


def kv_cache_update(given: Given, attributes: Attributes) -> Array:
    cache, new, axis = given["cache"].copy(), given["new"], attributes["axis"]
    new = np.expand_dims(new, axis) if new.ndim < cache.ndim else new
    count, size = new.shape[axis], cache.shape[axis]
    for entry in range(cache.shape[0]) if attributes["position_of"] == "batch" else [slice(None)]:
        for row in range(count):
            first = np.asarray(given["position"]).reshape(-1)[entry if isinstance(entry, int) else 0]
            if attributes["position_of"] == "rows":
                at = int(np.asarray(given["position"]).reshape(-1)[row])
                at = at + size if at < 0 and attributes["negative"] == "from_end" else at
            else:
                at = int(first)
                at = at + size if at < 0 and attributes["negative"] == "from_end" else at
                at = int(np.clip(at, 0, size - count)) if attributes["outside"] == "clamp" else at
                if attributes["outside"] == "drop" and not 0 <= at <= size - count:
                    continue
                at += row
            if 0 <= at < size:
                whole = (entry, *[slice(None)] * (axis - 1)) if axis else ()
                cache[(*whole, at)] = new[(*whole, row)]
    return cache


def top_k(given: Given, attributes: Attributes) -> Array | tuple[Array, ...]:
    x, axis = given["x"], attributes["axis"]
    order = np.argsort(-x if attributes["largest"] else x, axis, kind="stable")
    order = np.take(order, np.arange(attributes["k"]), axis)
    values = np.take_along_axis(x, order, axis)
    return {"both": (values, order), "values": values, "positions": order}[attributes["gives"]]


def linear(given: Given, attributes: Attributes) -> Array:
    x, weight, bias = given["x"], given["weight"], given["bias"]
    summed = weight.ndim - bias.ndim
    if attributes["transposed"]:
        weight = np.moveaxis(weight, range(bias.ndim, weight.ndim), range(summed))
    return np.tensordot(x, weight, summed) + bias
