"""Sizes of 0, known or at run time, and an extent of 1 in a dim of none: nothing is written, and all is legal."""

import jax.numpy as jnp
import numpy as np
import pytest
from dynamic_scatters import CASES, COMBINE, arguments, bound, module_of, zero_shapes

import hlo_lower as hl
from hlo_lower.verify.drive.sample_sizes import sizes_of_module
from hlo_lower.verify.judges.definitions import scatter
from hlo_lower.verify.run import Executable

POINT = """
func.func @main(%x: tensor<?xf32>, %u: tensor<f32>, %i: tensor<1xi32>) -> tensor<?xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %v: tensor<f32>):
    stablehlo.return %v : tensor<f32>
  }) : (tensor<?xf32>, tensor<1xi32>, tensor<f32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""

RIGHT_ABOVE_0 = """
func.func @main(%x: tensor<?xf32>, %u: tensor<f32>, %i: tensor<1xi32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %s = stablehlo.reshape %i : (tensor<1xi32>) -> tensor<i32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %last = stablehlo.subtract %size, %one : tensor<i32>
  %place = stablehlo.clamp %zero, %s, %last : tensor<i32>
  %inside = stablehlo.compare EQ, %place, %s : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %old = stablehlo.dynamic_slice %x, %place, sizes = [1] : (tensor<?xf32>, tensor<i32>) -> tensor<1xf32>
  %w = stablehlo.reshape %u : (tensor<f32>) -> tensor<1xf32>
  %new = stablehlo.select %inside, %w, %old : tensor<i1>, tensor<1xf32>
  %r = stablehlo.dynamic_update_slice %x, %new, %place : (tensor<?xf32>, tensor<1xf32>, tensor<i32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""
"""The same but where the operand has no element: there is no slice of size 1 of it, and a start of -1 is inside."""


def is_right(name, oob, combiner, every):
    """Whether a case that is lowered without sizes is right at sizes of 0."""
    operand, indices, updates, numbers, _ = CASES[name]
    lowered = hl.lower(module_of(operand, indices, updates, numbers, combiner=combiner), oob=oob)
    rng = np.random.default_rng(len(name))
    for shapes in list(zero_shapes(name))[::every]:
        executable = Executable(bound(lowered.text, shapes), "quick")
        for _ in range(2):
            o, i, u = arguments(rng, shapes, np.int32, shapes[0])
            [expected] = scatter([o], i, [u], numbers, COMBINE[combiner], [np.dtype(np.int32)], oob=oob)
            assert np.array_equal(executable.run([o, i, u])[0], expected), shapes


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
def test_trap_10_sizes_of_0_at_run_time(name):
    """A module lowered without sizes is right where one of them is 0: no positions, empty windows, an empty operand."""
    assert list(zero_shapes(name, 1))
    is_right(name, "spec" if len(name) % 2 else "xla", "mixed", 3)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("combiner", COMBINE)
def test_every_choice_of_sizes_of_0(name, oob, combiner):
    """The same with every subset of the open sizes at 0."""
    is_right(name, oob, combiner, 1)


@pytest.mark.parametrize("name", ["rows", "windows", "points", "batches", "index vector first", "no index"])
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_trap_10_sizes_of_0_that_are_known(name, oob):
    """A module whose sizes are known to be 0 writes nothing, by the rules of static shapes."""
    numbers = CASES[name][3]
    shapes = next(iter(zero_shapes(name)))
    lowered = hl.lower(module_of(*shapes, numbers), oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    o, i, u = arguments(np.random.default_rng(1), shapes, np.int32, shapes[0])
    assert np.array_equal(Executable(lowered.text, "quick").run([o, i, u])[0], o)


def test_a_slice_without_its_first_row():
    """Of `x[1:]` of an x of one row there is none: what is lowered runs there as the original does."""

    def write(x, i, v):
        return x[1:].at[i].set(v)

    exported = hl.export(write, jnp.zeros(4, jnp.float32), jnp.int32(0), jnp.float32(0), shapes=["s", "", ""])
    lowered = hl.lower(exported)
    for size, places in ((1, (0, -1, 5)), (3, (0, 1, 2, -1, -2, -3))):
        x = np.arange(size, dtype=np.float32)
        for i in places:
            given = (x, np.int32(i), np.float32(7))
            assert np.array_equal(lowered.exported.call(*given), exported.call(*given))
    assert {"s": 1} in sizes_of_module(hl.read(exported).module, None, "module")


def test_verification_tries_sizes_of_0():
    """Open sizes are tried above 0 and at it: a version that is right at every size but 0 is found out."""
    operand, indices, updates, numbers, _ = CASES["rows of run-time length"]
    tried = sizes_of_module(hl.read(module_of(operand, indices, updates, numbers)).module, None, "module")
    assert {0 in sizes.values() for sizes in tried} == {True, False}
    sizes = sizes_of_module(hl.read(POINT).module, None, "module")
    assert {"arg0.0": 0} in sizes
    verdict = hl.verify(POINT, RIGHT_ABOVE_0)
    assert (verdict.ok, verdict.exit_code) == (False, 1)
    assert "arg0.0=0" in "\n".join(verdict.lines())
