"""What is said of how a module is lowered: options as one value, and wrong types and values, which are InputErrors."""

import dataclasses
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from decode_module import ROW as TEXT
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.cli.checks import options_from
from hlo_lower.cli.parser import make_parser
from hlo_lower.lowering.options import NAMES, options_of
from hlo_lower.report.notebook import Records
from hlo_lower.verify import verify as verify_texts

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
    more += " --linalg-groups inlined --linalg-loops for --demote-f64 --widen bf16=f32 --checked --no-loop-ranges"
    more += " --assume-in-bounds --lower-all --one-device"
    args = make_parser().parse_line(["convert", "in.mlir", "-o", "out.mlir", *flags.split(), *more.split()])
    expected = {"oob": "spec", "float_mode": "reassociate", "trust_flags": True, "keep_unsupported": True}
    expected |= {"only": ("a", "b"), "skip": "#3", "prefer": "while", "legalize": True, "demote_i64": False}
    expected |= {"linalg_ops": "generic", "bind": {"b": 4}, "demote_f64": True, "widen": "bf16=f32", "max_unroll": 5}
    expected |= {"checked": True, "linalg_loops": "for", "linalg_groups": "inlined", "loop_ranges": False}
    expected |= {"assume_in_bounds": True, "lower_all": True, "one_device": True}
    assert set(NAMES) == {"target", *expected} <= set(vars(args))
    assert options_from(args) == hl.Options("iree", **expected)


def test_the_functions_take_few_arguments():
    """No public function has more than six parameters, but for build, export, install and tile, whose are their own."""
    functions = {name: getattr(hl, name) for name in hl.__all__ if inspect.isfunction(getattr(hl, name))}
    assert {"lower", "verify", "jit", "classify_modules"} <= set(functions)
    assert [n for n, fn in functions.items() if len(inspect.signature(fn).parameters) > 6] == [
        "build",
        "export",
        "install",
        "tile",
    ]


REPRS = {
    "Options('iree', only='a', trust_flags=True)": "Options(target='iree', trust_flags=True, only=('a',))",
    "Target('npu')": "<Target npu: accepts every op>",
    "Target('npu', ops={'stablehlo.add'}, dtypes={'f32', 'i32'})": "<Target npu: accepts 1 op, on 2 element types>",
    "Target('npu', refused=dict.fromkeys('abcde', ''))": "<Target npu: rejects a, b, c and 2 more>",
    "Target('npu', refused_dtypes={'f64': ''}, dialect='linalg')": "<Target npu: not on f64, in linalg>",
    "read(TEXT, 'a.mlir')": "<Graph a.mlir: 5 ops, 1 scatter, 1 function>",
    "classify(TEXT)[0]": "<ScatterRecord 1 at <module>:2: Tile assign on 8x4xf32 -> guarded_dynamic_update_slice>",
    "lower(TEXT)": "<Lowered <module> for stablehlo: 1 scatter, 0 left; rules guarded_dynamic_update_slice>",
    "lower(TEXT, skip='*')": "<Lowered <module> for stablehlo: 1 scatter, 1 left>",
    "verify(TEXT, DIFFERENT, level='regions')": "<Verdict differs: 1 region differs>",
    "verify(TEXT, lower(TEXT)).regions[0]": "<RegionVerdict scatter 1 in main: equal: derived>",
    "verify(TEXT, lower(TEXT)).module": "<ModuleVerdict equal: 3 runs, bit for bit, and 10 beyond the edges>",
    "ModuleVerdict('not run', reason='it is too large')": "<ModuleVerdict not run: it is too large>",
}
DIFFERENT = hl.lower(TEXT).text.replace(" EQ,", " NE,")


@pytest.mark.parametrize(("expression", "expected"), REPRS.items(), ids=REPRS)
def test_a_repr_is_a_line(expression, expected):
    """One line with what a person wants to know."""
    shown = repr(eval(expression, {**vars(hl), **{name: getattr(hl, name) for name in hl.__all__}, **globals()}))
    assert shown == expected


def pages(name):
    """What a notebook shows of each value that has a page, of a module of this name."""
    graph = hl.read(TEXT, name)
    lowered = hl.lower(graph)
    wrong = hl.verify(graph, lowered.text.replace(" EQ,", " NE,"), level="regions")
    values = {"graph": graph, "lowered": lowered, "records": hl.classify(graph), "verdict": wrong}
    return {kind: value._repr_html_() for kind, value in values.items()}


def test_a_notebook_shows_a_table():
    """The records are the cells of the report; names that a module chooses are escaped."""
    shown = pages("a.mlir")
    for kind in ("lowered", "records"):
        assert '<td data-title="rule">guarded_dynamic_update_slice</td>' in shown[kind]
        assert '<svg class="picture"' in shown[kind]
        assert '<td data-title="writes">tile [i, :] of 8x4</td>' in shown[kind]
    assert shown["graph"] == "<p><b>Graph</b> a.mlir: 5 ops, 1 scatter, 1 function</p>\n<p>@main</p>"
    assert shown["verdict"].startswith("<p><b>differs</b>: 1 region differs</p>\n<pre>scatter 1 at ")
    assert hl.classify("func.func public @main() { return }")._repr_html_() == "<p>0 scatters</p>"
    tag = "<script>alert(1)</script>"
    hostile, other = TEXT.replace("@main", f'@"{tag}"'), DIFFERENT.replace("@main", f'@"{tag}2"')
    more = hl.read(hostile)._repr_html_(), hl.verify(hostile, other)._repr_html_()
    assert [page for page in (*pages(f"{tag}.mlir").values(), *more) if "<script" in page] == []
    assert all("&lt;" in page for page in more)


GRAPH, LOWERED = hl.read(TEXT), hl.lower(TEXT)
ARGS = (np.zeros((8, 4), np.float32), np.int32(0), np.ones(4, np.float32))


class Function:
    """A function without an address in its repr."""

    __name__ = "step"

    def __call__(self, cache, pos, row):
        return cache.at[pos].set(row)

    def __repr__(self):
        return "<thing>"


STEP = Function()
MODULE = "a module is a path, text, bytes, jax.export.Exported, jax.stages.Lowered or hl.Graph"


def told(call, *args, **keywords):
    """The message of the InputError that a call raises."""
    with pytest.raises(hl.InputError) as caught:
        call(*args, **keywords)
    return str(caught.value)


def message(first, following="", facts="", nearest=""):
    """The lines of a message."""
    rest = {"facts:   ": facts, "nearest: ": nearest, "next:    ": following}
    return "\n".join([first, *(f"  {head}{text}" for head, text in rest.items() if text)])


TAKERS = {
    "read": hl.read,
    "lower": hl.lower,
    "classify": hl.classify,
    "bind": lambda source: hl.bind(source, {"b": 1}),
    "verify, first": lambda source: hl.verify(source, TEXT),
    "verify, second": lambda source: hl.verify(TEXT, source),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize("source", [STEP, None, ["a.mlir"]], ids=str)
def test_what_is_no_module(take, source):
    """Whatever takes a module says of what is none which forms there are; of a function, that hl.export makes one."""
    following = "hl.export(step, *args) makes a module of a function" if source is STEP else "give its path or its text"
    facts = f"it is of type {type(source).__name__}; {MODULE}"
    assert told(take, source) == message(f"{source!r} is not a module", following, facts)


A_LOWERED = "<Lowered <module> for stablehlo: 1 scatter, 0 left; rules gu..."
A_GRAPH = "<Graph <module>: 5 ops, 1 scatter, 1 function>"
OF_LOWERED = "its .graph is the module, and its .text is the module as text"
READ = "it is read already: hl.lower(graph), hl.classify(graph), hl.bind(graph, sizes) accept it"
THIS_TAKES = "hl.classify accepts a module in any form; this accepts files and folders"
TO_JIT = "give hl.jit the Python function: hl.jit(f), or @hl.jit above it"
TO_EXPORT = "give the function, then example arguments: hl.export(f, *args)"
MISPLACED = [
    (
        hl.lower,
        LOWERED,
        f"{A_LOWERED} is not a module",
        OF_LOWERED,
    ),
    (hl.read, GRAPH, f"{A_GRAPH} is not a module", READ),
    (
        lambda graph: verify_texts(TEXT, graph),
        *(GRAPH, f"after: {A_GRAPH} is neither text nor bytes"),
        "hl.verify accepts graphs, paths and everything else that hl.read accepts",
    ),
    (hl.classify_modules, 5, "paths: 5 is not a path", THIS_TAKES),
    (lambda path: hl.classify_modules([path]), 5, "paths: 5 is not a path", THIS_TAKES),
    (hl.jit, 5, "hl.jit: 5 is not a function", TO_JIT),
    (hl.jit(), 5, "hl.jit: 5 is not a function", TO_JIT),
    (hl.export, "step", "hl.export: 'step' is not a function", TO_EXPORT),
]


@pytest.mark.parametrize(("take", "given", "first", "following"), MISPLACED)
def test_what_is_wanted_elsewhere(take, given, first, following):
    """What was read or lowered, and what is not a path and no function, is told who takes it."""
    facts = f"it is of type {type(given).__name__}" + (f"; {MODULE}" if "not a module" in first else "")
    assert told(take, given) == message(first, following, facts)


def test_paths_and_names_of_modules():
    """A file that is not there is named, and so is a line that is not a path, a text in place of one, and a name."""
    for path in ("no_such.mlir", Path("no_such.mlir")):
        for take in (hl.read, hl.lower, hl.classify):
            assert told(take, path) == message("no_such.mlir: no such file", "check the path")
    first, *rest = told(hl.read, "module " * 1000).splitlines()
    assert first.startswith("'module module module")
    assert "cannot be read: File name too long" in first
    assert rest == ["  next:    is this a module's text? A str without a line break is a path"]
    assert told(hl.read, Path("a\0.mlir")).splitlines()[-1] == "  next:    check the path"
    assert told(hl.read, TEXT, name=5) == message("name: 5 is not text", 'write name="decode.mlir"')
    expected = message(f"paths: {repr(TEXT)[:60]}... is not a path", THIS_TAKES, "it is the text of a module")
    assert told(hl.classify_modules, TEXT) == expected


CALLS = {
    "Options": hl.Options,
    "lower": lambda **given: hl.lower(TEXT, **given),
    "classify": lambda **given: hl.classify(TEXT, **given),
    "classify_modules": lambda **given: hl.classify_modules("no_such.mlir", **given),
    "verify": lambda **given: hl.verify(TEXT, LOWERED, **given),
    "verify texts": lambda **given: verify_texts(TEXT, LOWERED.text, **given),
    "jit": lambda **given: hl.jit(STEP, **given),
    "rules": hl.rules,
    "costs": hl.costs,
    "export": lambda **given: hl.export(STEP, *ARGS, **given),
    "Target": lambda **given: hl.Target(**{"name": "npu", **given}),
    "portable": lambda **given: LOWERED.portable(**given),
}
BY_KEYWORD = ("Options", "lower", "classify", "classify_modules", "verify", "jit")


def none_of(choices, default):
    """The parts of a message, in which NAME is the argument, VALUE its value, and TYPE the value's type."""
    return "NAME: VALUE is not one of its values", f"write NAME={default}, or leave it out", f"NAME is {choices}"


def no(what, following):
    """The value is not what is wanted; its type is a fact."""
    return f"NAME: VALUE {what}", following, "it is of type TYPE"


def no_texts(example):
    """The value is not a list of texts."""
    return no("is neither a text nor a list of texts", f"write NAME=[{example!r}]")


def no_number(least):
    """The value is not a whole number from some."""
    return no(f"is not a whole number from {least}", "write NAME=1, or leave it out")


FLAG, FLAG_OR_NONE = none_of("False or True", "False"), none_of("None, False or True", "None")
OOB, LEVEL = none_of("'xla' or 'spec'", "'xla'"), none_of("'auto', 'regions' or 'full'", "'auto'")
NO_INPUTS = no(
    "is neither a list of arrays nor a mapping from names to arrays",
    'write inputs=[x, y], one for each argument, or inputs={"x": x, "y": y}',
)
NO_REGISTRY = no(
    "is not a registry",
    "registry = hlo_lower.lowering.kinds.default_registry(); registry.extend(rules) adds an hl.RuleList",
)
TARGET = "targets: stablehlo, xla, iree, litert, coreml, mps, tt, metal, linalg; or the path of a file, or an hl.Target"
SIZES = 'write {"b": 4, "s": 16}'
PROGRESS = "give a function of a stage, the amount done and the total: print"
REASONS = 'write refused={"stablehlo.pad": "no kernel"}'
ELEMENTS = 'write op_dtypes={"stablehlo.add": {"f32"}}'
KEEP = 'write keep=(NativeScatter(combiners={"add"}),)'
FORALL = "linalg_loops: stablehlo does not read linalg, in which loops are scf.forall"
JIT_SAYS = "hl.jit: jax.jit rejects it: TypeError: 'str' object cannot be interpreted as an integer"
STATICS = "positions are whole numbers, names are texts: static_argnums=(0,), static_argnames=('n',)"
AN_INT = "it is of type int"
VERSION = 'write version="1.0.0", or leave it out'

# The argument's name, a wrong value, and the parts of the message.
WRONG = {
    BY_KEYWORD: [("oob", "zzz", *OOB), ("linalg_loops", "forall", FORALL, "write --target linalg, or leave it out")],
    ("Options",): [
        ("oob", "spek", OOB[0], "write oob='spec', or leave it out", OOB[2], "oob='spec'"),
        ("float_mode", "fast", *none_of("None, 'exact', 'reassociate' or ''", "None")),
        ("linalg_ops", "zzz", *none_of("'named' or 'generic'", "'named'")),
        *((name, "no", *FLAG) for name in ("trust_flags", "keep_unsupported")),
        *((name, 0, *FLAG_OR_NONE) for name in ("legalize", "demote_i64")),
        ("target", 5, "target: 5 is not a target", 'write target="stablehlo", or leave it out', TARGET),
        ("target", "no.toml", "no.toml: no such target file", "check the path"),
        *(("only", value, *no_texts("llama.py:88")) for value in (5, [5])),
        ("skip", b"#3", *no_texts("#3")),
        ("prefer", {"while": 1}, *no_texts("last_writer")),
        *(("bind", value, "bind: VALUE is not a mapping of names to sizes", SIZES) for value in ("b=4", [1])),
        ("bind", {5: 4}, "bind: 5 is not a name", SIZES),
    ],
    ("verify", "verify texts"): [
        ("level", "module", *LEVEL),
        *((name, value, *no_number(0)) for name, value in (("seed", "x"), ("runs", -1), ("runs", True))),
        *(("jobs", value, *no_number(1)) for value in (0, np.zeros(2, int))),
        *(("inputs", value, *NO_INPUTS) for value in ("x.npz", {1: 2}, np.zeros(2))),
        ("progress", 5, *no("is not a function", PROGRESS)),
        ("accept_runs", "no", *FLAG),
    ],
    ("verify",): [("prove", "x", *FLAG), ("registry", 5, *NO_REGISTRY)],
    ("lower", "classify", "rules", "jit"): [("registry", STEP, *NO_REGISTRY)],
    ("lower", "jit"): [("verify", True, *LEVEL)],
    ("jit",): [("static_argnums", "x", JIT_SAYS, STATICS, "static_argnums='x'")],
    ("classify_modules",): [
        ("jobs", 0, *no_number(1)),
        ("timeout", -1, *no("is not a number of seconds above 0", "write timeout=60, or leave it out")),
        ("executor", 5, *no("has no submit", "give a concurrent.futures executor, or jobs")),
    ],
    ("export",): [
        ("donate", "x", *no_number(0)),
        ("donate", [-1], "donate: -1 is not a whole number from 0", "write donate=1, or leave it out", AN_INT),
        ("static", 5, "static: 5 is not a mapping from names to values", 'write static={"config": config}'),
        ("name", 5, "name: 5 is not text", 'write name="decode"'),
        ("platforms", 5, *no_texts("cpu")),
        ("shapes", 5, "step: shapes is 5", 'write a list of shapes: shapes=["b, 64", "b"]'),
    ],
    ("Target",): [
        ("name", 5, "name: 5 is not a name of a target", 'write Target("npu")'),
        ("dtypes", [5], "dtypes is a collection of names, not [5]", "write dtypes={'stablehlo.add'}"),
        ("refused", ["pad"], "refused maps names to reasons, not ['pad']", REASONS),
        ("op_dtypes", 5, "op_dtypes maps names to collections of element types, not 5", ELEMENTS),
        ("costs", 5, "costs is a table of costs, not 5", 'write costs=COSTS.with_entry("few_windows", 64)'),
        ("keep", [5], "keep holds NativeScatters, not [5]", KEEP),
        ("legalize", "no", *FLAG),
    ],
    ("portable",): [("version", "zzz", "version: 'zzz' is not a version of StableHLO", VERSION)],
}


@pytest.mark.parametrize(
    ("call", "name", "value", "expected"),
    [
        pytest.param(CALLS[call], name, value, expected, id=f"{call}({name}={value!r})")
        for calls, rows in WRONG.items()
        for call in calls
        for name, value, *expected in rows
    ],
)
def test_a_wrong_argument(call, name, value, expected):
    """It is refused before anything is done, and wherever an option is given, in the same words."""
    shown = {"NAME": name, "VALUE": repr(value), "TYPE": type(value).__name__}
    parts = (re.sub("NAME|VALUE|TYPE", lambda found: shown[found[0]], part) for part in expected)
    assert told(call, **{name: value}) == message(*parts)


@pytest.mark.parametrize("call", ["lower", "classify", "classify_modules", "verify", "jit", "rules", "costs"])
def test_options_and_keywords_at_once(call):
    """Whoever takes options refuses keywords beside them, and options that are none."""
    expected = message(
        "options: options and keywords are given at once: target",
        "dataclasses.replace(options, target=...) makes other options",
        "each of them could contradict the options",
    )
    assert told(CALLS[call], options=hl.Options(), target="iree") == expected
    following = 'write options=hl.Options(target="iree")'
    assert told(CALLS[call], options=5) == message("options: 5 is not an hl.Options", following, "it is of type int")


@pytest.mark.parametrize("call", BY_KEYWORD)
def test_an_option_that_does_not_exist(call):
    """A misspelt keyword is told what there is, and what is near."""
    first, facts, *rest = told(CALLS[call], flaot_mode="exact").splitlines()
    assert first.endswith(": there is no option 'flaot_mode'")
    assert facts.startswith("  facts:   options are ")
    assert "oob, float_mode, trust_flags" in facts
    assert rest == ["  nearest: float_mode", "  next:    write float_mode=..."]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"only": "foo.py:3"}, "<module>: no scatter matches 'foo.py:3'"),
        ({"prefer": "nope"}, "--prefer: no rule named 'nope'"),
        ({"bind": {"b": "x"}}, "<module>: b = 'x' is not a size"),
    ],
)
def test_an_option_that_does_not_fit_the_module(given, expected):
    """A pattern, a rule or a size that is well written and fits nothing is named whole, not by its letters."""
    first, *rest = told(hl.lower, TEXT, **given).splitlines()
    assert first == expected
    assert rest


def test_inputs_that_do_not_fit():
    """Too few, and of another type, are told what the module takes; one platform is not read letter by letter."""
    assert told(hl.verify, TEXT, LOWERED, inputs=[1]) == "1 inputs for 3 arguments"
    expected = message("input 0 does not fit", facts="expected float32[8, 4], got <U1[]")
    assert told(hl.verify, TEXT, LOWERED, inputs=["a", "b", "c"]) == expected
    assert hl.export(lambda x: x, np.float32(1), platforms="cpu").platforms == ("cpu",)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (["convert", "a.mlir", "-o", "b.mlir", "--time-limit", "7"], "patience"),
        (["verify", "a.mlir", "b.mlir", "--time-limit", "7"], "patience"),
        (["conformance", "--on", "iree", "--limit", "7"], "timeout"),
    ],
)
def test_former_names_of_options_are_accepted(line, name):
    """They give what the new ones give, of which the help speaks alone."""
    former, new = (vars(make_parser().parse_line(one)) for one in (line, [*line[:-2], f"--{name}", "7"]))
    assert former[name] == 7
    assert former.keys() == new.keys()


def test_a_former_keyword_says_its_new_name():
    """`time_limit` is `patience`."""
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    with pytest.warns(DeprecationWarning, match="time_limit is patience now"):
        assert hl.verify(text, text, time_limit=5, level="regions").ok
