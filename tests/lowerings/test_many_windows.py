"""Each form for many windows against the NumPy reference, bit for bit: it is asked for by name, whatever it costs."""

from pathlib import Path

import numpy as np
import pytest
from test_differential import DTYPES, check, draw, regimes
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.lowering.scatter import numbered_rows
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import ScatterNumbers, scatter
from hlo_lower.verify.run import Executable

CASES = [(form, "xla") for form in ("points", "rows", "windows", "two batches", "implicit", "interleaved")]
CASES += [("windows", "spec"), ("interleaved", "spec")]
"""The policies differ where windows have several rows."""
FOUR = (("points", "xla"), ("rows", "xla"), ("windows", "spec"), ("two batches", "xla"))
NOW = (("rows", "xla"), ("windows", "spec"))
"""What the default run tries of each rule; tests/proof proves each rule on small shapes of the other forms."""
IN_PARTS = "mask_elements=37"
REDUCED = {
    "add": ["i32", "i8", "ui8", "i1", "i64"],
    "subtract": ["i32", "ui8"],
    "multiply": ["i32", "i8", "i1"],
    "maximum": ["f32", "bf16", "f16", "f64", "i8", "ui32", "i1"],
    "minimum": ["f32", "bf16", "f64", "i32", "ui8", "i1"],
    "xor": ["i32", "i8", "i1"],
}


def near(expected, found, what):
    """NaN and infinities in the same places, and what is finite within the rounding of a few sums of up to 300."""
    assert expected.dtype == found.dtype
    with np.errstate(all="ignore"):
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, b = np.asarray(expected).astype(wide), np.asarray(found).astype(wide)
        allowed = {"bfloat16": 40.0, "float16": 5.0}.get(expected.dtype.name, 1e-2 if a.dtype.kind == "c" else 1e-3)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), what)
        np.testing.assert_allclose(b, a, rtol=0, atol=allowed, err_msg=what)


ONCE = {
    "windows": np.array([(0, 0), (3, 0), (0, 2), (3, 2), (7, 1), (-4, 0)]),
    "points": np.array([(i, j) for i in range(-1, 7) for j in range(-1, 5)]),
    "rows": np.arange(-2, 8)[:, None],
}


def once(form):
    """Indices whose windows do not meet; some of them lie outside."""
    rng = np.random.default_rng(5)
    found = [rng.permutation(ONCE[form])[: 3 if form == "windows" else 5] for _ in range(12)]
    return [indices.T if form == "points" else indices for indices in found]


def assignments(form, oob):
    """The last of several updates wins in every element type, and what is dropped changes nothing."""
    for rule in ("last_writer", "sorted_last_writer", "unrolled"):
        several = ["bf16", "i1", "ui32", "complex<f32>", "f64"] if rule == "last_writer" and (form, oob) in NOW else []
        more = ("few_windows=64", *([IN_PARTS] if oob == "spec" or form == "rows" else []))
        yield rule, "assign", ["f32", "i8", *several], {"prefer": (rule, *more)}


def of_a_consumer(form, oob):
    """As a scatter of rows in bounds the writes to a row keep their order, and what is dropped changes nothing."""
    for combiner in ("assign", "add", "subtract", "minimum"):
        kinds = ["f32", *(["bf16", "i8", "i1"] if (form, oob) in NOW else [])]
        yield "safe_scatter", combiner, kinds, {"target": "iree"}


def in_rounds(form, oob):
    """In rounds each row takes its updates in their order, so that float sums keep every bit, and NaN stay in rows."""
    for combiner in ("add", "subtract", "multiply"):
        several = ["bf16", "i8", *(["complex<f32>"] if combiner != "multiply" else [])]  # XLA contracts those
        yield "rounds", combiner, ["f32", *(several if (form, oob) in NOW else [])], {}


def of_index_types(form, oob):
    """Narrow, unsigned and wide indices keep their meaning at both ends of their range."""
    for rule in ("last_writer", "sorted_last_writer", "rounds") if form in ("rows", "two batches") else ():
        for index_type in ("i8", "ui8", "i64"):
            yield rule, "add" if rule == "rounds" else "assign", ["f32"], {"index_type": index_type}


def masks(form, oob):
    """Updates that are all the same leave the same, whatever their number; they may differ along whole dims and
    between batch coordinates."""
    for combiner in ("assign", "maximum", "minimum") if (form, oob) in FOUR else ():
        kept = {"rows": (1,), "two batches": (0, 2)}.get(form, ())
        kinds = ["f32", "bf16", "i8", "i1", "ui32"] if combiner == "assign" else ["f32", "i8"]
        prefer = ("mask", *([IN_PARTS] if combiner == "maximum" else []))
        yield "mask", combiner, kinds, {"kept": kept, "prefer": prefer}


def combined_first(form, oob):
    """Integers that wrap, truths, and extremes of floats with NaN and signed zeros come out bit for bit; a matrix
    product of integers wraps as the sum does."""
    in_parts = [IN_PARTS] if form in ("rows", "interleaved") else []
    for combiner in REDUCED if form == "rows" else ("add", "maximum"):
        kinds = REDUCED[combiner] if form == "rows" else REDUCED[combiner][::3]  # every type in one form
        for rule in ("compare_reduce", "sorted_segments"):
            yield rule, combiner, kinds, {"prefer": (rule, *(in_parts if combiner != "minimum" else []))}
    for combiner, kinds in (("add", ["i32", "i64", "ui32"]), ("subtract", ["i32"])):
        yield "one_hot_dot", combiner, kinds, {"prefer": ("one_hot_dot", *in_parts)}


def of_floats_in_any_order(form, oob):
    """With reassociation sums are near, and NaN and infinities stay in the rows that they are for."""
    for rule in ("compare_reduce", "one_hot_dot", "sorted_segments") if (form, oob) in FOUR else ():
        kinds = ["f32", "bf16", "f16", "f64", *(["complex<f32>"] if rule != "one_hot_dot" else [])]
        for combiner in ("add", "subtract"):
            yield rule, combiner, kinds, {"float_mode": "reassociate", "same": near}


def written_once(form, oob):
    """Float sums of which each has one update are exact, and -0.0 stays where there is none."""
    for rule in ("only_writer", "sorted_only_writer") if form in ONCE else ():
        options = {"flags": ", unique_indices = true", "trust_flags": True, "given": once(form)}
        for combiner in ("add", "subtract"):
            prefer = (rule, *([IN_PARTS] if form == "rows" else []))
            yield rule, combiner, ["f32", "bf16", "i8", "f64"], {**options, "prefer": prefer}


KINDS = assignments, of_a_consumer, in_rounds, of_index_types, masks, combined_first
KINDS += of_floats_in_any_order, written_once


def every_case():
    """Parameters of the test below; those of forms that are not in NOW are for the sweep."""
    for kind in KINDS:
        for form, oob in CASES:
            for rule, combiner, elements, options in kind(form, oob):
                marks = () if (form, oob) in NOW else pytest.mark.sweep
                name = f"{kind.__name__}-{rule}-{combiner}-{form}-{oob}-{options.get('index_type', '')}"
                yield pytest.param(rule, combiner, form, oob, elements, options, id=name, marks=marks)


@pytest.mark.few(17)
@pytest.mark.parametrize(("rule", "combiner", "form", "oob", "elements", "options"), [*every_case()])
def test_a_rule_gives_what_the_reference_gives(rule, combiner, form, oob, elements, options):
    """As each of the functions above says."""
    assert check(form, combiner, oob, elements, **{"prefer": (rule,), **options}) == {rule}


def test_what_fills_up_the_last_part_is_dropped():
    """Five writes in three parts of two: a sixth one of zero would show in rows whose maximum is below zero."""
    prefer = ("compare_reduce", IN_PARTS)
    assert check("rows", "maximum", "xla", ["i8"], prefer=prefer) == {"compare_reduce"}


def test_batches_are_searched_apart():
    """The sorted rows of each batch coordinate are its own."""
    used = check("two batches", "assign", "xla", ["f32"], prefer=("sorted_last_writer",))
    assert used == {"sorted_last_writer"}


def test_infinities_multiplied_by_0_are_found(monkeypatch):
    """The comparison of sums can fail: a product that takes infinities and NaN as they are spoils other rows."""
    monkeypatch.setattr(numbered_rows, "_columns", lambda build, value: value)
    monkeypatch.setattr(numbered_rows, "_sum", lambda build, product, update, shape: product)
    with pytest.raises(AssertionError):
        check("rows", "add", "xla", ["f32"], same=near, float_mode="reassociate", prefer=("one_hot_dot",))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("rule", "combiner"),
    [
        *((rule, c) for rule in ("compare_reduce", "sorted_segments") for c in ("add", "subtract", "multiply")),
        *(("one_hot_dot", c) for c in ("add", "subtract")),
    ],
)
def test_rows_without_an_update_keep_their_bits(rule, combiner):
    """Where nothing is added, -0.0 stays -0.0, whatever stands in the updates of other rows and in dropped ones."""

    def exact_where_no_update(expected, found, what):
        near(expected, found, what)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(np.signbit(found[2:5]), np.signbit(expected[2:5]), what)

    given = [np.array([[0], [1], [1], [-1], [6]]), np.array([[5], [5], [5], [7], [-3]])]
    options = {"float_mode": "reassociate", "prefer": (rule,), "given": given * 4}
    kinds = ["f32", "f64"]
    assert check("rows", combiner, "xla", kinds, same=exact_where_no_update, **options) == {rule}


PERMUTED = (Path(__file__).parents[1] / "golden" / "permuted.mlir").read_text()
ADDED = "%s_ = stablehlo.add %c, %u : tensor<f32> stablehlo.return %s_ : tensor<f32>"


@pytest.mark.parametrize("form", ["", "only", "sorted_only"])
@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("width", [4, 1])
def test_rows_in_the_order_of_an_argsort(width, is_added, form):
    """Each row gets the update whose key has its place, also where keys are equal: the program's own sort is stable.
    No rule asks whether a row is written."""
    text = PERMUTED.replace("8x4xf32", f"8x{width}xf32")
    if is_added:
        text = text.replace("stablehlo.return %u : tensor<f32>", ADDED)
    rule = f"{form if is_added else form.replace('only', 'last')}_writer" if form else "permuted"
    lowered = hl.lower(text, prefer=(rule,))
    assert [record.rule for record in lowered.records] == [rule]
    assert "compare NE" not in lowered.text
    executable, rng = Executable(lowered.text, "exact"), np.random.default_rng(0)
    for _ in range(6):
        keys = rng.integers(-3, 4, 8).astype(np.int32)
        operand, updates = (draw(rng, (8, width), np.float32) for _ in range(2))
        expected, order = operand.copy(), np.argsort(keys, kind="stable")
        with np.errstate(all="ignore"):
            expected[order] = operand[order] + updates if is_added else updates
        assert first_difference([expected], executable.run([operand, keys, updates])) is None


def two(body):
    """A scatter of rows into two operands."""
    text = (
        f"%r:2 = scatter(%o, %p, %i, %x, %y) <window=[1], inserted=[0], to=[0], ivd=1> {{{body}}} -> (6x2xf32, 6x2xi32)"
    )
    return module("%o: 6x2xf32, %p: 6x2xi32, %i: 7x1xi32, %x: 7x2xf32, %y: 7x2xi32", text, "%r#0, %r#1")


BODIES = {  # of whole numbers, so that no sum rounds
    "assign": lambda c, u: u,
    "maximum": lambda c, u: [np.maximum(c[0], u[0]), np.maximum(c[1], u[1])],
    "add": lambda c, u: [c[0] + u[0], c[1] + u[1]],
}


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        *(("last_writer", "assign"), ("sorted_last_writer", "assign")),
        *(("compare_reduce", "add"), ("sorted_segments", "maximum")),
    ],
)
def test_several_operands(rule, body):
    """Of equal indices the same update wins in each operand, and each operand is combined with its own updates."""
    lowered = hl.lower(two(body), prefer=(rule,), float_mode="reassociate")
    assert [record.rule for record in lowered.records] == [rule]
    executable, rng = Executable(lowered.text, "exact"), np.random.default_rng(0)
    numbers = ScatterNumbers((1,), (0,), (), (), (0,), 1)
    for values in regimes((7, 1), "i32"):
        index = np.asarray(values).astype(np.int32)
        operands = [rng.integers(-9, 9, (6, 2)).astype(t) for t in (np.float32, np.int32)]
        updates = [rng.integers(-9, 9, (7, 2)).astype(t) for t in (np.float32, np.int32)]
        kinds = [np.dtype(DTYPES[t]) for t in ("f32", "i32")]
        expected = scatter(operands, index, updates, numbers, BODIES[body], kinds, oob="xla")
        assert first_difference(expected, executable.run([*operands, index, *updates])) is None
