"""Sorts that are not stable: which orders of equal elements are right."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.silent_attributes import make_stable

N = 40
"""XLA's unstable sort of 17 elements or more differs from the stable one."""


def sort(stable, operands="%x, %y", region="%r = compare LT, %a, %b, SIGNED"):
    """A sort of two tensors."""
    return f"""sort({operands}) <dimension = 0 : i64, is_stable = {str(stable).lower()}> {{
      %a, %b, %c, %d: {region}; return %r}}"""


def sorts(*stable):
    """A module of sorts of one tensor by its values, with another one that goes along; each stable or not."""
    lines = "\n".join(f"%s{k}:2 = {sort(is_stable)}" for k, is_stable in enumerate(stable))
    return module(f"%x: {N}xi32, %y: {N}xi32", lines, ", ".join(f"%s{k}#1" for k in range(len(stable))))


def written(stable, before="", operands="%x, %y", region="%r = compare LT, %a, %b", kind="i32", results=2, n=N):
    """A module of one sort: what stands before it and within it, and which of its results are returned."""
    region += ", FLOAT" if kind[0] == "f" else ", SIGNED" if region.rpartition("%r = ")[2].startswith("compare") else ""
    body = f"{before}; %s:2 = {sort(stable, operands, region)}"
    return module(f"%x: {n}x{kind}, %y: {n}xi32", body, ", ".join(["%s#0", "%s#1"][:results]))


NUMBERS = f"%i = iota dim = 0 : {N}xi32"
THREE, LOW, HIGH = "%m = constant 3 : i32", "%u = and %a, %m", "%v = and %b, %m"
LESS = "%r = compare LT, %u, %v"


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        (sorts(False), sorts(True), True),  # one of the orders that the first version allows
        (sorts(True), sorts(False), False),  # it allowed one order only
        (sorts(True, False), sorts(False, False), False),  # and one may not hide behind another
        (sorts(False, True), sorts(True, False), False),  # that one is fixed does not free another one
        (sorts(False, True), sorts(True, True), True),
        (sorts(False, True), sorts(False, True), True),
        (  # fa_unstable_sort: the comparator with its constant outside, and in another order
            written(False, THREE, region=f"{LOW}; {HIGH}; {LESS}"),
            written(False, region=f"{THREE}; {HIGH}; {LOW}; {LESS}"),
            True,
        ),
        (written(True, results=1), written(False, results=1), True),  # equal numbers cannot be told apart
        (written(True, results=1, kind="f32"), written(False, results=1, kind="f32"), False),  # zeros can
        (written(True), written(False), False),
        (written(True, NUMBERS, "%i, %y"), written(False, NUMBERS, "%i, %y"), True),  # none are equal
        (written(True, NUMBERS, "%x, %i"), written(False, NUMBERS, "%x, %i"), False),
        (written(False), written(False, region="%r = compare GT, %b, %a"), True),
        # not b <= a, which is no other name for a < b of floats, and is one of integers
        (written(False), written(False, region="%q = compare LE, %b, %a, SIGNED; %r = not %q"), True),
    ],
)
def test_what_a_sort_allows_is_a_property_of_it(before, after, is_ok):
    """A stable sort is right where the first one is not stable, and not the other way around.

    A comparator is a function, however it is written, and a lost stability counts where it can make a difference.
    """
    assert hl.verify(before, after, level="regions").ok is is_ok


def test_another_order_that_the_first_version_allows_is_not_told_different():
    """What is sorted turned round gives equal rows in the other order: right only where any order is."""
    after = written(True, "%xt = reverse %x, dims = [0]; %yt = reverse %y, dims = [0]", "%xt, %yt")
    assert hl.verify(written(False), after).exit_code == 4
    assert hl.verify(written(True), after).exit_code == 1


def test_a_lost_stability_is_found_in_short_rows():
    """XLA sorts rows of up to 16 elements in a stable order, whatever was asked for."""
    assert hl.verify(written(True, n=12), written(False, n=12)).differs


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


TOTAL = """%nan = constant 0x7FC00000 : f32; %is = compare NE, %c, %c, FLOAT; %e = select %is, CHOSEN, %c
%f = compare LT, %e, %d, TOTALORDER; %less = compare LT, %a, %b, SIGNED; %alike = compare EQ, %a, %b, SIGNED
%g = and %alike, %f; %r = or %less, %g"""


def test_a_nan_that_a_comparator_no_longer_makes_positive(judged_by_runs):
    """A total order puts a NaN first that has a sign, and last one without."""
    positive, any_ = (
        module("%x: 24xi32, %y: 24xf32", f"%s:2 = {sort(True, region=TOTAL.replace('CHOSEN', chosen))}", "%s#0, %s#1")
        for chosen in ("%nan", "%c")
    )
    assert hl.verify(positive, any_).exit_code == 1
    assert hl.verify(any_, any_).exit_code == 0
