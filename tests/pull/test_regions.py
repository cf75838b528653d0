"""Regions of loops are derived within what their counters are, however many turns there are."""

from hlo_lower.verify import verify

LOOP = """func.func public @main(%n: tensor<i32>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = stablehlo.while(%k = %zero, %v = %x) : tensor<i32>, tensor<3xf32>
    cond {
      %c = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %f = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
      %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<3xf32>
      OP
      stablehlo.return %next, %r : tensor<i32>, tensor<3xf32>
    }
  return %w#1 : tensor<3xf32>
}"""
DIFFERENCE = LOOP.replace("OP", "%r = stablehlo.subtract %v, %g : tensor<3xf32>")
TURNED = LOOP.replace("OP", "%m = stablehlo.negate %g : tensor<3xf32>\n%r = stablehlo.add %m, %v : tensor<3xf32>")


def test_a_counter_of_two_billion_turns_costs_nothing():
    """What an open loop's counter may be is known by its ends."""
    verdict = verify(DIFFERENCE, TURNED, require="derived", level="regions")
    assert (verdict.ok, verdict.counts()) == (True, {"derived": 1})


def test_what_is_only_tested_does_not_count_as_derived():
    """Its exit code is 4, and 1 where it differs."""
    table = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{}\nreturn %r : tensor<4xf32>\n}}"
    one = table.format("%a = stablehlo.abs %x : tensor<4xf32>\n%r = stablehlo.sqrt %a : tensor<4xf32>")
    other = table.format(
        "%n = stablehlo.negate %x : tensor<4xf32>\n%a = stablehlo.maximum %n, %x : tensor<4xf32>\n"
        "%r = stablehlo.sqrt %a : tensor<4xf32>"
    )
    assert [verify(one, other, require=which, level="regions").exit_code for which in ("tested", "derived")] == [0, 4]
