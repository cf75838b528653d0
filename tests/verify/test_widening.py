"""Widening: a piece that is right only for inputs that can come is judged with what computes them."""

import numpy as np
import pytest
from two_programs import F8, main

from hlo_lower.verify import verify
from hlo_lower.verify.align import corrections

CLAMP = """%lo = stablehlo.constant dense<0> : tensor<i32>
%hi = stablehlo.constant dense<{0}> : tensor<i32>
%j = stablehlo.clamp %lo, %i, %hi : tensor<i32>
"""
SCATTER = """%at = stablehlo.reshape %j : (tensor<i32>) -> tensor<1xi32>
%r = "stablehlo.scatter"(%o, %at, %u) <{scatter_dimension_numbers =
  #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>): stablehlo.return %d : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<8xf32>"""
UPDATE = """%r = stablehlo.dynamic_update_slice %o, %u, %j :
  (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>"""
ARGUMENTS = "%o: tensor<8xf32>, %i: tensor<i32>, %u: tensor<3xf32>"


def test_a_clamp_makes_an_unguarded_update_right():
    """An update of a slice clamps and a scatter drops: with the clamp inside both are the same function."""
    verdict = verify(*(main(ARGUMENTS, CLAMP.format(5) + write, "%r") for write in (SCATTER, UPDATE)), level="regions")
    assert verdict.ok, verdict.lines()
    [region] = verdict.regions
    assert (region.status, region.how, region.scatters) == ("equal", "widened", (1,))
    assert region.producers > 0
    assert "equal with 3 producers of its inputs" in "\n".join(verdict.lines())


@pytest.mark.parametrize("last", [6, 7, 2_000_000])
def test_a_clamp_that_is_too_wide_does_not(last):
    """A clamp that lets a window overhang leaves a difference, which comes with arguments that show it."""
    verdict = verify(
        *(main(ARGUMENTS, CLAMP.format(last) + write, "%r") for write in (SCATTER, UPDATE)), level="regions"
    )
    [region] = verdict.regions
    assert (verdict.ok, region.status) == (False, "differs")
    assert int(region.inputs[1]) > 5


REMAINDER = """%n = stablehlo.constant dense<6> : tensor<i32>
%lo = stablehlo.constant dense<0> : tensor<i32>
%m = stablehlo.remainder %i, %n : tensor<i32>
%s = stablehlo.compare LT, %m, %lo : (tensor<i32>, tensor<i32>) -> tensor<i1>
%up = stablehlo.constant dense<{0}> : tensor<i32>
%t = stablehlo.add %m, %up : tensor<i32>
%j = stablehlo.select %s, %t, %m : tensor<i1>, tensor<i32>
"""
GUARDED = """%five = stablehlo.constant dense<5> : tensor<i32>
%c = stablehlo.clamp %lo, %j, %five : tensor<i32>
%p = stablehlo.compare EQ, %c, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
%v = stablehlo.dynamic_slice %o, %c, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>
%w = stablehlo.select %p, %u, %v : tensor<i1>, tensor<3xf32>
%r = stablehlo.dynamic_update_slice %o, %w, %c : (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>"""


@pytest.mark.parametrize("write", [UPDATE, GUARDED])
def test_what_cannot_come_before_a_region_is_not_asked_for(write):
    """A remainder lies in 0 to 5, so no run has a guard that is false, and none need have one."""
    texts = [main(ARGUMENTS, REMAINDER.format(6) + body, "%r") for body in (SCATTER, write)]
    verdict = verify(*texts, level="regions")
    assert verdict.ok, verdict.lines()


@pytest.mark.parametrize("more", [4, 7])
def test_what_can_come_is(more):
    """Where the remainder may be -1, or 6, an update without a guard differs."""
    texts = [main(ARGUMENTS, REMAINDER.format(more) + body, "%r") for body in (SCATTER, UPDATE)]
    assert verify(*texts, level="regions").differs


def test_what_is_taken_for_impossible_is_no_more_than_intervals_say():
    """A guard that is false for one number in 2^32 is not equal to none."""
    odd = """%k = stablehlo.constant dense<7919> : tensor<i32>
%h = stablehlo.multiply %i, %k : tensor<i32>
%x = stablehlo.constant dense<123456> : tensor<i32>
%g = stablehlo.xor %h, %x : tensor<i32>
%lo = stablehlo.constant dense<0> : tensor<i32>
%q = stablehlo.multiply %g, %g : tensor<i32>
%w = stablehlo.constant dense<305419896> : tensor<i32>
%e = stablehlo.compare EQ, %q, %w : (tensor<i32>, tensor<i32>) -> tensor<i1>
%far = stablehlo.constant dense<9> : tensor<i32>
%j = stablehlo.select %e, %far, %lo : tensor<i1>, tensor<i32>
"""
    verdict = verify(*(main(ARGUMENTS, odd + body, "%r") for body in (SCATTER, UPDATE)), level="regions")
    assert not verdict.ok


NARROW = """%k = stablehlo.constant dense<100> : tensor<8xi8>
%s = stablehlo.add %a, %k : tensor<8xi8>
%r = stablehlo.convert %s : (tensor<8xi8>) -> tensor<8xi32>"""
WIDE = """%w = stablehlo.convert %a : (tensor<8xi8>) -> tensor<8xi32>
%k = stablehlo.constant dense<100> : tensor<8xi32>
%r = stablehlo.add %w, %k : tensor<8xi32>"""


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 20))])
def test_a_sum_that_wraps_around_is_not_a_wider_one(seed):
    """s + 100 in 8 bits is another number than s + 100 in 32 for 100 of 256 values, whatever the seed."""
    texts = [main("%a: tensor<8xi8>", body, "%r", "tensor<8xi32>") for body in (NARROW, WIDE)]
    verdict = verify(*texts, level="regions", seed=seed)
    assert (verdict.differs, {region.status for region in verdict.regions}) == (True, {"differs"})


@pytest.mark.parametrize(("most", "ok"), [("27", True), ("28", False), ("63", False)])
def test_a_sum_that_cannot_wrap_around_is(most, ok):
    """Behind a minimum with 27 the sum stays within 8 bits; behind one with 28 it may be 128."""
    limit = f"""%z = stablehlo.constant dense<0> : tensor<8xi8>
%m = stablehlo.constant dense<{most}> : tensor<8xi8>
%a = stablehlo.clamp %z, %b, %m : tensor<8xi8>
"""
    texts = [main("%b: tensor<8xi8>", limit + body, "%r", "tensor<8xi32>") for body in (NARROW, WIDE)]
    verdict = verify(*texts, level="regions")
    assert verdict.ok == ok, verdict.lines()
    assert {(r.status, r.how) for r in verdict.regions} == {("equal", "widened") if ok else ("differs", "as it stands")}


def test_a_region_in_a_loop_is_widened_to_the_loop():
    """What is right only for the loop's own carried values is judged with the loop around it."""
    loop = f"""%s = stablehlo.constant dense<0> : tensor<i32>
%w:2 = stablehlo.while(%k = %s, %x = %o) : tensor<i32>, {F8} cond {{
  %n = stablehlo.constant dense<4> : tensor<i32>
  %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}} do {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %k, %one : tensor<i32>
  %j = stablehlo.add %k, %one : tensor<i32>
  WRITE
  stablehlo.return %next, %r : tensor<i32>, {F8}
}}"""
    before, after = (
        main(f"%o: {F8}, %u: tensor<3xf32>", loop.replace("WRITE", write), "%w#1") for write in (SCATTER, UPDATE)
    )
    verdict = verify(before, after, level="regions")
    assert verdict.ok, verdict.lines()
    verdict = verify(*(text.replace("dense<4>", "dense<6>") for text in (before, after)), level="regions")
    assert verdict.differs, verdict.lines()


@pytest.mark.filterwarnings("error")
def test_what_is_sought_of_a_complex_value_is_its_real_part():
    """Without a word on standard error: what the user sees is the verdict."""
    np.testing.assert_array_equal(corrections._cast(np.asarray([1 + 2j]), np.dtype(np.float32)), [1.0])
