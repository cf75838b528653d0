"""Options of `convert`: the inputs of its verification, the scatters that it lowers, the form that it writes."""

import numpy as np
import pytest

import hlo_lower as hl

POINT = """"stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %z = stablehlo.COMBINER %x, %y : tensor<i32>
      stablehlo.return %z : tensor<i32>
    }) : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>"""
TWO = f"""\
module {{
  func.func public @main(%o: tensor<8xi32>, %i: tensor<1xi32>, %u: tensor<i32>) -> (tensor<8xi32>, tensor<8xi32>) {{
    %a = {POINT.replace("COMBINER", "maximum")}
    %b = {POINT.replace("COMBINER", "add")}
    return %a, %b : tensor<8xi32>, tensor<8xi32>
  }}
}}
"""
ROW, CACHE = (np.ones(4, np.float32), np.int32(3)), np.zeros((8, 4), np.float32)
CONVERT = "convert decode.mlir -o out.mlir"


def test_convert_verifies_with_the_users_inputs(folder, command):
    """With --inputs the module runs once, on these."""
    np.savez(folder / "x.npz", CACHE, *ROW)
    result = command(f"{CONVERT} --inputs x.npz")
    assert (result.code, result.err) == (0, "")
    assert "module 1 run" in result.out.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--inputs missing.npz", "missing.npz: no such file"),
        ("--inputs wrong.npz", "input 0 does not fit"),
        ("--inputs x.npz --no-verify", "--verify off does not run it"),
        ("--inputs x.npz --verify regions", "--verify regions does not run it"),
        *(
            (f"{o} llama.py:1", "no scatter matches 'llama.py:1'\n  facts:   scatters are at decode.mlir:4")
            for o in ("--only", "--skip")
        ),
    ],
)
def test_what_does_not_fit_writes_nothing(folder, refused, options, says):
    """A missing file, a wrong shape, inputs where the module is not run, and a pattern that matches nothing."""
    np.savez(folder / "wrong.npz", np.zeros(3, np.float32), *ROW)
    np.savez(folder / "x.npz", CACHE, *ROW)
    refused(f"{CONVERT} {options}", "decode.mlir: no scatter" if "llama" in options else "", says)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("--only #1", "2 scatters -> 1"),
        ("--only #1 --only #2", "2 scatters -> 0"),
        ("--skip #*", "2 scatters -> 2"),
        ("--skip two.mlir:9", "2 scatters -> 1"),
        ("--only main --skip #2", "2 scatters -> 1"),
    ],
)
def test_only_and_skip(folder, command, options, left):
    """Numbers, places and functions choose scatters; what is left on request verifies and is no failure."""
    (folder / "two.mlir").write_text(TWO)
    result = command(f"convert two.mlir -o out.mlir --verify regions {options}")
    assert (result.code, result.err) == (0, "")
    assert left in result.out


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("8x4xf32", "?x4xf32", "dynamic shape tensor<?x4xf32>"),
        ("@decode", "@decode attributes {mhlo.num_partitions = 2 : i32}", "several devices"),
    ],
    ids=["dynamic", "partitioned"],
)
def test_what_cannot_be_an_exported_is_told(folder, command, refused, old, new, says):
    """--emit exported needs a signature that JAX has; other forms are offered, and nothing is written."""
    (folder / "odd.mlir").write_text((folder / "decode.mlir").read_text().replace(old, new))
    options = "--keep-unsupported --no-verify"
    first = "odd.mlir: the module cannot become a jax.export.Exported: "
    assert "internal error" not in refused(f"convert odd.mlir -o out.exported {options}", first, says)
    assert command(f"convert odd.mlir -o out.vhlo {options}").code in (0, 3)
    assert hl.read(folder / "out.vhlo").op_count > 0
