"""Where no run entered a branch the verdict is "only run", which is no proof."""

import numpy as np
import pytest
from two_programs import F8, main

from hlo_lower.verify import verify

CHOICE = f"""{{before}}
%r = "stablehlo.case"(%k) ({{{{
  %a = stablehlo.abs %o : {F8}
  stablehlo.return %a : {F8}
}}}}, {{{{
  %b = stablehlo.{{second}} %o : {F8}
  stablehlo.return %b : {F8}
}}}}, {{{{
  stablehlo.return %o : {F8}
}}}}) : (tensor<i32>) -> {F8}"""
SELECTS = f"""%z = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
{{before}}
%a = stablehlo.abs %o : {F8}
%b = stablehlo.negate %o : {F8}
%p = stablehlo.compare EQ, %k, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
%q = stablehlo.compare EQ, %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
%s = stablehlo.select %q, %b, %o : tensor<i1>, {F8}
%r = stablehlo.select %p, %a, %s : tensor<i1>, {F8}"""
ARGUMENTS = f"%o: {F8}, %k: tensor<i32>"
ONE_OR_TWO = """%n = stablehlo.constant dense<-1> : tensor<i32>
%m = stablehlo.and %j, %n : tensor<i32>
%c1 = stablehlo.constant dense<1> : tensor<i32>
%k = stablehlo.or %m, %c1 : tensor<i32>"""


def missed(verdict):
    """What the regions' runs did not enter."""
    return [what for region in verdict.regions for what in region.not_exercised]


def test_every_branch_that_an_input_chooses_is_entered():
    """A case on an argument against selects: equal, and nothing is left."""
    verdict = verify(
        main(ARGUMENTS, CHOICE.format(before="", second="negate"), "%r"),
        main(ARGUMENTS, SELECTS.format(before=""), "%r"),
        level="regions",
    )
    assert (verdict.ok, missed(verdict)) == (True, []), verdict.lines()


@pytest.mark.parametrize("swapped", [False, True])
def test_a_branch_that_nothing_chooses_is_told(swapped):
    """An index that is odd never chooses branch 0; whichever version has the case, the verdict names the branch."""
    arguments = f"%o: {F8}, %j: tensor<i32>"
    texts = [
        main(arguments, CHOICE.format(before=ONE_OR_TWO, second="negate"), "%r"),
        main(arguments, SELECTS.format(before=ONE_OR_TWO).replace("stablehlo.abs", "stablehlo.sqrt"), "%r"),
    ]
    verdict = verify(*(texts[::-1] if swapped else texts), level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert any("no run took branch 0" in what for what in missed(verdict))
    assert any("not exercised: the case at " in line for line in verdict.lines())
    assert "not exercised: " in verdict.summary()


IF = f"""%n = stablehlo.constant dense<-1> : tensor<i32>
%j = stablehlo.and %k, %n : tensor<i32>
%p = stablehlo.compare {{test}}, %k, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
%r = "stablehlo.if"(%p) ({{{{
  %a = stablehlo.{{true}} %o : {F8}
  stablehlo.return %a : {F8}
}}}}, {{{{
  %b = stablehlo.{{false}} %o : {F8}
  stablehlo.return %b : {F8}
}}}}) : (tensor<i1>) -> {F8}"""


@pytest.mark.parametrize(("test", "left"), [("EQ", 1), ("NE", 0)])
def test_the_branch_of_an_if_that_no_run_takes_is_told(test, left):
    """A test that always holds, though nothing says so, leaves the second branch; one that never does, the first."""
    branches = {"true": "abs", "false": "negate"} if left else {"true": "negate", "false": "abs"}
    verdict = verify(
        main(ARGUMENTS, IF.format(test=test, **branches), "%r"),
        main(ARGUMENTS, f"%r = stablehlo.abs %o : {F8}", "%r"),
        level="regions",
    )
    assert verdict.exit_code == 4, verdict.lines()
    comparison, what = missed(verdict)
    assert comparison.startswith("the compare at ")
    assert what.startswith("the if at ")
    assert what.endswith(f"no run took branch {left}")


LOOP = f"""%w:2 = stablehlo.while(%i = %s, %x = %o) : tensor<i32>, {F8} cond {{{{
  %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}}}} do {{{{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %i, %one : tensor<i32>
  %y = stablehlo.add %x, %x : {F8}
  stablehlo.return %next, %y : tensor<i32>, {F8}
}}}}"""


def test_a_loop_that_nothing_enters_is_equal_to_what_it_carries():
    """A loop from 5 to 5 beside what it returns: equal, as its counter says that its body is never run."""
    bound = "%s = stablehlo.constant dense<5> : tensor<i32>\n%n = stablehlo.constant dense<5> : tensor<i32>\n"
    verdict = verify(
        main(f"%o: {F8}", bound + LOOP.format() + f"\n%r = stablehlo.abs %w#1 : {F8}", "%r"),
        main(f"%o: {F8}", f"%r = stablehlo.abs %o : {F8}", "%r"),
        level="regions",
    )
    assert (verdict.ok, missed(verdict)) == (True, []), verdict.lines()


def test_a_module_whose_run_does_not_end_is_not_run():
    """The whole module's runs end in their time, too: the verdict says so, and is no proof."""
    head = "%s = stablehlo.constant dense<0> : tensor<i32>\n"
    texts = [
        main(f"%o: {F8}, %n: tensor<i32>", head + LOOP.format().replace("LT, %i, %n", "EQ, %i, %i") + behind, "%r")
        for behind in (
            f"\n%r = stablehlo.abs %w#1 : {F8}",
            f"\n%t = stablehlo.abs %w#1 : {F8}\n%r = stablehlo.abs %t : {F8}",
        )
    ]
    inputs = [np.ones(8, np.float32), np.asarray(3, np.int32)]
    verdict = verify(*texts, inputs=inputs, time_limit=2)
    assert verdict.module.status == "not run"
    assert "took more than 2 s" in verdict.module.reason


COUNTS = """%z = stablehlo.constant dense<0> : tensor<i32>
%o = stablehlo.constant dense<1> : tensor<i32>
%za = stablehlo.constant dense<0> : tensor<{kind}>
%oa = stablehlo.constant dense<1> : tensor<{kind}>
%w:2 = stablehlo.while(%i = %z, %a = %za) : tensor<i32>, tensor<{kind}> cond {{
  %p = stablehlo.compare LT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}} do {{
  %b = stablehlo.add %a, %oa : tensor<{kind}>
  %n = stablehlo.add %i, %o : tensor<i32>
  stablehlo.return %n, %b : tensor<i32>, tensor<{kind}>
}}
%r = stablehlo.convert %w#1 : (tensor<{kind}>) -> tensor<i64>"""


def test_a_count_in_a_narrower_type_that_no_run_fills_is_only_run():
    """An open loop counts in 16 bits in the second version: no run is so long, and the verdict says so."""
    texts = [main("%k: tensor<i32>", COUNTS.format(kind=kind), "%r", "tensor<i64>") for kind in ("i32", "i16")]
    verdict = verify(*texts, level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert any("no run counts to the end of int16" in what for what in missed(verdict))
