"""Cleaning up: what a lowering left dead goes, what was dead before stays."""

import pytest

import hlo_lower as hl
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.cleanup import erase_uncalled

SCATTER = """"stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      BODY
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>"""
ASSIGN = "stablehlo.return %b : tensor<f32>"


def lowered(producers, functions="", body=ASSIGN, result="%r"):
    """The text after lowering a scatter whose indices %i come from these producers of the argument %n."""
    text = f"""
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {{
    {producers}
    %r = {SCATTER.replace("BODY", body)}
    return {result} : tensor<8xf32>
}}
{functions}
"""
    return hl.lower(text).text


OUTSIDE = "%i = stablehlo.constant dense<9> : tensor<1xi32>"


def test_producers_that_a_lowering_left_dead_are_erased():
    """The index producers of a scatter that is dropped are gone, a chain of them too."""
    text = lowered(
        """%c = stablehlo.constant dense<9> : tensor<i32>
    %s = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %i = stablehlo.add %s, %s : tensor<1xi32>"""
    )
    assert "constant" not in text
    assert "broadcast_in_dim" not in text
    assert "stablehlo.add" not in text


def test_what_was_dead_before_stays():
    """An unused op that the scatter never used keeps its place."""
    text = lowered(f"{OUTSIDE}\n    %dead = stablehlo.sine %u : tensor<f32>")
    assert "stablehlo.sine" in text
    assert "dense<9>" not in text


def test_what_others_use_stays():
    """A producer with another user is kept, and so is what it needs."""
    text = lowered(
        """%c = stablehlo.constant dense<9> : tensor<1xi32>
    %i = stablehlo.add %c, %c : tensor<1xi32>
    %dead = stablehlo.negate %c : tensor<1xi32>"""
    )
    assert "stablehlo.add" not in text
    assert "dense<9>" in text
    assert "stablehlo.negate" in text


def test_a_private_function_that_is_no_longer_called_is_erased():
    """A helper that only the indices called, and one that only this helper called, are gone."""
    text = lowered(
        "%i = call @outer(%n) : (tensor<1xi32>) -> tensor<1xi32>",
        """func.func private @outer(%x: tensor<1xi32>) -> tensor<1xi32> {
  %r = call @inner(%x) : (tensor<1xi32>) -> tensor<1xi32>
  return %r : tensor<1xi32>
}
func.func private @inner(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}""",
    )
    assert "@outer" not in text
    assert "@inner" not in text


HELPER = """func.func VISIBILITY @helper(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}"""
CALL = "%i = call @helper(%n) : (tensor<1xi32>) -> tensor<1xi32>"


@pytest.mark.parametrize(
    ("producers", "visibility", "functions"),
    [
        (CALL, "public", ""),
        (f"{CALL}\n    %j = call @helper(%n) : (tensor<1xi32>) -> tensor<1xi32>", "private", ""),
        (
            f'{CALL}\n    %j = stablehlo.composite "my.op" %n {{decomposition = @helper}}'
            " : (tensor<1xi32>) -> tensor<1xi32>",
            "private",
            "",
        ),
    ],
    ids=["public", "called elsewhere", "named by a composite"],
)
def test_a_function_that_somebody_may_need_stays(producers, visibility, functions):
    """A public function, one with another call and one that a composite names are kept."""
    assert "@helper" in lowered(producers, HELPER.replace("VISIBILITY", visibility) + functions)


def test_a_private_function_that_was_never_called_stays():
    """What was dead before is not this tool's business."""
    assert "@helper" in lowered(OUTSIDE, HELPER.replace("VISIBILITY", "private"))


def test_a_function_that_only_the_region_called_is_erased():
    """A region that is lifted inlines its calls: the private function that nobody calls any more is gone."""
    text = lowered(
        "%i = stablehlo.constant dense<3> : tensor<1xi32>",
        """func.func private @sum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.add %x, %y : tensor<f32>
  return %r : tensor<f32>
}""",
        body="""%s = func.call @sum(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %s : tensor<f32>""",
    )
    assert "stablehlo.add" in text
    assert "@sum" not in text


def test_a_constant_that_only_the_region_captured_is_erased():
    """A captured producer that the lowering did not need goes as other producers go."""
    text = lowered(
        f"{OUTSIDE}\n    %k = stablehlo.constant dense<7.0> : tensor<f32>", body="stablehlo.return %k : tensor<f32>"
    )
    assert "dense<7.0" not in text


def test_an_impure_producer_stays():
    """A custom call with side effects is kept although nobody uses its result any more."""
    text = lowered(
        "%i = stablehlo.custom_call @log(%n) {has_side_effect = true} : (tensor<1xi32>) -> tensor<1xi32>",
        result="%o",
        body="stablehlo.return %a : tensor<f32>",
    )
    assert "stablehlo.custom_call @log" in text


def test_an_op_with_regions_is_erased_with_what_it_holds():
    """A reduce that gave the index is gone, and so is what its region captured and its operands needed."""
    text = lowered(
        """%z = stablehlo.constant dense<0> : tensor<i32>
    %nine = stablehlo.constant dense<9> : tensor<i32>
    %m = stablehlo.reduce(%n init: %z) across dimensions = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<i32>
     reducer(%p: tensor<i32>, %q: tensor<i32>) {
      %t = stablehlo.maximum %p, %q : tensor<i32>
      %s = stablehlo.maximum %t, %nine : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }
    %i = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>""",
        body="stablehlo.return %a : tensor<f32>",
    )
    assert "stablehlo.reduce" not in text
    assert "dense<9>" not in text
    assert "dense<0>" not in text


def test_candidates_that_are_used_are_left_alone():
    """A candidate with a user is not touched, nor is one with effects."""
    text = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.negate %x : tensor<4xf32>
  %b = stablehlo.abs %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
"""
    graph = read(text)
    before = to_text(graph)
    erase_uncalled(graph, [])
    assert before == to_text(graph)
