"""What fuzzing has found, each as the smallest module that showed it."""

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.run import Executable

WINDOWS = "window=[1], inserted=[0], to=[0], ivd=1"
C = "complex<f32>"
# Reading the attributes of a complex constant by number takes the process down: the bindings have no class for them.
COMPLEX_CONSTANT = module(
    f"%o: 2x{C}, %i: 1xi32, %u: 1x{C}",
    f"""%r = scatter(%o, %i, %u) <window=[0], to=[0]> {{
      %c, %w: %k = constant (2.0, 1.0) : {C}; %s = add %c, %k; return %s
    }}""",
)


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_a_complex_constant_in_a_region(oob):
    """It is copied into the lowered module as it is, and added; its attributes can be asked for, as text."""
    lowered = hl.lower(COMPLEX_CONSTANT, oob=oob)
    assert "dense<(2.000000e+00,1.000000e+00)>" in lowered.text
    operand = np.array([1 + 1j, 5], np.complex64)
    for start, expected in ((1, [1 + 1j, 7 + 1j]), (2, [1 + 1j, 5])):
        [found] = Executable(lowered.text, "exact").run([operand, np.array([start], np.int32), operand[:1]])
        assert found.tolist() == expected
    module = mlir.parse_module(COMPLEX_CONSTANT)
    found = [mlir.attributes_of(op) for op in mlir.operations_within(module.operation) if "constant" in op.name]
    assert [list(attributes) for attributes in found] == [["value"]]
    assert "dense<(2.000000e+00,1.000000e+00)>" in str(found[0]["value"])


@pytest.mark.usefixtures("judged_by_runs")
def test_a_negative_i2_constant_is_not_judged_by_xla():
    """XLA writes it over its neighbours in the byte, of the original and of what is fused; the reference decides."""
    line = f"%r = scatter(%o, %i, %w) <{WINDOWS}> {{%c, %u: %e = constant -2 : i2; return %e}}"
    text = module("%o: 2x2xi2, %w: 2x2xi2, %i: 2xi32", line)
    lowered = hl.lower(text, prefer=["while"])
    assert hl.verify(text, lowered, level="regions").ok
    [wrong] = hl.verify(text, lowered.text.replace("dense<-2>", "dense<1>"), level="regions").regions
    assert wrong.status == "differs"
    assert any("over its neighbours in the byte" in reason for reason in wrong.excluded)


@pytest.mark.sweep
def test_a_nan_among_minima_is_kept():
    """XLA's CPU compiler loses a NaN in a reduce by minimum or maximum, so floats are not combined by one."""
    text = module("%o: 140x4xf32, %w: 8x4xf32, %i: 8x1xi16", f"%r = scatter(%o, %i, %w) <{WINDOWS}> {{minimum}}")
    for prefer in ((), ("compare_reduce",), ("sorted_segments",)):
        lowered = hl.lower(text, prefer=prefer)
        assert not prefer or lowered.records[0].rule == prefer[0]
        assert hl.verify(text, lowered, level="regions").ok


@pytest.mark.parametrize(("rule", "float_mode"), [("rounds", "exact"), ("sorted_segments", "reassociate")])
def test_rows_of_windows_do_not_ascend(rule, float_mode):
    """Windows of two rows write 0, 1, 0, 1: their starts ascend, but not the rows, which are sorted."""
    line = "%i = constant [] : 2x0xi32; %r = scatter(%o, %i, %w) <window=[1], ivd=1> {subtract}"
    text = module("%o: 3xf32, %w: 2x2xf32", line)
    lowered = hl.lower(text, prefer=(rule,), float_mode=float_mode)
    assert lowered.records[0].rule == rule
    assert "stablehlo.sort" in lowered.text
    assert hl.verify(text, lowered, level="regions", float_mode=float_mode).ok
