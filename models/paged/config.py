"""The sizes of paged attention, the shapes that follow from them, and block tables to plan with."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

TABLES = ("contiguous", "shuffled", "some_pairs")


@dataclass(frozen=True)
class Config:
    """The size of a step. The defaults are the preset `tiny`.

    Attributes:
      batch: sequences.
      heads: query heads.
      kv_heads: key and value heads, a divisor of heads.
      head_dim: width of a head.
      block_size: tokens in a block of the pool.
      total_pool_blocks: blocks in the pool, at least 2.
      max_blocks: entries of a sequence's row of the block table.
      tile: queries of one key head that a kernel takes at once; the last tile may be smaller.
      chunk: tokens per sequence that one prefill step takes.
      dtype: dtype of queries and of the pools.
      tiers: 2 loads pairs of neighbouring blocks at once, 1 every block by itself.
      table: the blocks of `decode_planned`: "contiguous", "shuffled", or "some_pairs", of which only some touch.
      composites: each kernel is a composite (`paged/kernels.py`), unless batch, pool or block size are open.
    """

    batch: int = 2
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 8
    block_size: int = 4
    total_pool_blocks: int = 12
    max_blocks: int = 4
    tile: int = 16
    chunk: int = 6
    dtype: str = "float32"
    tiers: int = 2
    table: str = "some_pairs"
    composites: bool = True

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "kv_heads", "head_dim", "block_size", "max_blocks", "tile", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.total_pool_blocks < 2:
            raise ValueError(f"total_pool_blocks={self.total_pool_blocks} must be at least 2: two blocks make a pair")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads={self.heads} must be a multiple of kv_heads={self.kv_heads}")
        if not jnp.issubdtype(jnp.dtype(self.dtype), jnp.floating):
            raise ValueError(f"dtype={self.dtype} must be a floating-point dtype")
        if self.tiers not in (1, 2):
            raise ValueError(f"tiers={self.tiers} must be 1 or 2")
        if self.table not in TABLES:
            raise ValueError(f"table={self.table} must be one of {', '.join(TABLES)}")

    @property
    def pool_rows(self) -> int:
        """Rows of a flat pool."""
        return self.total_pool_blocks * self.block_size


# The attention of Llama 3.1 8B, eight sequences of 4096 tokens.
LLAMA_8B = Config(
    batch=8,
    heads=32,
    kv_heads=8,
    head_dim=128,
    block_size=16,
    total_pool_blocks=2048,
    max_blocks=256,
    tile=64,
    chunk=64,
    dtype="bfloat16",
)

PRESETS = {
    "tiny": Config(),
    "llama_8b": LLAMA_8B,
    "llama_8b_large_blocks": replace(LLAMA_8B, block_size=128, total_pool_blocks=256, max_blocks=32, chunk=128),
}


def floats(config: Config, *shape: int) -> jax.ShapeDtypeStruct:
    """An argument of the model's dtype."""
    return jax.ShapeDtypeStruct(shape, jnp.dtype(config.dtype))


def integers(*shape: int) -> jax.ShapeDtypeStruct:
    """An int32 argument."""
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def flat_pool(config: Config) -> jax.ShapeDtypeStruct:
    """A pool of [total_pool_blocks * block_size, kv_heads, head_dim]."""
    return floats(config, config.pool_rows, config.kv_heads, config.head_dim)


def block_pool(config: Config) -> jax.ShapeDtypeStruct:
    """A pool of [total_pool_blocks, block_size, kv_heads, head_dim]."""
    return floats(config, config.total_pool_blocks, config.block_size, config.kv_heads, config.head_dim)


def constant_table(config: Config) -> NDArray[np.int32]:
    """The block table of `decode_planned`: [batch, max_blocks], a block to one sequence only.

    Raises:
      ValueError: the pool has too few blocks for it.
    """
    wanted = config.batch * config.max_blocks
    if wanted > config.total_pool_blocks:
        raise ValueError(f"{wanted} blocks in the table, and total_pool_blocks={config.total_pool_blocks}")
    blocks = np.arange(wanted, dtype=np.int32)
    generator = np.random.default_rng(0)
    if config.table == "shuffled":
        blocks = generator.permutation(blocks)
    if config.table == "some_pairs":  # runs of two, three and one, in any order
        cuts = np.cumsum(np.resize([2, 3, 1], wanted))
        runs = np.split(blocks, cuts[cuts < wanted])
        blocks = np.concatenate([runs[i] for i in generator.permutation(len(runs))])
    return blocks.reshape(config.batch, config.max_blocks)
