"""Linalg on IREE: generic, named, and named after generalization, a module computes what XLA does."""

import itertools
import re

import iree_runs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from iree_runs import compiled, generalized, run_on_iree
from leaving import left_as_linalg
from open_spellings import OPEN_GROUPS
from test_one_form import source_of
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.consumers.iree import LOOPS
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.verify.run import Executable

OPERAND = np.arange(36, dtype=np.float32).reshape(9, 4)
ROWS = np.full((3, 4), 100.0, np.float32)
WORDS = np.arange(9, dtype=np.uint32) + np.uint32(2**31)


def decode(x, row, at):
    """One window at a runtime place; JAX counts negative places from the end."""
    return x.at[at].set(row[0], mode="drop")


def run_of_rows(x, rows, start):
    """Rows at start, start + 1, ...; those outside are dropped."""
    return x.at[start + jnp.arange(3)].set(rows, mode="drop")


def strided(x, rows):
    """Every third row."""
    return x.at[1::3].set(rows)


def gradient(x, rows, places):
    """Sums to places that may repeat, in order: the structured loop."""
    return x.at[places].add(jnp.tile(rows, (14, 1))[:40], mode="drop")


def unsigned(x, places):
    """Unsigned words beyond the signed range, compared and divided."""
    return jnp.maximum(x.at[places].max(jnp.uint32(2**31 + 5), mode="drop") // 3, x >> 3)


def control(x, n):
    """A scan, a loop that stops by its data, and a switch that clamps its index."""
    s, _ = jax.lax.scan(lambda c, row: (c * 0.5 + row.sum(), None), jnp.float32(0), x)
    m = jax.lax.while_loop(lambda i: i * i < n, lambda i: i + 1, jnp.int32(0))
    return jax.lax.switch(m, [lambda: s, lambda: s + 1, lambda: s * 2]), m


FAR = np.iinfo(np.int32)
CASES = {  # a function, its arguments but for places, and the places
    "strided": (strided, [OPERAND, ROWS], [()]),
    "decode": (decode, [OPERAND, ROWS], [(np.int32(at),) for at in (4, 9, -1, FAR.max, FAR.min)]),
    "rows": (run_of_rows, [OPERAND, ROWS], [(np.int32(at),) for at in (7, -11)]),
    "loop": (gradient, [OPERAND, ROWS], [((np.arange(40, dtype=np.int32) * 7) % 13 - 2,)]),
    "unsigned": (unsigned, [WORDS], [(np.array([3, 12, -1], np.int32),)]),
    "control": (control, [OPERAND], [(np.int32(30),), (np.int32(-3),)]),
}


def same_bits(expected: list[np.ndarray], actual: list[np.ndarray]) -> bool:
    """Whether results have the same bits; linalg has no signs."""
    return [np.asarray(a).tobytes() for a in expected] == [b.tobytes() for b in actual]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_both_forms_compute_what_xla_does(name):
    """Generic, named and `--linalg-generalize-named-ops` of the named form have XLA's bits, out of bounds too."""
    function, given, places = CASES[name]
    exported, texts = hl.export(function, *given, *places[0]), {}
    for named in (False, True):
        texts[named], report = left_as_linalg(exported, named=named)
        assert report.is_complete, report.lines()
    assert "linalg.map" in texts[True] or "linalg." not in texts[True]
    texts["generalized"] = generalized(texts[True])
    assert not any("linalg.map" in texts[form] for form in (False, "generalized"))
    for form, text in texts.items():
        run = compiled(text)
        for place in places:
            expected = jax.tree.leaves(jax.jit(function)(*given, *place))
            assert same_bits(expected, run([*given, *place])), (form, place)


TYPES = ("i8", "ui8", "i32", "ui32", "i64")
WRITES = "\n".join(
    f"%w{k} = reshape %i{k} -> 1x{kind}; %r{k} = scatter(%x, %w{k}, %u) <window=[0], inserted=[0], to=[0]> {{assign}}"
    for k, kind in enumerate(TYPES)
)
PAIR = "%r9 = scatter(%x, %p, %v) <window=[0, 1], to=[1, 0]> {assign}"


def test_places_of_every_type():
    """A start is tested as a scalar, with a sign or without, at the ends of its type and of the tensor; so are two."""
    indices = ", ".join(f"%i{k}: {kind}" for k, kind in enumerate(TYPES))
    text = module(
        f"%x: 9x4xf32, %u: 4xf32, %v: 2x3xf32, {indices}, %p: 2xi32",
        WRITES + "\n" + PAIR,
        ", ".join(f"%r{k}" for k in (*range(len(TYPES)), 9)),
    )
    left, report = left_as_linalg(text)
    assert report.is_complete
    assert left.count("scf.if") == left.count("tensor.insert_slice") == 1 + len(TYPES)
    assert left.count("arith.cmpi") == 2 + len(TYPES)
    assert "linalg" not in left
    assert re.findall(r"arith\.m[axinsu]*", left) == ["arith.minui"]  # ui32 becomes i32 by it
    run, native = compiled(left), Executable(text, "exact")
    rng, dtypes = np.random.default_rng(0), [mlir.dtype_of(kind) for kind in TYPES]
    given = [OPERAND, *(rng.normal(size=shape).astype(np.float32) for shape in ((4,), (2, 3)))]
    ends = [np.iinfo(dtype) for dtype in dtypes]
    for number in ("min", -1, 0, 1, 7, 8, 9, "max"):
        places = [getattr(end, number) if isinstance(number, str) else max(number, end.min) for end in ends]
        starts = [np.asarray(place, dtype) for place, dtype in zip(places, dtypes, strict=True)]
        for pair in itertools.product((places[2], -1, 0, 1, 2, 7, 8), repeat=2) if number == 0 else [(places[2], 0)]:
            arguments = [*given, *starts, np.array(pair, np.int32)]
            assert same_bits(native.run(arguments), run(arguments)), (number, pair)


def test_another_place_is_another_result():
    """The comparison can fail: a write one row further is found."""
    text, _ = left_as_linalg(hl.export(strided, OPERAND, ROWS))
    moved = text.replace("[1, 0] [3, 4] [3, 1]", "[2, 0] [3, 4] [3, 1]")
    assert moved != text
    expected = jax.tree.leaves(jax.jit(strided)(OPERAND, ROWS))
    assert same_bits(expected, run_on_iree(text, [OPERAND, ROWS]))
    assert not same_bits(expected, run_on_iree(moved, [OPERAND, ROWS]))


def test_reductions_and_products_agree_within_rounding():
    """Where floats are summed the forms may round apart: 64 terms, so 64 units of the sum of magnitudes."""
    a = np.random.default_rng(1).normal(size=(8, 64)).astype(np.float32)

    def sums(x):
        return x @ x.T, x.sum(axis=1), (x * x).max(axis=0)

    bound = 64 * np.finfo(np.float32).eps * float((a * a).sum(axis=1).max() + np.abs(a).sum(axis=1).max())
    expected = jax.tree.leaves(jax.jit(sums)(a))
    for named in (False, True):
        text, report = left_as_linalg(hl.export(sums, a), named=named)
        assert report.is_complete
        assert ("linalg.reduce" in text) is named
        for one, other in zip(expected, run_on_iree(text, [a]), strict=True):
            assert np.abs(np.asarray(one) - other).max() <= bound


CONVOLVED = (
    "%r = convolution(%x, %k) dim_numbers = [{0}]x[o, i, 0, 1]->[{0}], window = {{stride = [2, 1], pad = [[1, 0], "
    "[0, 2]], rhs_dilate = [1, 2]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} -> {1}"
)
GROUPED = CONVOLVED.replace("feature_group_count = 1", "feature_group_count = 2")
LAST = CONVOLVED.replace("[o, i, 0, 1]", "[0, 1, i, o]")
POOLED = (
    "%z = constant {0} : f32; %r = reduce_window(%x, %z) <window_dimensions = array<i64: 1, 2, 1, 3>, window_strides = "
    "array<i64: 1, 2, 1, 1>, padding = dense<[[0, 0], [1, 0], [0, 0], [0, 1]]> : tensor<4x2xi64>> {{{1}}} -> {2}"
)
OPEN_WINDOWS = {  # of open sizes, some of them along windows: arguments and the body of @main
    "convolution": ("%x: ?x2x?x5xf32, %k: 3x2x2x2xf32", CONVOLVED.format("b, f, 0, 1", "?x3x?x5xf32")),
    "convolution, other layout": ("%x: 5x?x2x?xf32, %k: 3x2x2x2xf32", CONVOLVED.format("1, 0, f, b", "5x?x3x?xf32")),
    "groups": ("%x: ?x4x?x5xf32, %k: 6x2x2x2xf32", GROUPED.format("b, f, 0, 1", "?x6x?x5xf32")),
    "groups, other layout": ("%x: 5x?x4x?xf32, %k: 6x2x2x2xf32", GROUPED.format("1, 0, f, b", "5x?x6x?xf32")),
    "channels last": ("%x: ?x?x5x4xf32, %k: 2x2x4x6xf32", LAST.format("b, 0, 1, f", "?x?x5x6xf32")),
    "each channel alone, last": (
        "%x: ?x?x5x2xf32, %k: 2x2x1x2xf32",
        LAST.format("b, 0, 1, f", "?x?x5x2xf32").replace("feature_group_count = 1", "feature_group_count = 2"),
    ),
    "padded by what its size is": (
        "%x: ?x?x5x4xf32, %k: 3x3x4x6xf32",
        lambda x, k: jax.lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
    ),
    "maximum": ("%x: ?x?x2x4xf32", POOLED.format("0xFF800000", "maximum", "?x?x2x3xf32")),
    "sum": ("%x: 2x?x?x4xf32", POOLED.format("0.0", "add", "2x?x?x3xf32")),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", [*OPEN_WINDOWS, *OPEN_GROUPS])
def test_open_sizes_agree(name):
    """In linalg throughout, and equal at two sizes: of whole numbers, so but for a softmax to the bit."""
    arguments, spelled = OPEN_WINDOWS.get(name) or OPEN_GROUPS[name]
    source = source_of(arguments, next(iter(spelled.values())) if isinstance(spelled, dict) else spelled)
    lowered, graph = hl.lower(source, target="linalg"), read(source)
    assert lowered.linalg.is_complete
    run, rng = compiled(lowered.text), np.random.default_rng(0)
    for size in (3, 4):
        given = [
            some(rng, value.element_type, [size if n is None else n for n in value.shape]) for value in inputs(graph)
        ]
        bound = {
            f"arg{k}.{n}": size for k, value in enumerate(inputs(graph)) for n, one in enumerate(value.shape) if not one
        }
        expected = Executable(to_text(hl.bind(source, bound)), "exact").run(given)
        for one, other in zip(expected, run(given), strict=True):
            assert np.allclose(one, other, rtol=1e-6 * (name in ("softmax", "logistic")), atol=0), size


PADDED = """func.func public @main(%x: tensor<?x?x6x2xf32>, %k: tensor<2x2x2x3xf32>, %p: tensor<2x2xi32>)
    -> tensor<?x?x?x3xf32> {
  %r = "stablehlo.dynamic_conv"(%x, %k, %p) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 1, 2>}>
      : (tensor<?x?x6x2xf32>, tensor<2x2x2x3xf32>, tensor<2x2xi32>) -> tensor<?x?x?x3xf32>
  return %r : tensor<?x?x?x3xf32>
}"""


@pytest.mark.parametrize("amounts", [((1, 2), (0, 1)), ((-1, 1), (2, -3))], ids=str)
def test_padding_at_run_time_agrees(amounts):
    """Of amounts that an input gives, of either sign."""
    lowered, rng = hl.lower(PADDED, target="linalg"), np.random.default_rng(0)
    assert lowered.linalg.is_complete
    x, k = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 5, 6, 2), (2, 2, 2, 3)))
    numbers = ("NHWC", "HWIO", "NHWC")
    expected = jax.lax.conv_general_dilated(x, k, (1, 2), amounts, dimension_numbers=numbers)
    [found] = compiled(lowered.text)([x, k, np.array(amounts, np.int32)])
    assert np.array_equal(found, expected)


def inputs(graph):
    """The arguments of @main."""
    return graph.main.body.arguments


def some(rng, element, shape):
    """Whole numbers, or truth values."""
    return rng.integers(0, 2, shape).astype(bool) if element == "i1" else rng.integers(-3, 4, shape).astype(np.float32)


NESTED = """func.func @main() -> (tensor<5x5xi32>, tensor<2x5xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant dense<0> : tensor<5x5xi32>
  %row = arith.constant dense<0> : tensor<2x5xi32>
  %ones = arith.constant dense<1> : tensor<1x5xi32>
  %r:3 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %zero, %b = %zero, %p = %row)
      -> (tensor<5x5xi32>, tensor<5x5xi32>, tensor<2x5xi32>) {
    %s = scf.for %k = %c0 to %c5 step %c1 iter_args(%o = %a) -> (tensor<5x5xi32>) {
      %w = tensor.insert_slice %ones into %o[%k, 0] [1, 5] [1, 1] : tensor<1x5xi32> into tensor<5x5xi32>
      scf.yield %w : tensor<5x5xi32>
    }
    %t = scf.for %k = %c0 to %c5 step %c1 iter_args(%o = %b) -> (tensor<5x5xi32>) {
      %w = tensor.insert_slice %ones into %o[%k, 0] [1, 5] [1, 1] : tensor<1x5xi32> into tensor<5x5xi32>
      scf.yield %w : tensor<5x5xi32>
    }
    %q = tensor.insert_slice %ones into %p[%i, 0] [1, 5] [1, 1] : tensor<1x5xi32> into tensor<2x5xi32>
    scf.yield %s, %t, %q : tensor<5x5xi32>, tensor<5x5xi32>, tensor<2x5xi32>
  }
  return %r#1, %r#2 : tensor<5x5xi32>, tensor<2x5xi32>
}"""


def test_loops_within_a_loop_run(monkeypatch):
    """IREE 3.13 ends with a copy out of its buffer unless it records its commands anew: where it no longer does, the
    flag may go."""
    assert same_bits([np.ones((5, 5), np.int32), np.ones((2, 5), np.int32)], run_on_iree(NESTED, []))
    monkeypatch.setattr(iree_runs, "FLAGS", [flag for flag in iree_runs.FLAGS if flag != LOOPS[1]])
    with pytest.raises(IndexError, match="OUT_OF_RANGE"):
        run_on_iree(NESTED, [])


def test_an_element_of_positions_is_its_own_place():
    """Starts that are elements of counted positions are numbers, computed with the place that they stand at."""

    def take(x, k):
        starts = jax.lax.iota(jnp.int32, 5) * k + 1
        places = jax.lax.broadcasted_iota(jnp.int32, (3, 4), 1) + k
        return jax.lax.dynamic_slice(x, (starts[3],), (3,)), jax.lax.dynamic_slice(x, (places[1, 2],), (2,))

    x, k = np.arange(20, dtype=np.float32), np.int32(2)
    text, _ = left_as_linalg(hl.export(take, x, k))
    assert all(word not in text for word in ("linalg.index", "linalg.map"))
    for given, expected in zip(run_on_iree(text, [x, k]), ([7, 8, 9], [4, 5]), strict=True):
        np.testing.assert_array_equal(given, expected)
