"""The exports of models/paged_attention.py through the tool: no scatter is left, and dense attention is the judge."""

import re
from functools import cache, partial
from pathlib import Path

import dense_attention as judge
import jax
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function
from hlo_lower.verify import Assumed, Effort
from hlo_lower.verify.module_runs import verify_module

paged = load_function(f"{Path(__file__).parents[2]}/models/paged_attention.py:decode").module

LENGTHS = (0, 1, 4, 5, 16, 11)
STARTS = (0, 0, 0, 2, 12, 8)
CONFIG = paged.Config(batch=6, max_blocks=4, total_pool_blocks=27, chunk=4)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time


@cache
def exported(name, **fields):
    """An export of the model, of six sequences; an open one with its own symbolic shapes."""
    config, entry = paged.Config(**vars(CONFIG) | fields), paged.EXPORTS[name]
    fn = partial(getattr(paged, name), config=config)
    return hl.export(fn, *entry["args"](config), shapes=entry.get("shapes"), donate=entry["donate"])


@cache
def lowered(name, oob="xla", **fields):
    """An export lowered."""
    return hl.lower(exported(name, **fields), oob=oob)


@cache
def step_of(name, **fields):
    """A lowered export as a function, compiled once for all tests of the same shapes."""
    return jax.jit(lowered(name, **fields).exported.call, compiler_options=QUICKLY)


def open_arguments(args, config):
    """What an open export takes more: a reference to each block, and the places in a block."""
    return *args, np.ones(len(args[3]) // config.block_size, np.int32), np.arange(config.block_size, dtype=np.int32)


ALL = tuple(paged.EXPORTS)


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", ALL)
def test_no_scatter_is_left(name, oob):
    """Each write of each export is an assignment to rows or pages that data chooses, and is lowered."""
    scatters = hl.read(exported(name)).scatters
    result = lowered(name, oob)
    assert len(scatters) == len(result.records) == (1 if name.startswith("write") else 2)
    assert not hl.read(result.text).scatters
    subset = "Windows" if name == "write_page_slots" else "Filter"  # there a page is a run of rows
    assert {(record.subset, record.combiner) for record in result.records} == {(subset, "assign")}


PROVED = (
    "decode",
    pytest.param("decode_open", marks=pytest.mark.sweep),
    "write_blocks",
    "write_pages",
    "write_page_slots",
)
"""The writes, each once; the other exports have one of them, and a sweep of their own below."""


@pytest.mark.parametrize("name", PROVED)
def test_each_write_verifies(name):
    """Every scatter of an export is proved in all regimes of its indices: negative, past the end, repeated."""
    verdict = hl.verify(exported(name), lowered(name), level="regions")
    assert verdict.ok, "\n".join(verdict.lines())


@pytest.mark.sweep
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", ALL)
def test_a_whole_export_verifies(name, oob):
    """The whole module computes the same, before and after, for open sizes at several of them."""
    verdict = hl.verify(exported(name), lowered(name, oob), oob=oob, level="full")
    assert verdict.ok, "\n".join(verdict.lines())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["contiguous", "shuffled", "some_pairs"])
def test_a_lowered_step_is_dense_attention(kind, dtype):
    """Decode and prefill without scatters are right to rounding, with padding slots and NaN in all other pages."""
    config = paged.Config(**vars(CONFIG) | {"dtype": dtype})
    pages, args = judge.decode_inputs(config, kind, LENGTHS)
    out, *pools = step_of("decode", dtype=dtype)(*args)
    assert judge.decode_excess(pages, args[0], out) <= 1
    unchanged(args, pools)
    pages, args = judge.prefill_inputs(config, kind, LENGTHS, STARTS)
    out, *pools = step_of("prefill", dtype=dtype)(*args)
    assert judge.prefill_excess(pages, STARTS, args[0], out) <= 1
    unchanged(args, pools)


def unchanged(args, pools):
    """Check that each row that no slot names has the bits that it had, and each other row its token."""
    slots = args[5].reshape(-1)
    kept = (slots >= 0) & (slots < len(args[3]))
    for new, before, after in zip(args[1:3], args[3:5], pools, strict=True):
        expected = before.copy()
        expected[slots[kept]] = new.reshape(-1, *new.shape[-2:])[kept]
        np.testing.assert_array_equal(judge.bits_of(expected), judge.bits_of(after))


def test_padding_of_any_kind_is_dropped():
    """Slots of -1, and others outside the pool, leave a lowered step's pages alone; several are alike."""
    _, args = judge.decode_inputs(CONFIG, "some_pairs", LENGTHS)
    rows = len(args[3])
    args[5][:] = (-1, -1, rows, 2**31 - 1, -(2**31), rows)
    _, *pools = step_of("decode")(*args)
    unchanged(args, pools)


SIZES = [  # batch, blocks that no sequence has, block_size
    ((5, 1, 4), {}),
    ((1,), {"spare": 0, "block_size": 4}),
    ((3, 0, 6), {"spare": 5, "block_size": 3}),
    ((4, 1), {"spare": 1, "block_size": 1}),
]


@pytest.mark.parametrize(("lengths", "sizes"), SIZES)
def test_an_open_step_is_dense_attention_at_any_size(lengths, sizes):
    """One lowered module with open batch, pool and block size is right at each of them, without being refined."""
    assert "?x2x8xf32" in lowered("decode_open").text
    config = paged.Config(**vars(CONFIG) | {"block_size": sizes.get("block_size", 4)})
    spare = sizes.get("spare", 3)
    pages, args = judge.decode_inputs(config, "some_pairs", lengths, spare=spare)
    out, *pools = step_of("decode_open")(*open_arguments(args, config))
    assert judge.decode_excess(pages, args[0], out) <= 1
    unchanged(args, pools)
    starts = [max(0, length - 3) for length in lengths]
    pages, args = judge.prefill_inputs(config, "some_pairs", lengths, starts, spare=spare)
    out, *pools = step_of("prefill_open")(*open_arguments(args, config))
    assert judge.prefill_excess(pages, starts, args[0], out) <= 1
    unchanged(args, pools)


BOUND = {"batch": 6, "total_pool_blocks": 27, "block_size": 4}


@pytest.mark.parametrize("name", ["decode_open", "prefill_open"])
def test_a_bound_step_is_dense_attention(name):
    """With its sizes bound an open export has none left, verifies, and gives what the one of fixed sizes gives."""
    result = hl.lower(exported(name), bind=BOUND)
    assert "?x" not in result.text
    assert not hl.read(result.text).scatters
    verdict = hl.verify(exported(name), result, level="regions")
    assert verdict.ok, "\n".join(verdict.lines())
    step = jax.jit(result.exported.call, compiler_options=QUICKLY)
    if name == "decode_open":
        pages, args = judge.decode_inputs(CONFIG, "shuffled", LENGTHS)
        out, *pools = step(*open_arguments(args, CONFIG))
        assert judge.decode_excess(pages, args[0], out) <= 1
    else:
        pages, args = judge.prefill_inputs(CONFIG, "shuffled", LENGTHS, STARTS)
        out, *pools = step(*open_arguments(args, CONFIG))
        assert judge.prefill_excess(pages, STARTS, args[0], out) <= 1
    unchanged(args, pools)


@pytest.mark.parametrize("name", ["decode", pytest.param("prefill", marks=pytest.mark.sweep)])
@pytest.mark.sweep
def test_a_wrong_mask_of_the_loop_over_pairs_is_found(name):
    """Runs draw tables with blocks that touch, and lengths of several blocks: the loop over pairs counts, too."""
    source = exported(name)
    text = hl.lower(source).text
    masks = list(re.finditer(r"stablehlo\.compare +LE, %\w+, %\w+, +SIGNED : \(tensor<\d+x(4|8)xi32>", text))
    assert {found[1] for found in masks} == {"4", "8"}
    for found in (found for found in masks if found[1] == "8"):  # the pairs'; those of single blocks are read always
        wrong = text[: found.start()] + text[found.start() :].replace(" LE,", " GT,", 1)
        assert verify_module(source.mlir_module(), wrong, Assumed(), Effort(), 1 << 30).status == "differs"


def test_a_pool_of_one_block_is_refused():
    """A pool has room for a pair of blocks, and binding it to less names the constraint that says so."""
    with pytest.raises(hl.InputError, match=r"total_pool_blocks.* does not hold for .*total_pool_blocks=1"):
        hl.bind(exported("decode_open"), BOUND | {"total_pool_blocks": 1})
