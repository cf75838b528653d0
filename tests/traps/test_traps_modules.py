"""Traps of the module around a scatter: donation, loops, nested regions, locations, large constants."""

import jax
import numpy as np
import pytest
from one_scatter import POLICIES, Case, f32, i32, numbers, ops_of_size, points, region, tile

import hlo_lower as hl
from hlo_lower.verify.run import Executable

CACHE = """
module {{
  func.func @main(%cache: tensor<4x4096x16xf32> {{tf.aliasing_output = 0 : i32}}, %pos: tensor<1xi32>,
                  %row: tensor<4x16xf32>) -> tensor<4x4096x16xf32> {{
    %r = "stablehlo.scatter"(%cache, %pos, %row) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1],
      index_vector_dim = 0>}}> ({{
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        {body}
    }}) : (tensor<4x4096x16xf32>, tensor<1xi32>, tensor<4x16xf32>) -> tensor<4x4096x16xf32>
    return %r : tensor<4x4096x16xf32>
  }}
}}"""


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_31_donated_cache_stays_in_place(combiner, oob):
    """A write into a donated buffer keeps its attribute, aliases the result and allocates nothing of its size."""
    lowered = hl.lower(CACHE.format(body=region(combiner, "f32")), oob=oob)
    assert "tf.aliasing_output = 0 : i32" in lowered.text
    arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in lowered.exported.in_avals]
    compiled = jax.jit(lowered.exported.call, donate_argnums=0).lower(*arguments).compile()
    memory, buffer = compiled.memory_analysis(), 4 * 4096 * 16 * 4
    assert memory.alias_size_in_bytes == buffer
    assert memory.temp_size_in_bytes < buffer // 16


@pytest.mark.parametrize("indices", [[[5, 5], [400, 7]], [[5, 510], [5, 511], [6, 0], [6, 1]]])
def test_trap_31_constant_places_keep_the_buffer_in_place(indices):
    """Elements at constant places, runs through two dims as well, are written into a donated buffer where it is."""
    n, shape = len(indices), (512, 512)
    case = Case(shape, (n, 2), (n,), numbers(inserted=[0, 1], to_operand=[0, 1]))
    lowered = hl.lower(case.with_indices(indices))
    assert lowered.records[0].rule == "constant_slices"
    compiled = jax.jit(lowered.exported.call, donate_argnums=0).lower(*lowered.exported.in_avals).compile()
    memory = compiled.memory_analysis()
    assert memory.alias_size_in_bytes == 512 * 512 * 4
    assert memory.temp_size_in_bytes < 512 * 512 * 4 // 16
    expected = np.zeros(shape, np.float32)
    for (row, column), value in zip(indices, range(1, n + 1), strict=True):
        expected[row, column] = value
    [found] = Executable(lowered.text, "exact").run([np.zeros(shape, np.float32), f32(range(1, n + 1))])
    assert (found == expected).all()


WHILE = """
module {
  func.func @main(%cache: tensor<6x2xf32>, %rows: tensor<4x2xf32>, %base: tensor<i32>) -> tensor<6x2xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%k = %zero, %c = %cache) : tensor<i32>, tensor<6x2xf32>
      cond {
        %n = stablehlo.constant dense<4> : tensor<i32>
        %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %row = stablehlo.dynamic_slice %rows, %k, %zero, sizes = [1, 2] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>)
          -> tensor<1x2xf32>
        %at = stablehlo.add %base, %k : tensor<i32>
        %i = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>
        %w = "stablehlo.scatter"(%c, %i, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
          ^bb0(%cur: tensor<f32>, %u: tensor<f32>):
            stablehlo.return %u : tensor<f32>
        }) : (tensor<6x2xf32>, tensor<1xi32>, tensor<1x2xf32>) -> tensor<6x2xf32>
        %next = stablehlo.add %k, %one : tensor<i32>
        stablehlo.return %next, %w : tensor<i32>, tensor<6x2xf32>
      }
    return %r#1 : tensor<6x2xf32>
  }
}"""


@POLICIES
def test_trap_32_scatter_in_a_while(oob):
    """A scatter into a loop-carried cache writes the carried value, and drops what the loop runs past."""
    executable = Executable(hl.lower(WHILE, oob=oob).text, "exact")
    rows_ = f32(np.arange(8).reshape(4, 2) + 1)
    for base in (-6, -2, 0, 2, 4, 7):
        expected = np.zeros((6, 2), np.float32)
        for k in range(4):
            if 0 <= base + k < 6:
                expected[base + k] = rows_[k]
        [result] = executable.run([np.zeros((6, 2), np.float32), rows_, i32(base)])
        assert result.tolist() == expected.tolist()


def test_trap_32_more_iterations_than_32_bits_count():
    """A loop over more than 2^31 windows counts in i64, and nothing is computed per window at conversion time."""
    lowered = hl.lower(points(3_000_000_000, 3).text(), prefer=("while",))
    assert lowered.records[0].rule == "while"
    [line] = [line for line in lowered.text.splitlines() if "dense<3000000000>" in line]
    assert line.endswith("tensor<i64>")


@pytest.mark.parametrize("n", [2, 15, 40])
def test_trap_33_few_even_rows_of_a_large_operand(n):
    """Few constant rows at an even distance are written one by one: no mask of the operand's size is made."""
    at = np.arange(n) * 100_003 + 7
    lowered = hl.lower(points(n, 10_000_000).with_indices(at))
    assert set(ops_of_size(lowered.text, 10_000_000)) <= {"stablehlo.dynamic_update_slice", "stablehlo.while"}


@pytest.mark.parametrize(("indices", "entries"), [("even", 0), ("two runs", 0), ("any", 20_000), ("sparse", 0)])
def test_trap_33_large_constant_tables(indices, entries):
    """A list of 20,000 constant indices is folded where it goes evenly or in runs; another one becomes one table, no
    longer than a few times the list, whatever the operand's size."""
    n, size = (50, 10_000_000) if indices == "sparse" else (20_000, 50_000)
    at = {
        "even": np.arange(n) * 2 + 5,
        "two runs": np.concatenate([np.arange(n // 2), 30_000 + np.arange(n // 2)]),
    }.get(indices, np.random.default_rng(0).permutation(size)[:n])
    text = points(n, size).with_indices(at)
    lowered = hl.lower(text)
    assert "stablehlo.scatter" not in lowered.text
    assert len(lowered.text) < (4 * len(text) if entries else max(3000, 4 * len(text) // 10))
    if indices != "sparse":
        operand, updates = np.zeros(size, np.float32), f32(np.arange(n) + 1)
        expected = operand.copy()
        expected[at] = updates
        [found] = Executable(lowered.text, "exact").run([operand, updates])
        assert (found == expected).all()


NESTED = """
module {
  func.func @main(%op: tensor<5xf32>, %i: tensor<1xi32>, %up: tensor<2xf32>, %which: tensor<i32>, %p: tensor<i1>)
      -> (tensor<5xf32>, tensor<5xf32>) {
    %r = "stablehlo.case"(%which) ({
      %a = func.call @write(%op, %i, %up) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
      stablehlo.return %a : tensor<5xf32>
    }, {
      %b = "stablehlo.if"(%p) ({
        %s = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
          ^bb0(%c: tensor<f32>, %u: tensor<f32>):
            %n = stablehlo.add %c, %u : tensor<f32>
            stablehlo.return %n : tensor<f32>
        }) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
        stablehlo.return %s : tensor<5xf32>
      }, {
        stablehlo.return %op : tensor<5xf32>
      }) : (tensor<i1>) -> tensor<5xf32>
      stablehlo.return %b : tensor<5xf32>
    }) : (tensor<i32>) -> tensor<5xf32>
    return %r, %op : tensor<5xf32>, tensor<5xf32>
  }
  func.func private @write(%op: tensor<5xf32>, %i: tensor<1xi32>, %up: tensor<2xf32>) -> tensor<5xf32> {
    %s = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
    return %s : tensor<5xf32>
  }
}"""


def test_trap_35_nested_regions_and_uses():
    """Scatters under case, if and call are lowered, and another use of the operand sees it as it was."""
    lowered = hl.lower(NESTED)
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


OTHERS = """
module {
  func.func @main(%op: tensor<5xf32>, %i: tensor<1xi32>, %up: tensor<2xf32>)
      -> (tensor<5xf32>, tensor<5xf32>, tensor<1x5xf32>) {
    %held:2 = stablehlo.optimization_barrier %op, %up : tensor<5xf32>, tensor<2xf32>
    %a = stablehlo.composite "test.write" %held#0, %i, %held#1 {decomposition = @write}
      : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
    %b = func.call @write(%a, %i, %up) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
    %c = stablehlo.optimization_barrier %b : tensor<5xf32>
    %t = stablehlo.reshape %c : (tensor<5xf32>) -> tensor<5x1xf32>
    %u = stablehlo.transpose %t, dims = [1, 0] : (tensor<5x1xf32>) -> tensor<1x5xf32>
    %pair = stablehlo.tuple %a, %c : tuple<tensor<5xf32>, tensor<5xf32>>
    %first = stablehlo.get_tuple_element %pair[0] : (tuple<tensor<5xf32>, tensor<5xf32>>) -> tensor<5xf32>
    return %op, %first, %u : tensor<5xf32>, tensor<5xf32>, tensor<1x5xf32>
  }
  func.func private @write(%op: tensor<5xf32>, %i: tensor<1xi32>, %up: tensor<2xf32>) -> tensor<5xf32> {
    %s = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        %n = stablehlo.add %c, %u : tensor<f32>
        stablehlo.return %n : tensor<f32>
    }) : (tensor<5xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<5xf32>
    return %s : tensor<5xf32>
  }
}"""


@POLICIES
def test_trap_35_composites_barriers_and_tuples(oob):
    """A scatter in a composite's decomposition is lowered, between barriers, and where its result is in a tuple or is
    transposed; the operand is still what it was."""
    lowered = hl.lower(OTHERS, oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (1, False)
    assert 'stablehlo.composite "test.write"' in lowered.text
    executable = Executable(lowered.text, "exact")
    operand = f32([1, 2, 3, 4, 5])
    for start in (-2, -1, 0, 3, 4, 5):
        added = np.zeros(5, np.float32)
        for k, value in enumerate((10, 20)):
            if 0 <= start + k < 5 and (oob == "spec" or 0 <= start <= 3):
                added[start + k] = value
        found = executable.run([operand, i32([start]), f32([10, 20])])
        expected = operand, operand + added, (operand + 2 * added)[None]
        assert [v.tolist() for v in found] == [v.tolist() for v in expected]


@pytest.mark.parametrize("located", [True, False])
def test_trap_42_locations(located):
    """A module that came with locations leaves with them, the new operations too; one without stays without."""
    text = tile(2, 5).text()
    if located:
        text = text.replace("-> tensor<5xf32>\n    return", '-> tensor<5xf32> loc("llama.py":88:3)\n    return')
    lowered = hl.lower(text)
    assert ("loc(" in lowered.text) == located
    if located:
        assert ('"llama.py":88:3' in lowered.text, lowered.records[0].location) == (True, "llama.py:88")
