"""Alignment: what both modules have is matched, and each change is a region of its own, in loops too."""

import pytest
from two_programs import aligned, names, programs, regions
from untyped_mlir import module

from hlo_lower.verify.align.corrections import values_apart

BOTH = "%a: 8xf32, %b: 8xf32"
CHAIN = "%x = add %a, %b; %y = multiply %x, %b; %z = maximum %y, %a; %r = subtract %z, %x"
RENAMED = """%u = add %b, %a; %x = add %a, %b; %y = multiply %b, %u; %z = maximum %y, %a; %r = subtract %z, %x"""
LOOP = """%s = constant 0 : i32
%r:3 = while(%k = %s, %x = %a, %y = %b) cond { %n = constant 4 : i32; %p = compare LT, %k, %n; return %p } do {
  %one = constant 1 : i32; %next = add %k, %one; %t = subtract %x, %y; return %next, %t, %y }"""


def changed(body, *changes, returned="%r", after=None):
    """A module and the same with changes of its text, or another result."""
    text = body
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return module(BOTH, body, returned), module(BOTH, text, after or returned)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(CHAIN, id="an identical pair has no region"),
        pytest.param(RENAMED, id="nor has a second version that is renamed, reordered and partly written twice"),
    ],
)
def test_what_is_the_same_has_no_region(other):
    assert regions(*(module(BOTH, body) for body in (CHAIN, other))) == []


def test_a_changed_operation_is_one_region():
    """One operation in the middle is a region with its two operands as inputs; what reads it is matched behind it."""
    [region] = regions(*changed(CHAIN, ("multiply", "divide")))
    assert names(region) == (["multiply"], ["divide"])
    assert (len(region.inputs), len(region.outputs), region.where) == (2, 1, "main")


def test_two_changes_are_two_regions():
    """Changes with matched operations between them are judged each alone. What both modules return is taken as equal
    under its own name; what lies between has none."""
    texts = changed(CHAIN, ("multiply", "divide"), ("subtract", "power"))
    found = [names(region) for region in regions(*texts)]
    assert sorted(found) == [(["multiply"], ["divide"]), (["subtract"], ["power"])]
    [pair] = aligned(*texts)
    assert sorted(a.root for a in pair.assumptions) == ["", "result 0"]


def chain(*writes):
    """Thirty writes into one cache."""
    lines, last = ["%z = constant 0 : i32"], "%a"
    for k in range(30):
        lines += [f"%i{k} = slice %i [{k}:{k + 1}]; %u{k} = slice %u [{k}:{k + 1}]"]
        lines += [write.format(last=last, k=k) for write in writes]
        lines += [f"%t{k} = tanh %r{k}"]
        last = f"%t{k}"
    return module("%a: 8xf32, %i: 30xi32, %u: 30xf32", "\n".join(lines), last)


def test_thirty_rewritten_scatters_are_thirty_small_regions():
    """In a chain of scatters into one cache each is a region of one scatter and one update of a slice."""
    before = chain("%r{k} = scatter({last}, %i{k}, %u{k}) <window=[0], to=[0]> {{%c, %d: return %d}}")
    after = chain("%s{k} = reshape %i{k} -> i32", "%r{k} = dynamic_update_slice {last}, %u{k}, %s{k}")
    found = [names(region) for region in regions(before, after)]
    assert len(found) == 30
    small, last = (
        (["scatter"], ["reshape", "dynamic_update_slice"]),
        (["scatter", "tanh"], ["reshape", "dynamic_update_slice", "tanh"]),
    )
    assert all(one in (small, last) for one in found)
    assert found.count(small) >= 29  # the last one goes to what is returned


def test_a_changed_body_is_a_region_within_its_loop():
    """The loop's two bodies are aligned with equal arguments, and the place says which body it is."""
    [region] = regions(*changed(LOOP, ("subtract", "maximum"), returned="%r#1"))
    assert names(region) == (["subtract"], ["maximum"])
    assert region.where == "main > while 1 body 1"
    turns = changed(LOOP, ("constant 4", "constant 5"), returned="%r#1")  # a constant of the condition
    assert [region.where for region in regions(*turns)] == ["main > while 1 body 0"]


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ([("%r:3", "%r:4"), ("%y = %b)", "%y = %b, %v = %b)"), ("%t, %y }", "%t, %y, %v }")], "%r#1"),
        ([("%x = %a, %y = %b", "%y = %b, %x = %a"), ("%next, %t, %y", "%next, %y, %t")], "%r#2"),
    ],
    ids=["one more", "another order"],
)
def test_a_loop_with_other_carried_values_is_a_region_as_a_whole(changes, after):
    """Carried values in another order, or one more of them, leave no bodies to pair: the loop is the region."""
    found = regions(*changed(LOOP, *changes, returned="%r#1", after=after))
    assert [region.where for region in found] == ["main"]
    assert all("while" in names(region)[0] and "while" in names(region)[1] for region in found)


def test_different_constants_are_not_assumed_to_be_equal():
    """Where two modules read two constants at one place, nothing is assumed of them: the region is what reads them."""
    [pair] = aligned(*changed("%c = constant 2.0 : 8xf32; %x = minimum %a, %c; %r = subtract %x, %b", ("2.0", "3.0")))
    kinds = [pair.first.program.makers[assumption.first].short_name for assumption in pair.assumptions]
    assert "constant" not in kinds
    assert kinds


ONE, OTHER = (
    f"%two = constant 2.0 : 8xf32; %s = {first} %x, %two; %t = {second} %s, %two; %r = add %t, %x"
    for first, second in (("add", "subtract"), ("subtract", "add"))
)
"""2 x, in two ways."""


def told(before: str, after: str) -> set[tuple[int, int]]:
    """The values that are apart, by the places of the operations that make them."""
    first, second = programs(*(module("%x: 8xf32", body) for body in (before, after)))
    makers = [(first.makers[x], second.makers[y]) for x, y in values_apart(first, second, "main")]
    return {(one.order, other.order) for one, other in makers if one is not None and other is not None}


def test_values_that_differ_are_apart():
    """x + 2 is not x - 2, and what is rounded otherwise is not apart: x + 2 - 2 and x - 2 + 2."""
    assert (1, 1) in told(ONE, OTHER)
    assert (2, 2) not in told(ONE, OTHER)


@pytest.mark.parametrize("wrong", ["%t, %two", "%s, %x"])
def test_nothing_is_said_of_functions_that_differ(wrong):
    """Their difference is looked for where it is."""
    assert told(ONE, OTHER.replace("%r = add %t, %x", f"%r = add {wrong}")) == set()
