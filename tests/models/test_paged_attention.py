"""models/paged_attention.py against dense attention: tables, lengths, heads, dtypes, tiers, plans, poisoned pages."""

from functools import cache, partial
from importlib import import_module
from pathlib import Path

import dense_attention as judge
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function

paged = load_function(f"{Path(__file__).parents[2]}/models/paged_attention.py:decode").module
kernels, plans, attention = (import_module(f"paged.{name}") for name in ("kernels", "plan", "attention"))
Config = paged.Config

SIZE = 4
MOST = 5  # blocks of a sequence
LENGTHS = (0, 1, SIZE, SIZE + 1, SIZE * MOST, 11)
STARTS = (0, 0, 0, 2, 14, 8)  # the last chunk is a partial one, as are those of the short sequences
KINDS = ("contiguous", "shuffled", "some_pairs", "backwards", "at_the_end")
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time


def size_of(**fields):
    """A config of six sequences."""
    sizes = {"batch": 6, "head_dim": 8, "block_size": SIZE, "max_blocks": MOST, "total_pool_blocks": 6 * MOST + 3}
    return Config(**sizes | {"tile": 16} | fields)


@cache
def compiled(name, config):
    """A step of the model, compiled once for all tests."""
    return jax.jit(partial(getattr(paged, name), config=config), compiler_options=QUICKLY)


def decode_excess(config, kind, step=None, lengths=LENGTHS, **pages):
    """The error of a decode step as a multiple of its bound."""
    pages, args = judge.decode_inputs(config, kind, lengths, **pages)
    out, *_ = (step or compiled("decode", config))(*args)
    return judge.decode_excess(pages, args[0], out)


HEADS = [(6, 1), (6, 2), (6, 6), (20, 1), (20, 4)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
def test_decode_is_dense_attention(heads, kv_heads, dtype):
    """For any table, and sequences of no token, one, a block, a block and one, and all, a step is right to rounding.

    All pages hold NaN where no token has been written, so nothing of them gets into a result.
    """
    config = size_of(heads=heads, kv_heads=kv_heads, dtype=dtype)
    for kind in KINDS:
        assert decode_excess(config, kind) <= 1, kind


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (20, 1)])
def test_prefill_is_dense_attention(heads, kv_heads, dtype):
    """Each token of a chunk sees what stands before it and itself; padding gives zeros, though it is NaN."""
    config = size_of(heads=heads, kv_heads=kv_heads, dtype=dtype)
    for kind in KINDS:
        pages, args = judge.prefill_inputs(config, kind, LENGTHS, STARTS)
        out, *_ = compiled("prefill", config)(*args)
        assert judge.prefill_excess(pages, STARTS, args[0], out) <= 1, kind
        np.testing.assert_array_equal(np.asarray(out[0]), 0)


def test_chunks_of_prefill_and_steps_of_decode_build_one_cache():
    """A sequence written by chunks, then token by token, attends as over all of it at once."""
    config = size_of(heads=6, kv_heads=2, max_blocks=4)
    lengths, prefill, decode = (
        np.array([14, 9, 13, 16, 12, 15]),
        compiled("prefill", config),
        compiled("decode", config),
    )
    pages, args = judge.prefill_inputs(config, "some_pairs", lengths, [0] * 6)
    pools = args[3:5]
    for start in (0, 6):
        chunk = (prefill_chunk(pages, start, min(start + 6, 12), row) for row in range(6))
        k, v, slots = (np.stack(part) for part in zip(*chunk, strict=True))
        ends = np.minimum(lengths, start + 6)
        out, *pools = prefill(args[0], k, v, *pools, slots, pages.table, np.full(6, start), ends)
    for length in range(13, 17):
        now = np.where(lengths >= length, length, 0)
        k, v, slots = (
            np.stack(part)[:, 0]
            for part in zip(*(prefill_chunk(pages, length - 1, length, row) for row in range(6)), strict=True)
        )
        out, *pools = decode(args[0][:, 0], k, v, *pools, slots, pages.table, now)
        for row in np.flatnonzero(now):
            seen = pages.keys[row][:length], pages.values[row][:length]
            error = np.abs(out[row] - judge.dense(args[0][row, 0], *seen))
            assert np.all(error <= judge.bound(args[0][row, 0], *seen))


def prefill_chunk(pages, start, end, row):
    """Keys, values and slots of six tokens of a sequence, or of one where that is all, those behind its end padded."""
    width = 6 if end - start > 1 else 1
    tokens = [p if p < min(end, pages.lengths[row]) else -1 for p in range(start, start + width)]
    nothing = np.full(pages.k_pool.shape[1:], np.nan, np.float32)
    new = [np.stack([t[p] if p >= 0 else nothing for p in tokens]) for t in (pages.keys[row], pages.values[row])]
    return *new, judge.slots_of(pages.table[row], tokens, SIZE)


# --- the plan of loads --------------------------------------------------------------------------------------------


def loads_of(plan):
    """The loads of each sequence: (blocks in the load, first block, place)."""
    table = np.asarray(plan.table).tolist()
    loads = [set() for _ in table]
    for form, places, count, linked in plan.tiers:
        count = np.asarray(count)
        for row, of_row in enumerate(np.asarray(places).tolist()):
            place = of_row[0]
            for i in range(int(count[row])):
                loads[row].add((form.blocks, table[row][place], place))
                place = of_row[(place if linked else i) + 1]
    return loads


def greedy(row, length, size, total):
    """The loads of a sequence as the plan's docstring has them, entry by entry."""
    loads, place = set(), 0
    while place * size < length and place < len(row):
        block, following = int(row[place]), place + 1
        usable = 0 <= block < total
        if usable and following < len(row) and following * size < length and row[following] == block + 1 < total:
            loads.add((2, block, place))
            place += 2
        else:
            loads |= {(1, block, place)} if usable else set()
            place += 1
    return loads


def random_tables():
    """Tables of few blocks, so that many touch, some of which are not there, and lengths, some too long."""
    generator = np.random.default_rng(0)
    table = generator.integers(-1, 9, size=(400, 6)).astype(np.int32)
    table[:200] = np.maximum.accumulate(generator.integers(0, 2, size=(200, 6)), axis=1) + np.arange(6)
    table[200:204, 2] = (2**31 - 1, -(2**31), 8, 7)
    return table, generator.integers(0, 6 * 3 + 4, size=400).astype(np.int32)


def test_a_plan_at_run_time_is_the_greedy_one():
    """Pairs are taken from left to right, each used block is loaded once, and no load reaches past the pool."""
    table, lengths = random_tables()
    made = loads_of(plans.plan_tiers(jnp.asarray(table), jnp.asarray(lengths), 3, 8))
    assert made == [greedy(row, length, 3, 8) for row, length in zip(table, lengths, strict=True)]
    assert max(block + blocks for loads in made for blocks, block, _ in loads) == 8
    assert {blocks for loads in made for blocks, _, _ in loads} == {1, 2}


def test_plans_at_build_time_and_at_run_time_are_the_same():
    """Of sequences that use their whole tables, both make the same loads; with one tier, single ones only."""
    table, _ = random_tables()
    lengths = jnp.full(len(table), 18)
    for tiers in (1, 2):
        then, now = (plans.plan_tiers(t, lengths, 3, 8, tiers=tiers) for t in (jnp.asarray(table), table))
        assert loads_of(then) == loads_of(now)
        assert all(tier.form == kernels.ONE_BLOCK for tier in then.tiers) == (tiers == 1)


def test_a_plan_at_build_time_has_only_tiers_that_it_needs():
    """Blocks that all touch in pairs are loaded in pairs alone, blocks that never touch one by one alone."""
    forms = [
        [tier.form for tier in plans.plan_tiers(np.array([row], np.int32), jnp.array([12]), 3, 9).tiers]
        for row in ([0, 1, 4, 5], [5, 4, 1, 0], [0, 1, 2, 4])
    ]
    assert forms == [[kernels.TWO_BLOCKS], [kernels.ONE_BLOCK], [kernels.TWO_BLOCKS, kernels.ONE_BLOCK]]


def test_a_block_that_nobody_holds_is_not_loaded():
    """With references, a block whose count is zero is no load, and so no half of a pair."""
    table, held = jnp.array([[2, 3, 4, 5]]), jnp.array([1, 1, 1, 0, 2, 1])
    made = plans.plan_tiers(table, jnp.array([16]), 4, 6, references=held)
    assert loads_of(made) == [{(1, 2, 0), (2, 4, 2)}]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_one_tier_and_two_give_the_same(kind):
    """Both ways are within the bound of dense attention, and only the order of sums tells them apart."""
    one, two = (size_of(heads=6, kv_heads=2, tiers=tiers) for tiers in (1, 2))
    pages, args = judge.decode_inputs(one, kind, LENGTHS)
    (first, *_), (second, *_) = (compiled("decode", config)(*args) for config in (one, two))
    assert judge.decode_excess(pages, args[0], first) <= 1
    assert judge.decode_excess(pages, args[0], second) <= 1
    np.testing.assert_allclose(first, second, rtol=0, atol=2e-6)


@pytest.mark.parametrize("table", ["contiguous", "shuffled", "some_pairs"])
def test_a_constant_table_gives_the_same(table):
    """Planned while tracing, for the longest lengths bit for bit; for others too, though it pairs unused blocks."""
    config = size_of(heads=6, kv_heads=2, table=table)
    for lengths in ((SIZE * MOST,) * 6, LENGTHS):
        pages, args = judge.decode_inputs(config, "contiguous", lengths)
        constant = import_module("paged.config").constant_table(config)
        pages.table[:] = constant
        for pool, tokens in ((pages.k_pool, pages.keys), (pages.v_pool, pages.values)):
            pool[:] = np.nan
            for row, sequence in zip(constant, tokens, strict=True):
                judge.write_tokens(pool, row, sequence, SIZE)
        args[5][:] = -1  # all is written
        planned, *_ = compiled("decode_planned", config)(*args[:6], args[7])
        assert judge.decode_excess(pages, args[0], planned) <= 1
        if lengths != LENGTHS:
            out, *_ = compiled("decode", config)(*args)
            np.testing.assert_array_equal(out, planned)


# --- pages that are not one's own ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_step_leaves_other_rows_as_they_are(dtype):
    """After a step each new token's row holds it, and every other row of the pools has the bits that it had."""
    config = size_of(heads=6, kv_heads=2, dtype=dtype)
    for name, inputs, more in (("decode", judge.decode_inputs, ()), ("prefill", judge.prefill_inputs, (STARTS,))):
        _, args = inputs(config, "some_pairs", LENGTHS, *more)
        slots = args[5].reshape(-1)
        for new, before, after in zip(args[1:3], args[3:5], compiled(name, config)(*args)[1:], strict=True):
            expected = before.copy()
            expected[slots[slots >= 0]] = new.reshape(-1, *new.shape[-2:])[slots >= 0]
            np.testing.assert_array_equal(judge.bits_of(expected), judge.bits_of(after))


OUTSIDE = (-1, -2, -132, 132, 133, 2**31 - 1, -(2**31))  # of a pool of 132 rows


def test_slots_outside_the_pool_are_dropped():
    """A negative slot is not counted from the end, and one past the pool is not moved into it."""
    generator = np.random.default_rng(0)
    pool = judge.poison(generator, (132, 2, 8), np.float32)
    rows = generator.normal(size=(len(OUTSIDE) + 2, 2, 8)).astype(np.float32)
    written = paged.writes.write_slots(jnp.asarray(pool), np.array([131, *OUTSIDE, 0]), rows)
    pool[131], pool[0] = rows[0], rows[-1]
    np.testing.assert_array_equal(judge.bits_of(pool), judge.bits_of(written))


def test_block_and_offset_are_each_checked():
    """An offset of a whole block does not land in the next one, nor -1 in the one before."""
    generator = np.random.default_rng(0)
    pool = judge.poison(generator, (5, 4, 2, 8), np.float32)
    pairs = [(0, 4), (1, -1), (-1, 0), (5, 0), (-1, 7), (5, -4), (2**31 - 1, 1), (1, 2**31 - 1), (4, 3), (0, 0)]
    rows = generator.normal(size=(len(pairs), 2, 8)).astype(np.float32)
    written = paged.writes.write_blocks(jnp.asarray(pool), *np.array(pairs).T, rows)
    pool[4, 3], pool[0, 0] = rows[-2:]
    np.testing.assert_array_equal(judge.bits_of(pool), judge.bits_of(written))


def test_whole_pages_are_written_or_dropped():
    """A page of -1, or one past the pool, drops the block that was meant for it."""
    generator = np.random.default_rng(0)
    pool = judge.poison(generator, (5, 4, 2, 8), np.float32)
    pages = np.array([[4, -1, 0], [5, 2, -5]])
    chunk = generator.normal(size=(2, 3, 4, 2, 8)).astype(np.float32)
    written = paged.writes.write_pages(jnp.asarray(pool), pages, chunk)
    pool[4], pool[0], pool[2] = chunk[0, 0], chunk[0, 2], chunk[1, 1]
    np.testing.assert_array_equal(judge.bits_of(pool), judge.bits_of(written))


# --- tiles and loops ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "tiles"), [(6, [6]), (16, [16]), (20, [16, 4]), (33, [16, 16, 1])])
def test_the_last_tile_keeps_what_is_left(heads, tiles, monkeypatch):
    """Query heads are cut into tiles of 16, and no head is lost or made up."""
    seen, qk = [], kernels.qk
    monkeypatch.setattr(kernels, "qk", lambda q, keys: seen.append(q.shape[1]) or qk(q, keys))
    config = size_of(heads=heads, kv_heads=1, tiers=1)
    jax.eval_shape(partial(paged.decode, config=config), *judge.decode_inputs(config, "shuffled", LENGTHS)[1])
    assert seen == tiles


def innermost_loops(jaxpr):
    """The while loops of a program that hold no other."""
    found = []
    for equation in jaxpr.eqns:
        inner = [leaf.jaxpr for leaf in jax.tree.leaves(list(equation.params.values())) if hasattr(leaf, "jaxpr")]
        below = [loop for sub in inner for loop in innermost_loops(sub)]
        found += below or ([equation] if equation.primitive.name == "while" else [])
    return found


def test_loops_do_nothing_twice():
    """Each operation in the body of a loop over loads depends on the loop's state: what does not stands before it."""
    config = size_of(heads=20, kv_heads=1)
    args = judge.decode_inputs(config, "shuffled", LENGTHS)[1]
    loops = innermost_loops(jax.make_jaxpr(partial(paged.decode, config=config))(*args).jaxpr)
    over_loads = [loop for loop in loops if "dynamic_slice" in str(loop.params["body_jaxpr"])]
    assert len(over_loads) == 2
    for loop in over_loads:
        body = loop.params["body_jaxpr"].jaxpr
        moving = {id(variable) for variable in body.invars[loop.params["body_nconsts"] :]}
        for equation in body.eqns:
            assert any(id(variable) in moving for variable in equation.invars), equation
            moving |= {id(variable) for variable in equation.outvars}


# --- kernels that are wrong ---------------------------------------------------------------------------------------


def without_rescale(running, largest, total, mixed):
    """An online update that keeps sums of different maxima as they are."""
    return kernels.Running(jnp.maximum(running.largest, largest), running.total + total, running.mixed + mixed)


def without_mask(scores, seen):
    """A softmax that sees the rest of the last block."""
    return SOFTMAX(scores, jnp.ones_like(seen))


def without_own_values(p, values, owned):
    """A product that takes a weight of zero to be enough."""
    return PV(p, values, jnp.ones_like(owned))


def first_page_twice(form, pool, block, block_size):
    """A two-block load that reads its first page again for the second."""
    rows = LOAD(kernels.ONE_BLOCK, pool, block, block_size)
    return jnp.concatenate([rows] * form.blocks)


def one_page_late(form, pool, block, block_size):
    """A load that a pair at the end of the pool moves back."""
    return LOAD(form, pool, block + 1, block_size)


SOFTMAX, PV, LOAD = kernels.softmax_prepare, kernels.pv, kernels.Form.load
WRONG = [
    (kernels, "online_update", without_rescale),
    (kernels, "softmax_prepare", without_mask),
    (kernels, "pv", without_own_values),
    (kernels.Form, "load", first_page_twice),
    (kernels.Form, "load", one_page_late),
]


@pytest.mark.parametrize(("place", "name", "wrong"), WRONG, ids=[wrong.__name__ for _, _, wrong in WRONG])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_wrong_kernel_is_caught(place, name, wrong, dtype, monkeypatch):
    """The bound is small enough to tell: a kernel with one mistake is far outside of it."""
    config = size_of(heads=6, kv_heads=2, dtype=dtype)
    monkeypatch.setattr(place, name, wrong)
    step = jax.jit(partial(paged.decode, config=config), compiler_options=QUICKLY)
    assert decode_excess(config, "contiguous", step) > 2
    if wrong is without_mask:  # NaN aside
        assert decode_excess(config, "contiguous", step, clean=True) > 2


REFUSED = [
    ({"heads": 5}, "heads=5 must be a multiple of kv_heads=2"),
    ({"tiers": 3}, "tiers=3 must be 1 or 2"),
    ({"total_pool_blocks": 1}, "total_pool_blocks=1 must be at least 2"),
    ({"table": "random"}, "table=random must be one of contiguous, shuffled, some_pairs"),
    ({"tile": 0}, "tile=0 must be at least 1"),
]


@pytest.mark.parametrize(("fields", "says"), REFUSED)
def test_a_size_that_makes_no_pages_is_refused(fields, says):
    """A config says which of its fields does not fit."""
    with pytest.raises(ValueError, match=says):
        Config(**fields)
