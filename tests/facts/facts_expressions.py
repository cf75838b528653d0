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
        source = self.draw.choice(STRUCTURED if shape and self.draw.chance(80) else PLAIN)
        found = source(self, shape, element)
        for _ in range(self.pick(0, 1, 1, 2, 2, 3, 4)):
            found = self.step(found)
        return found

    def step(self, found: Term, *, within: bool = False) -> Term:
        """One op, or a few, more."""
        often = [step for step in OFTEN if (found.shape or step not in SHAPED) and not (within and step in NESTING)]
        return self.draw.choice(often)(self, found)

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
            found = (normalised if kind == "normalised run" else modulo)(self, found)
        elif kind == "congruent":
            found = self.congruent(size, final)
        elif kind == "sorted":
            found = self.sort([self.clamp(0, self.argument((size,), element), extent - 1)], 0)[0]
        elif kind == "sums":
            sizes = self.clamp(draw.integer(0, 1), self.argument((size,), element), 3)
            found = self.running_sum(sizes, 0, is_reversed=False)
        else:
            found = an_order(self, (size,), element)
            if kind == "drop":
                mask = self.argument((size,), "i1")
                found = self.select(mask, found, self.constant(self.pick(extent, -1), (size,), element))
        return self.step(found) if draw.chance(35) else found

    def congruent(self, size: int, final: str) -> Term:
        """What is congruent to a run, or to the coordinate, but another number where a narrow type wraps around."""
        draw, iota, number = self.draw, self.iota((size,), 0, final), self.pick(126, 125, 127, 122, 100)
        kind = self.pick("apart", "moved back", "two ways", "two ways", "normalised")
        if kind == "apart":
            return less_itself(self, iota)
        if kind == "normalised":
            self.sizes = (size, size, size + 3)
            return normalised(self, self.like("add", self.spread(self.argument((), final), (size,)), iota))
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


def a_base(to: Expressions, shape: Shape, element: str) -> Term:
    return to.spread(to.argument((), element), shape)


def an_iota(to: Expressions, shape: Shape, element: str) -> Term:
    return to.iota(shape, to.dim(shape), element)


def a_run(to: Expressions, shape: Shape, element: str) -> Term:
    iota, base = an_iota(to, shape, element), a_base(to, shape, element)
    if to.draw.chance(30):
        iota = to.with_number("multiply", iota, to.pick(2, -1, 3, to.number()))
    if to.draw.chance(40):
        base = to.stepped(base)
    return to.like(to.pick("add", "add", "subtract"), base, iota)


def digits(to: Expressions, shape: Shape, element: str) -> Term:
    found = to.iota(shape, 0, element)
    for d in range(1, len(shape)):
        stride = to.pick(shape[d], shape[d], shape[d] + 1, shape[d] - 1)
        found = to.like("add", to.with_number("multiply", found, stride), to.iota(shape, d, element))
    return found


def even_numbers(to: Expressions, shape: Shape, element: str) -> Term:
    values = to.draw.integer(-1, 2) + to.pick(1, 2, -1, 0, 3) * np.indices(shape)[to.dim(shape)]
    return to.constant(values, shape, element)


def sorted_numbers(to: Expressions, shape: Shape, element: str) -> Term:
    found = to.argument(shape, element)
    if to.draw.chance(60):
        found = to.clamp(0, found, to.draw.choice(to.sizes) - 1)
    return to.sort([found], to.dim(shape), to.pick("LT", "LT", "LT", "GT"))[0]


def an_order(to: Expressions, shape: Shape, element: str) -> Term:
    """An argsort, along one of the dims."""
    dim = to.dim(shape)
    return to.sort([to.argument(shape, "i32"), to.iota(shape, dim, element)], dim)[1]


def sums(to: Expressions, shape: Shape, element: str) -> Term:
    least = to.pick(0, 1, 2, 1, -1)
    least = max(least, 0) if element.startswith("u") else least
    sizes = to.clamp(least, to.argument(shape, element), to.pick(3, 5, 40))
    return to.running_sum(sizes, to.dim(shape), is_reversed=to.draw.chance(20))


def flattened(to: Expressions, shape: Shape, element: str) -> Term:
    size, dim = shape[-1], len(shape) - 1
    split = [n for n in (2, 3, 4, 5) if size % n == 0 and size > n]
    if not split:
        return a_run(to, shape, element)
    inner = to.draw.choice(split)
    made = digits if to.draw.chance(40) else pages
    return to.reshape(made(to, (*shape[:dim], size // inner, inner), element), shape)


def pages(to: Expressions, shape: Shape, element: str) -> Term:
    """Pages of a table, and the places in them."""
    last = len(shape) - 1
    spread = to.broadcast(to.argument(shape[:-1], element), shape, tuple(range(last)))
    block = to.pick(shape[-1], shape[-1], 1, shape[-1] + 1)
    return to.like("add", to.with_number("multiply", spread, block), to.iota(shape, last, element))


PLAIN = (Lines.argument, a_base)
STRUCTURED = (
    *(an_iota, a_run, a_run, a_run, digits, even_numbers, sorted_numbers, an_order, an_order, sums, flattened),
)
"""Sources, as often as they are drawn."""


def converted(to: Expressions, a: Term) -> Term:
    return to.convert(a, to.draw.choice(INDEX_TYPES))


def moved(to: Expressions, a: Term) -> Term:
    base = to.argument((), a.element)
    if to.draw.chance(30):
        base = to.clamp(0, base, to.draw.choice(to.sizes))
    return to.like(to.pick("add", "subtract"), a, to.spread(base, a.shape))


def through(to: Expressions, a: Term) -> Term:
    """Through another type, with something added on either side, or what is left subtracted."""
    other, number = to.draw.choice(INDEX_TYPES), to.number()
    inner = to.convert(a, other)
    if to.draw.chance(60):
        inner = to.with_number("add", inner, number)
    found = to.convert(inner, a.element)
    if to.draw.chance(60):
        found = to.with_number("subtract", found, number)
    return to.like("subtract", a, found) if to.draw.chance(20) else found


def less_itself(to: Expressions, a: Term) -> Term:
    """iota + x - (x through a narrower type): the coordinate, for those x that fit."""
    x = to.argument((), a.element)
    narrow = to.convert(to.convert(x, to.pick("i8", "ui8", "i16", "i32")), a.element)
    return to.like("add", to.spread(to.like("subtract", x, narrow), a.shape), a)


def normalised(to: Expressions, a: Term) -> Term:
    """Negative ones moved up."""
    zero = to.constant(0, a.shape, a.element)
    up = to.with_number("add", a, to.pick(*to.sizes, to.number()))
    if to.draw.chance(80):
        return to.select(to.compare("LT", a, zero), up, a)
    return to.select(to.compare("GE", a, zero), a, up)


def modulo(to: Expressions, a: Term) -> Term:
    """What is left after a division; not negative in half of the cases."""
    size = to.constant(to.draw.choice(to.sizes), a.shape, a.element)
    found = to.like("remainder", a, size)
    if to.draw.chance(50):
        zero = to.constant(0, a.shape, a.element)
        found = to.select(to.compare("LT", found, zero), to.like("add", found, size), found)
    return found


def masked(to: Expressions, a: Term) -> Term:
    """where(mask, x, c)."""
    mask = to.argument(a.shape if to.draw.chance(70) else (), "i1")
    other = to.constant(to.pick(*to.sizes, -1, to.number()), a.shape, a.element)
    return to.select(mask, *((a, other) if to.draw.chance(70) else (other, a)))


def either(to: Expressions, a: Term) -> Term:
    """One of two ways from the same value, chosen as a whole."""
    b, c = to.stepped(a), to.stepped(a)
    return to.select(to.argument((), "i1"), b, c)


def case(to: Expressions, a: Term) -> Term:
    branches = [(inner := to.nested(), inner.stepped(a)) for _ in range(2)]
    return to.case(to.argument((), "i32"), branches)


def loop(to: Expressions, a: Term) -> Term:
    def body(inner: Expressions, carried: Term, counter: Term) -> Term:
        if to.draw.chance(40):
            return inner.like("add", carried, inner.spread(inner.convert(counter, carried.element), carried.shape))
        return inner.stepped(carried)

    return to.repeat(a, to.clamp(0, to.argument((), "i32"), 3), body)


def call(to: Expressions, a: Term) -> Term:
    """A private function of the value, called twice; one of the results is taken, or both are added."""
    to.calls += 1
    symbol = f"{to.symbol}_f{to.calls}"
    inner = Expressions(f"f{to.calls}_", draw=to.draw, sizes=to.sizes, types=to.types, symbol=symbol)
    x, base = Term("%x", a.shape, a.element), Term("%b", (), a.element)
    found = inner.like("add", x, inner.spread(base, x.shape)) if to.draw.chance(50) else x
    found = inner.same_type(inner.step(found, within=True), a)
    if inner.arguments:  # what it reads besides comes from the caller
        return a
    to.functions.append(function(f"private @{symbol}", f"%x: {x.type}, %b: {base.type}", inner.returning(found)))
    first, second = (to.call([a, to.argument((), a.element)], symbol, found) for _ in range(2))
    return to.like("subtract", to.like("add", first, second), second) if to.draw.chance(20) else first


def rolled(to: Expressions, a: Term) -> Term:
    dim = to.dim(a.shape)
    size = a.shape[dim]
    if size < 2:
        return a
    at = to.draw.integer(1, size - 1)
    begin = at if to.draw.chance(80) else at - 1
    return to.concatenate([to.slice(a, dim, begin, begin + size - at), to.slice(a, dim, 0, at)], dim)


def picked(to: Expressions, a: Term) -> Term:
    """Elements at places: of a vector at an argsort, or at data."""
    if len(a.shape) != 1:
        return to.reverse(a, to.dim(a.shape))
    return to.taken(a, an_order(to, a.shape, "i32") if to.draw.chance(50) else to.argument(a.shape, "i32"))


def windowed(to: Expressions, a: Term) -> Term:
    """A part of a longer vector from a runtime start."""
    if len(a.shape) != 1:
        return to.reverse(a, to.dim(a.shape))
    longer = to.concatenate([a, to.with_number("add", a, a.shape[0])], 0)
    return to.dynamic_slice(longer, to.argument((), "i32"), a.shape[0])


def turned(to: Expressions, a: Term) -> Term:
    """Flattened, or with other dims, and back."""
    if len(a.shape) < 2:
        return to.reshape(to.reverse(to.reshape(a, (1, *a.shape)), 0), a.shape)
    return to.reshape(to.stepped(to.reshape(a, (prod(a.shape),))), a.shape)


def added(to: Expressions, a: Term) -> Term:
    return to.with_number(to.pick("add", "add", "subtract"), a, to.number())


NESTING = (either, case, loop, call, turned)
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
    *(masked, either, case, loop, call, *SHAPED),
    *(through, converted, normalised, normalised, less_itself, either, added, moved),
)
"""Steps as often as they are drawn."""
