"""Random programs of 64-bit integers, targets that compute on none of them, and what differs."""

import jax.numpy as jnp
import numpy as np
from element_type_programs import ARITHMETIC, BIT_OPS, ORDERED, SHIFTS, same_bits, target_taking
from jax import lax
from random_programs import MOVES, exported, program

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.types.element_type import WITH_BODIES
from hlo_lower.verify.judges.devices import compile_anywhere

NARROW = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32")
THROUGH = (*NARROW, "bfloat16", "float16", "float32", "float64", "int64", "uint64")
EDGES = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, -1, -2, -3, -63, -64]
EDGES += [(1 << k) + e for k in (15, 16, 31, 32, 33, 48, 62, 63, 64) for e in (-2, -1, 0, 1, 2)]
EDGES += [-((1 << k) + e) for k in (31, 32, 62, 63) for e in (-1, 0, 1)]
EDGES += [5 << 32, (5 << 32) | 5, 0x00000001FFFFFFFF, 0xFFFFFFFF00000000, 0x7FFFFFFF80000000, 0x80000000FFFFFFFF]
SHIFTED_BY = (0, 1, 15, 16, 17, 31, 32, 33, 47, 62, 63, 64, 65, 127, 1 << 32, (1 << 64) - 1, 1 << 63, (1 << 32) + 3)
DIVISORS = (1, 2, 3, 7, 10, 1000, 32767, 32768, 65535, (1 << 32) + 5, 5, 1 << 40, (1 << 63) - 1, 1 << 63)
BINARY = {name: op for name, op in (ARITHMETIC | BIT_OPS | ORDERED).items() if not name.startswith("compare")}
FOLDS = [
    *(ARITHMETIC[name] for name in ("add", "min", "max", "mul")),
    *(BIT_OPS[name] for name in ("and", "or", "xor")),
]
COMPARED = [op for name, op in ORDERED.items() if name.startswith("compare")]


def known(numbers, x, k):
    """Numbers in the shape of a tensor: one of several, or all of them in turn."""
    picked = np.roll(np.array(numbers, object), k)
    found = np.array([int(n) % (1 << 64) for n in np.resize(picked[: 1 if k % 3 else None], x.size)], np.uint64)
    return jnp.asarray(found.view(x.dtype).reshape(x.shape))


def chosen(many, k):
    """One of several."""
    return many[k % len(many)]


def to(x, dtype):
    """A conversion."""
    return lax.convert_element_type(x, dtype)


def spread(row, x):
    """A row in the shape of a tensor."""
    return lax.broadcast_in_dim(row, x.shape, (1,))


def on_signed(op, x):
    """What is there for signed integers only."""
    return to(op(to(x, "int64")), x.dtype)


def window(x, op, k):
    """A fold over windows: strides, dilations and padding; from another number XLA does not pad."""
    info = np.iinfo(x.dtype)
    least = dict(zip(FOLDS, (0, info.max, info.min, 1, -1, 0, 0), strict=True))[op]
    size, base, inner = (2, 1 + k % 2), (1 + k // 2 % 2, 1), (1, 1 + k // 4 % 2)
    found = lax.reduce_window(x, np.array(least).astype(x.dtype), op, size, (1, 1), ((1, 1), (2, 1)), base, inner)
    return found[: len(x), : len(x)]


def convolved(x, y, k):
    """A convolution of one dim, padded, strided, dilated, in groups or not."""
    groups, low = (len(x), 1) if k % 2 else (1, len(x)), 1 + k // 2 % 2
    kernel = jnp.tile(y[:, :1], (1, groups[1]))[:, :, None]
    dilated = {"lhs_dilation": (low,), "rhs_dilation": (1 + k // 4 % 2,), "feature_group_count": groups[0]}
    found = lax.conv_general_dilated(x[None], kernel, (low,), [(k % 2, 0)], **dilated)[0]
    return jnp.pad(found, ((0, 0), (0, len(x))))[:, : len(x)]


def ordered(x, y, k):
    """Rows in the order of a key of 64 bits, or of an f32 or i32 that 64 bits go along with."""
    return lax.sort((to(x, chosen((x.dtype, "float32", "int32"), k)), y), dimension=k % 2, num_keys=1 + k // 2 % 2)[1]


def own_fold(x, y):
    """A fold whose body is several ops, and in any order the same: (x + 1) (y + 1) - 1."""
    return lax.reduce(x, y.sum(), lambda a, b: a * b + (a + b), (0,))


OF_TWO = {name: lambda x, y, i, k, op=op: op(x, y) for name, op in BINARY.items()}
OF_ONE = {op.__name__: lambda x, y, i, k, op=op: op(x) for op in (lax.neg, lax.bitwise_not, lax.population_count)}
OPS = MOVES | OF_TWO | OF_ONE
OPS |= {
    "clz": lambda x, y, i, k: lax.clz(x),
    "signed": lambda x, y, i, k: on_signed(chosen((lax.abs, lax.sign), k), x),
    "quotient_by_known": lambda x, y, i, k: chosen((lax.div, lax.rem), k)(x, known(DIVISORS, x, k)),
    "shift_by_known": lambda x, y, i, k: BIT_OPS[chosen(SHIFTS, k)](x, known(SHIFTED_BY, x, k)),
    "chosen": lambda x, y, i, k: lax.select(chosen(COMPARED, k)(x, y), x, y),
    "by_bounds": lambda x, y, i, k: lax.clamp(y.sum(), x, x.sum()),
    "convert": lambda x, y, i, k: to(to(x, chosen(THROUGH, k)), x.dtype),
    "from_narrow": lambda x, y, i, k: to(to(x, chosen(NARROW, k)), chosen(("bfloat16", "float16", x.dtype), k)).astype(
        x.dtype
    ),
    "from_floats": lambda x, y, i, k: to(
        to(lax.bitcast_convert_type(x, "float64"), chosen(("float64", "float32"), k)), x.dtype
    ),
    "other_sign": lambda x, y, i, k: to(to(x, "uint64") // to(y, "uint64") - to(x, "uint64"), x.dtype),
    "bitcast": lambda x, y, i, k: lax.bitcast_convert_type(lax.bitcast_convert_type(x, "int32")[..., ::-1], x.dtype),
    "others_by_index": lambda x, y, i, k: to(lax.dynamic_slice(to(x, "float32"), (i[0], i[1]), x.shape), x.dtype),
    "combined": lambda x, y, i, k: x.at[i[: len(x)]].min(y).at[i[: len(x)]].mul(x),
    "reduce": lambda x, y, i, k: spread(lax.reduce(x, y.sum(), chosen(FOLDS, k), (0,)), x) ^ y,
    "windows": lambda x, y, i, k: window(x, chosen(FOLDS, k), k),
    "cumulative": lambda x, y, i, k: chosen((lax.cummax, lax.cummin, lax.cumprod), k)(x, axis=0, reverse=bool(k % 2)),
    "extreme": lambda x, y, i, k: spread(chosen((lax.argmax, lax.argmin), k)(x, 0, x.dtype), x) + y,
    "f32_extreme": lambda x, y, i, k: spread(lax.argmax(to(x, "float32"), 0, x.dtype), x) + y,
    "own_body": lambda x, y, i, k: spread(own_fold(x, y), x),
    "sort": lambda x, y, i, k: ordered(x, y, k),
    "matrices": lambda x, y, i, k: x @ y,
    "batched": lambda x, y, i, k: jnp.einsum("abi,aic->abc", x[None], y[None])[0],
    "convolution": lambda x, y, i, k: convolved(x, y, k),
}
OPS.pop("branch")  # it is drawn with a quotient
OPS["case"] = lambda x, y, i, k: lax.switch(to(i[0], "int32"), [lambda: x * y, lambda: lax.div(x, y), lambda: x - y])


def drawn(rng, shape, dtype):
    """Edges and random numbers of every size."""
    size = int(np.prod(shape))
    edge = rng.choice(np.array(EDGES, object), size)
    wide = [int(rng.integers(0, 1 << 64, dtype=np.uint64)) >> int(rng.integers(0, 64)) for _ in range(size)]
    picked = [a if rng.random() < 0.6 else -b if rng.random() < 0.3 else b for a, b in zip(edge, wide, strict=True)]
    return np.array([int(n) % (1 << 64) for n in picked], np.uint64).view(dtype).reshape(shape)


def in_bodies(graph):
    """The values of the ops in bodies of folds and sorts."""
    nodes = [Node(raw) for raw in mlir.walked(graph.module.operation)]
    within = (inner for n in nodes if n.name in WITH_BODIES for inner in mlir.walked(n.raw) if inner != n.raw)
    return [value for inner in within for value in Node(inner).results]


VARIED = ("quotient_by_known", "shift_by_known", "chosen", "convert", "from_narrow", "reduce", "windows", "sort")


def every_op(names):
    """A function of two square tensors and of indices that does each op once, and some in all their variants."""
    steps = [(name, k) for name in names for k in (range(15) if name in VARIED else [0])]
    return lambda x, y, i: tuple(OPS[name](x, y, i, k) for name, k in steps), [f"{name} {k}" for name, k in steps]


def random_program(seed, names, steps=8):
    """A random program of some ops, the names of these, and its element type and size."""
    rng = np.random.default_rng(seed)
    dtype, n = chosen(("int64", "uint64"), seed), int(rng.integers(1, 5))
    return *program(rng, {name: OPS[name] for name in names}, steps), dtype, n


def differing(function, names, dtype, n, target):
    """The ops of a program whose results a lowered one gives other bits of, and what is refused of it still."""
    rng = np.random.default_rng(n)
    given = [[drawn(rng, shape, dtype) for shape in ((n, n), (n, n), (max(n, 4),))] for _ in range(2)]
    text = exported(function, *given[0]).mlir_module()
    lowered = hl.lower(text, target=target, keep_unsupported=True)
    assert all(value.shape == () for value in in_bodies(lowered.graph)), "a target may take scalars alone in a body"
    native, ours = compile_anywhere([(text, "quick"), (lowered.as_given, "quick")])
    found = set()
    for arguments in given:
        results = zip(names, native.run(arguments), ours.run(arguments), strict=True)
        found |= {name for name, one, other in results if not same_bits(np.asarray(one), np.asarray(other)).all()}
    return found, {one.op for one in lowered.refused}


TAKEN = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "bf16", "f16", "f32", "f64")
WITHOUT = {
    "all": (),
    "no_loops": ("while",),
    "no_shifts": SHIFTS,
    "few_types": (),
    "no_bits": ("shift_left", "shift_right_logical", "popcnt", "count_leading_zeros"),
}
ON_64_BITS = ("add", "multiply", "compare", "iota", "select", "broadcast_in_dim", "slice", "concatenate", "reduce")
"""Ops that a consumer may take on signed integers of 64 bits, where it knows no others of that width."""


def no_unsigned_64_bits():
    """A target without room for unsigned integers of 64 bits, without shifts, that takes signed ones on a few ops."""
    also = {name: [*TAKEN, "i64"] for name in ("convert", "bitcast_convert", *ON_64_BITS)}
    return target_taking(*TAKEN, without=SHIFTS, also=also, refused_dtypes={"ui64": "none"})


def no_64_bits(without="all"):
    """A target that computes on no integers of 64 bits, and has room for them."""
    types = ("i1", "i32", "f32") if without == "few_types" else TAKEN
    also = {name: ["i1"] for name in ("and", "or", "xor", "not") if without == "no_bits"}
    return target_taking(*types, without=WITHOUT[without], also={"convert": [*types], **also})
