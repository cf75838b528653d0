"""What a sort makes of the numbers below n holds each of them once: where that is seen, and what is derived of it."""

import numpy as np
import pytest
from two_programs import aligned, programs
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.align.in_order import TOLD, dim_in_order, forget_orders, orders_told
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.pull import derive
from hlo_lower.verify.run import Executable

pytest.importorskip("z3")

DERIVES = True

SORTED = """%n = iota dim = 1 : 3x4xi32; %back = reverse %n, dims = [1]
%s:2 = sort(%x, %back) <dimension = 1, is_stable = true> {%a, %b, %c, %d: %p = compare COMPARED, %a, %b; return %p}
"""

ONE = "%o = iota dim = 1 : 3x1xi32; %q = sort(%o) <dimension = 1> {LT};"
MOVED = {
    "sorted": ("%r = reverse %s#1, dims = [1]", 1),
    "whatever is compared": ("%r = reverse %s#1, dims = [0]", 1),
    "chosen": ("%p = compare LT, %s#1, 0; %more = add %s#1, 4; %r = select %p, %more, %s#1", 1),
    "of it": ("%t = transpose %s#1, dims = [1, 0]; %q = reshape %t -> 4x1x3x1xi32; %r = reverse %q, dims = [2]", 0),
    "spread": ("%r = broadcast_in_dim %s#1, dims = [0, 2] -> 3x2x4xi32", 2),
    "sorted once more": ("%r = sort(%s#1) <dimension = 1> {LT}", 1),
    "converted": ("%w = convert %s#1 -> 3x4xi8; %r = convert %w -> 3x4xi32", 1),
    "rows of it": ("%r = slice %s#1 [1:3, 0:4]", 1),
    "beside others": ("%y = convert %x -> 3x4xi32; %c = concatenate %y, %s#1, dim = 0; %r = slice %c [4:6, 0:4]", 1),
    "with others": ("%y = convert %x -> 3x4xi32; %c = concatenate %y, %s#1, dim = 0; %r = slice %c [2:6, 0:4]", None),
    "behind others": ("%c = concatenate %s#1, %s#1, dim = 1; %r = slice %c [0:3, 2:6]", None),
    "another dim": ("%r = sort(%s#1) <dimension = 0> {LT}", None),
    "in one dim": ("%r = reshape %s#1 -> 12xi32", None),
    "a part": ("%r = slice %s#1 [0:3, 0:3]", None),
    "others": ("%r = add %s#1, 1", None),
    "chosen by chance": ("%p = compare LT, %s#1, 2; %q = reverse %s#1, dims = [1]; %r = select %p, %q, %s#1", None),
    "the one number, everywhere": (f"{ONE} %r = broadcast_in_dim %q, dims = [0, 1] -> 3x4xi32", None),
    "a dim of one number, taken away": (f"{ONE} %r = reshape %q -> 3xi32", None),
    "an argument": ("%y = convert %x -> 3x4xi32; %r = sort(%y) <dimension = 1> {LT}", None),
}


def dim_of(text):
    """The dim along which the result is in order."""
    [program] = programs(text)
    return dim_in_order(program, program.entries["main"].returned[0], Ranges(program, {}, function="main").of)


@pytest.mark.parametrize("name", MOVED)
def test_numbers_in_order_are_seen(name):
    """And what is seen is so in a run, whatever the comparator is."""
    body, dim = MOVED[name]
    text = module("%x: 3x4xf32", SORTED.replace("COMPARED", "NE" if name == "whatever is compared" else "LT") + body)
    assert dim_of(text) == dim
    x = np.random.default_rng(0).integers(-2, 3, (3, 4)).astype(np.float32)
    [found] = Executable(text, "quick").run([x])
    assert dim is None or _counts(found, dim)


def _counts(found, dim):
    """Whether an array holds each number below the size of a dim once along it."""
    rows = np.moveaxis(np.sort(found, dim), dim, -1)
    return bool((rows == np.arange(found.shape[dim])).all())


def test_a_type_that_does_not_hold_all_positions_is_not_in_order():
    """An iota of i8 begins anew behind 127."""
    body = "%n = iota dim = 0 : 200xi8; %s = sort(%n) <dimension = 0> {LT}; %r = convert %s -> 200xi32"
    assert dim_of(module("%x: i8", body)) is None
    assert dim_of(module("%x: i8", body.replace("200", "100"))) == 0


WRITTEN = """%n = iota dim = 0 : 3x4xi32; %b = reshape %n -> 3x4x1xi32; %c = reshape %i -> 3x4x1xi32
%at = concatenate %b, %c, dim = 2; %z = constant 0.0 : 3x4xf32
%r = scatter(%z, %at, %u) <inserted=[0, 1], to=[0, 1], ivd=2> {assign}"""
READ = """%k = iota dim = 2 : 3x4x4xi32; %p = iota dim = 1 : 3x4x4xi32; %s = broadcast_in_dim %i, dims = [0, 2] -> 3x4x4xi32
%here = compare EQ, %s, %p; %none = constant -1 : 3x4x4xi32; %which = select %here, %k, %none
%first = constant -2147483648 : i32; %last = reduce(%which init: %first) applies stablehlo.maximum across dimensions = [2]
%own = iota dim = 0 : 3x4xi32; %by = constant 4 : 3x4xi32; %row = multiply %own, %by; %place = add %last, %row
%line = reshape %u -> 12xf32; %at = reshape %place -> 12x1xi32
%g = gather(%line, %at) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>> -> 12xf32
%r = reshape %g -> 3x4xf32"""  # noqa: E501


def test_each_element_is_written_where_an_argument_is_in_order():
    """A scatter at a row's number and a place in order is a gather at the place of the place, and nowhere else."""
    texts = [module("%i: 3x4xi32, %u: 3x4xf32", body) for body in (WRITTEN, READ)]
    found = derive(*texts, ordered={0: 1})
    assert found
    assert {"numbers in order", "one number of a dim"} <= set(found.laws)
    assert not derive(*texts, seconds=0.5)
    assert not derive(*texts, ordered={0: 0}, seconds=0.5)


def test_a_region_is_told_what_a_sort_has_put_in_order():
    """It is derived as it stands, without the sort."""
    sort = SORTED.replace("COMPARED", "LT").replace("%n =", "%m =").replace("%n,", "%m,").replace("%s", "%t")
    head = f"{sort}%i = reverse %t#1, dims = [1]"
    texts = [module("%x: 3x4xf32, %u: 3x4xf32", f"{head}\n{body}") for body in (WRITTEN, READ)]
    [region] = hl.verify(*texts, level="regions").regions
    assert region.how == "derived"
    assert "numbers in order" in region.laws


OTHERWISE = "%q = convert %x -> 3x4xi16; %r = call @f(%q) -> 3x4xi32"
TWICE = "; %s = convert %r -> 3x4xi16; %t = call @f(%s) -> 3x4xi32; %w = maximum %r, %t"


@pytest.mark.parametrize(("more", "told"), [("", [("stablehlo.convert", 1)]), (TWICE, [])])
def test_the_second_version_is_told_what_the_first_one_has_sorted(more, told):
    """An operation that gives what a sort gives is in order, unless it stands elsewhere, too."""
    body = SORTED.replace("COMPARED", "LT") + MOVED["sorted"][0]
    before = module("%x: 3x4xf32", f"{body}; %w = maximum %r, %n", "%r, %w" if more else "%r")
    called = function("private @f", "%y: 3x4xi16", "%n = negate %y; %r = convert %n -> 3x4xi32")
    after = module("%x: 3x4xf32", OTHERWISE + more, "%r, %w" if more else "%r", called)
    pairs = aligned(before, after)
    ends = Ranges(pairs[0].first.program, {}, function="main").of
    assert [(op.name, dim) for op, dim in orders_told(pairs, ends).items()] == told


def test_a_version_is_not_believed_what_it_says_of_another():
    """The attribute is the judge's own: a text that has it is read without."""
    body = "%i = convert %x -> 3x4xi32"
    texts = [module("%x: 3x4xf32, %u: 3x4xf32", f"{body}\n{more}") for more in (WRITTEN, READ)]
    own = "stablehlo.convert %x :", "stablehlo.convert %x {hlo_lower.in_order = 1 : i64} :"
    modules = [mlir.parse_module(text.replace(*own)) for text in texts]
    assert [TOLD in str(found) for found in modules] == [True, True]
    assert forget_orders(*modules)
    assert [TOLD in str(found) for found in modules] == [False, False]
    assert not forget_orders(*modules)
