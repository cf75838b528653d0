"""Time a train step under `jax.jit` and `hl.jit`, on one device and on several, and print the table.

    python scripts/bench_sharded.py                    # two CPU devices, about a minute
    python scripts/bench_sharded.py --devices 4 --hidden 32 --vocab 256 --rounds 3

A GPT (models/train_step.py) takes a step of gradient descent: its gradients scatter rows into the embeddings. Each
weight is split along its first dim, and the batch, too. The versions run in turn, in one process; a figure is the
median of the rounds in ms of the clock, with its ratio to `jax.jit` on as many devices. Losses are held against that.

Exit code 1: a version gave another loss.
"""

import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

_DEVICES = flags.DEFINE_integer("devices", 2, "Devices of the second half of the table.", lower_bound=2)
_HIDDEN = flags.DEFINE_integer("hidden", 128, "Width.", lower_bound=4)
_VOCAB = flags.DEFINE_integer("vocab", 8192, "Tokens.", lower_bound=4)
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds.", lower_bound=1)

MODEL = Path(__file__).parents[1] / "models" / "train_step.py"


def model() -> Any:
    """The model's file."""
    spec = importlib.util.spec_from_file_location("train_step", MODEL)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["train_step"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def medians(versions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Milliseconds of each version, which run in turn."""
    times: dict[str, list[float]] = {name: [] for name in versions}
    for _ in range(rounds):
        for name, run in versions.items():
            start = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(found) for name, found in times.items()}


def main(argv: Sequence[str]) -> None:
    """Print the table."""
    del argv
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={_DEVICES.value}"
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import hlo_lower as hl

    train = model()
    sizes = {"layers": 2, "hidden": _HIDDEN.value, "heads": 4, "ffn": 2 * _HIDDEN.value, "vocab": _VOCAB.value}
    config = train.Config(**sizes, length=64, batch=8)
    draw = np.random.default_rng(0)
    weights = jax.tree.map(lambda s: jnp.asarray(0.02 * draw.normal(size=s.shape), s.dtype), train.param_specs(config))
    tokens = jnp.asarray(draw.integers(0, config.vocab, (config.batch, config.length + 1)), jnp.int32)

    def step(weights: Any, tokens: jax.Array) -> Any:
        return train.sgd(weights, tokens, config=config)

    different = False
    for count in (1, _DEVICES.value):
        mesh = Mesh(np.array(jax.devices()[:count]), ("d",))

        def place(x: jax.Array, mesh: Mesh = mesh, count: int = count) -> jax.Array:
            is_split = x.ndim > 0 and x.shape[0] % count == 0
            return jax.device_put(x, NamedSharding(mesh, PartitionSpec("d") if is_split else PartitionSpec()))

        given = jax.tree.map(place, weights), place(tokens)
        jitted = {"jax.jit": jax.jit(step), "hl.jit": hl.jit(step), "hl.jit, target xla": hl.jit(step, target="xla")}
        losses = {name: float(run(*given)[0]) for name, run in jitted.items()}
        versions = {
            name: lambda run=run, given=given: jax.block_until_ready(run(*given)) for name, run in jitted.items()
        }
        found = medians(versions, _ROUNDS.value)
        print(f"{count} device{'s' * (count > 1)}")
        for name, figure in found.items():
            print(f"  {name:20} {figure:9.1f} ms  {figure / found['jax.jit']:6.2f}")
        different |= not np.allclose(list(losses.values()), losses["jax.jit"], rtol=1e-4)
    sys.exit(int(different))


if __name__ == "__main__":
    app.run(main)
