"""Paged attention on IREE, lowered for it and as linalg: dense attention is the judge, and no other page is touched."""

from functools import cache, partial
from pathlib import Path

import dense_attention as judge
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.consumers import IREE
from hlo_lower.consumers.iree import compile_module
from hlo_lower.ir.export.load import load_function

pytestmark = pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")

paged = load_function(f"{Path(__file__).parents[2]}/models/paged_attention.py:decode").module

LENGTHS, STARTS = (0, 1, 5, 16), (0, 0, 2, 12)
CONFIG = paged.Config(batch=4, max_blocks=4, total_pool_blocks=19, chunk=4)
STEPS = {"decode": ("some_pairs", ()), "prefill": ("shuffled", (STARTS,))}


@cache
def on_iree(name, target, **options):
    """An export, converted and compiled: a function of its arguments."""
    fn = partial(getattr(paged, name), config=CONFIG)
    lowered = hl.lower(hl.export(fn, *paged.EXPORTS[name]["args"](CONFIG)), target=target, **options)
    assert lowered.scatters_left == 0
    assert target != "linalg" or lowered.linalg.is_complete
    return compile_module(lowered.text)


def rows_kept(args, pools):
    """Whether every row holds its new token, or the bits that it had."""
    slots = args[5].reshape(-1)
    kept = (slots >= 0) & (slots < len(args[3]))
    for new, before, after in zip(args[1:3], args[3:5], pools, strict=True):
        expected = before.copy()
        expected[slots[kept]] = new.reshape(-1, *new.shape[-2:])[kept]
        if not np.array_equal(judge.bits_of(expected), judge.bits_of(after)):
            return False
    return True


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("decode", "iree"),
        pytest.param("prefill", "linalg", marks=pytest.mark.sweep),
        pytest.param("decode", "linalg", marks=pytest.mark.sweep),
        pytest.param("prefill", "iree", marks=pytest.mark.sweep),
    ],
)
def test_a_step_on_iree_is_dense_attention(name, target):
    """Pages of others hold NaN of many bits: they come out as they were, and nothing of them reaches a result."""
    kind, more = STEPS[name]
    inputs, excess = getattr(judge, f"{name}_inputs"), getattr(judge, f"{name}_excess")
    pages, args = inputs(CONFIG, kind, LENGTHS, *more)
    out, *pools = on_iree(name, target)(args)
    assert excess(pages, *more, args[0], out) <= 1
    assert rows_kept(args, pools)


@pytest.mark.parametrize("target", ["iree", "linalg"])
def test_slots_outside_the_pool_write_nothing(target):
    """Padding slots of -1 and slots past the end, alike ones among them, leave every page alone."""
    _, args = judge.decode_inputs(CONFIG, "some_pairs", LENGTHS)
    for slots in ((-1, -1, -1, -1), (len(args[3]), -1, len(args[3]) + 1, 2**31 - 1), (-(2**31), 0, -1, -2)):
        args[5][:] = slots
        _, *pools = on_iree("decode", target)(args)
        assert rows_kept(args, pools)


def test_a_page_that_is_touched_is_found():
    """Slots that are moved into the pool, as a clamp does, write a row that is another's: the comparison finds it."""
    _, args = judge.decode_inputs(CONFIG, "some_pairs", LENGTHS)
    args[5][:] = -1
    moved = [*args[:5], np.maximum(args[5], 0), *args[6:]]
    _, *pools = on_iree("decode", "iree")(moved)
    assert not rows_kept(args, pools)
