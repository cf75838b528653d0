"""Regions are judged once where they are alike; what their inputs may be is part of that."""

import pytest

from hlo_lower.verify import verify

RIGHT = "%s@ = stablehlo.multiply %i@, %i@ : tensor<i32> %p@ = stablehlo.xor %q@, %s@ : tensor<i32>"
BELOW_FOUR = """%m@ = stablehlo.constant dense<3> : tensor<i32>
      %j@ = stablehlo.minimum %i@, %m@ : tensor<i32>
      %s@ = stablehlo.multiply %j@, %j@ : tensor<i32>
      %p@ = stablehlo.xor %q@, %s@ : tensor<i32>"""
"""The same for the first four values of the counter."""


def loop(name: str, end: int, step: str) -> str:
    """A loop from 0 to an end that carries %q; its body computes %p."""
    return f"""%z{name} = stablehlo.constant dense<0> : tensor<i32>
  %w{name}:2 = stablehlo.while(%i{name} = %z{name}, %q{name} = %x{name}) : tensor<i32>, tensor<i32>
    cond {{
      %e{name} = stablehlo.constant dense<{end}> : tensor<i32>
      %t{name} = stablehlo.compare LT, %i{name}, %e{name} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t{name} : tensor<i1>
    }} do {{
      %o{name} = stablehlo.constant dense<1> : tensor<i32>
      %k{name} = stablehlo.add %i{name}, %o{name} : tensor<i32>
      {step.replace("@", name)}
      stablehlo.return %k{name}, %p{name} : tensor<i32>, tensor<i32>
    }}"""


def module(ends: tuple[int, int], step: str) -> str:
    """Two loops one after the other, with the same body."""
    return f"""func.func public @main(%xa: tensor<i32>, %xb: tensor<i32>) -> (tensor<i32>, tensor<i32>) {{
  {loop("a", ends[0], step)}
  {loop("b", ends[1], step)}
  return %wa#1, %wb#1 : tensor<i32>, tensor<i32>
}}"""


@pytest.mark.parametrize(("ends", "is_equal"), [((4, 4), True), ((4, 9), False), ((9, 4), False)])
def test_a_body_that_is_right_in_a_short_loop_is_judged_again_in_a_longer_one(ends, is_equal):
    """Two bodies of one text are alike only if their counters take the same values."""
    verdict = verify(module(ends, RIGHT), module(ends, BELOW_FOUR), level="regions")
    assert (verdict.ok, verdict.differs) == (is_equal, not is_equal), verdict.lines()
    if is_equal:
        assert [region.count for region in verdict.regions] == [2]
