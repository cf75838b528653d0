"""Differences that no drawn run has and the solver finds, and what `verify(..., prove=True)` says of others."""

import numpy as np
import pytest
from two_programs import main

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify
from hlo_lower.verify.run import Executable

pytest.importorskip("z3")

DERIVES = True

I2 = "tensor<2xi32>"
SUM = f"""%s = stablehlo.add %a, %b : {I2}
%r = stablehlo.add %s, %a : {I2}"""
OTHER_ORDER = f"""%s = stablehlo.add %a, %a : {I2}
%r = stablehlo.add %b, %s : {I2}"""
RARELY = f"""%c = stablehlo.constant dense<13> : {I2}
%d = stablehlo.constant dense<7> : {I2}
%e = stablehlo.shift_right_logical %t, %c : {I2}
%m = stablehlo.xor %t, %e : {I2}
%f = stablehlo.shift_left %m, %d : {I2}
%h = stablehlo.xor %m, %f : {I2}
%k = stablehlo.constant dense<987654321> : {I2}
%is = stablehlo.compare EQ, %h, %k, SIGNED : ({I2}, {I2}) -> tensor<2xi1>
%not = stablehlo.not %t : {I2}
%r = stablehlo.select %is, %not, %t : tensor<2xi1>, {I2}"""


def module(body):
    """A module of two vectors of integers."""
    return main(f"%a: {I2}, %b: {I2}", body, "%r", I2)


ARGUMENT = main(f"%a: {I2}, %b: {I2}", "", "%a", I2), module(RARELY.replace("%t", "%a"))
COMPUTED = module(SUM), module(f"{SUM}\n{RARELY}".replace("%r = stablehlo.add %s", "%t = stablehlo.add %s"))


@pytest.mark.parametrize("texts", [ARGUMENT, COMPUTED])
def test_a_difference_that_no_run_has_is_found_by_the_solver(texts):
    """One number of 2^32, that stands nowhere in the module, is in no run; a model has it, with arguments."""
    verdict = verify(*texts, level="regions")
    assert (verdict.ok, verdict.exit_code) == (False, 1), verdict.lines()
    [region] = verdict.regions
    assert (region.status, region.how) == ("differs", "as it stands")
    given = [region.inputs[place] for place in range(2)]
    [first], [second] = (Executable(text, "exact").run(given) for text in texts)
    assert not np.array_equal(first, second)


TWICE = "%r = stablehlo.add %a, %a : tensor<2xf32>"
BY_TWO = """%c = stablehlo.constant dense<2.0> : tensor<2xf32>
%r = stablehlo.multiply %a, %c : tensor<2xf32>"""


def test_what_the_solver_finds_and_no_run_shows_is_only_run():
    """No law says that x + x is 2 x; the solver's inputs stand in the verdict."""
    texts = [module(body).replace("xi32", "xf32") for body in (TWICE, BY_TWO)]
    assert verify(*texts, level="regions").exit_code == 0
    verdict = verify(*texts, level="regions", prove=True)
    assert verdict.exit_code == 4, verdict.lines()
    [region] = verdict.regions
    assert (region.status, len(region.inputs)) == ("only run", 2)
    assert "z3 finds a difference" in region.reason


def test_of_another_order_of_floats_no_doubt_is_raised():
    """Where sums may be in another order a model in which they differ is beside the point."""
    floats = [module(body).replace("xi32", "xf32") for body in (SUM, OTHER_ORDER)]
    verdict = verify(*floats, Assumed(reassociated=True), level="regions", prove=True)
    assert verdict.ok, verdict.lines()
    assert "derived" not in verdict.counts()


ROW = """func.func public @main(%o: tensor<4xf32>, %i: tensor<1xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }) : (tensor<4xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_what_the_tool_writes_is_derived(oob):
    """A lowered scatter is derived through the API, under either policy; under the other one it is refuted by runs."""
    lowered = hl.lower(ROW, oob=oob)
    verdict = hl.verify(ROW, lowered, level="regions", prove=True)
    assert (verdict.ok, verdict.counts()) == (True, {"derived": 1}), verdict.lines()
    other = "spec" if oob == "xla" else "xla"
    assert hl.verify(ROW, lowered, oob=other, level="regions", prove=True).differs
