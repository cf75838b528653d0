"""Sorts that are not stable: which orders of equal elements are right."""

import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.silent_attributes import make_stable

N = 40
"""XLA's unstable sort of 17 elements or more differs from the stable one."""


def sorts(*stable, less="%a, %b"):
    """A module of sorts of one tensor by its values, with another one that goes along; each stable or not."""
    kind = f"tensor<{N}xi32>"
    lines = "".join(
        f"""  %s{k}:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = {str(is_stable).lower()}}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %r = stablehlo.compare LT, {less}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }}) : ({kind}, {kind}) -> ({kind}, {kind})
"""
        for k, is_stable in enumerate(stable)
    )
    results, kinds = ", ".join(f"%s{k}#1" for k in range(len(stable))), ", ".join([kind] * len(stable))
    return f"func.func public @main(%x: {kind}, %y: {kind}) -> ({kinds}) {{\n{lines}  return {results} : {kinds}\n}}\n"


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        ((False,), (True,), True),  # one of the orders that the first version allows
        ((True,), (False,), False),  # it allowed one order only
        ((True, False), (False, False), False),  # and one may not hide behind another
        ((False, True), (True, False), False),  # that one is fixed does not free another one
        ((False, True), (True, True), True),
        ((False, True), (False, True), True),
    ],
)
def test_the_second_version_may_fix_an_order_and_not_free_it(before, after, is_ok):
    """A stable sort is right where the first one is not stable, and not the other way around."""
    assert hl.verify(sorts(*before), sorts(*after), level="regions").ok is is_ok


def written(*stable, before="", keys="%x", payload="%y", kind="i32", compared="%a, %b", hoisted="", results=2):
    """A module of one sort: what stands before it and within it, and which of its results are returned."""
    given = f"tensor<{N}x{kind}>"
    returned, how = ", ".join([given, f"tensor<{N}xi32>"][:results]), "FLOAT" if kind[0] == "f" else "SIGNED"
    return f"""func.func public @main(%x: {given}, %y: tensor<{N}xi32>) -> ({returned}) {{
  {before}
  %s:2 = "stablehlo.sort"({keys}, {payload}) <{{dimension = 0 : i64, is_stable = {str(stable[0]).lower()}}}> ({{
  ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>, %c: tensor<i32>, %d: tensor<i32>):
    {hoisted}
    %r = stablehlo.compare LT, {compared}, {how} : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }}) : ({given}, tensor<{N}xi32>) -> ({given}, tensor<{N}xi32>)
  return {", ".join(["%s#0", "%s#1"][:results])} : {returned}
}}"""


NUMBERS = f"%i = stablehlo.iota dim = 0 : tensor<{N}xi32>"
THREE, LOW, HIGH = (
    "%m = stablehlo.constant dense<3> : tensor<i32>",
    "%u = stablehlo.and %a, %m : tensor<i32>",
    "%v = stablehlo.and %b, %m : tensor<i32>",
)


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        (  # fa_unstable_sort: the comparator with its constant outside, and in another order
            written(False, before=THREE, hoisted=f"{LOW}\n{HIGH}", compared="%u, %v"),
            written(False, hoisted=f"{THREE}\n{HIGH}\n{LOW}", compared="%u, %v"),
            True,
        ),
        (written(True, results=1), written(False, results=1), True),  # equal numbers cannot be told apart
        (written(True, results=1, kind="f32"), written(False, results=1, kind="f32"), False),  # zeros can
        (written(True), written(False), False),
        (written(True, before=NUMBERS, keys="%i"), written(False, before=NUMBERS, keys="%i"), True),  # none are equal
        (written(True, before=NUMBERS, payload="%i"), written(False, before=NUMBERS, payload="%i"), False),
        (written(False), written(False, compared="%b, %a").replace("compare LT", "compare GT"), True),
        (  # not b <= a, which is no other name for a < b of floats, and is one of integers
            written(False),
            written(False, compared="%b, %a").replace("compare LT", "compare LE").replace("%r = ", "%q = ")
            .replace("    stablehlo.return %r", "    %r = stablehlo.not %q : tensor<i1>\n    stablehlo.return %r"),
            True,
        ),
    ],
)  # fmt: skip
def test_what_a_sort_allows_is_a_property_of_it(before, after, is_ok):
    """A comparator is a function, however it is written, and a lost stability counts where it can make a difference."""
    assert hl.verify(before, after, level="regions").ok is is_ok


def test_another_order_that_the_first_version_allows_is_not_told_different():
    """What is sorted turned round gives equal rows in the other order: right only where any order is."""
    turned = "\n".join(f"%{v}t = stablehlo.reverse %{v}, dims = [0] : tensor<{N}xi32>" for v in "xy")
    after = written(True, before=turned, keys="%xt", payload="%yt")
    assert hl.verify(written(False), after).exit_code == 4
    assert hl.verify(written(True), after).exit_code == 1


def test_a_lost_stability_is_found_in_short_rows():
    """XLA sorts rows of up to 16 elements in a stable order, whatever was asked for."""
    before, after = (written(stable).replace(f"<{N}x", "<12x") for stable in (True, False))
    assert hl.verify(before, after).differs


def test_only_a_sort_that_stands_for_one_that_is_not_stable_is_taken_as_stable():
    """Any other one is taken in the order that a stable one does not give."""
    context = mlir.make_context()
    for before, is_turned in ((False, False), (True, True)):
        first, second = (mlir.parse_module(sorts(stable), context) for stable in (before, False))
        assert make_stable(first, second)
        text = mlir.print_module(second)
        assert "is_stable = false" not in text
        assert is_turned == ("stablehlo.reverse" in text)
        assert not make_stable(first, second)


def test_a_nan_that_a_comparator_no_longer_makes_positive(judged_by_runs):
    """A total order puts a NaN first that has a sign, and last one without."""
    kind = "tensor<24xf32>"

    def text(chosen):
        return f"""func.func public @main(%x: tensor<24xi32>, %y: {kind}) -> (tensor<24xi32>, {kind}) {{
  %s:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %is = stablehlo.compare NE, %c, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %e = stablehlo.select %is, {chosen}, %c : tensor<i1>, tensor<f32>
    %f = stablehlo.compare LT, %e, %d, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %less = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %alike = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %g = stablehlo.and %alike, %f : tensor<i1>
    %r = stablehlo.or %less, %g : tensor<i1>
    stablehlo.return %r : tensor<i1>
  }}) : (tensor<24xi32>, {kind}) -> (tensor<24xi32>, {kind})
  return %s#0, %s#1 : tensor<24xi32>, {kind}
}}"""

    assert hl.verify(text("%nan"), text("%c")).exit_code == 1
    turned = text("%nan").replace("select %is, %nan, %c", "select %is, %c, %c")
    assert hl.verify(text("%c"), turned).exit_code == 0
