"""Dims as arithmetic expressions over symbols: as a person writes them, `(2*s + 1) // b`, `min(s, b, 4)`, and as
`jax.export` does, `mod(b, 2)`, `s^2`, `max(s, max(b, 4))`.

One reader serves both. The words are checked first (`tokens`), then Python's own parser makes the tree, where `^` is a
power. The value is computed with whatever stands for the symbols: numbers, or the symbolic dims of JAX.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from math import comb
from typing import Any

from hlo_lower.ir.shapes.tokens import FUNCTIONS, ExpressionError, Token, check_order, tokens_of

__all__ = [
    "Expression",
    "ExpressionError",
    "evaluate",
    "expression",
    "expression_text",
    "rewritten",
    "substitute",
    "symbols_of",
    "whole",
]

MAX_EXPONENT = 8
"""The greatest exponent, and the greatest degree of an expression: powers of powers grow fast."""

MAX_TERMS = 64
"""Terms that a product may have when it is multiplied out: JAX does that, and takes seconds for so many."""

MAX_BITS = 128
"""Bits of a number while an expression is computed: twice as many as any size has."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
_DIVISIONS: dict[str, type[ast.operator]] = {"floordiv": ast.FloorDiv, "mod": ast.Mod}

Reduction = Callable[[Any, Any], Any]
"""The lesser or the greater of two dims."""


@dataclass(frozen=True)
class Expression:
    """An expression, as a part of the text that it stands in.

    Attributes:
      text: the whole text.
      node: what it is.
      columns: for each character of what was parsed, its column in the text.
    """

    text: str
    node: ast.expr
    columns: Sequence[int]

    def __str__(self) -> str:
        """The expression as it was written."""
        begin, width = self._place(self.node)
        return self.text[begin : begin + width]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Its symbols, sorted."""
        return tuple(sorted({n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and n.id not in FUNCTIONS}))

    def is_linear_in(self, symbol: str) -> bool:
        """Whether it is a times the symbol plus b, neither with the symbol in it: other forms can have one value for
        several sizes."""
        return _degree_in(self.node, symbol) == 1

    def divisors(self) -> Iterator["Expression"]:
        """What it divides by."""
        for node in ast.walk(self.node):
            match node:
                case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), right=divisor):
                    yield Expression(self.text, divisor, self.columns)
                case ast.Call(func=ast.Name(id="floordiv" | "mod"), args=[_, divisor]):
                    yield Expression(self.text, divisor, self.columns)
                case _:
                    pass

    def value(self, sizes: Mapping[str, Any], least: Reduction = min, greatest: Reduction = max) -> Any:
        """The value for what stands for the symbols.

        Args:
          sizes: for each symbol a number, or a dim of JAX.
          least: the lesser of two such values.
          greatest: the greater of them.

        Raises:
          ExpressionError: a symbol has no size, it divides by zero, or a number in it is out of all proportion.
        """
        return self._value(self.node, sizes, {"min": least, "max": greatest})

    def part(self, symbol: str) -> "Expression":
        """The first place of a symbol in it."""
        found = next(n for n in ast.walk(self.node) if isinstance(n, ast.Name) and n.id == symbol)
        return Expression(self.text, found, self.columns)

    def error(self, what: str, hint: str = "") -> ExpressionError:
        """An error at its place."""
        return ExpressionError(what, self.text, *self._place(self.node), hint)

    def _value(self, node: ast.expr, sizes: Mapping[str, Any], reductions: Mapping[str, Reduction]) -> Any:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                if name not in sizes:
                    raise self._error(node, f"{name} has no size")
                return sizes[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._value(inner, sizes, reductions)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self._value(inner, sizes, reductions)
            case ast.BinOp(left=left, op=op, right=right):
                values = self._value(left, sizes, reductions), self._value(right, sizes, reductions)
                return self._apply(node, _OPERATORS[type(op)], values)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                values = tuple(self._value(a, sizes, reductions) for a in arguments)
                if name == "non_negative":
                    return reductions["max"](values[0], 0)
                if name in reductions:
                    return reduce(reductions[name], values)
                return self._apply(node, _OPERATORS[_DIVISIONS[name]], values)
            case _:
                raise self._error(node, f"{ast.unparse(node)} is not arithmetic")

    def _apply(self, node: ast.expr, function: Callable[[Any, Any], Any], values: tuple[Any, ...]) -> Any:
        try:
            found = function(*values)
        except ZeroDivisionError:
            raise self._error(node, "this divides by zero") from None
        if isinstance(found, int) and found.bit_length() > MAX_BITS:
            raise self._error(node, f"this is a number of more than {MAX_BITS} bits")
        return found

    def _place(self, node: ast.expr) -> tuple[int, int]:
        begin = self.columns[node.col_offset]
        return begin, self.columns[(node.end_col_offset or node.col_offset + 1) - 1] + 1 - begin

    def _error(self, node: ast.expr, what: str) -> ExpressionError:
        return ExpressionError(what, self.text, *self._place(node))


def symbols_of(text: str) -> tuple[str, ...]:
    """The symbols of an expression, sorted.

    Raises:
      ExpressionError: it is not an expression.
    """
    return whole(text).symbols


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The value of an expression for the sizes of its symbols.

    Raises:
      ExpressionError: it is no expression, a symbol has no size, it divides by zero, or a number in it is out of all
        proportion.
    """
    return whole(text).value(sizes)


@cache
def whole(text: str) -> Expression:
    """A text that is one expression.

    Raises:
      ExpressionError: it is none.
    """
    return expression(text, tokens_of(text), len(text.rstrip()))


def expression(text: str, tokens: Sequence[Token], stop: int) -> Expression:
    """The expression that words of a text make; stop is the column where it ends.

    Raises:
      ExpressionError: they make none.
    """
    check_order(text, tokens, stop)
    letters, columns = "", list[int]()
    for token in tokens:
        written = "**" if token.letters == "^" else token.letters
        letters += f"{written} "
        columns.extend(min(token.column + i, token.end - 1) for i in range(len(written) + 1))
    try:
        node = ast.parse(letters.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        begin = tokens[0].column
        raise ExpressionError("this is nested too deeply", text, begin, stop - begin) from None
    found = Expression(text, node, columns)
    _check_powers(found)
    _check_size(found, node)
    return found


def _check_powers(found: Expression) -> None:
    for node in ast.walk(found.node):
        match node:
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int(exponent))) if exponent <= MAX_EXPONENT:
                pass
            case ast.BinOp(op=ast.Pow(), right=exponent):
                raise Expression(found.text, exponent, found.columns).error(
                    f"an exponent is a number from 0 to {MAX_EXPONENT}"
                )
            case _:
                pass


def _check_size(found: Expression, node: ast.expr) -> tuple[int, int]:
    """The degree of a node and how many terms it has when it is multiplied out, from its parts; neither is great."""
    match node:
        case ast.Constant():
            return 0, 1
        case ast.UnaryOp(operand=inner):
            return _check_size(found, inner)
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(exponent))):
            degree, terms = _check_size(found, base)
            degree, terms = degree * exponent, comb(terms + exponent - 1, exponent)
        case ast.BinOp(left=left, op=op, right=right):
            (degree, terms), (other_degree, other_terms) = _check_size(found, left), _check_size(found, right)
            match op:
                case ast.Mult():
                    degree, terms = degree + other_degree, terms * other_terms
                case ast.Add() | ast.Sub():
                    degree, terms = max(degree, other_degree), terms + other_terms
                case _:  # a quotient or a remainder is one term
                    degree, terms = max(degree, other_degree), 1
        case ast.Call(args=arguments):
            degree, terms = 0, 1
            for argument in arguments:
                degree = max(degree, _check_size(found, argument)[0])
        case _:
            return 1, 1
    if degree > MAX_EXPONENT:
        raise Expression(found.text, node, found.columns).error(
            f"this multiplies {degree} sizes: {MAX_EXPONENT} are the most"
        )
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Pow))
    if is_product and terms > MAX_TERMS:
        raise Expression(found.text, node, found.columns).error(
            f"multiplied out this has {terms:,} terms: {MAX_TERMS} are the most"
        )
    return degree, terms


def _degree_in(node: ast.expr, symbol: str) -> int:
    """0 where a node has no symbol in it, 1 where it is linear in it, more where it may not be."""
    match node:
        case ast.Constant():
            return 0
        case ast.Name(id=name):
            return int(name == symbol)
        case ast.UnaryOp(operand=inner):
            return _degree_in(inner, symbol)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return max(_degree_in(left, symbol), _degree_in(right, symbol))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _degree_in(left, symbol) + _degree_in(right, symbol)
        case _:
            return 2 if any(isinstance(n, ast.Name) and n.id == symbol for n in ast.walk(node)) else 0


class _Operators(ast.NodeTransformer):
    """`mod(a, b)` as `a % b`, `floordiv(a, b)` as `a // b`."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in _DIVISIONS:
                return ast.BinOp(a, _DIVISIONS[name](), b)
            case _:
                return node


class _Sizes(ast.NodeTransformer):
    """Names replaced by sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.sizes[node.id]) if node.id in self.sizes else node


def substitute(text: str, sizes: Mapping[str, int]) -> str:
    """An expression of JAX's with sizes for some of its symbols: "b*s + 1" as "16*s + 1"; a number where none is left.

    Raises:
      ExpressionError: it is not an expression, or divides by zero.
    """
    found = whole(text)
    if all(name in sizes for name in found.symbols):
        return str(found.value(sizes))
    if not any(name in sizes for name in found.symbols):
        return text
    tree = ast.parse(ast.unparse(found.node), mode="eval").body
    return expression_text(_Sizes(sizes).visit(tree))


def expression_text(node: ast.expr) -> str:
    """An expression as a person writes it."""
    return ast.unparse(node).replace(" ** ", "^").replace(" * ", "*")


def rewritten(text: str) -> str:
    """An expression of JAX's in the notation that a person writes: "mod(s, 16)" as "s % 16".

    Raises:
      ExpressionError: it is not an expression.
    """
    found = whole(text)
    tree = ast.parse(ast.unparse(found.node), mode="eval").body  # a copy: the expression is kept
    return expression_text(_Operators().visit(tree))
