"""Modules of many ops on one element type, targets that refuse it, and numbers that tell right from wrong."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from rewrites import results
from rule_examples import target

import hlo_lower as hl
from hlo_lower.lowering.types.carried.exactness import TABLE


def target_taking(*dtypes, without=(), also=(), **more):
    """A target that takes the ops of the table on these types alone; conversions on all, and others as `also` says."""
    taken = {op: [*dtypes] for op in TABLE if op not in ("stablehlo.convert", "stablehlo.bitcast_convert")}
    taken |= {f"stablehlo.{op}": own for op, own in dict(also).items()}
    refused = {f"stablehlo.{op}" for op in ("scatter", *without)}
    return target("npu", *without, op_dtypes={op: own for op, own in taken.items() if op not in refused}, **more)


def on_32_bits(without=(), floats=()):
    """A target that computes on 32 bits, and converts between types of as many and fewer."""
    also = {"convert": ["i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", *floats]}
    return target_taking("i1", "i32", *floats, without=without, also=also)


def only_xor():
    """A target whose one bit operation is `xor`."""
    return target_taking("i1", "i32", without=("shift_right_logical",), also={"and": ["i1"], "or": ["i1"]})


def no_bits():
    """A target without bit operations but those of truth values."""
    logic = ("and", "or", "xor", "not")
    return target_taking("i1", "i32", "f32", without=SHIFTS, also={op: ["i1"] for op in logic})


def edges(dtype, count=4000):
    """Pairs of numbers of a type: those where something changes, and random ones."""
    rng, info = np.random.default_rng(3), np.iinfo(dtype)
    near = [-2, -1, 0, 1, 2, 3, 7, info.max // 2, info.max // 2 + 1, info.max - 1, info.max, info.min, info.min + 1]
    near += [(1 << k) - e for k in range(info.bits) for e in (0, 1)]
    near = np.array([n % (1 << info.bits) for n in near], f"uint{info.bits}").view(dtype)
    found = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    return each_pair(near, found, found >> rng.integers(0, info.bits - 1, count).astype(dtype))


def each_pair(near, x, y):
    """Each of some numbers with each, then others of two arrays."""
    return np.concatenate([np.repeat(near, len(near)), x, y]), np.concatenate([np.tile(near, len(near)), y, x])


def floats(dtype, count=4000):
    """Pairs of floats: NaN, Inf, zeros of both signs, subnormals, ties and random bits."""
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 1 << 16, (2, count)).astype(np.uint16)
    near = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 256, 257, 1.5, 1e-8, 65504, 3e38], np.float32)
    with np.errstate(all="ignore"):
        near, scaled = near.astype(dtype), (rng.standard_normal((2, count)) * 4).astype(dtype)
    x, y = (np.concatenate([bits[k].view(dtype), scaled[k]]) for k in (0, 1))
    return each_pair(near, x, y)


def operands(dtype):
    """All pairs of a type of 8 bits; of others the edges and random ones."""
    if jnp.issubdtype(dtype, jnp.floating):
        return floats(jnp.dtype(dtype))
    if np.dtype(dtype).itemsize > 1:
        return edges(dtype)
    every = np.arange(256).astype(np.uint8).view(dtype)
    return np.repeat(every, 256), np.tile(every, 256)


ARITHMETIC = {name: getattr(lax, name) for name in ("add", "sub", "mul", "div", "rem", "max", "min")}
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
BIT_OPS = {name: getattr(lax, f"bitwise_{name}") for name in ("and", "or", "xor")}
BIT_OPS |= {name: getattr(lax, name) for name in SHIFTS}
ORDERED = {f"compare {name}": getattr(lax, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
ORDERED["clamp"] = lambda x, y: lax.clamp(lax.min(x, y), y, lax.max(x, y))
ORDERED["select"] = lambda x, y: lax.select(x < y, x, y)
OF_BOTH, OF_INTEGERS = ("neg", "abs", "sign"), ("bitwise_not", "population_count", "clz")
OF_FLOATS = ("floor", "ceil", "round", "is_finite", "sqrt", "rsqrt", "cbrt", "exp", "expm1", "log", "log1p", "logistic")
OF_FLOATS += ("tanh", "tan", "sin", "cos")


def of_first(op):
    """An op of the first of two tensors."""
    return lambda x, y: op(x)


def rows(x):
    """A tensor as rows of 16."""
    return x[: x.size // 16 * 16].reshape(-1, 16)


def folded(op):
    """A reduction of rows by one op, of numbers that are no NaN, zero or subnormal: XLA's own maximum of f32 loses NaN
    beside Inf, and mixes zeros."""

    def fold(x, y):
        is_plain = jnp.isfinite(x) & (jnp.abs(x) > 1e-30) if jnp.issubdtype(x.dtype, jnp.floating) else True
        return lax.reduce(rows(jnp.where(is_plain, x, jnp.ones_like(x))), jnp.ones_like(y[0]), op, (1,))

    return fold


BY_INDICES = {
    "dynamic_slice": lambda x, y: lax.dynamic_slice(rows(y)[:64], (y[5], y[1]), (1, 3)),
    "gather": lambda x, y: rows(y)[:64].at[jnp.stack([y[1], y[2], y[5]])].get(mode="clip"),
}
MOVED = {
    "reverse": lambda x, y: lax.rev(x, (0,)),
    "pad": lambda x, y: lax.pad(x, y[0], [(1, 2, 1)]),
    "argmax": lambda x, y: lax.argmax(rows(x), 1, jnp.int32),
    "sort": lambda x, y: lax.sort((rows(x), rows(y)), num_keys=2)[1],
    **{f"reduce {op}": folded(ARITHMETIC[op]) for op in ("add", "mul", "min", "max")},
    "dot_general": lambda x, y: rows(x)[:64] @ rows(y)[:64].T,
}


def programs(dtype):
    """For each op that a type has a function of two tensors."""
    found, names = ARITHMETIC | ORDERED | MOVED, [*OF_BOTH, *OF_INTEGERS]
    if jnp.issubdtype(dtype, jnp.floating):
        names = [n for n in (*OF_BOTH, *OF_FLOATS) if n != "expm1" or dtype != np.float16]
        found["convolution"] = lambda x, y: lax.conv(
            rows(x)[None, None, :64], y[:18].reshape(2, 1, 3, 3), (2, 1), "SAME"
        )
        found["round to even"] = lambda x, y: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    else:
        found |= BIT_OPS | BY_INDICES
    return found | {n: of_first(getattr(lax, n)) for n in names if n != "abs" or np.dtype(dtype).kind != "u"}


def to(dtype):
    """A conversion to a type, of the first of two tensors; the second is read, so that both are arguments."""
    return lambda x, y: lax.convert_element_type(lax.select(x == x, x, lax.select(x < y, x, x)), dtype)


def conversions(others):
    """Conversions of the first tensor to other types."""
    return {f"to {other}": to(other) for other in others}


def exported(program, *arguments):
    """A module of a function."""
    with jax.enable_x64(True):
        return hl.export(program, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments))


def same_bits(expected, found):
    """Whether two arrays hold the same bits, any NaN for another."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return np.zeros(expected.shape, bool)
    if expected.dtype.kind in "fV" or expected.dtype == ml_dtypes.bfloat16:
        bits = f"u{expected.dtype.itemsize}"
        nan = np.isnan(expected.astype(np.float32)) & np.isnan(found.astype(np.float32))
        return nan | (np.ascontiguousarray(expected).view(bits) == np.ascontiguousarray(found).view(bits))
    return expected == found


def wrong(found, given, target):
    """The names of the programs that give other results for a target, each with the first operands and results; and
    the module that is lowered for it."""
    source = exported(lambda *given: tuple(op(*given) for op in found.values()), *given)
    lowered = hl.lower(source, target=target)
    read, told = [given[k] for k in source.module_kept_var_idx], {}
    for name, expected, own in zip(found, results(source, *read), results(lowered.as_given, *read), strict=True):
        bad = np.flatnonzero(~same_bits(expected, own).reshape(-1))
        if bad.size:
            taken = [a.reshape(-1)[bad[0]] for a in given if a.size == expected.size]
            told[name] = taken, expected.reshape(-1)[bad[0]], own.reshape(-1)[bad[0]], bad.size
    return told, lowered


def assert_right(found, given, target):
    """No program gives other bits, and the target takes all of the module."""
    told, lowered = wrong(found, given, target)
    assert told == {}
    assert lowered.refused == ()
