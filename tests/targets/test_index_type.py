"""A target that wants i32 starts gets them, and an index beyond i32 is as far out of bounds as it was."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.verify.run import Executable

NARROW = hl.Target("narrow", index_type="i32")
EXTREMES = [-(1 << 63), -(1 << 32), -(1 << 31) - 1, -(1 << 31), -3, -2, -1, 0, 1, 5, 6, 7, 8]
EXTREMES += [(1 << 31) - 1, 1 << 31, 1 << 32, (1 << 32) + 1, (1 << 63) - 1]

FORMS = {
    "point": ("1xINDEX", "f32", "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"),
    "tile": ("1xINDEX", "3xf32", "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"),
    "points": (
        *("20x1xINDEX", "20xf32"),
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    ),
    "tiles": (
        *("20x1xINDEX", "20x3xf32"),
        "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    ),
}


def module(form, index="i64", before="", indices="%i", size=8, add=False):
    """An update of 8 elements of this form; its indices are an argument, or what `before` makes of it."""
    shape, updates, numbers = FORMS[form]
    body = "%c = stablehlo.add %a, %b : tensor<f32>\n stablehlo.return %c" if add else "stablehlo.return %b"
    index_type = f"tensor<{shape.replace('INDEX', index)}>"
    return f"""
func.func public @main(%o: tensor<{size}xf32>, %i: {index_type}, %u: tensor<{updates}>) -> tensor<{size}xf32> {{
  {before.replace("TYPE", index_type)}
  %r = "stablehlo.scatter"(%o, {indices}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    {body} : tensor<f32>
  }}) : (tensor<{size}xf32>, {index_type}, tensor<{updates}>) -> tensor<{size}xf32>
  return %r : tensor<{size}xf32>
}}"""


def runner(lowered):
    """A lowered module as a function of arrays."""
    call = jax.jit(lowered.exported.call)

    def run(*arguments):
        with jax.enable_x64(True):
            return np.asarray(jax.tree.leaves(call(*arguments))[0])

    return run


def dropped(form, indices, updates, oob):
    """What the update of zeros comes to, by NumPy: whole windows or single elements are dropped."""
    result = np.zeros(8, np.float32)
    for start, window in zip(np.ravel(indices), np.reshape(updates, (np.size(indices), -1)), strict=True):
        places = [int(start) + k for k in range(len(window))]
        if oob == "spec" or all(0 <= place < 8 for place in places):
            for place, value in zip(places, window, strict=True):
                if 0 <= place < 8:
                    result[place] = value
    return result


@pytest.mark.few(4)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("index", ["i64", "ui64"])
@pytest.mark.parametrize("form", FORMS)
def test_an_index_beyond_i32_is_still_dropped(form, index, oob):
    """2**32 + 1 does not become 1, and the least i64 not 0: what is out of bounds in i64 is out of bounds in i32."""
    lowered = hl.lower(module(form, index), target=NARROW, oob=oob)
    assert lowered.scatters_left == 0
    run = runner(lowered)
    values = [v for v in EXTREMES if index == "i64" or v >= 0] + ([(1 << 64) - 1] if index == "ui64" else [])
    several = [values[k % len(values)] for k in range(20)]
    for chosen in [several] if form in ("points", "tiles") else [[value] for value in values]:
        operand, indices, updates = _arguments(form, index, chosen)
        assert run(operand, indices, updates).tolist() == dropped(form, indices, updates, oob).tolist()


def _arguments(form, index, values):
    shape, updates, _ = FORMS[form]
    sizes = [int(n) for n in shape.split("x")[:-1]]
    dtype = np.int64 if index == "i64" else np.uint64
    updates_shape = [int(n) for n in updates.split("x")[:-1]]
    indices = np.array(values[: int(np.prod(sizes))], dtype).reshape(sizes)
    updates = np.arange(1, 1 + np.prod(updates_shape, dtype=int), dtype=np.float32).reshape(updates_shape)
    return np.zeros(8, np.float32), indices, updates


@pytest.mark.parametrize("form", FORMS)
def test_starts_are_i32_where_the_target_wants_it(form):
    """Beside the index itself, which is saturated and converted, nothing that is built has 64 bits."""
    text = hl.lower(module(form), target=NARROW).text
    wide = {line.split("stablehlo.")[1].split(" ")[0] for line in text.splitlines() if "i64>" in line and " = " in line}
    assert wide <= {"minimum", "maximum", "convert", "constant", "transpose", "reshape"}
    assert {"minimum", "maximum", "convert"} <= wide
    assert "i64" in hl.lower(module(form)).text.split("return")[0].split("stablehlo.compare")[1]


def test_what_is_proved_to_fit_is_not_saturated():
    """An index whose range is known is converted as it is."""
    before = """%lo = stablehlo.constant dense<-4> : TYPE
  %hi = stablehlo.constant dense<9> : TYPE
  %k = stablehlo.clamp %lo, %i, %hi : TYPE"""
    text = hl.lower(module("tile", before=before, indices="%k"), target=NARROW).text
    assert "stablehlo.minimum" not in text
    assert "stablehlo.maximum" not in text
    assert "(tensor<1xi64>) -> tensor<1xi32>" in text


def test_a_size_that_does_not_fit_keeps_the_wide_type():
    """Where twice a size is beyond i32, starts stay i64, and a target without i64 refuses them by name."""
    text = module("tile", size=1 << 30)
    for graph, start_type in ((hl.read(text), "i64"), (hl.read(module("tile")), "i32")):
        assert replace(canonicalize(graph.scatters[0]), narrowed=True).start_type == start_type
    assert hl.lower(text, target=NARROW).text == hl.lower(text).text
    refusing = hl.Target("small", index_type="i32", refused_dtypes={"i64": "32 bits"})
    with pytest.raises(hl.NotLoweredError, match=r"(?s)no lowering for target small.*needs i64, which small refuses"):
        hl.lower(text, target=refusing)


def test_a_target_without_i64_refuses_an_i64_index():
    """The conversion itself would be on i64: the error names it; demoting the module is another matter."""
    for refusing in (
        hl.Target("small", index_type="i32", refused_dtypes={"i64": "32 bits"}),
        hl.Target("small", index_type="i32", refused={"stablehlo.maximum": "no"}),
    ):
        with pytest.raises(hl.NotLoweredError) as error:
            hl.lower(module("tile"), target=refusing)
        assert error.value.exit_code == 3
        assert any(word in str(error.value) for word in ("i64", "stablehlo.maximum"))
        assert hl.lower(module("tile", index="i32"), target=refusing).scatters_left == 0


def test_a_conversion_that_is_refused_on_i64_is_made_of_its_bits():
    """Where i64 is taken elsewhere, the conversion of a start alone is written by other ops, to the same result."""
    target = hl.Target("small", index_type="i32", op_dtypes={"stablehlo.convert": {"i32", "f32", "i1"}})
    lowered = hl.lower(module("tile"), target=target)
    assert not lowered.scatters_left
    assert not lowered.refused
    assert hl.verify(module("tile"), lowered).ok


def test_a_constant_index_needs_no_i64():
    """Where it is known at conversion time, nothing of the index is left."""
    refusing = hl.Target("small", index_type="i32", refused_dtypes={"i64": "32 bits"})
    before = "%k = stablehlo.constant dense<2> : TYPE"
    lowered = hl.lower(module("tile", before=before, indices="%k"), target=refusing)
    assert lowered.scatters_left == 0


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_sizes_at_run_time_are_narrowed_alike(oob):
    """A scatter of dynamic shape has i32 starts, too; only elements that are dropped one by one are placed in i64."""
    text = module("tile").replace("8xf32", "?xf32")
    lowered = hl.lower(text, target=NARROW, oob=oob)
    assert ("stablehlo.maximum" in lowered.text) is (oob == "xla")
    assert ("tensor<i64>" in lowered.text) is (oob == "spec")
    run = runner(hl.lower(lowered.text.replace("?xf32", "8xf32")))
    for value in EXTREMES:
        operand, indices, updates = _arguments("tile", "i64", [value])
        assert run(operand, indices, updates).tolist() == dropped("tile", indices, updates, oob).tolist()


WRAPPING = """func.func public @main(%o: tensor<7x2xf32>, %t: tensor<i64>, %u: tensor<2x2xf32>) -> tensor<7x2xf32> {
  %b = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<i64>) -> tensor<2xi64>
  %i = stablehlo.iota dim = 0 : tensor<2xi64>
  %v = stablehlo.add %b, %i : tensor<2xi64>
  %z = stablehlo.constant dense<0> : tensor<2xi64>
  %c = stablehlo.compare LT, %v, %z, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
  %n = stablehlo.constant dense<7> : tensor<2xi64>
  %a = stablehlo.add %v, %n : tensor<2xi64>
  %s = stablehlo.select %c, %a, %v : tensor<2xi1>, tensor<2xi64>
  %x = "stablehlo.scatter"(%o, %s, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) : (tensor<7x2xf32>, tensor<2xi64>, tensor<2x2xf32>) -> tensor<7x2xf32>
  return %x : tensor<7x2xf32>
}"""


def test_a_run_that_wraps_and_lies_past_the_end_writes_nothing():
    """Saturated, a last row past the end stays so far out that the run that ends there does not begin inside."""
    lowered = hl.lower(WRAPPING, target=hl.Target("narrow", index_type="i32", refused={"stablehlo.scatter": ""}))
    assert lowered.records[0].rule == "wrapped_rows"
    versions = [Executable(t, "exact") for t in (WRAPPING, lowered.text)]
    for start in (-9, -8, -1, 5, 6, 7, 8, 16, 2**31, 2**40, -(2**40)):
        arguments = [np.zeros((7, 2), np.float32), np.array(start, np.int64), np.ones((2, 2), np.float32)]
        assert np.array_equal(*(version.run(arguments)[0] for version in versions)), start
