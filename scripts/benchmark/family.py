"""Random scatters that costs are fitted to: rows and points, assigned and summed, at sizes drawn evenly by logarithm.

They are none of the classes of the suite, on which a fitted table is tested.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmark.classes import Arrays, Case

MOST_OPERAND = 1 << 20
"""Elements of an operand."""

MOST_UPDATES = 1 << 19
MOST_PAIRS = 1 << 25
"""Rows times writes."""

MOST_COPIED = 1 << 28
"""Elements that a loop touches which copies the operand in each iteration."""

FORMS = ("assign", "add f32", "add i32", "batched")


def family(seed: int, count: int) -> tuple[Case, ...]:
    """Cases by number, the forms in turn; the same for the same seed."""
    random = np.random.default_rng(seed)
    return tuple(_case(number, FORMS[number % len(FORMS)], *_sizes(random)) for number in range(count))


def _sizes(random: np.random.Generator) -> tuple[int, int, int]:
    """Rows, writes and the width of a row."""
    while True:
        rows, writes, width = (round(2 ** random.uniform(low, high)) for low, high in ((3, 14), (2, 14), (0, 10)))
        width = 1 if width < 4 else width
        small = rows * width <= MOST_OPERAND and writes * width <= MOST_UPDATES
        if small and rows * writes <= MOST_PAIRS and writes * rows * width <= MOST_COPIED:
            return rows, writes, width


def _case(number: int, form: str, rows: int, writes: int, width: int) -> Case:
    name, size = f"{number:02} {form}", f"{writes} rows of {width} into {rows}"
    element = np.int32 if form == "add i32" else np.float32
    random = np.random.default_rng(number)

    def noise(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        values = random.integers(-100, 100, shape)
        return (values if element is np.int32 else values / 8).astype(element)

    def assign(operand: jax.Array, at: jax.Array, updates: jax.Array) -> jax.Array:
        return operand.at[at].set(updates)

    def add(operand: jax.Array, at: jax.Array, updates: jax.Array) -> jax.Array:
        return operand.at[at].add(updates)

    def batched(operand: jax.Array, at: jax.Array, updates: jax.Array) -> jax.Array:
        return operand.at[jnp.arange(batches), at].set(updates)

    function: Callable[..., jax.Array] = add if form.startswith("add") else assign
    shape, count = (rows, width), writes
    if form == "batched":
        batches = count = max(2, min(writes, 256, rows))
        shape, function = (batches, max(rows // batches, 2), width), batched

    def arguments() -> Arrays:
        at = random.integers(0, shape[-2], count).astype(np.int32)
        return noise(*shape), at, noise(count, width)

    return Case(name, size, "", function, arguments, donated=True, float_sum=form == "add f32")
