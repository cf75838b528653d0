"""Traps of values: rounding, NaN, signed zeros, identities, element types."""

from pathlib import Path

import numpy as np
import pytest
from one_scatter import DTYPES, POLICIES, VARIADIC, f32, i32, points, rows, run, tile

import hlo_lower as hl
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.run import Executable

GOLDEN = Path(__file__).parents[1] / "golden"


def test_trap_18_sums_keep_their_order():
    """Float sums are taken update by update, rounding each time; integer sums wrap."""
    indices = np.full((4, 1), 1, np.int32)
    for element, huge in (("f32", 1e8), ("bf16", 256.0), ("f16", 2048.0)):
        dtype = DTYPES[element]
        operand, updates = np.zeros(2, dtype), np.asarray([huge, 1, 1, -huge], dtype)
        [result] = run(points(4, 2, element=element, combiner="add").text(), operand, indices, updates)
        assert (element, result.tolist()) == (element, [0, 0])  # pairwise or in another order, not 0
    [result] = run(
        points(4, 2, element="i8", combiner="add").text(),
        np.zeros(2, np.int8),
        indices,
        np.asarray([100, 100, 100, 1], np.int8),
    )
    assert result.tolist() == [0, 45]


def test_trap_18_maximum_and_minimum_are_exact_but_for_nan():
    """The order of maxima and minima does not matter, except that a NaN stays once it is there."""
    for combiner, best in (("maximum", 7.0), ("minimum", -3.0)):
        text = points(4, 3, combiner=combiner).text()
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
            updates = f32([7, np.nan, -3, 2])
            places = i32([[0], [1], [0], [0]])
            [result] = run(text, f32([1, 5, 9]), places[order], updates[order])
            assert (result[0], np.isnan(result[1]), result[2]) == (best, True, 9)


@POLICIES
def test_trap_19_a_dropped_nan_stays_out(oob):
    """NaN and infinity in updates that are dropped, or in other rows, reach nothing."""
    text = rows(3, 4, 2, combiner="add").text()
    operand = f32([[1, 2], [3, np.inf], [5, 6], [7, 8]])
    updates = f32([[np.nan, np.inf], [1, 1], [-np.inf, np.nan]])
    [result] = run(text, operand, i32([[-1], [2], [4]]), updates, oob=oob)
    assert result.tolist() == [[1, 2], [3, np.inf], [6, 7], [7, 8]]
    [result] = run(tile(2, 4, combiner="add").text(), f32([1, 2, 3, 4]), i32([9]), f32([np.nan, np.inf]), oob=oob)
    assert result.tolist() == [1, 2, 3, 4]


@POLICIES
@pytest.mark.parametrize("indices", [[[-1], [2], [4]], [[2], [-5], [9]]])
def test_trap_19_constant_indices_multiply_nothing(indices, oob):
    """Where constant indices are solved by a mask or a table, rows that are not written stay, infinities too."""
    case = rows(3, 4, 2, combiner="add")
    operand = f32([[1, np.inf], [np.inf, 2], [5, 6], [-np.inf, 8]])
    updates = f32([[1, 1], [1, 1], [np.nan, np.inf]])
    expected = operand.copy()
    expected[2] += 1
    assert run(case.with_indices(indices), operand, updates, oob=oob)[0].tolist() == expected.tolist()


@POLICIES
def test_trap_20_signed_zeros(oob):
    """Untouched elements keep -0.0, and -0.0 + -0.0 stays -0.0; the interpreter is asked, as XLA makes x of x + 0."""
    negative = f32([-0.0, -0.0, -0.0])
    with Interpreter() as interpreter:
        for case, indices, updates, signs in (
            (points(2, 3, combiner="add"), [[1], [3]], [0.0, 0.0], [True, False, True]),
            (points(2, 3, combiner="add"), [[1], [1]], [-0.0, -0.0], [True, True, True]),
            (tile(2, 3, combiner="add"), [3], [0.0, 0.0], [True, True, True]),
            (tile(2, 3, combiner="add"), [0], [0.0, -0.0], [False, True, True]),
        ):
            text = hl.lower(case.text(), oob=oob).text
            [result] = interpreter.run(text, [negative, i32(indices), f32(updates)])
            assert np.signbit(result).tolist() == signs


@pytest.mark.parametrize("element", ["f32", "i8", "ui8", "i1"])
@pytest.mark.parametrize("combiner", ["maximum", "minimum"])
def test_trap_21_untouched_elements(combiner, element):
    """Elements that no update reaches are the operand's, not an identity of the combiner."""
    points(3, 6, element=element, combiner=combiner).check([1, 1, -1], [6, 7, 8])


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("element", "combiner"),
    [
        *(("i1", "add"), ("i1", "multiply"), ("i1", "assign")),
        *(("complex<f32>", "add"), ("complex<f32>", "assign"), ("complex<f64>", "subtract")),
        *(("i4", "add"), ("i4", "assign"), ("ui4", "maximum")),
    ],
)
def test_trap_25_element_types(element, combiner):
    """On i1, add is `or` and multiply is `and`; complex numbers add and are assigned; four bits are enough."""
    points(6, 4, element=element, combiner=combiner).check([0, 1, 1, 2, 2, 2], [3, 3, 4, -1, 0, 0])
    tile(3, 4, element=element, combiner=combiner).check([0], [1], [2])


def test_trap_25_mixed_variadic():
    """A variadic scatter may mix types and combine each operand in its own way."""
    body = """%p = stablehlo.add %ca, %ua : tensor<f32>
        %q = stablehlo.maximum %cb, %ub : tensor<ui8>
        stablehlo.return %p, %q : tensor<f32>, tensor<ui8>"""
    text = VARIADIC.format(s="f32", t="ui8", body=body)
    small = np.asarray([1, 200, 3, 4, 250, 6], np.uint8)
    indices = i32([[0], [1], [1], [3], [4], [-1]])
    a, b = run(text, f32([1] * 4), np.full(4, 100, np.uint8), indices, f32([1, 2, 3, 4, 5, 6]), small)
    assert [a.tolist(), b.tolist()] == [[2, 6, 1, 5], [100, 200, 100, 100]]


def test_trap_25_quantized_is_refused():
    """A scatter of quantized elements is refused by name: it is not lowered as if they were integers."""
    quantized = "!quant.uniform<i8:f32, 0.5>"
    text = points(1, 3).text().replace("xf32>", f"x{quantized}>").replace("tensor<f32>", f"tensor<{quantized}>")
    with pytest.raises(hl.HloLowerError) as error:
        hl.lower(text)
    assert "quant" in str(error.value)
    assert error.value.next_step


def test_trap_26_masks():
    """Booleans are scattered as booleans."""
    points(3, 5, element="i1").check([1, 1, 4], [-1, 5, 0])
    tile(2, 5, element="i1").check([1], [4])


def test_trap_26_no_sum_of_booleans():
    """A mask is set by selecting and writing: no arithmetic on i1, which other consumers read as addition modulo 2."""
    for case in (points(3, 5, element="i1"), tile(2, 5, element="i1")):
        lowered = hl.lower(case.text()).text
        assert not [line for line in lowered.splitlines() if "stablehlo.add" in line and "xi1>" in line]


SORTING = {
    "sorted_last_writer": {"combiner": "assign"},
    "sorted_only_writer": {"combiner": "add", "flags": "unique_indices = true,"},
    "sorted_segments": {"combiner": "maximum"},
    "rounds": {"combiner": "add"},
}
"""Rules that sort, but for the one of permutations, each with a scatter for it."""


def returned_of(sort):
    """What the comparator of a sort returns."""
    [block] = sort.blocks
    return block.terminator.operand(0)


def compares_by(value, pair):
    """Whether a value is `a < b` of the two block arguments of this pair."""
    node = value.node
    if node.name != "stablehlo.compare" or "LT" not in str(node.attribute("comparison_direction")):
        return False
    return [o.number for o in node.operands] == [2 * pair, 2 * pair + 1] and not any(o.node for o in node.operands)


def goes_by_row_and_position(sort):
    """Whether a comparator is `row < row' or (row = row' and n < n')` of the first two tensors."""
    node = returned_of(sort).node
    if node.name != "stablehlo.or" or not compares_by(node.operand(0), 0):
        return False
    both = node.operand(1).node
    equal = both.operand(0).node
    rows = [o.number for o in equal.operands] == [0, 1] and "EQ" in str(equal.attribute("comparison_direction"))
    return both.name == "stablehlo.and" and rows and compares_by(both.operand(1), 1)


def sorts_of(graph):
    """The sorts of a module."""
    found = []
    graph.walk(lambda node: found.append(node) if node.name == "stablehlo.sort" else None)
    return found


def test_trap_34_every_sort_goes_by_row_and_position():
    """No two rows that are sorted compare equal, so nothing depends on how a sort breaks ties; only the form of
    permutations, whose keys are proved to differ, sorts by the rows alone."""
    assert {rule.name for rule in hl.rules() if "stablehlo.sort" in rule.builds} == {*SORTING, "permuted"}
    for rule, how in SORTING.items():
        lowered = hl.lower(points(9, 6, **how).text(), prefer=(rule,), trust_flags=True)
        assert lowered.records[0].rule == rule
        graph = hl.read(lowered.text)
        [sort] = sorts_of(graph)
        assert goes_by_row_and_position(sort)
        [numbers] = [value.node for value in sort.operands[1:]]
        assert (numbers.name, numbers.integer("iota_dimension")) == ("stablehlo.iota", 1)
    permuted = GOLDEN / "permuted.mlir"
    graph = hl.read(permuted)
    assert [goes_by_row_and_position(sort) for sort in sorts_of(graph)] == [False]  # so the check can fail
    [record] = hl.lower(permuted, prefer=("permuted",)).records
    assert (record.rule, record.unique) == ("permuted", "proved")


@pytest.mark.parametrize("rule", ["sorted_last_writer", "sorted_segments"])
def test_trap_34_duplicates_repeat_bit_for_bit(rule):
    """Forms that sort give the same bits in every compilation, and the loop's bits, where rows are written often."""
    case = points(300, 3, combiner="assign" if rule == "sorted_last_writer" else "maximum")
    rng = np.random.default_rng(0)
    arguments = [f32(np.zeros(3)), i32(rng.integers(0, 3, (300, 1))), f32(rng.standard_normal(300) * 1e4)]
    runs = [
        Executable(hl.lower(case.text(), prefer=(form,)).text, level).run(arguments)[0]
        for form, level in ((rule, "exact"), (rule, "default"), ("while", "exact"))
    ]
    assert [first_difference([runs[0]], [other]) for other in runs[1:]] == [None, None]


def test_trap_34_sums_repeat():
    """Sums repeat from one compilation to the next, also where they may be reassociated."""
    case = points(300, 3, combiner="add")
    rng = np.random.default_rng(0)
    arguments = [f32(np.zeros(3)), i32(rng.integers(0, 3, (300, 1))), f32(rng.standard_normal(300) * 1e4)]
    for mode, prefer in (("exact", ()), ("reassociate", ()), ("reassociate", ("sorted_segments",))):
        lowered = hl.lower(case.text(), float_mode=mode, prefer=prefer).text
        runs = [Executable(lowered, level).run(arguments)[0] for level in ("exact", "exact", "default", "default")]
        assert [first_difference([runs[k]], [runs[k + 1]]) for k in (0, 2)] == [None, None]
