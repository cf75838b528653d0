"""A target that wants i32 starts gets them, and an index beyond i32 is as far out of bounds as it was."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rewrites import results
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.facts.scatter.canonical import canonicalize

NARROW = hl.Target("narrow", index_type="i32")
NO_I64 = hl.Target("small", index_type="i32", refused_dtypes={"i64": "32 bits"})
EXTREMES = [-(1 << 63), -(1 << 32), -(1 << 31) - 1, -(1 << 31), -3, -2, -1, 0, 1, 5, 6, 7, 8]
EXTREMES += [(1 << 31) - 1, 1 << 31, 1 << 32, (1 << 32) + 1, (1 << 63) - 1]
FORMS = {
    "point": ([1], [], "inserted=[0], to=[0]"),
    "tile": ([1], [3], "window=[0], to=[0]"),
    "points": ([20, 1], [20], "inserted=[0], to=[0], ivd=1"),
    "tiles": ([20, 1], [20, 3], "window=[1], to=[0], ivd=1"),
}


def scatter(form="tile", index="i64", before="%k = reshape %i -> {}", size=8):
    """An update of 8 elements of this form, at an argument or at what is made of it."""
    shape, updates, numbers = FORMS[form]
    x, at = of([size], "f32"), of(shape, index)
    text = f"{before.format(at)}; %r = scatter(%o, %k, %u) <{numbers}> {{assign}}"
    return module(f"%o: {x}, %i: {at}, %u: {of(updates, 'f32')}", text)


def assert_dropped(text, form, oob, index, values):
    """The update of zeros is NumPy's: whole windows or single elements are dropped."""
    shape, sizes, _ = FORMS[form]
    indices = np.array(values, {"i64": np.int64, "ui64": np.uint64}[index]).reshape(shape)
    updates, expected = np.arange(1, 1 + np.prod(sizes, dtype=int), dtype=np.float32), np.zeros(8, np.float32)
    for start, window in zip(values, updates.reshape(len(values), -1), strict=True):
        places = [start + k for k in range(len(window))]
        if oob == "spec" or all(0 <= place < 8 for place in places):
            for place, value in zip(places, window, strict=True):
                if 0 <= place < 8:
                    expected[place] = value
    [found] = results(text, np.zeros(8, np.float32), indices, updates.reshape(sizes))
    assert found.tolist() == expected.tolist(), values


@pytest.mark.few(4)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("index", ["i64", "ui64"])
@pytest.mark.parametrize("form", FORMS)
def test_an_index_beyond_i32_is_still_dropped(form, index, oob):
    """2**32 + 1 does not become 1, and the least i64 not 0: what is out of bounds in i64 is out of bounds in i32."""
    lowered = hl.lower(scatter(form, index), target=NARROW, oob=oob)
    assert lowered.scatters_left == 0
    values = [v for v in EXTREMES if index == "i64" or v >= 0] + ([(1 << 64) - 1] if index == "ui64" else [])
    several = [values[k % len(values)] for k in range(20)]
    for chosen in [several] if form in ("points", "tiles") else [[value] for value in values]:
        assert_dropped(lowered.as_given, form, oob, index, chosen)


@pytest.mark.parametrize("form", FORMS)
def test_starts_are_i32_where_the_target_wants_it(form):
    """Beside the index itself, which is saturated and converted, nothing that is built has 64 bits."""
    text = hl.lower(scatter(form), target=NARROW).text
    wide = set(re.findall(r"= stablehlo\.(\w+).*i64>", text))
    assert {"minimum", "maximum", "convert"} <= wide
    assert not wide - {"minimum", "maximum", "convert", "constant", "transpose", "reshape"}
    assert "i64" in hl.lower(scatter(form)).text.split("return")[0].split("stablehlo.compare")[1]


def test_what_is_proved_to_fit_is_not_saturated():
    """An index whose range is known is converted as it is, and of a constant one nothing is left."""
    text = hl.lower(scatter(before="%k = clamp -4, %i, 9"), target=NARROW).text
    assert not re.search("stablehlo.(minimum|maximum)", text)
    assert "(tensor<1xi64>) -> tensor<1xi32>" in text
    assert hl.lower(scatter(before="%k = constant 2 : {}"), target=NO_I64).scatters_left == 0


def test_a_size_that_does_not_fit_keeps_the_wide_type():
    """Where twice a size is beyond i32, starts stay i64."""
    text = scatter(size=1 << 30)
    for graph, start_type in ((hl.read(text), "i64"), (hl.read(scatter()), "i32")):
        assert replace(canonicalize(graph.scatters[0]), narrowed=True).start_type == start_type
    assert hl.lower(text, target=NARROW).text == hl.lower(text).text


@pytest.mark.parametrize(
    ("refusing", "size", "says"),
    [
        (NO_I64, 8, "i64"),
        (NO_I64, 1 << 30, r"(?s)no lowering for target small.*needs i64, which small rejects"),
        (hl.Target("small", index_type="i32", refused={"stablehlo.maximum": "no"}), 8, "stablehlo.maximum"),
    ],
)
def test_a_target_without_i64_refuses_an_i64_index(refusing, size, says):
    """The conversion itself would be on i64: the error names it; demoting the module is another matter."""
    with pytest.raises(hl.NotLoweredError, match=says) as error:
        hl.lower(scatter(size=size), target=refusing)
    assert error.value.exit_code == 3
    assert hl.lower(scatter(index="i32"), target=refusing).scatters_left == 0


def test_a_conversion_that_is_refused_on_i64_is_made_of_its_bits():
    """Where i64 is taken elsewhere, the conversion of a start alone is written by other ops, to the same result."""
    target = hl.Target("small", index_type="i32", op_dtypes={"stablehlo.convert": {"i32", "f32", "i1"}})
    lowered = hl.lower(scatter(), target=target)
    assert (lowered.scatters_left, lowered.refused) == (0, ())
    assert hl.verify(scatter(), lowered, level="regions").ok


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_sizes_at_run_time_are_narrowed_alike(oob):
    """A scatter of dynamic shape has i32 starts, too; only elements that are dropped one by one are placed in i64."""
    lowered = hl.lower(scatter(size="?"), target=NARROW, oob=oob)
    assert ("stablehlo.maximum" in lowered.text, "tensor<i64>" in lowered.text) == (oob == "xla", oob == "spec")
    static = hl.lower(lowered.text.replace("?xf32", "8xf32")).text
    for value in EXTREMES:
        assert_dropped(static, "tile", oob, "i64", [value])


def test_a_run_that_wraps_and_lies_past_the_end_writes_nothing():
    """Saturated, a last row past the end stays so far out that the run that ends there does not begin inside."""
    text = """%b = broadcast_in_dim %t, dims = [] -> 2xi64; %i = iota dim = 0 : 2xi64; %v = add %b, %i
      %c = compare LT, %v, 0, SIGNED; %a = add %v, 7; %s = select %c, %a, %v
      %r = scatter(%o, %s, %u) <window=[1], inserted=[0], to=[0], ivd=1> {assign}"""
    wrapping = module("%o: 7x2xf32, %t: i64, %u: 2x2xf32", text)
    lowered = hl.lower(wrapping, target=replace(NARROW, refused={"stablehlo.scatter": ""}))
    assert lowered.records[0].rule == "wrapped_rows"
    for start in (-9, -8, -1, 5, 6, 7, 8, 16, 2**31, 2**40, -(2**40)):
        given = np.zeros((7, 2), np.float32), np.array(start, np.int64), np.ones((2, 2), np.float32)
        assert np.array_equal(results(wrapping, *given)[0], results(lowered.as_given, *given)[0]), start
