"""Loops whose numbers a converter takes for known too long begin and go on with the same ones, hidden."""

import pytest

import hlo_lower as hl
from hlo_lower.ops.quirks.loops import known_too_long

HIDING = hl.Target("hiding", refused={"stablehlo.scatter": "lowered"}, refused_forms=["while from constants"])


def loop(body, returned, starts="%zero, %zero"):
    """A loop of three trips that carries a counter, a and b; the body has %x from around it, and a function @same."""
    a, b = starts.split(", ")
    return f"""func.func public @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %other = stablehlo.add %zero, %zero : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %c, %a = {a}, %b = {b}) : tensor<i32>, tensor<f32>, tensor<f32>
  cond {{
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    {body}
    stablehlo.return %j, {returned} : tensor<i32>, tensor<f32>, tensor<f32>
  }}
  return %r#1, %r#2 : tensor<f32>, tensor<f32>
}}
func.func private @same(%p: tensor<f32>, %q: tensor<f32>) -> (tensor<f32>, tensor<f32>) {{
  %s = stablehlo.add %p, %q : tensor<f32>
  return %s, %q : tensor<f32>, tensor<f32>
}}
"""


ADDED = "%s = stablehlo.add %a, %x : tensor<f32>"
LOOPS = {
    "one that becomes another": (loop(ADDED, "%s, %a", "%zero, %other"), ((2,), ())),
    "through a call": (
        loop(f"{ADDED}\n%t:2 = func.call @same(%x, %a) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)",
             "%s, %t#1", "%zero, %other"),
        ((2,), ()),
    ),
    "each by itself": (loop(ADDED, "%s, %b", "%zero, %other"), ((), ())),
    "known again": (loop("%k = stablehlo.constant dense<1.0> : tensor<f32>", "%a, %k", "%x, %zero"), ((), (2,))),
    "one value twice": (loop(ADDED, "%s, %b"), ((2,), ())),
    "not constant": (loop(ADDED, "%s, %a", "%zero, %x"), ((), ())),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_known_too_long_is_hidden(name):
    """Starts and returned values that are known until another one is forgotten, and no others; nothing changes."""
    text, expected = LOOPS[name]
    graph = hl.read(text)
    [node] = [node for node in graph.main.body.nodes if node.name == "stablehlo.while"]
    assert known_too_long(graph, node) == expected
    lowered = hl.lower(text, target=HIDING)
    assert lowered.text.count('"stablehlo.gather"') == sum(map(len, expected))
    assert hl.verify(text, lowered).ok


def test_what_has_no_numbers_begins_as_it_stands():
    """A loop that carries tensors without elements beside a number."""
    text, _ = LOOPS["one that becomes another"]
    text = text.replace("tensor<f32>", "tensor<0xf32>")
    lowered = hl.lower(text, target=HIDING)
    assert "stablehlo.gather" not in lowered.text
    assert hl.verify(text, lowered).ok
