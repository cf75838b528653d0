"""Dims as arithmetic expressions over symbols, as `jax.export` writes them: `2*s + 1`, `mod(b, 2)`, `max(s, 4)`."""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache


class ExpressionError(ValueError):
    """A text that is no expression over symbols, or has no value."""


def _floordiv(a: int, b: int) -> int:
    return a // b


def _mod(a: int, b: int) -> int:
    return a % b


def _power(a: int, b: int) -> int:
    if not 0 <= b <= MAX_EXPONENT:
        raise ExpressionError(f"{b} is no exponent from 0 to {MAX_EXPONENT}")
    return int(a**b)


def _non_negative(a: int) -> int:
    return max(a, 0)


MAX_EXPONENT = 8

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: _floordiv,
    ast.Mod: _mod,
    ast.Pow: _power,
}

_FUNCTIONS: dict[str, Callable[..., int]] = {
    "floordiv": _floordiv,
    "mod": _mod,
    "max": max,
    "min": min,
    "non_negative": _non_negative,
}


def symbols_of(text: str) -> tuple[str, ...]:
    """The symbols of an expression, sorted.

    Raises:
      ExpressionError: it is no expression.
    """
    tree = _parsed(text)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return tuple(sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called}))


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The value of an expression for the sizes of its symbols.

    Raises:
      ExpressionError: it is no expression, a symbol has no size, or it divides by zero.
    """
    return _value(_parsed(text), sizes)


@cache
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{text!r} is no arithmetic expression") from None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name not in sizes:
                raise ExpressionError(f"{name} has no size")
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _apply(node, _OPERATORS[type(op)], (_value(left, sizes), _value(right, sizes)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _apply(node, _FUNCTIONS[name], tuple(_value(a, sizes) for a in arguments))
        case _:
            raise ExpressionError(f"{ast.unparse(node)} is not made of integers, symbols, + - * // % **, min and max")


def _apply(node: ast.expr, function: Callable[..., int], arguments: tuple[int, ...]) -> int:
    try:
        return function(*arguments)
    except (ZeroDivisionError, TypeError) as error:
        raise ExpressionError(f"{ast.unparse(node)}: {error}") from None
