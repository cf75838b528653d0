"""Totals are counted from records."""

from collections import Counter
from dataclasses import replace

from hlo_lower.base.causes import Code
from hlo_lower.report.module import ModuleReport, folders, totals


def test_counts_per_kind_subset_combiner_and_rule(decode):
    """Each count goes from the most frequent name to the least."""
    total = decode.totals()
    assert list(total.kinds.items()) == [("insert_slice", 3), ("general", 1)]
    assert total.subsets == {"Tile": 3, "Points": 1}
    assert total.combiners == {"assign": 3, "max": 1}
    assert total.rules == {"scatter_to_dynamic_update_slice": 3, "none": 1}


def test_guards_follow_in_bounds(decode):
    """A guard is needed where in_bounds is unknown, and proved away where it is always."""
    total = decode.totals()
    assert (total.guards_needed, total.guards_proved_away, total.never_in_bounds) == (1, 2, 1)
    assert total.guard_causes == {Code.ARGUMENT(None, None, None): 1}


def test_a_scatter_without_a_rule_has_no_guard(record):
    """It is counted under the reason why it has none, and needs no guard, whatever its bounds."""
    refused = record(
        1, rule="", why=Code.DYNAMIC_SHAPE("tensor<?x8xf32>"), in_bounds="unknown", bounds=Code.NOT_KNOWN()
    )
    gather = Code.RESULT_OF("gather")
    total = totals([ModuleReport("a.mlir", 7, (refused, record(2, in_bounds="unknown", bounds=Code.GUARDED(gather))))])
    assert (total.guards_needed, total.guard_causes) == (1, {gather: 1})
    assert total.no_rule == {Code.DYNAMIC_SHAPE(None): 1}


def test_scatters_that_end_in_the_loop_are_counted(record):
    """The loop is the rule below all others."""
    total = totals([ModuleReport("a.mlir", 7, (record(1, rule="while"), record(2)))])
    assert (total.looped, total.scatters) == (1, 2)


def test_folders_add_up_to_the_total(decode):
    """Each module is in one folder, the one that was given first; what is counted by folder adds up."""
    groups = ("b", ".", "a/c", "b")
    reports = [replace(decode, file=f"{number}.mlir", group=group) for number, group in enumerate(groups)]
    named = folders([*reports, ModuleReport("bad.mlir", error="gone", group="a")])
    assert [(name, len(members)) for name, members in named] == [(".", 1), ("a", 1), ("a/c", 1), ("b", 2)]
    total = totals([report for _, members in named for report in members])
    for field in ("modules", "unreadable", "op_count", "scatters", "guards_needed", "looped"):
        assert getattr(total, field) == sum(getattr(totals(members), field) for _, members in named)
    for field in ("kinds", "rules", "guard_causes", "no_rule"):
        added = Counter()
        for _, members in named:
            added.update(getattr(totals(members), field))
        assert getattr(total, field) == dict(added)


def test_several_modules_add_up(decode):
    """An unreadable module is counted as such and leaves the other counts alone."""
    total = totals([decode, decode, ModuleReport("bad.mlir", error="no such file")])
    assert (
        total.modules,
        total.unreadable,
        total.op_count,
        total.scatters,
        total.scatters_left,
    ) == (3, 1, 10898, 8, 2)


def test_scatters_left_is_unknown_if_one_module_was_only_classified(decode, record):
    """What was not measured for one module is not measured in total."""
    assert totals([decode, ModuleReport("b.mlir", 3, (record(),))]).scatters_left is None


def test_nothing_gives_nothing():
    """The totals of no module are zeros."""
    total = totals([])
    assert (total.modules, total.scatters, total.scatters_left, total.kinds) == (0, 0, None, {})
