"""Random integer expressions, as index computations are made: a source that has some order, and then what keeps or
breaks it, by wrapping around, by a type that is too narrow, by a choice.
"""

from math import prod

import numpy as np
from facts_lines import Lines, Shape, Term
from untyped_mlir import function

from hlo_lower.testing.fuzz.draw import Draw
from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES

STRUCTURED = ("iota", "run", "run", "run", "digits", "even", "sorted", "order", "order", "sums", "flattened")
"""Sources, as often as they are drawn: methods named `from_...`."""
PLAIN = ("argument", "base")
NEAR = (1, 2, -1, 3, -3, 100, -100, 127, 128, -128, 200, 255, 256, 1 << 31, -(1 << 31), (1 << 31) - 1)


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
        return draw.choice(self.sizes) + draw.integer(-1, 1) if draw.chance(50) else draw.choice(NEAR)

    def expression(self, lines: Lines, shape: Shape, depth: int = 0) -> Term:
        """A value of a shape."""
        draw = self.draw
        element = self.element()
        source = draw.choice(STRUCTURED if shape and draw.chance(80) else PLAIN)
        found = getattr(self, f"from_{source}")(lines, shape, element)
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
            found = (self.normalised if kind == "normalised run" else self.modulo)(lines, found)
        elif kind == "congruent":
            found = self.congruent(lines, size, final)
        elif kind == "sorted":
            found = lines.sort([lines.clamp(0, lines.argument((size,), element), extent - 1)], 0)[0]
        elif kind == "sums":
            sizes = lines.clamp(draw.integer(0, 1), lines.argument((size,), element), 3)
            found = lines.running_sum(sizes, 0, is_reversed=False)
        else:
            found = self.from_order(lines, (size,), element)
            if kind == "drop":
                mask = lines.argument((size,), "i1")
                found = lines.select(mask, found, lines.constant(draw.choice((extent, -1)), (size,), element))
        return self.step(lines, found) if draw.chance(35) else found

    def congruent(self, lines: Lines, size: int, final: str) -> Term:
        """What is congruent to a run, or to the coordinate, but another number where a narrow type wraps around."""
        draw, iota, number = self.draw, lines.iota((size,), 0, final), self.draw.choice((126, 125, 127, 122, 100))
        kind = draw.choice(("apart", "moved back", "two ways", "two ways", "normalised"))
        if kind == "apart":
            return self.less_itself(lines, iota)
        if kind == "normalised":
            self.sizes = (size, size, size + 3)
            base = self.spread(lines, lines.argument((), final), (size,))
            return self.normalised(lines, lines.binary("add", base, iota))
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

    def stepped(self, lines: Lines, a: Term, depth: int = 1) -> Term:
        """One step more, in the same type."""
        return self.same_type(lines, self.step(lines, a, depth=depth), a)

    def dim(self, shape: Shape) -> int:
        """One of the dims."""
        return self.draw.integer(0, len(shape) - 1)

    # --- where they begin: arguments, and what has some order to it ---

    def from_argument(self, lines: Lines, shape: Shape, element: str) -> Term:
        return lines.argument(shape, element)

    def from_base(self, lines: Lines, shape: Shape, element: str) -> Term:
        return self.spread(lines, lines.argument((), element), shape)

    def from_iota(self, lines: Lines, shape: Shape, element: str) -> Term:
        return lines.iota(shape, self.dim(shape), element)

    def from_run(self, lines: Lines, shape: Shape, element: str) -> Term:
        iota, base = self.from_iota(lines, shape, element), self.from_base(lines, shape, element)
        if self.draw.chance(30):
            iota = lines.with_number("multiply", iota, self.draw.choice((2, -1, 3, self.number())))
        if self.draw.chance(40):
            base = self.stepped(lines, base)
        return lines.binary(self.draw.choice(("add", "add", "subtract")), base, iota)

    def from_digits(self, lines: Lines, shape: Shape, element: str) -> Term:
        found = lines.iota(shape, 0, element)
        for d in range(1, len(shape)):
            stride = self.draw.choice((shape[d], shape[d], shape[d] + 1, shape[d] - 1))
            found = lines.binary("add", lines.with_number("multiply", found, stride), lines.iota(shape, d, element))
        return found

    def from_even(self, lines: Lines, shape: Shape, element: str) -> Term:
        values = self.draw.integer(-1, 2) + self.draw.choice((1, 2, -1, 0, 3)) * np.indices(shape)[self.dim(shape)]
        return lines.constant(values, shape, element)

    def from_sorted(self, lines: Lines, shape: Shape, element: str) -> Term:
        found = lines.argument(shape, element)
        if self.draw.chance(60):
            found = lines.clamp(0, found, self.draw.choice(self.sizes) - 1)
        return lines.sort([found], self.dim(shape), self.draw.choice(("LT", "LT", "LT", "GT")))[0]

    def from_order(self, lines: Lines, shape: Shape, element: str) -> Term:
        """An argsort, along one of the dims."""
        dim = self.dim(shape)
        return lines.sort([lines.argument(shape, "i32"), lines.iota(shape, dim, element)], dim)[1]

    def from_sums(self, lines: Lines, shape: Shape, element: str) -> Term:
        least = self.draw.choice((0, 1, 2, 1, -1))
        if element.startswith("u"):
            least = max(least, 0)
        sizes = lines.clamp(least, lines.argument(shape, element), self.draw.choice((3, 5, 40)))
        return lines.running_sum(sizes, self.dim(shape), is_reversed=self.draw.chance(20))

    def from_flattened(self, lines: Lines, shape: Shape, element: str) -> Term:
        size, dim = shape[-1], len(shape) - 1
        split = [n for n in (2, 3, 4, 5) if size % n == 0 and size > n]
        if not split:
            return self.from_run(lines, shape, element)
        inner = self.draw.choice(split)
        before = (*shape[:dim], size // inner, inner)
        made = self.from_digits if self.draw.chance(40) else self.from_pages
        return lines.reshape(made(lines, before, element), shape)

    def from_pages(self, lines: Lines, shape: Shape, element: str) -> Term:
        """Pages of a table, and the places in them."""
        pages, last = lines.argument(shape[:-1], element), len(shape) - 1
        spread = lines.broadcast(pages, shape, tuple(range(last)))
        block = self.draw.choice((shape[-1], shape[-1], 1, shape[-1] + 1))
        return lines.binary("add", lines.with_number("multiply", spread, block), lines.iota(shape, last, element))

    # --- steps that take more than a line ---

    def moved(self, lines: Lines, a: Term) -> Term:
        base = lines.argument((), a.element)
        if self.draw.chance(30):
            base = lines.clamp(0, base, self.draw.choice(self.sizes))
        return lines.binary(self.draw.choice(("add", "subtract")), a, self.spread(lines, base, a.shape))

    def through(self, lines: Lines, a: Term) -> Term:
        """Through another type, with something added on either side, or what is left subtracted."""
        other, number = self.draw.choice(INDEX_TYPES), self.number()
        inner = lines.convert(a, other)
        if self.draw.chance(60):
            inner = lines.with_number("add", inner, number)
        found = lines.convert(inner, a.element)
        if self.draw.chance(60):
            found = lines.with_number("subtract", found, number)
        return lines.binary("subtract", a, found) if self.draw.chance(20) else found

    def less_itself(self, lines: Lines, a: Term) -> Term:
        """iota + x - (x through a narrower type): the coordinate, for those x that fit."""
        x = lines.argument((), a.element)
        narrow = lines.convert(lines.convert(x, self.draw.choice(("i8", "ui8", "i16", "i32"))), a.element)
        apart = self.spread(lines, lines.binary("subtract", x, narrow), a.shape)
        return lines.binary("add", apart, a)

    def normalised(self, lines: Lines, a: Term) -> Term:
        """Negative ones moved up."""
        zero = lines.constant(0, a.shape, a.element)
        up = lines.with_number("add", a, self.draw.choice((*self.sizes, self.number())))
        if self.draw.chance(80):
            return lines.select(lines.compare("LT", a, zero), up, a)
        return lines.select(lines.compare("GE", a, zero), a, up)

    def modulo(self, lines: Lines, a: Term) -> Term:
        """What is left after a division; not negative in half of the cases."""
        size = lines.constant(self.draw.choice(self.sizes), a.shape, a.element)
        found = lines.binary("remainder", a, size)
        if self.draw.chance(50):
            zero = lines.constant(0, a.shape, a.element)
            found = lines.select(lines.compare("LT", found, zero), lines.binary("add", found, size), found)
        return found

    def masked(self, lines: Lines, a: Term) -> Term:
        """where(mask, x, c)."""
        mask = lines.argument(a.shape if self.draw.chance(70) else (), "i1")
        other = lines.constant(self.draw.choice((*self.sizes, -1, self.number())), a.shape, a.element)
        return lines.select(mask, *((a, other) if self.draw.chance(70) else (other, a)))

    def either(self, lines: Lines, a: Term) -> Term:
        """One of two ways from the same value, chosen as a whole."""
        b, c = (self.stepped(lines, a) for _ in range(2))
        return lines.select(lines.argument((), "i1"), b, c)

    def case(self, lines: Lines, a: Term) -> Term:
        branches = [(inner := lines.nested(), self.stepped(inner, a)) for _ in range(2)]
        return lines.case(lines.argument((), "i32"), branches)

    def loop(self, lines: Lines, a: Term) -> Term:
        times = lines.clamp(0, lines.argument((), "i32"), 3)

        def body(inner: Lines, carried: Term, counter: Term) -> Term:
            if self.draw.chance(40):
                step = self.spread(inner, inner.convert(counter, carried.element), carried.shape)
                return inner.binary("add", carried, step)
            return self.stepped(inner, carried)

        return lines.repeat(a, times, body)

    def call(self, lines: Lines, a: Term) -> Term:
        """A private function of the value, called twice; one of the results is taken, or both are added."""
        self.calls += 1
        symbol = f"{self.symbol}_f{self.calls}"
        inner = Lines(f"f{self.calls}_", functions=lines.functions)
        x, base = Term("%x", a.shape, a.element), Term("%b", (), a.element)
        found = inner.binary("add", x, self.spread(inner, base, x.shape)) if self.draw.chance(50) else x
        found = self.same_type(inner, self.step(inner, found, depth=2), a)
        if inner.arguments:  # what it reads besides comes from the caller
            return a
        lines.functions.append(function(f"private @{symbol}", f"%x: {x.type}, %b: {base.type}", inner.returning(found)))
        first, second = (lines.call([a, lines.argument((), a.element)], symbol, found) for _ in range(2))
        return lines.binary("subtract", lines.binary("add", first, second), second) if self.draw.chance(20) else first

    def rolled(self, lines: Lines, a: Term) -> Term:
        dim = self.dim(a.shape)
        size = a.shape[dim]
        if size < 2:
            return a
        at = self.draw.integer(1, size - 1)
        begin = at if self.draw.chance(80) else at - 1
        return lines.concatenate([lines.slice(a, dim, begin, begin + size - at), lines.slice(a, dim, 0, at)], dim)

    def picked(self, lines: Lines, a: Term) -> Term:
        """Elements at places: of a vector at an argsort, or at data."""
        if len(a.shape) != 1:
            return lines.reverse(a, self.dim(a.shape))
        if self.draw.chance(50):
            return lines.taken(a, self.from_order(lines, a.shape, "i32"))
        return lines.taken(a, lines.argument(a.shape, "i32"))

    def windowed(self, lines: Lines, a: Term) -> Term:
        """A part of a longer vector from a runtime start."""
        if len(a.shape) != 1:
            return lines.reverse(a, self.dim(a.shape))
        longer = lines.concatenate([a, lines.with_number("add", a, a.shape[0])], 0)
        return lines.dynamic_slice(longer, lines.argument((), "i32"), a.shape[0])

    def turned(self, lines: Lines, a: Term) -> Term:
        """Flattened, or with other dims, and back."""
        if len(a.shape) < 2:
            return lines.reshape(lines.reverse(lines.reshape(a, (1, *a.shape)), 0), a.shape)
        return lines.reshape(self.stepped(lines, lines.reshape(a, (prod(a.shape),))), a.shape)


def _pick(x: Expressions, *choices):
    """One of some choices."""
    return x.draw.choice(choices)


STEPS = {
    "added": lambda x, to, a: to.with_number(_pick(x, "add", "add", "subtract"), a, x.number()),
    "mirrored": lambda x, to, a: to.binary("subtract", to.constant(x.number(), a.shape, a.element), a),
    "scaled": lambda x, to, a: to.with_number("multiply", a, _pick(x, 2, 3, -1, 4, x.number())),
    "moved": Expressions.moved,
    "converted": lambda x, to, a: to.convert(a, x.draw.choice(INDEX_TYPES)),
    "through": Expressions.through,
    "less itself": Expressions.less_itself,
    "clamped": lambda x, to, a: to.clamp(_pick(x, 0, 0, 0, 1, -1), a, x.draw.choice(x.sizes) - 1),
    "cut": lambda x, to, a: to.with_number(_pick(x, "minimum", "maximum"), a, _pick(x, 0, *x.sizes)),
    "negated": lambda x, to, a: to.unary(
        "negate" if a.element.startswith("u") else _pick(x, "negate", "abs", "not"), a
    ),
    "normalised": Expressions.normalised,
    "modulo": Expressions.modulo,
    "halved": lambda x, to, a: to.with_number(_pick(x, "divide", "and", "shift_left"), a, _pick(x, 2, 1, 3, 7)),
    "masked": Expressions.masked,
    "either": Expressions.either,
    "case": Expressions.case,
    "loop": Expressions.loop,
    "call": Expressions.call,
    "reversed": lambda x, to, a: to.reverse(a, x.dim(a.shape)),
    "rolled": Expressions.rolled,
    "sorted again": lambda x, to, a: to.sort([a], x.dim(a.shape))[0],
    "summed": lambda x, to, a: to.running_sum(a, x.dim(a.shape), is_reversed=x.draw.chance(20)),
    "picked": Expressions.picked,
    "windowed": Expressions.windowed,
    "turned": Expressions.turned,
}
OFTEN = (*STEPS, "through", "converted", "normalised", "normalised", "less itself", "either", "added", "moved")
"""Steps as often as they are drawn."""
SHAPED = frozenset({"reversed", "rolled", "sorted again", "summed", "picked", "windowed", "turned"})
"""Steps for what is no scalar."""
NESTING = frozenset({"either", "case", "loop", "call", "turned"})
"""Steps that hold others."""
