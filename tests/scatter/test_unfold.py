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


def slots(table, first=0):
    """The slots of pages, flattened."""
    return (table[..., None] * BLOCK + jnp.arange(first, BLOCK + first)).reshape(-1)


def put(pool, at, rows):
    """Slots as they are: a negative one is dropped."""
    return lax.scatter(pool, at[:, None], rows.reshape(-1, 2), ROWS, mode="drop")


def by_slots(pool, table, rows):
    """Pages."""
    return put(pool, slots(table), rows)


def by_at(pool, table, rows):
    """Negative slots count from the end."""
    return pool.at[slots(table)].set(rows.reshape(-1, 2), mode="drop")


def added(pool, table, rows):
    """Pages that are added."""
    return pool.at[slots(table)].add(rows.reshape(-1, 2), mode="drop")


def beside(pool, table, rows):
    """Pages that begin one row late: some overhang."""
    return put(pool, slots(table, 1), rows)


def columns_first(pool, table, rows):
    """The places in a page vary slowest: no page is a run of neighbouring positions."""
    return put(pool, (table[None, :] * BLOCK + jnp.arange(BLOCK)[:, None]).reshape(-1), rows)


def exported(fn, pool=(20, 2), table=(PAGES,), rows=(PAGES, BLOCK, 2)):
    """The module for arguments of these shapes."""
    kinds = zip((pool, table, rows), ("float32", "int32", "float32"), strict=True)
    return hl.export(fn, *(jax.ShapeDtypeStruct(shape, kind) for shape, kind in kinds))


def differs(fn, rows=20, pages=(PAGES,), **options):
    """Whether the lowered module gives another result for some tables."""
    source = exported(fn, (rows, 2), pages, (*pages, BLOCK, 2))
    lowered = hl.lower(source, **options)
    versions = [Executable(t, "exact") for t in (hl.lower(source, skip=["*"]).text, lowered.text)]
    rng = np.random.default_rng(0)
    for _ in range(20):
        pool, new = (rng.standard_normal(s).astype(np.float32) for s in ((rows, 2), (*pages, BLOCK, 2)))
        table = rng.choice(SPECIAL, pages).astype(np.int32)
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
    record = hl.classify(exported(fn, (rows, 2)))[0]
    assert record.subset == "Filter" or record.why["drops"] == "elements"


@pytest.mark.few(5)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("rule", ["unrolled", "while", "last_writer"])
@pytest.mark.parametrize("fn", [by_slots, by_at, added, beside, columns_first])
def test_every_form_computes_the_same(fn, rule, oob):
    """On tables with pages that repeat, lie outside, and wrap around on the way to their slots."""
    if rule == "last_writer" and fn is added:
        rule = "rounds"
    assert not differs(fn, oob=oob, prefer=(rule, "few_windows=64"))


def test_the_ends_of_pools_and_pages(monkeypatch):
    """The rows of the last page that there are, are written; pages that begin one row late, taken for aligned on
    purpose, differ."""
    for rows in (19, 21):
        assert not differs(by_slots, rows, prefer=("unrolled", "few_windows=64"))
    monkeypatch.setattr(layout, "_is_aligned", lambda *_: True)
    assert differs(beside, prefer=("unrolled", "few_windows=64"))


def test_a_table_in_two_dims_is_unfolded_to_pages():
    """[batch, pages, block] flattened to one dim: every page is a window."""
    source = exported(by_slots, (40, 2), (2, 3), (2, 3, BLOCK, 2))
    assert hl.classify(source)[0].writes == Written((6,), ("i:i+4", ":"))
    assert not differs(by_slots, 40, (2, 3))


def test_a_batch_of_caches_keeps_its_sequences_apart():
    """Slots of sequences, flattened: the one scatter dim is a batching dim, and stays one for each sequence."""

    def write(caches, table, rows):
        return jax.vmap(lambda cache, slot, row: cache.at[slot].set(row, mode="drop"))(caches, slots(table), rows)

    source = exported(write, (12, 40, 2), (PAGES,), (12, 2))
    assert hl.classify(source)[0].subset == "BatchedTile"
    for options in ({}, {"prefer": ("while",)}):
        assert hl.verify(source, hl.lower(source, **options), level="regions").ok


def test_slots_that_are_given_stay_rows():
    """Nothing is known of slots that are an argument, reshaped or not."""
    source = exported(lambda pool, at, rows: put(pool, at.reshape(-1), rows), (40, 2), (3, BLOCK), (3 * BLOCK, 2))
    assert hl.classify(source)[0].writes == Written((12,), ("i", ":"))
