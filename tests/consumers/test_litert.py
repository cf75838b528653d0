"""LiteRT and Core ML, where they are installed: right, wrong, refused by the converter and by the interpreter."""

import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rewrites import results
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.consumers import COREML, LITERT
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.consumer_outcome import Build, ConsumerRun
from hlo_lower.consumers.reference import reference_of
from hlo_lower.consumers.rounding import Rounding
from hlo_lower.ir.mlir import dtype_of

NO_LITERT = pytest.mark.skipif(not LITERT.version(), reason="the extra litert is not installed")
NO_COREML = pytest.mark.skipif(not COREML.version(), reason="the extra coreml is not installed")
SORT = module("%a: 8xf32", "%r = sort(%a) <dimension = 0> {LT}")
CUSTOM = module("%a: 4xf32", "%r = custom_call @of_my_own(%a) -> 4xf32")


def three(op):
    """A module with results of three types."""
    return module("%a: 3x2xf32, %i: i32, %b: 2xi1", f"%r = {op} %a, %a; %n = not %b; return %r, %i, %n")


@pytest.fixture(scope="module")
def judge():
    """One process judges them all: its start takes longest."""
    with Judge(LITERT) as judge:
        yield judge


@pytest.mark.litert
@NO_LITERT
def test_right_wrong_and_refused_by_either_part(judge):
    reference, sorts = reference_of(three("add")), reference_of(SORT)
    found = [judge.judge(three(op), reference.runs, reference.rounding) for op in ("add", "multiply")]
    found += [judge.judge(text, sorts.runs, sorts.rounding) for text in (SORT, CUSTOM)]
    assert [(one.result, one.cause) for one in found] == [
        ("right", ""),
        ("wrong", ""),
        ("refused", "tflite.stablehlo_sort"),
        ("refused", "tflite.stablehlo_custom_call"),
    ]


NUMBERS = "offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1"
GATHER = f"dimension_numbers = #stablehlo.gather<{NUMBERS}>, slice_sizes = array<i64: 1, 1, 2>"


def rows(value):
    """Rows written, by a region that returns this."""
    lines = f"""%r = scatter(%a, %i, %u) <window=[1], inserted=[0], to=[0], ivd=1> {{ %x, %y:
        %z = maximum %x, %y; return {value}
        }}"""
    return module("%a: 64x4xf32, %i: 40x1xi32, %u: 40x4xf32", lines)


@pytest.mark.litert
@NO_LITERT
def test_gathers_and_scatters_with_positions_out_of_bounds(judge):
    """Converted, rows out of bounds are clamped by a gather, which ends the run as it was, and dropped by a scatter."""
    places = np.array([[0, 0], [5, 3], [6, 0], [2, -1], [-7, 9]], np.int32)
    text = module("%a: 6x4x2xf32, %i: 5x2xi32", f"%r = gather(%a, %i) <{GATHER}> -> 5x2xf32")
    gather = reference_of(text, inputs=[np.arange(48, dtype=np.float32).reshape(6, 4, 2), places])
    assert judge.judge(text, gather.runs, gather.rounding).cause == "tflite.gather_nd"
    lowered = hl.lower(text, target="litert")
    assert judge.judge(lowered.text, gather.runs, gather.rounding).result == "right", lowered.notes
    for text in (rows("%y"), rows("%z")):
        reference, lowered = reference_of(text), hl.lower(text, target="litert")
        found = judge.judge(lowered.text, reference.runs, reference.rounding)
        assert found.result == "right", lowered.notes


MASKED = "%f = constant 0xFF80 : bf16; %b = call @spread(%f) -> 4x8xbf16; %r = select %p, %x, %b"
FORMS = {
    "an infinity that a call is given": module(
        "%p: 4x8xi1, %x: 4x8xbf16",
        MASKED,
        more=function("private @spread", "%f: bf16", "%r = broadcast_in_dim %f, dims = [] -> 4x8xbf16"),
    ),
    "infinities beside others": module(
        "%x: 4xbf16", "%f = constant [0x7F80, 0xFF80, 1.5, 0x7FC0] : 4xbf16; %r = add %x, %f"
    ),
    "an infinity of f16": module("%x: f16", "%r = constant 0x7C00 : 2x3xf16", "%r, %x"),
    "repeated": module("%x: 8xbf16", "%r = broadcast_in_dim %x, dims = [1] -> 4x8xbf16"),
    "repeated and computed": module(
        "%x: 8xf32", "%b = broadcast_in_dim %x, dims = [1] -> 4x8xf32; %s = add %b, %b; %r = convert %s -> 4x8xbf16"
    ),
    "repeated and transposed": module(
        "%x: 3x5xf32", "%b = broadcast_in_dim %x, dims = [1, 2] -> 4x3x5xf32; %r = transpose %b, dims = [0, 2, 1]"
    ),
    "one head for several": module(
        "%x: 8x3x3xf32, %y: 2x1x3x5xf32",
        """%b = broadcast_in_dim %y, dims = [0, 1, 3, 4] -> 2x1x4x3x5xf32; %h = reshape %b -> 2x4x3x5xf32
        %t = transpose %h, dims = [0, 1, 3, 2]; %f = reshape %t -> 8x5x3xf32
        %r = dot_general %f, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1]""",
    ),
    "known, repeated and transposed": module(
        "%x: 4x2x3xf32",
        """%c = constant [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] : 3x2xf32
        %b = broadcast_in_dim %c, dims = [1, 2] -> 4x3x2xf32; %t = transpose %b, dims = [0, 2, 1]; %r = add %t, %x""",
    ),
    "repeated and added up": module(
        "%x: 3x5xf32",
        """%b = broadcast_in_dim %x, dims = [1, 2] -> 4x3x5xf32; %e = negate %b; %z = constant 0.0 : f32
        %r = reduce(%e init: %z) applies stablehlo.add across dimensions = [1]""",
    ),
}


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", FORMS)
def test_numbers_that_are_infinite_or_repeated(judge, name):
    """It converts, transposes and adds up before it repeats, where nothing holds it back: bf16 without a kernel, others
    to another shape."""
    reference, lowered = reference_of(FORMS[name]), hl.lower(FORMS[name], target="litert")
    assert lowered.refused == ()
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", lowered.text


@pytest.mark.parametrize("name", [name for name in FORMS if "repeated and" in name or "one head" in name])
def test_what_is_repeated_stands_behind_a_barrier(name):
    """Also seen without LiteRT; XLA gives the same numbers either way."""
    assert "stablehlo.optimization_barrier" in hl.lower(FORMS[name], target="litert").text


def test_what_is_one_number_does_not():
    """It repeats to any shape."""
    body = "%c = constant 2.0 : f32; %b = broadcast_in_dim %c, dims = [] -> 4x3xf32; %t = transpose %b, dims = [1, 0]"
    text = module("%x: 3x4xf32", f"{body}; %r = add %t, %x")
    assert "stablehlo.optimization_barrier" not in hl.lower(text, target="litert").text


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("op", ["log_plus_one", "exponential_minus_one"])
def test_functions_of_numbers_near_zero_keep_their_digits(judge, op):
    """It adds the 1, or subtracts it, where nothing is left of the number then."""
    text = module("%x: 64xf32", f"%r = {op} %x")
    reference = reference_of(text, inputs=[np.geomspace(1e-30, 1, 64, dtype=np.float32)])
    assert judge.judge(text, reference.runs, reference.rounding).result == "wrong"
    lowered = hl.lower(text, target="litert")
    assert judge.judge(lowered.text, reference.runs, reference.rounding).result == "right"


ROOTS = {
    "rsqrt": "%r = rsqrt %x",
    "of bf16": "%h = convert %x -> 8xbf16; %s = rsqrt %h; %r = convert %s -> 8xf32",
    "to the power of -0.5": "%c = constant -0.5 : 8xf32; %r = power %x, %c",
    "to the power of 0.5": "%h = constant 0.5 : f32; %c = broadcast_in_dim %h, dims = [] -> 8xf32; %r = power %x, %c",
    "of degrees, at least 0": "%m = abs %x; %r = rsqrt %m",
}
ABOVE_ZERO = {
    "a mean of squares and an epsilon": """%s = multiply %x, %x; %z = constant 0.0 : f32; %c = constant 8.0 : f32
        %t = reduce(%s init: %z) applies stablehlo.add across dimensions = [0]; %e = constant 1.0e-6 : f32
        %m = divide %t, %c; %a = add %m, %e; %r = rsqrt %a""",
    "what is at least an epsilon": "%e = constant 1.0e-6 : 8xf32; %a = maximum %x, %e; %r = rsqrt %a",
    "an even power and an epsilon in bf16": """%c = constant 2.0 : 8xf32; %p = power %x, %c
        %e = constant 1.0e-6 : 8xf32; %a = add %p, %e
        %h = convert %a -> 8xbf16; %w = convert %h -> 8xf32; %r = rsqrt %w""",
}
MAYBE_ZERO = {
    "what is added is 0": "%s = multiply %x, %x; %e = constant 0.0 : 8xf32; %a = add %s, %e; %r = rsqrt %a",
    "what is added to may be below zero": "%e = constant 1.0e-6 : 8xf32; %a = add %x, %e; %r = rsqrt %a",
    "an odd power": "%c = constant 3.0 : 8xf32; %p = power %x, %c; %a = add %p, %c; %r = rsqrt %a",
    "the epsilon is 0 in f16": """%s = multiply %x, %x; %e = constant 1.0e-8 : 8xf32; %a = add %s, %e
        %h = convert %a -> 8xf16; %w = convert %h -> 8xf32; %r = rsqrt %w""",
    "the product of two": "%c = constant 1.0e-30 : 8xf32; %m = maximum %x, %c; %p = multiply %m, %m; %r = rsqrt %p",
}


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", ROOTS)
def test_the_root_of_zero_is_an_infinity(judge, name):
    """The degree of a node without edges, to the power of -0.5: it is NaN where nothing is done about it."""
    text = module("%x: 8xf32", ROOTS[name])
    reference = reference_of(text, inputs=[np.asarray([0, -0.0, np.inf, 1, 4, -1, 1e-20, np.nan], np.float32)])
    assert judge.judge(text, reference.runs, reference.rounding).result != "right"
    lowered = hl.lower(text, target="litert")
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message


@pytest.mark.parametrize("name", [*ABOVE_ZERO, *MAYBE_ZERO])
def test_what_may_be_zero_is_told(name):
    """Also seen without LiteRT: an epsilon is enough where it is added to what is not below zero, and stays."""
    lowered = hl.lower(module("%x: 8xf32", {**ABOVE_ZERO, **MAYBE_ZERO}[name]), target="litert")
    assert lowered.refused == ()
    assert ("stablehlo.compare" in lowered.text) is (name in MAYBE_ZERO)


def test_an_exponent_of_a_half_stands_behind_a_barrier():
    """Also seen without LiteRT; one of 2 does not, it is a product."""
    for exponent in (0.5, -0.5, 2.0):
        text = module("%x: 8xf32", f"%c = constant {exponent} : 8xf32; %r = power %x, %c")
        is_held = "stablehlo.optimization_barrier" in hl.lower(text, target="litert").text
        assert is_held is (exponent != 2.0)


TURNED = {
    "last dim first": ("4x1x4", "%t = transpose %y, dims = [2, 0, 1]; %s = reshape %t -> 4x4xf32"),
    "two dims at once": ("2x1x2x4", "%t = transpose %y, dims = [3, 0, 1, 2]; %s = reshape %t -> 4x4xf32"),
    "negated": ("4x1x4", "%t = transpose %y, dims = [2, 0, 1]; %n = negate %t; %s = reshape %n -> 4x4xf32"),
}
"""Matrices that are products of a transposed one, of which LiteRT merged the transposes."""


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", TURNED)
def test_a_product_of_turned_matrices(judge, name):
    """The gradient of an inverse, -A^-T g A^-T, is such a product."""
    shape, lines = TURNED[name]
    text = module(
        f"%x: 4x4xf32, %y: {shape}xf32", f"{lines}; %r = dot_general %x, %s, contracting_dims = [0] x [0] -> 4x4xf32"
    )
    reference = reference_of(text)
    assert judge.judge(text, reference.runs, reference.rounding).result == "wrong"
    lowered = hl.lower(text, target="litert")
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message


@pytest.mark.parametrize(("lines", "is_held"), [("%s = reshape %t -> 4x4xf32", True), ("%s = add %z, %z", False)])
def test_a_turned_matrix_stands_behind_a_barrier(lines, is_held):
    """Also seen without LiteRT; one that is not turned does not."""
    args = "%x: 4x4xf32, %y: 4x1x4xf32, %z: 4x4xf32"
    product = "%r = dot_general %x, %s, contracting_dims = [0] x [0] -> 4x4xf32"
    text = module(args, f"%t = transpose %y, dims = [2, 0, 1]; {lines}; {product}")
    assert ("stablehlo.optimization_barrier" in hl.lower(text, target="litert").text) is is_held


def behind_a_reshape(count, element):
    """Numbers that are read again, and in another shape subtracted from another number."""
    shape = f"1x{count}x1x{element}"
    return module(
        f"%x: {count}x{element}, %y: {count}x{element}",
        f"""%b = maximum %x, %y; %a = add %b, %y; %n = reshape %a -> {shape}; %c = constant 3 : {shape}
        %s = subtract %c, %n; %t = reshape %s -> {count}x{element}; %r = maximum %t, %a""",
    )


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize(("count", "element"), [(2, "i32"), (16, "i32"), (1, "i64")])
def test_few_numbers_are_written_over_too(judge, count, element):
    """The keys of a short sort, which is done on what they leave to the greatest one, are read again behind it."""
    text = behind_a_reshape(count, element)
    reference = reference_of(text)
    assert judge.judge(text, reference.runs, reference.rounding).result == "wrong"
    lowered = hl.lower(text, target="litert")
    assert judge.judge(lowered.text, reference.runs, reference.rounding).result == "right"


@pytest.mark.parametrize(("count", "element", "is_moved"), [(2, "i32", True), (1, "i64", True), (1, "i32", False)])
def test_few_numbers_are_computed_before_the_reshape(count, element, is_moved):
    """Also seen without LiteRT; what has 4 bytes is not shared."""
    lowered = hl.lower(behind_a_reshape(count, element), target="litert")
    [difference] = [op for op in lowered.graph.main.body.nodes if op.name == "stablehlo.subtract"]
    assert (len(difference.result().shape) == 1) is is_moved


def in_functions(lines):
    """Numbers that are read again, and subtracted from another number in a function of a function."""
    return f"""
      func.func public @main(%x: tensor<12xi32>, %y: tensor<12xi32>) -> tensor<12xi32> {{
        %b = stablehlo.maximum %x, %y : tensor<12xi32>
        %a = stablehlo.add %b, %y : tensor<12xi32>
        %s = call @reshaped(%a) : (tensor<12xi32>) -> tensor<12xi32>
        %r = stablehlo.maximum %s, %a : tensor<12xi32>
        return %r : tensor<12xi32>
      }}
      func.func private @reshaped(%a: tensor<12xi32>) -> tensor<12xi32> {{
        {lines}
        %s = call @subtracted(%n) : (tensor<1x12xi32>) -> tensor<1x12xi32>
        %r = stablehlo.reshape %s : (tensor<1x12xi32>) -> tensor<12xi32>
        return %r : tensor<12xi32>
      }}
      func.func private @subtracted(%n: tensor<1x12xi32>) -> tensor<1x12xi32> {{
        %c = stablehlo.constant dense<-1> : tensor<1x12xi32>
        %r = stablehlo.subtract %c, %n : tensor<1x12xi32>
        return %r : tensor<1x12xi32>
      }}"""


IN_FUNCTIONS = {
    "reshape": "%n = stablehlo.reshape %a : (tensor<12xi32>) -> tensor<1x12xi32>",
    "nothing reversed": """%m = stablehlo.reshape %a : (tensor<12xi32>) -> tensor<1x12xi32>
        %n = stablehlo.reverse %m, dims = [0] : tensor<1x12xi32>""",
    "broadcast": "%n = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<12xi32>) -> tensor<1x12xi32>",
}


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", IN_FUNCTIONS)
def test_numbers_that_another_function_reads_again(judge, name):
    """It inlines functions: in `jnp.unique` of what is computed the keys are read again behind the sort."""
    text = in_functions(IN_FUNCTIONS[name])
    reference = reference_of(text)
    assert judge.judge(text, reference.runs, reference.rounding).result == "wrong"
    lowered = hl.lower(text, target="litert")
    assert judge.judge(lowered.text, reference.runs, reference.rounding).result == "right"


def test_what_is_turned_is_not_moved():
    """A broadcast in another order of dims is a transposition, which stays in front of what is computed."""
    text = module(
        "%x: 3x4xi32, %y: 4x3xi32",
        """%a = add %x, %x; %t = broadcast_in_dim %a, dims = [1, 0] -> 4x3xi32; %s = subtract %t, %y
        %u = transpose %s, dims = [1, 0]; %r = maximum %u, %a""",
    )
    x, y = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(-17, -5, dtype=np.int32).reshape(4, 3)
    [found] = results(hl.lower(text, target="litert"), x, y)
    assert np.array_equal(found, 2 * x - y.T)


CHANNELS = {
    "one": ("1x3x3x3x1", "2x2x2x1x2", "1x4x4x4x2", "pad = [[1, 1], [1, 1], [1, 1]]", 1),
    "one, dilated": (
        "1x3x3x3x1",
        "2x2x2x1x2",
        "1x7x5x4x2",
        "pad = [[1, 2], [1, 2], [1, 1]], lhs_dilate = [2, 1, 1]",
        1,
    ),
    "one in each group": ("1x3x3x3x2", "2x2x2x1x2", "1x4x3x4x2", "pad = [[1, 1], [-1, 2], [1, 1]]", 2),
}


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", CHANNELS)
def test_padded_convolutions_of_volumes_of_one_channel(judge, name):
    """They end the process: gradients of kernels, whose batch is the channels of what was convolved."""
    value, kernel, result, window, groups = CHANNELS[name]
    value, kernel, result = (f"tensor<{shape}xf32>" for shape in (value, kernel, result))
    text = f"""
      func.func public @main(%x: {value}, %k: {kernel}) -> {result} {{
        %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f],
          window = {{{window}}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
          : ({value}, {kernel}) -> {result}
        return %r : {result}
      }}"""
    reference, lowered = reference_of(text), hl.lower(text, target="litert")
    assert lowered.refused == ()
    assert judge.judge(text, reference.runs, reference.rounding).result != "right"
    assert judge.judge(lowered.text, reference.runs, reference.rounding).result == "right"


def of_chlo(op, element):
    """One operation of chlo."""
    result = "i1" if op.startswith("is_") else element
    text = f"%r = chlo.{op} %x : tensor<8x{element}> -> tensor<8x{result}>"
    return f"func.func @main(%x: tensor<8x{element}>) -> tensor<8x{result}> {{ {text} return %r : tensor<8x{result}> }}"


def test_a_matrix_is_turned_in_another_function():
    """The gradient of an inverse solves in one function, and multiplies in another one."""
    t, last = "tensor<4x4xf32>", "tensor<4x1x4xf32>"
    text = f"""
      func.func public @main(%x: {t}, %y: {last}) -> {t} {{
        %s = call @turned(%y) : ({last}) -> {t}
        %r = call @product(%x, %s) : ({t}, {t}) -> {t}
        return %r : {t}
      }}
      func.func private @turned(%y: {last}) -> {t} {{
        %t = stablehlo.transpose %y, dims = [2, 0, 1] : ({last}) -> tensor<4x4x1xf32>
        %s = stablehlo.reshape %t : (tensor<4x4x1xf32>) -> {t}
        return %s : {t}
      }}
      func.func private @product(%x: {t}, %s: {t}) -> {t} {{
        %r = stablehlo.dot_general %x, %s, contracting_dims = [0] x [0] : ({t}, {t}) -> {t}
        return %r : {t}
      }}"""
    assert "stablehlo.optimization_barrier" in hl.lower(text, target="litert").text
    unturned = text.replace("call @product(%x, %s)", "call @product(%x, %x)")
    assert "stablehlo.optimization_barrier" not in hl.lower(unturned, target="litert").text


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("apart", [1e-25, 1e-30, 0.0])
def test_eigenvalues_of_a_matrix_that_is_almost_diagonal(judge, apart):
    """A rotation by next to nothing took the root of an infinity, which is NaN to LiteRT."""
    given = np.array([[1.0, apart, 0.5], [apart, 3.0, 0.0], [0.5, 0.0, 2.0]], np.float32)
    text = hl.export(jnp.linalg.eigvalsh, given).mlir_module()
    reference, lowered = reference_of(text, inputs=[given]), hl.lower(text, target="litert")
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("element", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("op", [jnp.argmax, jnp.argmin])
def test_the_place_of_an_extreme_of_narrow_integers(judge, op, element):
    """The extreme begins at the end of i32, in which it is computed: LiteRT knows no other; ends of the type, too."""
    limits = np.iinfo(element)
    given = np.array([[3, 7, 7, 2], [limits.min] * 4, [limits.max] * 4, [5, limits.min, 0, limits.max]], element)
    text = hl.export(lambda x: op(x, axis=1), given).mlir_module()
    reference, lowered = reference_of(text, inputs=[given]), hl.lower(text, target="litert")
    assert lowered.refused == ()
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("element", ["int4", "uint4"])
def test_a_cache_of_four_bits_is_stored_in_more(judge, element):
    """No array of it can be given to the interpreter; sums wrap around as before."""
    cache, row = jax.ShapeDtypeStruct((5, 3), element), jax.ShapeDtypeStruct((3,), element)
    write = hl.export(lambda x, u, i: (x.at[i].set(u + u), x.astype("float32")), cache, row, np.int32(1))
    text, lowered = write.mlir_module(), hl.lower(write, target="litert")
    assert lowered.refused == ()
    reference = reference_of(text).for_signature_of(lowered.text)
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message
    assert judge.judge(text, reference_of(text).runs, reference.rounding).result == "refused"


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize(("sizes", "is_kept"), [((2, 2, 4, 3), False), ((1, 2, 4, 3), True)])
def test_windows_of_many_dims(judge, sizes, is_kept):
    """Its converter pads their starts with a dim more than it pads; starts are out of bounds, too."""
    shape, result = (2, 4, 4, 3), "x".join(map(str, (3, *sizes)))
    numbers = "offset_dims = [1, 2, 3, 4], start_index_map = [0, 1, 2, 3], index_vector_dim = 1"
    text = module(
        f"%x: {'x'.join(map(str, shape))}xf32, %i: 3x4xi32",
        f'%r = "stablehlo.gather"(%x, %i) <{{slice_sizes = array<i64: {", ".join(map(str, sizes))}>, '
        f"dimension_numbers = #stablehlo.gather<{numbers}>}}> "
        f": (tensor<2x4x4x3xf32>, tensor<3x4xi32>) -> tensor<{result}xf32>",
    )
    reference, lowered = reference_of(text), hl.lower(text, target="litert")
    assert lowered.refused == ()
    assert judge.judge(lowered.text, reference.runs, reference.rounding).result == "right"
    assert ("array<i64: 1, 2, 4, 3>" in lowered.text) is is_kept
    if not is_kept:
        assert "5-D" in judge.judge(text, reference.runs, reference.rounding).message


def test_an_extreme_from_another_number_keeps_it():
    """A maximum from the greatest number is that one, and stays it in a wider type."""
    for start, is_kept in ((127, True), (-128, False)):
        text = module(
            "%x: 6xi8",
            f"%s = constant {start} : i8; %r = reduce(%x, %s) <dimensions = array<i64: 0>> {{maximum}} -> i8",
        )
        lowered = hl.lower(text, target=hl.Target("npu", op_dtypes={"stablehlo.reduce": ["i32"]}))
        assert ("dense<-2147483648> : tensor<i32>" in lowered.text) is not is_kept
        assert "dense<2147483647>" not in lowered.text


CHLO = [("square", "bf16"), ("square", "f16"), ("is_inf", "f32"), ("is_pos_inf", "f32"), ("is_neg_inf", "bf16")]


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize(("op", "element"), CHLO)
def test_functions_of_chlo_of_numbers_at_the_edges(judge, op, element):
    """LiteRT rejects `jnp.square` of bf16 (the norm of each layer of Gemma), and finds no infinity to be one."""
    text = of_chlo(op, element)
    given = np.array([np.inf, -np.inf, np.nan, 1e4, -3.0, 0.0, 0.1, 7.0]).astype(dtype_of(element))
    reference, lowered = reference_of(text, inputs=[given]), hl.lower(text, target="litert", legalize=op != "square")
    assert lowered.refused == ()
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message
    assert hl.verify(text, lowered).ok


@pytest.mark.parametrize("op", ["acos", "acosh", "asin", "atan"])
def test_functions_of_chlo_in_types_that_are_rejected_are_told(op):
    """Also seen without LiteRT; some are written out, with --legalize."""
    assert [one.op for one in hl.lower(of_chlo(op, "bf16"), target="litert").refused] == [f"chlo.{op}"]
    assert hl.lower(of_chlo(op, "f32"), target="litert").refused == ()


BATCHED = (
    "offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], "
    "index_vector_dim = 1"
)
STARTING = {
    "gather": f"%s = reshape %i -> 2x1xINDEX; %r = gather(%x, %s) "
    f"<dimension_numbers = #stablehlo.gather<{BATCHED}>, slice_sizes = array<i64: 1, 3>> -> 2x3xf32",
    "dynamic_slice": "%a = slice %i [0:1]; %s = reshape %a -> INDEX; %r = dynamic_slice %x, %s, %s, sizes = [1, 3]",
    "dynamic_update_slice": "%a = slice %i [1:2]; %s = reshape %a -> INDEX; %u = slice %x [0:1, 0:3]; "
    "%r = dynamic_update_slice %x, %u, %s, %s",
}
"""Ops that start somewhere: LiteRT reads elsewhere, ends the process, or has no kernel, where that is no i32."""


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "ui32", "i64"])
@pytest.mark.parametrize("op", STARTING)
def test_starts_of_any_type(judge, op, element):
    """Also such as are outside, and no i32."""
    text = module(f"%x: 2x6xf32, %i: 2x{element}", STARTING[op].replace("INDEX", element))
    limits = np.iinfo(element.replace("ui", "uint") if element[0] == "u" else element.replace("i", "int"))
    for pair in [(1, 2), (0, limits.max), (limits.min, limits.max)]:
        given = [np.arange(12, dtype=np.float32).reshape(2, 6), np.asarray(pair, limits.dtype)]
        reference, lowered = reference_of(text, inputs=given), hl.lower(text, target="litert")
        assert lowered.refused == ()
        found = judge.judge(lowered.text, reference.runs, reference.rounding)
        assert found.result == "right", found.message


MANY_DIMS = {
    "stablehlo.add": 7,
    "stablehlo.clamp": 6,
    "stablehlo.divide": 7,
    "stablehlo.maximum": 6,
    "stablehlo.minimum": 6,
    "stablehlo.multiply": 7,
    "stablehlo.power": 5,
    "stablehlo.subtract": 7,
    "chlo.erf": 7,
    "chlo.lgamma": 5,
}
"""In how many dims an operation, or what it is made of, does not repeat an operand."""


def of_many_dims():
    """Each of these operations on numbers of as many dims, and on one number that is repeated; all results in a row."""
    lines = []
    for k, (op, dims) in enumerate(MANY_DIMS.items()):
        t = f"tensor<{'1x' * (dims - 2)}2x3xf32>"
        told = {
            "stablehlo.clamp": f"%y, %x{k}, %y : (tensor<f32>, {t}, tensor<f32>) -> {t}",
            "chlo.erf": f"%x{k} : {t} -> {t}",
            "chlo.lgamma": f"%x{k} : {t} -> {t}",
        }.get(op, f"%x{k}, %y{k} : {t}")
        lines += [
            f"%x{k} = stablehlo.reshape %x : (tensor<6xf32>) -> {t}",
            f"%y{k} = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> {t}",
            f"%a{k} = {op} {told}",
            f"%r{k} = stablehlo.reshape %a{k} : ({t}) -> tensor<6xf32>",
        ]
    results = ", ".join(f"%r{k}" for k in range(len(MANY_DIMS)))
    types = ", ".join(["tensor<6xf32>"] * len(MANY_DIMS))
    body = "\n".join([*lines, f"return {results} : {types}"])
    return f"func.func @main(%x: tensor<6xf32>, %y: tensor<f32>) -> ({types}) {{\n{body}\n}}\n"


def test_what_repeats_an_operand_has_few_dims():
    """Also seen without LiteRT; what it takes whole, and is made of such operations, too."""
    lowered = hl.lower(of_many_dims(), target="litert")
    assert lowered.refused == ()
    for op, dims in MANY_DIMS.items():
        [line] = [line for line in lowered.text.splitlines() if f" {op} " in line]
        assert f"<{'1x' * (dims - 2)}2x3xf32>" not in line


@pytest.mark.litert
@NO_LITERT
def test_integers_are_divided_by_zero(judge):
    """Its kernel ends the run there, and the process where the least number is divided by -1."""
    text = module("%x: 6xi32, %y: 6xi32", "%r = divide %x, %y")
    least = -(2**31)
    inputs = [np.int32([7, -7, 0, least, least, 9]), np.int32([0, 0, 0, -1, 0, -2])]
    run = ConsumerRun(inputs, [np.int32([-1, -1, -1, least, -1, -4])])
    lowered = hl.lower(text, target="litert").text
    assert [judge.judge(one, [run], Rounding((True,))).result for one in (text, lowered)] == ["refused", "right"]


DIVISORS = [
    ("%r = divide %x, %y", True),
    ("%r = divide %x, 3", False),
    ("%r = divide %x, -1", True),
    ("%c = constant 1 : 8xi32; %m = maximum %y, %c; %r = divide %x, %m", False),
    ("%c = constant 0 : 8xi32; %m = maximum %y, %c; %r = divide %x, %m", True),
]


@pytest.mark.usefixtures("in_full_time")
@pytest.mark.parametrize(("body", "is_guarded"), DIVISORS)
def test_divisors_that_may_be_zero_are_others(body, is_guarded):
    """Unless they are known not to be; and it is derived."""
    text = module("%x: 8xi32, %y: 8xi32", body)
    lowered = hl.lower(text, target="litert")
    assert (lowered.text.count("stablehlo.select") == 3, lowered.refused) == (is_guarded, ())
    assert all(region.basis == "derived" for region in hl.verify(text, lowered, level="regions").regions)


CLAMPS = [
    ("%r = clamp %x, %y, %z", True),
    ("%c = constant 0.0 : f32; %m = constant 6.0 : f32; %r = clamp %c, %y, %m", False),
    ("%c = constant 6.0 : f32; %m = constant 0.0 : f32; %r = clamp %c, %y, %m", True),
    ("%m = abs %x; %l = negate %m; %r = clamp %l, %y, %m", False),
    ("%l = negate %x; %r = clamp %l, %y, %x", True),
]


@pytest.mark.parametrize(("body", "is_written_out"), CLAMPS)
def test_clamps_whose_ends_may_cross_are_written_out(body, is_written_out):
    """Unless the least number is known not to be above the greatest one; and it is derived."""
    text = module("%x: 8xf32, %y: 8xf32, %z: 8xf32", body)
    lowered = hl.lower(text, target="litert")
    assert ("stablehlo.clamp" not in lowered.text, lowered.refused) == (is_written_out, ())
    assert all(region.basis == "derived" for region in hl.verify(text, lowered, level="regions").regions)


@pytest.mark.litert
@NO_LITERT
def test_a_clamp_between_crossing_ends_gives_the_greatest_number(judge):
    """As the specification has it; its own gives the least one."""
    text = module("%x: 3xi32, %y: 3xi32, %z: 3xi32", "%r = clamp %x, %y, %z")
    inputs = [np.int32([2, 2, -2]), np.int32([0, 7, 0]), np.int32([-2, -2, 2])]
    run = ConsumerRun(inputs, [np.int32([-2, -2, 0])])
    lowered = hl.lower(text, target="litert").text
    assert [judge.judge(one, [run], Rounding((True,))).result for one in (text, lowered)] == ["wrong", "right"]


CHOSEN = "%c = constant 1 : 8xi32; %o = constant -1 : 8xi32; %z = constant 0 : 8xi32; %p = compare EQ, %y, %o; "
CHOSEN_DIVISORS = [
    ("%q = compare EQ, %y, %z; %i = select %q, %c, %y; %d = select %p, %c, %i", False),
    ("%q = compare EQ, %y, %z; %b = or %p, %q; %i = select %b, %c, %y; %d = reverse %i, dims = [0]", False),
    ("%q = compare NE, %y, %z; %i = select %q, %c, %y; %d = select %p, %c, %i", True),
    ("%q = compare EQ, %x, %z; %i = select %q, %c, %y; %d = select %p, %c, %i", True),
    ("%q = compare EQ, %y, %z; %i = select %q, %o, %y; %d = select %p, %c, %i", True),
    ("%q = compare EQ, %y, %z; %i = select %q, %c, %y; %b = reverse %i, dims = [0]; %d = select %p, %c, %b", True),
    ("%q = compare EQ, %y, %z; %b = or %p, %q; %i = reverse %y, dims = [0]; %d = select %b, %c, %i", True),
]


@pytest.mark.parametrize(("body", "is_guarded"), CHOSEN_DIVISORS)
def test_divisors_that_are_chosen_are_guarded_once(body, is_guarded):
    """One select after the other may replace 0 and -1; a condition on other values or places says nothing."""
    text = module("%x: 8xi32, %y: 8xi32", f"{CHOSEN}{body}; %r = divide %x, %d")
    lowered = hl.lower(text, target="litert")
    assert (lowered.text.count("stablehlo.select") > text.count("select")) is is_guarded


def test_a_remainder_is_guarded_once():
    """A floored quotient (`torch.floor_divide`, `jnp.floor_divide`) has an outcome of each of its comparisons."""
    text = module("%x: 8xi32, %y: 8xi32", "%r = remainder %x, %y")
    lowered = hl.lower(text, target="litert")
    assert (lowered.text.count("stablehlo.select"), hl.verify(text, lowered).ok) == (3, True)


@pytest.mark.parametrize("op", ["sinh", "asinh", "atanh"])
def test_what_is_written_out_in_such_functions_is_lowered_further(op):
    """Its form in StableHLO holds log_plus_one or exponential_minus_one, which have forms of their own."""
    lowered = hl.lower(
        module("%x: 8xf32", f"%r = chlo.{op} %x : tensor<8xf32> -> tensor<8xf32>"), target="litert", legalize=True
    )
    assert (lowered.refused, "plus_one" in lowered.text, "minus_one" in lowered.text) == ((), False, False)


@pytest.mark.litert
@NO_LITERT
def test_what_repeats_an_operand_runs_in_many_dims(judge):
    """Its converter repeats a number within an addition of up to six dims, a maximum of five, a power of four."""
    text = of_many_dims()
    inputs = [np.linspace(0.25, 1.5, 6, dtype=np.float32), np.float32(0.75)]
    reference, lowered = reference_of(text, inputs=inputs), hl.lower(text, target="litert")
    assert judge.judge(text, reference.runs, reference.rounding).result == "refused"
    found = judge.judge(lowered.text, reference.runs, reference.rounding)
    assert found.result == "right", found.message


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("op", ["sine", "cosine"])
def test_functions_of_large_angles_have_their_digits(judge, op):
    """Of its own 2e-6 is left at 10^6, and beyond 10^8 no number between -1 and 1."""
    x = np.float32([0.5, 3.0, -7.0, 100.0, -1e3, 1e5, -1e6, 2**31, 1e30, -3e38])
    expected = [np.sin, np.cos][op == "cosine"](x.astype(np.float64)).astype(np.float32)
    body = f"%f = {op} %x; %d = subtract %f, %y; %m = abs %d; %r = compare LE, %m, 4.0e-7"
    text = module("%x: 10xf32, %y: 10xf32", body)
    run = ConsumerRun([x, expected], [np.ones(10, bool)])
    texts = text, hl.lower(text, target="litert").text
    assert [judge.judge(one, [run], Rounding((True,))).result for one in texts] == ["wrong", "right"]


def of_channels(channels):
    """A convolution of so many channels, each by itself."""
    x, k, r = f"1x1x5x{channels}xf32", f"1x4x1x{channels}xf32", f"1x1x2x{channels}xf32"
    dims = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}"
    groups = f"{{batch_group_count = 1 : i64, feature_group_count = {channels} : i64}}"
    return (
        f"func.func @main(%x: tensor<{x}>, %k: tensor<{k}>) -> tensor<{r}> {{\n"
        f"  %r = stablehlo.convolution(%x, %k) {dims} {groups} : (tensor<{x}>, tensor<{k}>) -> tensor<{r}>\n"
        f"  return %r : tensor<{r}>\n}}\n"
    )


@pytest.mark.parametrize(("channels", "count"), [(4832, 1), (4840, 2)])
def test_a_convolution_has_no_more_channels_than_there_is_room_for(channels, count):
    """Several take the place of one of more."""
    assert hl.lower(of_channels(channels), target="litert").text.count("stablehlo.convolution") == count


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("channels", [4832, 4840])
def test_a_convolution_of_many_channels_ends(judge, channels):
    """Its kernel has room for 4,832 results of a place, and goes on for ever with more of them."""
    text = of_channels(channels)
    reference, lowered = reference_of(text, runs=1), hl.lower(text, target="litert")
    assert judge.judge(lowered.text, reference.runs, reference.rounding).result == "right"


IN_PLACE = {
    "add": "%s = add %n, %t",
    "subtract": "%s = subtract %n, %t",
    "multiply": "%s = multiply %n, %t",
    "divide": "%s = divide %n, %t",
    "of a number": "%k = constant 3 : 8x8xi32; %s = subtract %k, %n",
    "an update": "%v = reshape %u -> 1x8xi32; %s = dynamic_update_slice %n, %v, %p, %p",
    "an update of a row": "%w = reshape %b -> 1x64xi32; %l = reshape %u -> 1x8xi32; %o = constant 0 : i32; "
    "%d = dynamic_update_slice %w, %l, %o, %p; %s = reshape %d -> 8x8xi32",
}
MADE = {
    "add": "%b = add %a, %x",
    "divide": "%b = divide %a, %x",
    "an update": "%b = dynamic_update_slice %a, %u, %p",
    "a call": "%b = call @f(%a, %x) -> 64xi32",
    "two updates": "%i = dynamic_update_slice %a, %u, %p; %o1 = constant 9 : i32; "
    "%b = dynamic_update_slice %i, %u, %o1",
}
READ_AGAIN = """%a = add %y, %x; {made}; %n = reshape %b -> 8x8xi32; %m = reshape %z -> 8x8xi32
    %t = transpose %m, dims = [1, 0] -> 8x8xi32
    {used}; %e = transpose %s, dims = [1, 0] -> 8x8xi32; %q = reshape %e -> 64xi32; %r = maximum %q, %b"""


def read_again(made, used):
    """A number that is read again, behind what is computed of its reshape."""
    body = READ_AGAIN.format(made=MADE[made], used=IN_PLACE[used])
    given = "%x: 64xi32, %y: 64xi32, %z: 64xi32, %u: 8xi32, %p: i32"
    inner = function("private @f", "%v: 64xi32, %w: 64xi32", "%r = add %v, %w") if made == "a call" else ""
    return module(given, body) + inner


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("made", MADE)
def test_what_is_read_again_is_not_written_over(judge, made):
    """The interpreter does arithmetic in the memory of an operand. It counts the readers of the number that lay there
    first, and no longer those of a number that took its place, where a reshape comes between."""
    for used in IN_PLACE:
        text = read_again(made, used)
        wanted = reference_of(text)
        lowered = hl.lower(text, target="litert").text
        found = [judge.judge(one, wanted.runs, wanted.rounding).result for one in (text, lowered)]
        assert found[1] == "right", used
        assert found[0] != "right" or (used, "update" in made) == ("an update of a row", True)  # the reshapes are one


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-2, 1), (1, 1)])
def test_a_convolution_of_what_is_cut_off_is_right_as_it_is(judge, low, high):
    """Cut off in front and padded behind, XLA reads beyond the end; LiteRT does not, and is not said to be wrong."""
    x, k, r = "1x7x7x2xf32", "2x2x2x2xf32", f"1x{6 + low + high}x6x2xf32"
    text = module(
        f"%x: {x}, %k: {k}",
        "%r = convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        f"window = {{pad = [[{low}, {high}], [0, 0]]}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} -> {r}",
    )
    reference, lowered = reference_of(text), hl.lower(text, target="litert").text
    assert "stablehlo.pad" not in lowered
    assert judge.judge(lowered, reference.runs, reference.rounding).result == "right"


RESHAPED = {
    "in two shapes": "%a = reshape %u -> 18xi32; %b = multiply %a, %k; %n = reshape %b -> 9x2xi32; "
    "%s = subtract %k, %b",
    "of a sum": "%a = reshape %u -> 18xi32; %c = add %a, %k; %b = multiply %c, %k; %n = reshape %b -> 9x2xi32; "
    "%s = subtract %k, %b",
    "reshaped twice": "%b = reshape %u -> 18xi32; %n = reshape %b -> 9x2xi32; %s = subtract %k, %b",
    "by what is moved": "%b = reshape %u -> 9x2xi32; %n = reshape %b -> 9x2xi32; %l = constant 3 : 9x2xi32; "
    "%s = subtract %l, %n",
    "of two": "%v = multiply %x, %u; %a = reshape %u -> 18xi32; %c = reshape %v -> 18xi32; %b = add %a, %c; "
    "%n = reshape %b -> 9x2xi32; %s = subtract %k, %b",
    "of another function": "%b = call @f(%x) -> 18xi32; %n = reshape %b -> 9x2xi32; %s = subtract %k, %b",
    "in another function": "%a = reshape %u -> 18xi32; %b = multiply %a, %k; %n = reshape %b -> 9x2xi32; "
    "%s = call @g(%b) -> 18xi32",
}
FUNCTIONS = {
    "@f": function(
        "private @f",
        "%v: 6x3xi32",
        "%l = constant 9 : 18xi32; %w = add %v, %v; %i = reshape %w -> 18xi32; %r = multiply %i, %l",
    ),
    "@g": function("private @g", "%v: 18xi32", "%l = constant 3 : 18xi32; %r = subtract %l, %v"),
}


def reshaped(read):
    """A module in which a number is read in two shapes, once by arithmetic."""
    body = f"""%w = add %x, %y; %u = multiply %w, %x; %k = constant 9 : 18xi32
        {RESHAPED[read]}; %t = reshape %s -> 3x6xi32
        %e = transpose %t, dims = [1, 0] -> 6x3xi32; %q = reshape %e -> 9x2xi32; %r = maximum %q, %n"""
    called = "".join(inner for name, inner in FUNCTIONS.items() if name in body)
    return module("%x: 6x3xi32, %y: 6x3xi32", body) + called


@pytest.mark.parametrize("read", RESHAPED)
def test_what_may_be_reshaped_later_is_held_back(read):
    """Where one of two reshapes is left; the others are computed in front of the reshape."""
    text = hl.lower(reshaped(read), target="litert").text
    assert text.count("optimization_barrier") == (read in ("in two shapes", "of a sum") or "function" in read)


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("read", RESHAPED)
def test_what_a_reshape_is_moved_behind_is_not_written_over(judge, read):
    """The converter computes before a reshape; what is read then is a reshape of a number that is read again."""
    text = reshaped(read)
    wanted = reference_of(text)
    texts = text, hl.lower(text, target="litert").text
    assert [judge.judge(one, wanted.runs, wanted.rounding).result for one in texts] == ["wrong", "right"]


SWAPPED = {
    "of one less": "%t = transpose %x, dims = [1, 0] -> 3x2xf32; %c = constant 1.0 : 3x2xf32; %r = subtract %c, %t",
    "one over it": "%t = transpose %x, dims = [1, 0] -> 3x2xf32; %c = constant 1.0 : 3x2xf32; %r = divide %c, %t",
    "from places": "%t = transpose %x, dims = [1, 0] -> 3x2xf32; %c = iota dim = 0 : 3x2xf32; %r = subtract %c, %t",
    "a function of it": "%t = transpose %x, dims = [1, 0] -> 3x2xf32; %c = constant 1.0 : 3x2xf32; "
    "%e = exponential %t; %s = multiply %e, %c; %r = subtract %c, %s",
    "in another function": "%t = call @t(%x) -> 3x2xf32; %c = constant 1.0 : 3x2xf32; %r = subtract %c, %t",
    "windows": "%i = constant 0xFF800000 : f32; %c = constant 1.0 : 1x2x2x2xf32; "
    "%p = reduce_window(%y, %i) <window_dimensions = array<i64: 1, 1, 2, 2>, "
    "window_strides = array<i64: 1, 1, 2, 2>> {maximum} -> 1x2x2x2xf32; %r = subtract %c, %p",
    "a convolution": "%p = convolution(%y, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} -> 1x2x3x3xf32; "
    "%c = constant 1.0 : 1x2x3x3xf32; %r = subtract %c, %p",
    "a gather": "%g = gather(%x, %at) <dimension_numbers = #stablehlo.gather<offset_dims = [0], "
    "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>> "
    "-> 2x2xf32; %c = constant 1.0 : 2x2xf32; %r = subtract %c, %g",
}


def swapped(name):
    """A module whose sides the converter swaps, as it stands."""
    inner = function("private @t", "%v: 2x3xf32", "%r = transpose %v, dims = [1, 0] -> 3x2xf32")
    text = module("%x: 2x3xf32, %y: 1x2x4x4xf32, %k: 2x2x2x2xf32, %at: 2x1xi32", SWAPPED[name])
    return text + (inner if "@t" in SWAPPED[name] else "")


@pytest.mark.parametrize("name", SWAPPED)
def test_what_may_be_turned_is_held_back(name):
    assert hl.lower(swapped(name), target="litert").text.count("optimization_barrier") == 1


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", SWAPPED)
def test_sides_are_not_swapped_before_a_transpose(judge, name):
    """The converter makes (x - 1).T of 1 - x.T."""
    text = swapped(name)
    wanted = reference_of(text)
    texts = text, hl.lower(text, target="litert").text
    assert [judge.judge(one, wanted.runs, wanted.rounding).result for one in texts] == ["wrong", "right"]


UNTURNED = {
    "what is given": "%e = exponential %x; %r = subtract %c, %e",
    "a product": "%e = dot_general %x, %y, contracting_dims = [1] x [1] -> 3x2xf32; %r = subtract %c, %e",
    "a product of columns": "%e = dot_general %z, %w, contracting_dims = [0] x [0] -> 3x2xf32; %r = subtract %c, %e",
    "a layer and its sigmoid": "%d = dot_general %x, %y, contracting_dims = [1] x [1] -> 3x2xf32; "
    "%n = negate %d; %e = exponential %n; %s = add %c, %e; %r = divide %c, %s",
}


@pytest.mark.litert
@NO_LITERT
@pytest.mark.parametrize("name", UNTURNED)
def test_a_constant_less_what_is_not_turned_is_left(judge, name):
    """Nothing is turned there, and it is right as it stands: no barrier, which would keep a sigmoid apart."""
    text = module(
        "%x: 3x2xf32, %y: 2x2xf32, %z: 4x3xf32, %w: 4x2xf32", f"%c = constant 1.0 : 3x2xf32; {UNTURNED[name]}"
    )
    assert "optimization_barrier" not in hl.lower(text, target="litert").text
    wanted = reference_of(text)
    assert judge.judge(text, wanted.runs, wanted.rounding).result == "right"


def given(more=""):
    """A function that computes behind a reshape of its argument, which the caller reads again; and more calls of it."""
    return module(
        "%x: 64xi32, %y: 64xi32",
        f"%a = add %y, %x; %b = add %a, %x; %s = call @f(%b) -> 64xi32; {more}%r = maximum %s, %b",
    ) + function(
        "private @f",
        "%v: 64xi32",
        "%n = reshape %v -> 8x8xi32; %k = constant 3 : 8x8xi32; %s = subtract %k, %n; "
        "%t = transpose %s, dims = [1, 0] -> 8x8xi32; %r = reshape %t -> 64xi32",
    )


MANY_CALLS = "".join(f"%n{k} = negate %x; %c{k} = call @f(%n{k}) -> 64xi32; " for k in range(60))


@pytest.mark.parametrize("more", ["", MANY_CALLS], ids=["one call", "many calls"])
def test_what_a_function_is_given_may_be_read_again(more):
    """What any of its callers gives is looked at: the subtraction stands in front of the reshape."""
    lowered = hl.lower(given(more), target="litert").text
    assert re.search(r"stablehlo\.subtract .*: tensor<64xi32>", lowered)
    assert more or hl.verify(given(more), lowered).ok


@pytest.mark.litert
@NO_LITERT
def test_what_a_function_is_given_is_not_written_over(judge):
    wanted = reference_of(given())
    texts = given(), hl.lower(given(), target="litert").text
    assert [judge.judge(one, wanted.runs, wanted.rounding).result for one in texts] == ["wrong", "right"]


@pytest.mark.litert
@NO_LITERT
def test_what_is_built_is_run_from_its_file(judge, tmp_path):
    """With a setting of the converter; the file is one of LiteRT's."""
    reference, path = reference_of(three("add")), tmp_path / "m.tflite"
    build = Build(str(path), ["enable_x64=false"])
    assert judge.judge(three("add"), reference.runs, reference.rounding, build).result == "right"
    assert path.read_bytes()[4:8] == b"TFL3"


@pytest.mark.coreml
@NO_COREML
def test_a_module_is_converted_or_refused_by_core_ml(tmp_path):
    """It is not run; a refusal has the converter's message and the op. In a package floats are as wide as they were,
    unless it is asked for otherwise."""
    added, path = module("%a: 3x2xf32", "%r = add %a, %a"), tmp_path / "m.mlpackage"
    with Judge(COREML) as judge:
        assert judge.judge(added, (), Rounding(())).result == "converted"
        for flags, narrow in (((), False), (["compute_precision=FLOAT16"], True)):
            assert judge.judge(added, (), Rounding(()), Build(str(path), flags)).result == "converted"
            model = path / "Data" / "com.apple.CoreML" / "model.mlmodel"
            assert (b"fp16" in model.read_bytes()) == narrow
            shutil.rmtree(path)
        refused = judge.judge(CUSTOM, (), Rounding(()))
    assert (refused.result, refused.cause) == ("refused", "stablehlo.custom_call @of_my_own")
