"""Elementwise ops and conversions of random programs of 64-bit integers: each adds to a program."""

import numpy as np
from halves_text import BINARY, CONVERTED, DIRECTIONS, OTHERS, SHIFTS, dtype_of, ints


def binary(p):
    """An elementwise op of two; XLA ends the process where it folds a division by zero."""
    x = p.value()
    op = p.pick(BINARY)
    y = p.value(x.shape)
    if op in ("divide", "remainder"):
        x = p.argument(x.shape, p.element)
    p.put(op, [x, y], x.shape, p.element)


def same(p):
    """An op of one value twice."""
    x = p.argument(p.shape(), p.element)
    p.put(p.pick(BINARY), [x, x], x.shape, p.element)


def quotient_by_known(p):
    """A quotient or remainder by constants: one number or many, broadcast or whole."""
    x = p.argument(p.shape(), p.element)
    near = np.array(
        [1, 2, 3, 7, 10, 1000, 32767, 32768, 65535, (1 << 32) + 5, 5, 1 << 40, (1 << 63) - 1, 1 << 63], object
    )
    small = p.chance()
    shape = () if p.chance(0.3) else x.shape
    picks = [int(p.pick(near)) for _ in range(int(np.prod(shape)) or 1)]
    picks = [picks[0]] * len(picks) if small else picks
    values = np.array([n % (1 << 64) for n in picks], np.uint64).view(dtype_of(p.element))
    d = p.constant(shape, p.element, values[: int(np.prod(shape))].reshape(shape))
    if shape != x.shape:
        d = p.put("broadcast_in_dim", [d], x.shape, p.element, f"{{broadcast_dimensions = {ints([])}}}")
    p.put(p.pick(("divide", "remainder")), [x, d], x.shape, p.element)


def unary(p):
    """An elementwise op of one."""
    names = ["negate", "not", "popcnt", "count_leading_zeros", *(["abs", "sign"] if p.element == "i64" else [])]
    op, x = p.pick(names), p.value()
    if op == "count_leading_zeros":  # of negative constants of i32 XLA folds it to -32
        x = p.argument(x.shape, p.element)
    p.put(op, [x], x.shape, p.element)


def shift(p):
    """A shift by what is known or not, 64 and more among it."""
    x = p.value()
    amounts = drawn_amounts(p, x.shape)
    p.put(p.pick(SHIFTS), [x, amounts], x.shape, p.element)


def drawn_amounts(p, shape):
    """By how much is shifted."""
    way = p.rng.random()
    if way < 0.35:
        return p.value(shape)
    counts = [0, 1, 15, 16, 17, 31, 32, 33, 47, 62, 63, 64, 65, 127, 1 << 32, (1 << 64) - 1, 1 << 63, (1 << 32) + 3]
    many = 1 if way < 0.8 else int(np.prod(shape)) or 1
    values = np.array([int(p.pick(counts)) for _ in range(many)], np.uint64).view(dtype_of(p.element))
    values = np.broadcast_to(values[0], shape) if many == 1 else values[: int(np.prod(shape))].reshape(shape)
    return p.constant(shape, p.element, values)


def compare(p, shape=None):
    """An order."""
    x = p.value(shape)
    y = p.value(x.shape)
    told = f"{{comparison_direction = #stablehlo<comparison_direction {p.pick(DIRECTIONS)}>}}"
    return p.put("compare", [x, y], x.shape, "i1", told)


def select(p):
    """A choice, the predicate one or as many."""
    x = p.value()
    y = p.value(x.shape)
    q = compare(p, x.shape if p.chance(0.7) else ())
    p.put("select", [q, x, y], x.shape, p.element)


def clamp(p):
    """Bounds that are scalars or as many; they may be the wrong way round."""
    x = p.value()
    low, high = (p.value(x.shape if p.chance() else ()) for _ in range(2))
    p.put("clamp", [low, x, high], x.shape, p.element)


def convert(p):
    """From 64 bits and back, through any type."""
    x, other = p.value(), p.pick((*CONVERTED, "i64", "ui64"))
    made = p.put("convert", [x], x.shape, other)
    if p.chance():
        p.put("convert", [made], x.shape, p.pick((p.element, "i64", "ui64")))


def convert_to(p):
    """From another type."""
    other = p.pick((*OTHERS, "f32", "f64", "i64", "ui64"))
    x = p.argument(p.shape(), other)
    if other == "f32" and p.chance(0.4):
        x = p.put("convert", [x], x.shape, p.pick(("bf16", "f16")))
    p.put("convert", [x], x.shape, p.element)


def bitcast(p):
    """The same bits in other types; narrower ones than halves XLA folds wrongly into those of halves."""
    x = p.value()
    other, more = p.pick([("i64", ()), ("ui64", ()), ("f64", ()), ("i32", (2,)), ("ui32", (2,))])
    made = p.put("bitcast_convert", [x], (*x.shape, *more), other)
    if p.chance():
        p.put("bitcast_convert", [made], x.shape, p.element)
