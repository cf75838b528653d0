"""Totals are counted from records, and causes count alike from module to module."""

from collections import Counter
from dataclasses import replace

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.base.english import told_kind
from hlo_lower.report.module import ModuleReport, folders, guard_cause, refusal_cause, totals

BAD = ModuleReport("bad.mlir", error="gone", group="a")


def test_counts_and_guards_of_a_module(decode):
    """Each count goes from the most frequent name to the least; a guard is needed where in_bounds is unknown."""
    total = decode.totals()
    assert list(total.kinds.items()) == [("insert_slice", 3), ("general", 1)]
    assert total.subsets == {"Tile": 3, "Points": 1}
    assert total.combiners == {"assign": 3, "max": 1}
    assert total.rules == {"scatter_to_dynamic_update_slice": 3, "none": 1}
    assert (total.guards_needed, total.guards_proved_away, total.never_in_bounds) == (1, 2, 1)
    assert total.guard_causes == {Code.ARGUMENT(None, None, None): 1}


def test_a_scatter_without_a_rule_has_no_guard(record):
    """It is counted under the reason why it has none, whatever its bounds; the loop is the rule below all others."""
    why, gather = Code.DYNAMIC_SHAPE("tensor<?x8xf32>"), Code.RESULT_OF("gather")
    refused = record(1, rule="", why=why, in_bounds="unknown", bounds=Code.NOT_KNOWN())
    guarded = record(2, in_bounds="unknown", bounds=Code.GUARDED(gather))
    total = totals([ModuleReport("a.mlir", 7, (refused, guarded, record(3, rule="while")))])
    assert (total.guards_needed, total.guard_causes) == (1, {gather: 1})
    assert total.no_rule == {Code.DYNAMIC_SHAPE(None): 1}
    assert (total.looped, total.scatters) == (1, 3)


def test_folders_add_up_to_the_total(decode):
    """Each module is in one folder, the one that was given first; what is counted by folder adds up."""
    groups = ("b", ".", "a/c", "b")
    reports = [replace(decode, file=f"{number}.mlir", group=group) for number, group in enumerate(groups)]
    named = folders([*reports, BAD])
    assert [(name, len(members)) for name, members in named] == [(".", 1), ("a", 1), ("a/c", 1), ("b", 2)]
    total = totals([report for _, members in named for report in members])
    for field in ("modules", "unreadable", "op_count", "scatters", "guards_needed", "looped"):
        assert getattr(total, field) == sum(getattr(totals(members), field) for _, members in named)
    for field in ("kinds", "rules", "guard_causes", "no_rule"):
        assert getattr(total, field) == dict(sum((Counter(getattr(totals(m), field)) for _, m in named), Counter()))


def test_several_modules_add_up(decode, of_one):
    """An unreadable module leaves the other counts alone; what was not measured for one is not measured in total."""
    total = totals([decode, decode, BAD])
    counts = (total.modules, total.unreadable, total.op_count, total.scatters, total.scatters_left)
    assert counts == (3, 1, 10898, 8, 2)
    assert totals([decode, of_one()]).scatters_left is None
    none = totals([])
    assert (none.modules, none.scatters, none.scatters_left, none.kinds) == (0, 0, None, {})


GUARDS = {
    Code.ARGUMENT(27, "main", None): "argument",
    Code.ARGUMENT(3, "main", "pos"): "argument",
    Code.ARGUMENT_OF("reduce"): "argument of reduce",
    Code.RESULT_OF("gather"): "result of gather",
    Code.RESULT_OF("chlo.top_k"): "result of chlo.top_k",
    Code.RESULT_OF_CALL("f"): "result of a call",
    Code.CARRIED_BY("while"): "carried by while",
    Code.OVERHANGS(): "overhangs",
    Code.NOT_KNOWN(): "not known",
}
REFUSALS = {
    Code.DYNAMIC_SHAPE("tensor<?x5xf32>"): "dynamic shape",
    Code.QUANTIZED("!quant.uniform<i8:f32, 0.1>"): "quantized element type",
    Code.KEPT_ON_REQUEST(): "kept on request (--only, --skip)",
    Code.KEPT_UNSUPPORTED(Code.DYNAMIC_SHAPE("tensor<?x5xf32>")): "dynamic shape",
    Code.NO_LOWERING("iree"): "no lowering for target iree",
}


@pytest.mark.parametrize("cause", [*GUARDS, *REFUSALS], ids=[*GUARDS.values(), *REFUSALS.values()])
def test_causes_are_counted_without_names_and_numbers(record, cause):
    """A guard is counted by what the index comes from, a missing rule by its reason, without what differs by module."""
    if cause in GUARDS:
        assert told_kind(guard_cause(record(bounds=Code.GUARDED(cause)))) == GUARDS[cause]
    else:
        assert told_kind(refusal_cause(record(rule="", why=cause))) == REFUSALS[cause]
