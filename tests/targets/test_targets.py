"""Targets: what they take and refuse, when two are the same, and how they are found."""

import dataclasses

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.base.english import told
from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets import STABLEHLO, TARGETS, target_named, target_of
from hlo_lower.ops.targets.costs import COSTS
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.ops.targets.target import Target


def test_a_target_gives_the_reason_of_a_refusal():
    """A refused op has a reason that names the op and the target; any other op has none."""
    target = Target("small", "", {"stablehlo.while": "no control flow"})
    assert target.refusal("stablehlo.while") == Code.REFUSES_OPS("small", ("stablehlo.while",), "no control flow")
    assert target.refusal("stablehlo.add") is None
    assert target.refusals(["stablehlo.add", "stablehlo.while", "stablehlo.while"]) == (
        Code.REFUSES_OPS("small", ("stablehlo.while",), "no control flow"),
    )


def test_a_list_of_ops_refuses_all_others():
    """Where the ops are listed, one that is not among them is refused; the end of a region belongs to its op."""
    target = Target("small", ops={"stablehlo.map"})
    assert target.refusal("stablehlo.add") == Code.REFUSES_OPS("small", ("stablehlo.add",), None)
    assert target.refusal("stablehlo.map") is None
    assert target.refusal("stablehlo.return") is None


def test_element_types_are_refused_overall():
    """An element type that is refused, or not among those listed, is refused on every op."""
    listed, refusing = Target("small", dtypes={"f32", "i1"}), Target("small", refused_dtypes={"i64": "32 bits"})
    assert listed.refusal("stablehlo.add", {"f32"}) is None
    assert told(listed.refusal("stablehlo.add", {"f32", "bf16"})) == "emits stablehlo.add on bf16, which small refuses"
    assert (
        told(refusing.refusal("stablehlo.add", {"i64"})) == "emits stablehlo.add on i64, which small refuses: 32 bits"
    )
    assert refusing.refusal("stablehlo.add", {"bf16"}) is None


def test_element_types_are_refused_per_op():
    """An op may take less than the target does; other ops do not care."""
    target = Target("small", op_dtypes={"stablehlo.dot_general": {"i32"}})
    refusal = target.refusal("stablehlo.dot_general", {"f32"})
    assert told(refusal) == "emits stablehlo.dot_general, which small refuses for f32"
    assert target.refusal("stablehlo.dot_general", {"i32"}) is None
    assert target.refusal("stablehlo.add", {"f32"}) is None


def test_stablehlo_takes_everything_but_scatter():
    """The specification's target refuses what is to be lowered, and no element type."""
    assert STABLEHLO.refusal("stablehlo.scatter") is not None
    assert STABLEHLO.refusal("stablehlo.sort", {"f64", "ui2", "complex<f32>"}) is None
    assert not STABLEHLO.restricts_dtypes


BASE = Target("npu", "", {"stablehlo.while": "no"}, None, {"f32"}, {"i64": "no"}, {"stablehlo.add": {"f32"}})


@pytest.mark.parametrize(
    "other",
    [
        {"name": "npu2"},
        {"description": "another"},
        {"refused": {"stablehlo.while": "never"}},
        {"ops": {"stablehlo.add"}},
        {"dtypes": {"f32", "i32"}},
        {"refused_dtypes": {}},
        {"op_dtypes": {}},
        {"costs": COSTS.with_entry("loop", 1)},
        {"dialect": "linalg"},
        {"index_type": "i32"},
        {"float_mode": "exact"},
        {"keep": [NativeScatter()]},
        {"legalize": True},
        {"composites": {"odml.softmax"}},
        {"demote_i64": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_targets_are_equal_by_all_that_they_say(other):
    """Two targets of one name that differ in anything are two; a copy is the same one."""
    assert dataclasses.replace(BASE, **other) != BASE
    assert {BASE, dataclasses.replace(BASE), dataclasses.replace(BASE, **other)} == {
        BASE,
        dataclasses.replace(BASE, **other),
    }


def test_a_target_does_not_change_with_what_it_was_made_from():
    """A dict that is changed later changes no target."""
    refused, ops = {"stablehlo.while": "no"}, {"stablehlo.add"}
    target = Target("npu", refused=refused, op_dtypes={"stablehlo.add": ops})
    before = hash(target)
    refused.clear()
    ops.clear()
    assert target.refuses_op("stablehlo.while") == "no"
    assert hash(target) == before
    assert target.op_dtypes["stablehlo.add"] == {"stablehlo.add"}


def test_a_name_is_no_collection_of_names():
    """One string where several are wanted is not taken for its letters."""
    with pytest.raises(InputError, match="dtypes is a collection of names, not 'f32'"):
        Target("npu", dtypes="f32")
    with pytest.raises(InputError, match="composites is a collection of names, not 'odml'"):
        Target("npu", composites="odml")
    with pytest.raises(InputError, match="dtypes is a collection of names, not 'i8'"):
        NativeScatter(dtypes="i8")


@pytest.mark.parametrize(
    ("make", "says", "told"),
    [
        (Target, {"name": "npu", "dialect": "mhlo"}, "dialect is one of 'stablehlo', 'linalg', not 'mhlo'"),
        (Target, {"name": "npu", "index_type": "i64"}, "index_type is one of '', 'i32', not 'i64'"),
        (Target, {"name": "npu", "float_mode": "fast"}, "float_mode is one of '', 'exact', 'reassociate', not 'fast'"),
        (NativeScatter, {"form": "row"}, "form is one of any, rows, points, not 'row'"),
        (NativeScatter, {"combiners": {"plus"}}, "combiners are assign, add, .*, not 'plus'"),
    ],
)
def test_a_word_that_does_not_exist_is_refused(make, says, told):
    """A target that is made in Python is held to the words that a file is held to."""
    with pytest.raises(InputError, match=told):
        make(**says)


def test_targets_are_found_by_name():
    """Each listed target is found under its own name, and names are unique."""
    assert [target_named(target.name) for target in TARGETS] == list(TARGETS)
    assert [target_of(target.name) for target in TARGETS] == list(TARGETS)
    assert len({target.name for target in TARGETS}) == len(TARGETS)


def test_a_target_is_taken_as_it_is():
    """An object that says what exists is used; one with a misspelt op is refused, as its file would be."""
    assert target_of(BASE) is BASE
    assert target_of(STABLEHLO) is STABLEHLO
    with pytest.raises(InputError, match=r"target stablehlo: refused: there is no operation 'stablehlo\.whlie'"):
        target_of(dataclasses.replace(STABLEHLO, refused={"stablehlo.whlie": "no"}))
    with pytest.raises(InputError, match=r"target npu: refused: there is no operation 'stablehlo\.whlie'"):
        target_of(Target("npu", refused={"stablehlo.whlie": "no"}))


def test_an_unknown_target_lists_the_known_ones():
    """The error names what there is."""
    with pytest.raises(InputError, match="no target named 'nothing'") as error:
        target_named("nothing")
    assert error.value.facts == f"targets: {', '.join(t.name for t in TARGETS)}"
