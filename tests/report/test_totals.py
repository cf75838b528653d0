"""Totals are counted from records."""

from hlo_lower.report import ModuleReport, totals


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
    assert total.guard_causes == {"guarded: argument pos": 1}


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
