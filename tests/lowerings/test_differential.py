"""Every form against the NumPy reference, bit for bit: data types, index regimes, both policies.

One module per rule holds one scatter for each data type, so that XLA compiles once for all of them.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.scatter.reference import ScatterNumbers, scatter
from hlo_lower.verify.region import combine_of
from hlo_lower.verify.run import Executable

DTYPES = {
    "f32": np.float32,
    "bf16": jnp.bfloat16.dtype,
    "f16": np.float16,
    "f64": np.float64,
    "i32": np.int32,
    "i8": np.int8,
    "ui8": np.uint8,
    "i1": np.bool_,
    "complex<f32>": np.complex64,
    "i64": np.int64,
}
COMBINERS = {
    "assign": "stablehlo.return %u : $t",
    "add": "%s = stablehlo.add %c, %u : $t\n    stablehlo.return %s : $t",
    "subtract": "%s = stablehlo.subtract %c, %u : $t\n    stablehlo.return %s : $t",
    "maximum": "%s = stablehlo.maximum %u, %c : $t\n    stablehlo.return %s : $t",
}
UNORDERED = {"subtract": {"i1"}, "maximum": {"complex<f32>"}}

# name: operand shape, indices shape, updates shape, dimension numbers, index vector dim
ROW = ((6, 4), (1,), (4,), "update_window_dims = [0], inserted_window_dims = [0], DIMS = [0]", 0)
WINDOW = ((6, 4), (2,), (3, 2), "update_window_dims = [0, 1], DIMS = [1, 0]", 0)
ROWS = ((6, 4), (5, 1), (5, 4), "update_window_dims = [1], inserted_window_dims = [0], DIMS = [0]", 1)
POINTS = ((6, 4), (2, 5), (5,), "inserted_window_dims = [0, 1], DIMS = [0, 1]", 0)
WINDOWS = ((6, 4), (3, 2), (2, 3, 2), "update_window_dims = [0, 2], DIMS = [0, 1]", 1)
BATCHED = (
    (3, 6, 4),
    (3, 1),
    (3, 4),
    "update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [0], DIMS = [1]",
    1,
)
BATCHED_SHORT = ((18, 6), (18, 1), (18,), BATCHED[3].replace("update_window_dims = [1], ", ""), 1)
WHOLE = ((6, 4), (2,), (6, 4), "update_window_dims = [0, 1], DIMS = [0, 1]", 0)

FORMS = {
    "row": ROW,
    "window": WINDOW,
    "rows": ROWS,
    "points": POINTS,
    "windows": WINDOWS,
    "batched": BATCHED,
    "batched short": BATCHED_SHORT,
    "whole": WHOLE,
}
RULES = {
    "row": ("guarded_dynamic_update_slice", "guarded_updated_slice"),
    "window": ("guarded_dynamic_update_slice", "guarded_updated_slice"),
    "whole": ("guarded_dynamic_update_slice", "guarded_updated_slice"),
    "batched": ("window_per_batch", "window_per_batch"),
    "batched short": ("select_per_batch", "select_per_batch"),
}
SPEC_RULES = {
    "window": ("shifted_dynamic_update_slice", "shifted_updated_slice"),
    "whole": ("shifted_dynamic_update_slice", "shifted_updated_slice"),
}


def typed(shape, element):
    """`tensor<shape x element>`."""
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def module_of(form, combiner, dtypes, index_type, producers=""):
    """One scatter for each data type, all with the same indices %i."""
    operand, indices, updates, dims, ivd = FORMS[form]
    dims = dims.replace("DIMS", "scatter_dims_to_operand_dims")
    arguments, lines, returned = [f"%i: {typed(indices, index_type)}"], [producers], []
    index = "%j" if producers else "%i"
    for n, element in enumerate(dtypes):
        big, small, scalar = typed(operand, element), typed(updates, element), typed((), element)
        arguments += [f"%o{n}: {big}", f"%u{n}: {small}"]
        body = COMBINERS[combiner].replace("$t", scalar)
        lines.append(
            f"""%r{n} = "stablehlo.scatter"(%o{n}, {index}, %u{n}) <{{scatter_dimension_numbers =
    #stablehlo.scatter<{dims}, index_vector_dim = {ivd}>}}> ({{
  ^bb0(%c: {scalar}, %u: {scalar}):
    {body}
  }}) : ({big}, {typed(indices, index_type)}, {small}) -> {big}"""
        )
        returned.append((f"%r{n}", big))
    names, types = zip(*returned, strict=True)
    return (
        f"func.func public @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n"
        + "\n".join(lines)
        + f"\n  return {', '.join(names)} : {', '.join(types)}\n}}\n"
    )


def draw(rng, shape, dtype):
    """Values of a data type with NaN, infinities, signed zeros and the extremes of integers among them."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.choice(np.array([info.min, info.max, 0, 1, 3, 7], dtype), shape)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1.5, -2.25, 1e-3, 300.0])
    if dtype.kind == "c":
        finite = special[np.isfinite(special)]
        return (rng.choice(finite, shape) + 1j * rng.choice(finite, shape)).astype(dtype)
    return rng.choice(special, shape).astype(np.float32).astype(dtype)


def regimes(shape, index_type):
    """Index values: in range, at the edges, overhanging, negative, far out, all equal, duplicates."""
    info = np.iinfo(DTYPES.get(index_type, np.uint32 if index_type == "ui32" else None))
    rng = np.random.default_rng(7)
    yield np.zeros(shape)
    yield np.ones(shape)
    for value in (2, 3, 4, 5, 6, 7, -1, -2, -3, -7, info.min, info.max):
        if info.min <= value <= info.max:
            yield np.full(shape, value, object)
    for low, high in ((0, 3), (-3, 8), (-1, 6)):
        yield rng.integers(max(low, info.min), high, shape)


def check(form, combiner, oob, dtypes, index_type="i32", producers="", effective=lambda i: i):
    """Lower one module and compare every result in every regime; returns the rules that were used."""
    operand, indices, updates, _, ivd = FORMS[form]
    dtypes = [d for d in dtypes if d not in UNORDERED.get(combiner, ())]
    text = module_of(form, combiner, dtypes, index_type, producers)
    lowered = hl.lower(text, oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    run = Executable(lowered.text, "exact")
    graph = hl.read(text)
    raw = mlir.scatter_dimension_numbers(graph.scatters[0].raw)
    numbers = ScatterNumbers(
        tuple(raw.update_window_dims), tuple(raw.inserted_window_dims), tuple(raw.input_batching_dims),
        tuple(raw.scatter_indices_batching_dims), tuple(raw.scattered_dims_to_operand_dims), ivd,
    )  # fmt: skip
    combine = [combine_of(node.raw, {}) for node in graph.scatters]
    rng = np.random.default_rng(3)
    index_dtype = {"ui32": np.uint32}.get(index_type) or DTYPES[index_type]
    for values in regimes(indices, index_type):
        index = np.asarray(values).astype(index_dtype)
        arguments = [index]
        for element in dtypes:
            arguments += [draw(rng, operand, DTYPES[element]), draw(rng, updates, DTYPES[element])]
        results = run.run(arguments)
        for n, element in enumerate(dtypes):
            o, u = arguments[1 + 2 * n : 3 + 2 * n]
            [expected] = scatter([o], effective(index), [u], numbers, combine[n], [np.dtype(DTYPES[element])], oob=oob)
            assert_same(expected, results[n], f"{form} {combiner} {oob} {element} at {index.tolist()}")
    return {record.rule for record in lowered.records}


def assert_same(expected, found, what):
    """Equal bit for bit, any NaN equal to any other."""
    assert expected.dtype == found.dtype, what
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected, what)
        return
    with np.errstate(all="ignore"):
        for part in ("real", "imag") if expected.dtype.kind == "c" else (None,):
            a, b = (getattr(x, part) if part else np.asarray(x).astype(np.float64) for x in (expected, found))
            np.testing.assert_array_equal(b, a, what)
            real = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(b)[real], np.signbit(a)[real], what)


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("form", FORMS)
def test_assignment_of_every_dtype(form, oob):
    """An assignment moves bits: every data type comes out as the reference says, in every index regime."""
    expected = (SPEC_RULES if oob == "spec" else {}).get(form) or RULES.get(form) or ("while",)
    assert check(form, "assign", oob, DTYPES) == {expected[0]}


@pytest.mark.parametrize(
    ("form", "oob"),
    [*((form, "xla") for form in FORMS), ("window", "spec"), ("windows", "spec"), ("whole", "spec")],
)
def test_addition(form, oob):
    """An addition is made once per update in row-major order, so even float sums with duplicates are equal."""
    expected = (SPEC_RULES if oob == "spec" else {}).get(form) or RULES.get(form) or ("while",)
    assert check(form, "add", oob, ["f32", "bf16", "i8", "i1", "complex<f32>"]) == {expected[-1]}


@pytest.mark.parametrize("combiner", ["subtract", "maximum"])
def test_other_combiners(combiner):
    """Subtraction, which does not commute, and maximum, with signed zeros, in the loop over overlapping windows."""
    assert check("windows", combiner, "xla", ["f32", "i8", "ui8", "i32"]) == {"while"}


@pytest.mark.parametrize("index_type", ["i8", "ui8", "ui32", "i64"])
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_index_types(index_type, oob):
    """Narrow, unsigned and wide index types keep their meaning at both ends of their range (traps 6 and 7)."""
    check("window", "assign", oob, ["f32"], index_type)
    check("points", "add", oob, ["i32"], index_type)


CLAMPED = """  %lo = stablehlo.constant dense<0> : tensor<i32>
  %hi = stablehlo.constant dense<3> : tensor<i32>
  %j = stablehlo.clamp %lo, %i, %hi : (tensor<i32>, tensor<INDEXxi32>, tensor<i32>) -> tensor<INDEXxi32>"""


@pytest.mark.parametrize(
    ("form", "combiner", "high", "rule"),
    [
        ("row", "assign", 5, "dynamic_update_slice"),
        ("row", "add", 5, "updated_slice"),
        ("window", "assign", 2, "dynamic_update_slice"),
        ("window", "add", 2, "updated_slice"),
        ("whole", "assign", 0, "updates"),
        ("whole", "add", 0, "elementwise"),
        ("rows", "add", 5, "while"),
    ],
)
def test_clamped_indices_need_no_guard(form, combiner, high, rule):
    """Indices that a clamp keeps inside are written without a guard, with the same result under both policies."""
    shape = "x".join(map(str, FORMS[form][1]))
    producers = CLAMPED.replace("INDEX", shape).replace("dense<3>", f"dense<{high}>")
    for oob in ("xla", "spec"):
        found = check(form, combiner, oob, ["f32", "i8"], producers=producers, effective=lambda i: np.clip(i, 0, high))
        assert found == {rule}


def test_nothing_in_bounds_is_the_operand():
    """Indices that are proved to lie outside leave the operand, whatever they are."""
    producers = CLAMPED.replace("INDEX", "1").replace("dense<0>", "dense<6>").replace("dense<3>", "dense<9>")
    found = check("row", "add", "xla", list(DTYPES), producers=producers, effective=lambda i: np.clip(i, 6, 9))
    assert found == {"operand"}
