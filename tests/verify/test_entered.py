"""Where no run entered a branch the verdict is "only run", which is no proof."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import verify

OK, OJ = "%o: 8xf32, %k: i32", "%o: 8xf32, %j: i32"
CHOICE = "%r = case(%k) { %a = abs %o; return %a } { %b = negate %o; return %b } { return %o }"
SELECTS = """%z = constant 0 : i32; %one = constant 1 : i32; %a = abs %o; %b = negate %o; %p = compare EQ, %k, %z
%q = compare EQ, %k, %one; %s = select %q, %b, %o; %r = select %p, %a, %s"""
ODD = "%n = constant -1 : i32; %m = and %j, %n; %c1 = constant 1 : i32; %k = or %m, %c1\n"
"""An odd %k, though nothing says so."""


def missed(verdict):
    """What the regions' runs did not enter."""
    return [what for region in verdict.regions for what in region.not_exercised]


def loop(behind, before="", test="LT, %i, %n"):
    """A loop that doubles, and what is done with its result."""
    return f"""{before}
    %w:2 = while(%i = %s, %x = %o) cond {{ %p = compare {test}; return %p }} do {{
      %one = constant 1 : i32; %next = add %i, %one; %y = add %x, %x; return %next, %y }}
    {behind}"""


FIVE_TO_FIVE = loop("%r = abs %w#1", "%s = constant 5 : i32; %n = constant 5 : i32")


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        pytest.param(OK, CHOICE, SELECTS, id="a case on an argument"),
        pytest.param("%o: 8xf32", FIVE_TO_FIVE, "%r = abs %o", id="a loop from 5 to 5, whose counter says so"),
    ],
)
def test_where_every_branch_is_entered_that_can_be_nothing_is_left(arguments, first, second):
    verdict = verify(*(module(arguments, body) for body in (first, second)), level="regions")
    assert (verdict.ok, missed(verdict)) == (True, []), verdict.lines()


@pytest.mark.parametrize("order", [1, -1])
def test_a_branch_that_nothing_chooses_is_told(order):
    """An index that is odd never chooses branch 0; whichever version has the case, the verdict names the branch."""
    texts = [module(OJ, ODD + body) for body in (CHOICE, SELECTS.replace("abs", "sqrt"))]
    verdict = verify(*texts[::order], level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert any("no run took branch 0" in what for what in missed(verdict))
    assert any("not exercised: the case at " in line for line in verdict.lines())
    assert "not exercised: " in verdict.summary()


@pytest.mark.parametrize(("test", "left", "ops"), [("EQ", 1, ("abs", "negate")), ("NE", 0, ("negate", "abs"))])
def test_the_branch_of_an_if_that_no_run_takes_is_told(test, left, ops):
    """A test that always holds, though nothing says so, leaves the second branch; one that never does, the first."""
    body = f"""%n = constant -1 : i32; %j = and %k, %n; %p = compare {test}, %k, %j
    %r = if(%p) {{ %a = {ops[0]} %o; return %a }} {{ %b = {ops[1]} %o; return %b }}"""
    verdict = verify(module(OK, body), module(OK, "%r = abs %o"), level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    comparison, what = missed(verdict)
    assert comparison.startswith("the compare at ")
    assert what.startswith("the if at ")
    assert what.endswith(f"no run took branch {left}")


def test_a_module_whose_run_does_not_end_is_not_run():
    """The whole module's runs end in their time, too: the verdict says so, and is no proof."""
    texts = [
        module("%o: 8xf32, %n: i32", loop(behind, "%s = constant 0 : i32", "EQ, %i, %i"))
        for behind in ("%r = abs %w#1", "%t = abs %w#1; %r = abs %t")
    ]
    verdict = verify(*texts, inputs=[np.ones(8, np.float32), np.asarray(3, np.int32)], time_limit=2)
    assert verdict.module.status == "not run"
    assert "took more than 2 s" in verdict.module.reason


COUNTS = """%z = constant 0 : i32; %o = constant 1 : i32; %za = constant 0 : KIND; %oa = constant 1 : KIND
%w:2 = while(%i = %z, %a = %za) cond { %p = compare LT, %i, %k; return %p } do {
  %b = add %a, %oa; %n = add %i, %o; return %n, %b }
%r = convert %w#1 -> i64"""


def test_a_count_in_a_narrower_type_that_no_run_fills_is_only_run():
    """An open loop counts in 16 bits in the second version: no run is so long, and the verdict says so."""
    texts = (module("%k: i32", COUNTS.replace("KIND", kind)) for kind in ("i32", "i16"))
    verdict = verify(*texts, level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert any("no run counts to the end of int16" in what for what in missed(verdict))
