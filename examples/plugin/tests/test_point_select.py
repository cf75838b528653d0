"""The rule is taken where it is meant to be, and what it builds is the same function."""

from pathlib import Path

import pytest

import hlo_lower as hl

NPU = str(Path(__file__).parents[1] / "npu.toml")
POINT = """
func.func public @main(%o: tensor<8xSIZExf32>, %i: tensor<2xi32>, %u: tensor<f32>) -> tensor<8xSIZExf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xSIZExf32>, tensor<2xi32>, tensor<f32>) -> tensor<8xSIZExf32>
  return %r : tensor<8xSIZExf32>
}
"""
SMALL, LARGE = POINT.replace("SIZE", "16"), POINT.replace("SIZE", "1024")


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_a_point_is_selected(oob):
    """A small operand takes the rule, under both policies, and the two modules are the same function."""
    lowered = hl.lower(SMALL, target=NPU, oob=oob)
    assert [record.rule for record in lowered.records] == ["point_select"]
    assert "dynamic" not in lowered.text
    assert hl.verify(SMALL, lowered, level="regions").ok


def test_a_large_operand_keeps_its_place():
    """Where a pass does not pay, the built-in rule is taken; a target that refuses it says what was in the way."""
    assert hl.lower(LARGE).records[0].rule == "guarded_dynamic_update_slice"
    with pytest.raises(hl.NotLoweredError, match=r"point_select .*: needs 4,096 elements at most"):
        hl.lower(LARGE, target=NPU)


def test_without_the_plugin_there_is_no_lowering(monkeypatch):
    """The target refuses what every built-in rule for a point builds."""
    monkeypatch.setenv("HLO_LOWER_NO_PLUGINS", "1")
    with pytest.raises(hl.NotLoweredError, match="dynamic_update_slice"):
        hl.lower(SMALL, target=NPU)


def test_a_wrong_comparison_is_found():
    """The check of the rule is able to fail: every place up to the start, instead of the start alone."""
    wrong = hl.lower(SMALL, target=NPU).text.replace(" EQ,", " LE,")
    verdict = hl.verify(SMALL, wrong, level="regions")
    assert (verdict.ok, verdict.exit_code) == (False, 1)
