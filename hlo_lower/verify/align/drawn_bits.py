"""Random bits that one version draws by an op and the other by rounds of a cipher: written out round by round.

An op that draws bits is one function of its state, which no run tells from another that is wrong for a few states, and
whose rounds nothing cuts. Written out, each round has counterparts in the other version, and is a region of its own.

    %s, %r = rng_bit_generator %state, algorithm = PHILOX
    ->
    ten rounds of products of a key and counters, of which the upper words are computed of halves

It is what XLA's CPU compiler computes: the specification leaves the bits to the implementation. The modules are run as
they were given.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ops.names import RNG_BIT_GENERATOR

_jax: Any = jax
Array = Any
Words = Sequence[Array]

DRAWN = ("ui8", "ui16", "ui32", "ui64")
"""Numbers that are drawn."""

MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
"""Of Philox-4x32, and what its key grows by."""

ROTATED, PARITY = (13, 15, 26, 6, 17, 29, 16, 24), 0x1BD11BDA
"""Of Threefry-2x32."""


def draws_written_out(texts: Sequence[str]) -> list[str] | None:
    """Two versions with their draws written out, None where both draw as often by an op, or the form is another one."""
    if texts[0].count(RNG_BIT_GENERATOR) == texts[1].count(RNG_BIT_GENERATOR):
        return None
    context, found = mlir.shared_context(sum(map(len, texts))), list[str]()
    with mlir.active(context):
        for text in texts:
            module = mlir.parse_module(text, context)
            for op in mlir.find_named(module.operation, (RNG_BIT_GENERATOR,))[0]:
                function = _function_of(op)
                if function is None:
                    return None
                mlir.put_function_instead(op, function)
            found.append(mlir.print_module(module, locations=True))
    return found


def _function_of(op: mlir.RawOperation) -> Callable[[Array], tuple[Array, Array]] | None:
    """What an op computes of its state; None where it is not known."""
    state, drawn = (mlir.read_tensor_type(value.type) for value in (op.operands[0], op.results[1]))
    if state is None or drawn is None or not (state.is_static and drawn.is_static):
        return None
    is_threefry = mlir.enum_value(op.attributes["rng_algorithm"]) == "THREE_FRY"
    sizes = [(2,)] if is_threefry else [(2,), (3,)]
    shape = mlir.static_shape(op.results[1].type)
    if state.element_name != "ui64" or tuple(state.shape) not in sizes or drawn.element_name not in DRAWN:
        return None
    how = _draw_by_threefry if is_threefry else _draw_by_philox
    return partial(how, shape=shape, dtype=element_type(drawn.element_name).dtype) if prod(shape) else None


def _low(numbers: Array) -> Array:
    return numbers.astype("uint32")


def _high(numbers: Array) -> Array:
    return _low(numbers >> _like(numbers, 32))


def _like(numbers: Array, number: int) -> Array:
    return _jax.lax.full_like(numbers, number)


def _whole(low: Array, high: Array) -> Array:
    wide = high.astype("uint64")
    return low.astype("uint64") | (wide << _like(wide, 32))


def _counted(words: Words, count: Array) -> Words:
    """A number of several words, the lowest first, and another one of one word added to it."""
    found = list[Array]()
    for word in words:
        found.append(word + count)
        count = (found[-1] < count).astype("uint32")
    return found


def _words_of(state: Array) -> tuple[Words, Words]:
    """The key, and the counter."""
    lax = _jax.lax
    halves = [lax.index_in_dim(state, k, keepdims=False) for k in range(state.shape[0])]
    key, *rest = [(_low(half), _high(half)) for half in halves]
    return key, [word for half in rest for word in half]


def _counters(words: Words, count: int) -> Words:
    lax = _jax.lax
    return _counted([lax.broadcast(word, (count,)) for word in words], lax.iota("uint32", count))


def _next_state(state: Array, counter: Words, count: int) -> Array:
    lax = _jax.lax
    words = _counted(counter, _like(counter[0], count))
    numbers = [_whole(*words[k : k + 2]).reshape(1) for k in range(0, len(words), 2)]
    return lax.concatenate([lax.slice_in_dim(state, 0, 1), *numbers], 0)


def _draw_by_philox(state: Array, *, shape: tuple[int, ...], dtype: Any) -> tuple[Array, Array]:
    lax = _jax.lax
    key, counter = _words_of(state)
    wide = dtype.itemsize == 8
    count = prod(shape) * (1 + wide)
    blocks = -(-count // 4)
    words = _philox(key, _counters([*counter, *key][:4], blocks))
    drawn = lax.concatenate([word.reshape(blocks, 1) for word in words], 1).reshape(-1)
    drawn = lax.slice_in_dim(drawn, 0, count)
    if wide:
        drawn = _whole(*(lax.index_in_dim(drawn.reshape(-1, 2), k, 1, keepdims=False) for k in range(2)))
    return _next_state(state, counter, blocks), drawn.astype(dtype).reshape(shape)


def _philox(key: Words, words: Words) -> Words:
    (k, m), (a, b, c, d) = key, words
    for turn in range(10):
        if turn:
            k, m = k + _like(k, WEYL[0]), m + _like(m, WEYL[1])
        first, second = (_product(x, factor) for x, factor in zip((a, c), MULTIPLIERS, strict=True))
        a, b, c, d = second[1] ^ b ^ k, second[0], first[1] ^ d ^ m, first[0]
    return a, b, c, d


def _product(word: Array, factor: int) -> tuple[Array, Array]:
    """The lower word of a product and the upper one: no sum of products of halves is beyond 32 bits."""
    half, rest = _like(word, 16), _like(word, 0xFFFF)
    above, below = _like(word, factor >> 16), _like(word, factor & 0xFFFF)
    high, low = word >> half, word & rest
    middle = high * below + (low * below >> half)
    other = low * above + (middle & rest)
    return word * _like(word, factor), high * above + (middle >> half) + (other >> half)


def _draw_by_threefry(state: Array, *, shape: tuple[int, ...], dtype: Any) -> tuple[Array, Array]:
    lax = _jax.lax
    key, counter = _words_of(state)
    if dtype.itemsize == 8:
        count = prod(shape)
        return _next_state(state, counter, count), _whole(*_threefry(key, _counters(counter, count))).reshape(shape)
    sizes = shape or (1,)
    even = [d for d, size in enumerate(sizes) if size % 2 == 0]
    at = even[0] if even else sizes.index(max(sizes))
    half = (*sizes[:at], -(-sizes[at] // 2), 1, *sizes[at + 1 :])
    pairs = [word.reshape(half) for word in _threefry(key, _counters(counter, prod(half)))]
    drawn = lax.concatenate(pairs, at + 1).reshape(*sizes[:at], 2 * half[at], *sizes[at + 1 :])
    drawn = lax.slice_in_dim(drawn, 0, sizes[at], axis=at)
    return _next_state(state, counter, prod(half)), drawn.reshape(shape).astype(dtype)


def _threefry(key: Words, words: Words) -> Words:
    keys = [*key, key[0] ^ key[1] ^ _like(key[0], PARITY)]
    x, y = words[0] + keys[0], words[1] + keys[1]
    for turn in range(20):
        x = x + y
        left = ROTATED[turn % 8]
        y = x ^ ((y << _like(y, left)) | (y >> _like(y, 32 - left)))
        if turn % 4 == 3:
            group = turn // 4 + 1
            x, y = x + keys[group % 3], y + keys[(group + 1) % 3] + _like(keys[0], group)
    return x, y
