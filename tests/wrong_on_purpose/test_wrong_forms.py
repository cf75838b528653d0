"""The forms for many windows, each made wrong in one step: verification accuses it, and not the right one.

A fault replaces one step of the package while a module is lowered and verified under the form that is meant.
"""

from math import prod

import numpy as np
import pytest
from rewrites import fault
from scatter_programs import POINTS, POINTS_ADDED, of

import hlo_lower as hl
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.lowering.scatter import numbered_rows, safe_scatter

MINIMUM = of("8xi32 6x1xi32 6xi32", body="minimum")
INTEGERS, SPARE = of("8xi32 6x1xi32 6xi32", body="add"), of("4xf32 6x1xi32 6xf32", body="add")
BATCHES = of("2x8xf32 2x3x1xi32 2x3xf32", "inserted=[1], batching=[0], indices_batching=[0], to=[1], ivd=2")
SAME = of("8xf32 6x1xi32 6xf32", producers="%one = constant 1.0 : 6xf32", scattered="%o, %i, %one")


def verdict_of(module, rule):
    """The verdict on a module of which the scatter is lowered by a rule."""
    text = module.text
    lowered = hl.lower(text, prefer=(rule,), target="iree" if rule == "safe_scatter" else "stablehlo")
    assert [record.rule for record in lowered.records] == [rule]
    return hl.verify(text, lowered, level="regions")


@fault(numbered_rows, "_last_by_comparing")
def first_writer_wins(right, op):
    """The numbers of the writes go down, so that the greatest one of a row is its first."""
    build, flat, last = op.build, op.flat, right(op)
    shape, element = (flat.batches, flat.rows, flat.writes), flat.number_type
    numbers = build.broadcast(flat.row_numbers(build), shape, [0, 2])
    hit = build.compare(numbers, "EQ", build.iota(shape, 1, element))
    number = build.select(hit, build.iota(shape, 2, element), build.constant(flat.writes - 1, shape, element))
    first = numbered_rows.reduce_along(build, number, build.constant(flat.writes - 1, (), element), 2, "minimum")
    is_written = build.compare(last, "GE", build.constant(0, last.static_shape, last.element_type))
    return build.select(is_written, first, last)


@fault(numbered_rows, "select_hit")
def every_row_taken_as_written(_right, op, values, hit):
    """What is looked up for the number -1 replaces the rows that no update is for."""
    return numbered_rows.new_values(op, op.build, values, values)


@fault(numbered_rows, "sort_rows")
def ties_broken_the_other_way(right, build, keys, carried, *, by_both=False):
    """The sort leaves equal rows in another order, as one that is not stable may if it does not go by the position."""
    assert by_both
    rows, order = right(build, keys, [build.elementwise("negate", carried[0])], by_both=True)
    return [rows, build.elementwise("negate", order)]


@fault(numbered_rows, "identity")
def zero_for_every_identity(_right, build, combiner, element):
    """What is for other rows counts as 0."""
    return build.constant(0, (), element)


@fault(FlatScatter, "row_numbers")
def dropped_rows_written_to_the_last(right, self, build):
    """The number that no row has is brought into the operand."""
    numbers = right(self, build)
    last = build.constant(self.rows - 1, numbers.static_shape, numbers.element_type)
    return build.elementwise("minimum", numbers, last)


@fault(numbered_rows, "shift_along")
def neighbours_combined(right, build, value, step, filling):
    """A run of sorted updates takes in what stands before it."""
    return value if len(value.static_shape) == 2 else right(build, value, step, filling)  # a key, or an update


@fault(numbered_rows, "last_at_most")
def search_one_short(right, build, keys, rows):
    """The binary search does not look at the last write."""
    b, n = keys.static_shape
    return right(build, build.slice(keys, [0, 0], [b, n - 1]), rows)


@fault(numbered_rows, "shift_along")
def a_row_takes_the_updates_of_others(_right, build, value, step, filling):
    """The updates of every row begin with the first of all."""
    return build.constant(0, value.static_shape, value.element_type)


@fault(numbered_rows, "reduce_along")
def a_round_short(right, build, value, initial, axis, op):
    """The last of several updates to a row is left out."""
    found, one = right(build, value, initial, axis, op), build.constant(1, (), initial.element_type)
    return found if found.static_shape else build.elementwise("subtract", found, one)


@fault(safe_scatter, "identity")
def nothing_new_is_zero(_right, build, _combiner, element):
    """What is dropped adds 0.0: -0.0 becomes 0.0."""
    return build.constant_array(np.asarray(0.0), element)


@fault(safe_scatter, "reduce_along")
def the_first_write_that_is_kept(right, build, value, none, axis, _op):
    """Not the last one is written again in the end, and a later one to its row is lost."""
    most = build.constant(1 << 20, value.static_shape, value.element_type)
    is_kept = build.compare(value, "GE", build.constant(0, value.static_shape, value.element_type))
    kept = build.select(is_kept, value, most)
    return right(build, kept, build.constant(1 << 20, (), none.element_type), axis, "minimum")


@fault(safe_scatter, "reduce_along")
def all_taken_as_dropped(right, build, value, none, axis, _op):
    """One write that is dropped is enough for row 0 to be given back what it held."""
    return right(build, value, none, axis, "minimum")


@fault(safe_scatter, "_write_rows")
def the_last_row_for_the_spare_one(right, op, operand, numbers, update):
    """What is dropped is combined with a row that is there, as nothing is cut off behind it."""
    last = op.build.constant(operand.static_shape[0] - 2, numbers.static_shape, numbers.element_type)
    return right(op, operand, op.build.elementwise("minimum", numbers, last), update)


@fault(safe_scatter, "_of_all")
def batches_in_one(_right, build, numbers, rows):
    """Rows of all batch coordinates have the numbers of the first one's."""
    return build.reshape(numbers, (prod(numbers.static_shape),))


@fault(safe_scatter, "_of_assigned")
def without_guard(_right, op, operand, numbers, update, _kept):
    """A guard is left out."""
    return safe_scatter._scatter(op, operand, numbers, update)


WRONG = [
    (POINTS, "last_writer", first_writer_wins),
    (POINTS, "last_writer", every_row_taken_as_written),
    (POINTS, "last_writer", dropped_rows_written_to_the_last),
    (POINTS, "sorted_last_writer", ties_broken_the_other_way),
    (POINTS, "sorted_last_writer", search_one_short),
    (SAME, "mask", dropped_rows_written_to_the_last),
    (MINIMUM, "compare_reduce", zero_for_every_identity),
    (INTEGERS, "compare_reduce", dropped_rows_written_to_the_last),
    (INTEGERS, "sorted_segments", neighbours_combined),
    (INTEGERS, "rounds", a_row_takes_the_updates_of_others),
    (INTEGERS, "rounds", a_round_short),
    (INTEGERS, "one_hot_dot", dropped_rows_written_to_the_last),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("module", "rule", "wrong"), WRONG, ids=[f"{rule}-{wrong.__name__}" for _, rule, wrong in WRONG]
)
def test_a_wrong_form_is_caught(module, rule, wrong, monkeypatch):
    """The scatter alone differs, and the verdict says so."""
    wrong(monkeypatch)
    verdict = verdict_of(module, rule)
    assert not verdict.ok
    assert [(region.status, region.scatters) for region in verdict.regions] == [("differs", (1,))]


WRONG_SCATTERS = [
    (POINTS_ADDED, nothing_new_is_zero),
    (POINTS, the_first_write_that_is_kept),
    (POINTS, all_taken_as_dropped),
    (SPARE, the_last_row_for_the_spare_one),
    (BATCHES, batches_in_one),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("module", "wrong"), WRONG_SCATTERS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_wrong_scatter_of_a_consumer_is_caught(module, wrong, monkeypatch):
    """It is accused of what it computes; without the fault neither that nor its rows out of bounds are found."""
    assert verdict_of(module, "safe_scatter").ok
    wrong(monkeypatch)
    verdict = verdict_of(module, "safe_scatter")
    assert [region.status for region in verdict.regions if "inside" not in region.where] == ["differs"]


def test_a_consumers_scatter_out_of_bounds_is_found(monkeypatch):
    """Of a guard that is left out XLA sees nothing, and verification for the consumer does."""
    without_guard(monkeypatch)
    lowered = hl.lower(POINTS.text, prefer=("safe_scatter",), target="iree").text
    assert hl.verify(POINTS.text, lowered, target="iree", level="regions").differs  # a text of whoever made it
    verdict = verdict_of(POINTS, "safe_scatter")
    found = {("inside" in region.where, region.status) for region in verdict.regions}
    assert found == {(False, "equal"), (True, "differs")}
