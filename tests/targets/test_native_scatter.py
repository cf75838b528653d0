"""Scatters that a target takes as they are: what is kept, what is not, and how both are told."""

import pytest
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower import cli
from hlo_lower.base.causes import Code
from hlo_lower.base.english import phrase
from hlo_lower.ops.targets.native_scatter import NativeScatter

FORMS = {
    "rows": ("window=[1], inserted=[0], to=[0], ivd=1", 1, [5, 3]),
    "points": ("inserted=[0, 1], to=[0, 1], ivd=1", 2, [5]),
    "columns": ("window=[0], inserted=[1], to=[1], ivd=1", 1, [4, 5]),
    "tiles": ("window=[1, 2], to=[0], ivd=1", 1, [5, 2, 3]),
}
DISTINCT, EQUAL, OUTSIDE = ([[3], [0], [2], [1], [last]] for last in (4, 3, 5))
NEGATE = "%a, %b: %c = negate %b; return %c"
TWICE = "%a, %b: %d = add %b, %b; %c = add %a, %d; return %c"


def scatter(form="rows", *, dtype="f32", index="i32", body="assign", before="", constant=(), count=1):
    """Five updates of this form, once or more often, into 4x3 elements (5x3 where the indices are a constant)."""
    numbers, components, updates = FORMS[form]
    x, indices, before = of([5 if constant else 4, 3], dtype), of([5, components], index), before or "%k = add %i, 0"
    before = f"%k = constant {constant} : {indices}" if constant else before
    lines = [f"%r{n} = scatter(%o, %k, %u) <{numbers}> {{{body}}}" for n in range(count)]
    text = "\n".join([before, *lines])
    return module(f"%o: {x}, %i: {indices}, %u: {of(updates, dtype)}", text, f"%r{count - 1}")


IN_RANGE = scatter(before="%k = clamp 0, %i, 3")
ANY = {"in_bounds": "any", "unique": "any"}


def lowered_for(*, text, when="always", oob="xla", refused=(), **entry):
    """The module lowered for a target that keeps what an entry says."""
    refused = dict.fromkeys(["stablehlo.scatter", *(f"stablehlo.{op}" for op in refused)], "in general")
    return hl.lower(text, target=hl.Target("npu", refused=refused, keep=[NativeScatter(when=when, **entry)]), oob=oob)


@pytest.mark.parametrize(
    ("entry", "text", "kept"),
    [
        (ANY, scatter(), True),
        (ANY, scatter("columns"), True),
        (ANY, scatter(dtype="i8"), True),
        (ANY, scatter(body="add"), False),
        (ANY, scatter(body=NEGATE), False),
        (ANY | {"combiners": {"add"}}, scatter(body="add"), True),
        (ANY | {"combiners": {"add"}}, scatter(body=TWICE), False),
        (ANY | {"combiners": {"add"}}, scatter(), False),
        (ANY | {"dtypes": {"i8"}}, scatter(dtype="i8"), True),
        (ANY | {"dtypes": {"i8"}}, scatter(), False),
        (ANY | {"index_dtypes": {"i32"}}, scatter(), True),
        (ANY | {"index_dtypes": {"i32"}}, scatter(index="i64"), False),
        (ANY | {"form": "rows"}, scatter(), True),
        (ANY | {"form": "rows"}, scatter("points"), True),
        (ANY | {"form": "rows"}, scatter("columns"), False),
        (ANY | {"form": "rows"}, scatter("tiles"), False),
        (ANY | {"form": "points"}, scatter("points"), True),
        (ANY | {"form": "points"}, scatter(), False),
        ({"unique": "any"}, scatter(), False),
        ({"unique": "any"}, IN_RANGE, True),
        ({"in_bounds": "any"}, IN_RANGE, False),
        ({}, scatter(constant=DISTINCT), True),
        ({}, scatter(constant=EQUAL), False),
        ({}, scatter(constant=OUTSIDE), False),
        # under the specification's policy an overhanging window is written in part; a target that drops it does not
        (ANY | {"oob": "spec"}, scatter("tiles"), False),
        (ANY | {"oob": "spec"}, scatter(), True),
        (ANY | {"oob": "xla"}, scatter("tiles"), True),
        (ANY | {"when": "no_lowering"}, scatter(), False),
        (ANY | {"when": "no_lowering", "refused": ["select", "while"]}, scatter(), True),
    ],
)
def test_what_is_kept_is_what_the_entry_says(entry, text, kept):
    """Combiner, element types, form, bounds and uniqueness have to fit, each by itself."""
    lowered = lowered_for(text=text, **entry)
    assert lowered.text.count("stablehlo.scatter") == 2 * kept  # the op and its dimension numbers
    [record] = lowered.records
    assert ((record.rule == ""), (record.why.code is Code.KEPT)) == (kept, kept)
    assert (lowered.scatters_left, lowered.unsupported) == (kept, 0)


def test_a_kept_scatter_is_told():
    """Its record says who takes it, and on what; so does its twin's. The module verifies as any other does."""
    text = scatter(dtype="i8", count=2)
    lowered = lowered_for(text=text, **ANY)
    told = [(record.number, record.rule, record.why) for record in lowered.records]
    assert told == [(n, "", Code.KEPT("npu", "assign", "i8", False)) for n in (1, 2)]
    assert hl.classify(hl.read(text), target=hl.Target("npu", keep=[NativeScatter(**ANY)])) == lowered.records
    assert hl.verify(text, lowered).ok
    nothing_else = ANY | {"when": "no_lowering", "refused": ["select", "while"]}
    assert lowered_for(text=scatter(), **nothing_else).records[0].why == Code.KEPT("npu", "assign", "f32", True)
    with pytest.raises(hl.NotLoweredError, match="no lowering for target npu"):
        lowered_for(text=scatter(body="add"), **nothing_else)


MANY = "inserted=[0], to=[0], ivd=1"
ROW = module(
    "%o: 8x4xf32, %i: 1xi32, %u: 4xf32", "%r = scatter(%o, %i, %u) <window=[0], inserted=[0], to=[0]> {assign}"
)


def counted(body="add", dtype="f32", n=1000):
    """Updates of single elements at places that nobody knows."""
    return module(f"%o: 64x{dtype}, %i: {n}x1xi32, %u: {n}x{dtype}", f"%r = scatter(%o, %i, %u) <{MANY}> {{{body}}}")


@pytest.mark.parametrize(
    ("text", "how", "kept"),
    [
        *((counted(body), {}, True) for body in ("add", "multiply", "maximum", "assign")),
        *((counted("or", dtype), {}, True) for dtype in ("i1", "i32")),
        *((scatter(form), {}, True) for form in ("rows", "columns")),
        # what is better than a loop is lowered: one window, and places that are constants
        *((text, {}, False) for text in (ROW, scatter(constant=DISTINCT))),
        # a region that does more than its combiner says; what is asked for; elements that are dropped one by one
        *((text, {}, False) for text in (counted(NEGATE), counted(TWICE))),
        *((counted(), how, False) for how in ({"lower_all": True}, {"prefer": "while"})),
        (scatter("tiles"), {"oob": "spec"}, False),
    ],
)
def test_xla_keeps_a_scatter_where_the_best_form_is_a_loop(text, how, kept):
    """By what it writes, how, and how often; the record says why, and nothing is refused."""
    lowered = hl.lower(text, target="xla", **how)
    [record] = lowered.records
    assert (lowered.scatters_left, lowered.refused) == (int(kept), ())
    assert (record.why.code is Code.KEPT_AS_FASTER) is kept
    assert hl.verify(text, lowered).ok
    if kept:
        assert phrase(record.why).startswith("kept: native is faster here than a loop (")
        assert hl.classify(text, target="xla")[0].why.code is Code.KEPT_AS_FASTER


def test_a_scatter_that_is_kept_as_faster_is_told(tmp_path, capsys):
    """In the command's report; it is no failure, and --lower-all lowers it."""
    source, output = tmp_path / "a.mlir", tmp_path / "b.mlir"
    source.write_text(counted())
    for more, told in (([], "kept"), (["--lower-all"], "while")):
        assert cli.main(["convert", str(source), "-o", str(output), "--target", "xla", "--no-verify", *more]) == 0
        assert told in capsys.readouterr().out
        assert ("stablehlo.scatter" in output.read_text()) is not bool(more)
