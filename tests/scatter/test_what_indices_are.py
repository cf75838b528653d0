"""Index computations that were once taken for something else: each is lowered and compared with XLA, hostile inputs."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify.run import Executable

NARROW = """%io = stablehlo.iota dim = 0 : tensor<64xi8>
%base = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<i8>) -> tensor<64xi8>
%s = stablehlo.add %base, %io : tensor<64xi8>
%h8 = stablehlo.constant dense<100> : tensor<64xi8>
%h32 = stablehlo.constant dense<100> : tensor<64xi32>
"""
EARLY = "%s2 = stablehlo.add %s, %h8 : tensor<64xi8>\n%a = stablehlo.convert %s2 : (tensor<64xi8>) -> tensor<64xi32>\n"
LATE = "%d0 = stablehlo.convert %s : (tensor<64xi8>) -> tensor<64xi32>\n%d = stablehlo.add %d0, %h32 : tensor<64xi32>\n"


def put(dims, columns, count, kind="i32"):
    """A scatter of so many elements at columns of a type, as the end of a function."""
    parts = "".join(
        f"%c{n} = stablehlo.reshape {name} : (tensor<{count}x{kind}>) -> tensor<{count}x1x{kind}>\n"
        for n, name in enumerate(columns)
    )
    k, operand = len(columns), "x".join(map(str, dims))
    names, types = ", ".join(f"%c{n}" for n in range(k)), ", ".join([f"tensor<{count}x1x{kind}>"] * k)
    return f"""{parts}%index = stablehlo.concatenate {names}, dim = 1 : ({types}) -> tensor<{count}x{k}x{kind}>
%r = "stablehlo.scatter"(%x, %index, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = {list(range(k))}, scatter_dims_to_operand_dims = {list(range(k))}, index_vector_dim = 1>}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  stablehlo.return %q : tensor<f32>
}}) : (tensor<{operand}xf32>, tensor<{count}x{k}x{kind}>, tensor<{count}xf32>) -> tensor<{operand}xf32>
return %r : tensor<{operand}xf32>
}}
"""


def main(dims, count, arguments):
    """The begin of a function of an operand, updates and these arguments."""
    operand = f"tensor<{'x'.join(map(str, dims))}xf32>"
    return f"func.func public @main(%x: {operand}, %u: tensor<{count}xf32>, {arguments}) -> {operand} {{\n"


SELECT = (
    main([64], 64, "%b: tensor<i8>, %c: tensor<i1>") + NARROW + EARLY + LATE
    + "%i = stablehlo.select %c, %a, %d : tensor<i1>, tensor<64xi32>\n" + put([64], ["%i"], 64)
)  # fmt: skip
CASE = (
    main([64], 64, "%b: tensor<i8>, %k: tensor<i1>") + NARROW
    + "%c = stablehlo.convert %k : (tensor<i1>) -> tensor<i32>\n"
    + f'%i = "stablehlo.case"(%c) ({{\n{EARLY}stablehlo.return %a : tensor<64xi32>\n}}, {{\n'
    + f"{LATE}stablehlo.return %d : tensor<64xi32>\n}}) : (tensor<i32>) -> tensor<64xi32>\n" + put([64], ["%i"], 64)
)  # fmt: skip
CALLS = (
    main([64], 64, "%b: tensor<i8>, %c: tensor<i1>") + NARROW + EARLY + LATE
    + "%o = func.call @put(%x, %u, %a) : (tensor<64xf32>, tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>\n"
    + "%e = func.call @put(%x, %u, %d) : (tensor<64xf32>, tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>\n"
    + "return %e : tensor<64xf32>\n}\n"
    + main([64], 64, "%i: tensor<64xi32>").replace("public @main", "private @put") + put([64], ["%i"], 64)
)  # fmt: skip
COORDINATE = (
    main([64, 8], 64, "%j: tensor<64xi32>")
    + "%io = stablehlo.iota dim = 0 : tensor<64xi8>\n%h8 = stablehlo.constant dense<100> : tensor<64xi8>\n"
    + "%h32 = stablehlo.constant dense<-100> : tensor<64xi32>\n%s = stablehlo.add %io, %h8 : tensor<64xi8>\n"
    + "%w = stablehlo.convert %s : (tensor<64xi8>) -> tensor<64xi32>\n%i = stablehlo.add %w, %h32 : tensor<64xi32>\n"
    + put([64, 8], ["%i", "%j"], 64)
)  # fmt: skip


def through(wide, narrow):
    """x - (x through a narrower type) + iota, the row of each column."""
    vector = f"tensor<16x{wide}>"
    return (
        main([16, 8], 16, f"%b: tensor<{wide}>, %j: {vector}")
        + f"%t = stablehlo.convert %b : (tensor<{wide}>) -> tensor<{narrow}>\n"
        + f"%w = stablehlo.convert %t : (tensor<{narrow}>) -> tensor<{wide}>\n"
        + f"%df = stablehlo.subtract %b, %w : tensor<{wide}>\n%io = stablehlo.iota dim = 0 : {vector}\n"
        + f"%bb = stablehlo.broadcast_in_dim %df, dims = [] : (tensor<{wide}>) -> {vector}\n"
        + f"%i = stablehlo.add %bb, %io : {vector}\n" + put([16, 8], ["%i", "%j"], 16, wide)
    )  # fmt: skip


NORMALISED = (
    main([1000], 64, "%b: tensor<i32>")
    + "%io = stablehlo.iota dim = 0 : tensor<64xi32>\n%z = stablehlo.constant dense<0> : tensor<64xi32>\n"
    + "%base = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<i32>) -> tensor<64xi32>\n"
    + "%s = stablehlo.add %base, %io : tensor<64xi32>\n%D = stablehlo.constant dense<1000> : tensor<64xi32>\n"
    + "%lt = stablehlo.compare LT, %s, %z : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>\n"
    + "%up = stablehlo.add %s, %D : tensor<64xi32>\n"
    + "%n = stablehlo.select %lt, %up, %s : tensor<64xi1>, tensor<64xi32>\n"
    + "%t = stablehlo.convert %n : (tensor<64xi32>) -> tensor<64xi8>\n"
    + "%i = stablehlo.convert %t : (tensor<64xi8>) -> tensor<64xi32>\n" + put([1000], ["%i"], 64)
)  # fmt: skip


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


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "text",
    [SELECT, CASE, CALLS, COORDINATE, through("i32", "i8"), through("i32", "ui16"), through("i64", "i32"), NORMALISED],
    ids=["select", "case", "calls", "coordinate", "i8 and back", "ui16 and back", "i32 and back", "normalised"],
)
def test_trap_47_what_is_equal_only_modulo_a_power_of_two_is_another_number(text):
    """A sum that wraps around in a narrower type, and a round trip through one, are not the numbers that they are
    congruent to: at selects, branches, call sites and coordinates the lowered module writes where XLA does."""
    assert differing(text, hl.lower(text).text, 2 * len(ENDS)) == []


def two_columns(run_first, kind, combine):
    """Rows that are sorted and may repeat, and a run of columns: which dim of the positions comes first."""
    shape, rows, columns = ("8x24", 1, 0) if run_first else ("24x8", 0, 1)
    return f"""func.func public @main(%x: tensor<64x32x{kind}>, %u: tensor<{shape}x{kind}>, %a: tensor<24xi32>,
    %b: tensor<i32>) -> tensor<64x32x{kind}> {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %last = stablehlo.constant dense<63> : tensor<i32>
  %left = stablehlo.constant dense<24> : tensor<i32>
  %inside = stablehlo.clamp %z, %a, %last : (tensor<i32>, tensor<24xi32>, tensor<i32>) -> tensor<24xi32>
  %rows = "stablehlo.sort"(%inside) <{{dimension = 0 : i64}}> ({{
  ^bb0(%l: tensor<i32>, %r: tensor<i32>):
    %lt = stablehlo.compare LT, %l, %r : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }}) : (tensor<24xi32>) -> tensor<24xi32>
  %start = stablehlo.clamp %z, %b, %left : tensor<i32>
  %base = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<i32>) -> tensor<8xi32>
  %io = stablehlo.iota dim = 0 : tensor<8xi32>
  %run = stablehlo.add %base, %io : tensor<8xi32>
  %i = stablehlo.broadcast_in_dim %rows, dims = [{rows}] : (tensor<24xi32>) -> tensor<{shape}x1xi32>
  %j = stablehlo.broadcast_in_dim %run, dims = [{columns}] : (tensor<8xi32>) -> tensor<{shape}x1xi32>
  %ij = stablehlo.concatenate %i, %j, dim = 2 : (tensor<{shape}x1xi32>, tensor<{shape}x1xi32>) -> tensor<{shape}x2xi32>
  %r = "stablehlo.scatter"(%x, %ij, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}}> ({{
  ^bb0(%p: tensor<{kind}>, %q: tensor<{kind}>):
    {combine}stablehlo.return {"%w" if combine else "%q"} : tensor<{kind}>
  }}) : (tensor<64x32x{kind}>, tensor<{shape}x2xi32>, tensor<{shape}x{kind}>) -> tensor<64x32x{kind}>
  return %r : tensor<64x32x{kind}>
}}
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("run_first", [True, False], ids=["run first", "rows first"])
@pytest.mark.parametrize(
    ("rule", "kind", "combine"),
    [
        ("sorted_last_writer", "f32", ""),
        ("rounds", "f32", "%w = stablehlo.subtract %p, %q : tensor<f32>\n    "),
        ("sorted_segments", "i32", "%w = stablehlo.add %p, %q : tensor<i32>\n    "),
    ],
)
def test_trap_48_rows_that_repeat_under_a_run_are_not_sorted(rule, kind, combine, run_first):
    """The numbers of the rows enumerate the run as well, so they go down where a row repeats or the run stands first:
    no sort is left out, and the forms that go by sorted rows write what XLA writes."""
    text = two_columns(run_first, kind, combine)
    lowered = hl.lower(text, prefer=[rule])
    assert [rule] == [record.rule for record in lowered.records]
    assert not lowered.records[0].claims.is_sorted
    assert differing(text, lowered.text, 6) == []
    assert lowered.text.count("stablehlo.sort") == 2
