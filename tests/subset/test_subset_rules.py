"""Each op computed piece by piece along each axis of its rule gives what the op gives; a wrong rule does not."""

from dataclasses import replace

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
    run = {name for case in CASES for name in rules.by_axes if name in case.text(1)}
    assert set(rules.by_axes) - ELEMENTWISE <= run


def with_axes(name, *axes):
    """The rules, with other axes of one op."""
    rules = default_subset_rules().copy()
    rules.by_axes[name] = lambda node: axes
    return rules


SQUARE = ("4x4xi32", "4x4xi32")
BY_NAME |= {  # of some ops one more, in which an axis that is none has one size
    "cut": OpCase("cut", ("4x6xi32",), "slice %0 [0:4, 1:4]", 1),
    "joined": OpCase("joined", ("4x6xi32", "4x6xi32"), "concatenate %0, %1, dim = 1", 1),
    "dot": OpCase("dot", SQUARE, "dot_general %0, %1, contracting_dims = [1] x [0] -> 4x4xi32", 1),
}
WRONG = {
    "an end of a slice that moves is an axis": ("cut", "slice", AxisLink((1,), (1,))),
    "operands of a concatenation are cut where they join": ("joined", "concatenate", AxisLink((1, 1), (1,))),
    "a reversed dim keeps its order": ("reverse", "reverse", AxisLink((1,), (1,))),
    "a sorted dim is sorted in pieces": ("sort", "sort", AxisLink((1,), (1,))),
    "a maximum is added": ("reduce_max", "reduce", AxisLink((1, None), (None,), "add")),
    "only one operand of a dot is cut where both are summed": ("dot", "dot_general", AxisLink((0, 1), (1,))),
    "the inner dim of scatter positions is threaded": (
        *("scatter_two", "scatter"),
        AxisLink((None, 1, 1), (None,), THREADED),
    ),
}


@pytest.mark.parametrize("what", WRONG, ids=lambda what: what.replace(" ", "_"))
def test_a_wrong_rule_is_caught(what):
    """An axis that is none gives other results in some tile, or pieces that do not fit, which MLIR rejects."""
    name, op, axis = WRONG[what]
    case, rules = replace(BY_NAME[name], axes=1), with_axes(f"stablehlo.{op}", axis)
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
    region = "%a, %b: %p = compare LT, %a, %b; %s = if(%p) { return %1 } { return %a }; return %s"
    op = f"reduce(%0, %1) <dimensions = array<i64: 1>> {{{region}}} -> 4xi32"
    found = axes_of(OpCase("capturing", ("4x6xi32", "i32"), op, 0))
    assert found == Boundary("a region of stablehlo.reduce uses values from outside")


def test_a_piece_of_a_sum_does_not_begin_with_one():
    """Pieces that begin with what the whole begins with add it several times."""
    rules = default_subset_rules().copy()
    del rules.by_piece["stablehlo.reduce"]
    assert {number for number, _, _ in differing(BY_NAME["reduce_from_one"], rules)} == {1}


@pytest.mark.parametrize("name", ["scatter_add", "scatter_points"])
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
    right = op_axes._scaled_start
    monkeypatch.setattr(op_axes, "_scaled_start", lambda build, start, factor, by: right(build, start, factor, by + 1))
    assert differing(BY_NAME[name], default_subset_rules())
