"""Lower random legal scatters and compare each with its original, scatter level, in all index regimes.

    python scripts/difftest.py --runs 200 --seed 1
    python scripts/difftest.py --runs 50 --oob spec --out /tmp/failing

A run is a seed: `--seed 17 --runs 1` repeats one. Modules that differ, or that fail to lower, are written to --out.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from jax import lax

import hlo_lower as hl
from hlo_lower.errors import EXIT_DIFFERS, EXIT_OK
from hlo_lower.export import export, exported_text

_RUNS = flags.DEFINE_integer("runs", 100, "Scatters to try.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the first run; run i has seed + i.")
_OOB = flags.DEFINE_enum("oob", "xla", ["xla", "spec"], "What happens to updates out of bounds.")
_OUT = flags.DEFINE_string("out", "difftest_failing", "Folder for modules that fail; made when there is one.")

DTYPES = ("float32", "float32", "int32", "bfloat16", "float16", "int8", "uint8", "bool", "complex64")
INDEX_DTYPES = ("int32", "int32", "uint32", "int8", "uint8", "int16")
MODES = (
    lax.GatherScatterMode.FILL_OR_DROP,
    lax.GatherScatterMode.CLIP,
    lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)
COMBINERS: dict[str, Callable[..., Any]] = {
    "assign": lax.scatter,
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}
INDEX_SOURCES = ("argument", "argument", "constant", "iota", "scalar")


@dataclass(frozen=True)
class Case:
    """One scatter in JAX's terms: shapes, dimension numbers, dtypes, combiner, and where its indices come from."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    updates: tuple[int, ...]
    numbers: lax.ScatterDimensionNumbers
    dtype: str
    index_dtype: str
    combiner: str
    mode: lax.GatherScatterMode
    index_source: str
    constant: tuple[int, ...]


def random_case(seed: int) -> Case:
    """A legal scatter: operand dims are split into window, inserted and batching ones, the rest follows.

    Several scatter positions with an empty index vector all write at the operand's start. XLA is wrong there: for
    f32[4] it adds [1, 2, 3, 4] to [0, 0, 0, 0] as [1, 2, 3, 4], where the spec and its interpreter say [10, 0, 0, 0].
    Verification knows, and lets the other judges decide.
    """
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 5))
    operand = tuple(int(d) for d in rng.integers(1, 7, rank))
    kinds = rng.choice(["window", "inserted", "batching"], rank, p=[0.5, 0.35, 0.15])
    window_dims, inserted, batching = (
        [i for i in range(rank) if kinds[i] == k] for k in ("window", "inserted", "batching")
    )
    indexable = [int(d) for d in rng.permutation([*window_dims, *inserted])]
    indexed = indexable[: int(rng.integers(0, len(indexable) + 1))]
    # The indices are [scatter dims, K]; batching dims of the operand stand among the scatter dims, anywhere.
    scatter_rank = len(batching) + int(rng.integers(0, 3))
    batch_places = [int(p) for p in rng.permutation(scatter_rank)[: len(batching)]]
    scatter_shape = [int(d) for d in rng.integers(1, 5, scatter_rank)]
    for operand_dim, place in zip(batching, batch_places, strict=True):
        scatter_shape[place] = operand[operand_dim]
    windows = [int(rng.integers(1, operand[d] + 1)) for d in window_dims]
    # The windows' dims stand anywhere among those of the updates, in the operand's order.
    update_rank = scatter_rank + len(windows)
    update_window_dims = sorted(int(p) for p in rng.permutation(update_rank)[: len(windows)])
    sizes = iter(windows), iter(scatter_shape)
    updates = tuple(next(sizes[0] if i in update_window_dims else sizes[1]) for i in range(update_rank))
    indices = (*scatter_shape, len(indexed))
    dtype = str(rng.choice(DTYPES))
    combiners = ["assign"] if dtype in ("bool", "complex64") else list(COMBINERS)
    return Case(
        operand=operand,
        indices=indices,
        updates=updates,
        numbers=lax.ScatterDimensionNumbers(
            update_window_dims=tuple(update_window_dims),
            inserted_window_dims=tuple(inserted),
            scatter_dims_to_operand_dims=tuple(indexed),
            operand_batching_dims=tuple(batching),
            scatter_indices_batching_dims=tuple(batch_places),
        ),
        dtype=dtype,
        index_dtype=str(rng.choice(INDEX_DTYPES)),
        combiner=str(rng.choice(combiners)),
        mode=MODES[int(rng.integers(len(MODES)))],
        index_source=str(rng.choice(INDEX_SOURCES)),
        constant=tuple(int(i) for i in rng.integers(-2, 8, int(np.prod(indices)))),
    )


def exported_case(case: Case) -> Any:
    """The scatter as an exported module."""
    index = jax.ShapeDtypeStruct(() if case.index_source == "scalar" else case.indices, case.index_dtype)

    def scatter(operand: jax.Array, start: jax.Array, updates: jax.Array) -> jax.Array:
        return COMBINERS[case.combiner](
            operand, indices_of(case, start), updates, case.numbers, mode=case.mode, unique_indices=False
        )

    operand, updates = (jax.ShapeDtypeStruct(shape, case.dtype) for shape in (case.operand, case.updates))
    return export(scatter, operand, index, updates)


def indices_of(case: Case, start: jax.Array) -> jax.Array:
    """The indices, from the argument as it is, a constant, a run along a dim, or one scalar everywhere."""
    if case.index_source == "constant":
        return jnp.asarray(np.array(case.constant).reshape(case.indices).astype(case.index_dtype))
    if case.index_source == "iota" and len(case.indices) > 1:
        return lax.broadcasted_iota(start.dtype, case.indices, 0) + start.reshape(-1)[:1].sum() if start.size else start
    return jnp.broadcast_to(start, case.indices)


def failure(case: Case, seed: int) -> str:
    """What went wrong with a case: "" if nothing did."""
    exported = exported_case(case)
    text = exported_text(exported)
    lowered_text = ""
    try:
        lowered = hl.lower(text, oob=_OOB.value)
        lowered_text = lowered.text
        verdict = hl.verify(text, lowered, oob=_OOB.value, level="scatter", seed=seed)
        if verdict.ok:
            return ""
        message = verdict.summary()
    except Exception as error:  # a crash of any kind is a finding, kept with its module
        message = f"{type(error).__name__}: {error}"
    folder = Path(_OUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{seed}.mlir").write_text(text)
    (folder / f"{seed}.lowered.mlir").write_text(lowered_text)
    (folder / f"{seed}.txt").write_text(f"{dataclasses.asdict(case)}\n{message}\n")
    return message


def main(argv: Sequence[str]) -> int:
    """Run the seeds, print a line per failure and a total; exit code 1 if there was one."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    failed = 0
    for seed in range(_SEED.value, _SEED.value + _RUNS.value):
        case = random_case(seed)
        if message := failure(case, seed):
            failed += 1
            print(
                f"seed {seed}: {case.combiner} {case.dtype}{list(case.operand)}: {message.splitlines()[0]}", flush=True
            )
    tried = f"{_RUNS.value} scatter{'' if _RUNS.value == 1 else 's'}"
    print(f"{tried}, oob {_OOB.value}: {failed} failed" + (f", in {_OUT.value}/" if failed else ""))
    return EXIT_DIFFERS if failed else EXIT_OK


if __name__ == "__main__":
    app.run(main)
