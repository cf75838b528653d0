"""Each op computed piece by piece along each axis of its rule gives what the op gives; a wrong rule does not."""

import numpy as np
import pytest
from op_cases import CASES, ONE, OpCase, padded_sum
from piecewise import differing

import hlo_lower as hl
from hlo_lower.base.errors import InputError, RegistryError
from hlo_lower.ops.axes import op_axes
from hlo_lower.ops.axes.cut import THREADED, AxisLink, Boundary, SubsetRules
from hlo_lower.ops.axes.op_axes import ELEMENTWISE, default_subset_rules, is_countable

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.few(24)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pieces_are_the_op(case):
    """Along each axis, in tiles that divide and that do not, in a while and unrolled, the result is the same."""
    assert differing(case, default_subset_rules()) == []


def test_every_rule_has_a_case():
    """No op has a rule that is not run here, the elementwise ones aside, which share one."""
    rules = default_subset_rules()
    run = {name for case in CASES for name in rules.by_axes if name in case.op + case.before}
    assert set(rules.by_axes) - ELEMENTWISE <= run


def with_axes(name, *axes):
    """The rules, with other axes of one op."""
    rules = default_subset_rules().copy()
    rules.by_axes[name] = lambda node: axes
    return rules


WRONG = {
    "an end of a slice that moves is an axis": ("slice", "stablehlo.slice", AxisLink((1,), (1,))),
    "operands of a concatenation are cut where they join": (
        "cut_join",
        "stablehlo.concatenate",
        AxisLink((1, 1), (1,)),
    ),
    "a reversed dim keeps its order": ("reverse", "stablehlo.reverse", AxisLink((1,), (1,))),
    "a sorted dim is sorted in pieces": ("sort", "stablehlo.sort", AxisLink((1,), (1,))),
    "a sum begins with one in each piece": ("from_one", "stablehlo.reduce", AxisLink((1, None), (None,), "add")),
    "a maximum is added": ("reduce_max", "stablehlo.reduce", AxisLink((1, None), (None,), "add")),
    "only one operand of a dot is cut where both are summed": (
        "dot_one",
        "stablehlo.dot_general",
        AxisLink((0, 1), (1,)),
    ),
    "the inner dim of scatter positions is threaded": (
        "scatter_two",
        "stablehlo.scatter",
        AxisLink((None, 1, 1), (None,), THREADED),
    ),
}


def wrong_case(name):
    """The case that a wrong rule is run on: one of the cases, or one in which its axis has one size."""
    made = {
        "slice": OpCase(
            "slice",
            ("4x6xi32",),
            "stablehlo.slice %0 [0:4, 1:4] : (tensor<4x6xi32>) -> tensor<4x3xi32>",
            ("4x3xi32",),
            1,
        ),
        "cut_join": OpCase(
            "cut_join",
            ("4x6xi32", "4x6xi32"),
            "stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x12xi32>",
            ("4x12xi32",),
            1,
        ),
        "from_one": OpCase("from_one", ("4x6xi32",), BY_NAME["reduce_from_one"].op, ("4xi32",), 1, ONE),
        "dot_one": OpCase(
            "dot_one",
            ("4x4xi32", "4x4xi32"),
            "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]"
            " : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>",
            ("4x4xi32",),
            1,
        ),
    }
    found = made.get(name) or BY_NAME[name]
    return OpCase(found.name, found.arguments, found.op, found.result, 1, found.before)


@pytest.mark.parametrize("what", WRONG, ids=lambda what: what.replace(" ", "_"))
def test_a_wrong_rule_is_caught(what):
    """An axis that is none gives other results in some tile, or pieces that do not fit, which MLIR refuses."""
    name, op, axis = WRONG[what]
    case, rules = wrong_case(name), with_axes(op, axis)
    try:
        found = any(differing(case, rules, seed) for seed in range(8))
    except InputError as error:
        found = error.where.startswith("<module>:")  # the module does not verify
    assert found


def test_a_second_rule_for_an_op_is_refused():
    """The registry does not take the last one that comes."""
    rules = SubsetRules()
    rules.axes("stablehlo.add")(lambda node: ())
    with pytest.raises(RegistryError, match=r"stablehlo\.add has a subset rule"):
        rules.axes("stablehlo.add")(lambda node: ())


CAPTURING = """stablehlo.reduce(%0 init: %1) across dimensions = [1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>
  reducer(%a: tensor<i32>, %b: tensor<i32>) {
    %p = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %s = "stablehlo.if"(%p) ({stablehlo.return %1 : tensor<i32>}, {stablehlo.return %a : tensor<i32>})
      : (tensor<i1>) -> tensor<i32>
    stablehlo.return %s : tensor<i32>
  }"""


def axes_of(case):
    """What the rules say of the op of a case."""
    graph = hl.read(case.text(1))
    return default_subset_rules().of([*graph.main.body.nodes][-2])


def test_padding_that_counts_is_no_halo():
    """Windows that begin with 1 have no axis along which they reach into padding: XLA adds no 1 for what is padded."""
    case = padded_sum("from_one", ONE, 2)
    assert axes_of(case).axes == ()
    wrong = with_axes("stablehlo.reduce_window", *(AxisLink((None, None), (dim,)) for dim in (0, 1)))
    assert {number for number, _, _ in differing(case, wrong)} == {0, 1}


def test_a_region_that_takes_a_value_is_a_boundary():
    """A value that is read by a branch within the region of a reduction counts: a loop may not have it yet."""
    found = axes_of(OpCase("capturing", ("4x6xi32", "i32"), CAPTURING, ("4xi32",), 0))
    assert found == Boundary("a region of stablehlo.reduce takes values from around it")


@pytest.mark.parametrize("name", ["scatter_add", "scatter_last", "scatter_points"])
def test_a_piece_of_a_scatter_subtracts_its_start(name):
    """Along an indexed dim, the indices taken as they are write to other rows than the op."""
    rules = default_subset_rules().copy()
    del rules.by_piece["stablehlo.scatter"]
    found = differing(BY_NAME[name], rules)
    assert found
    assert all(number >= BY_NAME[name].axes - (2 if name == "scatter_points" else 1) for number, _, _ in found)


@pytest.mark.parametrize(
    ("element", "extent", "is_right"),
    [("i8", 128, True), ("i8", 129, False), ("ui8", 256, True), ("ui8", 257, False), ("i64", 1 << 40, True)],
    ids=str,
)
def test_extents_that_an_index_type_counts(element, extent, is_right):
    """Every index of the type, less any start, lies in a piece exactly where it lay there before: by all of 8 bits."""
    assert is_countable(element, extent) is is_right
    if element == "i64":
        return
    dtype = np.dtype({"i8": "int8", "ui8": "uint8"}[element])
    every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    wrong = 0
    for start in range(extent):
        there = (every - start).astype(dtype)
        for size in {1, extent - start}:
            inside = (there >= 0) & (there < size)
            wrong += not np.array_equal(inside, (every >= start) & (every < start + size))
    assert (wrong == 0) is is_right


@pytest.mark.parametrize("name", ["convolution_strided", "reduce_window_padded"])
def test_a_halo_that_is_off_by_one_is_seen(name, monkeypatch):
    """Windows that are read one position too late give something else."""
    right = op_axes._moved
    monkeypatch.setattr(op_axes, "_moved", lambda build, start, factor, by: right(build, start, factor, by + 1))
    assert differing(BY_NAME[name], default_subset_rules())
