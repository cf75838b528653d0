"""Pages that are written through flattened slots are one window each, and drop as a whole where they lie outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.facts.scatter import layout
from hlo_lower.facts.scatter.record import Written
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.run import Executable

BLOCK, PAGES = 4, 3
ROWS = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
SPECIAL = [-1, 0, 2, 4, 5, -(2**29), 2**29, 2**30, 2**31 - 1, -(2**31), 7]
"""Pages in range, past the end, and so far out that page * block wraps around to page 0."""


def by_slots(pool, table, rows):
    """Slots as they are: a negative one is dropped."""
    slots = (table[:, None] * BLOCK + jnp.arange(BLOCK)).reshape(-1)
    return lax.scatter(pool, slots[:, None], rows.reshape(-1, 2), ROWS, mode="drop")


def by_at(pool, table, rows):
    """Negative slots count from the end."""
    slots = (table[:, None] * BLOCK + jnp.arange(BLOCK)).reshape(-1)
    return pool.at[slots].set(rows.reshape(-1, 2), mode="drop")


def added(pool, table, rows):
    """Pages that are added."""
    slots = (table[:, None] * BLOCK + jnp.arange(BLOCK)).reshape(-1)
    return pool.at[slots].add(rows.reshape(-1, 2), mode="drop")


def beside(pool, table, rows):
    """Pages that begin one row late: some overhang."""
    slots = (table[:, None] * BLOCK + jnp.arange(1, BLOCK + 1)).reshape(-1)
    return lax.scatter(pool, slots[:, None], rows.reshape(-1, 2), ROWS, mode="drop")


def columns_first(pool, table, rows):
    """The places in a page vary slowest: no page is a run of neighbouring positions."""
    slots = (table[None, :] * BLOCK + jnp.arange(BLOCK)[:, None]).reshape(-1)
    return lax.scatter(pool, slots[:, None], rows.reshape(-1, 2), ROWS, mode="drop")


def exported(fn, rows=20):
    """The module over a pool of so many rows."""
    pool = jax.ShapeDtypeStruct((rows, 2), "float32")
    table = jax.ShapeDtypeStruct((PAGES,), "int32")
    return hl.export(fn, pool, table, jax.ShapeDtypeStruct((PAGES, BLOCK, 2), "float32"))


def differs(fn, rows=20, **options):
    """Whether the lowered module gives another result for some tables."""
    source = exported(fn, rows)
    lowered = hl.lower(source, **options)
    versions = [Executable(t, "exact") for t in (hl.lower(source, skip=["*"]).text, lowered.text)]
    rng = np.random.default_rng(0)
    for _ in range(40):
        pool, new = (rng.standard_normal(s).astype(np.float32) for s in ((rows, 2), (PAGES, BLOCK, 2)))
        table = rng.choice(SPECIAL, PAGES).astype(np.int32)
        expected, found = (version.run([pool, table, new]) for version in versions)
        if first_difference(expected, found) is not None:
            return True
    return False


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("fn", [by_slots, by_at])
def test_a_page_is_one_window(fn, oob):
    """Three pages of four rows are three windows, each inside or outside as a whole."""
    record = hl.classify(exported(fn), oob=oob)[0]
    assert (record.subset, record.writes) == ("Windows", Written((3,), ("i:i+4", ":")))
    assert record.why["drops"] == "windows"


@pytest.mark.parametrize(("fn", "rows"), [(beside, 20), (by_slots, 19), (by_at, 21), (columns_first, 20)])
def test_what_is_no_whole_page_drops_row_by_row(fn, rows):
    """Where pages begin between multiples of their size, or the pool ends within one, no page is dropped as a whole."""
    record = hl.classify(exported(fn, rows))[0]
    assert record.subset == "Filter" or record.why["drops"] == "elements"


@pytest.mark.few(8)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("rule", ["unrolled", "while", "last_writer"])
@pytest.mark.parametrize("fn", [by_slots, by_at, added, beside, columns_first])
def test_every_form_computes_the_same(fn, rule, oob):
    """On tables with pages that repeat, lie outside, and wrap around on the way to their slots."""
    if rule == "last_writer" and fn is added:
        rule = "rounds"
    assert not differs(fn, oob=oob, prefer=(rule, "few_windows=64"))


@pytest.mark.parametrize("rows", [19, 21])
def test_a_pool_that_ends_within_a_page(rows):
    """The rows of the last page that there are, are written."""
    assert not differs(by_slots, rows, prefer=("unrolled", "few_windows=64"))


def test_pages_that_are_taken_for_aligned_are_found(monkeypatch):
    """Pages that begin one row late are not dropped as a whole: taken for aligned on purpose, they differ."""
    monkeypatch.setattr(layout, "_is_aligned", lambda *_: True)
    assert differs(beside, prefer=("unrolled", "few_windows=64"))


def test_a_table_in_two_dims_is_unfolded_to_pages():
    """[batch, pages, block] flattened to one dim: every page is a window."""

    def write(pool, table, rows):
        slots = (table[..., None] * BLOCK + jnp.arange(BLOCK)).reshape(-1)
        return lax.scatter(pool, slots[:, None], rows.reshape(-1, 2), ROWS, mode="drop")

    shapes = [((40, 2), "float32"), ((2, 3), "int32"), ((2, 3, BLOCK, 2), "float32")]
    source = hl.export(write, *(jax.ShapeDtypeStruct(s, d) for s, d in shapes))
    assert hl.classify(source)[0].writes == Written((6,), ("i:i+4", ":"))
    assert hl.verify(source, hl.lower(source)).ok


def test_a_batch_of_caches_keeps_its_sequences_apart():
    """Slots of sequences, flattened: the one scatter dim is a batching dim, and stays one for each sequence."""

    def write(caches, table, rows):
        slots = (table[:, None] * BLOCK + jnp.arange(BLOCK)).reshape(-1)
        return jax.vmap(lambda cache, slot, row: cache.at[slot].set(row, mode="drop"))(caches, slots, rows)

    shapes = [((12, 40, 2), "float32"), ((PAGES,), "int32"), ((12, 2), "float32")]
    source = hl.export(write, *(jax.ShapeDtypeStruct(s, d) for s, d in shapes))
    assert hl.classify(source)[0].subset == "BatchedTile"
    for options in ({}, {"prefer": ("while",)}):
        assert hl.verify(source, hl.lower(source, **options), level="regions").ok


def test_slots_that_are_given_stay_rows():
    """Nothing is known of slots that are an argument, reshaped or not."""

    def write(pool, slots, rows):
        return lax.scatter(pool, slots.reshape(-1, 1), rows, ROWS, mode="drop")

    shapes = [((40, 2), "float32"), ((3, BLOCK), "int32"), ((3 * BLOCK, 2), "float32")]
    source = hl.export(write, *(jax.ShapeDtypeStruct(s, d) for s, d in shapes))
    assert hl.classify(source)[0].writes == Written((12,), ("i", ":"))
