"""`hl.Options`: one value for all that is said of how a module is lowered."""

import dataclasses
import inspect
import pickle

import numpy as np
import pytest
from test_wrong_arguments import TEXT
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.cli.checks import options_from
from hlo_lower.cli.parser import make_parser
from hlo_lower.lowering.options import NAMES, options_of
from hlo_lower.report.notebook import Records

GIVEN = {"target": "iree", "oob": "spec", "only": "#1", "prefer": ["while"], "keep_unsupported": True}


def test_options_are_what_keywords_say():
    """The same module comes out, with the same records, whether a value or its keywords are given."""
    by_value, by_keywords = hl.lower(TEXT, options=hl.Options(**GIVEN)), hl.lower(TEXT, **GIVEN)
    assert by_value.text == by_keywords.text
    assert by_value.records == by_keywords.records
    assert by_value.options == by_keywords.options == hl.Options(**GIVEN)
    assert by_value.records[0].rule == "while"
    records = hl.classify(TEXT, options=hl.Options(**GIVEN))
    assert isinstance(records, Records)
    assert records == by_value.records == tuple(records) == pickle.loads(pickle.dumps(records))


def test_options_are_taken_everywhere():
    """classify_modules, verify, jit, rules and sizes follow the same value."""
    spec = hl.Options(oob="spec", target="litert")
    put = hl.jit(lambda x, i, u: x.at[i].set(u), options=spec)
    args = (np.zeros((8, 4), np.float32), np.int32(3), np.ones(4, np.float32))
    assert put.lowered(*args).records[0].oob == "spec"
    assert hl.rules(options=spec) == hl.rules("litert")
    assert hl.costs(options=spec) == hl.costs("litert")
    [report] = hl.classify_modules(["no_such.mlir"], options=spec)
    assert (report.target, report.oob) == ("litert", "spec")
    assert hl.verify(TEXT, hl.lower(TEXT, oob="spec").text, options=hl.Options(oob="spec"), level="regions").ok
    exported = hl.export(lambda x, i: x.at[i].set(0.0), shapes=["n, 4", "i32[]"])
    options = hl.Options(bind={"n": 8})
    assert hl.classify(exported, options=options) == hl.lower(exported, options=options).records
    assert hl.classify(exported, options=options)[0].operand_shape == (8, 4)
    assert hl.classify(exported)[0].operand_shape == (None, 4)


def test_verify_starts_from_what_was_lowered():
    """One keyword changes one thing of the options that a module was lowered with; None changes nothing."""
    overhanging = module(
        "%o: 8x4xf32, %i: 1xi32, %u: 2x4xf32", "%r = scatter(%o, %i, %u) <window=[0, 1], to=[0]> {assign}"
    )
    lowered = hl.lower(overhanging, oob="spec")
    assert hl.verify(overhanging, lowered, oob=None, target=None, level="regions").ok
    assert not hl.verify(overhanging, lowered, oob="xla", level="regions").ok


def test_what_is_not_said_is_the_targets():
    """Float mode, legalize and demote_i64 are the target's unless they are given."""
    npu = hl.Target("npu", float_mode="reassociate", legalize=True, demote_i64=True)
    options = hl.Options(npu)
    assert (options.float_mode, options.legalize, options.demote_i64) == ("reassociate", True, True)
    options = hl.Options(npu, float_mode="exact", legalize=False)
    assert (options.float_mode, options.legalize, options.demote_i64) == ("exact", False, True)


def test_options_are_a_value():
    """Equal, hashed, replaced and pickled like one; NumPy's numbers are sizes, and a text is one pattern or name."""
    for name in ("only", "skip", "prefer"):
        assert getattr(hl.Options(**{name: "foo.py:3"}), name) == ("foo.py:3",)
        assert getattr(hl.Options(**{name: ["a", "b"]}), name) == ("a", "b")
    options = hl.Options(target="iree", bind={"b": np.int64(4)})
    assert options.bind == (("b", 4),)
    assert options == hl.Options("iree", bind=(("b", 4),)) == pickle.loads(pickle.dumps(options))
    assert len({options, hl.Options("iree", bind={"b": 4})}) == 1
    assert dataclasses.replace(options, oob="spec") == hl.Options("iree", oob="spec", bind={"b": 4})
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.oob = "spec"
    assert options_of(None, {}) == hl.Options()
    assert options_of(None, {"oob": "spec"}, hl.Options("iree")) == hl.Options("iree", oob="spec")


def test_a_command_line_gives_options():
    """Each flag of `convert` that says how is a keyword of Options, and becomes one."""
    flags = "--target iree --oob spec --float-mode reassociate --trust-flags --keep-unsupported --only a --only b"
    more = "--skip #3 --prefer while --legalize --no-demote-i64 --linalg-ops generic --bind b=4 --max-unroll 5"
    more += " --linalg-loops for --demote-f64 --widen bf16=f32 --checked --no-loop-ranges"
    args = make_parser().parsed(["convert", "in.mlir", "-o", "out.mlir", *flags.split(), *more.split()])
    expected = {"oob": "spec", "float_mode": "reassociate", "trust_flags": True, "keep_unsupported": True}
    expected |= {"only": ("a", "b"), "skip": "#3", "prefer": "while", "legalize": True, "demote_i64": False}
    expected |= {"linalg_ops": "generic", "bind": {"b": 4}, "demote_f64": True, "widen": "bf16=f32", "max_unroll": 5}
    expected |= {"checked": True, "linalg_loops": "for", "loop_ranges": False}
    assert set(NAMES) == {"target", *expected} <= set(vars(args))
    assert options_from(args) == hl.Options("iree", **expected)


def test_the_functions_take_few_arguments():
    """No public function has more than six parameters, but for export and tile, whose are their own."""
    functions = {name: getattr(hl, name) for name in hl.__all__ if inspect.isfunction(getattr(hl, name))}
    assert {"lower", "verify", "jit", "classify_modules"} <= set(functions)
    assert [n for n, fn in functions.items() if len(inspect.signature(fn).parameters) > 6] == ["export", "tile"]


REPRS = {
    "Options('iree', only='a', trust_flags=True)": "Options(target='iree', trust_flags=True, only=('a',))",
    "Target('npu')": "<Target npu: takes every op>",
    "Target('npu', ops={'stablehlo.add'}, dtypes={'f32', 'i32'})": "<Target npu: takes 1 op, on 2 element types>",
    "Target('npu', refused=dict.fromkeys('abcde', ''))": "<Target npu: refuses a, b, c and 2 more>",
    "Target('npu', refused_dtypes={'f64': ''}, dialect='linalg')": "<Target npu: not on f64, in linalg>",
    "read(TEXT, 'a.mlir')": "<Graph a.mlir: 5 ops, 1 scatter, 1 function>",
    "classify(TEXT)[0]": "<ScatterRecord 1 at <module>:2: Tile assign on 8x4xf32 -> guarded_dynamic_update_slice>",
    "lower(TEXT)": "<Lowered <module> for stablehlo: 1 scatter, 0 left; rules guarded_dynamic_update_slice>",
    "lower(TEXT, skip='*')": "<Lowered <module> for stablehlo: 1 scatter, 1 left>",
    "verify(TEXT, WRONG, level='regions')": "<Verdict differs: 1 region differs>",
    "verify(TEXT, lower(TEXT)).regions[0]": "<RegionVerdict scatter 1 in main: equal: derived>",
    "verify(TEXT, lower(TEXT)).module": "<ModuleVerdict equal: 3 runs, bit for bit, and 10 beyond the edges>",
    "ModuleVerdict('not run', reason='it is too large')": "<ModuleVerdict not run: it is too large>",
}
WRONG = hl.lower(TEXT).text.replace(" EQ,", " NE,")


@pytest.mark.parametrize(("expression", "expected"), REPRS.items(), ids=REPRS)
def test_a_repr_is_a_line(expression, expected):
    """One line with what a person wants to know."""
    shown = repr(eval(expression, {**vars(hl), **{name: getattr(hl, name) for name in hl.__all__}, **globals()}))
    assert shown == expected


HOSTILE = "<script>alert(1)</script>.mlir"


def pages(name):
    """What a notebook shows of each value that has a page, of a module of this name."""
    graph = hl.read(TEXT, name)
    lowered = hl.lower(graph)
    wrong = hl.verify(graph, lowered.text.replace(" EQ,", " NE,"), level="regions")
    values = {"graph": graph, "lowered": lowered, "records": hl.classify(graph), "verdict": wrong}
    return {kind: value._repr_html_() for kind, value in values.items()}


def test_a_notebook_shows_a_table():
    """The records are the cells of the report; graph and verdict are told in a few lines."""
    shown = pages("a.mlir")
    for kind in ("lowered", "records"):
        assert '<td data-title="rule">guarded_dynamic_update_slice</td>' in shown[kind]
        assert '<svg class="picture"' in shown[kind]
        assert '<td data-title="writes">tile [i, :] of 8x4</td>' in shown[kind]
    assert shown["graph"] == "<p><b>Graph</b> a.mlir: 5 ops, 1 scatter, 1 function</p>\n<p>@main</p>"
    assert shown["verdict"].startswith("<p><b>differs</b>: 1 region differs</p>\n<pre>scatter 1 at ")
    assert hl.classify("func.func public @main() { return }")._repr_html_() == "<p>0 scatters</p>"


def test_a_notebook_runs_nothing_of_a_module():
    """Names that a module chooses are escaped: no tag of theirs stands in a page."""
    for page in pages(HOSTILE).values():
        assert "<script" not in page
    hostile = TEXT.replace("@main", '@"<script>alert(1)</script>"')
    for page in (hl.read(hostile)._repr_html_(), hl.verify(hostile, WRONG.replace("@main", '@"<b>"'))._repr_html_()):
        assert "&lt;" in page
        assert not {"<script", '<b>"'} & {page[i : i + 7] for i in range(len(page))}
