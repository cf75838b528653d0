"""Measure paged attention with two tiers of loads against one, a decode step of models/paged_attention.py under XLA.

    python scripts/bench_paged.py --json paged.json         # eight sequences of 4096 tokens, blocks of 16 and of 128
    python scripts/bench_paged.py --context 64 --heads 4 --kv_heads 2 --head_dim 8 --block_sizes 4   # whether it works

One tier loads every block by itself; two tiers load blocks that lie next to each other in the pool in pairs, as a plan
made at run time says. A contiguous table is all pairs, a shuffled one has next to none, so there the plan is all that
two tiers cost. Both run interleaved in one process, their order turning from round to round, each feeding its donated
pools back to itself; a figure is the median over the rounds, its spread the lowest and the highest round.

Exit code 1: the two gave different results, and were not timed.
"""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from benchmark.timing import figures_of, interleave, ratio, shown

from hlo_lower.ir.export.load import load_function

MODEL = Path(__file__).parents[1] / "models" / "paged_attention.py"
TABLES = ("contiguous", "shuffled")

_BATCH = flags.DEFINE_integer("batch", 8, "Sequences.", lower_bound=1)
_HEADS = flags.DEFINE_integer("heads", 32, "Query heads.", lower_bound=1)
_KV_HEADS = flags.DEFINE_integer("kv_heads", 8, "Key and value heads.", lower_bound=1)
_HEAD_DIM = flags.DEFINE_integer("head_dim", 128, "Width of a head.", lower_bound=1)
_CONTEXT = flags.DEFINE_integer("context", 4096, "Tokens of a sequence, a multiple of each block size.", lower_bound=1)
_BLOCK_SIZES = flags.DEFINE_list("block_sizes", ["16", "128"], "Tokens in a block.")
_DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Dtype of queries and of the pools.")
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds of each measurement.", lower_bound=1)
_SAMPLE = flags.DEFINE_float("sample", 0.1, "Seconds that a round lasts at least.", 0)
_JSON = flags.DEFINE_string("json", None, "Write the figures to this file too.")


class Stepper:
    """A compiled decode step that feeds its donated pools back to itself."""

    def __init__(self, model: Any, config: Any, arguments: Sequence[Any]) -> None:
        self._arguments = [jnp.array(argument, copy=True) for argument in arguments]
        step = jax.jit(partial(model.decode, config=config), donate_argnums=(3, 4))
        self._step = step.lower(*self._arguments).compile()

    def __call__(self) -> None:
        """Run it once, to the end."""
        self.run()

    def run(self) -> jax.Array:
        """Run it once, and give its attention."""
        out, *pools = jax.block_until_ready(self._step(*self._arguments))
        self._arguments[3:5] = pools
        return out


def arguments_of(model: Any, config: Any, context: int) -> list[Any]:
    """The arguments of `decode` for full sequences, the last token of each the new one."""
    generator = np.random.default_rng(0)
    table = model.constant_table(config)
    last = context - 1
    slots = table[:, last // config.block_size] * config.block_size + last % config.block_size
    floats = [
        generator.standard_normal(spec.shape, np.float32).astype(spec.dtype) for spec in model.decode_args(config)[:5]
    ]
    return [*floats, slots, table, np.full(config.batch, context, np.int32)]


def measure(model: Any, config: Any, context: int) -> dict[str, Any]:
    """Two tiers beside one, of one table and block size."""
    arguments = arguments_of(model, config, context)
    sizes = {"one tier": 1, "two tiers": 2}
    steppers = {name: Stepper(model, replace(config, tiers=tiers), arguments) for name, tiers in sizes.items()}
    one, two = (np.asarray(stepper.run(), np.float64) for stepper in steppers.values())
    difference = float(np.max(np.abs(one - two)))
    # Sums of a context's values in another order; weights in bfloat16 are rounded, against maxima of other blocks.
    allowed = (2.0**-7 if config.dtype == "bfloat16" else 1e-5) * max(1.0, float(np.max(np.abs(one))))
    row: dict[str, Any] = {"block_size": config.block_size, "table": config.table, "difference": difference}
    if not difference <= allowed:
        return {**row, "wrong": True}
    timings = interleave(steppers, _ROUNDS.value, sample=_SAMPLE.value)
    return {
        **row,
        "wrong": False,
        "one_tier": figures_of(timings["one tier"]),
        "two_tiers": figures_of(timings["two tiers"]),
        "ratio": ratio(timings["two tiers"], timings["one tier"]),
        "shown": [shown(timings["one tier"]), shown(timings["two tiers"])],
    }


def configs(model: Any) -> list[Any]:
    """The sizes that are asked for."""
    made = []
    for text in _BLOCK_SIZES.value:
        if not text.isdecimal() or int(text) < 1 or _CONTEXT.value % int(text):
            raise app.UsageError(f"--block_sizes {text}: not a size that divides --context {_CONTEXT.value}")
        blocks = _CONTEXT.value // int(text)
        for table in TABLES:
            try:
                made.append(
                    model.Config(
                        batch=_BATCH.value,
                        heads=_HEADS.value,
                        kv_heads=_KV_HEADS.value,
                        head_dim=_HEAD_DIM.value,
                        block_size=int(text),
                        total_pool_blocks=max(2, _BATCH.value * blocks),
                        max_blocks=blocks,
                        dtype=_DTYPE.value,
                        table=table,
                    )
                )
            except ValueError as error:
                raise app.UsageError(f"sizes that make no model: {error}") from None
    return made


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def main(argv: Sequence[str]) -> int:
    """Measure each block size and table, print the rows, and write them as JSON if asked to."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    if _JSON.value and not os.access(Path(_JSON.value).absolute().parent, os.W_OK):
        raise app.UsageError(f"--json {_JSON.value}: its folder does not exist or cannot be written to")
    model: Any = load_function(f"{MODEL}:decode").module
    wanted, on = configs(model), machine()
    print(
        f"decode of {_BATCH.value} sequences of {_CONTEXT.value} tokens, {_HEADS.value} heads on {_KV_HEADS.value},"
        f" {_HEAD_DIM.value} dims, {_DTYPE.value}; jax {on['jax']}, {on['platform']}, {on['cpu_count']} cores,"
        f" load {on['load_before']:.1f}; medians of {_ROUNDS.value} interleaved rounds (lowest to highest), ms"
    )
    print(f"  {'block':>5}  {'table':10}  {'one tier':>32}  {'two tiers':>32}  two/one")
    rows = []
    for config in wanted:
        row = measure(model, config, _CONTEXT.value)
        rows.append(row)
        start = f"  {row['block_size']:>5}  {row['table']:10}"
        if row["wrong"]:
            print(f"{start}  wrong results: {row['difference']:.3g} apart", flush=True)
        else:
            one, two = row.pop("shown")
            print(f"{start}  {one:>32}  {two:>32}  {row['ratio']:7.2f}", flush=True)
    if _JSON.value:
        figures = {"machine": {**on, "load_after": os.getloadavg()[0]}, "rounds": _ROUNDS.value, "rows": rows}
        figures |= {name: flag.value for name, flag in (("context", _CONTEXT), ("batch", _BATCH), ("dtype", _DTYPE))}
        figures |= {name: flag.value for name, flag in (("heads", _HEADS), ("kv_heads", _KV_HEADS))}
        figures["head_dim"] = _HEAD_DIM.value
        Path(_JSON.value).write_text(json.dumps(figures, indent=2) + "\n")
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    app.run(main)
