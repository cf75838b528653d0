"""The exports of models/paged_attention.py through the tool: no scatter is left, and dense attention is the judge."""

import re
from dataclasses import replace
from functools import cache
from itertools import product

import dense_attention as judge
import jax
import numpy as np
import pytest
from model_runs import QUICKLY, model

import hlo_lower as hl
from hlo_lower.consumers import IREE
from hlo_lower.consumers.iree import compile_module
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.report.row import writes as written_part
from hlo_lower.verify import Assumed, Effort
from hlo_lower.verify.module_runs import verify_module
from hlo_lower.verify.run import Executable

paged = model("paged_attention.py")

LENGTHS = (0, 1, 4, 5, 16, 11)
STARTS = (0, 0, 0, 2, 12, 8)
CONFIG = paged.Config(batch=6, max_blocks=4, total_pool_blocks=27, chunk=4)
SWEPT = pytest.mark.sweep


def swept(*cases):
    """Cases for the sweep."""
    return [pytest.param(*case, marks=SWEPT) for case in cases]


@cache
def exported(name, config=CONFIG):
    """An export of the model, of six sequences; an open one with its own symbolic shapes."""
    entry = paged.EXPORTS[name]
    how = {"shapes": entry.get("shapes"), "donate": entry["donate"], "static": {"config": config}}
    return hl.export(getattr(paged, name), *entry["args"](config), **how)


@cache
def lowered(name, config=CONFIG, **options):
    """An export lowered."""
    return hl.lower(exported(name, config), **options)


@cache
def step_of(name, config=CONFIG):
    """A lowered export as a function, compiled once for all tests of the same shapes."""
    return jax.jit(lowered(name, config).exported.call, compiler_options=QUICKLY)


@pytest.mark.few(3)
@pytest.mark.parametrize("oob", ["xla", *swept(["spec"])])
@pytest.mark.parametrize("name", paged.EXPORTS)
def test_no_scatter_is_left(name, oob):
    """Each write of each export is an assignment to rows or pages that data chooses, and is lowered."""
    scatters, result = hl.read(exported(name)).scatters, lowered(name, oob=oob)
    assert len(scatters) == len(result.records) == (1 if name.startswith("write") else 2)
    assert not hl.read(result.text).scatters
    subset = "Windows" if name == "write_page_slots" else "Filter"  # there a page is a run of rows
    assert {(record.subset, record.combiner) for record in result.records} == {(subset, "assign")}


def are_verified(name, result, **how):
    """Check that an export and what it is lowered to are equal."""
    verdict = hl.verify(exported(name), result, **how)
    assert verdict.ok, "\n".join(verdict.lines())


VERIFIED = ["write_blocks", "write_pages", *swept(["decode"], ["decode_open"], ["write_page_slots"])]


@pytest.mark.parametrize("name", VERIFIED)
def test_each_write_verifies(name):
    """Every scatter of an export is proved in all regimes of its indices: negative, past the end, repeated."""
    are_verified(name, lowered(name), level="regions")


@SWEPT
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", paged.EXPORTS)
def test_a_whole_export_verifies(name, oob):
    """The whole module computes the same, before and after, for open sizes at several of them."""
    are_verified(name, lowered(name, oob=oob), oob=oob, level="full")


def open_step_of(name):
    """An open export, lowered without being refined."""
    assert "?x2x8xf32" in lowered(name).text
    return step_of(name)


KINDS = ("contiguous", "shuffled", "some_pairs")
STEPS = [  # a step, its config, tables, lengths, starts of prefill, and blocks that no sequence has
    *((step_of, {}, kind, LENGTHS, STARTS, 3) for kind in KINDS),
    *swept(*((step_of, {"dtype": "bfloat16"}, kind, LENGTHS, STARTS, 3) for kind in KINDS)),
    *(
        (open_step_of, {"block_size": size}, "some_pairs", lengths, [max(0, length - 3) for length in lengths], spare)
        for lengths, spare, size in (((5, 1, 4), 3, 4), ((1,), 0, 4), ((3, 0, 6), 5, 3), ((4, 1), 1, 1))
    ),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("step", "fields", "kind", "lengths", "starts", "spare"), STEPS)
def test_a_lowered_step_is_dense_attention(step, fields, kind, lengths, starts, spare):
    """Without scatters, steps are right to rounding, with NaN in other pages; open ones, too."""
    config = replace(CONFIG, **fields)
    references = np.ones(len(lengths) * config.max_blocks + spare, np.int32)
    places = np.arange(config.block_size, dtype=np.int32)
    more = () if step is step_of else (references, places)
    for name, begins in (("decode", None), ("prefill", starts)):
        fn = step(name, config) if step is step_of else step(f"{name}_open")
        judge.assert_right(fn, config, kind, lengths, begins, more, spare=spare)


def test_a_pool_of_one_block_is_refused():
    """A pool has room for a pair of blocks, and binding it to less names the constraint that says so."""
    with pytest.raises(hl.InputError, match=r"total_pool_blocks.* does not hold for .*total_pool_blocks=1"):
        hl.bind(exported("decode_open"), {"batch": 6, "block_size": 4, "total_pool_blocks": 1})


@SWEPT
@pytest.mark.parametrize("name", ["decode", "prefill"])
def test_a_wrong_mask_of_the_loop_over_pairs_is_found(name):
    """Runs draw tables with blocks that touch, and lengths of several blocks: the loop over pairs counts, too."""
    text = lowered(name).text
    masks = list(re.finditer(r"stablehlo\.compare +LE, %\w+, %\w+, +SIGNED : \(tensor<\d+x(4|8)xi32>", text))
    assert {found[1] for found in masks} == {"4", "8"}
    for found in (found for found in masks if found[1] == "8"):  # the pairs'; those of single blocks are read always
        wrong = text[: found.start()] + text[found.start() :].replace(" LE,", " GT,", 1)
        verdict = verify_module(exported(name).mlir_module(), wrong, Assumed(), Effort(), 1 << 30)
        assert verdict.status == "differs"


BLOCKS, BLOCK = 5, 4
FEW = paged.Config(batch=12, total_pool_blocks=BLOCKS, block_size=BLOCK, chunk=BLOCK)
FAR = (2**31 - 1, -(2**31), 2**29)
SLOTS = (19, 0, -1, -1, 20, 21, -4, 7, *FAR, 7)
PAIRS = (
    *((0, 4), (1, -1), (-1, 0), (5, 0), (-1, 7), (5, -4), (FAR[0], 1), (1, FAR[0]), (FAR[1], 2)),
    *((4, 3), (2, 1), (2, 1)),
)
PAGES = (4, -1, 0, 5, 2, 2, -5, 2**31 - 1, 2**29, 2**28, -(2**28), 3)
WRITES = {  # the places, what each place of the pool is, and what a record tells of the write
    "write_slots": ([SLOTS], (BLOCKS * BLOCK,), "12 rows [i, :, :] of 20x2x8"),
    "write_blocks": ([*zip(*PAIRS, strict=True)], (BLOCKS, BLOCK), "12 rows [i, j, :, :] of 5x4x2x8"),
    "write_pages": ([PAGES], (BLOCKS,), "12 rows [i, :, :, :] of 5x4x2x8"),
    "write_page_slots": ([PAGES], (BLOCKS,), "12 windows [i:i+4, :, :] of 20x2x8"),
}


def written(name, **options):
    """The pool that NumPy wrote, and what the lowered export makes of the same arguments."""
    specs = paged.EXPORTS[name]["args"](FEW)
    generator = np.random.default_rng(0)
    expected = judge.poison(generator, specs[0].shape, np.float32)
    pool, rows = expected.copy(), generator.normal(size=specs[-1].shape).astype(np.float32)
    places, extents, _ = WRITES[name]
    by_place = expected.reshape(*extents, -1)
    for place, row in zip(zip(*places, strict=True), rows.reshape(12, -1), strict=True):
        if all(0 <= number < extent for number, extent in zip(place, extents, strict=True)):
            by_place[place] = row
    indices = [np.array(place, np.int32).reshape(spec.shape) for place, spec in zip(places, specs[1:-1], strict=True)]
    result = lowered(name, FEW, **options)
    [found] = Executable(result.text, "exact").run([pool, *indices, rows])
    return np.array_equal(judge.bits_of(expected), judge.bits_of(found)), result.records[0]


FORMS = ("unrolled", "while", "last_writer", "sorted_last_writer")
QUICK = {("write_blocks", form, "xla") for form in FORMS} | {(name, "last_writer", "xla") for name in WRITES}
REST = {*product(WRITES, FORMS, ("xla", "spec"))} - QUICK


@pytest.mark.parametrize(("name", "form", "oob"), [*sorted(QUICK), *swept(*sorted(REST))])
def test_rows_in_bounds_are_written_and_no_others(name, form, oob):
    """Block and offset are each checked, negative and far slots dropped; rows are dropped whole."""
    is_right, record = written(name, oob=oob, prefer=(form, "few_windows=64"))
    assert is_right
    assert record.rule == form
    assert written_part(record) == WRITES[name][2]
    assert record.why["drops"] == "windows"


def test_components_that_are_not_checked_each_are_found(monkeypatch):
    """Linearised without a check, offset 4 of block 0 is offset 0 of block 1: the comparison finds it."""
    flat = FlatScatter.row_numbers
    unchecked = lambda self, build: flat(replace(self, by_window=(), by_row=()), build)  # noqa: E731
    monkeypatch.setattr(FlatScatter, "row_numbers", unchecked)
    assert not written("write_blocks", prefer=("last_writer",))[0]


FOUR = paged.Config(batch=4, max_blocks=4, total_pool_blocks=19, chunk=4)
ON_IREE = pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")


@cache
def on_iree(name, target):
    """An export, converted and compiled by IREE: a function of its arguments."""
    result = lowered(name, FOUR, target=target)
    assert result.scatters_left == 0
    assert target != "linalg" or result.linalg.is_complete
    run = compile_module(result.text)
    return lambda *args: run(args)


@pytest.mark.sweep
@ON_IREE
@pytest.mark.parametrize(("name", "target"), [*product(("decode", "prefill"), ("iree", "linalg"))])
def test_a_step_on_iree_is_dense_attention(name, target):
    """Pages of others hold NaN of many bits: they come out as they were, and nothing of them reaches a result."""
    kind, starts = {"decode": ("some_pairs", None), "prefill": ("shuffled", (0, 0, 2, 12))}[name]
    judge.assert_right(on_iree(name, target), FOUR, kind, (0, 1, 5, 16), starts)


@ON_IREE
@pytest.mark.parametrize("target", ["iree", *swept(["linalg"])])
def test_slots_outside_the_pool_write_nothing_on_iree(target):
    """Slots that are moved into the pool, as a clamp does, write a row that is another's: the comparison finds it."""
    rows = FOUR.total_pool_blocks * FOUR.block_size
    _, args = judge.inputs(FOUR, "some_pairs", (0, 1, 5, 16))
    for slots in ((-1, -1, -1, -1), (rows, -1, rows + 1, 2**31 - 1), (-(2**31), 0, -1, -2)):
        args[5][:] = slots
        _, *pools = on_iree("decode", target)(*args)
        assert judge.are_kept(args, pools)
    args[5][:] = -1
    _, *pools = on_iree("decode", target)(*args[:5], np.maximum(args[5], 0), *args[6:])
    assert not judge.are_kept(args, pools)
