"""Measure hlo_lower: conversion time, the lowered step beside native scatter, and the memory of the compiled step.

    python scripts/bench.py                       # all three tables
    python scripts/bench.py --only convert --layers 80
    python scripts/bench.py --json bench.json

Candidates of one table run interleaved in one process, their order turning from round to round; a figure is the
median over the rounds, its spread the lowest and the highest round.
"""

import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.export import export, exported_text, load_function

MODEL = Path(__file__).parents[1] / "models" / "llama.py"
TABLES = ("convert", "step", "memory")

_ONLY = flags.DEFINE_multi_enum("only", None, TABLES, "Tables to measure; repeat the flag for more. All by default.")
_LAYERS = flags.DEFINE_integer(
    "layers", 80, "Decoder layers of the module that is converted and stepped.", lower_bound=1
)
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds of each measurement.", lower_bound=7)
_STEPS = flags.DEFINE_integer("steps", 20, "Steps timed together in a round.", lower_bound=1)
_CACHE = flags.DEFINE_list("cache", ["32", "4096", "128"], "Heads, length and head width of the single cache.")
_JSON = flags.DEFINE_string("json", None, "Write the figures to this file too.")


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median over the rounds, the lowest and the highest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One comparison: what was measured, a baseline, a candidate, and candidate / baseline."""

    what: str
    baseline: Timing
    candidate: Timing

    @property
    def ratio(self) -> float:
        """Median of the candidate over median of the baseline."""
        return self.candidate.median / self.baseline.median


@dataclass(frozen=True)
class Memory:
    """What XLA says of a compiled step, in bytes."""

    what: str
    length: int
    native_temp: int
    temp: int
    alias: int
    donated: int


# --- the measuring core -----------------------------------------------------------------------------------------


SAMPLE_SECONDS = 0.1
"""Least duration of a sample: a call of tens of microseconds is repeated until it takes this long."""


def interleave(candidates: Mapping[str, Callable[[], None]], rounds: int, calls: int = 1) -> dict[str, Timing]:
    """Time candidates in turn, at least `calls` calls of each per round, after untimed calls that set their number."""
    names = list(candidates)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        candidates[name]()
        start = time.perf_counter()
        candidates[name]()
        calls = max(calls, min(5000, int(SAMPLE_SECONDS / (time.perf_counter() - start))))
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            gc.collect()
            start = time.perf_counter()
            for _ in range(calls):
                candidates[name]()
            seconds[name].append((time.perf_counter() - start) / calls)
    return {name: Timing(statistics.median(s), min(s), max(s)) for name, s in seconds.items()}


def convert_row(text: str, rounds: int) -> Row:
    """hl.lower from text to text beside jaxlib's own parse and print of it, each in a context of its own."""

    def parse_and_print() -> None:
        mlir.print_module(mlir.parse_module(text, mlir.make_context()), locations="loc(" in text)

    def convert() -> None:
        _ = hl.lower(text).text

    timings = interleave({"jaxlib": parse_and_print, "hlo_lower": convert}, rounds)
    operations = sum(" = " in line and not line.startswith("#") for line in text.splitlines())
    what = f"convert {len(text) / 1e3:,.0f} kB, about {operations:,} ops"
    return Row(what, timings["jaxlib"], timings["hlo_lower"])


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


def step_row(what: str, exported: Any, args: Sequence[Any], donated: int, rounds: int, calls: int) -> Row:
    """A step with native scatter beside the same step lowered, both as exported modules under jax.jit."""
    lowered = hl.lower(exported).exported
    steppers = {"native": Stepper(exported, args, donated), "lowered": Stepper(lowered, args, donated)}
    timings = interleave(steppers, rounds, calls)
    return Row(what, timings["native"], timings["lowered"])


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


# --- what is measured -------------------------------------------------------------------------------------------


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


def convert_table() -> list[Row]:
    """Conversion without verification, against jaxlib's parse and print."""
    exported, _ = decode_step(layers=_LAYERS.value)
    return [convert_row(exported_text(exported), _ROUNDS.value)]


def step_table() -> list[Row]:
    """Lowered steps against native scatter: one row, a run of rows, and the whole decode step."""
    heads, length, width = (int(size) for size in _CACHE.value)
    shape = f"{heads} x {length} x {width}"
    rows, run = [], min(512, length)
    for what, count in ((f"decode row into {shape}", None), (f"prefill of {run} rows into {shape}", run)):
        exported, args = cache_write(heads, length, width, count)
        rows.append(step_row(what, exported, args, 0, _ROUNDS.value, _STEPS.value))
    exported, args = decode_step(layers=_LAYERS.value)
    what = f"decode step of {_LAYERS.value} tiny layers"
    return [*rows, step_row(what, exported, args, 1, _ROUNDS.value, _STEPS.value)]


def memory_table() -> list[Memory]:
    """Compiled memory at two cache lengths; a whole step holds attention scores too, 4 bytes per head and position."""
    heads, length, width = (int(size) for size in _CACHE.value)
    rows = []
    for size in (length, 4 * length):
        exported, args = cache_write(heads, size, width)
        rows.append(memory_row("decode row", size, exported, args, 0))
    for size in (length, 4 * length):
        exported, args = decode_step(layers=2, max_length=size)
        rows.append(memory_row("decode step of 2 tiny layers", size, exported, args, 1))
    return rows


# --- showing it -------------------------------------------------------------------------------------------------


def timing_lines(title: str, baseline: str, candidate: str, rows: Sequence[Row]) -> list[str]:
    """A table of comparisons as lines of text, times in milliseconds."""

    def shown(timing: Timing) -> str:
        return f"{timing.median * 1e3:9.3f} ({timing.low * 1e3:.3f} to {timing.high * 1e3:.3f})"

    lines = [title, f"  {'':44}{baseline + ' ms':34}{candidate + ' ms':34}ratio"]
    return lines + [f"  {r.what:44}{shown(r.baseline):34}{shown(r.candidate):34}{r.ratio:5.2f}" for r in rows]


def memory_lines(rows: Sequence[Memory]) -> list[str]:
    """A table of compiled memory as lines of text, in bytes."""
    heads = ("cache length", "given away", "aliased", "temp", "temp native")
    lines = ["memory of the compiled step, bytes", f"  {'':30}" + "".join(f"{head:>16}" for head in heads)]
    for row in rows:
        values = (row.length, row.donated, row.alias, row.temp, row.native_temp)
        lines.append(f"  {row.what:30}" + "".join(f"{value:>16,}" for value in values))
    return lines


def main(argv: Sequence[str]) -> None:
    """Measure the tables asked for, print them, and write them as JSON if asked to."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    tables = _ONLY.value or TABLES
    rounds = _ROUNDS.value
    figures: dict[str, Any] = {"jax": jax.__version__, "device": jax.devices()[0].device_kind, "rounds": rounds}
    print(f"jax {figures['jax']}, {figures['device']}, medians of {rounds} interleaved rounds (lowest to highest)")
    for table, measure, title, baseline, candidate in (
        ("convert", convert_table, "conversion without verification", "jaxlib parse + print", "hl.lower"),
        ("step", step_table, "donated step under jax.jit", "native scatter", "lowered"),
    ):
        if table in tables:
            rows = measure()
            figures[table] = [{**asdict(row), "ratio": row.ratio} for row in rows]
            print("\n".join(timing_lines(title, baseline, candidate, rows)), flush=True)
    if "memory" in tables:
        memory = memory_table()
        figures["memory"] = [asdict(row) for row in memory]
        print("\n".join(memory_lines(memory)), flush=True)
    if _JSON.value:
        Path(_JSON.value).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    app.run(main)
