"""What no law of parts looks at must not be left open: unread results, results too many, loops that never end."""

import pytest

from hlo_lower.verify.parts import are_equal_by_parts

STATE = """\
func.func public @main(%x: tensor<2xui64>) -> tensor<2xui64> {
  %r:2 = stablehlo.rng_bit_generator %x, algorithm = THREE_FRY
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return %r#0 : tensor<2xui64>
}
"""
CALL = """\
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = stablehlo.custom_call @computes(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<8xui32>)
  return %r#0 : tensor<4xf32>
}
"""
ONE = """\
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""
TWO = """\
func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = stablehlo.negate %x : tensor<4xf32>
  return %x, %y : tensor<4xf32>, tensor<4xf32>
}
"""
LOOP = """\
func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<4> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %carried = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, LIMIT : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %other = stablehlo.negate %carried : tensor<4xf32>
    stablehlo.return NEXT, %other : tensor<i32>, tensor<4xf32>
  }
  %y = stablehlo.negate %x : tensor<4xf32>
  %whole = stablehlo.dynamic_update_slice %r#1, %y, %zero : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return %whole : tensor<4xf32>
}
"""
NEGATED = """\
func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %y = stablehlo.negate %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def shown(first, second):
    """Whether two modules are shown to be equal."""
    return are_equal_by_parts(first, second, reassociated=True)


def looped(limit="%most", following="%next"):
    """A loop of which every result is written over."""
    return LOOP.replace("LIMIT", limit).replace("NEXT", following)


@pytest.mark.parametrize("text", [STATE, CALL], ids=["state", "call"])
def test_results_that_nobody_reads_tell_what_is_computed(text):
    """The next state depends on how many numbers are drawn, and a call may do something else for another type."""
    assert shown(text, text)
    assert not shown(text, text.replace("8xui32", "64xui32"))


def test_more_results_than_the_first_has_are_not_shown():
    """What the first one does not return is equal to nothing; what the second one does not is not asked for."""
    assert not shown(ONE, TWO)
    assert shown(TWO, ONE)


def test_a_loop_that_may_not_end_is_not_shown():
    """A loop whose results are written over has to end: it counts, or is one that the first piece has, too."""
    assert shown(NEGATED, looped())
    assert not shown(NEGATED, looped(following="%zero"))
    assert not shown(NEGATED, looped(limit="%n"))
    assert shown(looped(limit="%n"), looped(limit="%n"))
