"""The forms for many windows, each made wrong in one step: verification accuses it, and not the right one.

A fault replaces one step of the package while a module is lowered and verified under the form that is meant.
"""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from scatter_programs import POINT_NUMBERS, POINTS, Module, binary

import hlo_lower as hl
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.lowering.scatter import numbered_rows, safe_scatter

MINIMUM = Module("8xi32", "6x1xi32", "6xi32", POINT_NUMBERS, binary("minimum"))
INTEGERS = Module("8xi32", "6x1xi32", "6xi32", POINT_NUMBERS, binary("add"))
FLOATS = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS, binary("add"))
SPARE = Module("4xf32", "6x1xi32", "6xf32", POINT_NUMBERS, binary("add"))
BATCHES = Module(
    "2x8xf32",
    "2x3x1xi32",
    "2x3xf32",
    "update_window_dims = [], inserted_window_dims = [1], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
)
ZERO = np.asarray(0.0)
SAME = replace(POINTS, producers="%one = stablehlo.constant dense<1.0> : tensor<6xf32>")


def verdict_of(module, rule):
    """The verdict on a module of which the scatter is lowered by a rule."""
    text = module.text
    if module is SAME:
        text = text.replace("(%o, %j, %up)", "(%o, %i, %one)")
    lowered = hl.lower(text, prefer=(rule,), target="iree" if rule == "safe_scatter" else "stablehlo")
    assert [record.rule for record in lowered.records] == [rule]
    return hl.verify(text, lowered, level="regions")


# --- faults ---


def first_writer_wins(monkeypatch):
    """The numbers of the writes go down, so that the greatest one of a row is its first."""
    right = numbered_rows._last_by_comparing

    def wrong(op):
        build, last = op.build, right(op)
        first = reversed_numbers(op)
        return build.select(
            build.compare(last, "GE", build.constant(0, last.static_shape, last.element_type)), first, last
        )

    def reversed_numbers(op):
        build, flat = op.build, op.flat
        numbers = flat.row_numbers(build)
        shape, element = (flat.batches, flat.rows, flat.writes), flat.number_type
        hit = build.compare(build.broadcast(numbers, shape, [0, 2]), "EQ", build.iota(shape, 1, element))
        most = build.constant(flat.writes - 1, shape, element)
        number = build.select(hit, build.iota(shape, 2, element), most)
        return numbered_rows.reduce_along(build, number, build.constant(flat.writes - 1, (), element), 2, "minimum")

    monkeypatch.setattr(numbered_rows, "_last_by_comparing", wrong)


def every_row_taken_as_written(monkeypatch):
    """What is looked up for the number -1 replaces the rows that no update is for."""
    monkeypatch.setattr(
        numbered_rows, "chosen", lambda op, values, hit: numbered_rows.new_values(op, op.build, values, values)
    )


def ties_broken_the_other_way(monkeypatch):
    """The sort leaves equal rows in another order, as one that is not stable may if it does not go by the position."""
    right = numbered_rows.sort_rows

    def wrong(build, keys, carried, *, by_both=False):
        assert by_both
        rows, order = right(build, keys, [build.elementwise("negate", carried[0])], by_both=True)
        return [rows, build.elementwise("negate", order)]

    monkeypatch.setattr(numbered_rows, "sort_rows", wrong)


def zero_for_every_identity(monkeypatch):
    """What is for other rows counts as 0."""
    monkeypatch.setattr(numbered_rows, "identity", lambda build, combiner, element: build.constant(0, (), element))


def dropped_rows_written_to_the_last(monkeypatch):
    """The number that no row has is brought into the operand."""
    right = FlatScatter.row_numbers

    def wrong(self, build):
        numbers = right(self, build)
        last = build.constant(self.rows - 1, numbers.static_shape, numbers.element_type)
        return build.elementwise("minimum", numbers, last)

    monkeypatch.setattr(FlatScatter, "row_numbers", wrong)


def neighbours_combined(monkeypatch):
    """A run of sorted updates takes in what stands before it."""
    right = numbered_rows.shift_along

    def wrong(build, value, step, filling):
        is_key = len(value.static_shape) == 2
        return value if is_key else right(build, value, step, filling)

    monkeypatch.setattr(numbered_rows, "shift_along", wrong)


def search_one_short(monkeypatch):
    """The binary search does not look at the last write."""
    right = numbered_rows.last_at_most

    def wrong(build, keys, rows):
        b, n = keys.static_shape
        return right(build, build.slice(keys, [0, 0], [b, n - 1]), rows)

    monkeypatch.setattr(numbered_rows, "last_at_most", wrong)


def a_row_takes_the_updates_of_others(monkeypatch):
    """The updates of every row begin with the first of all."""

    def wrong(build, value, step, filling):
        return build.constant(0, value.static_shape, value.element_type)

    monkeypatch.setattr(numbered_rows, "shift_along", wrong)


def a_round_short(monkeypatch):
    """The last of several updates to a row is left out."""
    right = numbered_rows.reduce_along

    def wrong(build, value, initial, axis, op):
        found = right(build, value, initial, axis, op)
        one = build.constant(1, found.static_shape, found.element_type)
        return found if found.static_shape else build.elementwise("subtract", found, one)

    monkeypatch.setattr(numbered_rows, "reduce_along", wrong)


def nothing_new_is_zero(monkeypatch):
    """What is dropped adds 0.0: -0.0 becomes 0.0."""
    monkeypatch.setattr(safe_scatter, "identity", lambda build, _combiner, element: build.constant_array(ZERO, element))


def the_first_write_that_is_kept(monkeypatch):
    """Not the last one is written again in the end, and a later one to its row is lost."""
    right = safe_scatter.reduce_along

    def wrong(build, value, none, axis, _op):
        most = build.constant(1 << 20, value.static_shape, value.element_type)
        is_kept = build.compare(value, "GE", build.constant(0, value.static_shape, value.element_type))
        return right(
            build, build.select(is_kept, value, most), build.constant(1 << 20, (), none.element_type), axis, "minimum"
        )

    monkeypatch.setattr(safe_scatter, "reduce_along", wrong)


def all_taken_as_dropped(monkeypatch):
    """One write that is dropped is enough for row 0 to be given back what it held."""
    right = safe_scatter.reduce_along
    monkeypatch.setattr(safe_scatter, "reduce_along", lambda b, v, none, axis, _: right(b, v, none, axis, "minimum"))


def the_last_row_for_the_spare_one(monkeypatch):
    """What is dropped is combined with a row that is there, as nothing is cut off behind it."""
    right = safe_scatter._scatter

    def wrong(op, operand, numbers, update):
        build, rows = op.build, operand.static_shape[0]
        last = build.constant(rows - 2, numbers.static_shape, numbers.element_type)
        return right(op, operand, build.elementwise("minimum", numbers, last), update)

    monkeypatch.setattr(safe_scatter, "_scatter", wrong)


def batches_in_one(monkeypatch):
    """Rows of all batch coordinates have the numbers of the first one's."""
    monkeypatch.setattr(
        safe_scatter, "_of_all", lambda build, numbers, rows: build.reshape(numbers, (prod(numbers.static_shape),))
    )


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
    ("module", "rule", "fault"), WRONG, ids=[f"{rule}-{fault.__name__}" for _, rule, fault in WRONG]
)
def test_a_wrong_form_is_caught(module, rule, fault, monkeypatch):
    """The scatter alone differs, and the verdict says so."""
    fault(monkeypatch)
    verdict = verdict_of(module, rule)
    assert not verdict.ok
    assert [(region.status, region.scatters) for region in verdict.regions] == [("differs", (1,))]


WRONG_SCATTERS = [
    (FLOATS, nothing_new_is_zero),
    (POINTS, the_first_write_that_is_kept),
    (POINTS, all_taken_as_dropped),
    (SPARE, the_last_row_for_the_spare_one),
    (BATCHES, batches_in_one),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("module", "fault"), WRONG_SCATTERS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_wrong_scatter_of_a_consumer_is_caught(module, fault, monkeypatch):
    """It is accused of what it computes; without the fault neither that nor its rows out of bounds are found."""
    assert verdict_of(module, "safe_scatter").ok
    fault(monkeypatch)
    verdict = verdict_of(module, "safe_scatter")
    assert [region.status for region in verdict.regions if "inside" not in region.where] == ["differs"]


def test_a_consumers_scatter_out_of_bounds_is_found(monkeypatch):
    """Of a guard that is left out XLA sees nothing, and verification for the consumer does."""
    monkeypatch.setattr(
        safe_scatter,
        "_of_assigned",
        lambda op, operand, numbers, update, _kept: safe_scatter._scatter(op, operand, numbers, update),
    )
    lowered = hl.lower(POINTS.text, prefer=("safe_scatter",), target="iree").text
    assert hl.verify(POINTS.text, lowered, target="iree", level="regions").differs  # a text of whoever made it
    verdict = verdict_of(POINTS, "safe_scatter")
    assert {("inside" in region.where, region.status) for region in verdict.regions} == {
        (False, "equal"),
        (True, "differs"),
    }


RIGHT = [(module, rule) for module, rule, _ in WRONG]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("module", "rule"),
    [case for n, case in enumerate(RIGHT) if case not in RIGHT[:n]],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_the_right_form_verifies(module, rule):
    """Without a fault the same module under the same form is not accused."""
    verdict = verdict_of(module, rule)
    assert verdict.ok, verdict.lines()
