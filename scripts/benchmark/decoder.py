"""A decode step and its cache writes under `jax.jit`: time and memory, native beside lowered."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hlo_lower as hl
from benchmark.timing import Timing, interleave
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import export

MODEL = Path(__file__).parents[2] / "models" / "llama.py"


@dataclass(frozen=True)
class Rounds:
    """How a step is timed: rounds, and the least number of steps and of seconds in each."""

    count: int
    calls: int
    sample: float


@dataclass(frozen=True)
class Step:
    """A donated step with native scatter and lowered."""

    what: str
    native: Timing
    lowered: Timing


@dataclass(frozen=True)
class Memory:
    """What XLA says of a compiled step, in bytes."""

    what: str
    length: int
    native_temp: int
    temp: int
    alias: int
    donated: int


class Stepper:
    """A compiled step that feeds its donated caches back to itself, as a decoder does.

    The step takes (*before, caches, *after) and returns the caches, alone or behind its other results.
    """

    def __init__(self, exported: Any, args: Sequence[Any], donated: int) -> None:
        self.args = [jax.tree.map(_filled, arg) for arg in args]
        self.donated = donated
        self.compiled = compiled_step(exported, args, donated)

    def __call__(self) -> None:
        result = self.compiled(*self.args)
        caches = result[-1] if isinstance(result, tuple) else result
        self.args[self.donated] = jax.block_until_ready(caches)


def compiled_step(exported: Any, args: Sequence[Any], donated: int) -> Any:
    """An Exported under jax.jit with one donated argument, compiled."""
    return jax.jit(exported.call, donate_argnums=(donated,)).lower(*args).compile()


def step_row(what: str, exported: Any, args: Sequence[Any], donated: int, rounds: Rounds) -> Step:
    """A step with native scatter beside the same step lowered, both as exported modules under jax.jit."""
    lowered = hl.lower(exported).exported
    steppers = {"native": Stepper(exported, args, donated), "lowered": Stepper(lowered, args, donated)}
    timings = interleave(steppers, rounds.count, calls=rounds.calls, sample=rounds.sample)
    return Step(what, timings["native"], timings["lowered"])


def memory_row(what: str, length: int, exported: Any, args: Sequence[Any], donated: int) -> Memory:
    """Temporary and aliased bytes of the compiled step, and the bytes that were given away."""
    native = compiled_step(exported, args, donated).memory_analysis()
    lowered = compiled_step(hl.lower(exported).exported, args, donated).memory_analysis()
    given = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(args[donated]))
    temp, alias = int(lowered.temp_size_in_bytes), int(lowered.alias_size_in_bytes)
    return Memory(what, length, int(native.temp_size_in_bytes), temp, alias, given)


def _filled(spec: Any) -> jax.Array:
    """Small random values for floats; a token or position of 3 for integers."""
    if jnp.issubdtype(spec.dtype, jnp.integer):
        return jnp.full(spec.shape, 3, spec.dtype)
    values = np.random.default_rng(0).standard_normal(spec.shape, np.float32) * 0.02
    return jnp.asarray(values, spec.dtype)


def write_row(cache: jax.Array, row: jax.Array, position: jax.Array) -> jax.Array:
    """One decode step's write: a row of every head at one position."""
    return cache.at[:, :, position].set(row)


def write_prompt(cache: jax.Array, rows: jax.Array, start: jax.Array) -> jax.Array:
    """One prefill step's write: a run of rows of every head from a position on."""
    return cache.at[:, :, start + jnp.arange(rows.shape[2])].set(rows)


def cache_write(heads: int, length: int, width: int, rows: int | None = None) -> tuple[Any, tuple[Any, ...]]:
    """An exported write of one row, or of a run, into a float32 cache [1, heads, length, width], and its arguments."""
    cache = jax.ShapeDtypeStruct((1, heads, length, width), jnp.float32)
    update = jax.ShapeDtypeStruct((1, heads, width) if rows is None else (1, heads, rows, width), jnp.float32)
    args = (cache, update, jax.ShapeDtypeStruct((), jnp.int32))
    return export(write_row if rows is None else write_prompt, *args, donate=(0,)), args


def decode_step(**settings: int) -> tuple[Any, tuple[Any, ...]]:
    """The exported decode step of models/llama.py, and its arguments."""
    target = load_function(f"{MODEL}:decode", {name: str(value) for name, value in settings.items()})
    return target.export(), target.args


def step_table(cache: tuple[int, int, int], layers: int, rounds: Rounds) -> list[Step]:
    """Lowered steps against native scatter: one row, a run of rows, and the whole decode step.

    Args:
      cache: heads, length and width of the single cache.
      layers: of the decoder.
      rounds: of each measurement.
    """
    heads, length, width = cache
    shape = f"{heads} x {length} x {width}"
    rows, run = [], min(512, length)
    for what, count in ((f"decode row into {shape}", None), (f"prefill of {run} rows into {shape}", run)):
        exported, args = cache_write(heads, length, width, count)
        rows.append(step_row(what, exported, args, 0, rounds))
    exported, args = decode_step(layers=layers)
    return [*rows, step_row(f"decode step of {layers} tiny layers", exported, args, 1, rounds)]


def memory_table(cache: tuple[int, int, int]) -> list[Memory]:
    """Compiled memory at two cache lengths; a whole step holds attention scores too, 4 bytes per head and position."""
    heads, length, width = cache
    rows = []
    for size in (length, 4 * length):
        exported, args = cache_write(heads, size, width)
        rows.append(memory_row("decode row", size, exported, args, 0))
    for size in (length, 4 * length):
        exported, args = decode_step(layers=2, max_length=size)
        rows.append(memory_row("decode step of 2 tiny layers", size, exported, args, 1))
    return rows


def memory_lines(rows: Sequence[Memory]) -> list[str]:
    """A table of compiled memory as lines of text, in bytes."""
    heads = ("cache length", "given away", "aliased", "temp", "temp native")
    lines = ["memory of the compiled step, bytes", f"  {'':30}" + "".join(f"{head:>16}" for head in heads)]
    for row in rows:
        values = (row.length, row.donated, row.alias, row.temp, row.native_temp)
        lines.append(f"  {row.what:30}" + "".join(f"{value:>16,}" for value in values))
    return lines
