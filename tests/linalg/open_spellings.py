"""One meaning of open sizes as several writers spell it: functions of JAX, and texts as in `spellings`.

JAX writes a size as a number that @main takes from its arguments and hands on; torch_xla and litert_torch ask the value
at hand, in 64 bits or in 32, and flatten what they multiply.
"""

import jax.numpy as jnp
from jax import lax
from spellings import FIRST, OHWI, convolved, pooled

SIZE = """%d = get_dimension_size %x, dim = 0; %d1 = reshape %d -> 1xi32; %e = constant 8 : 1xi32
  %s = concatenate %d1, %e, dim = 0
"""
ZEROS = SIZE + "%z = constant 0.0 : f32; %b = dynamic_broadcast_in_dim %z, %s, dims = [] -> ?x8xf32;"
ONES = ZEROS.replace("0.0", "1.0").replace("%z", "%o")
DENOMINATOR = "%n = negate %x; %p = exponential %n;"

CLIP = ZEROS + "%y = constant 6.0 : f32; %c = dynamic_broadcast_in_dim %y, %s, dims = [] -> ?x8xf32;"

SIZES_3 = """%d0 = get_dimension_size %x, dim = 0; %d1 = get_dimension_size %x, dim = 1
  %s0 = reshape %d0 -> 1xi32; %s1 = reshape %d1 -> 1xi32
"""


def plain_softmax(x):
    """As it is written by hand."""
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


OPEN_GROUPS = {  # of open sizes: arguments, and by how it is written the body of @main
    "linear, transposed weight": (
        "%x: ?x8xf32, %w: 16x8xf32",
        {
            "einsum": "%r = dot_general %x, %w, contracting_dims = [1] x [1] -> ?x16xf32",
            "torchax": "%t = transpose %w, dims = [1, 0] -> 8x16xf32\n"
            "%r = dot_general %x, %t, contracting_dims = [1] x [0] -> ?x16xf32",
            "weight first": "%y = dot_general %w, %x, contracting_dims = [1] x [1] -> 16x?xf32\n"
            "%r = transpose %y, dims = [1, 0] -> ?x16xf32",
            "litert_torch": "%c = convert %x -> ?x8xf32\n"
            "%r = dot_general %c, %w, contracting_dims = [1] x [1] -> ?x16xf32",
        },
    ),
    "masked select": (
        "%x: ?x8xf32, %y: ?x8xf32, %p: ?x8xi1",
        {
            "jnp": "%r = select %p, %x, %y",
            "not": "%n = not %p; %r = select %n, %y, %x",
            "not, twice": "%n = not %p; %m = not %n; %c = convert %x -> ?x8xf32; %r = select %m, %c, %y",
            "litert_torch": "%c = convert %y -> ?x8xf32; %r = select %p, %x, %c",
        },
    ),
    "relu": (
        "%x: ?x8xf32",
        {
            "jnp": ZEROS + "%r = maximum %x, %b",
            "zero first": ZEROS + "%r = maximum %b, %x",
            "where": ZEROS + "%p = compare LE, %x, %b; %r = select %p, %b, %x",
            "where, turned": ZEROS + "%p = compare GE, %b, %x; %r = select %p, %b, %x",
            "torchax": SIZE + "%i = constant 0 : i32; %z = convert %i -> f32;"
            "%b = dynamic_broadcast_in_dim %z, %s, dims = [] -> ?x8xf32; %r = maximum %x, %b",
        },
    ),
    "logistic": (
        "%x: ?x8xf32",
        {
            "jnp": "%r = logistic %x",
            "by hand": ONES + DENOMINATOR + "%q = add %p, %b; %r = divide %b, %q",
            "by hand, one first": ONES + DENOMINATOR + "%q = add %b, %p; %r = divide %b, %q",
            "torchax": ONES + "%m = multiply %x, %b; %r = logistic %m",
        },
    ),
    "clip": (
        "%x: ?x8xf32",
        {
            "jnp": CLIP + "%m = maximum %x, %b; %r = minimum %m, %c",
            "bounds first": CLIP + "%m = maximum %b, %x; %r = minimum %c, %m",
            "most first": CLIP + "%m = minimum %x, %c; %r = maximum %m, %b",
            "flax": CLIP + "%r = clamp %b, %x, %c",
            "torch_xla": "%z = constant 0.0 : f32; %y = constant 6.0 : f32; %r = clamp %z, %x, %y",
            "torchax": "%i = constant 0 : i32; %z = convert %i -> f32; %y = constant 6.0 : f32; %r = clamp %z, %x, %y",
        },
    ),
    "linear of rank 3": (
        "%x: ?x?x8xf32, %w: 16x8xf32, %c: 16xf32",
        {
            "jnp": lambda x, w, c: x @ w.T + c,
            "einsum": lambda x, w, c: c + jnp.einsum("bsi,oi->bso", x, w),
            "torch_xla": lambda x, w, c: (x.reshape(-1, 8) @ w.T + c).reshape(*x.shape[:2], 16),
            "torchax": SIZES_3
            + """%m = multiply %d0, %d1; %m1 = reshape %m -> 1xi32; %e8 = constant 8 : 1xi32
              %t = concatenate %m1, %e8, dim = 0; %f = dynamic_reshape %x, %t -> ?x8xf32
              %y = dot_general %f, %w, contracting_dims = [1] x [1] -> ?x16xf32
              %e = constant 16 : 1xi32; %u = concatenate %s0, %s1, %e, dim = 0
              %z = dynamic_reshape %y, %u -> ?x?x16xf32
              %b = dynamic_broadcast_in_dim %c, %u, dims = [2] -> ?x?x16xf32; %r = add %b, %z""",
        },
    ),
    "linear of one open dim": (
        "%x: ?x4x8xf32, %w: 8x16xf32",
        {
            "jnp": lambda x, w: x @ w,
            "einsum": lambda x, w: jnp.einsum("io,bsi->bso", w, x),
            "torch_xla": lambda x, w: (x.reshape(-1, 8) @ w).reshape(-1, 4, 16),
            "litert_torch": """%d = get_dimension_size %x, dim = 0; %g = convert %d -> i64; %n = constant 4 : i64
              %m = multiply %n, %g; %m1 = reshape %m -> 1xi64; %e = constant 8 : 1xi64
              %t = concatenate %m1, %e, dim = 0; %f = dynamic_reshape %x, %t -> ?x8xf32
              %y = dot_general %f, %w, contracting_dims = [1] x [0] -> ?x16xf32
              %d1 = reshape %d -> 1xi32; %s = constant [4, 16] : 2xi32; %u = concatenate %d1, %s, dim = 0
              %r = dynamic_reshape %y, %u -> ?x4x16xf32""",
        },
    ),
    "merged heads": (
        "%x: ?x4x?x8xf32",
        {
            "jnp": lambda x: x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], 32),
            "in steps": lambda x: x.transpose(2, 0, 1, 3).transpose(1, 0, 2, 3).reshape(x.shape[0], -1, 32),
            "flat first": lambda x: x.transpose(0, 2, 1, 3).reshape(-1, 32).reshape(x.shape[0], x.shape[2], 32),
            "einsum": lambda x: (
                jnp.einsum("bhsd->bshd", x).reshape(x.shape[0], x.shape[2], 4, 4, 2).reshape(x.shape[0], x.shape[2], 32)
            ),
        },
    ),
    "softmax": (
        "%x: ?x8xf32",
        {
            "jnp": plain_softmax,
            "flax": lambda x: (e := jnp.exp(x - x.max(-1)[:, None])) / e.reshape(-1, 2, 4).sum((1, 2))[:, None],
            "torchax": lambda x: plain_softmax(x * 1),
            "turned": lambda x: (e := jnp.exp(x - x.T.max(0)[:, None])) / e.sum(1)[:, None],
        },
    ),
    "mean over an image": (
        "%x: ?x4x8x8xf32",
        {
            "jnp": lambda x: x.sum((2, 3)) / 64,
            "jnp, kept": lambda x: (x.sum((2, 3), keepdims=True) / 64).reshape(-1, 4),
            "flax": lambda x: x.transpose(0, 2, 3, 1).sum((1, 2)) / 64,
            "torchax": lambda x: x.reshape(x.shape[0], 4, 64).sum(2) / 64,
            "torch_xla": lambda x: (
                lax.reduce_window(x, 0.0, lax.add, (1, 1, 8, 8), (1, 1, 1, 1), "VALID") / 64
            ).reshape(-1, 4),
            "litert_torch": lambda x: (x.reshape(-1, 1, 64).sum((1, 2)) / 64).reshape(-1, 4),
        },
    ),
    "maximum over rows and columns": (
        "%x: ?x8x5xf32",
        {
            "jnp": lambda x: x.max((1, 2)),
            "one by one": lambda x: x.max(2).max(1),
            "turned": lambda x: x.transpose(1, 2, 0).max((1, 0)),
            "torch_xla": lambda x: x.reshape(-1, 40).max(1),
            "torchax": lambda x: x.max(1, keepdims=True).max(2).reshape(-1),
        },
    ),
    "rows, summed and kept": (
        "%x: ?x?x8xf32",
        {
            "jnp": lambda x: x.sum(2, keepdims=True),
            "reshape": lambda x: x.sum(2).reshape(*x.shape[:2], 1),
            "flat": lambda x: x.reshape(-1, 8).sum(1).reshape(x.shape[0], -1, 1),
            "expanded": lambda x: jnp.expand_dims(x.transpose(1, 0, 2).sum(2).T, 2),
        },
    ),
    "bias": (
        "%x: ?x?x8xf32, %c: 8xf32",
        {
            "jnp": lambda x, c: x + c,
            "flax": lambda x, c: x + c.reshape(1, 1, 8),
            "torchax": lambda x, c: jnp.broadcast_to(jnp.broadcast_to(c, (x.shape[1], 8))[None], x.shape) + x,
            "torch_xla": lambda x, c: (x.reshape(-1, 8) + c).reshape(x.shape),
        },
    ),
    "convolution, channels first": (
        "%x: ?x3x8x9xf32, %k: 4x3x3x3xf32, %c: 4xf32",
        {
            "jnp": lambda x, k, c: convolved(x, k, "NCHW OIHW NCHW") + c[None, :, None, None],
            "flax": lambda x, k, c: (
                convolved(x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), "NHWC HWIO NHWC") + c
            ).transpose(0, 3, 1, 2),
            "litert_torch": lambda x, k, c: (
                convolved(x.transpose(0, 2, 3, 1), k.transpose(0, 2, 3, 1), "NHWC OHWI NHWC") + c
            ).transpose(0, 3, 1, 2),
            "jnp, padded": lambda x, k, c: (
                convolved(jnp.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), k, "NCHW OIHW NCHW", "VALID")
                + c.reshape(4, 1, 1)
            ),
        },
    ),
    "convolution, channels last": (
        "%x: ?x8x9x3xf32, %k: 4x3x3x3xf32",
        {
            "jnp": lambda x, k: convolved(x, k, "NHWC OIHW NHWC"),
            "flax": lambda x, k: convolved(x, k.transpose(2, 3, 1, 0), "NHWC HWIO NHWC"),
            "torch_xla": f"""%t = transpose %x, dims = [0, 3, 1, 2] -> ?x3x8x9xf32
              %y = convolution(%t, %k) {FIRST} -> ?x4x8x9xf32
              %r = transpose %y, dims = [0, 2, 3, 1] -> ?x8x9x4xf32""",
            "litert_torch": f"""%u = transpose %k, dims = [0, 2, 3, 1] -> 4x3x3x3xf32
              %r = convolution(%x, %u) {OHWI} -> ?x8x9x4xf32""",
        },
    ),
    "pointwise, channels first": (
        "%x: ?x3x8x9xf32, %w: 4x3xf32",
        {
            "jnp": lambda x, w: jnp.einsum("bihw,oi->bohw", x, w),
            "flax": lambda x, w: (x.transpose(0, 2, 3, 1) @ w.T).transpose(0, 3, 1, 2),
            "torch_xla": lambda x, w: convolved(x, w[:, :, None, None], "NCHW OIHW NCHW"),
            "litert_torch": lambda x, w: convolved(
                x.transpose(0, 2, 3, 1), w[:, None, None], "NHWC OHWI NHWC"
            ).transpose(0, 3, 1, 2),
        },
    ),
    "pooling, channels first": (
        "%x: ?x4x8x8xf32",
        {
            "jnp": lambda x: pooled(x, (1, 1, 2, 2)),
            "flax": lambda x: pooled(x.transpose(0, 2, 3, 1), (1, 2, 2, 1)).transpose(0, 3, 1, 2),
            "flax, relu": lambda x: jnp.maximum(pooled(x.transpose(0, 2, 3, 1), (1, 2, 2, 1)), -jnp.inf).transpose(
                0, 3, 1, 2
            ),
            "litert_torch": lambda x: pooled(x.transpose(0, 3, 2, 1), (1, 2, 2, 1)).transpose(0, 3, 2, 1),
        },
    ),
}
