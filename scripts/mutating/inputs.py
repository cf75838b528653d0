"""Arguments to run a module and its mutant on: many kinds, and aimed at what a comparison compares."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mutating.elementwise import BF16, is_float
from mutating.evaluator import Array, BadInput, Module, Unsupported, dtype_of

KINDS = 14
"""Of draws: the last two are numbers near the middle of two that a narrower type has."""


class Inputs:
    """Arguments of a module, drawn.

    Args:
      module: whose arguments; its constants and sizes are what integers and floats are drawn around.
      seed: of all draws.
    """

    def __init__(self, module: Module, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._types = module.main.types
        sizes: set[int] = {1, 2, 3}
        numbers: set[float] = set()
        for node in module.nodes().values():
            for tensor in node.types:
                sizes |= {n for n in (tensor.shape if tensor else ()) if n}
            value = node.attributes.get("value")
            if node.name == "stablehlo.constant" and value is not None and value.dtype.kind != "c" and value.size:
                flat = value.reshape(-1)
                picked = flat if flat.size <= 64 else self._rng.choice(flat, 64)
                numbers |= {float(v) for v in picked if np.isfinite(float(v))}
        for tensor in self._types:
            sizes |= {n for n in (tensor.shape if tensor else ()) if n}
        self._sizes = sorted(sizes)
        self._numbers = sorted(numbers) or [0.0]
        self._open = any(None in tensor.shape for tensor in self._types if tensor)

    def draw(self) -> list[Array]:
        """One set of arguments."""
        rng = self._rng
        common = int(rng.integers(0, 6)) if rng.random() < 0.7 else None
        kind = rng.integers(0, KINDS) if rng.random() < 0.5 else None
        arrays: list[Array] = []
        for tensor in self._types:
            if tensor is None:
                raise Unsupported("an argument that is no tensor")
            shape = tuple(self._size(n, common) for n in tensor.shape)
            arrays.append(self._array(shape, dtype_of(tensor), kind))
        return arrays

    def _size(self, size: int | None, common: int | None) -> int:
        if size is not None:
            return size
        return common if common is not None else int(self._rng.integers(0, 7))

    def _array(self, shape: tuple[int, ...], dtype: np.dtype[Any], kind: int | None) -> Array:
        rng = self._rng
        kind = int(rng.integers(0, KINDS)) if kind is None else int(kind)
        if dtype == np.bool_:
            return rng.random(shape) < (0.0, 1.0, 0.5, 0.5)[kind % 4]
        if dtype.kind in "iu":
            return self._integers(shape, dtype, kind)
        if dtype.kind == "c":
            part = np.dtype(f"f{dtype.itemsize // 2}")
            result = np.empty(shape, dtype)
            result.real, result.imag = self._floats(shape, part, kind), self._floats(shape, part, kind)
            return result
        return self._floats(shape, dtype, kind)

    def _integers(self, shape: tuple[int, ...], dtype: np.dtype[Any], kind: int) -> Array:
        rng, ends = self._rng, np.iinfo(dtype)
        size = int(rng.choice(self._sizes))
        if kind <= 2:
            found = rng.integers(0, size, shape)
        elif kind == 3:
            found = rng.integers(-size - 1, 2 * size + 1, shape)
        elif kind == 4:
            near = [n + o for n in (*self._sizes, *(-s for s in self._sizes), 0) for o in (-1, 0, 1)]
            found = rng.choice(near, shape)
        elif kind == 5:
            whole = [int(n) for n in self._numbers if abs(n) < 2**62]
            found = rng.choice([n + o for n in whole for o in (-1, 0, 1)] or [0], shape)
        elif kind == 6:
            bits = rng.integers(0, 2**63, shape, np.uint64)
            return np.asarray(
                (bits >> rng.integers(0, 63, shape).astype(np.uint64)).astype(dtype)
                * rng.choice([1, -1], shape).astype(dtype)
            )
        elif kind == 7:
            return np.asarray(
                rng.choice(
                    np.array([ends.min, ends.max, 0, 1, ends.max // 2, ends.min + 1, ends.max - 1], dtype), shape
                )
            )
        elif kind == 8:
            found = np.full(shape, rng.integers(-1, size + 1))
        elif kind == 9:
            found = np.sort(rng.integers(0, size, shape), -1) if shape else rng.integers(0, size, shape)
        elif kind >= 12:
            return self._near_middles(shape, ends.bits - (ends.min < 0)).astype(dtype) * rng.choice(
                [1, -1 if ends.min < 0 else 1], shape
            ).astype(dtype)
        elif kind == 10:
            count = int(np.prod(shape))
            found = rng.permutation(count).reshape(shape)
        else:
            return np.asarray(
                np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
            )
        return np.asarray(
            np.clip(found, max(ends.min, -(2**62)), min(ends.max, 2**62)) if ends.min < 0 else np.abs(found)
        ).astype(dtype)

    def _near_middles(self, shape: tuple[int, ...], bits: int) -> Array:
        """Integers of a few leading bits, one more far below them, and -1, 0 or 1."""
        rng = self._rng
        top = rng.integers(1, bits) if bits > 1 else 1
        kept = int(rng.choice([n for n in (3, 7, 8, 10, 11, 23, 24, 52, 53) if n < top] or [1]))
        lead = rng.integers(1 << kept, 2 << kept, shape, dtype=np.int64)
        down = max(int(top) - kept - 1, 0)
        return np.asarray((lead << down) + ((1 << down) >> 1) + rng.integers(-1, 2, shape))

    def _floats(self, shape: tuple[int, ...], dtype: np.dtype[Any], kind: int) -> Array:
        rng = self._rng
        limit = 3e38 if dtype in (np.float32, BF16) else 6e4 if dtype == np.float16 else 1e308
        with np.errstate(all="ignore"):
            if kind <= 2:
                found = rng.normal(size=shape)
            elif kind == 3:
                found = rng.integers(-4, 5, shape) * rng.choice([1.0, 0.5, 0.25])
            elif kind == 4:
                found = rng.choice([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.0], shape)
            elif kind == 5:
                numbers = np.array(self._numbers, np.float64).astype(dtype)
                picked = np.asarray(rng.choice(numbers.astype(np.float64), shape)).astype(dtype)
                bits = picked.view(f"i{dtype.itemsize}")
                return np.asarray((bits + rng.integers(-2, 3, shape).astype(bits.dtype)).view(dtype))
            elif kind == 6:
                found = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3, shape)
            elif kind == 7:
                found = rng.normal(size=shape) * limit ** rng.uniform(-1, 1, shape)
            elif kind == 8:
                found = np.full(shape, rng.choice([0.0, -0.0, 1.0, rng.normal()]))
            elif kind == 9:
                found = np.where(
                    rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, -0.0], shape), rng.normal(size=shape)
                )
            elif kind >= 12:
                bits = (
                    np.asarray(rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4))
                    .astype(dtype)
                    .view(f"u{dtype.itemsize}")
                )
                dropped = {8: (42, 29, 45), 4: (16, 13, 21), 2: (3, 7, 5)}[dtype.itemsize]
                width = int(rng.choice(dropped))
                cut = (bits >> np.array(width, bits.dtype)) << np.array(width, bits.dtype)
                half = np.array(1 << (width - 1), bits.dtype)
                return np.asarray(
                    (cut + half + rng.integers(-1, 2, shape).astype(bits.dtype)).astype(bits.dtype).view(dtype)
                )
            elif kind == 10:
                found = np.abs(rng.normal(size=shape)) * rng.choice([1.0, 10.0, 1000.0]) * rng.choice([1.0, -1.0])
            else:
                return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
            return np.asarray(found).astype(dtype)


def ordinals(x: Array) -> Array:
    """Numbers as Python integers in their order, to be halved between."""
    if x.dtype.kind in "iu" or x.dtype == np.bool_:
        return x.astype(object)
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").reshape(x.shape).astype(object)
    low = -(1 << (8 * x.dtype.itemsize - 1))
    return np.where(bits < 0, low - bits, bits)


def from_ordinal(number: int, dtype: np.dtype[Any]) -> Any:
    """The number of such an integer."""
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array(min(max(number, ends.min), ends.max), dtype)
    low = -(1 << (8 * dtype.itemsize - 1))
    return np.array(low - number if number < 0 else number, f"i{dtype.itemsize}").view(dtype)


HALVINGS = 70
ATTEMPTS = 60


def aimed(module: Module, key: int, inputs: Inputs, seed: int) -> Iterator[list[Array]]:
    """Arguments on which the first two operands of an op are equal or nearly so, by halving between two that differ in
    their order, one element of one argument changed."""
    rng = np.random.default_rng(seed)

    def differences(arguments: Sequence[Array]) -> Array | None:
        seen: list[Array] = []

        def watch(node: Any, values: list[Array], results: list[Array]) -> None:
            if not seen and len(values) >= 2:
                a, b = np.broadcast_arrays(values[0], values[1])
                seen.append(_sign(a, b))

        module.watched = {key: watch}
        try:
            module.run(arguments)
        except (BadInput, Unsupported):
            return None
        finally:
            module.watched = {}
        return seen[0].reshape(-1) if seen else None

    for _ in range(ATTEMPTS):
        first = inputs.draw()
        signs = differences(first)
        numeric = [n for n, a in enumerate(first) if a.size and (a.dtype.kind in "iu" or is_float(a.dtype))]
        if signs is None or not signs.size or not numeric:
            continue
        n = int(rng.choice(numeric))
        at = int(rng.integers(0, first[n].size))
        drawn = inputs.draw()[n].reshape(-1)
        other = _with(first, n, at, drawn[-1:] if drawn.size else 0)
        changed = differences(other)
        if changed is None or changed.shape != signs.shape:
            continue
        places = np.flatnonzero((changed != signs) & (np.abs(signs) <= 1) & (np.abs(changed) <= 1))
        if not places.size:
            continue
        e = int(rng.choice(places))
        yield from _halved(first, other, n, at, e, differences)


def _halved(
    first: list[Array],
    other: list[Array],
    n: int,
    at: int,
    e: int,
    differences: Callable[[Sequence[Array]], Array | None],
) -> Iterator[list[Array]]:
    low, high = (int(ordinals(a[n].reshape(-1)[at : at + 1])[0]) for a in (first, other))
    start = differences(first)
    if start is None:
        return
    sign = start[e]
    for _ in range(HALVINGS):
        if abs(high - low) <= 1:
            break
        middle = (low + high) // 2
        tried = _with(first, n, at, from_ordinal(middle, first[n].dtype))
        found = differences(tried)
        if found is None or e >= found.size:
            return
        if found[e] == 0:
            yield tried
        low, high = (middle, high) if found[e] == sign else (low, middle)
    for end in (low, high):
        yield _with(first, n, at, from_ordinal(end, first[n].dtype))


def _with(arguments: Sequence[Array], n: int, at: int, value: Any) -> list[Array]:
    found = [np.array(a) for a in arguments]
    flat = found[n].reshape(-1)
    flat[at : at + 1] = value
    return found


def _sign(a: Array, b: Array) -> Array:
    """-1, 0, 1, or 2 where one is NaN."""
    if a.dtype.kind == "c":
        return np.full(a.shape, 2)
    found = (a > b).astype(int) - (a < b).astype(int)
    if is_float(a.dtype):
        found = np.where(np.isnan(a) | np.isnan(b), 2, found)
    return found
