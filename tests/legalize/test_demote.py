"""64-bit integers made 32 bits wide: what is proved, assumed, refused, and that results stay the same."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from legalized import results
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.errors import InputError, NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.integers64.demote import demote_i64
from hlo_lower.lowering.integers64.demotion import narrow_arguments, with_original_signature
from hlo_lower.verify.bounds.compare import first_difference

INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
EXTREMES = np.array([INT32.min, INT32.max, -1, 0], np.int64)


def of_both(body):
    """A module of ops on %x and %y."""
    return module("%x: 4xi64, %y: 4xi64", body)


SUM = of_both("%r = add %x, %y")


def demoted(text, name="module.mlir"):
    """A module demoted: its text and what that rests on."""
    graph = read(text, name, contained=False)
    demotion = demote_i64(graph)
    assert mlir.verify_module(graph.module) is None
    after = to_text(graph)
    assert not re.search(r"tensor<(\d+x)*u?i64>", after)
    return after, demotion


def assert_same(text, *argument_lists):
    """Demoted it gives the same; gives the text, and the assumptions that are not about arguments."""
    after, demotion = demoted(text)
    wrapped = with_original_signature(after, demotion)
    for arguments in argument_lists:
        expected, found = (results(one, *map(np.asarray, arguments)) for one in (text, wrapped))
        assert first_difference(expected, found) is None
    return after, [told for told in demotion.assumptions if not told.startswith("argument")]


LEAST_OF = "%c = constant 9223372036854775807 : i64\n%r = reduce(%x init: %c) applies stablehlo.minimum across "
NO_ASSUMPTION = {
    # JAX's random bits take the upper half of a counter, which of 32 bits are none
    "what is shifted out of a number that fits is zero": (
        "%i = iota dim = 0 : 4xi64; %h = shift_right_logical %i, 32; %r = add %h, %i",
        *("", "shift_right_logical"),
    ),
    # the sum wraps around only where it is not selected
    "a negative index is normalised": (
        "%n = compare LT, %x, 0; %s = add %x, 8; %r = select %n, %s, %x",
        *("select", "no such text"),
    ),
    "what is cut off again": (
        "%c = constant 0x123456789ABCDEF : 4xi64; %m = multiply %x, %c; %r = convert %m -> 4xi32",
        *("multiply", "no such text"),
    ),
    "a bound out of range becomes the nearest": (
        f"%r = minimum %x, {INT64.max}",
        *("dense<2147483647>", "9223372036854775807"),
    ),
    "both bounds": (
        f"%c = constant {INT64.max} : 4xi64; %d = constant {INT64.min} : 4xi64; %r = clamp %d, %x, %c",
        *("dense<-2147483648>", "-9223372036854775808"),
    ),
    "the start of a minimum becomes the nearest": (
        f"{LEAST_OF}dimensions = [0]",
        *("dense<2147483647>", "9223372036854775807"),
    ),
}


@pytest.mark.parametrize("name", NO_ASSUMPTION)
def test_what_needs_no_assumption(name):
    """Results are the same at the ends of i32, and nothing is assumed but the range of arguments."""
    body, holds, holds_no = NO_ASSUMPTION[name]
    after, assumed = assert_same(of_both(body), [EXTREMES] * 2, [np.full(4, INT32.max)] * 2)
    assert assumed == []
    assert holds in after
    assert holds_no not in after


def test_a_sum_that_is_returned_is_assumed_to_fit():
    """x + y of two arguments may leave i32: that is told with its place, and without the assumption it is wrong."""
    _, [assumed] = assert_same(SUM, [np.arange(4), np.arange(4) - 9])
    assert "stablehlo.add at module.mlir:2" in assumed
    after, demotion = demoted(SUM)
    assert demotion.assumptions[0] == "argument 0 of @main: its values are in [-2147483648, 2147483647]"
    wrapped = with_original_signature(after, demotion)
    assert first_difference(results(SUM, EXTREMES, EXTREMES), results(wrapped, EXTREMES, EXTREMES)) is not None


@pytest.mark.parametrize("bound", [INT64.max, INT64.min, 1 << 31, -(1 << 31) - 1])
def test_a_comparison_with_what_no_argument_reaches_is_decided(bound):
    """It becomes its outcome, also for arguments at the ends of i32, where the nearest bound would be equal."""
    names = ("LT", "LE", "GT", "GE", "EQ", "NE")
    body = "\n".join(f"%{name} = compare {name}, %x, {bound}" for name in names)
    text = module("%x: 4xi64", body, ", ".join(f"%{name}" for name in names))
    assert "compare" not in assert_same(text, [EXTREMES])[0]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("%r = constant 4294967296 : 4xi64", "the constant 4294967296 does not fit"),
        ("%f = bitcast_convert %x -> 4xf64; %r = add %x, %x", "bits"),
        ("%r = count_leading_zeros %x", "zeros"),
        ("%r = popcnt %x", "may be negative"),
        ("%r = shift_left %x, 32", "shifts by 32"),
        ("%r = shift_left %x, %y", "more than 31"),
        ("%r = shift_right_logical %x, 3", "the sign"),
        ("%c = constant 1.0e10 : 4xf64; %r = convert %c -> 4xi64", "10000000000"),
        ("%r = custom_call @my.hash(%x) -> 4xi64", "@my.hash"),
        # the start of a minimum of nothing is what comes out
        (f"%x = slice %y [0:0]\n{LEAST_OF}dimensions = [0]", "9223372036854775807"),
    ],
    ids=lambda part: part.split("\n")[0],
)
def test_what_would_be_wrong_is_refused(body, told):
    """Bits, shifts, constants and unknown calls: an error with the place and the reason, and the module as it was."""
    text = module("%y: 4xi64", body) if "%x = " in body else of_both(body)
    graph = read(text, "module.mlir", contained=False)
    before = to_text(graph)
    with pytest.raises(NotLoweredError, match="cannot be made 32 bits wide") as caught:
        demote_i64(graph)
    assert told in str(caught.value)
    assert "module.mlir:" in caught.value.where
    assert before == to_text(graph)


def test_the_smallest_i64_that_a_fill_returns_is_refused():
    """A gather that fills with the least i64 may return it, so the constant matters."""
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct((8,), np.int64), jax.ShapeDtypeStruct((3,), np.int64)]
        text = jax.jit(lambda x, i: jnp.take(x, i, mode="fill")).lower(*shapes).as_text()
    with pytest.raises(NotLoweredError, match="-9223372036854775808"):
        demoted(text)


RNG = np.random.default_rng(0)
CACHE, ROW, ROWS = (RNG.standard_normal(shape).astype(np.float32) for shape in ((16, 4), (4,), (3, 4)))
FAR = np.array([-1, 15, 16, -17, INT32.max, INT32.min], np.int64)
PROGRAMS = {
    "at_set": (lambda c, p, r: c.at[p].set(r), [(CACHE, p, ROW) for p in FAR]),
    "index_copy": (lambda c, i, r: c.at[i].set(r), [(CACHE, np.array(i), ROWS) for i in ([0, 0, 5], [-1, 99, 2])]),
    "add": (lambda c, i, r: c.at[i].add(r), [(CACHE, np.array([1, 1, INT32.max]), ROWS)]),
    "embedding": (lambda t, i: jnp.take(t, i, axis=0), [(CACHE, FAR)]),
    "update_slice": (lambda c, p, r: lax.dynamic_update_slice(c, r, (p, 0)), [(CACHE, p, ROWS) for p in FAR]),
    "argmax": (lambda x: jnp.argmax(x, axis=0), [(CACHE,)]),
    "argsort": (lambda x: jnp.argsort(x[:, 0]), [(CACHE,)]),
    "arange": (lambda x: jnp.sum(x * jnp.arange(16)[:, None], axis=0), [(CACHE,)]),
    "loop": (lambda n, x: lax.fori_loop(0, 5, lambda i, v: v.at[i].add(v[n]), x), [(np.int64(3), CACHE)]),
    "cond": (lambda p, x: lax.cond(p > 3, lambda: x + p, lambda: x), [(np.int64(p), CACHE) for p in (3, 4)]),
    "unsigned": (lambda u, x: x[jnp.minimum(u, np.uint64(15))], [(np.uint64(u), CACHE) for u in (0, 15, 2**32 - 1)]),
    "mod": (lambda i, x: x[i % 16], [(i, CACHE) for i in FAR]),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same(name):
    """With 64-bit indices in and out of bounds, at the ends of i32, the demoted module gives the same bits."""
    program, calls = PROGRAMS[name]
    with jax.enable_x64(True):
        text = jax.jit(program).lower(*calls[0]).as_text()
    assert_same(text, *calls)


def test_calls_and_donation_keep_their_places():
    """Private functions change with their callers, and attributes of arguments stand on the wrapper's arguments."""
    double = function("private @double", "%v: 4xi64", "%r = add %v, %v")
    text = module("%x: 4xi64", "%r = call @double(%x) -> 4xi64", more=double)
    text = text.replace("tensor<4xi64>)", "tensor<4xi64> {tf.aliasing_output = 0 : i32})", 1)
    after, demotion = demoted(text)
    assert "tf.aliasing_output" in after
    wrapped = with_original_signature(after, demotion)
    assert wrapped.count("tf.aliasing_output") == 1
    assert "@main(%arg0: tensor<4xi64> {tf.aliasing_output" in wrapped
    assert "1 results of @main" in demotion.summary()


def test_arguments_are_checked_and_converted():
    """What fits becomes i32; what does not is an error with the argument's name, the value and its index."""
    _, demotion = demoted(SUM)
    narrowed = narrow_arguments([EXTREMES, np.arange(4)], demotion, "step")
    assert [np.int32, np.int32] == [array.dtype for array in narrowed]
    assert EXTREMES.tolist() == narrowed[0].tolist()
    with pytest.raises(InputError, match="step: argument 1 holds 2147483648, which does not fit in i32") as caught:
        narrow_arguments([EXTREMES, np.array([0, 1, 1 << 31, 3])], demotion, "step")
    assert "at [2]" in str(caught.value)
    with pytest.raises(InputError, match="argument 1 is missing"):
        narrow_arguments([EXTREMES], demotion)


def test_an_exported_gets_the_new_signature():
    """A `jax.export.Exported` that is demoted can be called with 32-bit arguments."""
    with jax.enable_x64(True):
        exported = hl.export(lambda x, i: (x.at[i].set(1.0), i), np.zeros(8, np.float32), np.int64(0))
    graph = read(exported)
    demote_i64(graph)
    assert np.dtype(np.int32) == graph.exported.in_avals[1].dtype
    written, index = jax.jit(graph.exported.call)(np.zeros(8, np.float32), np.int32(5))
    assert np.dtype(np.int32) == index.dtype
    assert 1.0 == float(written[5]) == float(written.sum())


WINDOW = "padding = dense<[[3, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>"


@pytest.mark.parametrize(
    "text",
    [
        module("%x: 4xi32", "%r = add %x, %x"),
        # paddings and dimensions are attributes of 64 bits; f64 is no integer
        module("%x: 4xf64", f"%c = constant 0.0 : f64; %r = reduce_window(%x, %c) <{WINDOW}> {{add}} -> 4xf64"),
    ],
    ids=["of 32 bits", "attributes of 64 bits"],
)
def test_a_module_without_them_stays(text):
    """Without 64-bit integers nothing is changed, and the summary says so."""
    graph = read(text, contained=False)
    before = to_text(graph)
    demotion = demote_i64(graph)
    assert before == to_text(graph)
    assert not demotion.is_needed
    assert demotion.summary() == "no 64-bit integers"


@pytest.mark.parametrize("visibility", ["", "public "])
def test_an_entry_point_stays_as_visible_as_it_was(visibility):
    """What has no visibility is public, too, as TensorFlow writes it; it is no difference that conversion makes."""
    text = SUM.replace("public ", visibility)
    lowered = hl.lower(text, demote_i64=True)
    assert f"func.func {visibility}@main(" in lowered.text
    assert hl.verify(text, lowered, runs=1).ok


WITHOUT = hl.Target("none of 64 bits", refused_dtypes={"i64": "too wide", "ui64": "too wide"})
WIDE, TO_FLOATS = "%w = convert %x : (4xi32) -> 4xi64;", "%r = convert %k : (4xi64) -> 4xf32"
COUNTED = "%i = iota dim = 0 : 4xi64; %k = multiply %i, {}; " + TO_FLOATS
MAIN = module("%x: 4xi32", f"{WIDE} %k = maximum %w, 5; {TO_FLOATS}")
INNER = """module {
  func.func public @main(%x: tensor<4xi32>) -> tensor<4xf32> {
    %w = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi64>
    %k = call @inner(%w) : (tensor<4xi64>) -> tensor<4xi64>
    %r = stablehlo.convert %k : (tensor<4xi64>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
  func.func private @inner(%w: tensor<4xi64>) -> tensor<4xi64> {
    %i = stablehlo.iota dim = 0 : tensor<4xi64>
    %k = stablehlo.maximum %w, %i : tensor<4xi64>
    return %k : tensor<4xi64>
  }
}
"""
OTHER = """func.func public @other() -> tensor<4xi64> {
  %i = stablehlo.iota dim = 0 : tensor<4xi64>
  return %i : tensor<4xi64>
}
"""


@pytest.mark.parametrize(
    ("text", "remains"),
    [
        (module("%x: 4xi32", f"{WIDE} %i = iota dim = 0 : 4xi64; %k = maximum %w, %i; {TO_FLOATS}"), False),
        (module("%x: 4xi32", COUNTED.format(2**30)), True),  # 3 * 2^30 is no i32
        (module("%x: 4xi64", f"%k = add %x, %x; {TO_FLOATS}"), True),
        (module("%x: 4xi32", f"{WIDE} %k = multiply %w, %w; {TO_FLOATS}"), True),
        (module("%x: 4xi32", "%r = iota dim = 0 : 4xi64"), True),
        (module("%x: 4xi32", f"{WIDE} %r = bitcast_convert %w -> 4x2xi32"), True),
        (INNER, False),
        ("module {\n" + MAIN + OTHER + "}", True),
        ("module {\n" + MAIN + "func.func private @other(tensor<4xi64>)\n}", True),
    ],
    ids=[
        *("what fits", "a product that does not", "an argument", "a product that may not", "a result", "the bits"),
        *("a result of a private function", "one of another public function", "an argument of a declared one"),
    ],
)
def test_what_is_shown_to_fit_is_narrowed_unasked(text, remains):
    lowered = hl.lower(text, target=WITHOUT)
    assert bool(re.search(r"tensor<(\d+x)*u?i64>", lowered.text)) == remains
    assert bool(lowered.refused) == remains
    assert (lowered.demotion is None) == remains
    if not remains:
        verdict = hl.verify(text, lowered.text)
        assert verdict.ok
        assert [region.how for region in verdict.regions] == ["derived"]


def test_a_target_that_takes_them_keeps_them():
    text = module("%x: 4xi32", COUNTED.format(5))
    for target in (hl.Target("all"), hl.Target("signed", refused_dtypes={"ui64": "too wide"})):
        assert "xi64" in hl.lower(text, target=target).text
