"""Ops that a target refuses, lowered one by one: the bits of XLA's own op, or numbers within what a rule says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rewrites import assert_same as same
from rewrites import results, swept
from rule_examples import target
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.lowering.engine import traced
from hlo_lower.lowering.single_ops import reductions

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float16", "bfloat16", "float64")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388607.5, 3e38, 1e-30)
RNG = np.random.default_rng(0)


def lowered_of(ops, function, *values, **options):
    """A function as a module, and what it becomes without some ops."""
    with jax.enable_x64(True):
        source = hl.export(function, *values)
    lowered = hl.lower(source, target=target("npu", *ops.split()), **options)
    assert not any(f"stablehlo.{op}" in lowered.text for op in ops.split()), lowered.notes
    assert not lowered.refused
    return source, lowered


def assert_same(ops, function, *values):
    """Both give the same bits, but for those of a NaN."""
    same(*lowered_of(ops, function, *values), *values, any_nan=True)


def run(op, function, *values):
    """What a function of one result gives, and what it gives without the op in another order of floats."""
    pair = lowered_of(op, function, *values, float_mode="reassociate")
    return [results(module, *values)[0] for module in pair]


def floats(dtype, count=300):
    """Floats of all sizes, some near one, and special ones; subnormal ones are zeros, as XLA on a CPU has them."""
    near = RNG.standard_normal(count) * 8
    any_bits = RNG.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        values = np.concatenate([near, any_bits, SPECIAL]).astype(np.float32)
        values = np.where(np.abs(values) < 1e-36, np.float32(0), values).astype(dtype)
        least = {"float16": 6.2e-5}.get(dtype, 1e-36)
        return np.where(np.abs(values.astype(np.float64)) < least, values * 0, values)


def integers(dtype, shape):
    """Integers of all sizes, the least and the largest among them."""
    info = np.iinfo(dtype)
    values = RNG.integers(info.min, info.max, shape, dtype, endpoint=True)
    values.reshape(-1)[:4] = [info.min, info.max, 0, 1]
    return values


def held(least, most, dtype):
    """A clamp to constants."""
    return lambda v: lax.clamp(np.array(least, dtype), v, np.array(most, dtype))


@pytest.mark.parametrize("dtype", swept(INTEGERS, "int8"))
def test_integer_ops_are_the_same_bits(dtype):
    """On every width, with divisors of 0 and -1 and shifts of no bit among them."""
    x, info = integers(dtype, 200), np.iinfo(dtype)
    small = RNG.integers(-3 if info.min else 0, 4, 200).astype(dtype)
    shifts = RNG.integers(-2 if info.min else 0, info.bits + 2, 200).astype(dtype)
    ops = "remainder popcnt count_leading_zeros clamp shift_left shift_right_logical shift_right_arithmetic sign"
    assert_same(
        ops if info.min else ops.partition(" shift_right_arithmetic")[0],
        lambda x, small, shifts: (
            *(lax.rem(x, small), lax.rem(x, np.array(7, dtype)), lax.population_count(x), lax.clz(x)),
            *(held(3, 9, dtype)(x), lax.shift_left(x, shifts), lax.shift_right_logical(x, shifts)),
            *((lax.sign(x), lax.shift_right_arithmetic(x, shifts)) if info.min else ()),
        ),
        *(x, small, shifts),
    )


@pytest.mark.parametrize("dtype", swept(INTEGERS, "int8", "uint32"))
def test_shifts_by_a_number_that_is_known(dtype):
    """By each bit's number, by more and by less; the number may be computed of a table of constants."""
    x, info = integers(dtype, 200), np.iinfo(dtype)
    ops = [lax.shift_left, lax.shift_right_logical, *([lax.shift_right_arithmetic] if info.min else [])]
    table = np.arange(-2 if info.min else 0, info.bits + 2).astype(dtype)

    def shifted(x):
        counts = [jnp.asarray(table)[k] for k in range(len(table))]
        return [op(x, count) for op in ops for count in counts]

    names = " ".join(f"shift_{name}" for name in ("left", "right_logical", *(("right_arithmetic",) * bool(info.min))))
    assert_same(names, shifted, x)


@pytest.mark.parametrize("dtype", swept(INTEGERS, "uint32"))
def test_sums_and_products_of_integers_are_the_same_bits(dtype):
    """They wrap, in any order; reductions of two results and of a region are halved by the region itself."""
    a, b = integers(dtype, (3, 4, 5)), integers(dtype, (5, 3, 2))
    assert_same("dot_general", lambda x, y: lax.dot_general(x, y, (((2,), (0,)), ((0,), (1,)))), a, b)
    assert_same("reduce", lambda x: (x.sum((0, 2)), jnp.argmax(x, 1)), a)
    windows = [(np.array(0, dtype), lax.add, (n, 2), (1, 2), ((n - 1, 0), (1, 1))) for n in (1, 6, 80)]
    assert_same("reduce_window", lambda x: [lax.reduce_window(x, *w) for w in windows], integers(dtype, (80, 7)))


def to_even(x):
    """Rounding of which halves go to the even number."""
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_products_of_truths_are_those_of_xla(share):
    """True where any pair is, of any number of them; what multiplies truths with another type is left."""
    rng = np.random.default_rng(3)
    x, y = rng.random((2, 5, 300)) < share, rng.random((300, 2, 4)) < share
    floats = hl.Target("floats", op_dtypes={"stablehlo.dot_general": ["f32"]}, refused={"stablehlo.scatter": "lowered"})
    source = hl.export(lambda x, y: lax.dot_general(x, y, (((2,), (0,)), ((0,), (1,)))), x, y)
    lowered = hl.lower(source, target=floats)
    assert not lowered.refused
    same(source, lowered, x, y)


@pytest.mark.parametrize("dtype", swept(FLOATS, "float32"))
def test_rounding_is_the_same_bits(dtype):
    """Of halves, of numbers that are whole, of zeros of both signs, infinities and NaN."""
    both = lambda v: (lax.round(v, lax.RoundingMethod.AWAY_FROM_ZERO), to_even(v))  # noqa: E731
    others = lambda v: (lax.is_finite(v), lax.sign(v), held(-1, 3, dtype)(v))  # noqa: E731
    ops = "round_nearest_afz round_nearest_even is_finite sign clamp"
    assert_same(ops, lambda v: (*both(v), *others(v)), floats(dtype))


@pytest.mark.parametrize(("exponent", "mantissa"), swept([(8, 7), (5, 10), (4, 3), (5, 23), (8, 23)], (5, 10), (8, 23)))
def test_reduced_precision_is_the_same_bits(exponent, mantissa):
    """What overflows is infinite, what underflows zero, halves go to even."""
    x = np.concatenate([floats("float32"), floats("float32") * np.float32(1e-4)])
    assert_same("reduce_precision", lambda v: lax.reduce_precision(v, exponent, mantissa), x)


@pytest.mark.parametrize("dtype", swept(FLOATS[:3], "float16"))
def test_a_remainder_of_floats_is_the_same_bits(dtype):
    """However far apart the two are; of zero divisors, infinities and NaN as well."""
    x = floats(dtype)
    assert_same("remainder", lax.rem, x, RNG.permutation(x))


BOUNDS = {
    "tan": (lax.tan, np.tan, 4, 3.0),
    "log_plus_one": (lax.log1p, np.log1p, 4, 0.5),
    "exponential_minus_one": (lax.expm1, np.expm1, 6, 0.5),
    "cbrt": (lax.cbrt, np.cbrt, 4, 1.0),
}
"""For each function NumPy's, the units in the last place that its rule states, and around where numbers are tried."""


@pytest.mark.parametrize("op", swept(BOUNDS, "log_plus_one"))
def test_functions_are_within_their_bounds(op):
    """Units in the last place of NumPy's on f64; only where floats may come out otherwise, else left and told."""
    function, exact, bound, scale = BOUNDS[op]
    for dtype in ("float32", "float16"):
        x = np.concatenate([floats(dtype), (RNG.standard_normal(3000) * scale).astype(dtype)])
        _, found = run(op, function, x)
        with np.errstate(all="ignore"):
            true = exact(x.astype(np.float64)).astype(dtype)
        is_subnormal = (true != 0) & (np.abs(true) < np.finfo(dtype).tiny)
        assert_within(bound, true[~is_subnormal], found[~is_subnormal])
    left = hl.lower(hl.export(function, x), target=target("npu", op))
    assert any(note.startswith(f"left: stablehlo.{op}") and "numbers=exact" in note for note in left.notes)


def test_an_angle_is_within_its_bound():
    """In all octants, on all axes, of zeros of both signs and of infinities."""
    special = [a.reshape(-1) for a in np.meshgrid(np.float32(SPECIAL), np.float32(SPECIAL))]
    some = floats("float32"), RNG.permutation(floats("float32"))
    y, x = (np.concatenate(pair) for pair in zip(special, some, strict=True))
    expected, found = run("atan2", lax.atan2, y, x)
    assert_within(6, expected, found)
    assert (np.signbit(expected) == np.signbit(found))[~np.isnan(expected)].all()


def assert_within(bound, expected, found):
    """Both differ by at most so many units in the last place of the first."""
    with np.errstate(all="ignore"):
        apart = np.abs(expected.astype(np.float64) - found.astype(np.float64))
        units = apart / np.spacing(np.abs(expected)).astype(np.float64)
    worst = np.where((expected == found) | (np.isnan(expected) & np.isnan(found)), 0, units)
    assert worst.max() <= bound, (expected[worst > bound][:4], found[worst > bound][:4])


def pooled(window, strides, padding, start=-np.inf, combine=lax.max, **more):
    """A pooling."""
    return lambda x: lax.reduce_window(x, np.float32(start), combine, window, strides, padding, **more)


WINDOWS = [
    ((2, 2), (2, 2), "VALID"),
    ((3, 3), (2, 2), ((1, 1), (1, 1))),
    ((3, 2), (1, 1), "SAME"),
    ((3, 1), (1, 1), ((2, 0), (0, 0))),
]


@pytest.mark.parametrize(("window", "strides", "padding"), swept(WINDOWS, WINDOWS[1]), ids=str)
def test_poolings_and_their_derivatives_are_the_same_bits(window, strides, padding):
    """Also where windows overlap, and several choose one element: its sources are added in XLA's order."""
    x, largest = RNG.integers(-3, 4, (9, 8)).astype(np.float32), pooled(window, strides, padding)
    weights = RNG.standard_normal(jax.eval_shape(largest, x).shape).astype(np.float32)
    assert_same("reduce_window", largest, x)
    total = run("reduce_window", pooled(window, strides, padding, 0, lax.add), x)
    np.testing.assert_array_equal(*total)  # of whole numbers: in what order XLA adds others is its own
    assert_same("select_and_scatter", jax.grad(lambda v: (largest(v) * weights).sum()), x)
    gaps = {"base_dilation": (2, 1), "window_dilation": (2, 2)}
    assert_same("reduce_window", pooled((2, 3), (2, 2), ((0, 0), (1, 1)), **gaps), x)


@pytest.mark.parametrize("combine", [lax.add, lax.mul, lax.bitwise_xor, lax.max], ids=["add", "mul", "xor", "max"])
@pytest.mark.parametrize("size", [3, 80])
def test_padding_counts_for_nothing_whatever_windows_start_from(combine, size):
    """Neither what is around the elements nor what is between them; the start counts once for each window."""
    x, start = integers("int32", (90,)), np.int32(3)
    args = (combine, (size,), (2,), ((size - 1, 2),))
    assert_same("reduce_window", lambda v: lax.reduce_window(v, start, *args, base_dilation=(2,)), x)
    assert_same("reduce_window", lambda v, s: lax.reduce_window(v, s, *args), x, start)


def test_long_sums_of_floats_are_left_unless_they_may_be_in_another_order():
    """More than 64 elements are not added one by one; in float mode reassociate they are, by doubling."""
    x, running = RNG.standard_normal(100).astype(np.float32), pooled((100,), (1,), ((99, 0),), 0, lax.add)
    left = hl.lower(hl.export(running, x), target=target("npu", "reduce_window"))
    assert any("needs windows of 64 elements at most" in note for note in left.notes)
    for op, function in (("reduce_window", running), ("reduce", lambda v: v.sum())):
        np.testing.assert_allclose(*run(op, function, x), rtol=1e-5, atol=1e-5)


X, P = "4x5x3xf32", "3xf32"
NORMS = {"inference": ([X, P, P, P, P], X), "training": ([X, P, P], f"{X}, {P}, {P}")}
NORMS["grad"] = [X, P, P, P, X], NORMS["training"][1]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("start", [(-3, 1), (2, 0), (9, 3), (4, -1)])
def test_an_update_is_put_in_its_place(dtype, start):
    """Inside and out of it, where starts are clamped; whole dims, an update of all, and one of nothing."""
    x, u = RNG.integers(0, 2, (7, 5)).astype(dtype), RNG.integers(0, 2, (3, 5)).astype(dtype)
    starts = np.int32(start[0]), np.int32(start[1])
    for update in (u, u[:, :2], x, u[:0]):
        assert_same(
            "dynamic_update_slice", lambda a, b, s, t: lax.dynamic_update_slice(a, b, (s, t)), x, update, *starts
        )


@pytest.mark.parametrize("which", NORMS)
def test_batch_normalizations_are_the_same_bits(which):
    """They are written out in XLA's own order."""
    taken, given = NORMS[which]
    names, many = [f"%a{k}" for k in range(len(taken))], which != "inference"
    call = f'"stablehlo.batch_norm_{which}"({", ".join(names)}) <{{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}}>'
    body = f"%r{':3' if many else ''} = {call} : ({', '.join(taken)}) -> ({given})"
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, taken, strict=True))
    text = module(arguments, body, "%r#0, %r#1, %r#2" if many else "%r")
    lowered = hl.lower(text, target=target("npu", f"batch_norm_{which}"))
    assert "batch_norm" not in lowered.text
    same(text, lowered, *(RNG.random((4, 5, 3) if kind == X else 3).astype(np.float32) for kind in taken))


def padded_behind(self, build, value, fill):
    """Padding on the other side."""
    return build.pad(value, fill, self.high, self.low)


SUMS = lambda x, y: lax.reduce_window(x, np.int32(0), lax.add, (4,), (1,), ((3, 0),))  # noqa: E731
WRONG = {
    "remainder": (traced.ELEMENTWISE, "sub", "add", lax.rem),
    "round_nearest_even": (traced.ELEMENTWISE, "floor", "ceil", lambda x, y: to_even(x)),
    "popcnt": (traced.ELEMENTWISE, "sub", "add", lambda x, y: lax.population_count(x)),
    "reduce_window": (reductions.Windows, "padded", padded_behind, SUMS),
}


@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize("op", swept(WRONG, "remainder"))
def test_a_wrong_form_does_not_verify(op, monkeypatch):
    """What is right verifies, and what a wrong rule builds differs."""
    where, name, wrong, function = WRONG[op]
    x = np.arange(9, dtype=np.float32 if op.startswith("round") else np.int32)
    source = hl.export(function, x, x)
    assert hl.verify(source, hl.lower(source, target=target("npu", op)), runs=1).ok
    (monkeypatch.setitem if isinstance(where, dict) else monkeypatch.setattr)(where, name, wrong)
    verdict = hl.verify(source, hl.lower(source, target=target("npu", op)), runs=1)
    assert "differs" in {region.status for region in verdict.regions}


def test_ones_are_counted_without_shifts():
    """The bits of numbers of every width, of which some are negative; the shifts are lowered next."""
    values = [np.concatenate([integers(d, 40), np.array([2, 5, 64, 127], d)]) for d in INTEGERS]
    ops = "popcnt shift_right_logical"
    _, lowered = lowered_of(ops, lambda *all_: [lax.population_count(x) for x in all_], *values)
    for x, found in zip(values, results(lowered, *values), strict=True):
        assert found.dtype == x.dtype
        assert found.tolist() == [(int(n) % (1 << 8 * x.itemsize)).bit_count() for n in x]


def test_a_target_that_takes_an_op_on_some_types_gets_those_as_they_are():
    """An op is lowered on the element types that it is refused on, as far as what is built is taken on them."""
    taken = target("npu", op_dtypes={"stablehlo.remainder": ["f32"]})
    texts = [hl.lower(hl.export(lax.rem, np.ones(3, d), np.ones(3, d)), target=taken).text for d in ("f4", "i4")]
    assert ["stablehlo.remainder" in text for text in texts] == [True, False]
    narrow = hl.Target("npu", refused={"stablehlo.remainder": "none"}, op_dtypes={"stablehlo.divide": ["f32"]})
    left = hl.lower(hl.export(lax.rem, np.ones(3, "i4"), np.ones(3, "i4")), target=narrow, keep_unsupported=True)
    assert any("emits stablehlo.divide, which npu rejects for i32" in note for note in left.notes)


def test_an_op_of_dynamic_shape_is_left_and_told():
    """Its sizes are needed; binding them gives the other form."""
    source = hl.export(lax.rem, jnp.zeros((6, 4), "int32"), jnp.ones((6, 4), "int32"), shapes=["n, _", "n, _"])
    left = hl.lower(source, target=target("npu", "remainder"))
    assert left.notes[0].endswith(": of dynamic shape: --bind gives the sizes")
    assert "stablehlo.remainder" not in hl.lower(source, target=target("npu", "remainder"), bind={"n": 6}).text


def test_iree_gets_known_custom_calls_as_what_they_are():
    """It knows no custom call, and compiles what mhlo.erf encodes."""
    call = module("%x: 4xf32", "%r = custom_call @mhlo.erf(%x) {mhlo.version = 1 : i64} -> 4xf32")
    lowered = hl.lower(call, target="iree")
    assert "chlo.erf" in lowered.text
    assert not lowered.refused


@pytest.mark.parametrize(
    ("size", "dim", "is_own"), [("%five", 1, True), ("%four", 0, True), ("%four", 1, False), ("%n", 1, False)]
)
def test_a_size_that_is_set_to_what_it_is_says_nothing(size, dim, is_own):
    """What was HLO before sets the size of each top_k; a smaller one, or one that a run says, is left and told."""
    body = f"""%five = constant 5 : i32; %four = constant 4 : i32
      %r = set_dimension_size %x, {size}, dim = {dim} : (4x5xf32, i32) -> 4x5xf32"""
    source = module("%x: 4x5xf32, %n: i32", body)
    lowered = hl.lower(source, target=target("npu", "set_dimension_size"), keep_unsupported=True)
    assert ("set_dimension_size" in lowered.text) is not is_own
    assert any("a constant, the dim's own" in note for note in lowered.notes) is not is_own
    assert not is_own or hl.verify(source, lowered, runs=1).ok


@pytest.mark.parametrize(("dim", "batch"), [(0, 0), (1, 0), (2, 1), (2, 2), (1, 1)])
@pytest.mark.parametrize("index", ["i32", "ui8"])
def test_rows_that_torch_selects_are_gathered(dim, batch, index):
    """An index out of bounds is clamped, also where both operands share dims."""
    shape, rows = (3, 4, 5), (*(3, 4, 5)[:batch], 2, 6)
    found = (*shape[:dim], *rows[batch:], *shape[dim + 1 :])
    xt, it, rt = of(shape, "f32"), of(rows, index), of(found, "f32")
    dims = f"<{{dim = {dim} : i64, batch_dims = {batch} : i64}}>"
    call = f'"stablehlo.torch_index_select"(%x, %i) {dims} : ({xt}, {it}) -> {rt}'
    text = module(f"%x: {xt}, %i: {it}", f"%r = {call}")
    lowered = hl.lower(text, target=target("npu", "torch_index_select")).text
    assert "torch_index_select" not in lowered
    x = RNG.standard_normal(shape).astype(np.float32)
    i = RNG.integers(-3 if index == "i32" else 0, 9, rows).astype("int32" if index == "i32" else "uint8")
    at = np.clip(i, 0, shape[dim] - 1).reshape(*rows[:batch], *(1,) * (dim - batch), -1, *(1,) * (2 - dim))
    expected = np.take_along_axis(x, at.astype(int), dim).reshape(found)
    for version in (text, lowered):
        assert np.array_equal(results(version, x, i)[0], expected)
