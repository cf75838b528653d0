"""`verify(..., prove=True)`: regions that are proved, and differences that no drawn run has and a proof finds."""

import numpy as np
import pytest
from two_programs import scattering
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify
from hlo_lower.verify.run import Executable

pytest.importorskip("z3")

DERIVES = True

SUM, OTHER_ORDER = "%s = add %a, %b; %r = add %s, %a", "%s = add %a, %a; %r = add %b, %s"


def texts(*bodies, kind="2xi32", returned="%r"):
    """Modules of two vectors."""
    return [module(f"%a: {kind}, %b: {kind}", body, returned) for body in bodies]


RARELY = """%c = constant 13 : 2xi32; %d = constant 7 : 2xi32; %e = shift_right_logical %t, %c; %m = xor %t, %e
%f = shift_left %m, %d; %h = xor %m, %f; %k = constant 987654321 : 2xi32; %is = compare EQ, %h, %k, SIGNED
%not = not %t; %r = select %is, %not, %t"""
ARGUMENT = texts("", returned="%a") + texts(RARELY.replace("%t", "%a"))
COMPUTED = texts(SUM, f"{SUM.replace('%r', '%t')}\n{RARELY}")


@pytest.mark.parametrize("both", [ARGUMENT, COMPUTED])
def test_a_difference_that_no_run_has_is_found_by_the_solver(both):
    """One number of 2^32, that stands nowhere in the module, is in no run; a model has it, with arguments."""
    verdict = verify(*both, level="regions")
    assert (verdict.ok, verdict.exit_code) == (False, 1), verdict.lines()
    [region] = verdict.regions
    assert (region.status, region.how) == ("differs", "as it stands")
    given = [region.inputs[place] for place in range(2)]
    [first], [second] = (Executable(text, "exact").run(given) for text in both)
    assert not np.array_equal(first, second)


def test_what_the_solver_finds_and_no_run_shows_is_only_run():
    """No law says that x + x is 2 x; the solver's inputs stand in the verdict."""
    both = texts("%r = add %a, %a", "%c = constant 2.0 : 2xf32; %r = multiply %a, %c", kind="2xf32")
    assert verify(*both, level="regions").exit_code == 0
    verdict = verify(*both, level="regions", prove=True)
    assert verdict.exit_code == 4, verdict.lines()
    [region] = verdict.regions
    assert (region.status, len(region.inputs)) == ("only run", 2)
    assert "z3 finds a difference" in region.reason


def test_of_another_order_of_floats_no_doubt_is_raised():
    """Where sums may be in another order a model in which they differ is beside the point."""
    both = texts(SUM, OTHER_ORDER, kind="2xf32")
    verdict = verify(*both, Assumed(reassociated=True), level="regions", prove=True)
    assert verdict.ok, verdict.lines()
    assert "derived" not in verdict.counts()


@pytest.mark.parametrize(("oob", "other"), [("xla", "spec"), ("spec", "xla")])
def test_what_the_tool_writes_is_derived(oob, other):
    """A lowered scatter is derived through the API, under either policy; under the other one it is refuted by runs."""
    row = scattering("4xf32", "1xi32", "2xf32", "window=[0], to=[0]")
    lowered = hl.lower(row, oob=oob)
    verdict = hl.verify(row, lowered, level="regions", prove=True)
    assert (verdict.ok, verdict.counts()) == (True, {"derived": 1}), verdict.lines()
    assert hl.verify(row, lowered, oob=other, level="regions", prove=True).differs
