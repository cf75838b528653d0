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


# --- pages --------------------------------------------------------------------------------------------------------


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
    """A table [batch, max_blocks] of blocks that no two sequences share, in a pool that has `spare` blocks more.

    Of "some_pairs" runs of two, three and one stay together; "at_the_end" has a pair in the last blocks of the pool.
    """
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
    """Sequences in poisoned pages: tokens by sequence, the pools that hold those before `starts`, and the table.

    Attributes:
      table: [batch, max_blocks], entries behind a sequence's last block made unusable.
      lengths: [batch], tokens with the new ones.
      keys: by sequence [length, kv_heads, dim]; so `values`.
      k_pool: [rows, kv_heads, dim], the tokens before starts in it, NaN elsewhere; so `v_pool`.
    """

    table: np.ndarray
    lengths: np.ndarray
    keys: list
    values: list
    k_pool: np.ndarray
    v_pool: np.ndarray


def pages_of(config, kind, lengths, starts, spare=3, clean=False):
    """Sequences of the lengths, of which the pools hold the tokens before starts; clean pages hold 1, not NaN."""
    generator = np.random.default_rng(3)
    dtype = np.dtype(config.dtype) if config.dtype != "bfloat16" else np.dtype(ml_dtypes.bfloat16)
    size, heads, dim = config.block_size, config.kv_heads, config.head_dim
    table = tables_of(kind, len(lengths), config.max_blocks, spare)
    shape = ((len(lengths) * config.max_blocks + spare) * size, heads, dim)
    made = [
        [generator.normal(size=(length, heads, dim)).astype(dtype) for length in lengths]  # keys, then values
        for _ in range(2)
    ]
    pools = [np.ones(shape, dtype) if clean else poison(generator, shape, dtype) for _ in range(2)]
    for pool, tokens in zip(pools, made, strict=True):
        for row, sequence, start in zip(table, tokens, starts, strict=True):
            write_tokens(pool, row, sequence[:start], size)
    for row, length in zip(table, lengths, strict=True):
        row[-(-length // size) :] = -1
    return Pages(table, np.array(lengths, np.int32), *made, *pools)


# --- a decode step and a chunk of prefill over such pages ---------------------------------------------------------


def queries_of(pages, heads, *tokens):
    """Random queries [batch, *tokens, heads, dim] of the pages' dtype."""
    shape = (len(pages.lengths), *tokens, heads, pages.k_pool.shape[2])
    return np.random.default_rng(5).normal(size=shape).astype(pages.k_pool.dtype)


def decode_inputs(config, kind, lengths, **pages):
    """Pages without the last token of each sequence, and the arguments of `decode` that add it; padding is NaN."""
    pages = pages_of(config, kind, lengths, [max(0, n - 1) for n in lengths], **pages)
    slots = [slots_of(row, [n - 1], config.block_size)[0] for row, n in zip(pages.table, lengths, strict=True)]
    nothing = np.full(pages.k_pool.shape[1:], np.nan, pages.k_pool.dtype)
    k, v = (np.stack([t[-1] if len(t) else nothing for t in tokens]) for tokens in (pages.keys, pages.values))
    q = queries_of(pages, config.heads)
    return pages, (q, k, v, pages.k_pool, pages.v_pool, np.array(slots), pages.table, pages.lengths)


def prefill_inputs(config, kind, lengths, starts, **pages):
    """Pages with the tokens before starts, and the arguments of `prefill` that add a chunk; padding is NaN."""
    pages = pages_of(config, kind, lengths, starts, **pages)
    batch, size = len(lengths), config.chunk
    slots = np.full((batch, size), -1, np.int32)
    new = np.full((2, batch, size, *pages.k_pool.shape[1:]), np.nan, pages.k_pool.dtype)
    for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        own = range(start, min(length, start + size))
        slots[i, : len(own)] = slots_of(pages.table[i], own, config.block_size)
        for which, tokens in enumerate((pages.keys, pages.values)):
            new[which, i, : len(own)] = tokens[i][start : start + size]
    q = queries_of(pages, config.heads, size)
    rest = (pages.k_pool, pages.v_pool, slots, pages.table, np.array(starts, np.int32), pages.lengths)
    return pages, (q, *new, *rest)


def decode_excess(pages, q, out):
    """The largest error of a decode step as a multiple of its bound; infinite where it is not a number."""
    return max(_excess(q[i], pages.keys[i], pages.values[i], out[i]) for i in range(len(q)))


def prefill_excess(pages, starts, q, out):
    """The same of a chunk of prefill, whose padding is to be zeros."""
    worst = 0.0
    for i, length in enumerate(pages.lengths):
        for j in range(q.shape[1]):
            seen = starts[i] + j + 1 if starts[i] + j < length else 0
            worst = max(worst, _excess(q[i, j], pages.keys[i][:seen], pages.values[i][:seen], out[i][j]))
    return worst


def _excess(q, keys, values, out):
    error = np.abs(np.asarray(out, np.float64) - dense(q, keys, values))
    limit = np.maximum(bound(q, keys, values), 1e-300)
    return float(np.max(np.where(np.isfinite(error), error / limit, np.inf)))
