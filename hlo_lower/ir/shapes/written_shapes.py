"""Shapes and constraints as a person writes them: `"bf16[batch * num_heads, head_dim]"`, `"block_size % 16 == 0"`.

A shape is a list of dims with commas between them, in parentheses or not. `...` keeps the dims that an argument has,
from there on, `_` keeps one. An element type may stand before brackets around the list. A text that compares is a
constraint and no shape.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt

from hlo_lower.ir.shapes.expressions import Expression, expression
from hlo_lower.ir.shapes.tokens import ExpressionError, Token, tokens_of

COMPARISONS = {"==": eq, ">=": ge, "<=": le, ">": gt, "<": lt}
"""What a constraint may say of its sides."""


@dataclass(frozen=True)
class KeptDim:
    """A dim, or with "..." all the dims from there on, that stays as the argument has it.

    Attributes:
      text: the whole text.
      token: "_" or "...", and where.
    """

    text: str
    token: Token

    @property
    def is_rest(self) -> bool:
        """Whether it is "..."."""
        return self.token.kind == "dots"

    def error(self, what: str, hint: str = "") -> ExpressionError:
        """An error at its place."""
        return ExpressionError(what, self.text, self.token.column, len(self.token.letters), hint)


@dataclass(frozen=True)
class WrittenShape:
    """A shape as it was written.

    Attributes:
      text: the whole text.
      element: the element type before the brackets; "" without one.
      element_column: where the element type begins.
      dims: its dims.
    """

    text: str
    element: str
    element_column: int
    dims: tuple[Expression | KeptDim, ...]

    def error(self, what: str, hint: str = "") -> ExpressionError:
        """An error that is about all of it."""
        return ExpressionError(what, self.text, 0, len(self.text), hint)

    def element_error(self, what: str, hint: str = "") -> ExpressionError:
        """An error at the element type."""
        return ExpressionError(what, self.text, self.element_column, len(self.element), hint)


@dataclass(frozen=True)
class WrittenConstraint:
    """A comparison of two expressions.

    Attributes:
      text: the whole text.
      comparison: "==", ">=", "<=", ">" or "<".
      left: what stands before it.
      right: what stands after it.
    """

    text: str
    comparison: str
    left: Expression
    right: Expression

    def error(self, what: str, hint: str = "") -> ExpressionError:
        """An error that is about all of it."""
        return ExpressionError(what, self.text, 0, len(self.text), hint)


def read_written(text: str) -> WrittenShape | WrittenConstraint:
    """Read a shape or a constraint.

    Raises:
      ExpressionError: it is neither; it says what is wrong, and where.
    """
    if found := re.fullmatch(r"\s*([A-Za-z]\w*)\s*\[(.*)\]\s*", text, re.ASCII | re.DOTALL):
        dims = _dims(text, tokens_of(text, found.start(2), found.end(2)), found.end(2))
        return WrittenShape(text, found[1], found.start(1), dims)
    tokens = tokens_of(text)
    if any(token.kind == "comparison" for token in tokens):
        return _constraint(text, tokens)
    return WrittenShape(text, "", 0, _dims(text, tokens, len(text.rstrip())))


def _constraint(text: str, tokens: Sequence[Token]) -> WrittenConstraint:
    places = [n for n, token in enumerate(tokens) if token.kind == "comparison"]
    first = tokens[places[0]]
    for n in places[1:]:
        what = "a constraint compares once: write two of them"
        raise ExpressionError(what, text, tokens[n].column, len(tokens[n].letters))
    if first.letters not in COMPARISONS:
        hint = "an equation is written ==" if first.letters == "=" else f"a constraint has {', '.join(COMPARISONS)}"
        raise ExpressionError(
            f"{first.letters} is not a comparison here: {hint}", text, first.column, len(first.letters)
        )
    before, after = tokens[: places[0]], tokens[places[0] + 1 :]
    for side in (before, after):
        for _, comma in _outer_commas(side):
            raise ExpressionError("a constraint stands alone: no comma", text, comma.column)
    left = expression(text, before, first.column)
    return WrittenConstraint(text, first.letters, left, expression(text, after, len(text.rstrip())))


def _dims(text: str, tokens: Sequence[Token], stop: int) -> tuple[Expression | KeptDim, ...]:
    """The dims that words make; stop is the column after them."""
    if _is_enclosed(tokens):
        tokens, stop = tokens[1:-1], tokens[-1].column
    found: list[Expression | KeptDim] = []
    begin = 0
    for n, comma in (*_outer_commas(tokens), (len(tokens), None)):
        part = tokens[begin:n]
        if part or comma is not None:  # nothing stands after a comma at the end
            found.append(_dim(text, part, stop if comma is None else comma.column))
        begin = n + 1
    for dim in found[:-1]:
        if isinstance(dim, KeptDim) and dim.is_rest:
            raise dim.error("... stands for all the dims from there on: nothing comes after it")
    return tuple(found)


def _dim(text: str, tokens: Sequence[Token], stop: int) -> Expression | KeptDim:
    if len(tokens) == 1 and (tokens[0].kind == "dots" or tokens[0].letters == "_"):
        return KeptDim(text, tokens[0])
    return expression(text, tokens, stop)


def _outer_commas(tokens: Sequence[Token]) -> list[tuple[int, Token]]:
    """The commas that stand in no parentheses, and their numbers among the words."""
    found: list[tuple[int, Token]] = []
    depth = 0
    for n, token in enumerate(tokens):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind == "comma" and depth <= 0:
            found.append((n, token))
    return found


def _is_enclosed(tokens: Sequence[Token]) -> bool:
    """Whether the first parenthesis is closed by the last word."""
    depth = 0
    for n, token in enumerate(tokens):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth == 0:
            return n > 0 and n == len(tokens) - 1
    return False
