"""In the body of a loop its condition holds: a choice by it is what it takes, another one is not."""

import pytest
from two_programs import names, numbers, regions

import hlo_lower as hl

F = "tensor<f32>"
COMPARED = f"%p = stablehlo.compare LT, %a, %n : ({F}, {F}) -> tensor<i1>"


def loop(chosen="", returned="%s", condition=COMPARED):
    """A loop that doubles a counter, and overwrites a value with the square root of that."""
    return f"""func.func public @main(%x: {F}, %n: {F}) -> ({F}, {F}) {{
  %one = stablehlo.constant dense<1.0> : {F}
  %r:2 = stablehlo.while(%i = %one, %a = %x) : {F}, {F}
  cond {{
    {condition}
    stablehlo.return %p : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %i : {F}
    %s = stablehlo.sqrt %j : {F}
    {chosen}
    stablehlo.return %j, {returned} : {F}, {F}
  }}
  return %r#0, %r#1 : {F}, {F}
}}
"""


def choice(predicate, on_true="%s", on_false="%a"):
    """A choice by a predicate that is computed in the body."""
    return f"{predicate}\n    %c = stablehlo.select %p, {on_true}, {on_false} : tensor<i1>, {F}"


def test_a_choice_by_the_condition_is_what_it_takes():
    """Both have one number, so nothing is left to be judged."""
    chosen = loop(choice(COMPARED), "%c")
    assert regions(loop(), chosen) == []
    [first, second] = numbers(loop(), chosen)
    assert first == second


def test_what_is_chosen_is_judged_without_the_choice():
    """Where it is computed otherwise, that alone is the region: runs of it are on values of which nothing holds."""
    other = loop(choice(COMPARED), "%c").replace("stablehlo.sqrt %j", "stablehlo.cbrt %j")
    [region] = regions(loop(), other)
    assert names(region) == (["sqrt"], ["cbrt"])


WRONG = {
    "the old value": choice(COMPARED, "%a", "%s"),
    "of the next value": choice(COMPARED.replace("%a", "%s")),
    "of another value": choice(COMPARED.replace("%a", "%i")),
    "in another direction": choice(COMPARED.replace("LT", "LE").replace("%a, %n", "%n, %a")),
    "another value": choice(COMPARED, "%j"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_choice_is_not(name):
    """Swapped, by another predicate, or of another value: it is a region of its own."""
    wrong = loop(WRONG[name], "%c")
    assert regions(loop(), wrong)
    first, second = numbers(loop(), wrong)
    assert first != second


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG)
def test_another_choice_differs(name):
    """And the judge says so, from runs of the region."""
    assert not hl.verify(loop(), loop(WRONG[name], "%c"), level="regions").ok


def test_the_condition_of_another_loop_does_not_hold():
    """Where the second module's own condition is another one, a choice by the first one's does not go away."""
    other = COMPARED.replace("LT", "LE")
    assert regions(loop(condition=other), loop(choice(COMPARED), "%c", other))


def test_what_holds_in_an_inner_loop_does_not_hold_around_it():
    """A choice by the condition of a loop, computed again after it of the same names, stays a choice."""
    text = loop().replace(
        "return %r#0, %r#1", f"{COMPARED}\n%c = stablehlo.select %p, %r#1, %x : tensor<i1>, {F}\nreturn %r#0, %c"
    )
    text = text.replace("LT, %a, %n", "LT, %x, %n")
    plain = loop(condition=COMPARED.replace("%a", "%x"))
    assert regions(plain, text)
