"""One meaning as several writers spell it: functions of JAX, and texts in the short notation of `untyped_mlir`.

The texts are written by hand: those of Flax and torchax after modules that these exported, those of torch_xla and
litert_torch after how they write such ops. Flax reshapes a bias before it broadcasts it, torch_xla flattens what it
multiplies, torchax multiplies a bias by one and broadcasts it in two steps, and litert_torch converts to the type that
is there already.
"""

import jax
import jax.numpy as jnp
from jax import lax
from untyped_mlir import function

F, B = jnp.float32, jnp.bfloat16
ADD, MAX = "applies stablehlo.add across dimensions", "applies stablehlo.maximum across dimensions"


def softmax(of: str, shape: str, rows: str, kept: str) -> str:
    """The ops of a softmax along the last dim of three, its rows broadcast in two steps."""
    return f"""%low = constant 0xFF800000 : f32; %m = reduce({of} init: %low) {MAX} = [2]
      %m1 = {kept.format("%m")} -> {rows}; %mb = broadcast_in_dim %m1, dims = [0, 1, 2] -> {shape}
      %d = subtract {of}, %mb; %e = exponential %d; %z = constant 0.0 : f32; %s = reduce(%e init: %z) {ADD} = [2]
      %s1 = {kept.format("%s")} -> {rows}; %sb = broadcast_in_dim %s1, dims = [0, 1, 2] -> {shape}; %q = divide %e, %sb
    """


KEPT = "broadcast_in_dim {}, dims = [0, 1]"
SOFTMAX = softmax("%x", "2x3x8xf32", "2x3x1xf32", KEPT)
SOFTMAX_IN_F32 = softmax("%w", "2x3x8xf32", "2x3x1xf32", KEPT)


def plain_softmax(x):
    """As it is written by hand."""
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms_norm(x, w):
    """As a model's own code has it."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


RMS = f"""%z = constant 0.0 : f32; %xx = multiply %x, %x; %s = reduce(%xx init: %z) {ADD} = [2]
  %n = constant 8.0 : {{0}}; %e = constant 9.99999997E-7 : {{0}}; %s1 = {{1}}; %m = divide %s1, %n; %v = add %m, %e
  %i = rsqrt %v; %ib = broadcast_in_dim %i, dims = {{2}} -> 2x4x8xf32; %y = multiply %x, %ib
"""
PRODUCT = "dot_general %{}, %{}, contracting_dims = [1] x [{}], precision = [DEFAULT, DEFAULT] -> {}"
TORCHAX_LINEAR = """%one = constant 1.0 : f32; %o16 = broadcast_in_dim %one, dims = [] -> 16xf32
  %b1 = multiply %b, %o16
  %d = {}; %o = broadcast_in_dim %one, dims = [] -> {}; %d1 = multiply %o, %d
  %b2 = broadcast_in_dim %b1, dims = [1] -> 1x16xf32; %b3 = broadcast_in_dim %b2, dims = [0, 1] -> {}; %y = add %b3, %d1
"""
FLAX_BIAS = "%b1 = reshape %b -> 1x16xf32; %b2 = broadcast_in_dim %b1, dims = [0, 1] -> 4x16xf32; %r = add %y, %b2"
RELU = function(
    "private @relu",
    "%a: 4x8xf32",
    "%z = constant 0.0 : f32; %b = broadcast_in_dim %z, dims = [] -> 4x8xf32; %r = maximum %a, %b",
)
SILU = function("private @silu", "%a: 4x8xf32", "%l = logistic %a; %r = multiply %a, %l")
HEADS = """%qt = transpose %q, dims = [0, 2, 1, 3] -> 2x3x5x8xf32; %kt = transpose %k, dims = {} -> {}
  %q3 = reshape %qt -> 6x5x8xf32; %k3 = reshape %kt -> {}
  %p = dot_general %q3, %k3, batching_dims = [0] x [0], contracting_dims = [2] x [{}] -> 6x5x7xf32
    %r = reshape %p -> 2x3x5x7xf32
"""
WHERE = function(
    "private @_where",
    "%c: 4x8xi1, %a: 4x8xf32, %n: f32",
    "%d = convert %n -> f32; %b = broadcast_in_dim %d, dims = [] -> 4x8xf32; %r = select %c, %a, %b",
)
ACTIVATED = "%h = constant 0.5 : 2x4x8xf32; %m0 = multiply %x, %h; %t = tanh %m0;"
BIG = "-1.000000e+09"

FIRST = (
    "dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
)
OHWI = FIRST.replace("[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "[b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f]")
POINTWISE = FIRST.replace("[1, 1]", "[0, 0]")
PADDED = "low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] -> 2x3x10x11xf32"
WINDOW = "<window_dimensions = array<i64: {0}>, window_strides = array<i64: {0}>>"


def convolved(x, kernel, letters, padding="SAME"):
    """A convolution in a layout."""
    return lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=tuple(letters.split()))


def pooled(x, window):
    """The maximum of each window."""
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


GROUPS = {  # arguments, and by writer a function or the body of @main, or that and the functions behind it
    "bias add": (
        "%x: 4x8xf32, %b: 8xf32",
        {
            "jnp": lambda x, b: x + b,
            "jnp, broadcast": lambda x, b: x + jnp.broadcast_to(b.reshape(1, 8), (4, 8)),
            "jnp, bias first": lambda x, b: b[None, :] + x,
            "flax": """%b1 = reshape %b -> 1x8xf32; %b2 = broadcast_in_dim %b1, dims = [0, 1] -> 4x8xf32
              %r = add %x, %b2""",
            "torch_xla": "%b1 = broadcast_in_dim %b, dims = [1] -> 4x8xf32; %r = add %x, %b1",
            "torchax": """%one = constant 1.0 : f32; %o = broadcast_in_dim %one, dims = [] -> 8xf32
              %b1 = multiply %b, %o
              %b2 = broadcast_in_dim %b1, dims = [1] -> 1x8xf32; %b3 = broadcast_in_dim %b2, dims = [0, 1] -> 4x8xf32
              %r = add %b3, %x""",
            "litert_torch": """%b0 = reshape %b -> 1x1x8xf32; %b1 = broadcast_in_dim %b0, dims = [1, 0, 2] -> 1x4x8xf32
              %b2 = reshape %b1 -> 4x8xf32; %b3 = convert %b2 -> 4x8xf32; %r = add %x, %b3""",
        },
    ),
    "linear, rank 2": (
        "%x: 4x8xf32, %w: 8x16xf32, %b: 16xf32",
        {
            "jnp": lambda x, w, b: x @ w + b,
            "einsum": lambda x, w, b: jnp.einsum("io,bi->bo", w, x) + b,
            "flax": "%y = " + PRODUCT.format("x", "w", 0, "4x16xf32") + ";" + FLAX_BIAS,
            "torch_xla": "%y = "
            + PRODUCT.format("x", "w", 0, "4x16xf32")
            + "; %b1 = broadcast_in_dim %b, dims = [1] -> 4x16xf32; %r = add %b1, %y",
            "torchax": TORCHAX_LINEAR.format(PRODUCT.format("x", "w", 0, "4x16xf32"), "4x16xf32", "4x16xf32")
            + "return %y",
            "litert_torch": """%x0 = reshape %x -> 1x4x8xf32; %x1 = reshape %x0 -> 4x8xf32; %y = """
            + PRODUCT.format("x1", "w", 0, "4x16xf32")
            + "; %c = convert %y -> 4x16xf32; %b1 = broadcast_in_dim %b, dims = [1] -> 4x16xf32; %r = add %c, %b1",
        },
    ),
    "linear, rank 3": (
        "%x: 2x4x8xf32, %w: 8x16xf32, %b: 16xf32",
        {
            "jnp": lambda x, w, b: x @ w + b,
            "einsum": lambda x, w, b: jnp.einsum("bsi,io->bso", x, w) + b,
            "flax": """%y = dot_general %x, %w, contracting_dims = [2] x [0] -> 2x4x16xf32
              %b1 = reshape %b -> 1x1x16xf32; %b2 = broadcast_in_dim %b1, dims = [0, 1, 2] -> 2x4x16xf32
                %r = add %y, %b2""",
            "torch_xla": "%x2 = reshape %x -> 8x8xf32; %d = "
            + PRODUCT.format("x2", "w", 0, "8x16xf32")
            + """; %y = reshape %d -> 2x4x16xf32
              %b1 = broadcast_in_dim %b, dims = [2] -> 2x4x16xf32; %r = add %y, %b1""",
            "torchax": "%x2 = reshape %x -> 8x8xf32;"
            + TORCHAX_LINEAR.format(PRODUCT.format("x2", "w", 0, "8x16xf32"), "8x16xf32", "8x16xf32")
            + "%r = reshape %y -> 2x4x16xf32",
            "litert_torch": """%x4 = reshape %x -> 1x8x1x8xf32
              %d = dot_general %x4, %w, contracting_dims = [3] x [0] -> 1x8x1x16xf32
              %b1 = broadcast_in_dim %b, dims = [3] -> 1x8x1x16xf32; %y = add %d, %b1
              %r = reshape %y -> 2x4x16xf32""",
        },
    ),
    "linear, transposed weight": (
        "%x: 2x4x8xf32, %w: 16x8xf32",
        {
            "jnp": lambda x, w: x @ w.T,
            "einsum": lambda x, w: jnp.einsum("bsi,oi->bso", x, w),
            "jnp, weight first": lambda x, w: jnp.einsum("oi,bsi->obs", w, x).transpose(1, 2, 0),
            "torch_xla": "%t = transpose %w, dims = [1, 0] -> 8x16xf32; %x2 = reshape %x -> 8x8xf32; %d = "
            + PRODUCT.format("x2", "t", 0, "8x16xf32")
            + "; %r = reshape %d -> 2x4x16xf32",
            "torchax": """%t = transpose %w, dims = [1, 0] -> 8x16xf32
              %r = dot_general %x, %t, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] -> 2x4x16xf32""",
            "litert_torch": "%x2 = reshape %x -> 8x8xf32; %d = "
            + PRODUCT.format("x2", "w", 1, "8x16xf32")
            + "; %r = reshape %d -> 2x4x16xf32",
        },
    ),
    "linear of an activation": (
        "%x: 2x4x8xf32, %w: 8x16xf32",
        {
            "jnp": lambda x, w: jnp.tanh(x * 0.5) @ w,
            "einsum": lambda x, w: jnp.einsum("bsi,io->bso", jnp.tanh(0.5 * x), w),
            "flax": ACTIVATED + "%r = dot_general %t, %w, contracting_dims = [2] x [0] -> 2x4x16xf32",
            "torch_xla": ACTIVATED
            + "%t2 = reshape %t -> 8x8xf32; %d = "
            + PRODUCT.format("t2", "w", 0, "8x16xf32")
            + "; %r = reshape %d -> 2x4x16xf32",
            "torchax": ACTIVATED
            + """%o = constant 1.0 : f32; %o2 = broadcast_in_dim %o, dims = [] -> 8x16xf32
              %t2 = reshape %t -> 8x8xf32; %d = """
            + PRODUCT.format("t2", "w", 0, "8x16xf32")
            + "; %m = multiply %o2, %d; %r = reshape %m -> 2x4x16xf32",
        },
    ),
    "scores of attention": (
        "%q: 2x5x3x8xf32, %k: 2x7x3x8xf32",
        {
            "jnp": lambda q, k: q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1),
            "einsum": lambda q, k: jnp.einsum("bshd,bthd->bhst", q, k),
            "flax": "%r = dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] "
            "-> 2x3x5x7xf32",
            "torch_xla": HEADS.format("[0, 2, 3, 1]", "2x3x8x7xf32", "6x8x7xf32", 1),
            "litert_torch": HEADS.format("[0, 2, 1, 3]", "2x3x7x8xf32", "6x7x8xf32", 2),
            "torchax": """%qt = transpose %q, dims = [0, 2, 1, 3] -> 2x3x5x8xf32
              %k1 = transpose %k, dims = [0, 2, 1, 3] -> 2x3x7x8xf32
                %kt = transpose %k1, dims = [0, 1, 3, 2] -> 2x3x8x7xf32
             %r = dot_general %qt, %kt, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] -> 2x3x5x7xf32""",
        },
    ),
    "scores of one sequence": (
        "%q: 1x5x3x8xf32, %k: 1x7x3x8xf32",
        {
            "jnp": lambda q, k: q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1),
            "einsum": lambda q, k: jnp.einsum("bshd,bthd->bhst", q, k),
            "flax": "%r = dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] "
            "-> 1x3x5x7xf32",
            "torch_xla": HEADS.format("[0, 2, 3, 1]", "1x3x8x7xf32", "3x8x7xf32", 1)
            .replace("2x3", "1x3")
            .replace("6x", "3x"),
            "litert_torch": HEADS.format("[0, 2, 1, 3]", "1x3x7x8xf32", "3x7x8xf32", 2)
            .replace("2x3", "1x3")
            .replace("6x", "3x"),
        },
    ),
    "relu": (
        "%x: 4x8xf32",
        {
            "jnp": lambda x: jnp.maximum(x, 0),
            "jnp, zero first": lambda x: jnp.maximum(0.0, x),
            "jnp, where": lambda x: jnp.where(x <= 0, 0, x),
            "flax": jax.nn.relu,
            "torch_xla": "%z = constant 0.0 : 4x8xf32; %r = maximum %x, %z",
            "torchax": ("%r = call @relu(%x) -> 4x8xf32", RELU),
            "litert_torch": """%n = constant 0 : i64; %z = convert %n -> f32
              %b = broadcast_in_dim %z, dims = [] -> 4x8xf32; %r = maximum %b, %x""",
        },
    ),
    "relu6": (
        "%x: 4x8xf32",
        {
            "jnp": lambda x: jnp.clip(x, 0, 6),
            "jnp, by hand": lambda x: jnp.minimum(6.0, jnp.maximum(0.0, x)),
            "jnp, six first": lambda x: jnp.maximum(jnp.minimum(x, 6), 0),
            "flax": jax.nn.relu6,
            "torch_xla": "%z = constant 0.0 : f32; %s = constant 6.0 : f32; %r = clamp %z, %x, %s",
            "torchax": """%z = constant 0 : i64; %a = convert %z -> f32; %b = broadcast_in_dim %a, dims = [] -> 4x8xf32
              %s = constant 6.0 : 4x8xf32; %r = clamp %b, %x, %s""",
            "litert_torch": """%z = constant 0.0 : 4x8xf32; %s = constant 6.0 : f32
              %m = maximum %x, %z; %b = broadcast_in_dim %s, dims = [] -> 4x8xf32; %r = minimum %m, %b""",
        },
    ),
    "softmax": (
        "%x: 2x3x8xf32",
        {
            "jnp": plain_softmax,
            "flax": jax.nn.softmax,
            "torchax": SOFTMAX + "return %q",
            "torch_xla": softmax("%x", "2x3x8xf32", "2x3x1xf32", "reshape {}") + "return %q",
            "litert_torch": "%c = convert %x -> 2x3x8xf32;"
            + softmax("%c", "2x3x8xf32", "2x3x1xf32", KEPT)
            + "%r = convert %q -> 2x3x8xf32",
        },
    ),
    "softmax of bf16 in f32": (
        "%x: 2x3x8xbf16",
        {
            "jnp": lambda x: plain_softmax(x.astype(F)).astype(B),
            "flax": lambda x: jax.nn.softmax(x.astype(F), axis=-1).astype(B),
            "torchax": "%w = convert %x -> 2x3x8xf32;" + SOFTMAX_IN_F32 + "%r = convert %q -> 2x3x8xbf16",
            "torch_xla": "%w = convert %x -> 2x3x8xf32;"
            + softmax("%w", "2x3x8xf32", "2x3x1xf32", "reshape {}")
            + "%r = convert %q -> 2x3x8xbf16",
        },
    ),
    "rms norm": (
        "%x: 2x4x8xf32, %w: 8xf32",
        {
            "jnp": rms_norm,
            "jnp, sum": lambda x, w: x * lax.rsqrt(jnp.sum(x * x, -1) / 8 + 1e-6)[..., None] * w,
            "flax": RMS.format("2x4xf32", "reshape %s -> 2x4xf32", "[0, 1]")
            + """%w1 = reshape %w -> 1x1x8xf32; %w2 = broadcast_in_dim %w1, dims = [0, 1, 2] -> 2x4x8xf32
              %r = multiply %y, %w2""",
            "torch_xla": RMS.format("2x4x1xf32", "reshape %s -> 2x4x1xf32", "[0, 1, 2]")
            + "%w1 = broadcast_in_dim %w, dims = [2] -> 2x4x8xf32; %r = multiply %w1, %y",
            "torchax": RMS.format("2x4x1xf32", "broadcast_in_dim %s, dims = [0, 1] -> 2x4x1xf32", "[0, 1, 2]")
            + """%w1 = broadcast_in_dim %w, dims = [2] -> 1x1x8xf32
              %w2 = broadcast_in_dim %w1, dims = [0, 1, 2] -> 2x4x8xf32
              %r = multiply %w2, %y""",
        },
    ),
    "silu": (
        "%x: 4x8xf32",
        {
            "jnp": lambda x: x * jax.nn.sigmoid(x),
            "flax": jax.nn.silu,
            "torch_xla": "%l = logistic %x; %r = multiply %l, %x",
            "torchax": ("%r = call @silu(%x) -> 4x8xf32", SILU),
            "litert_torch": "%l = logistic %x; %c = convert %l -> 4x8xf32; %r = multiply %x, %c",
        },
    ),
    "masked select": (
        "%x: 4x8xf32, %m: 8xi1",
        {
            "jnp": lambda x, m: jnp.where(m, x, -1e9),
            "jnp, negated": lambda x, m: jnp.where(~m[None, :], -1e9, x),
            "torchax": (
                f"""%m1 = broadcast_in_dim %m, dims = [1] -> 1x8xi1; %m2 = broadcast_in_dim %m1, dims = [0, 1] -> 4x8xi1
              %n = constant {BIG} : f32; %r = call @_where(%m2, %x, %n) -> 4x8xf32""",
                WHERE,
            ),
            "torch_xla": f"""%m1 = broadcast_in_dim %m, dims = [1] -> 4x8xi1; %h = not %m1
              %n = constant {BIG} : 4x8xf32
              %r = select %h, %n, %x""",
            "litert_torch": f"""%m1 = reshape %m -> 1x8xi1; %m2 = broadcast_in_dim %m1, dims = [0, 1] -> 4x8xi1
              %n = constant {BIG} : f32; %b = broadcast_in_dim %n, dims = [] -> 4x8xf32; %r = select %m2, %x, %b""",
        },
    ),
    "product of mixed types": (
        "%x: 4x8xbf16, %w: 8x16xf32",
        {
            "jnp": lambda x, w: x @ w,
            "einsum": lambda x, w: jnp.einsum("bi,io->bo", x.astype(F), w),
            "torch_xla": "%c = convert %x -> 4x8xf32; %r = " + PRODUCT.format("c", "w", 0, "4x16xf32"),
            "torchax": "%c = convert %x -> 4x8xf32; %d = convert %w -> 8x16xf32; %r = "
            + PRODUCT.format("c", "d", 0, "4x16xf32"),
            "litert_torch": "%t = transpose %x, dims = [1, 0] -> 8x4xbf16; %c = convert %t -> 8x4xf32; %s = "
            "transpose %c, dims = [1, 0] -> 4x8xf32; %r = " + PRODUCT.format("s", "w", 0, "4x16xf32"),
        },
    ),
    "convolution, channels first": (
        "%x: 2x3x8x9xf32, %k: 4x3x3x3xf32, %b: 4xf32",
        {
            "jnp": lambda x, k, b: convolved(x, k, "NCHW OIHW NCHW") + b[:, None, None],
            "flax": lambda x, k, b: (
                convolved(x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), "NHWC HWIO NHWC") + b
            ).transpose(0, 3, 1, 2),
            "result alone": lambda x, k, b: (convolved(x, k, "NCHW OIHW NHWC") + b).transpose(0, 3, 1, 2),
            "torch_xla": f"""%y = convolution(%x, %k) {FIRST} -> 2x4x8x9xf32
              %b1 = broadcast_in_dim %b, dims = [1] -> 2x4x8x9xf32; %r = add %y, %b1""",
            "torchax": f"""%z = constant 0.0 : f32; %p = pad %x, %z, {PADDED}
              %y = convolution(%p, %k) {FIRST.replace("1, 1], [1, 1", "0, 0], [0, 0")} -> 2x4x8x9xf32
              %b1 = reshape %b -> 4x1x1xf32; %b2 = broadcast_in_dim %b1, dims = [1, 2, 3] -> 2x4x8x9xf32
              %r = add %b2, %y""",
            "litert_torch": f"""%t = transpose %x, dims = [0, 2, 3, 1] -> 2x8x9x3xf32
              %u = transpose %k, dims = [0, 2, 3, 1] -> 4x3x3x3xf32
              %y = convolution(%t, %u) {OHWI} -> 2x8x9x4xf32
              %b1 = broadcast_in_dim %b, dims = [3] -> 2x8x9x4xf32; %a = add %y, %b1
              %r = transpose %a, dims = [0, 3, 1, 2] -> 2x4x8x9xf32""",
        },
    ),
    "convolution, channels last": (
        "%x: 2x8x9x3xf32, %k: 4x3x3x3xf32",
        {
            "jnp": lambda x, k: convolved(x, k, "NHWC OIHW NHWC"),
            "flax": lambda x, k: convolved(x, k.transpose(2, 3, 1, 0), "NHWC HWIO NHWC"),
            "torch_xla": f"""%t = transpose %x, dims = [0, 3, 1, 2] -> 2x3x8x9xf32
              %y = convolution(%t, %k) {FIRST} -> 2x4x8x9xf32
              %r = transpose %y, dims = [0, 2, 3, 1] -> 2x8x9x4xf32""",
            "litert_torch": f"""%u = transpose %k, dims = [0, 2, 3, 1] -> 4x3x3x3xf32
              %r = convolution(%x, %u) {OHWI} -> 2x8x9x4xf32""",
            "jnp, padded": lambda x, k: convolved(
                jnp.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), k, "NHWC OIHW NHWC", "VALID"
            ),
        },
    ),
    "convolution of one channel": (
        "%x: 1x1x8x9xf32, %k: 4x1x3x3xf32",
        {
            "jnp": lambda x, k: convolved(x, k, "NCHW OIHW NCHW"),
            "flax": lambda x, k: convolved(
                x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), "NHWC HWIO NHWC"
            ).transpose(0, 3, 1, 2),
            "torch_xla": f"%r = convolution(%x, %k) {FIRST} -> 1x4x8x9xf32",
            "litert_torch": f"""%t = reshape %x -> 1x8x9x1xf32; %u = reshape %k -> 4x3x3x1xf32
              %y = convolution(%t, %u) {OHWI} -> 1x8x9x4xf32
              %r = transpose %y, dims = [0, 3, 1, 2] -> 1x4x8x9xf32""",
        },
    ),
    "pointwise, channels last": (
        "%x: 2x8x9x3xf32, %w: 3x4xf32, %b: 4xf32",
        {
            "jnp": lambda x, w, b: x @ w + b,
            "flax": lambda x, w, b: convolved(x, w[None, None], "NHWC HWIO NHWC") + b,
            "einsum": lambda x, w, b: jnp.einsum("io,bhwi->bhwo", w, x) + b,
            "torch_xla": """%k0 = transpose %w, dims = [1, 0] -> 4x3xf32; %k = reshape %k0 -> 4x3x1x1xf32
              %t = transpose %x, dims = [0, 3, 1, 2] -> 2x3x8x9xf32
              %y = convolution(%t, %k) """
            + POINTWISE
            + """ -> 2x4x8x9xf32; %b1 = broadcast_in_dim %b, dims = [1] -> 2x4x8x9xf32; %a = add %y, %b1
              %r = transpose %a, dims = [0, 2, 3, 1] -> 2x8x9x4xf32""",
            "litert_torch": """%f = reshape %x -> 144x3xf32
              %y = dot_general %f, %w, contracting_dims = [1] x [0] -> 144x4xf32; %z = reshape %y -> 2x8x9x4xf32
              %b1 = reshape %b -> 1x1x1x4xf32; %b2 = broadcast_in_dim %b1, dims = [0, 1, 2, 3] -> 2x8x9x4xf32
              %r = add %z, %b2""",
        },
    ),
    "pointwise, channels first": (
        "%x: 2x3x8x9xf32, %k: 4x3x1x1xf32",
        {
            "jnp": lambda x, k: jnp.einsum("bihw,oi->bohw", x, k.reshape(4, 3)),
            "flax": lambda x, k: convolved(
                x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), "NHWC HWIO NHWC"
            ).transpose(0, 3, 1, 2),
            "dense": lambda x, k: (x.transpose(0, 2, 3, 1) @ k[:, :, 0, 0].T).transpose(0, 3, 1, 2),
            "torch_xla": f"%r = convolution(%x, %k) {POINTWISE} -> 2x4x8x9xf32",
            "torchax": lambda x, k: convolved(x, k, "NCHW OIHW NCHW", "VALID"),
        },
    ),
    "pooling, channels first": (
        "%x: 2x4x8x8xf32",
        {
            "jnp": lambda x: pooled(x, (1, 1, 2, 2)),
            "flax": lambda x: pooled(x.transpose(0, 2, 3, 1), (1, 2, 2, 1)).transpose(0, 3, 1, 2),
            "flax, relu": lambda x: jnp.maximum(pooled(x.transpose(0, 2, 3, 1), (1, 2, 2, 1)), -jnp.inf).transpose(
                0, 3, 1, 2
            ),
            "torch_xla": f"%z = constant 0xFF800000 : f32; %r = reduce_window(%x, %z) {WINDOW.format('1, 1, 2, 2')} "
            "{maximum} -> 2x4x4x4xf32",
            "litert_torch": f"""%t = transpose %x, dims = [0, 2, 3, 1] -> 2x8x8x4xf32; %z = constant 0xFF800000 : f32
              %p = reduce_window(%t, %z) {WINDOW.format("1, 2, 2, 1")} {{maximum}} -> 2x4x4x4xf32
              %r = transpose %p, dims = [0, 3, 1, 2] -> 2x4x4x4xf32""",
        },
    ),
    "mean over an image": (
        "%x: 2x4x8x8xf32",
        {
            "jnp": lambda x: x.sum((2, 3)) / 64,
            "jnp, kept": lambda x: (x.sum((2, 3), keepdims=True) / 64)[:, :, 0, 0],
            "flax": lambda x: x.transpose(0, 2, 3, 1).sum((1, 2)) / 64,
            "torchax": lambda x: x.reshape(2, 4, 64).sum(2) / 64,
            "torch_xla": f"""%z = constant 0.0 : f32; %w = reshape %x -> 2x4x8x8xf32
              %p = reduce_window(%w, %z) {WINDOW.format("1, 1, 8, 8")} {{add}} -> 2x4x1x1xf32
              %n = constant 6.4e+01 : 2x4x1x1xf32; %d = divide %p, %n; %r = reshape %d -> 2x4xf32""",
            "litert_torch": f"""%z = constant 0.0 : f32; %y = reshape %x -> 8x1x64xf32
              %s = reduce(%y init: %z) {ADD} = [1, 2]; %n = constant 6.4e+01 : f32
              %b = broadcast_in_dim %n, dims = [] -> 8xf32; %d = divide %s, %b; %r = reshape %d -> 2x4xf32""",
        },
    ),
    "maximum over rows and columns": (
        "%x: 4x8x5xf32",
        {
            "jnp": lambda x: x.max((0, 2), keepdims=True),
            "one by one": lambda x: x.max(2).max(0).reshape(1, 8, 1),
            "turned": lambda x: x.transpose(1, 2, 0).max((1, 2)).reshape(1, 8, 1),
            "torch_xla": f"""%z = constant 0xFF800000 : f32; %a = reduce(%x init: %z) {MAX} = [0]
              %b = reduce(%a init: %z) {MAX} = [1]; %r = broadcast_in_dim %b, dims = [1] -> 1x8x1xf32""",
            "torchax": f"""%z = constant 0xFF800000 : f32; %t = transpose %x, dims = [1, 0, 2] -> 8x4x5xf32
              %y = reshape %t -> 8x20xf32; %b = reduce(%y init: %z) {MAX} = [1]; %r = reshape %b -> 1x8x1xf32""",
        },
    ),
}
