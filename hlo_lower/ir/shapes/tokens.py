"""The words of a shape expression, with their places, and the order in which they may come.

What this accepts, Python's own parser accepts, too; the order is checked here because a message needs the place of
what is missing, which Python's parser tells differently from one version to the next.
"""

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.base.errors import InputError

MAX_SHOWN = 160
"""Characters of a text that are shown."""


@dataclass(eq=False)
class PointedError(InputError):
    """A text that cannot be read, and where in it.

    Attributes:
      text: what the user wrote.
      column: where the offending part begins, from 0.
      width: how many characters it has.
    """

    text: str = ""
    column: int = 0
    width: int = 1

    def __str__(self) -> str:
        first, *others = super().__str__().split("\n")
        return "\n".join((first, *point_at(self.text, self.column, self.width), *others))


def point_at(text: str, column: int, width: int) -> tuple[str, str]:
    """The text and the line of carets, both indented by four; a long text is shown around the place."""
    shown = "".join(" " if letter.isspace() else letter if letter.isprintable() else "?" for letter in text)
    begin = 0 if len(shown) <= MAX_SHOWN else max(0, column - MAX_SHOWN // 2)
    carets = "^" * max(1, min(width, begin + MAX_SHOWN - column))
    return f"    {shown[begin : begin + MAX_SHOWN]}", f"    {' ' * (column - begin)}{carets}"


FUNCTIONS = {"min": (2, None), "max": (2, None), "mod": (2, 2), "floordiv": (2, 2), "non_negative": (1, 1)}
"""The functions of an expression: how many arguments at least and at most."""

MAX_TOKENS = 600
MAX_DIGITS = 19
MAX_NUMBER = 2**63 - 1

ACCEPTED = "names, whole numbers, + - * // % ^, parentheses, min(...), max(...), mod(a, b), floordiv(a, b)"

_KINDS = re.compile(
    r"(?P<space>\s+)|(?P<float>\d+\.(?!\.)\d*)|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<dots>\.\.\.)"
    r"|(?P<comparison>[=!<>]=|[<>=])|(?P<operator>\*\*|//|[-+*%^])|(?P<open>\()|(?P<close>\))|(?P<comma>,)",
    re.ASCII,
)


class ExpressionError(ValueError):
    """A text that is not an expression over symbols, or has no value.

    Attributes:
      what: what is wrong, one line.
      text: the whole text that was read.
      column: where in it, from 0.
      width: how many characters are meant.
      hint: what helps, one line; "" where only what an expression is made of can be told.
    """

    def __init__(self, what: str, text: str = "", column: int = 0, width: int = 1, hint: str = "") -> None:
        super().__init__(what)
        self.what, self.text, self.column, self.width, self.hint = what, text, column, width, hint


@dataclass(frozen=True)
class Token:
    """A word: its kind ("name", "number", "operator", ...), its letters, and where it begins."""

    kind: str
    letters: str
    column: int

    @property
    def end(self) -> int:
        """The column after it."""
        return self.column + len(self.letters)


def tokens_of(text: str, start: int = 0, stop: int | None = None) -> list[Token]:
    """The words of a part of a text; blanks are left out.

    Raises:
      ExpressionError: a character or a number that no expression has.
    """
    found: list[Token] = []
    column, stop = start, len(text) if stop is None else stop
    while column < stop:
        match = _KINDS.match(text, column, stop)
        if match is None:
            raise ExpressionError(_no_character(text[column]), text, column)
        token = Token(str(match.lastgroup), match[0], column)
        if token.kind == "float":
            raise _at(text, token, f"{token.letters} is not a whole number")
        if token.kind == "number" and len(token.letters) > MAX_DIGITS:
            raise _at(text, token, f"a number of {len(token.letters):,} digits is not a size")
        if token.kind == "number" and token.letters != str(int(token.letters)):
            raise _at(text, token, f"{token.letters} begins with 0: write {int(token.letters)}")
        if token.kind == "number" and int(token.letters) > MAX_NUMBER:
            raise _at(text, token, f"{token.letters} is not a size: the greatest is 2^63 - 1")
        if token.kind != "space":
            found.append(token)
        column = match.end()
    if len(found) > MAX_TOKENS:
        raise _at(text, found[MAX_TOKENS], f"an expression of more than {MAX_TOKENS} words is too long")
    return found


def _no_character(letter: str) -> str:
    if letter == "/":
        return "/ is not an operator of whole numbers: // divides and rounds down"
    shown = repr(letter) if letter.isprintable() else f"U+{ord(letter):04X}"
    return f"{shown} is not a character of a shape"


def _at(text: str, token: Token, what: str) -> ExpressionError:
    return ExpressionError(what, text, token.column, len(token.letters))


@dataclass
class _Opened:
    """A parenthesis that is open: the function that it calls, if it does, and the arguments so far."""

    token: Token
    function: Token | None
    arguments: int = 1


def check_order(text: str, tokens: Sequence[Token], stop: int) -> None:
    """Check that words make one expression.

    Args:
      text: the whole text.
      tokens: the words of the expression.
      stop: the column where the expression ends, for what is missing there.

    Raises:
      ExpressionError: they do not; it says what is missing or too much, and where.
    """
    opened: list[_Opened] = []
    wants_operand = True
    called: Token | None = None
    for n, token in enumerate(tokens):
        follows = tokens[n + 1].kind if n + 1 < len(tokens) else ""
        if wants_operand:
            called = _check_operand(text, token, follows, called, opened)
            wants_operand = not (token.kind == "number" or (token.kind == "name" and called is None))
        elif token.kind == "operator":
            wants_operand = True
        elif token.kind == "close":
            if not opened:
                raise _at(text, token, "this parenthesis closes nothing")
            _check_arguments(text, opened.pop())
        elif token.kind == "comma":
            if not opened or opened[-1].function is None:
                raise _at(text, opened[-1].token if opened else token, "this parenthesis is not closed")
            opened[-1].arguments += 1
            wants_operand = True
        elif token.kind == "comparison":
            raise _at(text, token, f"{token.letters} compares, which only a constraint of its own does")
        elif token.kind == "open" and tokens[n - 1].kind == "name":
            raise _at(text, tokens[n - 1], f"{tokens[n - 1].letters} is not a function")
        else:
            raise _at(text, token, f"an operator is missing before {token.letters}")
    if opened:
        raise _at(text, opened[-1].token, "this parenthesis is not closed")
    if wants_operand:
        raise ExpressionError("a name or a number is missing here", text, stop)


def _check_operand(text: str, token: Token, follows: str, called: Token | None, opened: list[_Opened]) -> Token | None:
    """Check a word where an operand has to begin; the function that it names, if it does."""
    if token.kind == "number" or (token.kind == "operator" and token.letters in "+-"):
        return None
    if token.kind == "open":
        opened.append(_Opened(token, called))
        return None
    if token.kind == "dots" or token.letters == "_":
        raise _at(text, token, f"{token.letters} keeps what the argument has and stands alone between commas")
    if token.kind != "name":
        raise _at(text, token, f"a name or a number is missing before {token.letters}")
    if token.letters in FUNCTIONS:
        if follows != "open":
            raise _at(text, token, f"{token.letters} is a function and cannot be a name")
        return token
    if follows == "open":
        raise _at(text, token, f"{token.letters} is not a function")
    if keyword.iskeyword(token.letters):
        raise _at(text, token, f"{token.letters} is a word of Python and cannot be a name")
    return None


def _check_arguments(text: str, opened: _Opened) -> None:
    if opened.function is None:
        return
    least, most = FUNCTIONS[opened.function.letters]
    if opened.arguments < least or (most is not None and opened.arguments > most):
        wanted = f"{least} arguments" if least == most else f"{least} arguments or more"
        wanted = "1 argument" if (least, most) == (1, 1) else wanted
        raise _at(text, opened.function, f"{opened.function.letters} takes {wanted}, not {opened.arguments}")
