"""Ops in forms that a target refuses though it takes the op: the same bits, and wrong ones are found."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from rewrites import assert_same, fault, results, swept
from rule_examples import OP_FORMS, target

import hlo_lower as hl
from hlo_lower.ir.builder import Builder
from hlo_lower.lowering.single_ops import products, reductions, reverse

NPU = target("npu", "dynamic_gather", refused_forms=OP_FORMS)


def lowered_of(function, *values, npu=NPU, **options):
    """A function's module, and what it becomes; nothing that is refused is left."""
    source = hl.export(function, *values)
    lowered = hl.lower(source, target=npu, **options)
    assert lowered.changes
    assert not lowered.refused, lowered.notes
    return source, lowered


def padded(x, value, low, high, interior):
    """`stablehlo.pad` by its definition: element i stands at low + i * (interior + 1) of each dim, if inside."""
    sizes = [lo + n + max(n - 1, 0) * gap + hi for n, lo, hi, gap in zip(x.shape, low, high, interior, strict=True)]
    result = np.full(sizes, value, x.dtype)
    for place in np.ndindex(*x.shape):
        at = tuple(lo + i * (gap + 1) for i, lo, gap in zip(place, low, interior, strict=True))
        if all(0 <= i < n for i, n in zip(at, sizes, strict=True)):
            result[at] = x[place]
    return result


@pytest.mark.parametrize("seed", swept(range(100), 0, 1))
def test_a_pad_is_its_definition(seed):
    """Of any rank, with values between, in front, behind, and elements cut at both ends."""
    rng = np.random.default_rng(seed)
    rank, dtype = int(rng.integers(1, 4)), [np.float32, np.int32][seed % 2]
    x, value = rng.standard_normal(rng.integers(1, 5, rank)).astype(dtype), np.asarray(7, dtype)
    low, high = rng.integers(-2, 4, (2, rank))
    interior = rng.integers(0, 3, rank)
    high = np.maximum(high, -np.asarray(x.shape) - (np.asarray(x.shape) - 1) * interior - low)
    dims = [tuple(map(int, three)) for three in zip(low, high, interior, strict=True)]
    _, lowered = lowered_of(lambda v, p: lax.pad(v, p, dims), x, value)
    np.testing.assert_array_equal(results(lowered, x, value)[0], padded(x, value, low, high, interior))


def random_convolution(seed):
    """A convolution in some of the forms, as a function of an operand and a kernel, with whole numbers for both."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    letters = "DHW"[-rank:]
    orders = [list(rng.permutation(["N", "C", *letters])), list(rng.permutation(["I", "O", *letters]))]
    groups, mode = int(rng.integers(2, 4)), ["batch", "feature", "none"][int(rng.integers(3))]
    channels, outputs, batch = (int(n) for n in rng.integers(1, 3, 3))
    inputs = channels * (groups if mode == "feature" else 1)
    sizes = {"N": batch * (groups if mode == "batch" else 1), "C": inputs, "I": channels, "O": outputs * groups}
    spatial = dict(zip(letters, rng.integers(3, 6, rank).tolist(), strict=True))
    windows = dict(zip(letters, rng.integers(1, 3, rank).tolist(), strict=True))
    x = rng.integers(-4, 5, [int((sizes | spatial)[d]) for d in orders[0]])
    k = rng.integers(-4, 5, [int((sizes | windows)[d]) for d in orders[1]])
    options = {
        "window_strides": rng.integers(1, 3, rank).tolist(),
        "padding": rng.integers(-1, 3, (rank, 2)).tolist(),
        "lhs_dilation": rng.integers(1, 3, rank).tolist(),
        "rhs_dilation": [2, *rng.integers(1, 3, rank - 1).tolist()],
        "dimension_numbers": ("".join(orders[0]), "".join(orders[1]), "".join(rng.permutation(orders[0]))),
        "feature_group_count": groups if mode == "feature" else 1,
        "batch_group_count": groups if mode == "batch" else 1,
    }
    dtype = [np.float32, np.int32][seed % 2]
    return lambda a, b: lax.conv_general_dilated(a, b, **options), x.astype(dtype), k.astype(dtype)


DILATED = target("npu", refused_forms=["convolution by a computed dilated kernel"])
CONVOLUTIONS = [(NPU, seed) for seed in range(200)] + [(DILATED, seed) for seed in range(60)]
NOW = [(NPU, seed) for seed in range(4)] + [(DILATED, seed) for seed in (20, 23)]


@pytest.mark.parametrize(("npu", "seed"), swept(CONVOLUTIONS, *NOW), ids=str)
def test_a_convolution_is_the_same_sums(npu, seed):
    """In groups, dilated on either side, with strides and any order of dims; sums of whole numbers are exact. Also
    where only dilated kernels are refused, which may leave others that a target refuses."""
    function, x, k = random_convolution(seed)
    if 0 in jax.eval_shape(function, x, k).shape:
        pytest.skip("it has no window")
    source = hl.export(function, x, k)
    lowered = hl.lower(source, target=npu, float_mode="reassociate")
    assert lowered.changes
    assert npu is DILATED or not lowered.refused
    np.testing.assert_array_equal(results(source, x, k)[0], results(lowered, x, k)[0])


def test_floats_are_convolved_in_another_order_only_where_that_is_allowed():
    """Else the convolution is left and the option is told."""
    x, k = np.ones((1, 4, 2), np.float32), np.ones((2, 2, 3), np.float32)
    order = ("NWC", "WIO", "NWC")
    source = hl.export(lambda a, b: lax.conv_general_dilated(a, b, [1], [(0, 0)], [2], dimension_numbers=order), x, k)
    lowered = hl.lower(source, target=NPU)
    assert any("--float-mode reassociate" in note for note in lowered.notes)
    assert [one.op for one in lowered.refused] == ["stablehlo.convolution"]


RNG = np.random.default_rng(0)
Z, W = RNG.standard_normal((3, 5)).astype(np.float32), RNG.integers(-9, 9, (3, 4, 5)).astype(np.int32)
V = RNG.integers(-9, 9, (5, 4, 2)).astype(np.int32)
NARROW = W[0].astype(np.int8)


def windows(values, starts, combine, sizes, padding):
    """Windows one apart."""
    return lax.reduce_window(values, starts, combine, sizes, (1,) * len(sizes), padding)


def both(left, right):
    """A sum and a maximum."""
    return left[0] + right[0], lax.max(left[1], right[1])


OTHERS = {
    "contracted in another order": (lambda a, b: lax.dot_general(a, b, (((1, 2), (1, 0)), ((), ()))), W, V),
    "an empty product": (lambda a: a[:, :0] @ a[:0], np.ones((4, 4), np.float32)),
    "maxima from a number": (lambda a, s: lax.reduce(a, s, lax.max, (1,)), Z, np.float32(0.5)),
    "minima from a number": (lambda a: lax.reduce(a, np.int32(3), lax.min, (0,)), W[0]),
    "sums from a number": (lambda a, s: lax.reduce(a, s, lax.add, (0, 2)), W, np.int32(3)),
    "truths from one": (lambda a: lax.reduce(a > 3, np.True_, lax.bitwise_or, (1,)), W),
    "windows from a number": (lambda a, s: windows(a, s, lax.add, (2, 3), ((1, 0), (0, 1))), W[0], np.int32(3)),
    "windows of a whole dim": (lambda a: windows(a, np.float32(-np.inf), lax.max, (1, 5), ((0, 0), (0, 0))), Z),
    "windows of more than a dim": (lambda a: windows(a, np.int32(0), lax.add, (1, 5), ((0, 0), (2, 4))), W[0]),
    "windows that are cut": (lambda a: windows(a, np.int32(0), lax.add, (2, 2), ((-1, 0), (1, -1))), W[0]),
    "windows of two": (
        lambda a, b: windows((a, b), (np.int32(0), np.int32(5)), both, (2, 2), ((0, 0),) * 2),
        W[0],
        W[1],
    ),
    "a wider product": (
        lambda a, b: lax.dot(a, b, preferred_element_type=np.int32),
        W[0].astype("i1"),
        V[:, 0].astype("i1"),
    ),
    "xor": (lambda a: lax.reduce(a, np.int32(0), lax.bitwise_xor, (1,)), W[0]),
    "any region": (lambda a: lax.reduce(a, np.float32(0), lambda p, q: p + q * np.float32(0.5), (1,)), Z),
    "reversed dims": (lambda a: lax.rev(a, (0, 2)), W),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_are_the_same_bits(name):
    """Products, reductions and reverses."""
    function, *values = OTHERS[name]
    assert_same(*lowered_of(function, *values), *values)


@pytest.mark.parametrize(
    ("element", "padding", "is_otherwise"),
    [
        *((element, (4, 0), True) for element in ("uint8", "uint32", "bool")),
        *((element, pair, False) for element in ("int32", "float32") for pair in ((4, 0), (0, 4))),
        *(("int32", pair, True) for pair in ((4, 1), (4, -1), (1, 4), (-1, 4))),
        *(("uint32", pair, False) for pair in ((0, 0), (3, 0), (4, 4), (5, 0))),
    ],
)
def test_a_running_fold_is_of_numbers_with_a_sign_and_as_long_as_they_are(element, padding, is_otherwise):
    """Other windows that reach one element less than all before or behind are taken apart, and no others."""
    x = W[0].astype(element)
    npu = target("npu", refused_forms=["running reduce_window of other numbers, or to another length"])
    source = hl.export(lambda a: windows(a, np.zeros((), element), lax.max, (1, 5), ((0, 0), padding)), x)
    lowered = hl.lower(source, target=npu)
    assert ("stablehlo.reduce_window" not in lowered.text, lowered.refused) == (is_otherwise, ())
    assert_same(source, lowered, x)


@pytest.mark.parametrize(
    ("element", "channels", "is_exact"),
    [("int8", 1024, True), ("int8", 1025, False), ("uint8", 258, True), ("uint8", 259, False), ("int32", 1, False)],
)
def test_convolutions_of_integers_are_those_of_floats_as_far_as_these_are_exact(element, channels, is_exact):
    """By the types of the factors, at their ends."""
    dims = {"dimension_numbers": ("NWC", "WIO", "NWC"), "preferred_element_type": np.int32}
    npu = target("npu", refused_forms=["convolution of narrow integers"])
    x = np.full((1, 2, channels), np.iinfo(element).max if "u" in element else np.iinfo(element).min, element)
    k = x[0, :1, :, None]
    source = hl.export(lambda a, b: lax.conv_general_dilated(a, b, (1,), "VALID", **dims), x, k)
    lowered = hl.lower(source, target=npu)
    assert (bool(lowered.changes), lowered.refused) == (is_exact, ())
    assert_same(source, lowered, x, k)


@pytest.mark.parametrize("find", [jnp.argmax, jnp.argmin])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_truths_are_those_of_numbers(find, axis):
    """The first true or false one, and 0 where all are alike; a reduction that begins at another place stays."""
    x = np.bool_([[0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
    npu = target("npu", refused_forms=["reduce to the place of a truth"])
    source = hl.export(lambda a: find(a, axis), x)
    lowered = hl.lower(source, target=npu)
    assert ("tensor<4x4xi32>, tensor<4x4xi32>" in lowered.text, lowered.refused) == (True, ())
    assert_same(source, lowered, x)
    other = source.mlir_module().replace("constant dense<0> : tensor<i32>", "constant dense<2> : tensor<i32>")
    assert "tensor<4x4xi32>, tensor<4x4xi32>" not in hl.lower(other, target=npu).text


@pytest.mark.parametrize(
    ("start", "padding", "is_from_number"), [(2, (1, 0), True), (2, (0, 0), False), (0, (1, 0), False)]
)
def test_padded_windows_that_begin_with_a_number_have_it_added_once(start, padding, is_from_number):
    """As XLA adds it, which reads no padding; where nothing is padded, or it counts for nothing, windows stay."""
    npu = target("npu", refused_forms=["padded reduce_window from a number"])
    source = hl.export(lambda a: windows(a, np.int32(start), lax.add, (1, 3), ((0, 0), padding)), W[0])
    lowered = hl.lower(source, target=npu)
    assert (bool(lowered.changes), lowered.refused) == (is_from_number, ())
    assert_same(source, lowered, W[0])


@pytest.mark.parametrize("seed", swept(range(100), 0, 1, 2, 3))
def test_a_gather_is_the_same_in_any_order(seed):
    """Of rows along any axis, of points, in batches, with the windows anywhere in the result."""
    rng = np.random.default_rng(seed)
    rank, batches = int(rng.integers(2, 4)), int(rng.integers(0, 2))
    shape = [int(n) for n in rng.integers(2, 5, rank)]
    axes = sorted(rng.permutation(np.arange(batches, rank))[: int(rng.integers(1, rank - batches + 1))].tolist())
    positions = [*shape[:batches], *(int(n) for n in rng.integers(1, 4, rng.integers(1, 3)))]
    keeps = bool(rng.integers(2))
    windows = [d for d in range(batches, rank) if keeps or d not in axes]
    offsets = sorted(rng.permutation(len(positions) + len(windows))[: len(windows)].tolist())
    numbers = lax.GatherDimensionNumbers(
        *(tuple(offsets), () if keeps else tuple(axes), tuple(rng.permutation(axes).tolist())),
        *(tuple(range(batches)), tuple(range(batches))),
    )
    sizes = [1 if d in axes or d < batches else n for d, n in enumerate(shape)]
    x = rng.standard_normal(shape).astype(np.float32)
    i = rng.integers(-1, 5, (*positions, len(axes))).astype(np.int32)
    source = hl.export(lambda a, b: lax.gather(a, b, numbers, sizes, mode="clip"), x, i)
    lowered = hl.lower(source, target=NPU)
    assert not lowered.refused
    assert_same(source, lowered, x, i)


def convolved(kernel, **options):
    """A convolution of integers over one dim; its kernel is no constant."""
    numbers = {"dimension_numbers": ("NWC", "WIO", "NWC"), **options}
    own = lambda x: (np.arange(24).reshape(kernel) + x.reshape(-1)[0]).astype(np.int32)  # noqa: E731
    return lambda x: lax.conv_general_dilated(x, own(x), [1], [(0, 0)], **numbers)


def gathered(x):
    """Rows with the window in front."""
    numbers = lax.GatherDimensionNumbers((0,), (0,), (0,))
    return lax.gather(x, np.int32([[2], [0], [1], [1]]), numbers, (1, 4), mode="clip")


@fault(products, "slice_along")
def cut_in_front(own, b, v, axis, start, n):
    """A slice that begins one further, where there is one."""
    return own(b, v, axis, min(start + 1, v.static_shape[axis] - n), n)


@fault(products, "_interleave")
def not_interleaved(_own, b, v, _dim, step):
    """The sequences one after the other."""
    return b.reshape(v, (v.shape[0] // step, v.shape[1] * step, v.shape[2]))


@fault(products.Convolution, "on")
def groups_turned(own, self, b, values, *rest):
    """The groups of the operand in opposite order."""
    return own(self, b, [b.reverse(values[0], [2]), values[1]], *rest)


@fault(reverse, "reverse_facts")
def first_dim_alone(own, node, *, few):
    """A reverse of the first dim alone."""
    return replace(own(node, few=few), dims=(0,))


@fault(reductions, "identity")
def counting_start(_own, b, _, element):
    """A start that counts."""
    return b.constant(5, (), element)


@fault(Builder, "transpose")
def not_transposed(_own, b, value, order):
    """Dims as they stand."""
    return value


PADDED, STARTED = (
    lambda x: lax.pad(x, np.int32(9), [(1, 0, 1), (0, 0, 0)]),
    lambda x: lax.reduce(x, np.int32(3), lax.max, (1,)),
)
DOT = lambda x: lax.dot_general(x, x, (((1, 2), (2, 1)), ((), ())))  # noqa: E731
WRONG = {
    "pad": (PADDED, (3, 4), cut_in_front),
    "interleaved": (convolved((2, 4, 3), rhs_dilation=[2]), (2, 8, 4), not_interleaved),
    "groups": (convolved((2, 2, 6), batch_group_count=2), (4, 5, 2), groups_turned),
    "start": (STARTED, (3, 4), counting_start),
    "start of windows": (OTHERS["windows from a number"][0], (4, 5), counting_start),
    "dims": (OTHERS["reversed dims"][0], (2, 3, 4), first_dim_alone),
    "rows": (gathered, (4, 4), not_transposed),
    "dot": (DOT, (2, 3, 3), not_transposed),
}
"""A function of a tensor, its shape, and a step of the rule that is done wrongly."""


@pytest.mark.parametrize("name", swept(WRONG, "rows", "dims"))
def test_a_wrong_rule_is_found(name, monkeypatch):
    """What a rule gives is verified against the module; with a step done wrongly the verification says so."""
    function, shape, wrong = WRONG[name]
    source, lowered = lowered_of(function, np.zeros(shape, np.int32))
    assert hl.verify(source, lowered).ok
    wrong(monkeypatch)
    assert not hl.verify(source, hl.lower(source, target=NPU)).ok


def test_pads_that_other_rules_build_are_lowered():
    """A window over what has gaps pads between elements."""
    npu = target("npu", "reduce_window", refused_forms=["pad between elements"])
    gaps = lambda x: lax.reduce_window(x, np.int32(0), lax.add, (2,), (1,), "VALID", base_dilation=(2,))  # noqa: E731
    source, lowered = lowered_of(gaps, np.arange(5, dtype=np.int32), npu=npu)
    assert "stablehlo.pad" not in lowered.text
    assert hl.verify(source, lowered).ok


ONE_WINDOW = {
    "padding": (5, 3, {"padding": [(1, 2)], "window_strides": [9]}, True),
    "elements": (7, 3, {"window_strides": [9]}, True),
    "both, apart": (4, 2, {"padding": [(0, 1)], "lhs_dilation": [3], "window_strides": [12]}, True),
    "of a kernel apart": (9, 2, {"rhs_dilation": [3], "window_strides": [9]}, True),
    "all that is no padding": (3, 2, {"padding": [(2, 1)], "window_strides": [9]}, True),
    "nothing": (5, 5, {"window_strides": [2]}, False),
    "behind two windows": (6, 3, {"window_strides": [2]}, False),
}


@pytest.mark.parametrize("name", ONE_WINDOW)
def test_what_lies_behind_one_window_is_cut_off(name):
    """Padding first, then elements; behind more windows it stays."""
    size, kernel, options, is_cut = ONE_WINDOW[name]
    rng, given = np.random.default_rng(0), {"padding": [(0, 0)], "dimension_numbers": ("NWC", "WIO", "NWC"), **options}
    x, k = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, size, 2), (kernel, 2, 3)))
    source = hl.export(lambda x: lax.conv_general_dilated(x, k, **{"window_strides": [1], **given}), x)
    npu = target("npu", refused_forms=["convolution of one window and more"])
    lowered, kept = (hl.lower(source, target=one) for one in (npu, target("other")))
    assert (lowered.text != kept.text, lowered.refused) == (is_cut, ())
    assert hl.verify(source, lowered, level="regions").ok
    assert_same(source, lowered, x)
