"""`stablehlo.rng_bit_generator` for consumers without: Threefry and Philox in plain ops, as XLA has them on a CPU.

Both are counters that are encrypted (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): number i
depends on the key, the first counter and i alone. 64-bit numbers are two words of 32 bits here, the lower one first.
"""

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from hlo_lower import mlir
from hlo_lower.graph import Builder, Value
from hlo_lower.graph.axes import slice_along
from hlo_lower.lowerings.integer_ops import Integers
from hlo_lower.lowerings.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.registry import DoesNotApply, RuleList

WORD, STATE = "ui32", "ui64"
DRAWN = ("ui8", "ui16", WORD, STATE)
"""What numbers may be drawn as."""

THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY = 0x1BD11BDA
PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10

Words: TypeAlias = tuple[Value, ...]

rules = RuleList()


@rules.lowers(
    PLAIN,
    named={PlainOp.RNG_BIT_GENERATOR},
    form="counters, encrypted by 20 rounds of Threefry or 10 of Philox",
)
def random_bits_to_rounds(op: PlainLowering) -> Sequence[Value]:
    """Count from the state's counter on, and encrypt each count.

        Threefry: state = [key, counter];  counter c gives 64 bits: two numbers of 32, beside each other in the first
                  dim of an even size, else in the largest one, or one of 64
        Philox:   state = [key, counter, counter's upper half]; c gives 128 bits: four numbers of 32 in row-major order,
                  or two of 64. A state of two numbers has the key for the upper half.

    Equal, bit for bit, to what XLA computes on a CPU, the next state included, which counts what was drawn; numbers of
    8 and 16 bits are the low bits of those of 32. The specification leaves open what an algorithm draws, and which one
    DEFAULT is: Philox, as on a CPU. Costs some hundred elementwise ops.

    Raises:
      DoesNotApply: for what is drawn or the state's form XLA has nothing on a CPU.
    """
    node, build = op.node, op.build
    [state], drawn = node.operands, node.result(1)
    is_threefry = mlir.enum_value(mlir.attributes_of(node.raw)["rng_algorithm"]) == "THREE_FRY"
    if drawn.element_type not in DRAWN or state.element_type != STATE or not prod(drawn.static_shape):
        raise DoesNotApply(f"the state is of {state.element_type}, and {drawn.element_type} is drawn")
    if state.static_shape not in ([(2,)] if is_threefry else [(2,), (3,)]):
        raise DoesNotApply("the state has another form")
    halves = [_halves(build, build.slice(state, [i], [i + 1])) for i in range(state.static_shape[0])]
    is_wide = drawn.element_type == STATE
    numbers, count = (_by_threefry if is_threefry else _by_philox)(build, halves, drawn.static_shape, is_wide)
    moved = _added(Integers(build, halves[1][0]), [w for half in halves[1:] for w in half], count)
    after = [halves[0], *(moved[i : i + 2] for i in range(0, len(moved), 2))]
    if is_wide:
        numbers = [_joined(build, numbers)]
    found = build.reshape(build.convert(numbers[0], drawn.element_type), drawn.static_shape)
    return [build.concatenate([_joined(build, words) for words in after], 0), found]


def _halves(build: Builder, value: Value) -> Words:
    """The two words of numbers of 64 bits."""
    at = Integers(build, value)
    return build.convert(value, WORD), build.convert(at.op("shift_right_logical", value, 32), WORD)


def _joined(build: Builder, words: Sequence[Value]) -> Value:
    """The numbers of 64 bits of their two words."""
    low, high = (build.convert(word, STATE) for word in words)
    at = Integers(build, low)
    return at.op("or", low, at.op("shift_left", high, 32))


def _added(at: Integers, words: Sequence[Value], count: Value | int) -> Words:
    """A number of so many words and another one of one word, which wraps."""
    found = [at.op("add", words[0], count)]
    for word in words[1:]:
        carry = at.where(found[-1], "LT", count, 1, 0)
        found.append(at.op("add", word, carry))
        count = carry
    return tuple(found)


def _counters(build: Builder, words: Sequence[Value], shape: Sequence[int]) -> tuple[Integers, Words]:
    """The state's counter and the following ones, one for each place, in row-major order."""
    count = prod(shape)
    spread = [build.broadcast(build.reshape(word, ()), (count,)) for word in words]
    at = Integers(build, spread[0])
    return at, _added(at, spread, build.iota((count,), 0, WORD))


# --- Threefry ---


def _by_threefry(
    build: Builder, state: Sequence[Words], shape: tuple[int, ...], is_wide: bool
) -> tuple[Sequence[Value], int]:
    """The words that are drawn, and how many counters for it."""
    if is_wide:
        at, counters = _counters(build, state[1], shape)
        return _threefry(at, state[0], counters), prod(shape)
    dims = shape or (1,)
    split = next((d for d, size in enumerate(dims) if size % 2 == 0), dims.index(max(dims)))
    pairs = (*dims[:split], (dims[split] + 1) // 2, 1, *dims[split + 1 :])
    at, counters = _counters(build, state[1], pairs)
    words = [build.reshape(word, pairs) for word in _threefry(at, state[0], counters)]
    even = (*dims[:split], 2 * pairs[split], *dims[split + 1 :])
    joined = build.reshape(build.concatenate(words, split + 1), even)
    return [slice_along(build, joined, split, 0, dims[split])], prod(pairs)


def _threefry(at: Integers, key: Words, counters: Words) -> Words:
    """Threefry-2x32 of 20 rounds."""
    low, high = (at.build.broadcast(at.build.reshape(word, ()), at.shape) for word in key)
    keys = (low, high, at.op("xor", at.op("xor", low, THREEFRY_PARITY), high))
    x, y = (at.op("add", counter, k) for counter, k in zip(counters, keys, strict=False))
    for group in range(5):
        for bits in THREEFRY_ROTATIONS[group % 2]:
            x = at.op("add", x, y)
            turned = at.op("or", at.op("shift_left", y, bits), at.op("shift_right_logical", y, 32 - bits))
            y = at.op("xor", x, turned)
        x = at.op("add", x, keys[(group + 1) % 3])
        y = at.op("add", at.op("add", y, keys[(group + 2) % 3]), group + 1)
    return x, y


# --- Philox ---


def _by_philox(
    build: Builder, state: Sequence[Words], shape: tuple[int, ...], is_wide: bool
) -> tuple[Sequence[Value], int]:
    """The words that are drawn, and how many counters for it."""
    count = prod(shape)
    blocks = -(-count * (2 if is_wide else 1) // 4)
    at, counters = _counters(build, [*state[1], *(state[2] if len(state) > 2 else state[0])], (blocks,))
    drawn = [build.reshape(word, (blocks, 1)) for word in _philox(at, state[0], counters)]
    parts = [drawn[0::2], drawn[1::2]] if is_wide else [drawn]
    flat = [build.reshape(build.concatenate(part, 1), (blocks * len(part),)) for part in parts]
    return [slice_along(build, words, 0, 0, count) for words in flat], blocks


def _philox(at: Integers, key: Words, counters: Words) -> Words:
    """Philox-4x32 of 10 rounds."""
    a, b, c, d = counters
    first, second = (at.build.broadcast(at.build.reshape(word, ()), at.shape) for word in key)
    for number in range(PHILOX_ROUNDS):
        if number:
            first, second = (at.op("add", k, step) for k, step in zip((first, second), PHILOX_STEPS, strict=True))
        (high_a, low_a), (high_c, low_c) = (_product(at, w, f) for w, f in zip((a, c), PHILOX_FACTORS, strict=True))
        a, b = at.op("xor", at.op("xor", high_c, b), first), low_c
        c, d = at.op("xor", at.op("xor", high_a, d), second), low_a
    return a, b, c, d


def _product(at: Integers, word: Value, factor: int) -> tuple[Value, Value]:
    """The upper and the lower word of a product, by halves of 16 bits: no sum of these is beyond 32 bits."""
    high, low = at.op("shift_right_logical", word, 16), at.op("and", word, 0xFFFF)
    above, below = factor >> 16, factor & 0xFFFF
    middle = at.op(
        "add", at.op("multiply", high, below), at.op("shift_right_logical", at.op("multiply", low, below), 16)
    )
    other = at.op("add", at.op("multiply", low, above), at.op("and", middle, 0xFFFF))
    carried = at.op("add", at.op("shift_right_logical", middle, 16), at.op("shift_right_logical", other, 16))
    return at.op("add", at.op("multiply", high, above), carried), at.op("multiply", word, factor)
