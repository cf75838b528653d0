"""In the body of a loop its condition holds: a choice by it is what it takes, another one is not."""

import pytest
from two_programs import names, numbers, regions
from untyped_mlir import module

import hlo_lower as hl

COMPARED = "%p = compare LT, %a, %n"


def loop(chosen="", returned="%s", condition=COMPARED, behind="", result="%r#1"):
    """A loop that doubles a counter, and overwrites a value with the square root of that."""
    body = f"""%one = constant 1.0 : f32
    %r:2 = while(%i = %one, %a = %x) cond {{ {condition}; return %p }} do {{
      %j = add %i, %i; %s = sqrt %j; {chosen}; return %j, {returned} }}
    {behind}"""
    return module("%x: f32, %n: f32", body, f"%r#0, {result}")


def choice(predicate=COMPARED, on_true="%s", on_false="%a"):
    """A choice by a predicate that is computed in the body."""
    return f"{predicate}; %c = select %p, {on_true}, {on_false}"


CHOSEN = loop(choice(), "%c")


def test_a_choice_by_the_condition_is_what_it_takes():
    """Both have one number, so nothing is left to be judged. Where what is chosen is computed otherwise, that alone is
    the region: runs of it are on values of which nothing holds."""
    assert regions(loop(), CHOSEN) == []
    [first, second] = numbers(loop(), CHOSEN)
    assert first == second
    [region] = regions(loop(), CHOSEN.replace("stablehlo.sqrt %j", "stablehlo.cbrt %j"))
    assert names(region) == (["sqrt"], ["cbrt"])


WRONG = {
    "the old value": choice(on_true="%a", on_false="%s"),
    "of the next value": choice("%p = compare LT, %s, %n"),
    "of another value": choice("%p = compare LT, %i, %n"),
    "in another direction": choice("%p = compare LE, %n, %a"),
    "another value": choice(on_true="%j"),
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


OTHER, AROUND = "%p = compare LE, %a, %n", "%p = compare LT, %x, %n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(loop(condition=OTHER), loop(choice(), "%c", OTHER), id="the condition of another loop"),
        pytest.param(
            *(loop(condition=AROUND), loop(condition=AROUND, behind=choice(AROUND, "%r#1", "%x"), result="%c")),
            id="what holds in an inner loop, around it",
        ),
    ],
)
def test_what_does_not_hold_there_is_a_choice(before, after):
    assert regions(before, after)
