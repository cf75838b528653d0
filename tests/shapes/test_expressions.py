"""Dims as expressions over symbols."""

import jax
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import hlo_lower as hl
from hlo_lower.ir.shapes.expressions import ExpressionError, evaluate, rewritten, symbols_of
from hlo_lower.ir.shapes.tokens import point_at


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("+s", 5), ("  ( s )  ", 5), ("2*s + 1", 11), ("(b + 1)*s", 40), ("- s + b", 2), ("non_negative(s - b)", 0)),
        *(("floordiv(b, 2)", 3), ("b // -2", -4), ("(b - 2*s) // 2", -2), ("(b - 2*s) % 4", 1), ("mod(b, s)", 2)),
        *(("max(b, 2*s, 4)", 10), ("min(b, s)", 5), ("max(s, max(b, 3))", 7), ("2*s^2", 50), ("s**2", 25)),
        *(("-" * 599 + "s", -5), ("+".join(["s"] * 300), 1500)),  # the longest ones that are taken
    ],
)
def test_an_expression_has_its_value(text, value):
    """Each form that a person or jax.export writes is evaluated with Python's meaning of // and %."""
    assert value == evaluate(text, {"s": 5, "b": 7})


REFUSED = [
    ("2*", "a name or a number is missing here", "  ^"),
    ("* s", "a name or a number is missing before *", "^"),
    ("2s", "an operator is missing before s", " ^"),
    ("(s + 1", "this parenthesis is not closed", "^"),
    ("max(s, (1, 2))", "this parenthesis is not closed", "       ^"),
    ("s + 1)", "this parenthesis closes nothing", "     ^"),
    ("t + s", "t has no size", "^"),
    ("s + 4 // (s - 5)", "this divides by zero", "    ^^^^^^^^^^^^"),
    ("mod(s, 0) + 1", "this divides by zero", "^^^^^^^^^"),
    ("s.real", "'.' is not a character of a shape", " ^"),
    ("s\x00", "U+0000 is not a character of a shape", " ^"),
    ("sin(s)", "sin is not a function", "^^^"),
    ("max + 1", "max is a function and cannot be a name", "^^^"),
    ("s + for", "for is a word of Python and cannot be a name", "    ^^^"),
    ("floordiv(s)", "floordiv takes 2 arguments, not 1", "^^^^^^^^"),
    ("1 + min(s)", "min takes 2 arguments or more, not 1", "    ^^^"),
    ("non_negative(s, s)", "non_negative takes 1 argument, not 2", "^^^^^^^^^^^^"),
    ("s ** 900", "an exponent is a number from 0 to 8", "     ^^^"),
    ("2*s^-1", "an exponent is a number from 0 to 8", "    ^^"),
    ("2 + ((s^8)^8)^8", "this multiplies 64 sizes: 8 are the most", "     ^^^^^^^"),
    ("(s + b + c + d + e + f)^8", "multiplied out this has 1,287 terms: 64 are the most", "^" * 25),
    ("s^4*s^5", "this multiplies 9 sizes: 8 are the most", "^^^^^^^"),
    ("((9^8)^8)^8", "this is a number of more than 128 bits", " ^^^^^^^"),
    ("1 + 9999999999999999999", "9999999999999999999 is not a size: the greatest is 2^63 - 1", "    " + "^" * 19),
    ("s / 2", "/ is not an operator of whole numbers: // divides and rounds down", "  ^"),
    ("1.5*s", "1.5 is not a whole number", "^^^"),
    ("s + 007", "007 begins with 0: write 7", "    ^^^"),
    ("9" * 20, "a number of 20 digits is not a size", "^" * 20),
    ("s >= 1", ">= compares, which only a constraint of its own does", "  ^^"),
    ("_ + 1", "_ keeps what the argument has and stands alone between commas", "^"),
]


@pytest.mark.parametrize(("text", "told", "carets"), REFUSED, ids=[repr(text[:20]) for text, _, _ in REFUSED])
def test_what_is_no_expression_is_refused(text, told, carets):
    """Nothing but whole numbers, symbols and arithmetic is evaluated; the error says what is wrong, and where."""
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, {"s": 5})
    assert (told, carets) == (caught.value.what, " " * caught.value.column + "^" * caught.value.width)


def test_a_long_text():
    """It is shown around the place; what is too long or too deep is an error with a place, no crash."""
    shown, carets = point_at("s + " * 100 + "$" + " + s" * 100, 400, 1)
    assert (len(shown), shown[carets.index("^")]) == (164, "$")
    assert point_at("a\tb\n$", 4, 1) == ("    a b $", "        ^")
    for text in ("(" * 400 + "s" + ")" * 400, "(" * 250 + "s" + ")" * 250, "+".join(["s"] * 400)):
        with pytest.raises(ExpressionError, match=r"too long|too deeply"):
            evaluate(text, {"s": 5})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("16*floordiv(s*b - 1, 16)", "16*((s*b - 1) // 16)"),
        ("max(mod(s + 1, b), 4) + s^2", "max((s + 1) % b, 4) + s^2"),
    ],
)
def test_jaxs_notation_is_told_in_ours(text, told):
    """Where a person reads it, a remainder is % and a quotient is //, with the same value and names."""
    assert (told, symbols_of(text)) == (rewritten(text), ("b", "s"))
    assert evaluate(text, {"s": 5, "b": 7}) == evaluate(told, {"s": 5, "b": 7})


NAMES = ("s", "b", "batch_size")


def _combined(inner):
    binary = st.tuples(inner, st.sampled_from([" + ", "-", "*", " // ", " % "]), inner).map("".join)
    called = st.tuples(st.sampled_from(["min", "max"]), st.lists(inner, min_size=2, max_size=4)).map(
        lambda t: f"{t[0]}({', '.join(t[1])})"
    )
    jaxs = st.tuples(st.sampled_from(["mod", "floordiv"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
    return st.one_of(binary, called, jaxs, inner.map(lambda t: f"({t})"), inner.map(lambda t: f"(-{t})"))


LEAVES = st.one_of(st.sampled_from([*NAMES, "s^2", "b^3"]), st.integers(0, 20).map(str))
SIZES = st.fixed_dictionaries({name: st.integers(1, 40) for name in NAMES})
OTHERWISE = pytest.raises(ValueError, match=r"do not match|Shape mismatch|inconsistency")


def exported(expressions):
    """The first of several arguments, whose shapes are the names and then each expression."""
    return hl.export(lambda *arguments: arguments[0], shapes=[", ".join(NAMES), *expressions])


def called(function, sizes, values):
    """Trace a call with arguments of these sizes; JAX computes each dim from the names and compares."""
    shapes = [tuple(sizes[name] for name in NAMES), *((value,) for value in values)]
    return jax.eval_shape(function.call, *(jax.ShapeDtypeStruct(shape, "float32") for shape in shapes))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.recursive(LEAVES, _combined, max_leaves=7), min_size=1, max_size=4), SIZES)
def test_what_jax_makes_of_an_expression_has_its_value(texts, sizes):
    """An exported function takes an argument whose dim has the value that we give its expression, and no other; and
    what JAX prints of the expression has that value with us."""
    try:
        values = [evaluate(text, sizes) for text in texts]
        assume(all(0 <= value < 1 << 30 for value in values))
        function = exported(texts)
    except (ExpressionError, hl.InputError) as error:  # a divisor that may be zero, a size that is always below zero
        event(str(error).split("\n")[0])
        return
    called(function, sizes, values)
    dims = [str(aval.shape[0]) for aval in function.in_avals[1:]]
    assert values == [evaluate(dim, sizes) for dim in dims] == [evaluate(rewritten(dim), sizes) for dim in dims]
    with OTHERWISE:
        called(function, sizes, [*values[:-1], values[-1] + 1])


def test_the_comparison_with_jax_can_fail():
    """Another reading of the same text, `^` as weak as `*`, has another value, which JAX rejects."""
    sizes = dict.fromkeys(NAMES, 3)
    called(exported(["2*s^2"]), sizes, [18])
    with OTHERWISE:
        called(exported(["2*s^2"]), sizes, [evaluate("(2*s)^2", sizes)])
