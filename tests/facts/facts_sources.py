"""Where random index expressions begin: arguments, and what has some order to it."""

from collections.abc import Mapping
from math import prod

import numpy as np
from facts_choices import Chooser, Source
from facts_lines import Lines, Shape, Term


def _argument(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    return lines.argument(shape, element)


def _base(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    return self.spread(lines, lines.argument((), element), shape)


def _iota(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    return lines.iota(shape, self.dim(shape), element)


def _run(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    iota, base = _iota(self, lines, shape, element), _base(self, lines, shape, element)
    if self.draw.chance(30):
        iota = lines.with_number("multiply", iota, self.draw.choice((2, -1, 3, self.number())))
    if self.draw.chance(40):
        base = self.step(lines, base, depth=1)
        base = base if base.element == element else lines.convert(base, element)
    return lines.binary(self.draw.choice(("add", "add", "subtract")), base, iota)


def _digits(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    found = lines.iota(shape, 0, element)
    for d in range(1, len(shape)):
        stride = self.draw.choice((shape[d], shape[d], shape[d] + 1, shape[d] - 1))
        found = lines.binary("add", lines.with_number("multiply", found, stride), lines.iota(shape, d, element))
    return found


def _even(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    values = self.draw.integer(-1, 2) + self.draw.choice((1, 2, -1, 0, 3)) * np.indices(shape)[self.dim(shape)]
    return lines.constant(values, shape, element)


def _table(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    values = [self.draw.integer(-1, max(self.sizes)) for _ in range(prod(shape))]
    return lines.constant(np.asarray(values, object).reshape(shape), shape, element)


def _sorted(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    found = lines.argument(shape, element)
    if self.draw.chance(60):
        found = lines.clamp(0, found, self.draw.choice(self.sizes) - 1)
    return lines.sort([found], self.dim(shape), self.draw.choice(("LT", "LT", "LT", "GT")))[0]


def order_of(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    """An argsort, along one of the dims."""
    dim = self.dim(shape)
    return lines.sort([lines.argument(shape, "i32"), lines.iota(shape, dim, element)], dim)[1]


def _sums(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
    least = self.draw.choice((0, 1, 2, 1, -1))
    if element.startswith("u"):
        least = max(least, 0)
    sizes = lines.clamp(least, lines.argument(shape, element), self.draw.choice((3, 5, 40)))
    return lines.running_sum(sizes, self.dim(shape), is_reversed=self.draw.chance(20))


def _flattened(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
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


def _table_of_pages(self: Chooser, lines: Lines, shape: Shape, element: str) -> Term:
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
    "order": order_of,
    "sums": _sums,
    "flattened": _flattened,
}
STRUCTURED = ("iota", "run", "run", "run", "digits", "even", "sorted", "order", "order", "sums", "flattened")
PLAIN = ("argument", "base")
