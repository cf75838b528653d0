"""In the body of a loop its condition holds: a choice by it, of the same values, is what it takes; no other choice is."""

import pytest

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
    """Nothing is run: both have one number; so it is where the value that is chosen is computed otherwise, and run."""
    verdict = hl.verify(loop(), loop(choice(COMPARED), "%c"), level="regions")
    assert verdict.is_equal and not verdict.regions
    other = loop(choice(COMPARED), "%c").replace("add %i, %i", "add %i, %k", 1)
    other = other.replace("%j = ", f"%two = stablehlo.constant dense<0.0> : {F}\n    %k = stablehlo.add %i, %two : {F}\n    %j = ")
    assert hl.verify(loop(), other, level="regions").is_equal


WRONG = {
    "the old value": choice(COMPARED, "%a", "%s"),
    "of the next value": choice(COMPARED.replace("%a", "%s")),
    "of another value": choice(COMPARED.replace("%a", "%i")),
    "in another direction": choice(COMPARED.replace("LT", "LE").replace("%a, %n", "%n, %a")),
    "another value": choice(COMPARED, "%j"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_choice_is_not(name):
    """Swapped, by another predicate, or of another value: it differs."""
    assert not hl.verify(loop(), loop(WRONG[name], "%c"), level="regions").is_equal


def test_the_condition_of_another_loop_does_not_hold():
    """Where the second module's own condition is another one, a choice by the first one's does not go away."""
    other = COMPARED.replace("LT", "LE")
    first = loop(choice(COMPARED), "%c", other)
    assert not hl.verify(loop(condition=other), first, level="regions").is_equal
