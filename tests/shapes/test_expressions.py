"""Dims as expressions over symbols."""

import pytest

from hlo_lower.shapes.expressions import ExpressionError, evaluate, symbols_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("s", 5),
        ("2*s + 1", 11),
        ("b - s", 2),
        ("floordiv(b, 2)", 3),
        ("b // 2", 3),
        ("mod(b, s)", 2),
        ("b % s", 2),
        ("-1*s + b", 2),
        ("max(b, 2*s, 4)", 10),
        ("min(b, s)", 5),
        ("s^2", None),
        ("s**2", 25),
        ("(b + 1)*s", 40),
        ("non_negative(s - b)", 0),
    ],
)
def test_an_expression_has_its_value(text, value):
    """Each form that jax.export writes is evaluated with Python's meaning of // and %."""
    if value is None:
        with pytest.raises(ExpressionError, match="is not made of"):
            evaluate(text, {"s": 5, "b": 7})
    else:
        assert evaluate(text, {"s": 5, "b": 7}) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2*", "no arithmetic expression"),
        ("t + 1", "t has no size"),
        ("s // 0", "zero"),
        ("s.real", "is not made of"),
        ("__import__('os')", "is not made of"),
        ("floordiv(s)", "floordiv"),
        ("s ** 900", "exponent"),
        ("True", "is not made of"),
        ("s / 2", "is not made of"),
        ("max()", "max"),
    ],
)
def test_what_is_no_expression_is_refused(text, told):
    """Nothing but integers, symbols and arithmetic is evaluated, and the error says what is wrong."""
    with pytest.raises(ExpressionError, match=told):
        evaluate(text, {"s": 5})


def test_symbols_leave_out_functions():
    """The symbols of an expression are its names, without those of functions."""
    assert symbols_of("max(2*s, floordiv(b, 4)) + s") == ("b", "s")
