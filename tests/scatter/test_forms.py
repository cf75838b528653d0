"""Which forms are right for a scatter of many windows."""

import pytest

import hlo_lower as hl
from hlo_lower.facts.scatter.facts import Strategy
from hlo_lower.lowering.engine.kind import Context
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.scatters import read_scatters

COMBINED = {Strategy.REDUCTION, Strategy.SORTED_REDUCTION}
LOOKED_UP = {Strategy.INVERSION, Strategy.SORTED_INVERSION}
REGISTRY = default_registry()


def forms_of(combiner, element, flags="", update="%up", **options):
    """The forms for 6 rows of 4 into 8."""
    body = "stablehlo.return %u : $t"
    if combiner != "assign":
        body = f"%n = stablehlo.{combiner} %c, %u : $t\n    stablehlo.return %n : $t"
    body = body.replace("$t", f"tensor<{element}>")
    text = f"""func.func @main(%o: tensor<8x4x{element}>, %i: tensor<6x1xi32>, %up: tensor<6x4x{element}>,
    %s: tensor<{element}>) -> tensor<8x4x{element}> {{
  %one = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<{element}>) -> tensor<6x4x{element}>
  %r = "stablehlo.scatter"(%o, %i, {update}) <{{{flags} scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}}> ({{
  ^bb0(%c: tensor<{element}>, %u: tensor<{element}>):
    {body}
  }}) : (tensor<8x4x{element}>, tensor<6x1xi32>, tensor<6x4x{element}>) -> tensor<8x4x{element}>
  return %r : tensor<8x4x{element}>
}}"""
    [subject] = read_scatters(Context(hl.read(text), Options(**options), REGISTRY))
    return set(subject.candidates[0].facts.strategies)


@pytest.mark.parametrize(
    ("combiner", "element", "mode", "expected"),
    [
        ("add", "f32", "exact", set()),
        ("add", "f32", "reassociate", {*COMBINED, Strategy.DOT}),
        ("add", "bf16", "exact", set()),
        ("multiply", "f32", "exact", set()),
        ("multiply", "f32", "reassociate", COMBINED),
        ("add", "complex<f32>", "exact", set()),
        ("add", "complex<f32>", "reassociate", COMBINED),
        ("multiply", "complex<f32>", "reassociate", set()),
        ("add", "i32", "exact", {*COMBINED, Strategy.DOT}),
        ("add", "i8", "exact", COMBINED),
        ("subtract", "i32", "exact", {*COMBINED, Strategy.DOT}),
        ("multiply", "i32", "exact", COMBINED),
        ("maximum", "f32", "exact", COMBINED),
        ("maximum", "i32", "exact", COMBINED),
        ("minimum", "f8E5M2", "exact", set()),
        ("minimum", "f8E4M3FN", "reassociate", set()),
        ("divide", "f32", "reassociate", set()),
        ("assign", "i32", "reassociate", LOOKED_UP),
    ],
)
def test_what_may_be_combined_first(combiner, element, mode, expected):
    """Only what rounds nothing is, unless rounding otherwise is asked for; a product that can make a NaN never is."""
    found = forms_of(combiner, element, float_mode=mode)
    assert found & {*COMBINED, Strategy.DOT, *LOOKED_UP} == expected
    assert Strategy.MANY in found


def test_rows_that_are_written_once_are_looked_up():
    """A float sum is where no row has two updates: the claim of it counts only where flags are trusted."""
    unique = "unique_indices = true,"
    assert not LOOKED_UP & forms_of("add", "f32", unique)
    assert forms_of("add", "f32", unique, trust_flags=True) >= LOOKED_UP
    assert not LOOKED_UP & forms_of("add", "f32", trust_flags=True)


def test_a_mask_is_for_updates_that_are_the_same():
    """Equal updates are written once or often alike, unless they are summed."""
    for combiner, update, is_masked in (
        *(("assign", "%one", True), ("assign", "%up", False)),
        *(("maximum", "%one", True), ("add", "%one", False)),
    ):
        assert (Strategy.MASK in forms_of(combiner, "f32", update=update)) is is_masked


def test_windows_get_ops_of_their_own_only_where_they_are_few():
    """The limit is an entry of the table of sizes."""
    for most, is_few in ((6, True), (5, False)):
        found = forms_of("assign", "f32", prefer=(f"few_windows={most}",))
        assert (Strategy.FEW_WINDOWS in found) is is_few
