"""Index computations that were once taken for something else: each is lowered and compared with XLA, hostile inputs."""

import numpy as np
import pytest
from placed import placed
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.run import Executable

NARROW = "%io = iota dim = 0 : 64xi8; %base = broadcast_in_dim %b, dims = [] -> 64xi8; %s = add %base, %io\n"
EARLY = "%s2 = add %s, 100; %a = convert %s2 -> 64xi32\n"
LATE = "%d0 = convert %s -> 64xi32; %d = add %d0, 100\n"
CALL = "call @put(%x, %u, {}) -> 64xf32"


def put(arguments, lines, dims=(64,), count=64, index="i32"):
    """A module that writes so many elements at columns %i and %j."""
    columns = ["%i", "%j"][: len(dims)]
    return placed(lines, columns, range(len(dims)), (count,), dims, index=index, arguments=arguments)


def through(wide, narrow):
    """x - (x through a narrower type) + iota, the row of each column."""
    lines = f"""%t = convert %b -> {narrow}; %w = convert %t -> {wide}; %df = subtract %b, %w
        %io = iota dim = 0 : 16x{wide}; %bb = broadcast_in_dim %df, dims = [] -> 16x{wide}; %i = add %bb, %io"""
    return put(f"%b: {wide}, %j: 16x{wide}", lines, (16, 8), 16, wide)


CASES = {
    "select": put("%b: i8, %c: i1", f"{NARROW}{EARLY}{LATE}%i = select %c, %a, %d"),
    "case": put(
        "%b: i8, %k: i1",
        f"{NARROW}%c = convert %k -> i32; %i = case(%c) {{ {EARLY}return %a }} {{ {LATE}return %d }}\n",
    ),
    "calls": module(
        "%x: 64xf32, %u: 64xf32, %b: i8, %c: i1",
        f"{NARROW}{EARLY}{LATE}%o = {CALL.format('%a')}; %e = {CALL.format('%d')}; return %e",
    )
    + put("%i: 64xi32", "").replace("public @main", "private @put"),
    "coordinate": put(
        "%j: 64xi32",
        "%io = iota dim = 0 : 64xi8; %s = add %io, 100; %w = convert %s -> 64xi32; %i = add %w, -100",
        (64, 8),
    ),
    "i8 and back": through("i32", "i8"),
    "ui16 and back": through("i32", "ui16"),
    "i32 and back": through("i64", "i32"),
    "normalised": put(
        "%b: i32",
        """%io = iota dim = 0 : 64xi32; %base = broadcast_in_dim %b, dims = [] -> 64xi32; %s = add %base, %io
        %lt = compare LT, %s, 0; %up = add %s, 1000; %n = select %lt, %up, %s
        %t = convert %n -> 64xi8; %i = convert %t -> 64xi32""",
        (1000,),
    ),
}
ENDS = (0, 5, 127, 100, -100, 27, -128, 300, -1, 255, 1 << 15, (1 << 31) + 3, (1 << 32) + 2, 128, 1 << 40, -(1 << 32))
"""Scalars around the ends of narrow types."""


def hostile(shape, dtype, seed):
    """An argument: the scalars are `ENDS` in turn, vectors hold small numbers and some of those."""
    rng = np.random.default_rng(seed)
    if dtype == np.float32:
        return rng.standard_normal(shape).astype(dtype)
    if dtype == np.bool_:
        return np.asarray(seed >= len(ENDS))
    if shape == ():
        return np.asarray(ENDS[seed % len(ENDS)]).astype(dtype)
    return np.where(rng.random(shape) < 0.8, rng.integers(0, 9, shape), rng.choice(ENDS, shape)).astype(dtype)


def differing(text, lowered, seeds):
    """The seeds of whose inputs the lowered module gives another result than XLA."""
    before, after = Executable(text, "quick"), Executable(lowered, "quick")
    wrong = []
    for seed in range(seeds):
        given = [hostile(a.shape, a.dtype, seed) for a in before.arguments]
        pairs = zip(before.run(given), after.run(given), strict=True)
        wrong += [seed] * (not all(np.array_equal(x, y, equal_nan=True) for x, y in pairs))
    return wrong


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_trap_47_what_is_equal_only_modulo_a_power_of_two_is_another_number(text):
    """A sum that wraps around in a narrower type, and a round trip through one, are not the numbers that they are
    congruent to: at selects, branches, call sites and coordinates the lowered module writes where XLA does."""
    assert differing(text, hl.lower(text).text, 2 * len(ENDS)) == []


def two_columns(run_first, kind, combiner):
    """Rows that are sorted and may repeat, and a run of columns: which dim of the positions comes first."""
    shape, row, column = ((8, 24), 1, 0) if run_first else ((24, 8), 0, 1)
    sizes = "x".join(map(str, shape))
    lines = f"""%inside = clamp 0, %a, 63; %rows = sort(%inside) <dimension = 0> {{LT}}
        %start = clamp 0, %b, 24; %base = broadcast_in_dim %start, dims = [] -> 8xi32
        %io = iota dim = 0 : 8xi32; %run = add %base, %io
        %i = broadcast_in_dim %rows, dims = [{row}] -> {sizes}xi32
        %j = broadcast_in_dim %run, dims = [{column}] -> {sizes}xi32"""
    options = {"combiner": combiner, "element": kind, "arguments": "%a: 24xi32, %b: i32"}
    return placed(lines, ["%i", "%j"], (0, 1), shape, (64, 32), **options)


@pytest.mark.few(2)
@pytest.mark.parametrize("run_first", [True, False], ids=["run first", "rows first"])
@pytest.mark.parametrize(
    ("rule", "kind", "combiner"),
    [("sorted_last_writer", "f32", "assign"), ("rounds", "f32", "subtract"), ("sorted_segments", "i32", "add")],
)
def test_trap_48_rows_that_repeat_under_a_run_are_not_sorted(rule, kind, combiner, run_first):
    """The numbers of the rows enumerate the run as well, so they go down where a row repeats or the run stands first:
    no sort is left out, and the forms that go by sorted rows write what XLA writes."""
    text = two_columns(run_first, kind, combiner)
    lowered = hl.lower(text, prefer=[rule])
    assert [rule] == [record.rule for record in lowered.records]
    assert not lowered.records[0].claims.is_sorted
    assert differing(text, lowered.text, 6) == []
    assert lowered.text.count("stablehlo.sort") == 2
