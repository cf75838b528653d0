"""What random index expressions do to a value: keep its order, or break it, in a type that may be too narrow."""

from collections.abc import Mapping
from math import prod

from facts_choices import Chooser, Step
from facts_lines import Lines, Term
from facts_sources import order_of

from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES


def _added(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.with_number(self.draw.choice(("add", "add", "subtract")), a, self.number())


def _mirrored(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.binary("subtract", lines.constant(self.number(), a.shape, a.element), a)


def _scaled(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.with_number("multiply", a, self.draw.choice((2, 3, -1, 4, self.number())))


def _moved(self: Chooser, lines: Lines, a: Term) -> Term:
    base = lines.argument((), a.element)
    if self.draw.chance(30):
        base = lines.clamp(0, base, self.draw.choice(self.sizes))
    return lines.binary(self.draw.choice(("add", "subtract")), a, self.spread(lines, base, a.shape))


def _converted(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.convert(a, self.draw.choice(INDEX_TYPES))


def _through(self: Chooser, lines: Lines, a: Term) -> Term:
    """Through another type, with something added on either side, or what is left subtracted."""
    other, number = self.draw.choice(INDEX_TYPES), self.number()
    inner = lines.convert(a, other)
    if self.draw.chance(60):
        inner = lines.with_number("add", inner, number)
    found = lines.convert(inner, a.element)
    if self.draw.chance(60):
        found = lines.with_number("subtract", found, number)
    return lines.binary("subtract", a, found) if self.draw.chance(20) else found


def less_itself(self: Chooser, lines: Lines, a: Term) -> Term:
    """iota + x - (x through a narrower type): the coordinate, for those x that fit."""
    x = lines.argument((), a.element)
    narrow = lines.convert(lines.convert(x, self.draw.choice(("i8", "ui8", "i16", "i32"))), a.element)
    apart = self.spread(lines, lines.binary("subtract", x, narrow), a.shape)
    return lines.binary("add", apart, a)


def _clamped(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.clamp(self.draw.choice((0, 0, 0, 1, -1)), a, self.draw.choice(self.sizes) - 1)


def _cut(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.with_number(self.draw.choice(("minimum", "maximum")), a, self.draw.choice((0, *self.sizes)))


def _negated(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.unary(self.draw.choice(("negate", "abs", "not")) if not a.element.startswith("u") else "negate", a)


def normalised(self: Chooser, lines: Lines, a: Term) -> Term:
    """Negative ones moved up."""
    zero = lines.constant(0, a.shape, a.element)
    up = lines.with_number("add", a, self.draw.choice((*self.sizes, self.number())))
    if self.draw.chance(80):
        return lines.select(lines.compare("LT", a, zero), up, a)
    return lines.select(lines.compare("GE", a, zero), a, up)


def modulo(self: Chooser, lines: Lines, a: Term) -> Term:
    """What is left after a division; not negative in half of the cases."""
    size = lines.constant(self.draw.choice(self.sizes), a.shape, a.element)
    found = lines.binary("remainder", a, size)
    if self.draw.chance(50):
        zero = lines.constant(0, a.shape, a.element)
        found = lines.select(lines.compare("LT", found, zero), lines.binary("add", found, size), found)
    return found


def _halved(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.with_number(self.draw.choice(("divide", "and", "shift_left")), a, self.draw.choice((2, 1, 3, 7)))


def _masked(self: Chooser, lines: Lines, a: Term) -> Term:
    """where(mask, x, c)."""
    mask = lines.argument(a.shape if self.draw.chance(70) else (), "i1")
    other = lines.constant(self.draw.choice((*self.sizes, -1, self.number())), a.shape, a.element)
    return lines.select(mask, *((a, other) if self.draw.chance(70) else (other, a)))


def _either(self: Chooser, lines: Lines, a: Term) -> Term:
    """One of two ways from the same value, chosen as a whole."""
    b, c = (self.same_type(lines, self.step(lines, a, depth=1), a) for _ in range(2))
    return lines.select(lines.argument((), "i1"), b, c)


def _case(self: Chooser, lines: Lines, a: Term) -> Term:
    branches: list[tuple[Lines, Term]] = []
    for _ in range(2):
        inner = lines.nested()
        branches.append((inner, self.same_type(inner, self.step(inner, a, depth=1), a)))
    return lines.case(lines.argument((), "i32"), branches)


def _loop(self: Chooser, lines: Lines, a: Term) -> Term:
    times = lines.clamp(0, lines.argument((), "i32"), 3)

    def body(inner: Lines, carried: Term, counter: Term) -> Term:
        if self.draw.chance(40):
            step = self.spread(inner, inner.convert(counter, carried.element), carried.shape)
            return inner.binary("add", carried, step)
        return self.same_type(inner, self.step(inner, carried, depth=1), carried)

    return lines.repeat(a, times, body)


def _call(self: Chooser, lines: Lines, a: Term) -> Term:
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


def _reversed(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.reverse(a, self.dim(a.shape))


def _rolled(self: Chooser, lines: Lines, a: Term) -> Term:
    dim = self.dim(a.shape)
    size = a.shape[dim]
    if size < 2:
        return a
    at = self.draw.integer(1, size - 1)
    begin = at if self.draw.chance(80) else at - 1
    return lines.concatenate([lines.slice(a, dim, begin, begin + size - at), lines.slice(a, dim, 0, at)], dim)


def _sorted_again(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.sort([a], self.dim(a.shape))[0]


def _summed(self: Chooser, lines: Lines, a: Term) -> Term:
    return lines.running_sum(a, self.dim(a.shape), is_reversed=self.draw.chance(20))


def _picked(self: Chooser, lines: Lines, a: Term) -> Term:
    """Elements at places: of a vector at an argsort, or at data."""
    if len(a.shape) != 1:
        return _reversed(self, lines, a)
    if self.draw.chance(50):
        return lines.taken(a, order_of(self, lines, a.shape, "i32"))
    return lines.taken(a, lines.argument(a.shape, "i32"))


def _windowed(self: Chooser, lines: Lines, a: Term) -> Term:
    """A part of a longer vector from a runtime start."""
    if len(a.shape) != 1:
        return _reversed(self, lines, a)
    longer = lines.concatenate([a, lines.with_number("add", a, a.shape[0])], 0)
    return lines.dynamic_slice(longer, lines.argument((), "i32"), a.shape[0])


def _turned(self: Chooser, lines: Lines, a: Term) -> Term:
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
    "less itself": less_itself,
    "clamped": _clamped,
    "cut": _cut,
    "negated": _negated,
    "normalised": normalised,
    "modulo": modulo,
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
