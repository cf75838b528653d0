"""The writes of a paged cache, lowered by each rule that takes them: NumPy writes the rows that are in bounds."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import dense_attention as judge
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.ir.export.load import load_function
from hlo_lower.report.row import writes as written_part
from hlo_lower.verify.run import Executable

paged = load_function(f"{Path(__file__).parents[2]}/models/paged_attention.py:decode").module

BLOCKS, BLOCK, ROW = 5, 4, (2, 8)
CONFIG = paged.Config(batch=12, total_pool_blocks=BLOCKS, block_size=BLOCK, chunk=BLOCK)
FAR = (2**31 - 1, -(2**31), 2**29)
SLOTS = (19, 0, -1, -1, 20, 21, -4, 7, *FAR, 7)
PAIRS = (
    (0, 4),
    (1, -1),
    (-1, 0),
    (5, 0),
    (-1, 7),
    (5, -4),
    (FAR[0], 1),
    (1, FAR[0]),
    (FAR[1], 2),
    (4, 3),
    (2, 1),
    (2, 1),
)
PAGES = (4, -1, 0, 5, 2, 2, -5, 2**31 - 1, 2**29, 2**28, -(2**28), 3)
FORMS = ("unrolled", "while", "last_writer", "sorted_last_writer")


def by_slots(pool, rows):
    """What `write_slots` writes."""
    for slot, row in zip(SLOTS, rows, strict=True):
        if 0 <= slot < len(pool):
            pool[slot] = row
    return [pool, np.array(SLOTS, np.int32), rows]


def by_blocks(pool, rows):
    """What `write_blocks` writes."""
    for (block, offset), row in zip(PAIRS, rows, strict=True):
        if 0 <= block < BLOCKS and 0 <= offset < BLOCK:
            pool[block, offset] = row
    return [pool, *np.array(PAIRS, np.int32).T, rows]


def by_pages(pool, chunk):
    """What `write_pages` and `write_page_slots` write."""
    by_page = pool.reshape(BLOCKS, BLOCK, *ROW)
    for page, rows in zip(PAGES, chunk.reshape(-1, BLOCK, *ROW), strict=True):
        if 0 <= page < BLOCKS:
            by_page[page] = rows
    return [pool, np.array(PAGES, np.int32).reshape(chunk.shape[:2]), chunk]


WRITES = {"write_slots": by_slots, "write_blocks": by_blocks, "write_pages": by_pages, "write_page_slots": by_pages}


def written(name, **options):
    """The pool that NumPy wrote, and what the lowered export makes of the same arguments."""
    fn = partial(getattr(paged, name), config=CONFIG)
    specs = paged.EXPORTS[name]["args"](CONFIG)
    generator = np.random.default_rng(0)
    expected = judge.poison(generator, specs[0].shape, np.float32)
    pool = expected.copy()
    _, *rest = WRITES[name](expected, generator.normal(size=specs[-1].shape).astype(np.float32))
    lowered = hl.lower(hl.export(fn, *specs), **options)
    (found,) = Executable(lowered.text, "exact").run([pool, *rest])
    return judge.bits_of(expected), judge.bits_of(found), lowered.records[0]


@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WRITES)
def test_rows_in_bounds_are_written_and_no_others(name, form, oob):
    """Block and offset are each checked, negative slots count from nowhere, and far ones do not wrap around."""
    expected, found, record = written(name, oob=oob, prefer=(form, "few_windows=64"))
    assert record.rule == form
    np.testing.assert_array_equal(expected, found)


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("write_slots", "12 rows [i, :, :] of 20x2x8"),
        ("write_blocks", "12 rows [i, j, :, :] of 5x4x2x8"),
        ("write_pages", "12 rows [i, :, :, :] of 5x4x2x8"),
        ("write_page_slots", "12 windows [i:i+4, :, :] of 20x2x8"),
    ],
)
def test_each_write_is_of_the_paged_class(name, writes, oob):
    """Rows or pages at places that data chooses, dropped as a whole; pages in a flat pool are pages still."""
    record = written(name, oob=oob)[2]
    assert written_part(record) == writes
    assert record.why["drops"] == "windows"


def test_components_that_are_not_checked_each_are_found(monkeypatch):
    """Linearised without a check, offset 4 of block 0 is offset 0 of block 1: the comparison finds it."""
    flat = FlatScatter.row_numbers
    monkeypatch.setattr(FlatScatter, "row_numbers", lambda self, build: flat(replaced(self), build))
    expected, found, _ = written("write_blocks", prefer=("last_writer",))
    assert not np.array_equal(expected, found)


def replaced(flat):
    """A flat scatter whose components are not checked."""
    return replace(flat, by_window=(), by_row=())
