"""Random integer expressions, as index computations are made: a source that has some order, and then what keeps or
breaks it, by wrapping around, by a type that is too narrow, by a choice.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from facts_lines import Lines, Shape, Term
from untyped_mlir import function

from hlo_lower.testing.fuzz.draw import Draw
from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES

NEAR = (1, 2, -1, 3, -3, 100, -100, 127, 128, -128, 200, 255, 256, 1 << 31, -(1 << 31), (1 << 31) - 1)


@dataclass(kw_only=True)
class Expressions(Lines):
    """Lines that are drawn.

    Attributes:
      draw: the choices.
      sizes: numbers that mean something to it: extents, and around them.
      types: element types, the first one most often.
      symbol: of the program, and how many functions it calls.
    """

    draw: Draw
    sizes: tuple[int, ...]
    types: tuple[str, ...]
    symbol: str
    calls: int = 0

    def pick(self, *choices: Any) -> Any:
        return self.draw.choice(choices)

    def an_element(self) -> str:
        return self.pick(self.types[0], self.types[0], *self.types)

    def number(self) -> int:
        """A number that something depends on."""
        draw = self.draw
        return draw.choice(self.sizes) + draw.integer(-1, 1) if draw.chance(50) else draw.choice(NEAR)

    def dim(self, shape: Shape) -> int:
        return self.draw.integer(0, len(shape) - 1)

    def expression(self, shape: Shape) -> Term:
        """A value of a shape: from a source, in some steps."""
        element = self.an_element()
        source = self.draw.choice(self.STRUCTURED if shape and self.draw.chance(80) else self.PLAIN)
        found = source(self, shape, element)
        for _ in range(self.pick(0, 1, 1, 2, 2, 3, 4)):
            found = self.step(found)
        return found

    def step(self, found: Term, *, within: bool = False) -> Term:
        """One op, or a few, more."""
        not_now = (*(() if found.shape else self.SHAPED), *(self.NESTING if within else ()))
        return self.draw.choice([step for step in self.OFTEN if step not in not_now])(self, found)

    def stepped(self, a: Term) -> Term:
        """One step more, in the same type."""
        return self.same_type(self.step(a, within=True), a)

    def same_type(self, found: Term, like: Term) -> Term:
        return found if found.element == like.element else self.convert(found, like.element)

    def spread(self, scalar: Term, shape: Shape) -> Term:
        """A scalar everywhere."""
        return self.broadcast(scalar, shape, ()) if shape else scalar

    def idiom(self, size: int, extent: int, final: str) -> Term:
        """A vector as exporters compute it for a dim of this extent; in some cases with a step more."""
        draw = self.draw
        element = self.pick(final, final, "i32", "i64", "i8", self.an_element())
        kind = self.pick("normalised run", "order", "ring", "sorted", "sums", "drop", "congruent", "congruent")
        if kind in ("normalised run", "ring"):
            base = self.argument((), element)
            if kind == "ring" or draw.chance(20):
                base = self.clamp(0, base, self.pick(extent, 2 * extent, 99))
            found = self.like("add", self.spread(base, (size,)), self.iota((size,), 0, element))
            self.sizes = (extent,)
            found = (self.normalised if kind == "normalised run" else self.modulo)(found)
        elif kind == "congruent":
            found = self.congruent(size, final)
        elif kind == "sorted":
            found = self.sort([self.clamp(0, self.argument((size,), element), extent - 1)], 0)[0]
        elif kind == "sums":
            sizes = self.clamp(draw.integer(0, 1), self.argument((size,), element), 3)
            found = self.running_sum(sizes, 0, is_reversed=False)
        else:
            found = self.an_order((size,), element)
            if kind == "drop":
                mask = self.argument((size,), "i1")
                found = self.select(mask, found, self.constant(self.pick(extent, -1), (size,), element))
        return self.step(found) if draw.chance(35) else found

    def congruent(self, size: int, final: str) -> Term:
        """What is congruent to a run, or to the coordinate, but another number where a narrow type wraps around."""
        draw, iota, number = self.draw, self.iota((size,), 0, final), self.pick(126, 125, 127, 122, 100)
        kind = self.pick("apart", "moved back", "two ways", "two ways", "normalised")
        if kind == "apart":
            return self.less_itself(iota)
        if kind == "normalised":
            self.sizes = (size, size, size + 3)
            return self.normalised(self.like("add", self.spread(self.argument((), final), (size,)), iota))
        narrow = self.iota((size,), 0, "i8")
        if kind == "moved back":
            moved = self.convert(self.with_number("add", narrow, number), final)
            return self.with_number("subtract", moved, number)
        base = self.argument((), "i8")
        if draw.chance(50):  # where it wraps around
            base = self.clamp(127 - size, base, 127)
        run = self.like("add", self.spread(base, (size,)), narrow)
        early = self.convert(self.with_number("add", run, number), final)
        late = self.with_number("add", self.convert(run, final), number)
        return self.select(self.argument((), "i1"), *draw.choice(((early, late), (early, late), (late, early))))

    def a_base(self, shape: Shape, element: str) -> Term:
        return self.spread(self.argument((), element), shape)

    def an_iota(self, shape: Shape, element: str) -> Term:
        return self.iota(shape, self.dim(shape), element)

    def a_run(self, shape: Shape, element: str) -> Term:
        iota, base = self.an_iota(shape, element), self.a_base(shape, element)
        if self.draw.chance(30):
            iota = self.with_number("multiply", iota, self.pick(2, -1, 3, self.number()))
        if self.draw.chance(40):
            base = self.stepped(base)
        return self.like(self.pick("add", "add", "subtract"), base, iota)

    def digits(self, shape: Shape, element: str) -> Term:
        found = self.iota(shape, 0, element)
        for d in range(1, len(shape)):
            stride = self.pick(shape[d], shape[d], shape[d] + 1, shape[d] - 1)
            found = self.like("add", self.with_number("multiply", found, stride), self.iota(shape, d, element))
        return found

    def even_numbers(self, shape: Shape, element: str) -> Term:
        values = self.draw.integer(-1, 2) + self.pick(1, 2, -1, 0, 3) * np.indices(shape)[self.dim(shape)]
        return self.constant(values, shape, element)

    def sorted_numbers(self, shape: Shape, element: str) -> Term:
        found = self.argument(shape, element)
        if self.draw.chance(60):
            found = self.clamp(0, found, self.draw.choice(self.sizes) - 1)
        return self.sort([found], self.dim(shape), self.pick("LT", "LT", "LT", "GT"))[0]

    def an_order(self, shape: Shape, element: str) -> Term:
        """An argsort, along one of the dims."""
        dim = self.dim(shape)
        return self.sort([self.argument(shape, "i32"), self.iota(shape, dim, element)], dim)[1]

    def sums(self, shape: Shape, element: str) -> Term:
        least = self.pick(0, 1, 2, 1, -1)
        least = max(least, 0) if element.startswith("u") else least
        sizes = self.clamp(least, self.argument(shape, element), self.pick(3, 5, 40))
        return self.running_sum(sizes, self.dim(shape), is_reversed=self.draw.chance(20))

    def flattened(self, shape: Shape, element: str) -> Term:
        size, dim = shape[-1], len(shape) - 1
        split = [n for n in (2, 3, 4, 5) if size % n == 0 and size > n]
        if not split:
            return self.a_run(shape, element)
        inner = self.draw.choice(split)
        made = self.digits if self.draw.chance(40) else self.pages
        return self.reshape(made((*shape[:dim], size // inner, inner), element), shape)

    def pages(self, shape: Shape, element: str) -> Term:
        """Pages of a table, and the places in them."""
        last = len(shape) - 1
        spread = self.broadcast(self.argument(shape[:-1], element), shape, tuple(range(last)))
        block = self.pick(shape[-1], shape[-1], 1, shape[-1] + 1)
        return self.like("add", self.with_number("multiply", spread, block), self.iota(shape, last, element))

    PLAIN = (Lines.argument, a_base)
    STRUCTURED = (
        *(an_iota, a_run, a_run, a_run, digits, even_numbers, sorted_numbers, an_order, an_order, sums, flattened),
    )
    """Sources, as often as they are drawn."""

    def converted(self, a: Term) -> Term:
        return self.convert(a, self.draw.choice(INDEX_TYPES))

    def moved(self, a: Term) -> Term:
        base = self.argument((), a.element)
        if self.draw.chance(30):
            base = self.clamp(0, base, self.draw.choice(self.sizes))
        return self.like(self.pick("add", "subtract"), a, self.spread(base, a.shape))

    def through(self, a: Term) -> Term:
        """Through another type, with something added on either side, or what is left subtracted."""
        other, number = self.draw.choice(INDEX_TYPES), self.number()
        inner = self.convert(a, other)
        if self.draw.chance(60):
            inner = self.with_number("add", inner, number)
        found = self.convert(inner, a.element)
        if self.draw.chance(60):
            found = self.with_number("subtract", found, number)
        return self.like("subtract", a, found) if self.draw.chance(20) else found

    def less_itself(self, a: Term) -> Term:
        """iota + x - (x through a narrower type): the coordinate, for those x that fit."""
        x = self.argument((), a.element)
        narrow = self.convert(self.convert(x, self.pick("i8", "ui8", "i16", "i32")), a.element)
        return self.like("add", self.spread(self.like("subtract", x, narrow), a.shape), a)

    def normalised(self, a: Term) -> Term:
        """Negative ones moved up."""
        zero = self.constant(0, a.shape, a.element)
        up = self.with_number("add", a, self.pick(*self.sizes, self.number()))
        if self.draw.chance(80):
            return self.select(self.compare("LT", a, zero), up, a)
        return self.select(self.compare("GE", a, zero), a, up)

    def modulo(self, a: Term) -> Term:
        """What is left after a division; not negative in half of the cases."""
        size = self.constant(self.draw.choice(self.sizes), a.shape, a.element)
        found = self.like("remainder", a, size)
        if self.draw.chance(50):
            zero = self.constant(0, a.shape, a.element)
            found = self.select(self.compare("LT", found, zero), self.like("add", found, size), found)
        return found

    def masked(self, a: Term) -> Term:
        """where(mask, x, c)."""
        mask = self.argument(a.shape if self.draw.chance(70) else (), "i1")
        other = self.constant(self.pick(*self.sizes, -1, self.number()), a.shape, a.element)
        return self.select(mask, *((a, other) if self.draw.chance(70) else (other, a)))

    def either(self, a: Term) -> Term:
        """One of two ways from the same value, chosen as a whole."""
        b, c = self.stepped(a), self.stepped(a)
        return self.select(self.argument((), "i1"), b, c)

    def branched(self, a: Term) -> Term:
        branches = [(inner := self.nested(), inner.stepped(a)) for _ in range(2)]
        return self.case(self.argument((), "i32"), branches)

    def looped(self, a: Term) -> Term:
        def body(inner: "Expressions", carried: Term, counter: Term) -> Term:
            if self.draw.chance(40):
                return inner.like("add", carried, inner.spread(inner.convert(counter, carried.element), carried.shape))
            return inner.stepped(carried)

        return self.repeat(a, self.clamp(0, self.argument((), "i32"), 3), body)

    def called(self, a: Term) -> Term:
        """A private function of the value, called twice; one of the results is taken, or both are added."""
        self.calls += 1
        symbol = f"{self.symbol}_f{self.calls}"
        inner = Expressions(f"f{self.calls}_", draw=self.draw, sizes=self.sizes, types=self.types, symbol=symbol)
        x, base = Term("%x", a.shape, a.element), Term("%b", (), a.element)
        found = inner.like("add", x, inner.spread(base, x.shape)) if self.draw.chance(50) else x
        found = inner.same_type(inner.step(found, within=True), a)
        if inner.arguments:  # what it reads besides comes from the caller
            return a
        self.functions.append(function(f"private @{symbol}", f"%x: {x.type}, %b: {base.type}", inner.returning(found)))
        first, second = (self.call([a, self.argument((), a.element)], symbol, found) for _ in range(2))
        return self.like("subtract", self.like("add", first, second), second) if self.draw.chance(20) else first

    def rolled(self, a: Term) -> Term:
        dim = self.dim(a.shape)
        size = a.shape[dim]
        if size < 2:
            return a
        at = self.draw.integer(1, size - 1)
        begin = at if self.draw.chance(80) else at - 1
        return self.concatenate([self.slice(a, dim, begin, begin + size - at), self.slice(a, dim, 0, at)], dim)

    def picked(self, a: Term) -> Term:
        """Elements at places: of a vector at an argsort, or at data."""
        if len(a.shape) != 1:
            return self.reverse(a, self.dim(a.shape))
        return self.taken(a, self.an_order(a.shape, "i32") if self.draw.chance(50) else self.argument(a.shape, "i32"))

    def windowed(self, a: Term) -> Term:
        """A part of a longer vector from a runtime start."""
        if len(a.shape) != 1:
            return self.reverse(a, self.dim(a.shape))
        longer = self.concatenate([a, self.with_number("add", a, a.shape[0])], 0)
        return self.dynamic_slice(longer, self.argument((), "i32"), a.shape[0])

    def turned(self, a: Term) -> Term:
        """Flattened, or with other dims, and back."""
        if len(a.shape) < 2:
            return self.reshape(self.reverse(self.reshape(a, (1, *a.shape)), 0), a.shape)
        return self.reshape(self.stepped(self.reshape(a, (prod(a.shape),))), a.shape)

    def added(self, a: Term) -> Term:
        return self.with_number(self.pick("add", "add", "subtract"), a, self.number())

    NESTING = (either, branched, looped, called, turned)
    """Steps that hold others."""
    SHAPED = (
        lambda to, a: to.reverse(a, to.dim(a.shape)),
        rolled,
        lambda to, a: to.sort([a], to.dim(a.shape))[0],
        lambda to, a: to.running_sum(a, to.dim(a.shape), is_reversed=to.draw.chance(20)),
        *(picked, windowed, turned),
    )
    """Steps for what is no scalar."""
    OFTEN = (
        added,
        lambda to, a: to.like("subtract", to.constant(to.number(), a.shape, a.element), a),
        lambda to, a: to.with_number("multiply", a, to.pick(2, 3, -1, 4, to.number())),
        *(moved, converted, through, less_itself),
        lambda to, a: to.clamp(to.pick(0, 0, 0, 1, -1), a, to.draw.choice(to.sizes) - 1),
        lambda to, a: to.with_number(to.pick("minimum", "maximum"), a, to.pick(0, *to.sizes)),
        lambda to, a: to.like("negate" if a.element.startswith("u") else to.pick("negate", "abs", "not"), a),
        *(normalised, modulo),
        lambda to, a: to.with_number(to.pick("divide", "and", "shift_left"), a, to.pick(2, 1, 3, 7)),
        *(masked, either, branched, looped, called, *SHAPED),
        *(through, converted, normalised, normalised, less_itself, either, added, moved),
    )
    """Steps as often as they are drawn."""
