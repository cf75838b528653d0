"""The notation of untyped_mlir: its example is a module, what follows is added, and what is wrong is quoted."""

import re
import textwrap

import pytest
import untyped_mlir
from untyped_mlir import NotationError, module

from hlo_lower.ir import mlir

GIVEN = "%x: 4x3xf32, %y: 4x3xf32, %p: i1"


def test_the_example_is_a_module():
    """The example in the docstring says what it says in full."""
    arguments, body = re.search(r'module\("(.*?)", \'\'\'\n(.*?)\'\'\'\)', untyped_mlir.__doc__, re.DOTALL).groups()
    text = str(mlir.parse_module(module(arguments, textwrap.dedent(body))))
    assert "stablehlo.clamp %c, %arg1, %c_0 : tensor<i32>" in text
    assert "update_window_dims = [0], scatter_dims_to_operand_dims = [0]" in text
    assert "return %3#1 : tensor<8xf32>" in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("compare LT, %x, %y", "compare LT, %x, %y : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xi1>"),
        ("multiply %x, 0.5", "multiply %x, %_3 : tensor<4x3xf32>"),
        ("slice %x [1:4:2, 0:1]", "(tensor<4x3xf32>) -> tensor<2x1xf32>"),
        ("concatenate %x, %y, dim = 1", "-> tensor<4x6xf32>"),
        ("reduce(%x init: %y) applies stablehlo.add across dimensions = [0]", "-> tensor<3xf32>"),
        ("sort(%x) <dimension = 1> {LT}", ") : (tensor<4x3xf32>) -> (tensor<4x3xf32>)"),
        ("if(%p) { return %x } { %n = negate %x; return %n }", "(tensor<i1>) -> (tensor<4x3xf32>)"),
    ],
)
def test_types_that_follow_are_added(line, told):
    """Those of operands, results and numbers; types that are given are written in full."""
    assert told in module(GIVEN, f"%r = {line}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("%r = add %x, %z", "nothing defines %z before"),
        ("%r = reshape %x", "the type of the result is wanted behind an arrow"),
        ("%r, %s = negate %x", "names for 2 results, but there are 1"),
        ("%r = 0.0 : f32", "this is not understood"),
        ("%r = slice %x [0:1", "a bracket is not closed"),
        ("%r = negate %x)", "a bracket is closed that is not open"),
        ("%r = sort %x {LT}", "the operands are wanted in brackets"),
        ("%r = sort(%x) {%a: return %a}", "names for 1 arguments of a region, but it has 2"),
        ("%r = sort(%x) {a b}", "a region begins with the names of its arguments, or is one word"),
    ],
)
def test_what_is_wrong_is_quoted(line, told):
    """An error says what is wrong and quotes the statement."""
    with pytest.raises(NotationError, match=re.escape(f"{told}: {line}")):
        module(GIVEN, f"%n = negate %x\n{line}")
    with pytest.raises(NotationError, match=r"nothing defines %z before: %n = abs %z$"):
        module(GIVEN, "%r = if(%p) { return %x } { %n = abs %z; return %n }")
