"""Random integer expressions, as index computations are made: a source that has some order, and then what keeps or
breaks it, by wrapping around, by a type that is too narrow, by a choice.
"""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from hlo_lower.fuzz.draw import Draw
from hlo_lower.fuzz.element_types import INDEX_TYPES
from hlo_lower.fuzz.index_lines import Lines, Shape, Term

Source = Callable[["Expressions", Lines, Shape, str], Term]
Step = Callable[["Expressions", Lines, Term], Term]


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
            found = (_normalised if kind == "normalised run" else _modulo)(self, lines, found)
        elif kind == "congruent":
            found = self.congruent(lines, size, final)
        elif kind == "sorted":
            found = lines.sort([lines.clamp(0, lines.argument((size,), element), extent - 1)], 0)[0]
        elif kind == "sums":
            found = lines.running_sum(lines.clamp(draw.integer(0, 1), lines.argument((size,), element), 3), 0,
                                      is_reversed=False)  # fmt: skip
        else:
            found = _order(self, lines, (size,), element)
            if kind == "drop":
                mask = lines.argument((size,), "i1")
                found = lines.select(mask, found, lines.constant(draw.choice((extent, -1)), (size,), element))
        return self.step(lines, found) if draw.chance(35) else found

    def congruent(self, lines: Lines, size: int, final: str) -> Term:
        """What is congruent to a run, or to the coordinate, but another number where a narrow type wraps around."""
        draw, iota, number = self.draw, lines.iota((size,), 0, final), self.draw.choice((126, 125, 127, 122, 100))
        kind = draw.choice(("apart", "moved back", "two ways", "two ways", "normalised"))
        if kind == "apart":
            return _less_itself(self, lines, iota)
        if kind == "normalised":
            self.sizes = (size, size, size + 3)
            base = self.spread(lines, lines.argument((), final), (size,))
            return _normalised(self, lines, lines.binary("add", base, iota))
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


# --- sources ---


def _argument(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    return lines.argument(shape, element)


def _base(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    return self.spread(lines, lines.argument((), element), shape)


def _iota(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    return lines.iota(shape, self.dim(shape), element)


def _run(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    iota, base = _iota(self, lines, shape, element), _base(self, lines, shape, element)
    if self.draw.chance(30):
        iota = lines.with_number("multiply", iota, self.draw.choice((2, -1, 3, self.number())))
    if self.draw.chance(40):
        base = self.step(lines, base, depth=1)
        base = base if base.element == element else lines.convert(base, element)
    return lines.binary(self.draw.choice(("add", "add", "subtract")), base, iota)


def _digits(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    found = lines.iota(shape, 0, element)
    for d in range(1, len(shape)):
        stride = self.draw.choice((shape[d], shape[d], shape[d] + 1, shape[d] - 1))
        found = lines.binary("add", lines.with_number("multiply", found, stride), lines.iota(shape, d, element))
    return found


def _even(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    values = self.draw.integer(-1, 2) + self.draw.choice((1, 2, -1, 0, 3)) * np.indices(shape)[self.dim(shape)]
    return lines.constant(values, shape, element)


def _table(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    values = [self.draw.integer(-1, max(self.sizes)) for _ in range(prod(shape))]
    return lines.constant(np.asarray(values, object).reshape(shape), shape, element)


def _sorted(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    found = lines.argument(shape, element)
    if self.draw.chance(60):
        found = lines.clamp(0, found, self.draw.choice(self.sizes) - 1)
    return lines.sort([found], self.dim(shape), self.draw.choice(("LT", "LT", "LT", "GT")))[0]


def _order(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    dim = self.dim(shape)
    return lines.sort([lines.argument(shape, "i32"), lines.iota(shape, dim, element)], dim)[1]


def _sums(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    least = self.draw.choice((0, 1, 2, 1, -1))
    if element.startswith("u"):
        least = max(least, 0)
    sizes = lines.clamp(least, lines.argument(shape, element), self.draw.choice((3, 5, 40)))
    return lines.running_sum(sizes, self.dim(shape), is_reversed=self.draw.chance(20))


def _flattened(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    size, dim = shape[-1], len(shape) - 1
    split = [n for n in (2, 3, 4, 5) if size % n == 0 and size > n]
    if not split:
        return _run(self, lines, shape, element)
    inner = self.draw.choice(split)
    before = (*shape[:dim], size // inner, inner)
    found = (
        _digits(self, lines, before, element) if self.draw.chance(40) else _table_of_pages(self, lines, before, element)
    )
    return lines.reshape(found, shape)


def _table_of_pages(self: Expressions, lines: Lines, shape: Shape, element: str) -> Term:
    pages = lines.argument(shape[:-1], element)
    spread = lines.broadcast(pages, shape, tuple(range(len(shape) - 1)))
    block = self.draw.choice((shape[-1], shape[-1], 1, shape[-1] + 1))
    return lines.binary("add", lines.with_number("multiply", spread, block), lines.iota(shape, len(shape) - 1, element))


SOURCES: Mapping[str, Source] = {
    "argument": _argument,
    "base": _base,
    "iota": _iota,
    "run": _run,
    "digits": _digits,
    "even": _even,
    "table": _table,
    "sorted": _sorted,
    "order": _order,
    "sums": _sums,
    "flattened": _flattened,
}
STRUCTURED = ("iota", "run", "run", "run", "digits", "even", "sorted", "order", "order", "sums", "flattened")
PLAIN = ("argument", "base")


# --- steps ---


def _added(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.with_number(self.draw.choice(("add", "add", "subtract")), a, self.number())


def _mirrored(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.binary("subtract", lines.constant(self.number(), a.shape, a.element), a)


def _scaled(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.with_number("multiply", a, self.draw.choice((2, 3, -1, 4, self.number())))


def _moved(self: Expressions, lines: Lines, a: Term) -> Term:
    base = lines.argument((), a.element)
    if self.draw.chance(30):
        base = lines.clamp(0, base, self.draw.choice(self.sizes))
    return lines.binary(self.draw.choice(("add", "subtract")), a, self.spread(lines, base, a.shape))


def _converted(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.convert(a, self.draw.choice(INDEX_TYPES))


def _through(self: Expressions, lines: Lines, a: Term) -> Term:
    """Through another type, with something added on either side, or what is left subtracted."""
    other, number = self.draw.choice(INDEX_TYPES), self.number()
    inner = lines.convert(a, other)
    if self.draw.chance(60):
        inner = lines.with_number("add", inner, number)
    found = lines.convert(inner, a.element)
    if self.draw.chance(60):
        found = lines.with_number("subtract", found, number)
    return lines.binary("subtract", a, found) if self.draw.chance(20) else found


def _less_itself(self: Expressions, lines: Lines, a: Term) -> Term:
    """iota + x - (x through a narrower type): the coordinate, for those x that fit."""
    x = lines.argument((), a.element)
    narrow = lines.convert(lines.convert(x, self.draw.choice(("i8", "ui8", "i16", "i32"))), a.element)
    apart = self.spread(lines, lines.binary("subtract", x, narrow), a.shape)
    return lines.binary("add", apart, a)


def _clamped(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.clamp(self.draw.choice((0, 0, 0, 1, -1)), a, self.draw.choice(self.sizes) - 1)


def _cut(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.with_number(self.draw.choice(("minimum", "maximum")), a, self.draw.choice((0, *self.sizes)))


def _negated(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.unary(self.draw.choice(("negate", "abs", "not")) if not a.element.startswith("u") else "negate", a)


def _normalised(self: Expressions, lines: Lines, a: Term) -> Term:
    zero = lines.constant(0, a.shape, a.element)
    up = lines.with_number("add", a, self.draw.choice((*self.sizes, self.number())))
    if self.draw.chance(80):
        return lines.select(lines.compare("LT", a, zero), up, a)
    return lines.select(lines.compare("GE", a, zero), a, up)


def _modulo(self: Expressions, lines: Lines, a: Term) -> Term:
    size = lines.constant(self.draw.choice(self.sizes), a.shape, a.element)
    found = lines.binary("remainder", a, size)
    if self.draw.chance(50):
        zero = lines.constant(0, a.shape, a.element)
        found = lines.select(lines.compare("LT", found, zero), lines.binary("add", found, size), found)
    return found


def _halved(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.with_number(self.draw.choice(("divide", "and", "shift_left")), a, self.draw.choice((2, 1, 3, 7)))


def _masked(self: Expressions, lines: Lines, a: Term) -> Term:
    """where(mask, x, c)."""
    mask = lines.argument(a.shape if self.draw.chance(70) else (), "i1")
    other = lines.constant(self.draw.choice((*self.sizes, -1, self.number())), a.shape, a.element)
    return lines.select(mask, *((a, other) if self.draw.chance(70) else (other, a)))


def _either(self: Expressions, lines: Lines, a: Term) -> Term:
    """One of two ways from the same value, chosen as a whole."""
    b, c = (self.same_type(lines, self.step(lines, a, depth=1), a) for _ in range(2))
    return lines.select(lines.argument((), "i1"), b, c)


def _case(self: Expressions, lines: Lines, a: Term) -> Term:
    branches: list[tuple[Lines, Term]] = []
    for _ in range(2):
        inner = lines.nested()
        branches.append((inner, self.same_type(inner, self.step(inner, a, depth=1), a)))
    return lines.case(lines.argument((), "i32"), branches)


def _loop(self: Expressions, lines: Lines, a: Term) -> Term:
    times = lines.clamp(0, lines.argument((), "i32"), 3)

    def body(inner: Lines, carried: Term, counter: Term) -> Term:
        if self.draw.chance(40):
            step = self.spread(inner, inner.convert(counter, carried.element), carried.shape)
            return inner.binary("add", carried, step)
        return self.same_type(inner, self.step(inner, carried, depth=1), carried)

    return lines.repeat(a, times, body)


def _call(self: Expressions, lines: Lines, a: Term) -> Term:
    """A private function of the value, called twice; one of the results is taken, or both are added."""
    self.calls += 1
    symbol = f"{self.symbol}_f{self.calls}"
    inner = Lines(f"f{self.calls}_", functions=lines.functions)
    x, base = Term("%x", a.shape, a.element), Term("%b", (), a.element)
    found = inner.binary("add", x, self.spread(inner, base, x.shape)) if self.draw.chance(50) else x
    found = self.same_type(inner, self.step(inner, found, depth=2), a)
    if inner.arguments:  # what it reads besides comes from the caller
        return a
    lines.functions.append(
        f"func.func private @{symbol}(%x: {x.type}, %b: {base.type}) -> {found.type} {{\n  "
        + "\n  ".join((*inner.text, f"return {found.name} : {found.type}"))
        + "\n}"
    )
    first, second = (lines.call([a, lines.argument((), a.element)], symbol, found) for _ in range(2))
    return lines.binary("subtract", lines.binary("add", first, second), second) if self.draw.chance(20) else first


def _reversed(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.reverse(a, self.dim(a.shape))


def _rolled(self: Expressions, lines: Lines, a: Term) -> Term:
    dim = self.dim(a.shape)
    size = a.shape[dim]
    if size < 2:
        return a
    at = self.draw.integer(1, size - 1)
    begin = at if self.draw.chance(80) else at - 1
    return lines.concatenate([lines.slice(a, dim, begin, begin + size - at), lines.slice(a, dim, 0, at)], dim)


def _sorted_again(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.sort([a], self.dim(a.shape))[0]


def _summed(self: Expressions, lines: Lines, a: Term) -> Term:
    return lines.running_sum(a, self.dim(a.shape), is_reversed=self.draw.chance(20))


def _picked(self: Expressions, lines: Lines, a: Term) -> Term:
    """Elements at places: of a vector at an argsort, or at data."""
    if len(a.shape) != 1:
        return _reversed(self, lines, a)
    if self.draw.chance(50):
        return lines.taken(a, _order(self, lines, a.shape, "i32"))
    return lines.taken(a, lines.argument(a.shape, "i32"))


def _windowed(self: Expressions, lines: Lines, a: Term) -> Term:
    """A part of a longer vector from a runtime start."""
    if len(a.shape) != 1:
        return _reversed(self, lines, a)
    longer = lines.concatenate([a, lines.with_number("add", a, a.shape[0])], 0)
    return lines.dynamic_slice(longer, lines.argument((), "i32"), a.shape[0])


def _turned(self: Expressions, lines: Lines, a: Term) -> Term:
    """Flattened, or with other dims, and back."""
    if len(a.shape) < 2:
        return lines.reshape(lines.reverse(lines.reshape(a, (1, *a.shape)), 0), a.shape)
    flat = lines.reshape(a, (prod(a.shape),))
    return lines.reshape(self.same_type(lines, self.step(lines, flat, depth=1), flat), a.shape)


STEPS: Mapping[str, Step] = {
    "added": _added,
    "mirrored": _mirrored,
    "scaled": _scaled,
    "moved": _moved,
    "converted": _converted,
    "through": _through,
    "less itself": _less_itself,
    "clamped": _clamped,
    "cut": _cut,
    "negated": _negated,
    "normalised": _normalised,
    "modulo": _modulo,
    "halved": _halved,
    "masked": _masked,
    "either": _either,
    "case": _case,
    "loop": _loop,
    "call": _call,
    "reversed": _reversed,
    "rolled": _rolled,
    "sorted again": _sorted_again,
    "summed": _summed,
    "picked": _picked,
    "windowed": _windowed,
    "turned": _turned,
}
OFTEN = (*STEPS, "through", "converted", "normalised", "normalised", "less itself", "either", "added", "moved")
"""Steps as often as they are drawn."""
SHAPED = frozenset({"reversed", "rolled", "sorted again", "summed", "picked", "windowed", "turned"})
"""Steps for what is no scalar."""
NESTING = frozenset({"either", "case", "loop", "call", "turned"})
"""Steps that hold others."""

__all__ = ["SOURCES", "STEPS", "Expressions"]
