"""Loops that overwrite a value without reading it choose between the two by their condition, for who refuses these."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.mlir import walked
from hlo_lower.ir.view import Node
from hlo_lower.ops.quirks.loops import overwritten
from hlo_lower.verify.judges.devices import compile_anywhere

FORM = "while overwriting a value unread"
REFUSING = hl.Target("npu", refused={"stablehlo.scatter": "lowered"}, refused_forms=[FORM])
F = "tensor<f32>"


def loop(returned, judged="%a", read="%r#1, %r#2", body=""):
    """A loop that carries a counter, a and b; a called function @first gives its first argument."""
    return f"""func.func public @main(%x: {F}, %y: {F}, %n: {F}) -> ({F}, {F}) {{
  %zero = stablehlo.constant dense<0.0> : {F}
  %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : {F}, {F}, {F}
  cond {{
    %p = stablehlo.compare LT, {judged}, %n : ({F}, {F}) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1.0> : {F}
    %j = stablehlo.add %i, %one : {F}
    %s = stablehlo.add %a, %one : {F}
    %t = func.call @first(%j, %b) : ({F}, {F}) -> {F}
    {body}
    stablehlo.return %j, {returned} : {F}, {F}, {F}
  }}
  return {read} : {F}, {F}
}}
func.func private @first(%p: {F}, %q: {F}) -> {F} {{
  return %p : {F}
}}
"""


LOOPS = {
    "both are read": (loop("%s, %b"), ()),
    "the condition alone reads it": (loop("%j, %j", read="%r#0, %r#0"), (1,)),
    "only read afterwards": (loop("%s, %j"), (2,)),
    "both": (loop("%j, %t"), (1, 2)),
    "nobody reads it": (loop("%s, %j", read="%r#1, %r#1"), ()),
    "returned as it was": (loop("%s, %b"), ()),
    "read for nothing": (loop("%s, %j", read="%r#1, %r#2", body=f"%u = stablehlo.add %b, %b : {F}"), (2,)),
    "read by what comes to be read": (loop("%s, %a", read="%r#2, %r#2"), (2,)),
    "a call that does not read it": (loop("%s, %t"), (2,)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_overwritten_unread_is_chosen(name):
    """Values that the condition or what comes after reads and the body does not, through calls; nothing changes."""
    text, expected = LOOPS[name]
    graph = hl.read(text)
    [node] = [node for node in graph.main.body.nodes if node.name == "stablehlo.while"]
    assert overwritten(graph, node) == expected
    lowered = hl.lower(text, target=REFUSING)
    assert lowered.text.count("stablehlo.select") == len(expected)
    left = [Node(raw) for raw in walked(lowered.graph.module.operation) if raw.name == "stablehlo.while"]
    assert all(overwritten(lowered.graph, one) == () for one in left)
    native, ours = compile_anywhere([(text, "quick"), (lowered.text, "quick")])
    for x, n in ((0.5, 4.0), (9.0, 4.0), (np.nan, 4.0), (-3.0, 0.0)):
        given = [np.float32(v) for v in (x, 7.0, n)]
        before, after = native.run(given), ours.run(given)
        assert [np.asarray(v).tobytes() for v in before] == [np.asarray(v).tobytes() for v in after]


def test_a_condition_with_effects_is_not_repeated():
    """A loop is left whose condition is no function of what it is given."""
    effect = f"%q = stablehlo.custom_call @effect(%a) {{has_side_effect = true}} : ({F}) -> {F}\n    %p ="
    text = LOOPS["both"][0].replace("%p =", effect, 1)
    assert "stablehlo.select" not in hl.lower(text, target=REFUSING).text
