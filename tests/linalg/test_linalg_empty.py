"""Tensors of no elements on the way to linalg: index vectors of no components, empty slices and pads."""

import numpy as np
import pytest
from rewrites import results
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir


def scatter(x, i, u, numbers, body="%old, %new: %s = subtract %new, %old; return %s"):
    """A scatter of integers."""
    text = f"%r = scatter(%x, %i, %u) <window=[1], {numbers}ivd=1> {{{body}}}"
    return module(f"%x: {x}, %i: {i}, %u: {u}", text)


MODULES = {
    "no components": scatter("4xi32", "2x0xi32", "2x4xi32", ""),
    "batches only": scatter("3x4xi32", "3x0xi32", "3x4xi32", "batching=[0], indices_batching=[0], "),
    "emptied": module(
        "%x: 2x3xi32, %k: i32",
        """%a = slice %x [2:2, 0:3]
  %b = pad %x, %k, low = [-2, 0], high = [0, 0], interior = [0, 0] -> 0x3xi32
  %r = concatenate %a, %x, %b, dim = 0
  %c = slice %x [1:2, 3:3]; %d = convert %c -> 1x0xui8""",
        "%r, %d",
    ),
    "no windows": module(
        "%x: 2x3xi32, %k: i32, %w: 5x1x1xf32, %y: 1x4x1xf32",
        """%r = reduce_window(%x, %k) <window_dimensions = array<i64: 1, 3>,
    window_dilations = array<i64: 1, 2>> {add} -> 2x0xi32
  %c = convolution(%y, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {
    batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (1x4x1xf32, 5x1x1xf32) -> 1x0x1xf32""",
        "%r, %c",
    ),
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
    expected = u - x
    if name == "no components":
        x, u = x[0], u[:2]
        expected = u[1] - (u[0] - x)
    given = [x, np.zeros((len(u), 0), np.int32), u]
    assert np.array_equal(run_on_iree(hl.lower(MODULES[name], target="linalg").text, given)[0], expected)
    plain = hl.lower(MODULES[name])
    assert "%arg1" not in plain.text.split("{", 2)[2]  # there is nothing in the indices
    assert np.array_equal(results(plain, *given, rounding="exact")[0], expected)


def test_trap_10_sizes_of_0_on_iree():
    """A module lowered without sizes reads and writes nothing where a size is 0: IREE checks nothing of its own."""
    from iree_runs import compiled

    rows = scatter("?x4xi32", "?x1xi32", "?x4xi32", "inserted=[0], to=[0], ", "assign")
    run = compiled(hl.lower(rows, target="linalg").text)
    for size, count in ((0, 3), (0, 0), (3, 0), (3, 3)):
        x, u = np.zeros((size, 4), np.int32), np.ones((count, 4), np.int32)
        [found] = run([x, np.array([[0], [-1], [size]], np.int32)[:count], u])
        assert found.shape == (size, 4)
        assert found.sum() == (4 if size and count else 0)


def test_a_pass_that_fails_says_why():
    """The error is the pass's first complaint, not the line that says that there is one."""
    parsed = mlir.parse_module(MODULES["emptied"])
    with pytest.raises(mlir.PassError, match="offset 0 is out-of-bounds: 2 >= 2"):
        mlir.run_pass(parsed.operation, "builtin.module(stablehlo-legalize-to-linalg)")
