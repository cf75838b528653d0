"""Which forms are right for a scatter of many windows, and along which dims the elements of a tensor are the same."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.facts.scatter.combine import constant_dims
from hlo_lower.facts.scatter.facts import Strategy
from hlo_lower.lowering.engine.kind import Context
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.scatters import read_scatters

COMBINED = {Strategy.REDUCTION, Strategy.SORTED_REDUCTION}
LOOKED_UP = {Strategy.INVERSION, Strategy.SORTED_INVERSION}
REGISTRY, UNIQUE = default_registry(), ", unique_indices=true"


def forms_of(combiner, element, flags="", update="%up", **options):
    """The forms for 6 rows of 4 into 8."""
    lines = f"""%one = broadcast_in_dim %s, dims = [] -> 6x4x{element}
        %r = scatter(%o, %i, {update}) <window=[1], inserted=[0], to=[0], ivd=1{flags}> {{{combiner}}}"""
    text = module(f"%o: 8x4x{element}, %i: 6x1xi32, %up: 6x4x{element}, %s: {element}", lines)
    [subject] = read_scatters(Context(hl.read(text), Options(**options), REGISTRY))
    return set(subject.candidates[0].facts.strategies)


@pytest.mark.parametrize(
    ("combiner", "element", "mode", "expected"),
    [
        ("add", "f32", "exact", set()),
        ("add", "f32", "reassociate", {*COMBINED, Strategy.DOT}),
        ("multiply", "f32", "reassociate", COMBINED),
        ("add", "complex<f32>", "reassociate", COMBINED),
        ("multiply", "complex<f32>", "reassociate", set()),
        ("add", "i32", "exact", {*COMBINED, Strategy.DOT}),
        ("add", "i8", "exact", COMBINED),
        ("subtract", "i32", "exact", {*COMBINED, Strategy.DOT}),
        ("maximum", "f32", "exact", COMBINED),
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


@pytest.mark.parametrize(
    ("strategies", "is_there", "combiner", "options"),
    [
        # equal updates are written once or often alike, unless they are summed
        ({Strategy.MASK}, True, "assign", {"update": "%one"}),
        ({Strategy.MASK}, False, "assign", {}),
        ({Strategy.MASK}, True, "maximum", {"update": "%one"}),
        ({Strategy.MASK}, False, "add", {"update": "%one"}),
        # windows get ops of their own only where they are few: the limit is an entry of the table of sizes
        ({Strategy.FEW_WINDOWS}, True, "assign", {"prefer": ("few_windows=6",)}),
        ({Strategy.FEW_WINDOWS}, False, "assign", {"prefer": ("few_windows=5",)}),
        # a float sum is looked up where no row has two updates: the claim of it counts only where flags are trusted
        (LOOKED_UP, False, "add", {"flags": UNIQUE}),
        (LOOKED_UP, True, "add", {"flags": UNIQUE, "trust_flags": True}),
        (LOOKED_UP, False, "add", {"trust_flags": True}),
    ],
)
def test_forms_for_special_updates(strategies, is_there, combiner, options):
    """Forms that need updates that are the same, few windows, or rows that are written once."""
    assert strategies & forms_of(combiner, "f32", **options) == (strategies if is_there else set())


SPREAD = "%b = broadcast_in_dim %v, dims = [1] -> 3x4x5xf32; "


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("%r = constant 1.0 : 3x4xf32", {0, 1}),
        ("%r = constant [1.0, 2.0] : 2xf32", set()),
        ("%r = constant [[1.0], [2.0]] : 2x1xf32", {1}),
        ("%r = broadcast_in_dim %v, dims = [1] -> 3x4x5xf32", {0, 2}),
        ("%o = slice %m [0:1, 0:4]; %r = broadcast_in_dim %o, dims = [0, 1] -> 3x4xf32", {0}),
        (SPREAD + "%r = transpose %b, dims = [1, 2, 0]", {1, 2}),
        (SPREAD + "%r = negate %b", {0, 2}),
        (SPREAD + "%r = reshape %b -> 12x5xf32", set()),
        ("%b = broadcast_in_dim %s, dims = [] -> 3x4xf32; %r = reshape %b -> 12xf32", {0}),
        ("%r = abs %m", set()),
    ],
)
def test_where_elements_are_the_same(lines, expected):
    """Splats and what is spread are; what a dim is mixed with, or what is not followed, is not said to be."""
    graph = hl.read(module("%s: f32, %v: 4xf32, %m: 2x4xf32", lines))
    assert set(constant_dims(graph.main.body.terminator.operand(0).raw)) == expected
