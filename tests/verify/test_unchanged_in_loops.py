"""What a loop carries and does not change is what went into it, also through copies; what it changes is not."""

import pytest

import hlo_lower as hl


def module(result, kept="%k"):
    """A loop of four turns that carries two integers, and a vector whose next value is named."""
    return f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %first = stablehlo.reshape %three : (tensor<i32>) -> tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %k = %first, %m = %five, %v = %x)
    : tensor<i32>, tensor<i32>, tensor<i32>, tensor<4xf32>
  cond {{
    %four = stablehlo.constant dense<4> : tensor<i32>
    %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %more = stablehlo.add %k, %one : tensor<i32>
    %square = stablehlo.multiply %v, %v : tensor<4xf32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %k, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %chosen = stablehlo.select %p, %square, %v : tensor<i1>, tensor<4xf32>
    %copy = stablehlo.reshape %k : (tensor<i32>) -> tensor<i32>
    %again = stablehlo.convert %copy : tensor<i32>
    stablehlo.return %next, {kept}, {"%k" if kept == "%m" else "%m"}, {result}
      : tensor<i32>, tensor<i32>, tensor<i32>, tensor<4xf32>
  }}
  return %r#3 : tensor<4xf32>
}}
"""


@pytest.mark.parametrize("kept", ["%k", "%copy", "%again"])
def test_what_is_carried_unchanged_is_known_in_the_body(kept):
    """The choice by it is made in each turn, so the loop without it is the same one; the other choice is not."""
    assert hl.verify(module("%chosen", kept), module("%square", kept), runs=1).ok
    assert hl.verify(module("%chosen", kept), module("%v", kept), runs=1).differs


@pytest.mark.parametrize("kept", ["%more", "%m"])
def test_what_is_changed_or_exchanged_is_not_known(kept):
    """Three in the first turn, four or more later: the choice is another one then."""
    assert not hl.verify(module("%chosen", kept), module("%square", kept), runs=1).ok


def test_what_turns_alone_decide_is_known():
    """3 in the first turn, then 1, 2 and 3: the choice is made in each of them."""
    assert hl.verify(module("%chosen", "%next"), module("%square", "%next"), runs=1).ok
    assert hl.verify(module("%chosen", "%next"), module("%v", "%next"), runs=1).differs
