"""models/paged_attention.py against dense attention: tables, lengths, heads, dtypes, tiers, plans, poisoned pages."""

from functools import partial
from importlib import import_module

import dense_attention as judge
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_runs import QUICKLY, jitted, model

paged = model("paged_attention.py")
kernels, plans, attention = (import_module(f"paged.{name}") for name in ("kernels", "plan", "attention"))

SIZE = 4
MOST = 5  # blocks of a sequence
LENGTHS = (0, 1, SIZE, SIZE + 1, SIZE * MOST, 11)
STARTS = (0, 0, 0, 2, 14, 8)  # the last chunk is a partial one, as are those of the short sequences
KINDS = ("contiguous", "shuffled", "some_pairs", "backwards", "at_the_end")


def size_of(heads=6, kv_heads=2, **fields):
    """A config of six sequences."""
    sizes = {"batch": 6, "head_dim": 8, "block_size": SIZE, "max_blocks": MOST, "total_pool_blocks": 6 * MOST + 3}
    return paged.Config(**sizes | {"tile": 16, "heads": heads, "kv_heads": kv_heads} | fields)


HEADS = [(6, 2), (20, 1), *(pytest.param(*heads, marks=pytest.mark.sweep) for heads in ((6, 6), (6, 1), (20, 4)))]


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
def test_steps_are_dense_attention(heads, kv_heads, dtype):
    """For any table and lengths; NaN of unwritten places gets nowhere, and padding, which is NaN, gives zeros."""
    config = size_of(heads, kv_heads, dtype=dtype)
    for kind in KINDS:
        judge.assert_right(jitted(paged.decode, config), config, kind, LENGTHS)
        out = judge.assert_right(jitted(paged.prefill, config), config, kind, LENGTHS, STARTS)
        np.testing.assert_array_equal(np.asarray(out[0]), 0)


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


def test_plans_at_run_time_and_at_build_time():
    """Pairs are taken from left to right, used blocks loaded once, none past the pool; at build time, too."""
    generator = np.random.default_rng(0)
    table = generator.integers(-1, 9, size=(400, 6)).astype(np.int32)
    table[:200] = np.maximum.accumulate(generator.integers(0, 2, size=(200, 6)), axis=1) + np.arange(6)
    table[200:204, 2] = (2**31 - 1, -(2**31), 8, 7)
    lengths = generator.integers(0, 6 * 3 + 4, size=400).astype(np.int32)
    made = loads_of(plans.plan_tiers(jnp.asarray(table), jnp.asarray(lengths), 3, 8))
    assert made == [greedy(row, length, 3, 8) for row, length in zip(table, lengths, strict=True)]
    assert max(block + blocks for loads in made for blocks, block, _ in loads) == 8
    assert {blocks for loads in made for blocks, _, _ in loads} == {1, 2}
    for tiers in (1, 2):
        then, now = (
            plans.plan_tiers(t, jnp.full(len(table), 18), 3, 8, tiers=tiers) for t in (jnp.asarray(table), table)
        )
        assert loads_of(then) == loads_of(now)
        assert all(tier.form == kernels.ONE_BLOCK for tier in then.tiers) == (tiers == 1)


def test_a_plan_has_only_what_it_needs():
    """Blocks that touch are loaded in pairs, others alone; with references, one of count 0 is no load."""
    forms = [
        [tier.form for tier in plans.plan_tiers(np.array([row], np.int32), jnp.array([12]), 3, 9).tiers]
        for row in ([0, 1, 4, 5], [5, 4, 1, 0], [0, 1, 2, 4])
    ]
    assert forms == [[kernels.TWO_BLOCKS], [kernels.ONE_BLOCK], [kernels.TWO_BLOCKS, kernels.ONE_BLOCK]]
    held = jnp.array([1, 1, 1, 0, 2, 1])
    made = plans.plan_tiers(jnp.array([[2, 3, 4, 5]]), jnp.array([16]), 4, 6, references=held)
    assert loads_of(made) == [{(1, 2, 0), (2, 4, 2)}]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_one_tier_and_two_and_a_constant_table_give_the_same(kind):
    """All are within the bound; a table planned while tracing gives the longest lengths bit for bit."""
    one, two, constant = size_of(tiers=1), size_of(), size_of(table=kind)
    first, second = (judge.assert_right(jitted(paged.decode, config), config, kind, LENGTHS) for config in (one, two))
    np.testing.assert_allclose(first, second, rtol=0, atol=2e-6)
    for lengths in ((SIZE * MOST,) * 6, LENGTHS):
        pages, args = judge.inputs(constant, "contiguous", lengths)
        pages.table[:] = table = import_module("paged.config").constant_table(constant)
        for pool, tokens in ((pages.k_pool, pages.keys), (pages.v_pool, pages.values)):
            pool[:] = np.nan
            for row, sequence in zip(table, tokens, strict=True):
                judge.write_tokens(pool, row, sequence, SIZE)
        args[5][:] = -1  # all is written
        planned, *_ = jitted(paged.decode_planned, constant)(*args[:6], args[7])
        assert judge.excess(pages, args, planned) <= 1
        if lengths != LENGTHS:
            np.testing.assert_array_equal(jitted(paged.decode, two)(*args)[0], planned)


@pytest.mark.parametrize(("heads", "tiles"), [(6, [6]), (16, [16]), (20, [16, 4]), (33, [16, 16, 1])])
def test_the_last_tile_keeps_what_is_left(heads, tiles, monkeypatch):
    """Query heads are cut into tiles of 16, and no head is lost or made up."""
    seen, qk = [], kernels.qk
    monkeypatch.setattr(kernels, "qk", lambda q, keys: seen.append(q.shape[1]) or qk(q, keys))
    config = size_of(heads, 1, tiers=1)
    jax.eval_shape(partial(paged.decode, config=config), *judge.inputs(config, "shuffled", LENGTHS)[1])
    assert seen == tiles


def innermost_loops(jaxpr):
    """The while loops of a program that hold no other."""
    for equation in jaxpr.eqns:
        inner = [leaf.jaxpr for leaf in jax.tree.leaves(list(equation.params.values())) if hasattr(leaf, "jaxpr")]
        below = [loop for sub in inner for loop in innermost_loops(sub)]
        yield from below or ([equation] if equation.primitive.name == "while" else [])


def test_loops_do_nothing_twice():
    """Each operation in the body of a loop over loads depends on the loop's state: what does not stands before it."""
    config = size_of(20, 1)
    args = judge.inputs(config, "shuffled", LENGTHS)[1]
    loops = innermost_loops(jax.make_jaxpr(partial(paged.decode, config=config))(*args).jaxpr)
    over_loads = [loop for loop in loops if "dynamic_slice" in str(loop.params["body_jaxpr"])]
    assert len(over_loads) == 2
    for loop in over_loads:
        body = loop.params["body_jaxpr"].jaxpr
        moving = {id(variable) for variable in body.invars[loop.params["body_nconsts"] :]}
        for equation in body.eqns:
            assert any(id(variable) in moving for variable in equation.invars), equation
            moving |= {id(variable) for variable in equation.outvars}


UNMASKED, UNOWNED, LOADED = kernels.softmax_prepare, kernels.load_values, kernels._load


def unowned(pool, first, owned, *, rows):
    """A load of values without their mask."""
    return UNOWNED(pool, first, jnp.ones_like(owned), rows=rows)


def twice(pool, first, rows):
    """A load of the first page in the place of each."""
    return jnp.concatenate([LOADED(pool, first, SIZE)] * (rows // SIZE))


def added(was, top, total, mixed):
    """Sums of different maxima, kept as they are."""
    return kernels.Running(jnp.maximum(was.largest, top), was.total + total, was.mixed + mixed)


UNSEEN = "the rest of the last block is seen"
WRONG = {
    "sums of different maxima are kept": (kernels, "online_update", added),
    UNSEEN: (kernels, "softmax_prepare", lambda scores, seen: UNMASKED(scores, jnp.ones_like(seen))),
    "a weight of zero is enough": (kernels, "load_values", unowned),
    "two blocks are the first page again": (kernels, "_load", twice),
    "a pair at the end is moved back": (kernels, "_load", lambda pool, first, rows: LOADED(pool, first + SIZE, rows)),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.sweep), "bfloat16"])
def test_a_wrong_kernel_is_caught(wrong, dtype, monkeypatch):
    """The bound is small enough to tell: a kernel with one mistake is far outside of it."""
    config = size_of(dtype=dtype)
    monkeypatch.setattr(*WRONG[wrong])
    step = jax.jit(partial(paged.decode, config=config), compiler_options=QUICKLY)
    for clean in (False, True)[: 1 + (wrong == UNSEEN)]:  # NaN aside
        pages, args = judge.inputs(config, "contiguous", LENGTHS, clean=clean)
        assert judge.excess(pages, args, step(*args)[0]) > 2
