"""Value numbers: what does not matter to a value does not matter to its number, and what does, does."""

import pytest
from two_programs import numbers
from untyped_mlir import module

BOTH = "%a: 8xf32, %b: 8xf32"
X, Y, LAST = "%x = add %a, %b", "%y = multiply %a, %b", "%r = subtract %x, %y"
NEGATED, ONE = "%r = negate %a", "%k = constant 1.0 : 8xf32"
SPLAT = "%s = constant 1.0 : f32; %k = broadcast_in_dim %s, dims = [] -> 8xf32"


def both(first, second, arguments=BOTH, returned="%r"):
    """The numbers of what two modules return."""
    return numbers(*(module(arguments, body, returned) for body in (first, second)))


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        pytest.param(f"{X}; {Y}; {LAST}", f"{Y}; {X}; {LAST}", True, id="order"),
        pytest.param(
            f"{X}; {Y}; {LAST}", f"{X}; {Y}; {LAST}".replace("%a, %b", "%b, %a"), True, id="operands of a sum"
        ),
        pytest.param(f"{X}; %r = subtract %x, %x", f"{X}; %y = add %a, %b; {LAST}", True, id="duplicates"),
        pytest.param(NEGATED, f"{X}; {NEGATED}", True, id="dead code"),
        pytest.param(X.replace("%x", "%r"), f"{X}; %r = add %a, %b", True, id="names"),
        pytest.param(f"{ONE}; %r = add %a, %k", f"{SPLAT}; %r = add %a, %k", True, id="how a constant is made"),
        pytest.param("%r = subtract %a, %b", "%r = subtract %b, %a", False, id="operands of a difference"),
        pytest.param("%r = add %a, %b", "%r = maximum %a, %b", False, id="another operation"),
        pytest.param("%r = reverse %a, dims = [0]", "%r = reverse %a, dims = []", False, id="an attribute"),
        pytest.param(
            *(f"%k = constant {zero} : 8xf32; %r = add %a, %k" for zero in ("0.0", "-0.0")), False, id="signs of zeros"
        ),
    ],
)
def test_what_matters_and_what_does_not(first, second, is_same):
    one, other = both(first, second)
    assert (one == other) == is_same


@pytest.mark.parametrize(
    ("direction", "mirrored"), [("LT", "GT"), ("LE", "GE"), ("GT", "LT"), ("EQ", "EQ"), ("NE", "NE")]
)
def test_a_mirrored_comparison_is_the_same(direction, mirrored):
    """a < b is b > a, and not b < a unless the comparison is symmetric."""
    compared = f"{direction}, %a, %b", f"{mirrored}, %b, %a", f"{direction}, %b, %a"
    first, second, third = numbers(*(module(BOTH, f"%r = compare {how}") for how in compared))
    assert first == second
    assert (first == third) == (direction == mirrored)


DRAW = "rng %lo, %hi, %n, distribution = UNIFORM -> 8xf32"
DRAWS = f"%n = constant 8 : 1xi64; %lo = constant 0.0 : f32; %hi = constant 1.0 : f32; %x = {DRAW}; %y = {DRAW}"


def test_two_draws_are_never_equal():
    """Each draw has a number of its own within a module, that of the draw at the same place in the other one."""
    first, second = both(DRAWS, DRAWS, "", "%x, %y")
    assert first[0] != first[1]
    assert first == second


@pytest.mark.parametrize("effect", ["true", "false"])
def test_calls_with_effects_are_never_equal(effect):
    """A custom call with a side effect is not its twin; one without is."""
    call = f"custom_call @f(%a) {{has_side_effect = {effect}}} -> 8xf32"
    [found] = numbers(module("%a: 8xf32", f"%x = {call}; %y = {call}", "%x, %y"))
    assert (found[0] == found[1]) == (effect == "false")


def test_regions_are_functions_of_what_they_capture():
    """The same branches on the same captures have one number; other captures or branches have another."""
    branches = (
        ("%x = add %a, %b; return %x", "return %a"),
        ("%y = add %a, %b; return %y", "return %a"),
        ("%x = add %a, %b; return %x", "return %b"),
    )
    texts = (module(f"%p: i1, {BOTH}", f"%r = if(%p) {{ {one} }} {{ {other} }}") for one, other in branches)
    first, second, third = numbers(*texts)
    assert first == second != third


@pytest.mark.parametrize(
    ("shape", "dim", "is_same"),
    [("8x1", 1, True), ("8x1", -1, True), ("8x0", 1, True), ("8x1", 0, False), ("8x2", 1, False)],
)
def test_a_sort_of_one_element_gives_what_it_takes(shape, dim, is_same):
    """Along a dim of size 1 or 0 there is nothing to sort, whatever compares; along one of 2 there is."""
    body = f"""%r = sort(%a) <dimension = {dim} : i64, is_stable = true> {{
      %x, %y: %p = compare LT, %x, %y, FLOAT; return %p}}"""
    sorted_, given = numbers(*(module(f"%a: {shape}xf32", body, returned) for returned in ("%r", "%a")))
    assert (sorted_ == given) is is_same
