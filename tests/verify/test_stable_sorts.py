"""Sorts that are not stable: which orders of equal elements are right."""

import pytest

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.verify.stable_sorts import make_stable

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


@pytest.mark.parametrize(("less", "expected"), [("%a, %b", [True]), ("%b, %a", [False])])
def test_only_the_same_sort_is_taken_as_stable(less, expected):
    """Of a sort by another comparator nothing is said in the first version."""
    context = mlir.make_context()
    first, second = (mlir.parse_module(text, context) for text in (sorts(False), sorts(False, less=less)))
    assert make_stable(first, second)
    text = mlir.print_module(second)
    assert ["is_stable = true" in text] == expected
    assert not make_stable(second, first) or expected == [False]
