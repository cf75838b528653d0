"""Random integer expressions, as index computations are made: a source that has some order, and then what keeps or
breaks it, by wrapping around, by a type that is too narrow, by a choice.
"""

from facts_lines import Lines, Shape, Term
from facts_sources import PLAIN, SOURCES, STRUCTURED, order_of
from facts_steps import NESTING, OFTEN, SHAPED, STEPS, less_itself, modulo, normalised

from hlo_lower.testing.fuzz.draw import Draw
from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES


class Expressions:
    """Draws the expressions of one program.

    Attributes:
      draw: the choices.
      sizes: numbers that mean something to it: extents, and around them.
      types: element types, the first one most often.
    """

    def __init__(self, draw: Draw, sizes: tuple[int, ...], symbol: str) -> None:
        self.draw, self.sizes, self.symbol = draw, sizes, symbol
        self.types = tuple(draw.choice(INDEX_TYPES) for _ in range(3))
        self.calls = 0

    def element(self) -> str:
        """An element type."""
        return self.draw.choice((self.types[0], self.types[0], *self.types))

    def number(self) -> int:
        """A number that something depends on."""
        draw = self.draw
        near = [1, 2, -1, 3, -3, 100, -100, 127, 128, -128, 200, 255, 256, 1 << 31, -(1 << 31), (1 << 31) - 1]
        return draw.choice(self.sizes) + draw.integer(-1, 1) if draw.chance(50) else draw.choice(near)

    def expression(self, lines: Lines, shape: Shape, depth: int = 0) -> Term:
        """A value of a shape."""
        draw = self.draw
        element = self.element()
        found = SOURCES[draw.choice(STRUCTURED if shape and draw.chance(80) else PLAIN)](self, lines, shape, element)
        for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4)) if not depth else draw.integer(0, 2)):
            found = self.step(lines, found, depth)
        return found

    def step(self, lines: Lines, found: Term, depth: int = 0) -> Term:
        """One op, or a few, more."""
        names = [name for name in OFTEN if (found.shape or name not in SHAPED) and (not depth or name not in NESTING)]
        return STEPS[self.draw.choice(names)](self, lines, found)

    def idiom(self, lines: Lines, size: int, extent: int, final: str) -> Term:
        """A vector as exporters compute it for a dim of this extent; in some cases with a step more."""
        draw = self.draw
        element = draw.choice((final, final, "i32", "i64", "i8", self.element()))
        kind = draw.choice(("normalised run", "order", "ring", "sorted", "sums", "drop", "congruent", "congruent"))
        if kind in ("normalised run", "ring"):
            base = lines.argument((), element)
            if kind == "ring" or draw.chance(20):
                base = lines.clamp(0, base, draw.choice((extent, 2 * extent, 99)))
            found = lines.binary("add", self.spread(lines, base, (size,)), lines.iota((size,), 0, element))
            self.sizes = (extent,)
            found = (normalised if kind == "normalised run" else modulo)(self, lines, found)
        elif kind == "congruent":
            found = self.congruent(lines, size, final)
        elif kind == "sorted":
            found = lines.sort([lines.clamp(0, lines.argument((size,), element), extent - 1)], 0)[0]
        elif kind == "sums":
            found = lines.running_sum(lines.clamp(draw.integer(0, 1), lines.argument((size,), element), 3), 0,
                                      is_reversed=False)  # fmt: skip
        else:
            found = order_of(self, lines, (size,), element)
            if kind == "drop":
                mask = lines.argument((size,), "i1")
                found = lines.select(mask, found, lines.constant(draw.choice((extent, -1)), (size,), element))
        return self.step(lines, found) if draw.chance(35) else found

    def congruent(self, lines: Lines, size: int, final: str) -> Term:
        """What is congruent to a run, or to the coordinate, but another number where a narrow type wraps around."""
        draw, iota, number = self.draw, lines.iota((size,), 0, final), self.draw.choice((126, 125, 127, 122, 100))
        kind = draw.choice(("apart", "moved back", "two ways", "two ways", "normalised"))
        if kind == "apart":
            return less_itself(self, lines, iota)
        if kind == "normalised":
            self.sizes = (size, size, size + 3)
            base = self.spread(lines, lines.argument((), final), (size,))
            return normalised(self, lines, lines.binary("add", base, iota))
        narrow = lines.iota((size,), 0, "i8")
        if kind == "moved back":
            moved = lines.convert(lines.with_number("add", narrow, number), final)
            return lines.with_number("subtract", moved, number)
        base = lines.argument((), "i8")
        if draw.chance(50):  # where it wraps around
            base = lines.clamp(127 - size, base, 127)
        run = lines.binary("add", self.spread(lines, base, (size,)), narrow)
        early = lines.convert(lines.with_number("add", run, number), final)
        late = lines.with_number("add", lines.convert(run, final), number)
        return lines.select(lines.argument((), "i1"), *draw.choice(((early, late), (early, late), (late, early))))

    def spread(self, lines: Lines, scalar: Term, shape: Shape) -> Term:
        """A scalar everywhere."""
        return lines.broadcast(scalar, shape, ()) if shape else scalar

    def same_type(self, lines: Lines, found: Term, like: Term) -> Term:
        """A value, converted to the type of another."""
        return found if found.element == like.element else lines.convert(found, like.element)

    def dim(self, shape: Shape) -> int:
        """One of the dims."""
        return self.draw.integer(0, len(shape) - 1)
