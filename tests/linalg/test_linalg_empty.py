"""Tensors of no elements on the way to linalg: index vectors of no components, empty slices and pads."""

import numpy as np
import pytest
from rewrites import main

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.run import Executable

SCALAR = "tensor<i32>"


def scattered(op, x, i, u, numbers):
    """A scatter of integers by one op, or of updates as they are."""
    ops, given = (f"%s = stablehlo.{op} %v, %c : {SCALAR}", "%s") if op else ("", "%v")
    body = f"""%r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], {numbers}index_vector_dim = 1>}}> ({{
  ^bb0(%c: {SCALAR}, %v: {SCALAR}):
    {ops} stablehlo.return {given} : {SCALAR}
  }}) : ({x}, {i}, {u}) -> {x}"""
    return main(f"%x: {x}, %i: {i}, %u: {u}", body, f"%r : {x}")


BATCHED = "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
ROWS = scattered(
    *("", "tensor<?x4xi32>", "tensor<?x1xi32>", "tensor<?x4xi32>"),
    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], ",
)
X, E, Y = "tensor<2x3xi32>", "tensor<0x3xi32>", "tensor<1x4x1xf32>"
EMPTIED = main(
    f"%x: {X}, %k: {SCALAR}",
    f"""%a = stablehlo.slice %x [2:2, 0:3] : ({X}) -> {E}
  %b = stablehlo.pad %x, %k, low = [-2, 0], high = [0, 0], interior = [0, 0] : ({X}, {SCALAR}) -> {E}
  %r = stablehlo.concatenate %a, %x, %b, dim = 0 : ({E}, {X}, {E}) -> {X}
  %c = stablehlo.slice %x [1:2, 3:3] : ({X}) -> tensor<1x0xi32>
  %d = stablehlo.convert %c : (tensor<1x0xi32>) -> tensor<1x0xui8>""",
    f"%r, %d : {X}, tensor<1x0xui8>",
)
NO_WINDOWS = main(
    f"%x: {X}, %k: {SCALAR}, %w: tensor<5x1x1xf32>, %y: {Y}",
    f"""%r = "stablehlo.reduce_window"(%x, %k) <{{window_dimensions = array<i64: 1, 3>,
      window_dilations = array<i64: 1, 2>}}> ({{
  ^bb0(%a: {SCALAR}, %b: {SCALAR}):
    %s = stablehlo.add %a, %b : {SCALAR}
    stablehlo.return %s : {SCALAR}
  }}) : ({X}, {SCALAR}) -> tensor<2x0xi32>
  %c = stablehlo.convolution(%y, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({Y}, tensor<5x1x1xf32>) -> tensor<1x0x1xf32>""",
    "%r, %c : tensor<2x0xi32>, tensor<1x0x1xf32>",
)
MODULES = {
    "no components": scattered("subtract", "tensor<4xi32>", "tensor<2x0xi32>", "tensor<2x4xi32>", ""),
    "batches only": scattered("subtract", "tensor<3x4xi32>", "tensor<3x0xi32>", "tensor<3x4xi32>", BATCHED),
    "emptied": EMPTIED,
    "no windows": NO_WINDOWS,
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("prefer", [(), ("while",)], ids=["as chosen", "as a loop"])
def test_no_elements_leave_in_linalg(name, prefer):
    """Each module is complete in linalg: jaxlib's pass has no slice that starts behind the last element."""
    lowered = hl.lower(MODULES[name], target="linalg", prefer=prefer)
    assert "stablehlo" not in lowered.text
    assert lowered.linalg.left == ()


@pytest.mark.parametrize("name", ["no components", "batches only"])
def test_they_run_on_iree(name):
    """Updates without an index compound at 0, on IREE as under XLA, whose own scatter is no judge of it (trap 46)."""
    from iree_runs import run_on_iree

    x = np.array([[1, 2**31 - 1, -(2**31), 7], [9, -1, 0, 3], [5, 5, -7, 8]], np.int32)
    u = np.arange(-4, 8, dtype=np.int32).reshape(3, 4)
    if name == "no components":
        x, u = x[0], u[:2]
        expected = u[1] - (u[0] - x)
    else:
        expected = u - x
    given = [x, np.zeros((len(u), 0), np.int32), u]
    assert np.array_equal(run_on_iree(hl.lower(MODULES[name], target="linalg").text, given)[0], expected)
    assert np.array_equal(Executable(hl.lower(MODULES[name]).text, "exact").run(given)[0], expected)


def test_trap_10_sizes_of_0_on_iree():
    """A module lowered without sizes reads and writes nothing where a size is 0: IREE checks nothing of its own."""
    from iree_runs import compiled

    run = compiled(hl.lower(ROWS, target="linalg").text)
    for size, count in ((0, 3), (0, 0), (3, 0), (3, 3)):
        x, u = np.zeros((size, 4), np.int32), np.ones((count, 4), np.int32)
        [found] = run([x, np.array([[0], [-1], [size]], np.int32)[:count], u])
        assert found.shape == (size, 4)
        assert found.sum() == (4 if size and count else 0)


def test_an_index_vector_of_no_components_is_not_sliced():
    """What is lowered holds no operation on the indices: there is nothing in them."""
    assert "%arg1" not in hl.lower(MODULES["no components"]).text.split("{", 2)[2]


def test_a_pass_that_fails_says_why():
    """The error is the pass's first complaint, not the line that says that there is one."""
    module = mlir.parse_module(EMPTIED)
    with pytest.raises(mlir.PassError, match="offset 0 is out-of-bounds: 2 >= 2"):
        mlir.run_pass(module.operation, "builtin.module(stablehlo-legalize-to-linalg)")
