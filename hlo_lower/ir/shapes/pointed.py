"""An error that points into a text that a user wrote: the text, and a line of carets under the offending part."""

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
        return "\n".join((first, *pointed(self.text, self.column, self.width), *others))


def pointed(text: str, column: int, width: int) -> tuple[str, str]:
    """The text and the line of carets, both indented by four; a long text is shown around the place."""
    shown = "".join(" " if letter.isspace() else letter if letter.isprintable() else "?" for letter in text)
    begin = 0 if len(shown) <= MAX_SHOWN else max(0, column - MAX_SHOWN // 2)
    carets = "^" * max(1, min(width, begin + MAX_SHOWN - column))
    return f"    {shown[begin : begin + MAX_SHOWN]}", f"    {' ' * (column - begin)}{carets}"
