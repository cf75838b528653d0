"""Traps of the module around a scatter, and of judges: where XLA, its rounding or the interpreter is wrong."""

import jax
import numpy as np
import pytest
from one_scatter import POLICIES, Case, f32, i32, numbers, ops_of_size, points, some, tile, variadic
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.element_types import element_type_of
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond
from hlo_lower.verify.run import Executable


def check_in_place(lowered, size):
    """Check that a donated buffer of so many floats is the result, and nothing of its size is allocated."""
    arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in lowered.exported.in_avals]
    memory = jax.jit(lowered.exported.call, donate_argnums=0).lower(*arguments).compile().memory_analysis()
    assert memory.alias_size_in_bytes == size * 4
    assert memory.temp_size_in_bytes < size * 4 // 16


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_31_donated_cache_stays_in_place(combiner, oob):
    """A write into a donated buffer keeps its attribute, aliases the result and allocates nothing of its size."""
    lines = f"%r = scatter(%cache, %pos, %row) <window=[0, 1], inserted=[1], to=[1], ivd=0> {{{combiner}}}"
    cache = "%cache: 4x4096x16xf32 {tf.aliasing_output = 0 : i32}"
    lowered = hl.lower(module(f"{cache}, %pos: 1xi32, %row: 4x16xf32", lines), oob=oob)
    assert "tf.aliasing_output = 0 : i32" in lowered.text
    check_in_place(lowered, 4 * 4096 * 16)


@pytest.mark.parametrize("indices", [[[5, 5], [400, 7]], [[5, 510], [5, 511], [6, 0], [6, 1]]])
def test_trap_31_constant_places_keep_the_buffer_in_place(indices):
    """Elements at constant places, runs through two dims as well, are written into a donated buffer where it is."""
    n, shape = len(indices), (512, 512)
    lowered = hl.lower(Case(shape, (n, 2), (n,), numbers(inserted=[0, 1], to=[0, 1])).text(indices))
    assert lowered.records[0].rule == "constant_slices"
    check_in_place(lowered, 512 * 512)
    expected = np.zeros(shape, np.float32)
    for (row, column), value in zip(indices, range(1, n + 1), strict=True):
        expected[row, column] = value
    [found] = Executable(lowered.text, "exact").run([np.zeros(shape, np.float32), f32(range(1, n + 1))])
    assert (found == expected).all()


WHILE = """%zero = constant 0 : i32
    %r:2 = while(%k = %zero, %c = %cache) cond {
      %p = compare LT, %k, 4; return %p
    } do {
      %row = dynamic_slice %rows, %k, %zero, sizes = [1, 2]; %at = add %base, %k; %i = reshape %at -> 1xi32
      %w = scatter(%c, %i, %row) <window=[0, 1], to=[0]> {assign}; %next = add %k, 1; return %next, %w
    }
    return %r#1"""


@POLICIES
def test_trap_32_scatter_in_a_while(oob):
    """A scatter into a loop-carried cache writes the carried value, and drops what the loop runs past."""
    text = module("%cache: 6x2xf32, %rows: 4x2xf32, %base: i32", WHILE)
    executable = Executable(hl.lower(text, oob=oob).text, "exact")
    rows = f32(np.arange(8).reshape(4, 2) + 1)
    for base in (-6, -2, 0, 2, 4, 7):
        expected = np.zeros((6, 2), np.float32)
        for k in range(4):
            if 0 <= base + k < 6:
                expected[base + k] = rows[k]
        [result] = executable.run([np.zeros((6, 2), np.float32), rows, i32(base)])
        assert result.tolist() == expected.tolist()


def test_trap_32_more_iterations_than_32_bits_count():
    """A loop over more than 2^31 windows counts in i64, and nothing is computed per window at conversion time."""
    lowered = hl.lower(points(3_000_000_000, 3).text(), prefer=("while",))
    assert lowered.records[0].rule == "while"
    [line] = [line for line in lowered.text.splitlines() if "dense<3000000000>" in line]
    assert line.endswith("tensor<i64>")


@pytest.mark.parametrize("n", [2, 40])
def test_trap_33_few_even_rows_of_a_large_operand(n):
    """Few constant rows at an even distance are written one by one: no mask of the operand's size is made."""
    lowered = hl.lower(points(n, 10_000_000).text(np.arange(n) * 100_003 + 7))
    assert set(ops_of_size(lowered.text, 10_000_000)) <= {"stablehlo.dynamic_update_slice", "stablehlo.while"}


@pytest.mark.parametrize(("indices", "entries"), [("even", 0), ("two runs", 0), ("any", 20_000), ("sparse", 0)])
def test_trap_33_large_constant_tables(indices, entries):
    """20,000 constant indices are folded where they go evenly or in runs; others become one table of their size."""
    n, size = (50, 10_000_000) if indices == "sparse" else (20_000, 50_000)
    at = {
        "even": np.arange(n) * 2 + 5,
        "two runs": np.concatenate([np.arange(n // 2), 30_000 + np.arange(n // 2)]),
    }.get(indices, np.random.default_rng(0).permutation(size)[:n])
    text = points(n, size).text(at)
    lowered = hl.lower(text)
    assert "stablehlo.scatter" not in lowered.text
    assert len(lowered.text) < (4 * len(text) if entries else max(3000, 4 * len(text) // 10))
    if indices != "sparse":
        operand, updates = np.zeros(size, np.float32), f32(np.arange(n) + 1)
        expected = operand.copy()
        expected[at] = updates
        [found] = Executable(lowered.text, "exact").run([operand, updates])
        assert (found == expected).all()


WRITE = "scatter(%op, %i, %up) <window=[0], to=[0]> {{{}}}"
GIVEN = "%op: 5xf32, %i: 1xi32, %up: 2xf32"
NESTED = f"""%r = case(%which) {{ %a = call @write(%op, %i, %up) -> 5xf32; return %a
    }} {{
      %b = if(%p) {{ %s = {WRITE.format("add")}; return %s }} {{ return %op }}
      return %b
    }}
    return %r, %op"""


def test_trap_35_nested_regions_and_uses():
    """Scatters under case, if and call are lowered, and another use of the operand sees it as it was."""
    write = function("private @write", GIVEN, f"%r = {WRITE.format('assign')}")
    lowered = hl.lower(module(f"{GIVEN}, %which: i32, %p: i1", NESTED) + write)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (2, False)
    executable = Executable(lowered.text, "exact")
    operand, updates = f32([1, 2, 3, 4, 5]), f32([10, 20])
    for which, index, expected in (
        (0, 1, [1, 10, 20, 4, 5]),
        (0, 4, [1, 2, 3, 4, 5]),
        (1, 1, [1, 12, 23, 4, 5]),
        (1, -1, [1, 2, 3, 4, 5]),
    ):
        result, kept = executable.run([operand, i32([index]), updates, i32(which), np.asarray(True)])
        assert (result.tolist(), kept.tolist()) == (expected, operand.tolist())


def test_trap_42_locations():
    """A module that came with locations leaves with them, the new operations too; one without stays without."""
    text = tile(2, 5).text()
    assert "loc(" not in hl.lower(text).text
    lowered = hl.lower(text.replace("-> (tensor<5xf32>)\nreturn", '-> (tensor<5xf32>) loc("llama.py":88:3)\nreturn'))
    assert ('"llama.py":88:3' in lowered.text, lowered.records[0].location) == (True, "llama.py:88")


def _update(x, i, a, b):
    """A sum of products, which XLA may contract on one side and not on the other."""
    return x.at[i].add(a * b + x.mean())


def test_trap_43_rounding_is_compared_at_level_0():
    """A multiply and an add round alike bit for bit where nothing is contracted, else within a few units."""
    rng = np.random.default_rng(0)
    arguments = [some(rng, (16, 64), "f32"), i32(rng.permutation(16)[:8])] + [some(rng, (8, 64), "f32")] * 2
    before = jax.jit(_update).lower(*arguments).as_text()
    after = hl.lower(before).text
    exact, default = (
        [Executable(text, level).run(arguments) for text in (before, after)] for level in ("exact", "default")
    )
    assert first_difference(*exact) is None
    bounds = [4 * element_type_of(e.dtype).epsilon * np.full(e.shape, np.abs(e).max()) for e in exact[0]]
    assert first_difference_beyond(*default, bounds) is None
    assert first_difference_beyond(exact[0], default[1], bounds) is None
    assert hl.verify(before, after, level="full").ok


ADD = {"combiner": "add"}
KNOWN_ERRORS = {
    "an empty index vector": (Case((3,), (4, 0), (4,), numbers(inserted=[0]), "i32", **ADD).text(), "xla"),
    "i8 indices into more than 127": (tile(3, 300, index="i8", **ADD).text(), "xla"),
    "a region that promotes": (points(2, 4, element="bf16", region_element="f32", **ADD).text(), "xla"),
    "unsigned indices": (points(2, 4, index="ui32", **ADD).text(), "interpreter"),
    "mixed float types": (variadic("f32", "bf16", "return %ua, %ub"), "xla"),
}


@pytest.mark.few(3)
@pytest.mark.usefixtures("judged_by_runs")
@POLICIES
@pytest.mark.parametrize("name", KNOWN_ERRORS)
def test_trap_46_known_errors_of_the_judges(name, oob):
    """Where XLA or the interpreter is known to err it is no judge, the verdict says so, and the reference decides."""
    text, judge = KNOWN_ERRORS[name]
    verdict = hl.verify(text, hl.lower(text, oob=oob), level="regions")
    [region] = verdict.regions
    assert (region.status, region.scatters) == ("equal", (1,))
    assert "reference" in region.judges
    if judge == "xla":  # the interpreter reads no scatter of a first version where somebody else judges it
        assert [told for told in region.excluded if told.startswith("XLA:")]
        assert "XLA" not in region.judges

    assert hl.verify(text, hl.lower(text), level="regions").ok
