"""Loops written in calls, and branches within loops and branches, for a target that takes no others."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ops.quirks.loops import is_of_calls
from hlo_lower.verify.run import Executable

CALLS = hl.Target("calls", refused={"stablehlo.while": "none"}, refused_forms=["while not of calls"])
OUTER = hl.Target("outer", refused_forms=["case within a loop or branch"])

LOOPS = """func.func public @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  %h = stablehlo.constant dense<0.5> : tensor<4xf32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %e = stablehlo.minimum %n, %six : tensor<i32>
  %a = stablehlo.add %x, %h : tensor<4xf32>
  %r:2 = stablehlo.while(%i = %0, %y = %x) : tensor<i32>, tensor<4xf32> cond {
    %p = stablehlo.compare LT, %i, %e : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s:2 = stablehlo.while(%j = %0, %z = %y) : tensor<i32>, tensor<4xf32> cond {
      %p = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %k = stablehlo.add %j, %1 : tensor<i32>
      %v = stablehlo.multiply %z, %a : tensor<4xf32>
      stablehlo.return %k, %v : tensor<i32>, tensor<4xf32>
    }
    %m = stablehlo.add %i, %1 : tensor<i32>
    %u = stablehlo.add %s#1, %h : tensor<4xf32>
    stablehlo.return %m, %u : tensor<i32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<4xf32>
}"""

BRANCHES = """func.func public @main(%i: tensor<i32>, %j: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%i) ({
    %q = func.call @inner(%j, %x) : (tensor<i32>, tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %q : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @inner(%j: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%j) ({
    %s = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }, {
    %s = stablehlo.multiply %x, %x : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""


def same(source, lowered, *arguments):
    """Whether two modules give the same."""
    results = (Executable(text, "exact").run([*arguments]) for text in (source, lowered.text))
    return all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_loops_become_calls():
    """Also one in another, with what they take from around them; constants are not carried."""
    lowered = hl.lower(LOOPS, target=CALLS)
    loops = [node for node in nodes_of(lowered) if node.name == "stablehlo.while"]
    assert [(is_of_calls(node), len(node.operands)) for node in loops] == [(True, 4), (True, 4)]
    assert lowered.text.count("no_inline") == 4
    assert lowered.refused == ()
    assert {note.partition(" at ")[0] for note in lowered.notes} == {"lowered: stablehlo.while, 2 times, first"}
    x = np.array([1.5, -1, 0.25, 2], np.float32)
    assert all(same(LOOPS, lowered, np.int32(n), x) for n in (0, 4))


@pytest.mark.sweep
def test_loops_of_calls_are_verified():
    """Each region is judged."""
    assert hl.verify(LOOPS, hl.lower(LOOPS, target=CALLS), level="regions").ok


def nodes_of(lowered):
    """All ops of a module."""
    found = []
    lowered.graph.walk(found.append)
    return found


def test_a_loop_of_other_ops_is_refused_still():
    """For a target that refuses loops in any form."""
    lowered = hl.lower(LOOPS, target=hl.Target("none", refused={"stablehlo.while": "none"}))
    assert [one.op for one in lowered.refused] == ["stablehlo.while"]
    assert "no_inline" not in lowered.text


def test_a_branch_within_another_is_chosen_by_a_select():
    """Also where it stands in a function that the other one calls; the outer one stays."""
    lowered = hl.lower(BRANCHES, target=OUTER)
    assert lowered.text.count("stablehlo.case") == 1
    assert lowered.refused == ()
    x = np.array([1.5, -1, 0.25, 2], np.float32)
    assert all(same(BRANCHES, lowered, np.int32(i), np.int32(j), x) for i in (0, 1) for j in (0, 1))
    assert hl.verify(BRANCHES, lowered).ok


@pytest.mark.sweep
@pytest.mark.parametrize("wrong", ["another op", "what was given"])
def test_a_wrong_call_differs(wrong):
    """A body of another op, or one that gives what it was given, is found by verification."""
    lines = hl.lower(LOOPS, target=CALLS).text.splitlines()
    at = next(k for k, line in enumerate(lines) if "stablehlo.multiply" in line)
    if wrong == "another op":
        lines[at] = lines[at].replace("multiply", "add")
    else:
        lines[at + 1] = lines[at + 1].replace(lines[at].split()[0], "%arg1")
    assert not hl.verify(LOOPS, "\n".join(lines)).ok


def test_what_stood_in_an_op_that_was_replaced_is_looked_at_in_its_copies():
    """The ops of a reduce's region are gone with it, and not touched any more; those of the copies are lowered."""
    steps = "\n".join(f"    %{i + 1} = stablehlo.remainder %{i}, %b : tensor<i32>" for i in range(40))
    text = f"""func.func public @main(%x: tensor<8xi32>) -> tensor<i32> {{
  %z = stablehlo.constant dense<1000> : tensor<i32>
  %r = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %0 = stablehlo.add %a, %b : tensor<i32>
{steps}
    stablehlo.return %40 : tensor<i32>
  }}) : (tensor<8xi32>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}}
"""
    refused = {"stablehlo.scatter": "lowered", "stablehlo.remainder": "none"}
    lowered = hl.lower(text, target=hl.Target("npu", refused=refused, refused_forms=["reduce of any region"]))
    assert not lowered.refused
    assert "stablehlo.remainder" not in lowered.text
    assert sum("stablehlo.remainder" in note for note in lowered.notes) == 1


def test_what_stood_in_a_loop_that_was_unrolled_is_looked_at_in_its_trips():
    """Four products of a loop's body, one in each trip; one behind the loop is told with them."""
    matrix = "tensor<3x3xf32>"
    text = f"""func.func public @main(%x: {matrix}) -> {matrix} {{
  %n = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, {matrix}
  cond {{
    %four = stablehlo.constant dense<4> : tensor<i32>
    %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.dot %v, %v : ({matrix}, {matrix}) -> {matrix}
    stablehlo.return %next, %w : tensor<i32>, {matrix}
  }}
  %s = stablehlo.dot %r#1, %x : ({matrix}, {matrix}) -> {matrix}
  return %s : {matrix}
}}
"""
    refused = {f"stablehlo.{name}": "none" for name in ("scatter", "while", "dot")}
    lowered = hl.lower(text, target=hl.Target("npu", refused=refused))
    assert not lowered.refused
    assert lowered.text.count("stablehlo.dot_general") == 5
