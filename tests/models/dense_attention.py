"""The judge of paged attention: plain dense attention in float64, by token and not by page, and how far off one may be.

Beside it the pages as a server keeps them: a pool full of NaN, each with bits of its own, into which the tokens of each
sequence are written by NumPy, block by block.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

BITS = {np.dtype(np.float32): np.uint32, np.dtype(ml_dtypes.bfloat16): np.uint16}
UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(ml_dtypes.bfloat16): 2.0**-8}  # half a unit in the last place of 1


def weights_of(q, keys):
    """Softmax weights [heads, tokens] of one query [heads, dim] over keys [tokens, kv_heads, dim]; float64."""
    group = q.shape[0] // keys.shape[1]
    own = np.repeat(np.asarray(keys, np.float64), group, axis=1)
    scores = np.einsum("hd,thd->ht", np.asarray(q, np.float64), own) * q.shape[1] ** -0.5
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def dense(q, keys, values):
    """Attention [heads, dim] of one query over all tokens; zeros where there are none."""
    if not len(keys):
        return np.zeros(q.shape)
    own = np.repeat(np.asarray(values, np.float64), q.shape[0] // keys.shape[1], axis=1)
    return np.einsum("ht,thd->hd", weights_of(q, keys), own)


def bound(q, keys, values):
    """How far rounding alone may take a result from `dense`, per entry [heads, dim].

    A score is off by the rounding of the scaled query and of a sum of dim products; a weight by twice that, by its own
    rounding to the values' type, and by the rounding of float32 sums and rescalings, at most eight for each token; the
    result by its rounding to the query's type.
    """
    if not len(keys):
        return np.zeros(q.shape)
    unit, single = UNIT[np.asarray(q).dtype], UNIT[np.dtype(np.float32)]
    group, dim = q.shape[0] // keys.shape[1], q.shape[1]
    own = np.repeat(np.abs(np.asarray(keys, np.float64)), group, axis=1)
    size = np.einsum("hd,thd->ht", np.abs(np.asarray(q, np.float64)), own).max(axis=1) * dim**-0.5
    score = size * (unit + (dim + 8) * single)
    relative = np.expm1(2 * score) + 2 * unit + (8 * len(keys) + 64) * single
    mixed = np.einsum("ht,thd->hd", weights_of(q, keys), np.repeat(np.abs(np.asarray(values, np.float64)), group, 1))
    return relative[:, None] * mixed


def poison(generator, shape, dtype):
    """NaN everywhere, of many bit patterns; in bfloat16 of both signs, as XLA's CPU keeps no more of its NaN."""
    bits = BITS[np.dtype(dtype)]
    sign = generator.integers(0, 2, size=shape, dtype=bits) << bits(8 * bits().itemsize - 1)
    if bits is np.uint16:
        return (sign | bits(0x7FC0)).view(dtype)
    return (sign | bits(0x7FC00000) | generator.integers(0, 2**22, size=shape, dtype=bits)).view(dtype)


def bits_of(array):
    """The bits of floats, NaN too, as integers that compare equal or not."""
    array = np.asarray(array)
    return array.view(BITS[array.dtype])


def slots_of(row, positions, block_size):
    """The slots of a sequence's tokens at positions, by its row of the table; -1 for a position of -1."""
    return np.array([-1 if p < 0 else row[p // block_size] * block_size + p % block_size for p in positions], np.int32)


def write_tokens(pool, row, tokens, block_size):
    """Write the tokens [n, kv_heads, dim] of a sequence, from its first one on, into the blocks of its row."""
    for start in range(0, len(tokens), block_size):
        part = tokens[start : start + block_size]
        first = row[start // block_size] * block_size
        pool[first : first + len(part)] = part


def tables_of(kind, batch, max_blocks, spare):
    """A table [batch, max_blocks] of blocks that no two sequences share, in a pool that has `spare` blocks more."""
    count = batch * max_blocks
    blocks = np.arange(count, dtype=np.int32) + (spare if kind == "at_the_end" else 0)
    generator = np.random.default_rng(7)
    if kind == "shuffled":
        blocks = generator.permutation(count + spare)[:count].astype(np.int32)
    if kind == "backwards":
        blocks = blocks[::-1]
    if kind == "some_pairs":
        cuts = np.cumsum(np.resize([2, 3, 1], count))
        runs = np.split(blocks, cuts[cuts < count])
        blocks = np.concatenate([runs[i] for i in generator.permutation(len(runs))])
    return np.ascontiguousarray(blocks.reshape(batch, max_blocks))


@dataclass
class Pages:
    """Sequences in poisoned pages: tokens by sequence, the pools that hold those before `starts`, and the table."""

    table: np.ndarray  # [batch, max_blocks], entries behind a sequence's last block made unusable
    lengths: np.ndarray  # [batch], tokens with the new ones
    keys: list  # by sequence [length, kv_heads, dim]
    values: list
    k_pool: np.ndarray  # [rows, kv_heads, dim], the tokens before starts in it, NaN elsewhere
    v_pool: np.ndarray


def pages_of(config, kind, lengths, starts, spare=3, clean=False):
    """Sequences of the lengths, of which the pools hold the tokens before starts; clean pages hold 1, not NaN."""
    generator = np.random.default_rng(3)
    dtype = np.dtype(config.dtype) if config.dtype != "bfloat16" else np.dtype(ml_dtypes.bfloat16)
    size, heads, dim = config.block_size, config.kv_heads, config.head_dim
    table = tables_of(kind, len(lengths), config.max_blocks, spare)
    shape = ((len(lengths) * config.max_blocks + spare) * size, heads, dim)
    keys, values = ([generator.normal(size=(n, heads, dim)).astype(dtype) for n in lengths] for _ in range(2))
    pools = [np.ones(shape, dtype) if clean else poison(generator, shape, dtype) for _ in range(2)]
    for pool, tokens in zip(pools, (keys, values), strict=True):
        for row, sequence, start in zip(table, tokens, starts, strict=True):
            write_tokens(pool, row, sequence[:start], size)
    for row, length in zip(table, lengths, strict=True):
        row[-(-length // size) :] = -1
    return Pages(table, np.array(lengths, np.int32), keys, values, *pools)


def inputs(config, kind, lengths, starts=None, **pages):
    """Pages with tokens before starts, and the arguments of `prefill`, without starts of `decode`; padding is NaN."""
    one = starts is None
    starts, size = ([max(0, n - 1) for n in lengths], 1) if one else (starts, config.chunk)
    pages = pages_of(config, kind, lengths, starts, **pages)
    shape = len(lengths), size
    slots = np.full(shape, -1, np.int32)
    new = np.full((2, *shape, *pages.k_pool.shape[1:]), np.nan, pages.k_pool.dtype)
    for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        own = range(start, min(length, start + size))
        slots[i, : len(own)] = slots_of(pages.table[i], own, config.block_size)
        for which, tokens in enumerate((pages.keys, pages.values)):
            new[which, i, : len(own)] = tokens[i][start : start + size]
    q = np.random.default_rng(5).normal(size=(*shape, config.heads, new.shape[-1])).astype(new.dtype)
    pools = pages.k_pool, pages.v_pool
    if one:
        return pages, (q[:, 0], *new[:, :, 0], *pools, slots[:, 0], pages.table, pages.lengths)
    return pages, (q, *new, *pools, slots, pages.table, np.array(starts, np.int32), pages.lengths)


def excess(pages, args, out):
    """The largest error of a step as a multiple of its bound, infinite where it is not a number; padding is zeros."""
    starts = np.maximum(pages.lengths - 1, 0) if args[0].ndim == 3 else args[7]
    q, out = (np.asarray(a).reshape(len(starts), -1, *a.shape[-2:]) for a in (args[0], out))
    worst = 0.0
    for i, j in np.ndindex(q.shape[:2]):
        seen = starts[i] + j + 1 if starts[i] + j < pages.lengths[i] else 0
        keys, values = pages.keys[i][:seen], pages.values[i][:seen]
        error = np.abs(out[i, j].astype(np.float64) - dense(q[i, j], keys, values))
        limit = np.maximum(bound(q[i, j], keys, values), 1e-300)
        worst = max(worst, float(np.max(np.where(np.isfinite(error), error / limit, np.inf))))
    return worst


def are_kept(args, pools):
    """Whether each row that no slot names has the bits that it had, and each other row its token."""
    slots = args[5].reshape(-1)
    kept = (slots >= 0) & (slots < len(args[3]))
    for new, before, after in zip(args[1:3], args[3:5], pools, strict=True):
        expected = before.copy()
        expected[slots[kept]] = new.reshape(-1, *new.shape[-2:])[kept]
        if not np.array_equal(bits_of(expected), bits_of(after)):
            return False
    return True


def assert_right(step, config, kind, lengths, starts=None, more=(), **pages):
    """Check a step: right to rounding, other pages, full of NaN, left alone; `more` is for open exports."""
    pages, args = inputs(config, kind, lengths, starts, **pages)
    out, *pools = step(*args, *more)
    assert excess(pages, args, out) <= 1, kind
    assert are_kept(args, pools), kind
    return out
