"""Update computations of any pure ops: control flow, tables, tuples, calls; and what is refused.

Each region is applied to one window and, in a loop, to two windows at one place. What is lowered runs in StableHLO's
interpreter and on XLA; a value by hand decides.
"""

import re

import ml_dtypes
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.run import Executable

F = "tensor<f32>"
OPERAND, UPDATES, START = np.asarray([3, 1, 4, 0, 5, 9], np.float32), np.asarray([2, 5], np.float32), 1
IF = f"""%p = stablehlo.compare LT, %a, %b : ({F}, {F}) -> tensor<i1>
    %n = "stablehlo.if"(%p) ({{
      stablehlo.return %b : {F}
    }}, {{
      %m = stablehlo.negate %a : {F}
      stablehlo.return %m : {F}
    }}) : (tensor<i1>) -> {F}"""
FUNCTIONS = f"""
  func.func private @larger(%a: {F}, %b: {F}) -> {F} {{
    {IF}
    return %n : {F}
  }}
  func.func private @twice(%a: {F}, %b: {F}) -> {F} {{
    %x = func.call @larger(%a, %b) : ({F}, {F}) -> {F}
    %y = func.call @larger(%x, %b) : ({F}, {F}) -> {F}
    return %y : {F}
  }}
  func.func private @both(%a: {F}, %b: {F}) -> {F} {{
    %x = func.call @twice(%a, %b) : ({F}, {F}) -> {F}
    %y = stablehlo.composite "test.larger" %x, %b {{decomposition = @larger}} : ({F}, {F}) -> {F}
    return %y : {F}
  }}"""


def larger(c, u):
    """What @larger computes."""
    return u if c < u else -c


def while_over(c, u):
    """The first value of c, c + u, c + 2 u, ... that is 20 or more."""
    while c < 20:
        c += u
    return c


REGIONS = {
    "power": (f"%n = stablehlo.power %c, %u : {F}", lambda c, u: c**u),
    "division": (f"%n = stablehlo.divide %u, %c : {F}", lambda c, u: np.divide(u, c)),
    "a case": (
        f"""%three = stablehlo.constant dense<3.0> : {F}
    %k = stablehlo.convert %u : ({F}) -> tensor<i32>
    %n = "stablehlo.case"(%k) ({{
      stablehlo.return %u : {F}
    }}, {{
      %x = stablehlo.subtract %c, %u : {F}
      stablehlo.return %x : {F}
    }}, {{
      %y = stablehlo.add %c, %three : {F}
      stablehlo.return %y : {F}
    }}) : (tensor<i32>) -> {F}""",
        lambda c, u: c + 3,
    ),
    "a while": (
        f"""%most = stablehlo.constant dense<20.0> : {F}
    %n = stablehlo.while(%v = %c) : {F}
      cond {{
        %p = stablehlo.compare LT, %v, %most : ({F}, {F}) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %x = stablehlo.add %v, %u : {F}
        stablehlo.return %x : {F}
      }}""",
        while_over,
    ),
    "a reduction": (
        f"""%b = stablehlo.broadcast_in_dim %u, dims = [] : ({F}) -> tensor<3xf32>
    %n = stablehlo.reduce(%b init: %c) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, {F}) -> {F}""",
        lambda c, u: c + 3 * u,
    ),
    "a table": (
        f"""%t = stablehlo.constant dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>
    %k = stablehlo.convert %u : ({F}) -> tensor<i32>
    %d = stablehlo.dynamic_slice %t, %k, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
    %r = stablehlo.reshape %d : (tensor<1xf32>) -> {F}
    %n = stablehlo.multiply %c, %r : {F}""",
        lambda c, u: c * [1, 2, 4, 8, 8, 8][int(u)],
    ),
    "a captured table": (
        f"""%k = stablehlo.convert %u : ({F}) -> tensor<i32>
    %d = stablehlo.dynamic_slice %table, %k, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
    %r = stablehlo.reshape %d : (tensor<1xf32>) -> {F}
    %n = stablehlo.add %c, %r : {F}""",
        lambda c, u: c + [1, 3, 9, 27, 27, 27][int(u)],
    ),
    "a captured argument": (
        f"""%k = stablehlo.convert %u : ({F}) -> tensor<i32>
    %d = stablehlo.dynamic_slice %op, %k, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
    %r = stablehlo.reshape %d : (tensor<1xf32>) -> {F}
    %n = stablehlo.add %c, %r : {F}""",
        lambda c, u: c + OPERAND[int(u)],
    ),
    "a captured scalar in a branch": (
        f"""%p = stablehlo.compare LT, %u, %c : ({F}, {F}) -> tensor<i1>
    %n = "stablehlo.if"(%p) ({{
      %x = stablehlo.add %c, %captured : {F}
      stablehlo.return %x : {F}
    }}, {{
      stablehlo.return %u : {F}
    }}) : (tensor<i1>) -> {F}""",
        lambda c, u: c + OPERAND[2] if u < c else u,
    ),
    "a tuple": (
        f"""%t = stablehlo.tuple %c, %u : tuple<{F}, {F}>
    %x = stablehlo.get_tuple_element %t[1] : (tuple<{F}, {F}>) -> {F}
    %n = stablehlo.subtract %x, %c : {F}""",
        lambda c, u: u - c,
    ),
    "a barrier": (
        f"%x, %y = stablehlo.optimization_barrier %c, %u : {F}, {F}\n    %n = stablehlo.subtract %x, %y : {F}".replace(
            "%x, %y =", "%x:2 ="
        ).replace("subtract %x, %y", "subtract %x#0, %x#1"),
        lambda c, u: c - u,
    ),
    "control flow in a function": (f"%n = func.call @larger(%c, %u) : ({F}, {F}) -> {F}", larger),
    "control flow in functions and a composite": (
        f"%n = func.call @both(%c, %u) : ({F}, {F}) -> {F}",
        lambda c, u: larger(larger(larger(c, u), u), u),
    ),
    "a call in a branch": (
        f"""%p = stablehlo.compare LT, %u, %c : ({F}, {F}) -> tensor<i1>
    %n = "stablehlo.if"(%p) ({{
      %x = func.call @larger(%c, %u) : ({F}, {F}) -> {F}
      stablehlo.return %x : {F}
    }}, {{
      stablehlo.return %u : {F}
    }}) : (tensor<i1>) -> {F}""",
        lambda c, u: larger(c, u) if u < c else u,
    ),
}
NOT_ON_XLA = {
    "a case": "XLA's CPU compiler aborts on three branches in the region of a scatter and of a map alike",
    "a while": "it does on a loop as well",
    "a captured argument": "XLA takes captured constants only (trap 44)",
}


def module(body, form, result="%n"):
    """A scatter with this region into six numbers: one window of two, or each of them after the other at one place."""
    window, rank, ivd = (
        ("update_window_dims = [0]", "1", 0) if form == "window" else ("inserted_window_dims = [0]", "2x1", 1)
    )
    return f"""module {{
  func.func public @main(%op: tensor<6xf32>, %i: tensor<{rank}xi32>, %up: tensor<2xf32>) -> tensor<6xf32> {{
    %taken = stablehlo.slice %op [2:3] : (tensor<6xf32>) -> tensor<1xf32>
    %captured = stablehlo.reshape %taken : (tensor<1xf32>) -> tensor<f32>
    %table = stablehlo.constant dense<[1.0, 3.0, 9.0, 27.0]> : tensor<4xf32>
    %s = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<{window},
      scatter_dims_to_operand_dims = [0], index_vector_dim = {ivd}>}}> ({{
    ^bb0(%c: {F}, %u: {F}):
    {body}
    stablehlo.return {result} : {F}
    }}) : (tensor<6xf32>, tensor<{rank}xi32>, tensor<2xf32>) -> tensor<6xf32>
    return %s : tensor<6xf32>
  }}{FUNCTIONS if "@" in body else ""}
}}"""


def by_hand(combine, form):
    """The result."""
    result = OPERAND.copy()
    with np.errstate(all="ignore"):
        for k, update in enumerate(UPDATES):
            at = START + k if form == "window" else START
            result[at] = combine(result[at], update)
    return result.tolist()


@pytest.fixture(scope="module")
def interpreter():
    """One child for this file."""
    with Interpreter() as child:
        yield child


@pytest.mark.few(7)
@pytest.mark.parametrize("form", ["window", "loop"])
@pytest.mark.parametrize("name", REGIONS)
def test_a_region_of_pure_ops(name, form, interpreter):
    """The region is applied to each element, whatever pure ops it has, and is lowered under both policies."""
    body, combine = REGIONS[name]
    text = module(body, form)
    start = np.asarray([START] if form == "window" else [[START]] * 2, np.int32)
    for oob in ("xla", "spec"):
        lowered = hl.lower(text, oob=oob).text
        assert "stablehlo.scatter" not in lowered
        assert interpreter.run(lowered, [OPERAND, start, UPDATES])[0].tolist() == by_hand(combine, form)
        if name not in NOT_ON_XLA:
            assert Executable(lowered, "exact").run([OPERAND, start, UPDATES])[0].tolist() == by_hand(combine, form)


def test_calls_are_put_into_a_map():
    """Control flow in a called function, which XLA does not take in a map, stands in the map itself."""
    lowered = hl.lower(module(REGIONS["control flow in functions and a composite"][0], "window")).text
    region = lowered[lowered.index('"stablehlo.map"') : lowered.index("dynamic_update_slice")]
    assert (region.count('"stablehlo.if"'), "call @" in region, "composite" in region) == (3, False, False)


@pytest.mark.parametrize(
    ("body", "result", "told"),
    [
        (
            "stablehlo.custom_call @log(%c) {has_side_effect = true} : (tensor<f32>) -> ()",
            "%u",
            "stablehlo.custom_call @log",
        ),
        (
            """%e = stablehlo.constant dense<> : tensor<0xi64>
    %n = stablehlo.rng %c, %u, %e, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>""",
            "%n",
            "stablehlo.rng",
        ),
        ("%n = func.call @draw(%c, %u) : (tensor<f32>, tensor<f32>) -> tensor<f32>", "%n", "stablehlo.rng"),
        (
            f'%n = stablehlo.composite "t.draw" %c, %u {{decomposition = @draw}} : ({F}, {F}) -> {F}',
            "%n",
            "stablehlo.rng",
        ),
    ],
    ids=["custom call", "rng", "rng in a function", "rng in a composite"],
)
def test_a_side_effect_is_refused(body, result, told):
    """How often a region runs is kept for no side effect, so a region with one is refused by the name of its op."""
    draw = """
  func.func private @draw(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %e = stablehlo.constant dense<> : tensor<0xi64>
    %n = stablehlo.rng %a, %b, %e, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    return %n : tensor<f32>
  }"""
    text = module(body, "window", result)
    if "@draw" in body:
        text = text.replace(FUNCTIONS, draw)
    with pytest.raises(hl.NotLoweredError, match="side effect in the update computation") as error:
        hl.lower(text)
    assert error.value.what.endswith(told)
    kept = hl.lower(text, keep_unsupported=True)
    assert (kept.scatters_left, kept.records[0].rule) == (1, "")


def test_a_custom_call_without_side_effects_is_a_pure_op():
    """Its region goes through stablehlo.map like that of any other op that nothing lifts."""
    body = "%n = stablehlo.custom_call @nobody_knows(%c, %u) : (tensor<f32>, tensor<f32>) -> tensor<f32>"
    lowered = hl.lower(module(body, "window")).text
    assert ("stablehlo.map" in lowered, "stablehlo.scatter" in lowered) == (True, False)


def test_a_composite_in_a_region_is_verified():
    """The function that a composite stands for comes with the scatter into its region."""
    body = f'%n = stablehlo.composite "test.larger" %c, %u {{decomposition = @larger}} : ({F}, {F}) -> {F}'
    text = module(body, "window")
    verdict = hl.verify(text, hl.lower(text))
    assert verdict.ok
    assert [(region.status, region.scatters) for region in verdict.regions] == [("equal", (1,))]


@pytest.mark.parametrize("form", ["window", "loop"])
def test_a_scatter_in_the_region_of_a_scatter(form):
    """A region that scatters itself is lowered from the inside out, and computes what it says."""
    body = """%none = stablehlo.constant dense<> : tensor<0xi32>
    %n = "stablehlo.scatter"(%c, %none, %u) <{scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = 0>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<f32>, tensor<0xi32>, tensor<f32>) -> tensor<f32>"""
    lowered = hl.lower(module(body, form))
    assert "stablehlo.scatter" not in lowered.text
    assert lowered.text == hl.lower(module("%n = stablehlo.add %c, %u : tensor<f32>", form)).text


def test_a_map_takes_only_what_its_result_is_made_of():
    """Of a variadic region, each result's map has the inputs and the ops that it needs, so XLA takes both types."""
    text = """func.func public @main(%a: tensor<4xf32>, %b: tensor<4xbf16>, %i: tensor<1xi32>, %x: tensor<2xf32>,
    %y: tensor<2xbf16>) -> (tensor<4xf32>, tensor<4xbf16>) {
  %r:2 = "stablehlo.scatter"(%a, %b, %i, %x, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<bf16>, %u: tensor<f32>, %v: tensor<bf16>):
    %p = stablehlo.compare LT, %c, %u : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = "stablehlo.if"(%p) ({
      stablehlo.return %u : tensor<f32>
    }, {
      stablehlo.return %c : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    %n = stablehlo.add %d, %v : tensor<bf16>
    stablehlo.return %m, %n : tensor<f32>, tensor<bf16>
  }) : (tensor<4xf32>, tensor<4xbf16>, tensor<1xi32>, tensor<2xf32>, tensor<2xbf16>) -> (tensor<4xf32>, tensor<4xbf16>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xbf16>
}
"""
    lowered = hl.lower(text).text
    types = re.findall(r"\^bb0\((.*)\):", lowered)
    assert [told.count("bf16") for told in types] == [0, 2]
    bf16 = ml_dtypes.bfloat16
    arguments = [np.arange(4, dtype=np.float32), np.ones(4, bf16), np.array([1], np.int32)]
    arguments += [np.array([9, 0], np.float32), np.array([2, 3], bf16)]
    first, second = Executable(lowered, "exact").run(arguments)
    assert (first.tolist(), second.tolist()) == ([0, 9, 2, 3], [1, 3, 4, 1])
