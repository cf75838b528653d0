"""What the parts of random index expressions may ask of the whole: `facts_expressions.Expressions`."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from facts_lines import Lines, Shape, Term

from hlo_lower.testing.fuzz.draw import Draw


class Chooser(Protocol):
    """Draws the expressions of one program; the methods are described there."""

    draw: Draw
    sizes: tuple[int, ...]
    symbol: str
    calls: int

    def number(self) -> int: ...

    def step(self, lines: Lines, found: Term, depth: int = 0) -> Term: ...

    def spread(self, lines: Lines, scalar: Term, shape: Shape) -> Term: ...

    def same_type(self, lines: Lines, found: Term, like: Term) -> Term: ...

    def dim(self, shape: Shape) -> int: ...


Source: TypeAlias = Callable[[Chooser, Lines, Shape, str], Term]
Step: TypeAlias = Callable[[Chooser, Lines, Term], Term]
