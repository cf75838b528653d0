"""Traps of values and of the update computation: rounding, NaN, signed zeros, element types, captured values."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from one_scatter import POLICIES, array, f32, i32, points, rows, run, tile, variadic
from untyped_mlir import function

import hlo_lower as hl
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.sort.comparator import sort_keys
from hlo_lower.ir import mlir
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.run import Executable

GOLDEN = Path(__file__).parents[1] / "golden"
NAN, INF = np.nan, np.inf
SUMS = [
    # pairwise or in another order, a float sum is not 0
    *(("f32", [1e8, 1, 1, -1e8], 0), ("bf16", [256.0, 1, 1, -256.0], 0), ("f16", [2048.0, 1, 1, -2048.0], 0)),
    ("i8", [100, 100, 100, 1], 45),
]
BODIES = {  # what becomes of 20 by 10 and then by 15
    "%n = subtract %c, %u; return %n": -5,
    "%n = subtract %u, %c; return %n": 25,
    "return %c": 20,
    "%k = constant 7 : i32; return %k": 7,
    "%n = add %c, %c; return %n": 80,
    "%n = negate %u; return %n": -15,
    "%p = compare GT, %u, %c; %m = multiply %c, %u; %n = select %p, %m, %u; return %n": 150,
}
LESS = """%0 = compare LT, %ua, %ca; %1 = compare EQ, %ua, %ca; %2 = compare LT, %ub, %cb
    %3 = and %1, %2; %4 = or %0, %3; %5 = select %4, %ua, %ca; %6 = select %4, %ub, %cb; return %5, %6"""
ARGMIN = variadic("f32", "i32", "%p, %q = call @less(%ca, %cb, %ua, %ub) -> (f32, i32); return %p, %q")
ARGMIN += function("private @less", "%ca: f32, %cb: i32, %ua: f32, %ub: i32", LESS)
SWAPPED = variadic("i32", "i32", "%s = subtract %ca, %ua; %t = subtract %ub, %cb; return %t, %s")


def captured(lines, factor):
    """A region that multiplies by a captured %k, in a loop over points and in a window."""
    options = {"element": "i32", "body": "%m = multiply %c, %k; %n = add %m, %u; return %n"}
    for case, index, expected in (
        (points(2, 4, **options), [[2], [2]], [1, 2, (3 * factor + 10) * factor + 20, 4]),
        (tile(2, 4, **options), [1], [1, 2 * factor + 10, 3 * factor + 20, 4]),
    ):
        text = case.text(lines=lines, given=", %x: i32")
        yield text, [i32([1, 2, 3, 4]), i32(index), i32(5), i32([10, 20])], [i32(expected)]


def promoted(places, combiner):
    """Updates of i8 at constant places, by a region of i32."""
    expected = np.arange(100, 106, dtype=np.int32)
    for place, update in zip(places, [100, 101, 102], strict=True):
        if place < 6:
            expected[place] = update + (expected[place] if combiner == "add" else 0)
    text = points(3, 6, element="i8", region_element="i32", combiner=combiner).text(places)
    return text, [array(range(100, 106), "i8"), array([100, 101, 102], "i8")], [expected]


BY_HAND = {
    "trap 16: of constant places written twice the last assignment stays": [
        (points(5, 4).text(at), [f32([-1] * 4), f32(range(5))], [f32(expected)])
        for at, expected in (
            ([1] * 5, [-1, 4, -1, -1]), ([4, 3, 3, -1, 0], [4, -1, -1, 2]),
        )
    ],
    "trap 17: operands of a variadic assignment take the same update": [
        (variadic("f32", "i32", "return %ua, %ub"),
         [f32([-1] * 4), i32([-1] * 4), i32([[1], [3], [1], [1], [3], [9]]), f32(range(6)), i32(range(6))],
         [f32([-1, 3, -1, 4]), i32([-1, 3, -1, 4])])
    ],
    "trap 18: float sums are taken update by update, rounding each time; integer sums wrap": [
        (points(4, 2, element=kind, combiner="add").text(),
         [array([0, 0], kind), i32([[1]] * 4), array(updates, kind)], [array([0, total], kind)])
        for kind, updates, total in SUMS
    ],
    "trap 18: the order of maxima does not matter, except that a NaN stays once it is there": [
        (points(4, 3, combiner=combiner).text(),
         [f32([1, 5, 9]), i32([[0], [1], [0], [0]])[order], f32([7, NAN, -3, 2])[order]], [f32([best, NAN, 9])])
        for combiner, best in (("maximum", 7.0), ("minimum", -3.0))
        for order in ([0, 1, 2, 3], [3, 2, 1, 0])
    ],
    "trap 19: NaN and infinity in updates that are dropped, or in other rows, reach nothing": [
        (rows(3, 4, 2, combiner="add").text(),
         [f32([[1, 2], [3, INF], [5, 6], [7, 8]]), i32([[-1], [2], [4]]), f32([[NAN, INF], [1, 1], [-INF, NAN]])],
         [f32([[1, 2], [3, INF], [6, 7], [7, 8]])]),
        (tile(2, 4, combiner="add").text(), [f32([1, 2, 3, 4]), i32([9]), f32([NAN, INF])], [f32([1, 2, 3, 4])]),
    ],
    "trap 19: rows that constant indices do not write are multiplied by nothing": [
        (rows(3, 4, 2, combiner="add").text(at),
         [f32([[1, INF], [INF, 2], [5, 6], [-INF, 8]]), f32([[1, 1], [1, 1], [NAN, INF]])],
         [f32([[1, INF], [INF, 2], [6, 7], [-INF, 8]])])
        for at in ([[2], [-5], [9]],)
    ],
    "trap 22: the current value is the first argument, the update the second; a region runs for each update": [
        (points(2, 3, element="i32", body=body).text(),
         [i32([10, 20, 30]), i32([[1], [1]]), i32([10, 15])], [i32([10, expected, 30])])
        for body, expected in BODIES.items()
    ],
    "trap 22: a lexicographic argmin, in a function that the region calls, takes one pair": [
        (ARGMIN, [f32([4] * 4), i32([99] * 4), i32([[1], [1], [1], [1], [3], [4]]), f32([5, 3, 2, 2, 4, 0]),
                  i32([9, 8, 7, 6, 5, 4])], [f32([4, 2, 4, 4]), i32([99, 6, 99, 5])])
    ],
    "trap 22: of N operands the current values come first and the updates behind, whichever result they go to": [
        (SWAPPED, [i32([100, 200, 300, 400]), i32([7, 8, 9, 10]), i32([[1], [1], [2], [9], [0], [1]]),
                   i32([1, 2, 3, 4, 5, 6]), i32([10, 20, 30, 40, 50, 60])],
         [i32([43, 60, 21, 400]), i32([95, -185, 297, 10])])
    ],
    "trap 23: a captured constant is carried into what replaces the scatter": [*captured("%k = constant 3 : i32", 3)],
    # although XLA refuses it in a scatter
    "trap 44: a captured runtime value is carried along": [*captured("%k = add %x, %x", 10)],
    "trap 24: constant windows are promoted, and so is what is not written": [
        promoted(at, combiner) for at in ([0, 2, 4], [5, 1, 3], [1, 2, 9]) for combiner in ("assign", "add")
    ],
    "trap 25: a variadic scatter may mix types and combine each operand in its own way": [
        (variadic("f32", "ui8", "%p = add %ca, %ua; %q = maximum %cb, %ub; return %p, %q"),
         [f32([1] * 4), array([100] * 4, "ui8"), i32([[0], [1], [1], [3], [4], [-1]]), f32([1, 2, 3, 4, 5, 6]),
          array([1, 200, 3, 4, 250, 6], "ui8")], [f32([2, 6, 1, 5]), array([100, 200, 100, 100], "ui8")])
    ],
}  # fmt: skip
"""Modules, their arguments, and the results."""


@pytest.mark.parametrize(
    ("name", "oob"),
    [(n, "xla") for n in BY_HAND] + [(n, "spec") for n in BY_HAND if n.startswith(("trap 16", "trap 19"))],
)
def test_each_trap_has_the_result_by_hand(name, oob):
    """What is lowered gives these numbers, of these types."""
    for text, given, expected in BY_HAND[name]:
        for found, right in zip(run(text, *given, oob=oob), expected, strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_array_equal(found, right)


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


def test_trap_25_quantized_is_refused():
    """A scatter of quantized elements is refused by name: it is not lowered as if they were integers."""
    quantized = "!quant.uniform<i8:f32, 0.5>"
    text = points(1, 3).text().replace("xf32>", f"x{quantized}>").replace("tensor<f32>", f"tensor<{quantized}>")
    with pytest.raises(hl.HloLowerError) as error:
        hl.lower(text)
    assert "quant" in str(error.value)
    assert error.value.next_step


def test_trap_26_no_sum_of_booleans():
    """A mask is set by selecting and writing: no arithmetic on i1, which other consumers read as addition modulo 2."""
    for case in (points(3, 5, element="i1"), tile(2, 5, element="i1")):
        lowered = hl.lower(case.text()).text
        assert not [line for line in lowered.splitlines() if "stablehlo.add" in line and "xi1>" in line]


SORTING = {
    "sorted_last_writer": {"combiner": "assign"},
    "sorted_only_writer": {"combiner": "add", "flags": ", unique_indices=true"},
    "sorted_segments": {"combiner": "maximum"},
    "rounds": {"combiner": "add"},
}
"""Rules that sort, but for the one of permutations, each with a scatter for it."""


def sorts_of(graph):
    """The sorts of a module."""
    return [node for node in graph.nodes() if node.name == "stablehlo.sort"]


def test_trap_34_every_sort_goes_by_row_and_position():
    """No sort of a scatter depends on how ties break; permutations, whose keys differ, go by rows alone."""
    rules = {rule.name for rule in hl.rules() if "stablehlo.sort" in rule.builds}
    assert rules == {*SORTING, "permuted", "sort_to_stable_sorts", "custom_call_to_sort"}  # two are of none
    for rule, how in SORTING.items():
        lowered = hl.lower(points(9, 6, **how).text(), prefer=(rule,), trust_flags=True)
        assert lowered.records[0].rule == rule
        graph = hl.read(lowered.text)
        [sort] = sorts_of(graph)
        assert [(k.value.number, k.side, k.is_ascending) for k in sort_keys(sort)] == [(0, 0, True), (2, 0, True)]
        [numbers] = [value.node for value in sort.operands[1:]]
        assert (numbers.name, numbers.integer("iota_dimension")) == ("stablehlo.iota", 1)
    graph = hl.read(GOLDEN / "permuted.mlir")
    assert [len(sort_keys(sort)) for sort in sorts_of(graph)] == [1]
    [record] = hl.lower(GOLDEN / "permuted.mlir", prefer=("permuted",)).records
    assert (record.rule, record.unique) == ("permuted", "proved")


def sorted_and_not(rule):
    """A form that sorts, at two levels of XLA, and the loop."""
    return [({"prefer": (form,)}, level) for form, level in ((rule, "exact"), (rule, "default"), ("while", "exact"))]


ANY_ORDER = {"float_mode": "reassociate"}


@pytest.mark.parametrize(
    ("combiner", "forms"),
    [
        ("assign", sorted_and_not("sorted_last_writer")),
        ("maximum", sorted_and_not("sorted_segments")),
        # sums repeat from one compilation to the next, also where they may be reassociated
        *(("add", [(how, "default")] * 2) for how in ({}, ANY_ORDER, {**ANY_ORDER, "prefer": ("sorted_segments",)})),
    ],
)
def test_trap_34_duplicates_repeat_bit_for_bit(combiner, forms):
    """300 updates of 3 rows give the same bits in each of these forms, at each level of XLA."""
    rng = np.random.default_rng(0)
    arguments = [f32(np.zeros(3)), i32(rng.integers(0, 3, (300, 1))), f32(rng.standard_normal(300) * 1e4)]
    text = points(300, 3, combiner=combiner).text()
    first, *others = (Executable(hl.lower(text, **how).text, level).run(arguments) for how, level in forms)
    assert [first_difference(first, other) for other in others] == [None] * len(others)


def reduces(text):
    """The operation of each reduce, its element type, and the constant that it begins with."""
    found = []
    for op in mlir.operations_within(mlir.parse_module(text).operation):
        if op.name != "stablehlo.reduce":
            continue
        *combined, _ = op.regions[0].blocks[0].operations
        for k, initial in enumerate(list(op.operands)[len(op.operands) // 2 :]):
            value = mlir.constant_value(initial.owner)
            assert value is not None
            name = combined[k].operation.name.removeprefix("stablehlo.")
            found.append((name, mlir.tensor_element_name(initial.type), value[()]))
    return found


def identity(name, element):
    """What changes no value of a type under an operation; the sign of a zero aside."""
    low, high = type_range(element) or (-np.inf, np.inf)
    return {"add": 0, "or": 0, "multiply": 1, "and": -1 if low < 0 else high, "maximum": low, "minimum": high}[name]


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("combiner", "element"),
    [
        *product(["assign", "add", "multiply", "maximum", "minimum"], ["f32", "i32", "ui8", "i1"]),
        *product(["and", "or"], ["i32", "ui8", "i1"]),
    ],
)
def test_trap_53_a_reduce_begins_with_its_operations_identity(combiner, element):
    """LiteRT takes no other: the number of a row's last writer is a maximum from the least number of its type, too."""
    text = points(3, 6, element=element, combiner=combiner).text()
    kinds = set()
    for target, rule in product(("stablehlo", "litert"), ("compare_reduce", "last_writer", "only_writer", "mask")):
        lowered = hl.lower(text, target=target, prefer=[rule], keep_unsupported=True)
        for name, kind, value in reduces(lowered.text):
            kinds.add(name)
            assert value == identity(name, kind), (target, rule, name, kind, value)
    assert kinds
