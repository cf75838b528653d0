"""Programs that Core ML gets, run in NumPy: what its converter gets wrong, what is written instead, and the ops."""

import contextlib
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.consumers import COREML, coreml, coreml_program
from hlo_lower.consumers.consumer_outcome import RefusedError, RunsElsewhereError
from hlo_lower.consumers.reference import reference_of

pytestmark = [
    pytest.mark.coreml,
    pytest.mark.skipif(not COREML.version(), reason="the extra coreml is not installed"),
]


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """The converters stay imported."""
    coreml.load()


def difference(text, after=None, inputs=None):
    """How the program that Core ML gets of a text differs from what XLA makes of it; None where it does not."""
    reference = reference_of(text, inputs=inputs, runs=1)
    own = reference.for_signature_of(after or text)
    run = coreml.compile_module(after or text)
    found = [reference.rounding.difference(one.expected, run(one.arguments), one.limits) for one in own.runs]
    return next((told for told in found if told), None)


EDGES = np.float32([0, -0.0, 1, -1, 2.5, -2.5, 1e-8, -1e-8, 0.49999997, 5, 1e30, np.inf, -np.inf, np.nan])
WRONG = {
    "log of zero": ("%r = log %x", [EDGES]),
    "rsqrt of small numbers": ("%r = rsqrt %x", [np.float32([0, 1e-13, 1e-9, 1e-5, 1, 4, -1] * 2)]),
    "atan2 with a computed x": ("%r = atan2 %x, %y", [EDGES, EDGES[::-1].copy()]),
    "atan2 of edges": ("%r = atan2 %x, %y", [EDGES, np.float32([0, -0.0, -1, 1, -3, np.inf, -np.inf] * 2)]),
    "log_plus_one": ("%r = log_plus_one %x", [EDGES]),
    "negate of zero": ("%one = constant 1.0 : 14xf32; %n = negate %x; %r = divide %one, %n", [EDGES]),
    "exponential_minus_one": ("%r = exponential_minus_one %x", [EDGES]),
    "round_nearest_afz": ("%r = round_nearest_afz %x", [EDGES]),
    "erfc": ("%r = chlo.erfc %x : tensor<14xf32> -> tensor<14xf32>", [EDGES]),
    "asinh": ("%r = chlo.asinh %x : tensor<14xf32> -> tensor<14xf32>", [EDGES]),
    "atanh": ("%r = chlo.atanh %x : tensor<14xf32> -> tensor<14xf32>", [EDGES / 10]),
    "pad of large integers": (
        "%z = constant 7 : i32; %r = pad %i, %z, low = [1], high = [2], interior = [0] -> 17xi32",
        [(1 << 24) + 1 + np.arange(14, dtype=np.int32)],
    ),
    "divide of integers by 0": ("%r = divide %i, %j", [np.arange(-7, 7, dtype=np.int32), np.zeros(14, np.int32)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_converter_gets_wrong_is_written_otherwise(name):
    """As it is it differs, and converted it does not."""
    line, inputs = WRONG[name]
    kind = "14xi32" if inputs[0].dtype == np.int32 else "14xf32"
    names = "ij" if kind == "14xi32" else "xy"
    text = module(", ".join(f"%{one}: {kind}" for one, _ in zip(names, inputs, strict=False)), line)
    assert difference(text, inputs=inputs)
    lowered = hl.lower(text, target="coreml")
    assert lowered.refused == ()
    assert difference(text, lowered.text, inputs) is None


NESTED = {
    "a value of the function": "%t = negate %x; return %t",
    "what another branch reads, too": "%t = add %x, %x; return %t",
    "nothing but a result": "return %x",
}


@pytest.mark.parametrize("name", NESTED)
def test_branches_in_branches_read_from_further_out(name):
    """Its converter ends with a KeyError where a branch reads nothing of the block around it."""
    inner = f"%s = case(%j) {{ {NESTED[name]} }} {{ %n = abs %x; return %n }}"
    text = module("%i: i32, %j: i32, %x: 14xf32", f"%r = case(%i) {{ {inner}; return %s }} {{ return %x }}")
    with pytest.raises(RefusedError, match="KeyError"):
        coreml.compile_module(text)
    lowered = hl.lower(text, target="coreml")
    assert lowered.refused == ()
    for i, j in ((0, 0), (0, 1), (1, 0)):
        assert difference(text, lowered.text, [np.int32(i), np.int32(j), EDGES]) is None


WITHIN = {
    "a branch": "%r = case(%i) { %z = reshape %y -> 14xf32; return %z } { return %x }",
    "a branch, with a broadcast": "%r = case(%i) { %b = broadcast_in_dim %y, dims = [0, 2] -> 2x1x7xf32;"
    " %e = exponential %b; %z = reshape %e -> 14xf32; return %z } { return %x }",
    "a branch, behind a slice of it all": "%r = case(%i) { %s = slice %y [0:2, 0:7]; %z = reshape %s -> 14xf32;"
    " return %z } { return %x }",
    "a branch, in a product": "%r = case(%i) { %w = constant 1.0 : 2x7x14xf32;"
    " %z = dot_general %y, %w, contracting_dims = [0, 1] x [0, 1] -> 14xf32; return %z } { return %x }",
    "a loop that passes it on": "%n = constant 0 : i32; %o = constant 1 : i32;"
    " %k, %r, %v = while(%a = %n, %b = %x, %c = %y) cond { %p = compare LT, %a, %i; return %p }"
    " do { %d = add %a, %o; %z = reshape %c -> 14xf32; %s = add %b, %z; return %d, %s, %c }",
}


@pytest.mark.parametrize("name", WITHIN)
def test_what_a_region_reshapes_is_not_merged_with_what_stands_outside(name):
    """coremltools merges both and ends with a KeyError; held apart, they give XLA's numbers."""
    text = module("%i: i32, %x: 14xf32", f"%y = reshape %x -> 2x7xf32; {WITHIN[name]}")
    with pytest.raises(RefusedError, match="KeyError"):
        coreml.compile_module(text)
    lowered = hl.lower(text, target="coreml")
    for i in (0, 1, 2):
        assert difference(text, lowered.text, [np.int32(i), EDGES]) is None


FILLS = {
    "a select": lambda s, p: jnp.where(p, s, -1e30),
    "a sum": lambda s, p: s + jnp.where(p, 0.0, -1e9),
    "a product": lambda s, p: s + (1 - p.astype(jnp.float32)) * jnp.finfo(jnp.float32).min,
}


@pytest.mark.parametrize("name", FILLS)
def test_scores_of_f16_are_masked_in_f32(name):
    """Its converter makes an attention of f16 of it, which is NaN, of a select everywhere; a row may be all masked."""

    def attend(q, k, v, p):
        scores = FILLS[name](jnp.einsum("bqd,bkd->bqk", q, k).astype(jnp.float32), p)
        return jax.nn.softmax(scores).astype(q.dtype) @ v

    rows = np.tri(3, dtype=bool) & (np.arange(3) < 2)[:, None]
    given = [*(drawn(2, 3, 4).astype(np.float16) for _ in range(3)), np.stack([rows, rows])]
    text = hl.export(attend, *given).mlir_module()
    lowered = hl.lower(text, target="coreml")
    assert difference(text, lowered.text, given) is None
    assert "got nan" in str(difference(text, inputs=given))


def test_what_a_region_only_computes_with_is_left_as_it_is():
    """So is what a reshape beside it reads."""
    within = "%s = reshape %y -> 14xf32; %b = case(%i) { %n = abs %y; return %n } { return %y };"
    text = module(
        "%i: i32, %x: 14xf32", f"%y = reshape %x -> 2x7xf32; {within} %t = reshape %b -> 14xf32; %r = add %s, %t"
    )
    assert "maximum" not in hl.lower(text, target="coreml").text


def summed(n, y, times=1):
    """A loop that adds what it reshapes again."""
    return lax.fori_loop(0, n, lambda _, s: s + y.reshape(7, 2) * times, jnp.zeros((7, 2)))


AROUND = {
    "a loop": lambda n, x: summed(n, x.reshape(2, 7)),
    "a loop of what was broadcast": lambda n, x: summed(n, lax.broadcast_in_dim(x, (14, 1), (0,))),
    "a loop that gives it": lambda n, x: lax.fori_loop(0, n, lambda _, s: (s[0], s[1] + s[0][0]), (x[None], x)),
    "a loop of what a function returns": lambda n, x: summed(n, jax.jit(lambda y: jnp.sin(y).reshape(2, 7))(x)),
    "a branch": lambda n, x: lax.cond(n > 2, lambda y: y.reshape(7, 2), lambda y: jnp.zeros((7, 2)), x.reshape(2, 7)),
    "a loop of a branch": lambda n, x: lax.cond(
        n > 2, lambda y: summed(n, y, 2), lambda y: summed(3, y), x.reshape(2, 7)
    ),
    "a group norm": lambda n, x: lax.map(lambda y: y - n, x.reshape(1, 7, 2)),
}

READ_TWICE = ("a loop that gives it", "a loop of a branch")
"""Such reshapes are not merged."""


@pytest.mark.parametrize("name", AROUND)
def test_what_is_reshaped_around_a_loop_converts(name):
    """Its converter merges reshapes, also one around a loop with one in it, which then is not found."""
    source = hl.export(AROUND[name], np.int32(3), EDGES)
    with contextlib.nullcontext() if name in READ_TWICE else pytest.raises(RefusedError, match="KeyError"):
        coreml.compile_module(source.mlir_module())
    lowered = hl.lower(source, target="coreml")
    assert lowered.refused == ()
    assert difference(source.mlir_module(), lowered.text, [np.int32(3), EDGES]) is None


def drawn(*shape, dtype=np.float32, most=4):
    """Numbers around 0, or integers below a limit."""
    rng = np.random.default_rng(len(shape))
    return rng.integers(0, most, shape, dtype) if dtype == np.int32 else rng.normal(size=shape).astype(dtype)


IMAGE, KERNEL = drawn(2, 7, 6, 4), drawn(3, 2, 4, 6)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolved(x, kernel, strides=(1, 1), padding="SAME", **how):
    """A convolution of images."""
    return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=LAYOUT, **how)


RIGHT = {
    "a convolution": (convolved, (IMAGE, KERNEL)),
    "one with steps": (lambda x, k: convolved(x, k, (2, 1), [(1, 2), (0, 1)], rhs_dilation=(2, 1)), (IMAGE, KERNEL)),
    "one in groups": (lambda x, k: convolved(x, k, feature_group_count=2), (IMAGE, KERNEL[:, :, :2])),
    "a transposed one": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=LAYOUT),
        (IMAGE, KERNEL),
    ),
    "numbers alone and truths": (lambda x: (x.sum(), x > 0, (x > 0).all()), (drawn(4, 9),)),
    "a pooling": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), "VALID"), (IMAGE,)),
    "sums of windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"), (IMAGE,)),
    "a sort": (jnp.sort, (drawn(4, 9),)),
    "the largest": (lambda x: lax.top_k(x, 3), (drawn(4, 9),)),
    "truths that are given": (lambda p, x: (p, x * 2), (drawn(9) > 0, drawn(9))),
    "about the largest": (lambda x: lax.approx_max_k(x, 3), (drawn(4, 9),)),
    "numbers of one exponent": (lambda x: jnp.ldexp(x + 1, 3), (drawn(9),)),
    "places of the largest": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), (drawn(4, 9),)),
    "elements": (lambda x, i, j: x[i, j], (drawn(4, 9), drawn(5, dtype=np.int32), drawn(5, dtype=np.int32))),
    "rows written": (lambda x, i, u: x.at[i].set(u), (drawn(4, 9), np.int32([2, 0]), drawn(2, 9))),
    "rows added": (lambda x, i, u: x.at[i].add(u), (drawn(4, 9), np.int32([2, 2]), drawn(2, 9))),
    "a branch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.abs], x), (np.int32(1), drawn(9))),
    "a loop": (lambda x: lax.fori_loop(0, 5, lambda i, y: y * 0.5 + x[i], x), (drawn(9),)),
    "a scan": (lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c), x[0], x), (drawn(4, 9),)),
    "attention": (lambda q, k: jax.nn.softmax(q @ k.T) @ k, (drawn(4, 9), drawn(5, 9))),
    "a product of integers": (lambda x, y: x @ y, (drawn(4, 9, dtype=np.int32), drawn(9, 4, dtype=np.int32))),
    "a product of f16 in f32": (
        lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.float32) * np.float32(0.3),
        (drawn(4, 9).astype(np.float16), drawn(9, 4).astype(np.float16)),
    ),
    "a cache of four bits": (
        lambda x, u, i: (x.at[i].set((u * 9).astype(x.dtype)), x.astype(jnp.float32)),
        (drawn(5, 3, dtype=np.int32).astype("int4"), drawn(3), np.int32(1)),
    ),
    "rows of bytes, rolled": (
        jax.vmap(lambda x, s: jnp.roll(x, s, 0)),
        (drawn(3, 4, dtype=np.int32).astype(np.int8), drawn(3, dtype=np.int32)),
    ),
    "names of elements in a loop": (
        lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.concatenate([y[:1], y[2:], y[1:2]]) * 1, x),
        (drawn(9),),
    ),
    "singular values": (lambda x: jnp.linalg.svd(x, compute_uv=False), (drawn(5, 5),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_converted_function_is_right(name):
    """The program computes what JAX does."""
    function, given = RIGHT[name]
    exported = hl.export(function, *given)
    lowered = hl.lower(exported, target="coreml")
    assert difference(exported.mlir_module(), lowered.text, list(given)) is None


ROWS = np.float32([[3, 1, 2], [1, 1, 0]])
PLACES = np.int32([[1, 0], [0, 2], [1, 0]])
PAIRS = np.float32([10, 20, 30])
OWN = {
    "argsort": (lambda mb, x: mb.argsort(x=x, axis=1, ascending=True), [ROWS], [[1, 2, 0], [2, 1, 0]]),
    "argsort, down": (lambda mb, x: mb.argsort(x=x, axis=1), [ROWS], [[0, 2, 1], [1, 0, 2]]),
    "topk": (lambda mb, x: mb.topk(x=x, k=2, axis=1)[1], [ROWS], [[0, 2], [0, 1]]),
    "scaled_dot_product_attention": (
        lambda mb, x, y: mb.scaled_dot_product_attention(query=x, key=x, value=y, attn_mask=np.float32([[[-1e9] * 2]])),
        [np.float32([[[1, 0], [0, 4]]]), np.float32([[[3, 1], [5, 9]]])],
        [[[4, 5], [4, 5]]],  # the scores are lost in so large a fill, of whole rows: all weigh the same
    ),
    "silu": (lambda mb, x: mb.silu(x=x), [ROWS], ROWS / (1 + np.exp(-ROWS))),
    "scatter_nd": (
        lambda mb, x, i, u: mb.scatter_nd(data=x, indices=i, updates=u, mode="update"),
        [ROWS, PLACES, PAIRS],
        [[3, 1, 20], [30, 1, 0]],
    ),
    "scatter_nd, added": (
        lambda mb, x, i, u: mb.scatter_nd(data=x, indices=i, updates=u, mode="add"),
        [ROWS, PLACES, PAIRS],
        [[3, 1, 22], [41, 1, 0]],
    ),
    "gather_nd, of batches": (
        lambda mb, x, i: mb.gather_nd(x=x, indices=i, batch_dims=1),
        [ROWS, np.int32([[[2]], [[0]]])],
        [[2], [1]],
    ),
    "sliding_windows": (
        lambda mb, x: mb.sliding_windows(x=x, axis=1, size=2, stride=1),
        [ROWS],
        [[[3, 1], [1, 2]], [[1, 1], [1, 0]]],
    ),
    "max_pool": (
        lambda mb, x: mb.max_pool(x=x, kernel_sizes=[2], strides=[2], pad_type="custom", pad=[1, 0]),
        [-ROWS[:1, None]],
        [[[-3, -1]]],
    ),
    "conv, dilated": (
        lambda mb, x: mb.conv(x=x, weight=np.float32([[[1, 10]]]), dilations=[2], pad_type="valid"),
        [np.float32([[[1, 2, 3, 4]]])],
        [[[31, 42]]],
    ),
    "conv_transpose": (
        lambda mb, x: mb.conv_transpose(x=x, weight=np.float32([[[1, 10]]]), strides=[2], pad_type="valid"),
        [np.float32([[[1, 2]]])],
        [[[1, 10, 2, 20]]],
    ),
    "conv_transpose, cut": (
        lambda mb, x: mb.conv_transpose(
            x=x, weight=np.float32([[[1, 10, 100]]]), strides=[1], pad_type="custom", pad=[1, 0]
        ),
        [np.float32([[[1, 2]]])],
        [[[12, 120, 200]]],
    ),
}
"""Programs of one op, what they are given, and what the documentation of the op makes of it."""


def of_one_op(make, given):
    """A program of one op of Core ML's, which may be run."""
    coremltools = pytest.importorskip("coremltools")
    builder = importlib.import_module("coremltools.converters.mil").Builder
    types = importlib.import_module("coremltools.converters.mil.mil").types
    kinds = {"f": types.fp32, "i": types.int32}
    specs = [builder.TensorSpec(shape=a.shape, dtype=kinds[a.dtype.kind]) for a in given]
    made = {  # the builder reads how many arguments there are
        1: lambda x: make(builder, x),
        2: lambda x, i: make(builder, x, i),
        3: lambda x, i, u: make(builder, x, i, u),
    }[len(given)]
    program = builder.program(input_specs=specs, opset_version=coremltools.target.iOS18)(made)
    return coreml_program.Program(program.functions["main"])


@pytest.mark.parametrize("name", OWN)
def test_ops_that_coremltools_says_nothing_of(name):
    """They compute what is documented; where the order of equal numbers is open, what most differs from XLA's."""
    make, given, wanted = OWN[name]
    [found] = of_one_op(make, given).run(given)
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-6)


def test_every_op_of_its_own_is_tested():
    """By its name; a cast is met by functions above."""
    assert {name.split(",")[0] for name in OWN} | {"cast"} == set(coreml_program.OWN)


@pytest.mark.parametrize("place", [2, -1])
def test_what_is_out_of_bounds_is_not_run(place):
    """Nobody says what it computes."""
    make, (x, places, pairs), _ = OWN["scatter_nd"]
    program = of_one_op(make, [x, places, pairs])
    with pytest.raises(RunsElsewhereError, match="out of bounds"):
        program.run([x, np.int32([[0, 0], [place, 0], [1, 1]]), pairs])


def test_sums_of_positions_wrap_around():
    """coremltools makes integers of Python of a list of numbers."""
    cast = coreml_program._cast(np.array([(1 << 31) + 127, -1], object), np.dtype(np.int32))
    assert cast.tolist() == [127 - (1 << 31), -1]


def test_another_function_is_not_right():
    """The comparison tells a program of something else."""
    text = module("%x: 4xf32, %y: 4xf32", "%r = add %x, %y")
    assert difference(text, text.replace("stablehlo.add", "stablehlo.subtract"))


def test_what_does_not_end_is_not_run(monkeypatch):
    """A loop that computes too many ops runs elsewhere; what the converter rejects is refused."""
    monkeypatch.setattr(coreml_program, "MOST_OPS", 100)
    endless = "%r = while(%a = %x) cond { %c = compare EQ, %a, %a; return %c } do { %b = add %a, %x; return %b }"
    run = coreml.compile_module(module("%x: f32", endless))
    with pytest.raises(RunsElsewhereError, match="more than 100 ops"):
        run([np.float32(1)])
    with pytest.raises(RefusedError):
        coreml.compile_module(module("%a: 4xf32", "%r = custom_call @of_my_own(%a) -> 4xf32"))
