"""What a loop carries and does not change is what went into it, also through copies; what it changes is not."""

import pytest
from untyped_mlir import module

import hlo_lower as hl

BODY = """%zero = constant 0 : i32; %three = constant 3 : i32; %five = constant 5 : i32; %first = reshape %three -> i32
%r:4 = while(%i = %zero, %k = %first, %m = %five, %v = %x) cond {{
  %four = constant 4 : i32; %go = compare LT, %i, %four; return %go }} do {{
  %one = constant 1 : i32; %next = add %i, %one; %more = add %k, %one; %square = multiply %v, %v
  %four = constant 4 : i32; %p = compare LT, %k, %four; %chosen = select %p, %square, %v
  %copy = reshape %k -> i32; %again = convert %copy -> i32; return %next, {}, {}, {} }}"""


def looped(result, kept):
    """A loop of four turns that carries two integers, and a vector whose next value is named."""
    return module("%x: 4xf32", BODY.format(kept, "%k" if kept == "%m" else "%m", result), "%r#3")


@pytest.mark.parametrize(
    ("kept", "is_known"),
    [
        *((kept, True) for kept in ("%k", "%copy", "%again")),
        ("%next", True),  # 3 in the first turn, then 1, 2 and 3: the turns alone decide
        *((kept, False) for kept in ("%more", "%m")),  # 3 in the first turn, 4 or more later
    ],
)
def test_what_is_carried_unchanged_is_known_in_the_body(kept, is_known):
    """The choice by it is made in each turn, so the loop without it is the same one; the other choice is not."""
    assert hl.verify(looped("%chosen", kept), looped("%square", kept), runs=1).ok == is_known
    if is_known:
        assert hl.verify(looped("%chosen", kept), looped("%v", kept), runs=1).differs
