"""Widening: a piece that is right only for inputs that can come is judged with what computes them."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import verify
from hlo_lower.verify.align import corrections

CLAMP = "%lo = constant 0 : i32; %hi = constant {} : i32; %j = clamp %lo, %i, %hi\n"
SCATTER = "%at = reshape %j -> 1xi32; %r = scatter(%o, %at, %u) <window=[0], to=[0]> {%c, %d: return %d}"
UPDATE = "%r = dynamic_update_slice %o, %u, %j"


def judged(before, first=SCATTER, second=UPDATE, arguments="%o: 8xf32, %i: i32, %u: 3xf32", **how):
    """The verdict on two modules that compute the same before."""
    return verify(*(module(arguments, before + body) for body in (first, second)), level="regions", **how)


def test_a_clamp_makes_an_unguarded_update_right():
    """An update of a slice clamps and a scatter drops: with the clamp inside both are the same function."""
    verdict = judged(CLAMP.format(5))
    assert verdict.ok, verdict.lines()
    [region] = verdict.regions
    assert (region.status, region.how, region.scatters) == ("equal", "widened", (1,))
    assert region.producers > 0
    assert "equal with 3 producers of its inputs" in "\n".join(verdict.lines())


@pytest.mark.parametrize("last", [6, 7, 2_000_000])
def test_a_clamp_that_is_too_wide_does_not(last):
    """A clamp that lets a window overhang leaves a difference, which comes with arguments that show it."""
    verdict = judged(CLAMP.format(last))
    [region] = verdict.regions
    assert (verdict.ok, region.status) == (False, "differs")
    assert int(region.inputs[1]) > 5


REMAINDER = """%n = constant 6 : i32; %lo = constant 0 : i32; %m = remainder %i, %n; %s = compare LT, %m, %lo
%up = constant {} : i32; %t = add %m, %up; %j = select %s, %t, %m
"""
GUARDED = """%five = constant 5 : i32; %c = clamp %lo, %j, %five; %p = compare EQ, %c, %j
%v = dynamic_slice %o, %c, sizes = [3]; %w = select %p, %u, %v; %r = dynamic_update_slice %o, %w, %c"""
HASHED = """%k = constant 7919 : i32; %h = multiply %i, %k; %x = constant 123456 : i32; %g = xor %h, %x
%lo = constant 0 : i32; %q = multiply %g, %g; %w = constant 305419896 : i32; %e = compare EQ, %q, %w
%far = constant 9 : i32; %j = select %e, %far, %lo
"""


@pytest.mark.parametrize("write", [UPDATE, GUARDED])
def test_what_cannot_come_before_a_region_is_not_asked_for(write):
    """A remainder lies in 0 to 5, so no run has a guard that is false, and none need have one."""
    verdict = judged(REMAINDER.format(6), second=write)
    assert verdict.ok, verdict.lines()


def test_what_can_come_is():
    """Where the remainder may be -1, or 6, an update without a guard differs, and where one number in 2^32 is out of
    bounds it is not equal: what is taken for impossible is no more than intervals say."""
    assert judged(REMAINDER.format(4)).differs
    assert judged(REMAINDER.format(7)).differs
    assert not judged(HASHED).ok


NARROW = "%k = constant 100 : 8xi8; %s = add %a, %k; %r = convert %s -> 8xi32"
WIDE = "%w = convert %a -> 8xi32; %k = constant 100 : 8xi32; %r = add %w, %k"


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 20))])
def test_a_sum_that_wraps_around_is_not_a_wider_one(seed):
    """s + 100 in 8 bits is another number than s + 100 in 32 for 100 of 256 values, whatever the seed."""
    verdict = judged("", NARROW, WIDE, "%a: 8xi8", seed=seed)
    assert (verdict.differs, {region.status for region in verdict.regions}) == (True, {"differs"})


@pytest.mark.parametrize(("most", "ok"), [("27", True), ("28", False), ("63", False)])
def test_a_sum_that_cannot_wrap_around_is(most, ok):
    """Behind a minimum with 27 the sum stays within 8 bits; behind one with 28 it may be 128."""
    limit = f"%z = constant 0 : 8xi8; %m = constant {most} : 8xi8; %a = clamp %z, %b, %m\n"
    verdict = judged(limit, NARROW, WIDE, "%b: 8xi8")
    assert verdict.ok == ok, verdict.lines()
    assert {(r.status, r.how) for r in verdict.regions} == {("equal", "widened") if ok else ("differs", "as it stands")}


@pytest.mark.parametrize(("turns", "ok"), [(4, True), (6, False)])
def test_a_region_in_a_loop_is_widened_to_the_loop(turns, ok):
    """What is right only for the loop's own carried values is judged with the loop around it."""
    loop = f"""%s = constant 0 : i32
    %r:2 = while(%k = %s, %x = %o) cond {{ %n = constant {turns} : i32; %p = compare LT, %k, %n; return %p }} do {{
      %one = constant 1 : i32; %next = add %k, %one; %j = add %k, %one
      WRITE
      return %next, %r }}"""
    texts = (module("%o: 8xf32, %u: 3xf32", loop.replace("WRITE", write), "%r#1") for write in (SCATTER, UPDATE))
    verdict = verify(*texts, level="regions")
    assert (verdict.ok, verdict.differs) == (ok, not ok), verdict.lines()


@pytest.mark.filterwarnings("error")
def test_what_is_sought_of_a_complex_value_is_its_real_part():
    """Without a word on standard error: what the user sees is the verdict."""
    np.testing.assert_array_equal(corrections._cast(np.asarray([1 + 2j]), np.dtype(np.float32)), [1.0])
