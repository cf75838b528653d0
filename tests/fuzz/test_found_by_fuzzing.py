"""What fuzzing has found, each as the smallest module that showed it."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.run import Executable

# Reading the attributes of a complex constant by number takes the process down: the bindings have no class for them.
COMPLEX_CONSTANT = """\
func.func public @main(%o: tensor<2xcomplex<f32>>, %i: tensor<1xi32>, %u: tensor<1xcomplex<f32>>)
    -> tensor<2xcomplex<f32>> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
    scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<complex<f32>>, %w: tensor<complex<f32>>):
    %k = stablehlo.constant dense<(2.0, 1.0)> : tensor<complex<f32>>
    %s = stablehlo.add %c, %k : tensor<complex<f32>>
    stablehlo.return %s : tensor<complex<f32>>
  }) : (tensor<2xcomplex<f32>>, tensor<1xi32>, tensor<1xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}
"""


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_a_complex_constant_in_a_region(oob):
    """It is copied into the lowered module as it is, and added."""
    lowered = hl.lower(COMPLEX_CONSTANT, oob=oob)
    assert "dense<(2.000000e+00,1.000000e+00)>" in lowered.text
    operand = np.array([1 + 1j, 5], np.complex64)
    for start, expected in ((1, [1 + 1j, 7 + 1j]), (2, [1 + 1j, 5])):
        [found] = Executable(lowered.text, "exact").run([operand, np.array([start], np.int32), operand[:1]])
        assert found.tolist() == expected


def test_an_attribute_without_a_class_stands_as_text():
    """The attributes of a complex constant can be asked for."""
    module = mlir.parse_module(COMPLEX_CONSTANT)
    found = []
    mlir.walk(module.operation, lambda op: found.append(mlir.attributes_of(op)) if "constant" in op.name else None)
    assert [list(attributes) for attributes in found] == [["value"]]
    assert "dense<(2.000000e+00,1.000000e+00)>" in str(found[0]["value"])


@pytest.mark.usefixtures("judged_by_runs")
def test_a_negative_i2_constant_is_not_judged_by_xla():
    """XLA writes it over its neighbours in the byte, of the original and of what is fused; the loop comes out right
    and the reference decides."""
    text = """func.func public @main(%o: tensor<2x2xi2>, %w: tensor<2x2xi2>, %i: tensor<2xi32>) -> tensor<2x2xi2> {
  %r = "stablehlo.scatter"(%o, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<i2>, %u: tensor<i2>):
    %e = stablehlo.constant dense<-2> : tensor<i2>
    stablehlo.return %e : tensor<i2>
  }) : (tensor<2x2xi2>, tensor<2xi32>, tensor<2x2xi2>) -> tensor<2x2xi2>
  return %r : tensor<2x2xi2>
}
"""
    verdict = hl.verify(text, hl.lower(text, prefer=["while"]), level="regions")
    assert verdict.ok
    assert any("over its neighbours in the byte" in reason for reason in verdict.regions[0].excluded)


@pytest.mark.sweep
def test_a_nan_among_minima_is_kept():
    """XLA's CPU compiler loses a NaN in a reduce by minimum or maximum, so floats are not combined by one."""
    text = """func.func public @main(%o: tensor<140x4xf32>, %w: tensor<8x4xf32>, %i: tensor<8x1xi16>)
    -> tensor<140x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %e = stablehlo.minimum %c, %u : tensor<f32>
    stablehlo.return %e : tensor<f32>
  }) : (tensor<140x4xf32>, tensor<8x1xi16>, tensor<8x4xf32>) -> tensor<140x4xf32>
  return %r : tensor<140x4xf32>
}
"""
    for prefer in ((), ("compare_reduce",), ("sorted_segments",)):
        lowered = hl.lower(text, prefer=prefer)
        assert not prefer or lowered.records[0].rule == prefer[0]
        assert hl.verify(text, lowered, level="regions").ok


def test_rows_of_windows_do_not_ascend():
    """Windows of two rows write 0, 1, 0, 1: their starts ascend, but not the rows, which are sorted."""
    text = """func.func public @main(%o: tensor<3xf32>, %w: tensor<2x2xf32>) -> tensor<3xf32> {
  %i = stablehlo.constant dense<> : tensor<2x0xi32>
  %r = "stablehlo.scatter"(%o, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %e = stablehlo.subtract %c, %u : tensor<f32>
    stablehlo.return %e : tensor<f32>
  }) : (tensor<3xf32>, tensor<2x0xi32>, tensor<2x2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""
    for rule, float_mode in (("rounds", "exact"), ("sorted_segments", "reassociate")):
        lowered = hl.lower(text, prefer=(rule,), float_mode=float_mode)
        assert lowered.records[0].rule == rule
        assert "stablehlo.sort" in lowered.text
        assert hl.verify(text, lowered, level="regions", float_mode=float_mode).ok
