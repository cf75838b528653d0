"""Loops, branches and reductions in forms that a target refuses though it takes the op; nothing that is computed
changes."""

import numpy as np
import pytest
from rewrites import assert_same, main
from rule_examples import target

import hlo_lower as hl
from hlo_lower.ir.mlir import walked
from hlo_lower.ir.view import Node
from hlo_lower.ops.quirks.loops import is_of_calls, known_too_long, overwritten

F, N, V4 = "tensor<f32>", "tensor<i32>", "tensor<4xf32>"
X = np.array([1.5, -1, 0.25, 2], np.float32)


def loops_of(lowered):
    """All loops of a module."""
    return [Node(raw) for raw in walked(lowered.graph.module.operation) if raw.name == "stablehlo.while"]


# --- loops written in calls ---

CALLS = hl.Target("calls", refused={"stablehlo.while": "none"}, refused_forms=["while not of calls"])
LOOPS = main(
    f"%n: {N}, %x: {V4}",
    f"""%0 = stablehlo.constant dense<0> : {N}
  %1 = stablehlo.constant dense<1> : {N}
  %h = stablehlo.constant dense<0.5> : {V4}
  %six = stablehlo.constant dense<6> : {N}
  %e = stablehlo.minimum %n, %six : {N}
  %a = stablehlo.add %x, %h : {V4}
  %r:2 = stablehlo.while(%i = %0, %y = %x) : {N}, {V4} cond {{
    %p = stablehlo.compare LT, %i, %e : ({N}, {N}) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %s:2 = stablehlo.while(%j = %0, %z = %y) : {N}, {V4} cond {{
      %p = stablehlo.compare LT, %j, %i : ({N}, {N}) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %k = stablehlo.add %j, %1 : {N}
      %v = stablehlo.multiply %z, %a : {V4}
      stablehlo.return %k, %v : {N}, {V4}
    }}
    %m = stablehlo.add %i, %1 : {N}
    %u = stablehlo.add %s#1, %h : {V4}
    stablehlo.return %m, %u : {N}, {V4}
  }}""",
    f"%r#0, %r#1 : {N}, {V4}",
)


def test_loops_become_calls():
    """Also one in another, with what they take from around them; constants are not carried."""
    lowered = hl.lower(LOOPS, target=CALLS)
    assert [(is_of_calls(node), len(node.operands)) for node in loops_of(lowered)] == [(True, 4), (True, 4)]
    assert lowered.text.count("no_inline") == 4
    assert lowered.refused == ()
    assert {note.partition(" at ")[0] for note in lowered.notes} == {"lowered: stablehlo.while, 2 times, first"}
    for n in (0, 4):
        assert_same(LOOPS, lowered, np.int32(n), X)


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


def test_a_loop_of_other_ops_is_refused_still():
    """For a target that refuses loops in any form."""
    lowered = hl.lower(LOOPS, target=hl.Target("none", refused={"stablehlo.while": "none"}))
    assert [one.op for one in lowered.refused] == ["stablehlo.while"]
    assert "no_inline" not in lowered.text


# --- branches, and what stood in an op that was replaced ---


def branches(index, first, second):
    """A choice of two."""
    return f"""%r = "stablehlo.case"({index}) ({{ {first} }}, {{ {second} }}) : ({N}) -> {V4}"""


def test_a_branch_within_another_is_chosen_by_a_select():
    """Also where it stands in a function that the other one calls; the outer one stays."""
    call = f"%q = func.call @inner(%j, %x) : ({N}, {V4}) -> {V4} stablehlo.return %q : {V4}"
    ops = [f"%s = stablehlo.{op} %x, %x : {V4} stablehlo.return %s : {V4}" for op in ("add", "multiply")]
    source = main(f"%i: {N}, %j: {N}, %x: {V4}", branches("%i", call, f"stablehlo.return %x : {V4}"), f"%r : {V4}")
    source += f"func.func private @inner(%j: {N}, %x: {V4}) -> {V4} {{ {branches('%j', *ops)} return %r : {V4} }}"
    lowered = hl.lower(source, target=hl.Target("outer", refused_forms=["case within a loop or branch"]))
    assert lowered.text.count("stablehlo.case") == 1
    assert lowered.refused == ()
    for i in (0, 1):
        for j in (0, 1):
            assert_same(source, lowered, np.int32(i), np.int32(j), X)
    assert hl.verify(source, lowered).ok


def test_what_stood_in_an_op_that_was_replaced_is_looked_at_in_its_copies():
    """The ops of a reduce's region are gone with it, and not touched any more; those of the copies are lowered."""
    steps = "\n".join(f"    %{i + 1} = stablehlo.remainder %{i}, %b : {N}" for i in range(40))
    body = f"""%z = stablehlo.constant dense<1000> : {N}
  %r = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%a: {N}, %b: {N}):
    %0 = stablehlo.add %a, %b : {N}
{steps}
    stablehlo.return %40 : {N}
  }}) : (tensor<8xi32>, {N}) -> {N}"""
    npu = target("npu", "remainder", refused_forms=["reduce of any region"])
    lowered = hl.lower(main("%x: tensor<8xi32>", body, f"%r : {N}"), target=npu)
    assert not lowered.refused
    assert "stablehlo.remainder" not in lowered.text
    assert sum("stablehlo.remainder" in note for note in lowered.notes) == 1


def test_what_stood_in_a_loop_that_was_unrolled_is_looked_at_in_its_trips():
    """Four products of a loop's body, one in each trip; one behind the loop is told with them."""
    m = "tensor<3x3xf32>"
    body = f"""%n = stablehlo.constant dense<0> : {N}
  %r:2 = stablehlo.while(%i = %n, %v = %x) : {N}, {m} cond {{
    %four = stablehlo.constant dense<4> : {N}
    %go = stablehlo.compare LT, %i, %four : ({N}, {N}) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : {N}
    %next = stablehlo.add %i, %one : {N}
    %w = stablehlo.dot %v, %v : ({m}, {m}) -> {m}
    stablehlo.return %next, %w : {N}, {m}
  }}
  %s = stablehlo.dot %r#1, %x : ({m}, {m}) -> {m}"""
    lowered = hl.lower(main(f"%x: {m}", body, f"%s : {m}"), target=target("npu", "while", "dot"))
    assert not lowered.refused
    assert lowered.text.count("stablehlo.dot_general") == 5


# --- loops that overwrite a value without reading it choose between the two by their condition ---


def loop(returned, read="%r#1, %r#2", *, judged="%i", body="", starts="%x, %y", counter=F):
    """A loop that carries a counter, a and b; functions @first and @same give their first argument, and a sum."""
    a, b = starts.split(", ")
    zero, one, three = ("0.0", "1.0", "3.0") if counter == F else "013"
    both = f"(%p: {F}, %q: {F})"
    text = f"""%zero = stablehlo.constant dense<0.0> : {F}
  %other = stablehlo.add %zero, %zero : {F}
  %start = stablehlo.constant dense<{zero}> : {counter}
  %r:3 = stablehlo.while(%i = %start, %a = {a}, %b = {b}) : {counter}, {F}, {F} cond {{
    %three = stablehlo.constant dense<{three}> : {counter}
    %p = stablehlo.compare LT, {judged}, {"%n" if counter == F else "%three"} : ({counter}, {counter}) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<{one}> : {counter}
    %j = stablehlo.add %i, %one : {counter}
    {body}
    stablehlo.return %j, {returned} : {counter}, {F}, {F}
  }}"""
    first = f"func.func private @first{both} -> {F} {{ return %p : {F} }}"
    same = f"func.func private @same{both} -> ({F}, {F}) {{ %s = stablehlo.add %p, %q : {F} return %s, %q : {F}, {F} }}"
    return f"{main(f'%x: {F}, %y: {F}, %n: {F}', text, f'{read} : {F}, {F}')}{first}\n{same}"


MORE, FIRST = f"%s = stablehlo.add %a, %one : {F}", f"%t = func.call @first(%j, %b) : ({F}, {F}) -> {F}"
TO_OTHER = f"%u = stablehlo.add %b, %b : {F} {MORE}"
OVERWRITING = {
    "both are read": (loop("%s, %b", judged="%a", body=MORE), ()),
    "the condition alone reads it": (loop("%j, %j", "%r#0, %r#0", judged="%a"), (1,)),
    "only read afterwards": (loop("%s, %j", judged="%a", body=MORE), (2,)),
    "both": (loop("%j, %t", judged="%a", body=FIRST), (1, 2)),
    "nobody reads it": (loop("%s, %j", "%r#1, %r#1", judged="%a", body=MORE), ()),
    "read for nothing": (loop("%s, %j", judged="%a", body=TO_OTHER), (2,)),
    "read by what comes to be read": (loop("%s, %a", "%r#2, %r#2", judged="%a", body=MORE), (2,)),
    "a call that does not read it": (loop("%s, %t", judged="%a", body=f"{FIRST} {MORE}"), (2,)),
}
REFUSING = target("npu", refused_forms=["while overwriting a value unread"])


@pytest.mark.parametrize("name", OVERWRITING)
def test_what_is_overwritten_unread_is_chosen(name):
    """Values that the condition or what comes after reads and the body does not, through calls; nothing changes."""
    text, expected = OVERWRITING[name]
    graph = hl.read(text)
    [node] = [node for node in graph.main.body.nodes if node.name == "stablehlo.while"]
    assert overwritten(graph, node) == expected
    lowered = hl.lower(text, target=REFUSING)
    assert lowered.text.count("stablehlo.select") == len(expected)
    assert all(overwritten(lowered.graph, one) == () for one in loops_of(lowered))
    for x, n in ((0.5, 4.0), (9.0, 4.0), (np.nan, 4.0), (-3.0, 0.0)):
        assert_same(text, lowered, *(np.float32(v) for v in (x, 7.0, n)))


def test_a_condition_with_effects_is_not_repeated():
    """A loop is left whose condition is no function of what it is given."""
    effect = f"%q = stablehlo.custom_call @effect(%a) {{has_side_effect = true}} : ({F}) -> {F}\n    %p ="
    text = OVERWRITING["both"][0].replace("%p =", effect, 1)
    assert "stablehlo.select" not in hl.lower(text, target=REFUSING).text


# --- loops whose numbers a converter takes for known too long begin and go on with the same ones, hidden ---

ADDED, OTHER = f"%s = stablehlo.add %a, %x : {F}", "%zero, %other"
SAME = f"{ADDED} %t:2 = func.call @same(%x, %a) : ({F}, {F}) -> ({F}, {F})"
KNOWN = f"%k = stablehlo.constant dense<1.0> : {F}"
STARTING = {
    "one that becomes another": (loop("%s, %a", body=ADDED, starts=OTHER, counter=N), ((2,), ())),
    "through a call": (loop("%s, %t#1", body=SAME, starts=OTHER, counter=N), ((2,), ())),
    "each by itself": (loop("%s, %b", body=ADDED, starts=OTHER, counter=N), ((), ())),
    "known again": (loop("%a, %k", body=KNOWN, starts="%x, %zero", counter=N), ((), (2,))),
    "one value twice": (loop("%s, %b", body=ADDED, starts="%other, %other", counter=N), ((2,), ())),
    "not constant": (loop("%s, %a", body=ADDED, starts="%zero, %x", counter=N), ((), ())),
}
NOTHING = STARTING["one that becomes another"][0].replace(F, "tensor<0xf32>")
STARTING["without elements"] = (NOTHING, ((2,), ()))
HIDING = target("hiding", refused_forms=["while from constants"])


@pytest.mark.parametrize("name", STARTING)
def test_what_is_known_too_long_is_hidden(name):
    """Starts and returned values that are known until another one is forgotten, and no others; nothing changes."""
    text, expected = STARTING[name]
    graph = hl.read(text)
    [node] = [node for node in graph.main.body.nodes if node.name == "stablehlo.while"]
    assert known_too_long(graph, node) == expected
    lowered = hl.lower(text, target=HIDING)
    hidden = 0 if text == NOTHING else sum(map(len, expected))  # what has no numbers begins as it stands
    assert lowered.text.count('"stablehlo.gather"') == hidden
    assert hl.verify(text, lowered).ok


# --- reductions of one computed number read the first of them ---

V, S = "tensor<4x33xf32>", "tensor<4xf32>"
ONE_NUMBER = target("npu", refused_forms=["reduce of one number computed"])


def reduction(of, body="", called="%c"):
    """A sum of rows, of a value made in @main or in the body of a private function that is called once."""
    row = f"%c = stablehlo.constant dense<0.3> : {V} %r = func.call @row({called}) : ({V}) -> {S}"
    total = f"stablehlo.reduce({of} init: %zero) applies stablehlo.add across dimensions = [1] : ({V}, {F}) -> {S}"
    return f"""{main(f"%x: {V}", row, f"%r : {S}")}func.func private @row(%p: {V}) -> {S} {{
  %zero = stablehlo.constant dense<0.0> : {F}
  %k = stablehlo.constant dense<0.7> : {F}
  {body}
  %s = {total}
  return %s : {S}
}}
func.func private @twice(%p: {V}) -> {V} {{ %q = stablehlo.add %p, %p : {V} return %q : {V} }}"""


EXP = f"%e = stablehlo.exponential %p : {V}"
SPREAD = f"%b = stablehlo.broadcast_in_dim %k, dims = [] : ({F}) -> {V}"
REDUCTIONS = {
    "an argument that is a constant at each call": (reduction("%e", EXP), True),
    "of it itself": (reduction("%p"), True),
    "of one element": (reduction("%p").replace("4x33x", "4x1x"), False),
    "spread and computed": (reduction("%e", f"{SPREAD} %e = stablehlo.sqrt %b : {V}"), True),
    "through a call": (reduction("%e", f"{SPREAD} %e = func.call @twice(%b) : ({V}) -> {V}"), True),
    "a constant": (reduction("%e", f"%e = stablehlo.constant dense<0.3> : {V}"), False),
    "spread": (reduction("%b", SPREAD), False),
    "an argument": (reduction("%e", EXP, called="%x"), False),
    "beside an argument": (reduction("%e", f"{SPREAD} %e = stablehlo.multiply %p, %b : {V}", called="%x"), False),
    "other numbers": (reduction("%e", f"%i = stablehlo.iota dim = 1 : {V} %e = stablehlo.negate %i : {V}"), False),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_one_computed_number_is_spread_again(name):
    """The same bits; what reads a tensor, a constant as it stands, or one element, stays as it was."""
    text, is_changed = REDUCTIONS[name]
    lowered = hl.lower(text, target=ONE_NUMBER)
    assert ("stablehlo.slice" in lowered.text) is is_changed
    if "4x33x" in text:
        assert_same(text, lowered, np.linspace(-2, 2, 132, dtype=np.float32).reshape(4, 33), rounding="exact")
