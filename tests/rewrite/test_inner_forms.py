"""Loops, branches and reductions in forms that a target refuses though it takes the op; what is computed stays."""

import numpy as np
import pytest
from rewrites import assert_same
from rule_examples import target
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir.mlir import operations_within
from hlo_lower.ir.view import Node
from hlo_lower.ops.quirks.loops import is_of_calls

X = np.array([1.5, -1, 0.25, 2], np.float32)
CALLS = hl.Target("calls", refused={"stablehlo.while": "none"}, refused_forms=["while not of calls"])
LOOPS = module(
    "%n: i32, %x: 4xf32",
    """%0 = constant 0 : i32; %1 = constant 1 : i32; %h = constant 0.5 : 4xf32; %e = minimum %n, 6; %a = add %x, %h
  %r:2 = while(%i = %0, %y = %x) cond { %p = compare LT, %i, %e; return %p } do {
    %s:2 = while(%j = %0, %z = %y) cond { %p = compare LT, %j, %i; return %p } do {
      %k = add %j, %1; %v = multiply %z, %a; return %k, %v
    }
    %m = add %i, %1; %u = add %s#1, %h; return %m, %u
  }""",
    "%r#0, %r#1",
)


def test_loops_become_calls():
    """Also one in another, with what they take from around them; constants are not carried."""
    lowered = hl.lower(LOOPS, target=CALLS)
    loops = [Node(raw) for raw in operations_within(lowered.graph.module.operation) if raw.name == "stablehlo.while"]
    assert [(is_of_calls(node), len(node.operands)) for node in loops] == [(True, 4), (True, 4)]
    assert lowered.text.count("no_inline") == 4
    assert lowered.refused == ()
    assert {note.partition(" at ")[0] for note in lowered.notes} == {"lowered: stablehlo.while, 2 times, first"}
    for n in (0, 4):
        assert_same(LOOPS, lowered, np.int32(n), X)
    endless = LOOPS.replace("minimum %n, %", "maximum %n, %")
    assert endless != LOOPS
    refusing = hl.lower(endless, target=hl.Target("none", refused={"stablehlo.while": "none"}))
    assert [one.op for one in refusing.refused] == ["stablehlo.while"]
    assert "no_inline" not in refusing.text


@pytest.mark.sweep
@pytest.mark.parametrize("wrong", ["", "another op", "what was given"])
def test_a_wrong_call_differs(wrong):
    """The right ones are verified; a body of another op, or one that gives what it was given, is found."""
    lines = hl.lower(LOOPS, target=CALLS).text.splitlines()
    at = next(k for k, line in enumerate(lines) if "stablehlo.multiply" in line)
    if wrong == "another op":
        lines[at] = lines[at].replace("multiply", "add")
    elif wrong:
        lines[at + 1] = lines[at + 1].replace(lines[at].split()[0], "%arg1")
    assert hl.verify(LOOPS, "\n".join(lines)).ok is not bool(wrong)


def test_a_branch_within_another_is_chosen_by_a_select():
    """Also where it stands in a function that the other one calls; the outer one stays."""
    takes = "%j: i32, %x: 4xf32"
    inner = "%r = case(%j) { %s = add %x, %x; return %s } { %s = multiply %x, %x; return %s }"
    outer = "%r = case(%i) { %q = call @inner(%j, %x) -> 4xf32; return %q } { return %x }"
    source = module(f"%i: i32, {takes}", outer, more=function("private @inner", takes, inner))
    lowered = hl.lower(source, target=hl.Target("outer", refused_forms=["case within a loop or branch"]))
    assert lowered.text.count("stablehlo.case") == 1
    assert lowered.refused == ()
    for i, j in np.ndindex(2, 2):
        assert_same(source, lowered, np.int32(i), np.int32(j), X)
    assert hl.verify(source, lowered).ok


def test_what_stood_in_an_op_that_was_replaced_is_looked_at_in_its_copies():
    """The ops of a reduce's region are gone with it, and not touched any more; those of the copies are lowered."""
    steps = "; ".join(f"%{i + 1} = remainder %{i}, %b" for i in range(40))
    region = f"{{%a, %b: %0 = add %a, %b; {steps}; return %40}}"
    source = module(
        "%x: 8xi32", f"%z = constant 1000 : i32; %r = reduce(%x, %z) <dimensions = array<i64: 0>> {region} -> i32"
    )
    lowered = hl.lower(source, target=target("npu", "remainder", refused_forms=["reduce of any region"]))
    assert not lowered.refused
    assert "stablehlo.remainder" not in lowered.text
    assert sum("stablehlo.remainder" in note for note in lowered.notes) == 1


def test_what_stood_in_a_loop_that_was_unrolled_is_looked_at_in_its_trips():
    """Four products of a loop's body, one in each trip; one behind the loop is told with them."""
    loop = """%n = constant 0 : i32
      %r:2 = while(%i = %n, %v = %x) cond { %go = compare LT, %i, 4; return %go } do {
        %next = add %i, 1; %w = dot %v, %v : (3x3xf32, 3x3xf32) -> 3x3xf32; return %next, %w
      }
      %s = dot %r#1, %x : (3x3xf32, 3x3xf32) -> 3x3xf32"""
    lowered = hl.lower(module("%x: 3x3xf32", loop, "%s"), target=target("npu", "while", "dot"))
    assert not lowered.refused
    assert lowered.text.count("stablehlo.dot_general") == 5


FIRST = function("private @first", "%p: f32, %q: f32", "return %p")
SAME = function("private @same", "%p: f32, %q: f32", "%s = add %p, %q; return %s, %q")


def loop(returned, read="%r#1, %r#2", *, judged="%a", body="", starts="%x, %y", limit="%n", counter="f32"):
    """A loop that carries a counter, a and b; functions @first and @same give their first argument, and a sum."""
    a, b = starts.split(", ")
    zero, one = ("0", "1") if counter == "i32" else ("0.0", "1.0")
    text = f"""%zero = constant 0.0 : f32; %other = add %zero, %zero; %start = constant {zero} : {counter}
      %r:3 = while(%i = %start, %a = {a}, %b = {b}) cond {{ %p = compare LT, {judged}, {limit}; return %p }} do {{
        %one = constant {one} : {counter}; %j = add %i, %one
        {body}
        return %j, {returned}
      }}"""
    return module("%x: f32, %y: f32, %n: f32", text, read, FIRST + SAME)


MORE, CALLED = "%s = add %a, %one", "%t = call @first(%j, %b) -> f32"
OVERWRITING = {
    "both are read": (loop("%s, %b", body=MORE), 0),
    "the condition alone reads it": (loop("%j, %j", "%r#0, %r#0"), 1),
    "only read afterwards": (loop("%s, %j", body=MORE), 1),
    "both": (loop("%j, %t", body=CALLED), 2),
    "nobody reads it": (loop("%s, %j", "%r#1, %r#1", body=MORE), 0),
    "read for nothing": (loop("%s, %j", body=f"%u = add %b, %b; {MORE}"), 1),
    "read by what comes to be read": (loop("%s, %a", "%r#2, %r#2", body=MORE), 1),
    "a call that does not read it": (loop("%s, %t", body=f"{CALLED}; {MORE}"), 1),
}
REFUSING = target("npu", refused_forms=["while overwriting a value unread"])


@pytest.mark.parametrize("name", OVERWRITING)
def test_what_is_overwritten_unread_is_chosen(name):
    """Values that the condition or what comes after reads and the body does not, through calls; nothing changes."""
    text, selects = OVERWRITING[name]
    lowered = hl.lower(text, target=REFUSING)
    assert (lowered.text.count("stablehlo.select"), lowered.refused) == (selects, ())
    for x, n in ((0.5, 4.0), (9.0, 4.0), (np.nan, 4.0), (-3.0, 0.0)):
        assert_same(text, lowered, *(np.float32(v) for v in (x, 7.0, n)))


def test_a_condition_with_effects_is_not_repeated():
    """A loop is left whose condition is not a function of what it is given."""
    effect = "%q = stablehlo.custom_call @effect(%a) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>\n%p ="
    text = OVERWRITING["both"][0].replace("%p =", effect, 1)
    assert "stablehlo.select" not in hl.lower(text, target=REFUSING).text


COUNTED = {"judged": "%i", "limit": "3", "counter": "i32"}
ADDED, OTHER = "%s = add %a, %x", "%zero, %other"
STARTING = {
    "one that becomes another": (loop("%s, %a", body=ADDED, starts=OTHER, **COUNTED), 1),
    "through a call": (
        loop("%s, %t#1", body=f"{ADDED}; %t:2 = call @same(%x, %a) -> (f32, f32)", starts=OTHER, **COUNTED),
        1,
    ),
    "each by itself": (loop("%s, %b", body=ADDED, starts=OTHER, **COUNTED), 0),
    "known again": (loop("%a, %k", body="%k = constant 1.0 : f32", starts="%x, %zero", **COUNTED), 1),
    "one value twice": (loop("%s, %b", body=ADDED, starts="%other, %other", **COUNTED), 1),
    "not constant": (loop("%s, %a", body=ADDED, starts="%zero, %x", **COUNTED), 0),
}
# what has no numbers begins as it stands
STARTING["without elements"] = (STARTING["one that becomes another"][0].replace("tensor<f32>", "tensor<0xf32>"), 0)


@pytest.mark.parametrize("name", STARTING)
def test_what_is_known_too_long_is_hidden(name):
    """Starts and returned values that are known until another one is forgotten, and no others; nothing changes."""
    text, hidden = STARTING[name]
    lowered = hl.lower(text, target=target("hiding", refused_forms=["while from constants"]))
    assert lowered.text.count('"stablehlo.gather"') == hidden
    assert hl.verify(text, lowered).ok


def reduction(of, body="", called="%c"):
    """A sum of rows, of a value made in the body of a private function that is called once."""
    twice = function("private @twice", "%p: 4x33xf32", "%r = add %p, %p")
    total = f"%r = reduce({of} init: %zero) applies stablehlo.add across dimensions = [1]"
    row = f"%zero = constant 0.0 : f32; %k = constant 0.7 : f32\n{body}\n{total}"
    call = f"%c = constant 0.3 : 4x33xf32; %r = call @row({called}) -> 4xf32"
    return module("%x: 4x33xf32", call, more=function("private @row", "%p: 4x33xf32", row) + twice)


EXP, SPREAD = "%e = exponential %p", "%b = broadcast_in_dim %k, dims = [] -> 4x33xf32"
REDUCTIONS = {
    "an argument that is a constant at each call": (reduction("%e", EXP), True),
    "of it itself": (reduction("%p"), True),
    "of one element": (reduction("%p").replace("4x33x", "4x1x"), False),
    "spread and computed": (reduction("%e", f"{SPREAD}; %e = sqrt %b"), True),
    "through a call": (reduction("%e", f"{SPREAD}; %e = call @twice(%b) -> 4x33xf32"), True),
    "a constant": (reduction("%e", "%e = constant 0.3 : 4x33xf32"), False),
    "spread": (reduction("%b", SPREAD), False),
    "an argument": (reduction("%e", EXP, called="%x"), False),
    "beside an argument": (reduction("%e", f"{SPREAD}; %e = multiply %p, %b", called="%x"), False),
    "other numbers": (reduction("%e", "%i = iota dim = 1 : 4x33xf32; %e = negate %i"), False),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_one_computed_number_is_spread_again(name):
    """The same bits; what reads a tensor, a constant as it stands, or one element, stays as it was."""
    text, is_changed = REDUCTIONS[name]
    lowered = hl.lower(text, target=target("npu", refused_forms=["reduce of one number computed"]))
    assert ("stablehlo.slice" in lowered.text) is is_changed
    if "4x33x" in text:
        assert_same(text, lowered, np.linspace(-2, 2, 132, dtype=np.float32).reshape(4, 33), rounding="exact")
