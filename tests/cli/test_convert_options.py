"""Options of `convert`: the inputs of its verification, the scatters that it lowers, the form that it writes."""

import numpy as np
import pytest

import hlo_lower as hl

TWO = """\
module {
  func.func public @main(%o: tensor<8xi32>, %i: tensor<1xi32>, %u: tensor<i32>) -> (tensor<8xi32>, tensor<8xi32>) {
    %a = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      stablehlo.return %y : tensor<i32>
    }) : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>
    %b = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %z = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %z : tensor<i32>
    }) : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>
    return %a, %b : tensor<8xi32>, tensor<8xi32>
  }
}
"""
ROW = {"cache": np.zeros((8, 4), np.float32), "row": np.ones(4, np.float32), "position": np.int32(3)}


def test_convert_verifies_with_the_users_inputs(folder, command):
    """With --inputs the module runs once, on these."""
    np.savez(folder / "x.npz", *ROW.values())
    result = command("convert", "decode.mlir", "-o", "out.mlir", "--inputs", "x.npz")
    assert (result.code, result.err) == (0, "")
    assert "module 1 run" in result.out.splitlines()[0]


def test_inputs_that_do_not_fit_write_nothing(folder, command):
    """A missing file, a wrong shape, and inputs where the module is not run are told; exit code 2, no output."""
    np.savez(folder / "wrong.npz", np.zeros(3, np.float32), *list(ROW.values())[1:])
    np.savez(folder / "x.npz", *ROW.values())
    for options, says in (
        (("--inputs", "missing.npz"), "missing.npz: no such file"),
        (("--inputs", "wrong.npz"), "input 0 does not fit"),
        (("--inputs", "x.npz", "--no-verify"), "--verify off does not run it"),
        (("--inputs", "x.npz", "--verify", "regions"), "--verify regions does not run it"),
    ):
        result = command("convert", "decode.mlir", "-o", "out.mlir", *options)
        assert (result.code, result.out) == (2, "")
        assert says in result.err
        assert "Traceback" not in result.err
    assert not (folder / "out.mlir").exists()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--only", "#1"), "2 scatters -> 1"),
        (("--only", "#1", "--only", "#2"), "2 scatters -> 0"),
        (("--skip", "#*"), "2 scatters -> 2"),
        (("--skip", "two.mlir:8"), "2 scatters -> 1"),
        (("--only", "main", "--skip", "#2"), "2 scatters -> 1"),
    ],
)
def test_only_and_skip(folder, command, options, left):
    """Numbers, places and functions choose scatters; what is left on request verifies and is no failure."""
    (folder / "two.mlir").write_text(TWO)
    result = command("convert", "two.mlir", "-o", "out.mlir", "--verify", "regions", *options)
    assert (result.code, result.err) == (0, "")
    assert left in result.out


def test_a_pattern_without_a_match_is_an_error(folder, command):
    """It is told with the places there are, and nothing is written."""
    for option in ("--only", "--skip"):
        result = command("convert", "decode.mlir", "-o", "out.mlir", option, "llama.py:1")
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(
            "decode.mlir: no scatter matches 'llama.py:1'\n  facts:   scatters are at decode.mlir:4"
        )
    assert not (folder / "out.mlir").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("8x4xf32", "?x4xf32"), "dynamic shape tensor<?x4xf32>"),
        (lambda text: text.replace("@decode", "@decode attributes {mhlo.num_partitions = 2 : i32}"), "several devices"),
    ],
    ids=["dynamic", "partitioned"],
)
def test_what_cannot_be_an_exported_is_told(folder, command, change, says):
    """--emit exported needs a signature that JAX has; other forms are offered, and nothing is written."""
    (folder / "odd.mlir").write_text(change((folder / "decode.mlir").read_text()))
    result = command("convert", "odd.mlir", "-o", "out.exported", "--keep-unsupported", "--no-verify")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("odd.mlir: the module cannot become a jax.export.Exported: ")
    assert says in result.err
    assert "internal error" not in result.err
    assert not (folder / "out.exported").exists()
    again = command("convert", "odd.mlir", "-o", "out.vhlo", "--keep-unsupported", "--no-verify")
    assert again.code in (0, 3)
    assert hl.read(folder / "out.vhlo").op_count > 0
