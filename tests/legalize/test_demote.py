"""64-bit integers made 32 bits wide: what is proved, assumed, refused, and that results stay the same."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.base.errors import InputError, NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.integers64.demote import demote_i64
from hlo_lower.lowering.integers64.demotion import narrow_arguments, with_original_signature
from hlo_lower.verify.bounds.compare import first_difference

INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
SCALARS = "%x: tensor<4xi64>, %y: tensor<4xi64>"


def module(body, arguments=SCALARS, result="tensor<4xi64>", more=""):
    """A module whose main returns %r."""
    return f"func.func public @main({arguments}) -> {result} {{\n{body}\n  return %r : {result}\n}}\n{more}"


def demoted(text, name="module.mlir"):
    """A module demoted: its text and what that rests on."""
    graph = read(text, name, contained=False)
    demotion = demote_i64(graph)
    assert mlir.verify_module(graph.module) is None
    after = to_text(graph)
    assert not re.search(r"tensor<(\d+x)*u?i64>", after)
    return after, demotion


def operations(demotion):
    """The assumptions that are not about arguments."""
    return [told for told in demotion.assumptions if not told.startswith("argument")]


@pytest.fixture
def same(results):
    """Demote a module and compare with the original on arguments; gives what the demotion rests on."""

    def check(text, *argument_lists):
        after, demotion = demoted(text)
        wrapped = with_original_signature(after, demotion)
        for arguments in argument_lists:
            assert first_difference(results(text, *arguments), results(wrapped, *arguments)) is None
        return after, demotion

    return check


def test_what_is_shifted_out_of_a_number_that_fits_is_zero(same):
    """JAX's random bits take the upper half of a counter, which of 32 bits are none."""
    text = module(
        "  %i = stablehlo.iota dim = 0 : tensor<4xi64>\n"
        "  %c = stablehlo.constant dense<32> : tensor<4xi64>\n"
        "  %h = stablehlo.shift_right_logical %i, %c : tensor<4xi64>\n"
        "  %r = stablehlo.add %h, %i : tensor<4xi64>"
    )
    after, demotion = same(text, [np.zeros(4, np.int64), np.zeros(4, np.int64)])
    assert "shift_right_logical" not in after
    assert not any("shift" in told for told in demotion.assumptions)


EXTREMES = np.array([INT32.min, INT32.max, -1, 0], np.int64)


def test_a_negative_index_is_normalised_without_an_assumption(same):
    """select(i < 0, i + 8, i) needs none: the sum wraps around only where it is not selected."""
    text = module(
        "  %c = stablehlo.constant dense<0> : tensor<4xi64>\n"
        "  %d = stablehlo.constant dense<8> : tensor<4xi64>\n"
        "  %n = stablehlo.compare LT, %x, %c : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>\n"
        "  %s = stablehlo.add %x, %d : tensor<4xi64>\n"
        "  %r = stablehlo.select %n, %s, %x : tensor<4xi1>, tensor<4xi64>",
        "%x: tensor<4xi64>",
    )
    _, demotion = same(text, [EXTREMES])
    assert demotion.assumptions == ("argument 0 of @main: its values are in [-2147483648, 2147483647]",)


def test_a_sum_that_is_returned_is_assumed_to_fit(same, results):
    """x + y of two arguments may leave i32: that is told with its place, and without the assumption it is wrong."""
    text = module("  %r = stablehlo.add %x, %y : tensor<4xi64>")
    after, demotion = same(text, [np.arange(4), np.arange(4) - 9])
    assert len(operations(demotion)) == 1
    assert "stablehlo.add at module.mlir:2" in operations(demotion)[0]
    wrapped = with_original_signature(after, demotion)
    assert first_difference(results(text, EXTREMES, EXTREMES), results(wrapped, EXTREMES, EXTREMES)) is not None


def test_what_is_cut_off_again_needs_no_assumption(same):
    """A product of which the low 32 bits alone are read is the same whatever it comes to."""
    text = module(
        "  %c = stablehlo.constant dense<0x123456789ABCDEF> : tensor<4xi64>\n"
        "  %m = stablehlo.multiply %x, %c : tensor<4xi64>\n"
        "  %r = stablehlo.convert %m : (tensor<4xi64>) -> tensor<4xi32>",
        "%x: tensor<4xi64>",
        "tensor<4xi32>",
    )
    _, demotion = same(text, [EXTREMES])
    assert operations(demotion) == []


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("%r = stablehlo.minimum %x, %c : tensor<4xi64>", "dense<2147483647>"),
        ("%r = stablehlo.clamp %d, %x, %c : tensor<4xi64>", "dense<-2147483648>"),
    ],
)
def test_a_bound_out_of_range_becomes_the_nearest(same, body, outcome):
    """A minimum with, or a clamp at, the ends of i64 is one with the ends of i32."""
    ends = (
        f"  %c = stablehlo.constant dense<{INT64.max}> : tensor<4xi64>\n"
        f"  %d = stablehlo.constant dense<{INT64.min}> : tensor<4xi64>\n  "
    )
    after, demotion = same(module(ends + body, "%x: tensor<4xi64>"), [EXTREMES])
    assert outcome in after
    assert operations(demotion) == []


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("bound", [INT64.max, INT64.min, 1 << 31, -(1 << 31) - 1])
def test_a_comparison_with_what_no_argument_reaches_is_decided(same, direction, bound):
    """It becomes its outcome, also for arguments at the ends of i32, where the nearest bound would be equal."""
    text = module(
        f"  %c = stablehlo.constant dense<{bound}> : tensor<4xi64>\n"
        f"  %r = stablehlo.compare {direction}, %x, %c : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>",
        "%x: tensor<4xi64>",
        "tensor<4xi1>",
    )
    after, _ = same(text, [EXTREMES])
    assert "compare" not in after


def test_the_start_of_a_minimum_becomes_the_nearest(same):
    """A reduction by minimum that begins with the greatest i64 begins with the greatest i32."""
    text = module(
        f"  %c = stablehlo.constant dense<{INT64.max}> : tensor<i64>\n"
        "  %r = stablehlo.reduce(%x init: %c) applies stablehlo.minimum across dimensions = [0]"
        " : (tensor<4xi64>, tensor<i64>) -> tensor<i64>",
        "%x: tensor<4xi64>",
        "tensor<i64>",
    )
    after, demotion = same(text, [EXTREMES], [np.full(4, INT32.max)])
    assert "dense<2147483647>" in after
    assert operations(demotion) == []
    with pytest.raises(NotLoweredError, match="9223372036854775807"):
        demoted(text.replace("tensor<4xi64>", "tensor<0xi64>"))


def after_constant(value, element, body):
    """A body behind a constant %c of four such elements."""
    return f"%c = stablehlo.constant dense<{value}> : tensor<4x{element}>\n  {body}"


SHIFT_LEFT = "%r = stablehlo.shift_left %x, %c : tensor<4xi64>"
SHIFT_RIGHT = "%r = stablehlo.shift_right_logical %x, %c : tensor<4xi64>"
FROM_FLOAT = "%r = stablehlo.convert %c : (tensor<4xf64>) -> tensor<4xi64>"
BITS = (
    "%f = stablehlo.bitcast_convert %x : (tensor<4xi64>) -> tensor<4xf64>\n  %r = stablehlo.add %x, %x : tensor<4xi64>"
)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("%r = stablehlo.constant dense<4294967296> : tensor<4xi64>", "the constant 4294967296 does not fit"),
        (BITS, "bits"),
        ("%r = stablehlo.count_leading_zeros %x : tensor<4xi64>", "zeros"),
        ("%r = stablehlo.popcnt %x : tensor<4xi64>", "may be negative"),
        (after_constant(32, "i64", SHIFT_LEFT), "shifts by 32"),
        ("%r = stablehlo.shift_left %x, %y : tensor<4xi64>", "more than 31"),
        (after_constant(3, "i64", SHIFT_RIGHT), "the sign"),
        (after_constant("1.0e10", "f64", FROM_FLOAT), "10000000000"),
        ("%r = stablehlo.custom_call @my.hash(%x) : (tensor<4xi64>) -> tensor<4xi64>", "@my.hash"),
    ],
)
def test_what_would_be_wrong_is_refused(body, told):
    """Bits, shifts, constants and unknown calls: an error with the place and the reason, and the module as it was."""
    graph = read(module(f"  {body}"), "module.mlir", contained=False)
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


def programs():
    """Functions of JAX with 64-bit indices, and their arguments."""
    rng = np.random.default_rng(0)
    cache, row, rows = (rng.standard_normal(s).astype(np.float32) for s in ((16, 4), (4,), (3, 4)))
    table = rng.standard_normal((16, 4)).astype(np.float32)
    far = np.array([-1, 15, 16, -17, INT32.max, INT32.min], np.int64)
    yield "at_set", lambda c, p, r: c.at[p].set(r), [(cache, p, row) for p in far]
    yield "index_copy", lambda c, i, r: c.at[i].set(r), [(cache, np.array(i), rows) for i in ([0, 0, 5], [-1, 99, 2])]
    yield "add", lambda c, i, r: c.at[i].add(r), [(cache, np.array([1, 1, INT32.max]), rows)]
    yield "embedding", lambda t, i: jnp.take(t, i, axis=0), [(table, far)]
    yield "update_slice", lambda c, p, r: lax.dynamic_update_slice(c, r, (p, 0)), [(cache, p, rows) for p in far]
    yield "argmax", lambda x: jnp.argmax(x, axis=0), [(cache,)]
    yield "argsort", lambda x: jnp.argsort(x[:, 0]), [(cache,)]
    yield "arange", lambda x: jnp.sum(x * jnp.arange(16)[:, None], axis=0), [(cache,)]
    yield "loop", lambda n, x: lax.fori_loop(0, 5, lambda i, v: v.at[i].add(v[n]), x), [(np.int64(3), cache)]
    yield "cond", lambda p, x: lax.cond(p > 3, lambda: x + p, lambda: x), [(np.int64(p), cache) for p in (3, 4)]
    yield "unsigned", lambda u, x: x[jnp.minimum(u, np.uint64(15))], [(np.uint64(u), cache) for u in (0, 15, 2**32 - 1)]
    yield "mod", lambda i, x: x[i % 16], [(i, cache) for i in far]


@pytest.mark.few(4)
@pytest.mark.parametrize(("function", "calls"), [p[1:] for p in programs()], ids=[p[0] for p in programs()])
def test_programs_compute_the_same(same, function, calls):
    """With 64-bit indices in and out of bounds, at the ends of i32, the demoted module gives the same bits."""
    with jax.enable_x64(True):
        text = jax.jit(function).lower(*calls[0]).as_text()
    same(text, *calls)


def test_calls_and_donation_keep_their_places(same):
    """Private functions change with their callers, and attributes of arguments stand on the wrapper's arguments."""
    text = module(
        "  %r = func.call @double(%x) : (tensor<4xi64>) -> tensor<4xi64>",
        "%x: tensor<4xi64> {tf.aliasing_output = 0 : i32}",
        more="func.func private @double(%v: tensor<4xi64>) -> tensor<4xi64> {\n"
        "  %d = stablehlo.add %v, %v : tensor<4xi64>\n  return %d : tensor<4xi64>\n}\n",
    )
    after, demotion = demoted(text)
    assert "tf.aliasing_output" in after
    wrapped = with_original_signature(after, demotion)
    assert wrapped.count("tf.aliasing_output") == 1
    assert "@main(%arg0: tensor<4xi64> {tf.aliasing_output" in wrapped
    assert "1 results of @main" in demotion.summary()


def test_arguments_are_checked_and_converted():
    """What fits becomes i32; what does not is an error with the argument's name, the value and its index."""
    text = module("  %r = stablehlo.add %x, %y : tensor<4xi64>")
    _, demotion = demoted(text)
    narrowed = narrow_arguments([EXTREMES, np.arange(4)], demotion, "step")
    assert [np.int32, np.int32] == [array.dtype for array in narrowed]
    assert EXTREMES.tolist() == narrowed[0].tolist()
    with pytest.raises(InputError) as caught:
        narrow_arguments([EXTREMES, np.array([0, 1, 1 << 31, 3])], demotion, "step")
    assert "step: argument 1 holds 2147483648, which does not fit in i32" in str(caught.value)
    assert "at [2]" in str(caught.value)
    with pytest.raises(InputError, match="argument 1 is missing"):
        narrow_arguments([EXTREMES], demotion)


def test_an_exported_gets_the_new_signature():
    """A `jax.export.Exported` that is demoted can be called with 32-bit arguments."""
    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct((8,), np.float32), jax.ShapeDtypeStruct((), np.int64)]
        exported = jax.export.export(jax.jit(lambda x, i: (x.at[i].set(1.0), i)))(*shapes)
    graph = read(exported)
    demote_i64(graph)
    assert np.dtype(np.int32) == graph.exported.in_avals[1].dtype
    written, index = jax.jit(graph.exported.call)(np.zeros(8, np.float32), np.int32(5))
    assert np.dtype(np.int32) == index.dtype
    assert 1.0 == float(written[5]) == float(written.sum())


def test_a_module_without_them_stays():
    """Without 64-bit integers nothing is changed, and the summary says so."""
    text = module("  %r = stablehlo.add %x, %x : tensor<4xi32>", "%x: tensor<4xi32>", "tensor<4xi32>")
    graph = read(text, contained=False)
    before = to_text(graph)
    demotion = demote_i64(graph)
    assert before == to_text(graph)
    assert not demotion.is_needed
    assert demotion.summary() == "no 64-bit integers"


def test_attributes_keep_their_integers():
    """Paddings and dimensions are attributes of 64 bits by the specification, and f64 is no integer."""
    text = module(
        "  %0 = stablehlo.constant dense<0.0> : tensor<f64>\n"
        '  %r = "stablehlo.reduce_window"(%x, %0) <{padding = dense<[[3, 0]]> : tensor<1x2xi64>, '
        "window_dimensions = array<i64: 4>}> ({\n^bb0(%a: tensor<f64>, %b: tensor<f64>):\n"
        "  %s = stablehlo.add %a, %b : tensor<f64>\n  stablehlo.return %s : tensor<f64>\n"
        "}) : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>",
        "%x: tensor<4xf64>",
        "tensor<4xf64>",
    )
    graph = read(text, contained=False)
    assert not demote_i64(graph).is_needed


@pytest.mark.parametrize("visibility", ["", "public "])
def test_an_entry_point_stays_as_visible_as_it_was(visibility):
    """What has no visibility is public, too, as TensorFlow writes it; it is no difference that conversion makes."""
    text = (
        f"func.func {visibility}@main(%x: tensor<4xi64>) -> tensor<4xi64> {{\n"
        "  %r = stablehlo.add %x, %x : tensor<4xi64>\n  return %r : tensor<4xi64>\n}\n"
    )
    lowered = hl.lower(text, demote_i64=True)
    assert f"func.func {visibility}@main(" in lowered.text
    assert hl.verify(text, lowered, runs=1).ok
