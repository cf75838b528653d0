"""Pieces of few bits are evaluated for every input: equal for all is derived, one bit pattern that differs is shown."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import region_proofs, verify
from hlo_lower.verify.judges import every_input, kept
from hlo_lower.verify.judges.every_input import Evaluation, evaluate_every_input
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.run import Executable

DERIVES = True

SUM, PRODUCT = "%r = add %t, %t", "%c = constant 2.0 : {0}; %r = multiply %t, %c"


def texts(arguments, *bodies):
    """Modules of one signature."""
    return [module(arguments, body) for body in bodies]


def asked(arguments, *bodies, within=()):
    """What the evaluation of two bodies says."""
    return evaluate_every_input(*texts(arguments, *bodies), dict(within), shared_interpreter())


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        ("%t: 3xbf16", SUM, PRODUCT.format("3xbf16")),
        ("%t: 2x5xf16, %u: f16", SUM, PRODUCT.format("2x5xf16")),
        ("%x: 2x3xbf16", "%n = negate %x; %r = maximum %x, %n", "%r = abs %x"),  # XLA flushes subnormal numbers
        (
            "%x: 4xi8, %y: i8",
            "%f = convert %x -> 4xf32; %g = convert %y -> f32; %b = broadcast_in_dim %g, dims = [] -> 4xf32\n"
            "%p = multiply %f, %b; %r = convert %p -> 4xi32",
            "%f = convert %x -> 4xi32; %g = convert %y -> i32; %b = broadcast_in_dim %g, dims = [] -> 4xi32\n"
            "%r = multiply %f, %b",
        ),
    ],
)
def test_what_no_law_says_is_derived(arguments, first, second):
    """x + x is 2 x, and a product of i8 is exact in f32: there are 65,536 of each."""
    verdict = verify(*texts(arguments, first, second), level="regions", require="derived")
    assert verdict.exit_code == 0, verdict.lines()
    assert [(r.how, r.laws, r.runs) for r in verdict.regions] == [("derived", ("every input",), 0)]


ODD = """%i = bitcast_convert %t -> {0}xi16; %k = constant 21555 : {0}xi16; %e = constant 15 : {0}xi16
%one = constant 1 : {0}xi16; %h = xor %i, %k; %n = negate %h; %o = or %h, %n; %m = shift_right_logical %o, %e
%z = xor %m, %one; %j = xor %i, %z; %r = bitcast_convert %j -> {0}xKIND"""
"""Turns the lowest bit of 21,555 and of nothing else, which no comparison tells."""


@pytest.mark.parametrize(("kind", "size"), [("f16", 3), ("bf16", 40)])
def test_one_bit_pattern_that_differs_is_shown(kind, size, monkeypatch, tmp_path):
    """One input of 65,536 is another result: the verdict holds it, however large the region is, and without the
    evaluation no run has it."""
    same = "%m = negate %t; %r = negate %m"
    both = texts(f"%t: {size}x{kind}", same, ODD.format(size).replace("KIND", kind))
    verdict = verify(*both, level="regions")
    assert verdict.exit_code == 1, verdict.lines()
    [region] = verdict.regions
    assert region.difference.startswith("every input: XLA says result 0 at [0]: ")
    assert set(region.inputs[0].view(np.uint16)) == {0, 21555}  # made small: zeros elsewhere
    [first], [second] = (Executable(text, "exact").run([region.inputs[0]]) for text in both)
    assert first.tobytes() != second.tobytes()
    monkeypatch.setattr(kept, "MOST_BYTES", 0)  # what is too large is not kept, and evaluated again
    assert [verify(*both, level="regions", cache=tmp_path).exit_code for _ in range(2)] == [1, 1]
    monkeypatch.setattr(region_proofs, "evaluate_every_input", lambda *given: None)
    kept.forget_judgements()
    assert verify(*both, level="regions").exit_code == 0


def test_a_pattern_that_cannot_come_is_no_difference():
    """Between the numbers that an input keeps to both are the same, beyond them they are not."""
    bodies = "%c = constant 9 : 3xi16; %r = minimum %t, %c", "%r = add %t, 0"
    assert asked("%t: 3xi16", *bodies, within={0: (-5, 9)}) == Evaluation(is_equal=True)
    found = asked("%t: 3xi16", *bodies, within={0: (-5, 10)})
    assert (found.is_equal, found.inputs[0].tolist()) == (False, [10, 10, 10])


NOT_EVALUATED = {
    "17 bits": ("%a: 3xi8, %b: 3xf8E4M3FN, %p: 3xi1", "%f = convert %a -> 3xf32; %r = add %f, %f"),
    "a dim": ("%t: 4xi8, %x: 4x4xi8", "%b = broadcast_in_dim %t, dims = [1] -> 4x4xi8; %r = add %b, %x"),
    "places": ("%t: 4xf16", "%r = reverse %t, dims = [0]"),
    "a sum": ("%t: 4xf16", "%z = constant 0.0 : f16; %r = reduce(%t, %z) <dimensions = array<i64: 0>> {add} -> f16"),
    "numbers": ("%t: 2xf16", "%c = constant [1.0, 2.0] : 2xf16; %r = add %t, %c"),
    "halves": ("%t: 2xf16", "%r = bitcast_convert %t -> 2x2xi8"),
    "free rounding": ("%t: 2xf16", "%r = tanh %t"),
    "parts": ("%t: 2xbf16", "%f = convert %t -> 2xf32; %c = complex %f, %f : 2xcomplex<f32>; %r = real %c -> 2xf32"),
    "much work": ("%t: 2xf16", "\n".join(f"%r{k} = negate %{f'r{k - 1}' if k else 't'}" for k in range(40))),
}


@pytest.mark.parametrize("case", NOT_EVALUATED)
def test_what_is_not_evaluated(case):
    """More bits, elements of other places, and what each compiler rounds in its own way: nothing is known of them."""
    arguments, body = NOT_EVALUATED[case]
    both = [module(arguments, body, "%r39" if case == "much work" else "%r")] * 2
    assert evaluate_every_input(*both, {}, shared_interpreter()) is None


def test_16_bits_of_three_inputs_are_evaluated():
    """Beside the case of 17 bits: i8, i4 and i4."""
    assert asked("%a: 3xi8, %b: 3xi4, %p: 3xi4", *["%f = convert %a -> 3xf32; %r = add %f, %f"] * 2).is_equal


def test_what_only_the_interpreter_tells_apart_is_not_derived():
    """XLA takes subnormal numbers for zeros: a piece that is right there alone is neither derived nor refuted."""
    tiny = "%c = constant 0x0080 : 3xbf16; %s = abs %t; %p = compare LT, %s, %c, FLOAT; %z = constant 0.0 : 3xbf16"
    both = "%r = add %t, %t", f"{tiny}; %u = multiply %t, %z; %v = select %p, %u, %t; %r = add %v, %v"
    assert asked("%t: 3xbf16", *both) == Evaluation(is_equal=False)
    assert verify(*texts("%t: 3xbf16", *both), level="regions").counts().keys() <= {"tested", "only run"}


@pytest.mark.parametrize("left_out", ["why_xla_aborts", "why_xla_errs_in", "why_interpreter_errs", "_is_misread"])
def test_a_judge_that_is_left_out_derives_nothing(monkeypatch, left_out):
    """Where XLA or the interpreter is known to be wrong of an op, the pieces are not evaluated."""
    monkeypatch.setattr(every_input, left_out, lambda *given: "it is wrong there")
    assert asked("%t: 3xbf16", SUM, SUM) is None
