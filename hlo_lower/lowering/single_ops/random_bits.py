"""`stablehlo.rng_bit_generator` for consumers without: Threefry and Philox in plain ops, as XLA has them on a CPU.

Both are counters that are encrypted (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): number i
depends on the key, the first counter and i alone. 64-bit numbers are two words of 32 bits here, the lower one first.
"""

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import jax.numpy as jnp
from jax import Array, lax

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import build_traced
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, PlainLowering, PlainOp
from hlo_lower.ops.names import BITCAST_CONVERT, NEGATE

STATE, WORD = "ui64", "ui32"
DRAWN = ("ui8", "ui16", "ui32", "ui64")
"""What numbers may be drawn as."""

THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY = 0x1BD11BDA
PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10

Words: TypeAlias = Sequence[Array]

rules = RuleList()


@rules.lowers(
    PLAIN, named={PlainOp.RNG_BIT_GENERATOR}, form="counters, encrypted by 20 rounds of Threefry or 10 of Philox"
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
    node = op.node
    [state], drawn = node.operands, node.result(1)
    is_threefry = mlir.enum_value(mlir.attributes_of(node.raw)["rng_algorithm"]) == "THREE_FRY"
    if drawn.element_type not in DRAWN or state.element_type != STATE or not prod(drawn.static_shape):
        raise DoesNotApply(f"the state is of {state.element_type}, and {drawn.element_type} is drawn")
    if state.static_shape not in ([(2,)] if is_threefry else [(2,), (3,)]):
        raise DoesNotApply("the state has another form")
    draw = _by_threefry if is_threefry else _by_philox
    words = _words_of(state) if is_read_as_words(node.result(0)) else None
    if words is None:
        return build_traced(op.build, draw, state, shape=drawn.static_shape, bits=drawn.element.bits)
    after, numbers = build_traced(op.build, draw, words, shape=drawn.static_shape, bits=drawn.element.bits)
    return [op.build.op(BITCAST_CONVERT, [after], [node.result(0).raw.type]).result(), numbers]


def _words_of(state: Value) -> Value | None:
    """The words of which a state is made, if it is; of shape [numbers, 2], as `_after` gives them."""
    made = state.node
    is_made = made is not None and made.name == BITCAST_CONVERT and made.operand(0).element_type == WORD
    return made.operand(0) if made is not None and is_made else None


def is_read_as_words(value: Value) -> bool:
    """Whether numbers of 64 bits are taken as pairs of words alone, wherever they are taken."""
    return all(user.name == BITCAST_CONVERT and user.result().element_type == WORD for user in value.users)


@rules.lowers(PLAIN, named={PlainOp.BITCAST_CONVERT}, form="what has these bits already")
def bitcast_back_to_words(op: PlainLowering) -> Sequence[Value]:
    """Take numbers apart into the words of which they were made.

        %n = stablehlo.bitcast_convert %w : ui32 -> ui64;  %r = stablehlo.bitcast_convert %n : ui64 -> ui32   ->   %w

    Equal: the bits are the same.

    Raises:
      DoesNotApply: the numbers were not made so, or of other words.
    """
    made = op.node.operand(0).node
    if made is None or made.name != BITCAST_CONVERT or made.operand(0).raw.type != op.node.result().raw.type:
        raise DoesNotApply("its operand was not made of words of its type")
    return [made.operand(0)]


@rules.lowers(
    PLAIN,
    named={PlainOp.BITCAST_CONVERT},
    elements={Elements.SIGNED, Elements.UNSIGNED},
    when=When("floats of one exponent", lambda facts: facts.exponent > 0),
    form="2^e (1 + m / 2^23), e known",
)
def bitcast_of_one_exponent_to_sum(op: PlainLowering) -> Sequence[Value]:
    """Compute floats from their bits, where all have one exponent: so uniform numbers are made.

        %b = or %m, 0x3F800000 : ui32;  %r = bitcast_convert %b : f32   ->   1 + convert(%b - 0x3F800000) * 2^-23

    Equal: the bits below the exponent are a whole number m of M bits, and the float is 2^e (1 + m / 2^M), as IEEE 754
    has it. Nothing is rounded: m, its product with a power of two and the sum are floats, and none is subnormal. Where
    there may be a sign (`jnp.frexp`), it is taken off the bits first, and the float negated at the end.
    """
    build, [bits], made = op.build, op.node.operands, op.node.result().element
    sign = None
    if op.facts.may_have_sign:
        signed = build.convert(bits, bits.element.signed_type)
        sign = build.compare(signed, "LT", 0)
        least = build.constant(-1 << made.bits - 1, signed.static_shape, signed.element_type)
        bits = build.select(sign, build.subtract(signed, least), signed)
    first = build.constant(op.facts.exponent << made.mantissa, bits.static_shape, bits.element_type)
    whole = build.convert(build.convert(build.subtract(bits, first), bits.element.signed_type), made.name)
    one = 2.0 ** (op.facts.exponent - (1 << made.exponent - 1) + 1)
    [found] = build_traced(build, _scaled, whole, unit=one * 2.0**-made.mantissa, one=one)
    return [found if sign is None else build.select(sign, build.elementwise(NEGATE, found), found)]


def _scaled(m: Array, *, unit: float, one: float) -> Array:
    return m * m.dtype.type(unit) + m.dtype.type(one)


def _word(number: int) -> Array:
    return jnp.uint32(number)


def _halves(state: Array) -> list[Words]:
    """The two words of each number of a state; a state of words has two in each row."""
    if state.dtype == jnp.uint32:
        words = [lax.index_in_dim(state.reshape(-1), place, keepdims=False) for place in range(state.size)]
        return list(zip(words[::2], words[1::2], strict=True))
    numbers = [lax.index_in_dim(state, place, keepdims=False) for place in range(state.shape[0])]
    return [(n.astype(jnp.uint32), (n >> jnp.uint64(32)).astype(jnp.uint32)) for n in numbers]


def _join_words(low: Array, high: Array) -> Array:
    return low.astype(jnp.uint64) | (high.astype(jnp.uint64) << jnp.uint64(32))


def _add_word(words: Words, count: Array) -> Words:
    """Add a number of one word to one of several; the sum wraps."""
    found = [words[0] + count]
    for word in words[1:]:
        count = jnp.where(found[-1] < count, _word(1), _word(0))
        found.append(word + count)
    return found


def _counters(words: Words, count: int) -> Words:
    return _add_word([jnp.broadcast_to(word, (count,)) for word in words], lax.iota(jnp.uint32, count))


def _after(state: Array, key: Words, counter: Words, count: int) -> Array:
    words = [*key, *_add_word(counter, _word(count))]
    if state.dtype == jnp.uint32:
        return jnp.concatenate([word.reshape(1) for word in words]).reshape(-1, 2)
    return jnp.concatenate([_join_words(*words[i : i + 2]).reshape(1) for i in range(0, len(words), 2)])


def _of_bits(words: Array, bits: int) -> Array:
    return words.astype(jnp.dtype(f"uint{bits}"))


# --- Threefry ---


def _by_threefry(state: Array, *, shape: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    key, counter = _halves(state)
    if bits == 64:
        count = prod(shape)
        numbers = _join_words(*_threefry(key, _counters(counter, count)))
        return _after(state, key, counter, count), numbers.reshape(shape)
    dims = shape or (1,)
    split = next((d for d, size in enumerate(dims) if size % 2 == 0), dims.index(max(dims)))
    pairs = (*dims[:split], (dims[split] + 1) // 2, 1, *dims[split + 1 :])
    words = [word.reshape(pairs) for word in _threefry(key, _counters(counter, prod(pairs)))]
    even = (*dims[:split], 2 * pairs[split], *dims[split + 1 :])
    drawn = lax.slice_in_dim(jnp.concatenate(words, split + 1).reshape(even), 0, dims[split], axis=split)
    return _after(state, key, counter, prod(pairs)), _of_bits(drawn.reshape(shape), bits)


def _threefry(key: Words, counters: Words) -> Words:
    """Threefry-2x32 of 20 rounds."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _word(THREEFRY_PARITY))
    x, y = counters[0] + keys[0], counters[1] + keys[1]
    for group in range(5):
        for bits in THREEFRY_ROTATIONS[group % 2]:
            x = x + y
            y = x ^ ((y << _word(bits)) | (y >> _word(32 - bits)))
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + _word(group + 1)
    return x, y


# --- Philox ---


def _by_philox(state: Array, *, shape: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    key, *rest = _halves(state)
    counter = [word for half in rest for word in half]
    count = prod(shape) * max(bits // 32, 1)
    blocks = -(-count // 4)
    words = _philox(key, _counters([*counter, *key][:4], blocks))
    drawn = lax.slice_in_dim(jnp.concatenate([w.reshape(blocks, 1) for w in words], 1).reshape(-1), 0, count)
    if bits == 64:
        low, high = (lax.index_in_dim(drawn.reshape(-1, 2), k, 1, keepdims=False) for k in range(2))
        return _after(state, key, counter, blocks), _join_words(low, high).reshape(shape)
    return _after(state, key, counter, blocks), _of_bits(drawn.reshape(shape), bits)


def _philox(key: Words, counters: Words) -> Words:
    """Philox-4x32 of 10 rounds."""
    a, b, c, d = counters
    first, second = key
    for number in range(PHILOX_ROUNDS):
        if number:
            first, second = first + _word(PHILOX_STEPS[0]), second + _word(PHILOX_STEPS[1])
        (high_a, low_a), (high_c, low_c) = _product(a, PHILOX_FACTORS[0]), _product(c, PHILOX_FACTORS[1])
        a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
    return a, b, c, d


def _product(word: Array, factor: int) -> tuple[Array, Array]:
    """The upper and the lower word of a product, by halves of 16 bits: no sum of these is beyond 32 bits."""
    half, low_bits = _word(16), _word(0xFFFF)
    high, low, above, below = word >> half, word & low_bits, _word(factor >> 16), _word(factor & 0xFFFF)
    middle = high * below + ((low * below) >> half)
    other = low * above + (middle & low_bits)
    return high * above + (middle >> half) + (other >> half), word * _word(factor)
