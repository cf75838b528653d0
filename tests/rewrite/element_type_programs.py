"""Modules of many ops on one element type, targets that refuse it, and numbers that tell right from wrong."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

import hlo_lower as hl
from hlo_lower.lowering.types.carried.exactness import TABLE

KEPT_OPS = ("stablehlo.convert", "stablehlo.bitcast_convert")


def target_taking(*dtypes, without=(), casts=True):
    """A target that takes every op of the table on these types alone, but conversions, which it takes on all."""
    ops = {op: [*dtypes] for op in TABLE if not (casts and op in KEPT_OPS)}
    refused = {f"stablehlo.{op}": "none" for op in without} | {"stablehlo.scatter": "lowered"}
    return hl.Target("npu", refused=refused, op_dtypes={op: d for op, d in ops.items() if op not in refused})


def taking_nowhere_else(*dtypes, without=()):
    """A target that takes these element types, and has no room for others."""
    refused = {f"stablehlo.{op}": "none" for op in without} | {"stablehlo.scatter": "lowered"}
    return hl.Target("npu", refused=refused, dtypes=[*dtypes])


def pairs(dtype):
    """Two tensors with every pair of numbers of a type of 8 bits."""
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    return np.repeat(every, 256), np.tile(every, 256)


def edges(dtype, count=4000):
    """Pairs of numbers of a type: those where something changes, and random ones."""
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, info.max // 2 + 1]
    near += [1 << k for k in range(info.bits - 1)] + [(1 << k) - 1 for k in range(info.bits)] + [-1, -2]
    near = np.array([n % (1 << info.bits) for n in near], f"uint{info.bits}").view(dtype)
    found = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    small = found >> rng.integers(0, info.bits - 1, count).astype(dtype)
    x = np.concatenate([np.repeat(near, len(near)), found, small])
    y = np.concatenate([np.tile(near, len(near)), small, found])
    return x, y


def floats(dtype, count=4000):
    """Pairs of floats: NaN, Inf, zeros of both signs, subnormals, ties and random bits."""
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 1 << 16, (2, count)).astype(np.uint16)
    near = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 256, 257, 1.5, 1e-8, 65504, 3e38], np.float32)
    with np.errstate(all="ignore"):
        near = near.astype(dtype)
    scaled = (rng.standard_normal((2, count)) * 4).astype(dtype)
    x = np.concatenate([np.repeat(near, len(near)), bits[0].view(dtype), scaled[0]])
    y = np.concatenate([np.tile(near, len(near)), bits[1].view(dtype), scaled[1]])
    return x, y


BINARY = {
    "add": lax.add,
    "subtract": lax.sub,
    "multiply": lax.mul,
    "divide": lax.div,
    "remainder": lax.rem,
    "maximum": lax.max,
    "minimum": lax.min,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    **{f"compare {name}": getattr(lax, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "clamp": lambda x, y: lax.clamp(lax.min(x, y), y, lax.max(x, y)),
    "select": lambda x, y: lax.select(x < y, x, y),
}
UNARY = {
    "negate": lax.neg,
    "not": lax.bitwise_not,
    "abs": lax.abs,
    "sign": lax.sign,
    "popcnt": lax.population_count,
    "count_leading_zeros": lax.clz,
    "floor": lax.floor,
    "ceil": lax.ceil,
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "is_finite": lax.is_finite,
    "sqrt": lax.sqrt,
    "rsqrt": lax.rsqrt,
    "cbrt": lax.cbrt,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "log": lax.log,
    "log_plus_one": lax.log1p,
    "logistic": lax.logistic,
    "tanh": lax.tanh,
    "tan": lax.tan,
    "sine": lax.sin,
    "cosine": lax.cos,
}
INTEGERS = (*list(UNARY)[:6],)
FLOAT_BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", *list(BINARY)[13:])


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


MOVED = {
    "reverse": lambda x, y: lax.rev(x, (0,)),
    "pad": lambda x, y: lax.pad(x, y[0], [(1, 2, 1)]),
    "dynamic_slice": lambda x, y: lax.dynamic_slice(rows(x)[:64], (y[5], y[1]), (1, 3)),
    "gather": lambda x, y: rows(x)[:64].at[jnp.stack([y[1], y[2], y[5]])].get(mode="clip"),
    "argmax": lambda x, y: lax.argmax(rows(x), 1, jnp.int32),
    "sort": lambda x, y: lax.sort((rows(x), rows(y)), num_keys=2)[1],
    **{f"reduce {op}": folded(BINARY[op]) for op in ("add", "multiply", "minimum", "maximum")},
}


def programs(dtype):
    """For each op that a type has a function of two tensors."""
    is_float = jnp.issubdtype(dtype, jnp.floating)
    found = {name: op for name, op in BINARY.items() if not is_float or name in FLOAT_BINARY}
    names = [n for n in UNARY if (n in INTEGERS) != is_float or n in ("negate", "abs", "sign")]
    if np.dtype(dtype).kind == "u":
        names.remove("abs")
    found |= {name: (lambda x, y, op=UNARY[name]: op(x)) for name in names}
    found |= {name: op for name, op in MOVED.items() if not is_float or name not in ("dynamic_slice", "gather")}
    if is_float:
        found |= {"dot_general": lambda x, y: rows(x)[:64] @ rows(y)[:64].T}
        found.pop("exponential_minus_one" if dtype == np.float16 else "", None)
    else:
        found |= {"dot_general": lambda x, y: rows(x)[:64] @ rows(y)[:64].T}
    return found


def conversions(others):
    """Conversions of the first tensor to other types."""
    return {f"to {other}": to(other) for other in others}


def to(dtype):
    """A conversion to a type, of the first of two tensors; the second is read, so that both are arguments."""
    return lambda x, y: lax.convert_element_type(lax.select(x == x, x, lax.select(x < y, x, x)), dtype)


def wide_programs(dtype):
    """What a type of 64 bits has on its halves."""
    names = ("add", "subtract", "multiply", "and", "or", "xor", "minimum", "maximum", "select", "compare eq")
    found = {name: BINARY[name] for name in (*names, *(f"compare {how}" for how in ("ne", "lt", "le", "gt", "ge")))}
    found |= {"not": lambda x, y: lax.bitwise_not(x), "negate": lambda x, y: lax.neg(x)}
    for k in (0, 1, 31, 32, 33, 63, 64):
        found[f"left by {k}"] = lambda x, y, k=k: lax.shift_left(x, jnp.full_like(x, k))
        found[f"right by {k}"] = lambda x, y, k=k: lax.shift_right_logical(x, jnp.full_like(x, k))
        found[f"signed by {k}"] = lambda x, y, k=k: lax.shift_right_arithmetic(x, jnp.full_like(x, k))
    found["moves"] = lambda x, y: lax.rev(jnp.concatenate([x[:8].reshape(2, 4).T, y[4:20:2].reshape(4, 2)], 1), (0,))
    others = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
    return found | {f"to {other}": to(other) for other in others if other != dtype}


def long_programs(dtype):
    """What takes many ops on halves: quotients, shifts by what is not known, reductions, moves by indices, floats."""
    names = ("divide", "remainder", "clamp", "shift_left", "shift_right_logical", "shift_right_arithmetic")
    found = {name: BINARY[name] for name in names}
    found |= {name: (lambda x, y, op=UNARY[name]: op(x)) for name in ("sign", "popcnt", "count_leading_zeros")}
    if np.dtype(dtype).kind == "i":
        found["abs"] = lambda x, y: lax.abs(x)
    for d in (1, 7, 1000, 32767):
        found[f"divide by {d}"] = lambda x, y, d=d: lax.div(x, jnp.full_like(x, d))
        found[f"remainder by {d}"] = lambda x, y, d=d: lax.rem(x, jnp.full_like(x, d))
    found["by a small one"] = lambda x, y: lax.div(x, lax.shift_right_logical(y, jnp.full_like(y, 45)))
    for op in ("add", "minimum", "maximum", "and", "or", "xor"):
        found[f"reduce {op}"] = lambda x, y, op=op: lax.reduce(rows(x), y[3], BINARY[op], (1,))
    found["windows"] = lambda x, y: lax.reduce_window(rows(x), y[0] * 0, lax.add, (1, 5), (1, 2), "SAME")
    found["iota"] = lambda x, y: x[:8] + lax.iota(dtype, 8)
    for name in ("pad", "dynamic_slice", "gather"):
        found[name] = MOVED[name]
    found["update"] = lambda x, y: lax.dynamic_update_slice(rows(x)[:64], rows(y)[:2, :3], (y[5], y[1]))
    found["f32 by index"] = lambda x, y: lax.dynamic_slice(jnp.arange(40.0, dtype="float32"), (x[7],), (5,))
    found |= {f"to {other}": to(other) for other in ("float32", "float64")}
    return found


def on_32_bits(without=(), floats=()):
    """A target that computes on 32 bits, and converts between types of as many and fewer."""
    target = target_taking("i1", "i32", *floats, without=without)
    taken = {**target.op_dtypes, "stablehlo.convert": ["i1", "i8", "ui8", "i32", "ui32", *floats]}
    return hl.Target("npu", refused=target.refused, op_dtypes=taken)


def only_xor():
    """A target whose one bit operation is `xor`."""
    target = target_taking("i1", "i32", without=("shift_right_logical",))
    taken = {**target.op_dtypes, "stablehlo.and": ["i1"], "stablehlo.or": ["i1"]}
    return hl.Target("npu", refused=target.refused, op_dtypes=taken)


def exported(program, *arguments):
    """A module of a function."""
    with jax.enable_x64(True):
        return hl.export(program, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments))


def all_of(found):
    """One function with the results of several."""
    return lambda x, y: tuple(op(x, y) for op in found.values())


def run(source, *arguments):
    """What a module gives on XLA, unoptimized and without excess precision."""
    options = {"xla_backend_optimization_level": 0, "xla_allow_excess_precision": False}
    with jax.enable_x64(True):
        compiled = jax.jit(source.call).lower(*arguments).compile(compiler_options=options)
        return [np.asarray(result) for result in compiled(*arguments)]


def same_bits(expected, found):
    """Whether two arrays hold the same bits, any NaN for another."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return np.zeros(expected.shape, bool)
    if expected.dtype.kind in "fV" or expected.dtype == ml_dtypes.bfloat16:
        bits = f"u{expected.dtype.itemsize}"
        nan = np.isnan(expected.astype(np.float32)) & np.isnan(found.astype(np.float32))
        return nan | (np.ascontiguousarray(expected).view(bits) == np.ascontiguousarray(found).view(bits))
    return expected == found


def wrong(found, source, lowered, *arguments):
    """The names of the ops whose results differ, each with the first operands and results."""
    before, after = run(source, *arguments), run(lowered.exported, *arguments)
    told = {}
    for name, expected, given in zip(found, before, after, strict=True):
        bad = np.flatnonzero(~same_bits(expected, given).reshape(-1))
        if bad.size:
            k = bad[0]
            operands = [a.reshape(-1)[k] for a in arguments if a.size == expected.size]
            told[name] = operands, expected.reshape(-1)[k], given.reshape(-1)[k], bad.size
    return told
