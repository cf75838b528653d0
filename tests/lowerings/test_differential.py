"""Every form against the NumPy reference, bit for bit: data types, index regimes, both policies.

One module per rule holds one scatter for each data type, so that XLA compiles once for all of them.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from rewrites import main

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.definitions import ScatterNumbers, combine_of, scatter
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
    "ui32": np.uint32,
}
OPERANDS = {"maximum": "%u, %c"} | dict.fromkeys(("add", "subtract", "minimum", "multiply", "xor"), "%c, %u")
COMBINERS = {op: f"%s = stablehlo.{op} {of} : $t stablehlo.return %s : $t" for op, of in OPERANDS.items()}
COMBINERS["assign"] = "stablehlo.return %u : $t"
UNORDERED = {"subtract": {"i1"}, "maximum": {"complex<f32>"}, "minimum": {"complex<f32>"}}

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

FORMS = {"row": ROW, "window": WINDOW, "rows": ROWS, "points": POINTS, "windows": WINDOWS}
FORMS |= {"batched": BATCHED, "batched short": BATCHED_SHORT, "whole": WHOLE}
MORE_FORMS = {
    # Two batching dims in the other order, and four positions for each batch coordinate.
    "two batches": (
        *((2, 3, 5), (3, 4, 2, 1), (3, 4, 2)),
        "inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [2, 0], DIMS = [2]",
        3,
    ),
    # No index vector dim, and the window in front of the positions.
    "implicit": ((6, 4), (5,), (4, 5), "update_window_dims = [0], inserted_window_dims = [0], DIMS = [0]", 1),
    # Window dims between scatter dims, of which one is covered in part.
    "interleaved": (
        *((6, 4, 3), (2, 2, 5), (2, 2, 3, 5)),
        "update_window_dims = [0, 2], inserted_window_dims = [1], DIMS = [1, 0]",
        1,
    ),
}
"""Forms that `check` knows besides."""

GUARDED = ("guarded_dynamic_update_slice", "guarded_updated_slice")
SHIFTED = ("shifted_dynamic_update_slice", "shifted_updated_slice")
RULES = {"row": GUARDED, "window": GUARDED, "whole": GUARDED}
RULES |= {"batched": ("unrolled",), "batched short": ("select_per_batch",)}
SPEC_RULES = RULES | {"window": SHIFTED, "whole": SHIFTED}


def rule_of(form, oob, *, is_set):
    """The rule that sets or updates a form; a loop where no other does."""
    found = (SPEC_RULES if oob == "spec" else RULES).get(form, ("while",))
    return found[0] if is_set else found[-1]


def typed(shape, element):
    """`tensor<shape x element>`."""
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def same_along(number, updates, element, kept):
    """Lines that make updates %s of %u the same along all dims but those kept, by its first elements."""
    cut = [size if d in kept else 1 for d, size in enumerate(updates)]
    big, small, dims = typed(updates, element), typed(cut, element), list(range(len(cut)))
    return (
        f"%c{number} = stablehlo.slice %u{number} [{', '.join(f'0:{size}' for size in cut)}] : ({big}) -> {small}\n"
        f"%s{number} = stablehlo.broadcast_in_dim %c{number}, dims = {dims} : ({small}) -> {big}"
    )


def module_of(form, combiner, dtypes, index_type, producers="", flags="", kept=None):
    """One scatter for each data type, all with the same indices %i; updates differ along the kept dims alone."""
    operand, indices, updates, dims, ivd = (FORMS | MORE_FORMS)[form]
    dims = f"{dims.replace('DIMS', 'scatter_dims_to_operand_dims')}, index_vector_dim = {ivd}"
    index, at, given = "%j" if producers else "%i", typed(indices, index_type), "%u" if kept is None else "%s"
    arguments, lines, types = [f"%i: {at}"], [producers], []
    for n, element in enumerate(dtypes):
        big, small, scalar = typed(operand, element), typed(updates, element), typed((), element)
        arguments += [f"%o{n}: {big}", f"%u{n}: {small}"]
        lines += [] if kept is None else [same_along(n, updates, element, kept)]
        lines.append(
            f"""%r{n} = "stablehlo.scatter"(%o{n}, {index}, {given}{n}) <{{
    {flags}scatter_dimension_numbers = #stablehlo.scatter<{dims}>}}> ({{
  ^bb0(%c: {scalar}, %u: {scalar}):
    {COMBINERS[combiner].replace("$t", scalar)}
  }}) : ({big}, {at}, {small}) -> {big}"""
        )
        types.append(big)
    names = ", ".join(f"%r{n}" for n in range(len(types)))
    return main(", ".join(arguments), "\n".join(lines), f"{names} : {', '.join(types)}")


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
    info = np.iinfo(DTYPES[index_type])
    rng = np.random.default_rng(7)
    yield np.zeros(shape)
    yield np.ones(shape)
    for value in (2, 3, 4, 5, 6, 7, -1, -2, -3, -7, info.min, info.max):
        if info.min <= value <= info.max:
            yield np.full(shape, value, object)
    for low, high in ((0, 3), (-3, 8), (-1, 6)):
        yield rng.integers(max(low, info.min), high, shape)


def check(
    form,
    combiner,
    oob,
    dtypes,
    index_type="i32",
    producers="",
    effective=lambda i: i,
    flags="",
    kept=None,
    given=None,
    same=None,
    **options,
):
    """Lower one module and compare every result in every regime; returns the rules that were used.

    Args:
      form, combiner, oob, dtypes, index_type, producers: of the module; effective is what the producers compute.
      flags: of the scatters.
      kept: the only update dims along which the updates differ; None for all.
      given: the indices to try instead of `regimes`.
      same: what compares, instead of `assert_same`.
      options: further keywords of `hl.lower`.
    """
    operand, indices, updates, _, ivd = (FORMS | MORE_FORMS)[form]
    dtypes = [d for d in dtypes if d not in UNORDERED.get(combiner, ())]
    text = module_of(form, combiner, dtypes, index_type, producers, flags, kept)
    lowered = hl.lower(text, oob=oob, **options)
    assert not lowered.scatters_left
    assert ("stablehlo.scatter" in lowered.text) is any("safe_scatter" in record.rule for record in lowered.records)
    run = Executable(lowered.text, "exact")
    graph = hl.read(text)
    raw = mlir.scatter_dimension_numbers(graph.scatters[0].raw)
    numbers = ScatterNumbers(
        tuple(raw.update_window_dims), tuple(raw.inserted_window_dims), tuple(raw.input_batching_dims),
        tuple(raw.scatter_indices_batching_dims), tuple(raw.scattered_dims_to_operand_dims), ivd,
    )  # fmt: skip
    combine = [combine_of(node.raw, {}) for node in graph.scatters]
    rng = np.random.default_rng(3)
    for values in regimes(indices, index_type) if given is None else given:
        index = np.asarray(values).astype(DTYPES[index_type])
        arguments = [index]
        for element in dtypes:
            arguments += [draw(rng, operand, DTYPES[element]), draw(rng, updates, DTYPES[element])]
        results = run.run(arguments)
        for n, element in enumerate(dtypes):
            o, u = arguments[1 + 2 * n : 3 + 2 * n]
            if kept is not None:
                u = np.broadcast_to(u[tuple(slice(None if d in kept else 1) for d in range(u.ndim))], u.shape)
            [expected] = scatter([o], effective(index), [u], numbers, combine[n], [np.dtype(DTYPES[element])], oob=oob)
            what = f"{form} {combiner} {oob} {element} at {index.tolist()}"
            (same or assert_same)(expected, results[n], what)
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


@pytest.mark.few(4)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("form", FORMS)
def test_assignment_of_every_dtype(form, oob):
    """An assignment moves bits: every data type comes out as the reference says, in every index regime."""
    rule = rule_of(form, oob, is_set=True)
    assert check(form, "assign", oob, DTYPES, prefer=(rule,)) == {rule}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("form", "oob"), [*((form, "xla") for form in FORMS), ("window", "spec"), ("windows", "spec"), ("whole", "spec")]
)
def test_addition(form, oob):
    """An addition is made once per update in row-major order, so even float sums with duplicates are equal."""
    rule = rule_of(form, oob, is_set=False)
    assert check(form, "add", oob, ["f32", "bf16", "i8", "i1", "complex<f32>"], prefer=(rule,)) == {rule}


SHORT = "short_operand=4096"


@pytest.mark.parametrize(("form", "oob"), [("row", "xla"), ("row", "spec")])
def test_assignment_to_a_short_operand(form, oob):
    """A select writes what the slice does, of every data type and in every index regime; clamped it needs no guard."""
    assert check(form, "assign", oob, DTYPES, prefer=(SHORT,)) == {"guarded_short_set"}
    assert check(form, "assign", oob, ["f32", "i8"], **clamped(form, 0, 5), prefer=(SHORT,)) == {"short_set"}


@pytest.mark.parametrize(("form", "rule"), [("window", "guarded_dynamic_update_slice"), ("points", "while")])
def test_what_is_no_row_is_not_written_by_a_select(form, rule):
    """A window that is longer than 1 in an indexed dim, and many windows, are lowered as without it."""
    assert check(form, "assign", "xla", ["f32"], prefer=(SHORT, *(("while",) if rule == "while" else ()))) == {rule}


@pytest.mark.parametrize("combiner", ["subtract", "maximum"])
def test_other_combiners(combiner):
    """Subtraction, which does not commute, and maximum, with signed zeros, in the loop over overlapping windows."""
    assert check("windows", combiner, "xla", ["f32", "i8", "ui8", "i32"], prefer=("while",)) == {"while"}


@pytest.mark.few(2)
@pytest.mark.parametrize("index_type", ["i8", "ui8", "ui32", "i64"])
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_index_types(index_type, oob):
    """Narrow, unsigned and wide index types keep their meaning at both ends of their range (traps 6 and 7)."""
    check("window", "assign", oob, ["f32"], index_type)
    check("points", "add", oob, ["i32"], index_type)


def clamped(form, low, high):
    """Ops that clamp the indices of a form, and what they compute."""
    at = typed(FORMS[form][1], "i32")
    ends = [f"%{name} = stablehlo.constant dense<{n}> : tensor<i32>" for name, n in (("lo", low), ("hi", high))]
    ops = [*ends, f"%j = stablehlo.clamp %lo, %i, %hi : (tensor<i32>, {at}, tensor<i32>) -> {at}"]
    return {"producers": "\n".join(ops), "effective": lambda i: np.clip(i, low, high)}


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
    for oob in ("xla", "spec"):
        assert check(form, combiner, oob, ["f32", "i8"], **clamped(form, 0, high), prefer=(rule,)) == {rule}


def test_nothing_in_bounds_is_the_operand():
    """Indices that are proved to lie outside leave the operand, whatever they are."""
    assert check("row", "add", "xla", list(DTYPES), **clamped("row", 6, 9)) == {"operand"}
