"""The decoder of `llama` spread over several devices: a KV cache that is sharded over its heads or over the batch.

Over the heads, weights are split as in tensor parallelism: queries, keys and values by columns, the projection behind
them by rows. Over the batch, each device has its own sequences and all of the weights. The cache writes are those of
`llama` and `ragged_decode`; the caches that come in, and those that leave, are constrained to their places.

    hlo-lower export models/sharded_decode.py:decode -o heads.mlir
    hlo-lower export models/sharded_decode.py:decode -o batch.mlir --set spread=batch --set devices=16 --set batch=16
    hlo-lower export models/sharded_decode.py:decode_rows -o rows.mlir --set spread=batch
    hlo-lower export models/sharded_decode.py:prefill -o prefill.mlir --set preset=llama_1b

An export needs none of the devices: it is made for an abstract mesh, which has names and sizes only. The module says
how many partitions it is for, and keeps the shardings of arguments and the constraints inside.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import llama
import ragged_decode
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from llama import Cache, Params

AXIS = "model"
CACHE_AXES = {"heads": PartitionSpec(None, AXIS), "batch": PartitionSpec(AXIS)}
"""How a cache of [batch, kv_heads, max_length, head_dim] is spread."""

COLUMNS, ROWS = PartitionSpec(None, AXIS), PartitionSpec(AXIS)
SPLIT = {"wq": COLUMNS, "wk": COLUMNS, "wv": COLUMNS, "wo": ROWS, "w_gate": COLUMNS, "w_up": COLUMNS, "w_down": ROWS}


@dataclass(frozen=True)
class Config(llama.Config):
    """The size of a decoder, and how it is spread.

    Attributes:
      devices: how many devices the step is for.
      spread: "heads" or "batch", what the caches are sharded over.
    """

    devices: int = 8
    spread: str = "heads"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.devices < 1:
            raise ValueError(f"devices={self.devices} must be at least 1")
        if self.spread not in CACHE_AXES:
            raise ValueError(f"spread={self.spread} must be one of {', '.join(CACHE_AXES)}")
        for name in ("kv_heads", "ffn") if self.spread == "heads" else ("batch",):
            if getattr(self, name) % self.devices:
                raise ValueError(f"{name}={getattr(self, name)} must be a multiple of devices={self.devices}")


SIZE = Config(layers=1, heads=8, kv_heads=8, batch=8)


def _real(preset: str, **sizes: Any) -> Config:
    single = llama.PRESETS[preset]
    return replace(SIZE, **{f.name: getattr(single, f.name) for f in fields(single)}, **sizes)


PRESETS = {
    "tiny": SIZE,
    "llama_1b": replace(_real("llama_1b"), batch=32),
    "llama_8b": replace(_real("llama_8b"), batch=32),
}


# --- where things lie -----------------------------------------------------------------------------------------------


def mesh_of(config: Config) -> AbstractMesh:
    """One axis of devices, without the devices."""
    return AbstractMesh((config.devices,), (AXIS,), axis_types=(AxisType.Auto,))


def cache_sharding(config: Config) -> NamedSharding:
    """Where the rows of a cache lie."""
    return NamedSharding(mesh_of(config), CACHE_AXES[config.spread])


def placed(specs: Any, mesh: AbstractMesh, axes: PartitionSpec) -> Any:
    """The same specs with a sharding."""
    sharding = NamedSharding(mesh, axes)
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=sharding), specs)


def param_specs(config: Config) -> Params:
    """The weights of `llama`, split over the devices where the heads are, else whole on each of them."""
    mesh, whole = mesh_of(config), PartitionSpec()
    specs = llama.param_specs(config)

    def layer(weights: dict[str, Any]) -> dict[str, Any]:
        axes = SPLIT if config.spread == "heads" else {}
        return {name: placed(spec, mesh, axes.get(name, whole)) for name, spec in weights.items()}

    return {
        name: [layer(weights) for weights in spec] if name == "layers" else placed(spec, mesh, whole)
        for name, spec in specs.items()
    }


def cache_specs(config: Config) -> Cache:
    """The KV caches, each on the devices that have its heads or its sequences."""
    return placed(llama.cache_specs(config), mesh_of(config), CACHE_AXES[config.spread])


def per_sequence(config: Config, *shape: int) -> jax.ShapeDtypeStruct:
    """An int32 argument of [batch, ...], with the sequences where the batch is spread, else whole."""
    axes = PartitionSpec(AXIS) if config.spread == "batch" else PartitionSpec()
    return placed(jax.ShapeDtypeStruct((config.batch, *shape), jnp.int32), mesh_of(config), axes)


def _constrained(caches: Cache, config: Config) -> Cache:
    sharding = cache_sharding(config)
    return jax.tree.map(lambda cache: jax.lax.with_sharding_constraint(cache, sharding), caches)


def _spread(step: Callable[..., tuple[jax.Array, Cache]], *args: Any, config: Config) -> tuple[jax.Array, Cache]:
    """A step of (params, caches, ...) with its caches held in their places before and behind it."""
    params, caches, *rest = args
    result, written = step(params, _constrained(caches, config), *rest, config=config)
    return result, _constrained(written, config)


# --- the steps ------------------------------------------------------------------------------------------------------


def decode(
    params: Params, caches: Cache, tokens: jax.Array, position: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`llama.decode`: one token per sequence, all at one position. Cache length may be symbolic."""
    return _spread(llama.decode, params, caches, tokens, position, config=config)


def decode_rows(
    params: Params, caches: Cache, tokens: jax.Array, positions: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`ragged_decode.decode_vmap_set`: one token per sequence, each at its own position. Cache length may be open."""
    return _spread(ragged_decode.decode_vmap_set, params, caches, tokens, positions, config=config)


def prefill(
    params: Params, caches: Cache, tokens: jax.Array, start: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`llama.prefill`: S tokens per sequence from a start on. Cache length and S may be symbolic."""
    return _spread(llama.prefill, params, caches, tokens, start, config=config)


def _arguments(config: Config, *more: Any) -> tuple[Any, ...]:
    return param_specs(config), cache_specs(config), *more


def _scalar(config: Config) -> jax.ShapeDtypeStruct:
    return placed(jax.ShapeDtypeStruct((), jnp.int32), mesh_of(config), PartitionSpec())


def decode_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode`."""
    return _arguments(config, per_sequence(config), _scalar(config))


def decode_rows_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode_rows`."""
    return _arguments(config, per_sequence(config), per_sequence(config))


def prefill_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `prefill`."""
    return _arguments(config, per_sequence(config, config.prompt), _scalar(config))


EXPORTS = {
    "decode": {"args": decode_args, "config": SIZE, "presets": PRESETS, "donate": (1,)},
    "decode_rows": {"args": decode_rows_args, "config": SIZE, "presets": PRESETS, "donate": (1,)},
    "prefill": {"args": prefill_args, "config": SIZE, "presets": PRESETS, "donate": (1,)},
}
