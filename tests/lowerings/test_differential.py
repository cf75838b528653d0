"""Every form against the NumPy reference, bit for bit: data types, index regimes, both policies.

One module per rule holds one scatter for each data type, so that XLA compiles once for all of them.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.ir.mlir import ScatterNumbers
from hlo_lower.verify.judges.definitions import combine_of, scatter
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
UNORDERED = {"subtract": {"i1"}, "maximum": {"complex<f32>"}, "minimum": {"complex<f32>"}}
TURNED = "%old, %new: %m = maximum %new, %old; return %m"

BATCHES = "batching=[0], indices_batching=[0], to=[1], ivd=1"
FORMS = {  # name: operand shape, indices shape, updates shape, dimension numbers
    "row": ((6, 4), (1,), (4,), "window=[0], inserted=[0], to=[0], ivd=0"),
    "window": ((6, 4), (2,), (3, 2), "window=[0, 1], to=[1, 0], ivd=0"),
    "rows": ((6, 4), (5, 1), (5, 4), "window=[1], inserted=[0], to=[0], ivd=1"),
    "points": ((6, 4), (2, 5), (5,), "inserted=[0, 1], to=[0, 1], ivd=0"),
    "windows": ((6, 4), (3, 2), (2, 3, 2), "window=[0, 2], to=[0, 1], ivd=1"),
    "batched": ((3, 6, 4), (3, 1), (3, 4), f"window=[1], inserted=[1], {BATCHES}"),
    "batched short": ((18, 6), (18, 1), (18,), f"inserted=[1], {BATCHES}"),
    "whole": ((6, 4), (2,), (6, 4), "window=[0, 1], to=[0, 1], ivd=0"),
}
MORE_FORMS = {
    # Two batching dims in the other order, and four positions for each batch coordinate.
    "two batches": (
        *((2, 3, 5), (3, 4, 2, 1), (3, 4, 2)),
        "inserted=[2], batching=[0, 1], indices_batching=[2, 0], to=[2], ivd=3",
    ),
    # No index vector dim, and the window in front of the positions.
    "implicit": ((6, 4), (5,), (4, 5), "window=[0], inserted=[0], to=[0], ivd=1"),
    # Window dims between scatter dims, of which one is covered in part.
    "interleaved": ((6, 4, 3), (2, 2, 5), (2, 2, 3, 5), "window=[0, 2], inserted=[1], to=[1, 0], ivd=1"),
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


def module_of(form, combiner, dtypes, index_type, producers="", flags="", kept=None):
    """One scatter for each data type, all with the same indices %i; updates differ along the kept dims alone."""
    operand, indices, updates, numbers = (FORMS | MORE_FORMS)[form]
    arguments, lines = [f"%i: {of(indices, index_type)}"], [producers]
    at = "%j" if producers else "%i"
    for n, element in enumerate(dtypes):
        small, given = of(updates, element), f"%u{n}"
        arguments += [f"%o{n}: {of(operand, element)}", f"%u{n}: {small}"]
        if kept is not None:
            cut, given = [f"0:{size if d in kept else 1}" for d, size in enumerate(updates)], f"%s{n}"
            lines.append(f"%c{n} = slice %u{n} [{', '.join(cut)}]")
            lines.append(f"%s{n} = broadcast_in_dim %c{n}, dims = {list(range(len(cut)))} -> {small}")
        body = TURNED if combiner == "maximum" else combiner
        lines.append(f"%r{n} = scatter(%o{n}, {at}, {given}) <{numbers}{flags}> {{{body}}}")
    return module(", ".join(arguments), "\n".join(lines), ", ".join(f"%r{n}" for n in range(len(dtypes))))


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
    for value in (0, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -7, info.min, info.max):
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
    operand, indices, updates, _ = (FORMS | MORE_FORMS)[form]
    dtypes = [d for d in dtypes if d not in UNORDERED.get(combiner, ())]
    text = module_of(form, combiner, dtypes, index_type, producers, flags, kept)
    lowered = hl.lower(text, oob=oob, **options)
    assert not lowered.scatters_left
    assert ("stablehlo.scatter" in lowered.text) is any("safe_scatter" in record.rule for record in lowered.records)
    run, graph, rng = Executable(lowered.text, "exact"), hl.read(text), np.random.default_rng(3)
    nodes = [(ScatterNumbers.of(node.raw), combine_of(node.raw, {})) for node in graph.scatters]
    for values in regimes(indices, index_type) if given is None else given:
        index = np.asarray(values).astype(DTYPES[index_type])
        pairs = [[draw(rng, shape, DTYPES[element]) for shape in (operand, updates)] for element in dtypes]
        results = run.run([index, *(array for pair in pairs for array in pair)])
        for n, (element, (o, u)) in enumerate(zip(dtypes, pairs, strict=True)):
            if kept is not None:
                u = np.broadcast_to(u[tuple(slice(None if d in kept else 1) for d in range(u.ndim))], u.shape)
            numbers, combine = nodes[n]
            [expected] = scatter([o], effective(index), [u], numbers, combine, [np.dtype(DTYPES[element])], oob=oob)
            (same or assert_same)(expected, results[n], f"{form} {combiner} {oob} {element} at {index.tolist()}")
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


@pytest.mark.parametrize(
    ("form", "oob"), [*((form, "xla") for form in FORMS), ("window", "spec"), ("windows", "spec"), ("whole", "spec")]
)
def test_addition(form, oob):
    """An addition is made once per update in row-major order, so even float sums with duplicates are equal."""
    rule = rule_of(form, oob, is_set=False)
    assert check(form, "add", oob, ["f32", "bf16", "i8", "i1", "complex<f32>"], prefer=(rule,)) == {rule}


SHORT = "short_operand=4096"


@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_assignment_to_a_short_operand(oob):
    """A select writes what the slice does, of every data type and in every index regime; clamped it needs no guard."""
    assert check("row", "assign", oob, DTYPES, prefer=(SHORT,)) == {"guarded_short_set"}
    assert check("row", "assign", oob, ["f32", "i8"], **clamped(0, 5), prefer=(SHORT,)) == {"short_set"}


@pytest.mark.parametrize(
    ("form", "combiner", "prefer", "rule"),
    [
        # a window that is longer than 1 in an indexed dim, and many windows, are lowered as without a short operand
        ("window", "assign", (SHORT,), "guarded_dynamic_update_slice"),
        ("points", "assign", (SHORT, "while"), "while"),
        # subtraction does not commute, and a maximum tells signed zeros, in the loop over overlapping windows
        ("windows", "subtract", ("while",), "while"),
        ("windows", "maximum", ("while",), "while"),
    ],
)
def test_other_forms_and_combiners(form, combiner, prefer, rule):
    """Each is what the reference says."""
    assert check(form, combiner, "xla", ["f32", "i8", "ui8", "i32"], prefer=prefer) == {rule}


@pytest.mark.few(2)
@pytest.mark.parametrize("index_type", ["i8", "ui8", "ui32", "i64"])
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_index_types(index_type, oob):
    """Narrow, unsigned and wide index types keep their meaning at both ends of their range (traps 6 and 7)."""
    check("window", "assign", oob, ["f32"], index_type)
    check("points", "add", oob, ["i32"], index_type)


def clamped(low, high):
    """Ops that clamp indices, and what they compute."""
    return {"producers": f"%j = clamp {low}, %i, {high}", "effective": lambda i: np.clip(i, low, high)}


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
        assert check(form, combiner, oob, ["f32", "i8"], **clamped(0, high), prefer=(rule,)) == {rule}


def test_nothing_in_bounds_is_the_operand():
    """Indices that are proved to lie outside leave the operand, whatever they are."""
    assert check("row", "add", "xla", list(DTYPES), **clamped(6, 9)) == {"operand"}
