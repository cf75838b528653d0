"""Update computations of any pure ops: what is lifted to windows, what goes through stablehlo.map, what is refused.

Each region is applied to one window and, in a loop, to two windows at one place, which is given or a constant. What is
lowered runs in StableHLO's interpreter and on XLA; a value by hand decides.
"""

import re
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.run import Executable

OPERAND, UPDATES, START = np.asarray([3, 1, 4, 0, 5, 9], np.float32), np.asarray([2, 5], np.float32), 1
IF = """%p = compare LT, %c, %u
    %n = if(%p) {
      return %u
    } {
      %m = negate %c
      return %m
    }"""
NOTE = '%{} = custom_call @Sharding(%{}) {{mhlo.sharding = "{{replicated}}"}} -> f32\n'
"""Where a scalar is to live: a name for it, and the scalar."""
AB, CALL = "%c: f32, %u: f32", "call @{}(%c, %u) -> f32"
RNG = "%e = constant [] : 0xi64; %n = rng %c, %u, %e, distribution = UNIFORM -> f32"
FUNCTIONS = "".join(
    function(f"private @{name}", AB, f"{lines}\nreturn %n")
    for name, lines in {
        "larger": IF,
        "mean": "%s = add %c, %u; %n = multiply %s, 0.5",
        "twice": "%x = call @larger(%c, %u) -> f32; %n = call @larger(%x, %u) -> f32",
        "both": '%x = call @twice(%c, %u) -> f32; %n = composite "test.larger" %x, %u {decomposition = @larger} -> f32',
        "draw": RNG,
    }.items()
)


LOOKED_UP = "%k = convert %u -> i32; %d = dynamic_slice {}, %k, sizes = [1]; %r = reshape %d -> f32; %n = {} %c, %r"
"""An element of a table that the update numbers."""


def larger(c, u):
    """What @larger computes."""
    return u if c < u else -c


def while_over(c, u):
    """The first value of c, c + u, c + 2 u, ... that is 20 or more."""
    while c < 20:
        c += u
    return c


LIFTED = {
    "power": ("%n = power %c, %u", lambda c, u: c**u),
    "division": ("%n = divide %u, %c", lambda c, u: np.divide(u, c)),
    "constant inside": ("%m = multiply %u, 0.5; %n = add %c, %m", lambda c, u: c + u / 2),
    "captured value": ("%n = add %c, %captured", lambda c, u: c + OPERAND[2]),
    "call": (f"%n = {CALL.format('mean')}", lambda c, u: (c + u) / 2),
    "notes": (
        f"{NOTE.format('d', 'c')}{NOTE.format('v', 'u')}%x, %y = optimization_barrier %d, %v\n%s = subtract %x, %y\n"
        f"{NOTE.format('n', 's')}",
        lambda c, u: c - u,
    ),
}
"""Elementwise regions, which become ops on windows."""
MAPPED = {
    "an if": (IF, larger),
    "an if with a note": (NOTE.format("w", "c") + IF.replace("negate %c", "negate %w"), larger),
    "an if with a captured constant": (
        IF.replace("negate %c", "add %c, %four"),
        lambda c, u: u if c < u else c + np.float32(4),
    ),
    "a case": (
        """%k = convert %u -> i32
    %n = case(%k) {
      return %u
    } {
      %x = subtract %c, %u; return %x
    } {
      %y = add %c, 3.0; return %y
    }""",
        lambda c, u: c + 3,
    ),
    "a while": ("%n = while(%v = %c) cond { %p = compare LT, %v, 20.0; return %p } do { %x = add %v, %u; return %x }",
                while_over),
    "a reduction": (
        "%b = broadcast_in_dim %u, dims = [] -> 3xf32\n"
        "%n = reduce(%b init: %c) applies stablehlo.add across dimensions = [0]",
        lambda c, u: c + 3 * u,
    ),
    "a table": ("%t = constant [1.0, 2.0, 4.0, 8.0] : 4xf32\n" + LOOKED_UP.format("%t", "multiply"),
                lambda c, u: c * [1, 2, 4, 8, 8, 8][int(u)]),
    "a captured argument": (LOOKED_UP.format("%op", "add"), lambda c, u: c + OPERAND[int(u)]),
    "a captured scalar in a branch": (
        "%p = compare LT, %u, %c; %n = if(%p) { %x = add %c, %captured; return %x } { return %u }",
        lambda c, u: c + OPERAND[2] if u < c else u,
    ),
    "a tuple": (
        "%t = tuple %c, %u : tuple<tensor<f32>, tensor<f32>>\n"
        "%x = get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<f32>>) -> f32\n"
        "%n = subtract %x, %c",
        lambda c, u: u - c,
    ),
    "control flow in functions and a composite": (
        f"%n = {CALL.format('both')}",
        lambda c, u: larger(larger(larger(c, u), u), u),
    ),
    "a call in a branch": (
        f"%p = compare LT, %u, %c; %n = if(%p) {{ %x = {CALL.format('larger')}; return %x }} {{ return %u }}",
        lambda c, u: larger(c, u) if u < c else u,
    ),
}  # fmt: skip
"""Regions that go through stablehlo.map."""
NOT_ON_XLA = {"a case", "a while", "a captured argument"}
"""XLA's CPU compiler aborts on loops and on three branches in regions, and captures constants only (trap 44)."""


def scattered(form, *bodies, result="%n"):
    """Scatters with these regions into six numbers: one window of two, or each of them after the other at one place."""
    numbers, shape, start = "window=[0], ivd=0", "1", [START]
    if "loop" in form:
        numbers, shape, start = "inserted=[0], ivd=1", "2x1", [[START]] * 2
    lines = f"""%taken = slice %op [2:3]; %captured = reshape %taken -> f32; %four = constant 4.0 : f32
        %table = constant [1.0, 3.0, 9.0, 27.0] : 4xf32; %at = constant {start} : {shape}xi32\n"""
    places = "%at" if "constant" in form else "%i"
    for k, body in enumerate(bodies):
        lines += f"%r{k} = scatter(%op, {places}, %up) <{numbers}, to=[0]> {{ %c, %u:\n{body}\nreturn {result}\n}}\n"
    returned = ", ".join(f"%r{k}" for k in range(len(bodies)))
    return module(f"%op: 6xf32, %i: {shape}xi32, %up: 2xf32", lines, returned) + FUNCTIONS * ("@" in lines)


def by_hand(combine, form):
    """The result."""
    result = OPERAND.copy()
    with np.errstate(all="ignore"):
        for k, update in enumerate(UPDATES):
            at = START if "loop" in form else START + k
            result[at] = combine(result[at], update)
    return result.tolist()


@pytest.fixture(scope="module")
def interpreter():
    """One child for this file."""
    with Interpreter() as child:
        yield child


@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("form", ["window", "loop", "constant window", "constant loop"])
def test_regions_of_pure_ops(form, oob, interpreter):
    """The region is applied to each element, whatever pure ops it has; what is elementwise becomes ops on windows."""
    arguments = [OPERAND, np.asarray([[START]] * 2 if "loop" in form else [START], np.int32), UPDATES]
    for regions in (LIFTED, MAPPED, {name: MAPPED[name] for name in MAPPED.keys() - NOT_ON_XLA}):
        lowered = hl.lower(scattered(form, *(body for body, _ in regions.values())), oob=oob).text
        assert [op for op in ("stablehlo.scatter", "Sharding") if op in lowered] == []
        assert lowered.count('"stablehlo.map"') % len(regions) == 0
        assert ("stablehlo.map" in lowered) is (regions is not LIFTED)
        run = partial(interpreter.run, lowered) if regions is MAPPED else Executable(lowered, "exact").run
        found = dict(zip(regions, (result.tolist() for result in run(arguments)), strict=True))
        assert found == {name: by_hand(combine, form) for name, (_, combine) in regions.items()}


def test_calls_are_put_into_a_map():
    """Control flow in a called function, which XLA does not take in a map, stands in the map itself."""
    lowered = hl.lower(scattered("window", MAPPED["control flow in functions and a composite"][0])).text
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
        (RNG, "%n", "stablehlo.rng"),
        (f"%n = {CALL.format('draw')}", "%n", "stablehlo.rng"),
        ('%n = composite "t.draw" %c, %u {decomposition = @draw} -> f32', "%n", "stablehlo.rng"),
    ],
    ids=["custom call", "rng", "rng in a function", "rng in a composite"],
)
def test_a_side_effect_is_refused(body, result, told):
    """How often a region runs is kept for no side effect, so a region with one is refused by the name of its op."""
    text = scattered("window", body, result=result)
    with pytest.raises(hl.NotLoweredError, match="side effect in the update computation") as error:
        hl.lower(text)
    assert error.value.what.endswith(told)
    kept = hl.lower(text, keep_unsupported=True)
    assert (kept.scatters_left, kept.records[0].rule) == (1, "")


def test_a_custom_call_without_side_effects_is_a_pure_op():
    """Its region goes through stablehlo.map like that of any other op that nothing lifts."""
    lowered = hl.lower(scattered("window", "%n = custom_call @nobody_knows(%c, %u) -> f32")).text
    assert ("stablehlo.map" in lowered, "stablehlo.scatter" in lowered) == (True, False)


def test_a_composite_in_a_region_is_verified():
    """The function that a composite stands for comes with the scatter into its region."""
    text = scattered("window", '%n = composite "test.larger" %c, %u {decomposition = @larger} -> f32')
    verdict = hl.verify(text, hl.lower(text), level="regions")
    assert verdict.ok
    assert [(region.status, region.scatters) for region in verdict.regions] == [("equal", (1,))]


@pytest.mark.parametrize("form", ["window", "loop"])
def test_a_scatter_in_the_region_of_a_scatter(form):
    """A region that scatters itself is lowered from the inside out, and computes what it says."""
    lowered = hl.lower(scattered(form, "%none = constant [] : 0xi32; %n = scatter(%c, %none, %u) <ivd=0> {add}"))
    assert "stablehlo.scatter" not in lowered.text
    assert lowered.text == hl.lower(scattered(form, "%n = add %c, %u")).text


def test_a_map_takes_only_what_its_result_is_made_of():
    """Of a variadic region, each result's map has the inputs and the ops that it needs, so XLA takes both types."""
    lines = f"""%s, %t = scatter(%a, %b, %i, %x, %y) <window=[0], to=[0]> {{ %c, %d, %u, %v:
          {IF}
          %m2 = add %d, %v; return %n, %m2
        }}
        return %s, %t"""
    lowered = hl.lower(module("%a: 4xf32, %b: 4xbf16, %i: 1xi32, %x: 2xf32, %y: 2xbf16", lines)).text
    types = re.findall(r"\^bb0\((.*)\):", lowered)
    assert [told.count("bf16") for told in types] == [0, 2]
    bf16 = ml_dtypes.bfloat16
    arguments = [np.arange(4, dtype=np.float32), np.ones(4, bf16), np.array([1], np.int32)]
    arguments += [np.array([9, -5], np.float32), np.array([2, 3], bf16)]
    first, second = Executable(lowered, "exact").run(arguments)
    assert (first.tolist(), second.tolist()) == ([0, 9, -2, 3], [1, 3, 4, 1])
