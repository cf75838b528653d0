"""What an attention computes, in NumPy, from the einsum of its layout."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = Any

KEYS = "klm"
"""Letters of axes of keys' positions."""


def attention(given: Mapping[str, Array], attributes: Mapping[str, Any]) -> Array:
    """Rows that see nothing are NaN, which stands for anything."""
    taken, result = attributes["layout"].split("->")
    specs = dict(zip((name for name in given if name != "causal_mask"), map(_axes, taken.split(",")), strict=True))
    sizes = _sizes(specs, given)
    q, k, v = (_apart(given[name], specs[name], sizes) for name in ("query", "key", "value"))
    of = {name: _letters(spec) for name, spec in specs.items()}
    scored = "".join(dict.fromkeys(of["query"] + of["key"]))
    scored = "".join(letter for letter in scored if letter not in "hij")
    scores = np.einsum(f"{of['query']},{of['key']}->{scored}", q, k) * attributes["scale"]
    if attributes["softcap"]:
        scores = attributes["softcap"] * np.tanh(scores / attributes["softcap"])
    for name in specs:
        if name not in ("query", "key", "value"):
            mask = _placed(_apart(given[name], specs[name], sizes), of[name], scored)
            if name == "mask" and attributes["mask"] == "boolean":
                scores = np.where(mask.astype(bool) != attributes["mask_hides"], scores, -np.inf)
            else:
                scores = scores + mask
    over = tuple(scored.index(letter) for letter in scored if letter in KEYS)
    final = "".join(_letters(_axes(result)))
    shape = [int(np.prod([sizes[letter] for letter in axis], dtype=int)) for axis in _axes(result)]
    if attributes["causal"]:
        scores = _causal(scores, scored, attributes["window"], sizes)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(over, keepdims=True))
        weights = e / e.sum(over, keepdims=True)
    return np.einsum(f"{scored},{of['value']}->{final}", weights, v).reshape(shape)


def _axes(spec: str) -> list[str]:
    """The letters of each axis; "" of one of size 1."""
    return [axis.strip("()").replace("1", "") for axis in re.findall(r"\([a-z]*\)|.", spec)]


def _letters(spec: list[str]) -> str:
    return "".join(spec)


def _sizes(specs: Mapping[str, list[str]], given: Mapping[str, Array]) -> dict[str, int]:
    """The size of each letter: where an axis is several, the last unknown is what the others leave."""
    sizes: dict[str, int] = {}
    for _ in range(4):
        for name, spec in specs.items():
            for axis, size in zip(spec, given[name].shape, strict=True):
                unknown = [letter for letter in axis if letter not in sizes]
                known = int(np.prod([sizes[letter] for letter in axis if letter in sizes], dtype=int))
                if len(unknown) == 1:
                    sizes[unknown[0]] = size // known
    return sizes


def _apart(value: Array, spec: list[str], sizes: Mapping[str, int]) -> Array:
    return value.reshape([sizes[letter] for axis in spec for letter in axis])


def _placed(mask: Array, letters: str, scored: str) -> Array:
    """A mask with an axis for each of the scores."""
    order = [letter for letter in scored if letter in letters]
    mask = np.transpose(mask, [letters.index(letter) for letter in order])
    return mask.reshape([mask.shape[order.index(letter)] if letter in order else 1 for letter in scored])


def _causal(scores: Array, scored: str, window: int, sizes: Mapping[str, int]) -> Array:
    """Along q and k of the layout."""
    key, query = (
        np.arange(sizes.get(own, 1)).reshape([-1 if letter == own else 1 for letter in scored]) for own in "kq"
    )
    seen = (key <= query) & ((key > query - window) if window else True)
    return np.where(seen, scores, -np.inf)
