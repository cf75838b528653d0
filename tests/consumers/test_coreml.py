"""Core ML's converter, where it is installed."""

import pytest

from hlo_lower.consumers import COREML
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.rounding import Rounding

pytestmark = [pytest.mark.coreml, pytest.mark.skipif(not COREML.version(), reason="the extra coreml is not installed")]

ADD = """func.func public @main(%a: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %r = stablehlo.add %a, %a : tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}"""
CUSTOM = ADD.replace("add %a, %a :", "custom_call @of_my_own(%a) : (tensor<3x2xf32>) ->")


def test_a_module_is_converted_or_refused():
    """It is not run; a refusal has the converter's message and the op."""
    with Judge(COREML) as judge:
        assert judge.judge(ADD, (), Rounding(())).result == "converted"
        refused = judge.judge(CUSTOM, (), Rounding(()))
    assert (refused.result, refused.cause) == ("refused", "stablehlo.custom_call @of_my_own")
