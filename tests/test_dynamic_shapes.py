"""Scatters of dynamic shape: lowered as they are, or after their sizes are bound; both verified."""

import re
from pathlib import Path

import numpy as np
import pytest
from dynamic_scatters import CASES, COMBINE, arguments, bound, module_of

import hlo_lower as hl
from hlo_lower.verify.judges.definitions import ScatterNumbers, scatter
from hlo_lower.verify.run import Executable

POLY = Path(__file__).parents[2] / "shared/corpus/modules/jax_poly"


COMBINERS = ["assign", "add"], ["mixed"]
GRID = [(name, oob, c) for name in CASES for oob in ("xla", "spec") for c in COMBINERS[len(name) % 2]]


@pytest.mark.few(9)
@pytest.mark.parametrize(("name", "oob", "combiner"), GRID)
def test_what_is_lowered_without_sizes_is_right_with_them(name, oob, combiner):
    """The lowered module holds no scatter; with any sizes it computes what the reference does."""
    operand, indices, updates, numbers, sizes = CASES[name]
    lowered = hl.lower(module_of(operand, indices, updates, numbers, combiner=combiner), oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    executable = Executable(bound(lowered.text, sizes), "exact")
    rng = np.random.default_rng(len(name))
    for _ in range(6):
        o, i, u = arguments(rng, sizes, np.int32, sizes[0])
        [expected] = scatter([o], i, [u], numbers, COMBINE[combiner], [np.dtype(np.int32)], oob=oob)
        assert np.array_equal(executable.run([o, i, u])[0], expected)


INDICES = {"i8": "int8", "ui8": "uint8", "ui32": "uint32", "i64": "int64", "ui64": "uint64"}


@pytest.mark.parametrize(("index", "dtype"), INDICES.items())
def test_index_types(index, dtype):
    """Bounds are built from sizes in a type that holds them, and no index changes its meaning (traps 6 and 7)."""
    numbers = CASES["rows"][3]
    shapes = [(200, 2), (5, 1), (5, 2)]
    lowered = hl.lower(module_of((-1, 2), (-1, 1), (-1, 2), numbers, index=index))
    executable = Executable(bound(lowered.text, shapes), "exact")
    top = int(np.iinfo(dtype).max)
    i = np.array([[0], [top], [min(top, 199)], [min(top, 200)], [top - 1]], dtype)
    o, u = np.zeros((200, 2), np.int32), np.arange(1, 11, dtype=np.int32).reshape(5, 2)
    [expected] = scatter([o], i, [u], numbers, COMBINE["assign"], [np.dtype(np.int32)], oob="xla")
    assert np.array_equal(executable.run([o, i, u])[0], expected)


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_trap_29_bounds_are_those_of_the_actual_size(oob):
    """One lowered module is right at each size: a row that exists in the longer operand is dropped in the shorter."""
    numbers = CASES["rows"][3]
    lowered = hl.lower(module_of((-1, 2), (1, 1), (1, 2), numbers), oob=oob)
    results = {}
    for length in (3, 6):
        executable = Executable(bound(lowered.text, [(length, 2), (1, 1), (1, 2)]), "exact")
        o, i, u = np.zeros((length, 2), np.int32), np.array([[4]], np.int32), np.ones((1, 2), np.int32)
        results[length] = executable.run([o, i, u])[0].sum()
    assert results == {3: 0, 6: 2}


def test_trap_29_a_bounded_dimension_keeps_its_padding():
    """The size of a bounded dynamic dim is read from the tensor, never taken from its bound, and the bound stays."""
    text = module_of((-1, 2), (1, 1), (1, 2), CASES["rows"][3])
    text = text.replace("tensor<?x2xi32>", "tensor<?x2xi32, #stablehlo.bounds<8, ?>>")
    lowered = hl.lower(text)
    assert "get_dimension_size" in lowered.text
    assert "-> tensor<?x2xi32, #stablehlo.bounds<8, ?>>" in lowered.text
    assert "dense<7>" not in lowered.text


def test_a_start_of_zero_needs_no_guard():
    """Whatever the sizes are, a window at 0 lies inside, since no window is larger than its operand."""
    text = module_of((-1, 4), (1,), (-1, 4), ScatterNumbers((0, 1), (), (), (), (0,), 0))
    at_zero = text.replace("%r =", "%z = stablehlo.constant dense<0> : tensor<1xi32>\n  %r =")
    guarded, free = hl.lower(text), hl.lower(at_zero.replace("(%o, %i,", "(%o, %z,"))
    assert [r.in_bounds for r in (*guarded.records, *free.records)] == ["unknown", "always"]
    assert ("stablehlo.select" in guarded.text, "stablehlo.select" in free.text) == (True, False)


def test_a_known_index_of_a_known_dim_needs_no_guard():
    """Where the index and the size of its dim are known, the start is proved, whatever else is dynamic."""
    text = module_of((-1, 5), (2, 1), (-1, 2), ScatterNumbers((0,), (1,), (), (), (1,), 1))
    for values, proved in (("[[0], [4]]", "always"), ("[[0], [5]]", "unknown")):
        constant = f"%z = stablehlo.constant dense<{values}> : tensor<2x1xi32>\n  %r ="
        lowered = hl.lower(text.replace("%r =", constant).replace("(%o, %i,", "(%o, %z,"))
        assert lowered.records[0].in_bounds == proved


def test_a_captured_value_is_carried_into_the_loop():
    """What a region takes from around it comes into the loop's body, broadcast to windows of run-time extent."""
    text = module_of((-1, -1), (-1, 1), (-1, -1), CASES["rows"][3], combiner="add")
    text = text.replace("%up: tensor<?x?xi32>)", "%up: tensor<?x?xi32>, %k: tensor<i32>)")
    lowered = hl.lower(text.replace("add %c, %u", "add %k, %u"))
    executable = Executable(bound(lowered.text, [(5, 4), (3, 1), (3, 4), ()]), "exact")
    o, i, u = np.zeros((5, 4), np.int32), np.array([[1], [9], [1]], np.int32), np.arange(12).reshape(3, 4)
    expected = o.copy()
    expected[1] = u[2] + 7
    assert np.array_equal(executable.run([o, i, u.astype(np.int32), np.asarray(7, np.int32)])[0], expected)


def test_variadic_and_promoting():
    """A variadic scatter with coupled results, and one whose region is wider than its operand."""
    text = """func.func public @main(%a: tensor<?xi32>, %b: tensor<?xf32>, %i: tensor<?x1xi32>, %x: tensor<?xi32>,
    %y: tensor<?xf32>) -> (tensor<?xi64>, tensor<?xf32>) {
  %r:2 = "stablehlo.scatter"(%a, %b, %i, %x, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<i64>, %d: tensor<f32>, %u: tensor<i64>, %v: tensor<f32>):
    %p = stablehlo.compare LT, %d, %v : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.select %p, %u, %c : tensor<i1>, tensor<i64>
    %n = stablehlo.maximum %d, %v : tensor<f32>
    stablehlo.return %m, %n : tensor<i64>, tensor<f32>
  }) : (tensor<?xi32>, tensor<?xf32>, tensor<?x1xi32>, tensor<?xi32>, tensor<?xf32>) -> (tensor<?xi64>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<?xi64>, tensor<?xf32>
}
"""
    executable = Executable(bound(hl.lower(text).text, [(4,), (4,), (6, 1), (6,), (6,)]), "exact")
    a, b = np.zeros(4, np.int32), np.zeros(4, np.float32)
    i = np.array([[0], [0], [3], [4], [0], [-1]], np.int32)
    x, y = np.arange(1, 7, dtype=np.int32), np.array([3, 5, -1, 9, 4, 9], np.float32)
    found = executable.run([a, b, i, x, y])
    assert (found[0].tolist(), found[1].tolist()) == ([2, 0, 0, 0], [5, 0, 0, 0])
    assert found[0].dtype == np.int64


def test_a_wrong_guard_is_found():
    """Both levels say at which sizes they compared, and a guard that lets a start above the bound pass is caught."""
    text = module_of((-1, 4), (-1, 1), (-1, 4), CASES["rows"][3])
    lowered = hl.lower(text).text
    verdict = hl.verify(text, lowered)
    assert verdict.ok
    assert (verdict.module.status, "arg0.0=" in verdict.module.how) == ("equal", True)
    other = re.sub(r"compare +EQ", "compare GE", lowered)  # jax 0.9 prints two spaces
    assert other != lowered
    assert not hl.verify(text, other).ok


@pytest.mark.skipif(not POLY.is_dir(), reason="the corpus is not here")
@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
def test_an_exported_module_both_ways(oob):
    """A module that JAX exported with symbolic sizes verifies as it is and after binding."""
    source = POLY / "at_set_2s1.mlir"
    as_it_is = hl.lower(source, oob=oob)
    assert as_it_is.records[0].rule.startswith("dynamic_shape_")
    assert hl.verify(source, as_it_is, level="regions").ok
    bound_first = hl.lower(source, oob=oob, bind={"s": 6})
    assert not bound_first.records[0].rule.startswith("dynamic_shape_")
    assert "?" not in bound_first.text
    assert hl.verify(source, bound_first).ok


@pytest.mark.sweep
@pytest.mark.skipif(not POLY.is_dir(), reason="the corpus is not here")
@pytest.mark.parametrize("source", sorted(POLY.glob("*.mlir")) if POLY.is_dir() else [], ids=lambda p: p.stem)
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_every_exported_module_with_symbolic_sizes(source, oob):
    """All of them convert and verify without sizes, the whole module at two choices of them."""
    assert hl.verify(source, hl.lower(source, oob=oob)).ok


def test_a_size_that_another_operand_knows_is_found():
    """Of two operands one may have a static shape: then verification takes its sizes for the other."""
    text = """
func.func @main(%a: tensor<?xf32>, %b: tensor<5xi32>, %i: tensor<2x1xi32>, %u: tensor<2x?xf32>, %w: tensor<2x3xi32>)
    -> (tensor<?xf32>, tensor<5xi32>) {
  %0:2 = "stablehlo.scatter"(%a, %b, %i, %u, %w) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<i32>, %v: tensor<f32>, %x: tensor<i32>):
    %k = stablehlo.add %c, %v : tensor<f32>
    %l = stablehlo.add %d, %x : tensor<i32>
    stablehlo.return %k, %l : tensor<f32>, tensor<i32>
  }) : (tensor<?xf32>, tensor<5xi32>, tensor<2x1xi32>, tensor<2x?xf32>, tensor<2x3xi32>)
    -> (tensor<?xf32>, tensor<5xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<5xi32>
}
"""
    verdict = hl.verify(text, hl.lower(text))
    assert verdict.ok
    assert {region.status for region in verdict.regions} == {"equal"}
    assert {number for region in verdict.regions for number in region.scatters} == {1}
