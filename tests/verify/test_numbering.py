"""Value numbers: what does not matter to a value does not matter to its number, and what does, does."""

import pytest
from two_programs import F8, main, numbers

BOTH = f"%a: {F8}, %b: {F8}"
I1 = "tensor<8xi1>"
COMPARED = "%r = stablehlo.compare {0}, %{1}, %{2} : (" + f"{F8}, {F8}) -> {I1}"
RNG = f"""%n = stablehlo.constant dense<8> : tensor<1xi64>
%lo = stablehlo.constant dense<0.0> : tensor<f32> %hi = stablehlo.constant dense<1.0> : tensor<f32>
%x = stablehlo.rng %lo, %hi, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {F8}
%y = stablehlo.rng %lo, %hi, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {F8}"""


def two(first: str, second: str) -> str:
    """Two operations in some order behind each other."""
    return f"{first}\n{second}\n%r = stablehlo.subtract %x, %y : {F8}"


X, Y = f"%x = stablehlo.add %a, %b : {F8}", f"%y = stablehlo.multiply %a, %b : {F8}"
SAME = {
    "order": (two(X, Y), two(Y, X)),
    "commuted": (two(X, Y), two(X.replace("%a, %b", "%b, %a"), Y.replace("%a, %b", "%b, %a"))),
    "duplicates": (
        f"{X}\n%r = stablehlo.subtract %x, %x : {F8}",
        f"{X}\n{X.replace('%x', '%y')}\n%r = stablehlo.subtract %x, %y : {F8}",
    ),
    "dead code": (f"%r = stablehlo.negate %a : {F8}", f"{X}\n%r = stablehlo.negate %a : {F8}"),
    "names": (f"%r = stablehlo.negate %a : {F8}", f"%other = stablehlo.negate %a : {F8}"),
    "constants": (
        f"%k = stablehlo.constant dense<1.0> : {F8}\n%r = stablehlo.add %a, %k : {F8}",
        f"%s = stablehlo.constant dense<1.0> : tensor<f32>\n"
        f"%k = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {F8}\n"
        f"%r = stablehlo.add %a, %k : {F8}",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter(name):
    """Order, names, duplicates, dead code, the order of a sum's operands and how a constant is made."""
    first, second = SAME[name]
    found = numbers(main(BOTH, first, "%r"), main(BOTH, second, "%other" if "%other" in second else "%r"))
    assert found[0] == found[1]


OTHER = {
    "operands of a difference": (f"%r = stablehlo.subtract %a, %b : {F8}", f"%r = stablehlo.subtract %b, %a : {F8}"),
    "another operation": (f"%r = stablehlo.add %a, %b : {F8}", f"%r = stablehlo.maximum %a, %b : {F8}"),
    "an attribute": (f"%r = stablehlo.reverse %a, dims = [0] : {F8}", f"%r = stablehlo.reverse %a, dims = [] : {F8}"),
    "signs of zeros": (
        f"%k = stablehlo.constant dense<0.0> : {F8}\n%r = stablehlo.add %a, %k : {F8}",
        f"%k = stablehlo.constant dense<-0.0> : {F8}\n%r = stablehlo.add %a, %k : {F8}",
    ),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_matters(name):
    """Operands in order, the operation, its attributes, and constants bit for bit."""
    found = numbers(*(main(BOTH, body, "%r") for body in OTHER[name]))
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("direction", "mirrored"), [("LT", "GT"), ("LE", "GE"), ("GT", "LT"), ("EQ", "EQ"), ("NE", "NE")]
)
def test_a_mirrored_comparison_is_the_same(direction, mirrored):
    """a < b is b > a, and not b < a unless the comparison is symmetric."""
    texts = [
        main(BOTH, COMPARED.format(*how), "%r", I1)
        for how in ((direction, "a", "b"), (mirrored, "b", "a"), (direction, "b", "a"))
    ]
    first, second, third = numbers(*texts)
    assert first == second
    assert (first == third) == (direction == mirrored)


def test_two_draws_are_never_equal():
    """Each draw has a number of its own within a module, that of the draw at the same place in the other one."""
    text = main("", RNG, "%x, %y", f"{F8}, {F8}")
    first, second = numbers(text, text)
    assert first[0] != first[1]
    assert first == second


def test_calls_with_effects_are_never_equal():
    """A custom call with a side effect is not its twin; one without is."""
    call = f"stablehlo.custom_call @f(%a) {{has_side_effect = EFFECT}} : ({F8}) -> {F8}"
    body = f"%x = {call}\n%y = {call}"
    for effect in ("true", "false"):
        [found] = numbers(main(f"%a: {F8}", body.replace("EFFECT", effect), "%x, %y", f"{F8}, {F8}"))
        assert (found[0] == found[1]) == (effect == "false")


def test_regions_are_functions_of_what_they_capture():
    """The same branches on the same captures have one number; other captures or branches have another."""
    branches = f"""%r = "stablehlo.if"(%p) ({{ %x = stablehlo.add %a, %b : {F8} stablehlo.return %x : {F8} }},
  {{ stablehlo.return %a : {F8} }}) : (tensor<i1>) -> {F8}"""
    texts = [
        main(f"%p: tensor<i1>, {BOTH}", body, "%r")
        for body in (branches, branches.replace("%x", "%y"), branches.replace("return %a", "return %b"))
    ]
    first, second, third = numbers(*texts)
    assert first == second != third


SORT = """%r = "stablehlo.sort"(%a) <{{dimension = {dim} : i64, is_stable = true}}> ({{
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %p = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}}) : ({kind}) -> {kind}"""


@pytest.mark.parametrize(
    ("shape", "dim", "is_same"),
    [("8x1", 1, True), ("8x1", -1, True), ("8x0", 1, True), ("8x1", 0, False), ("8x2", 1, False)],
)
def test_a_sort_of_one_element_gives_what_it_takes(shape, dim, is_same):
    """Along a dim of size 1 or 0 there is nothing to sort, whatever compares; along one of 2 there is."""
    kind = f"tensor<{shape}xf32>"
    sorted_, given = numbers(
        main(f"%a: {kind}", SORT.format(dim=dim, kind=kind), "%r", kind), main(f"%a: {kind}", "", "%a", kind)
    )
    assert (sorted_ == given) is is_same
