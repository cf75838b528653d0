"""Wrong types and values at the public surface: an InputError with the choices and the next step, and nothing else."""

import re
from pathlib import Path

import numpy as np
import pytest
from decode_module import ROW as TEXT

import hlo_lower as hl
from hlo_lower.verify import verify as verify_texts

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
READ = "it has been read: hl.lower(graph), hl.classify(graph), hl.bind(graph, sizes) take it as it is"
THIS_TAKES = "hl.classify takes a module, whatever its form; this takes files and folders"
TO_JIT = "hl.jit takes the Python function: hl.jit(f), or @hl.jit above it"
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
        "hl.verify takes graphs, paths and whatever else hl.read takes",
    ),
    (hl.classify_modules, 5, "paths: 5 is not a path", THIS_TAKES),
    (lambda path: hl.classify_modules([path]), 5, "paths: 5 is not a path", THIS_TAKES),
    (hl.jit, 5, "hl.jit: 5 is not a function", TO_JIT),
    (hl.jit(), 5, "hl.jit: 5 is not a function", TO_JIT),
    (hl.export, "step", "hl.export: 'step' is not a function", TO_EXPORT),
]


@pytest.mark.parametrize(("take", "given", "first", "following"), MISPLACED)
def test_what_is_wanted_elsewhere(take, given, first, following):
    """What was read or lowered, and what is no path and no function, is told who takes it."""
    facts = f"it is of type {type(given).__name__}" + (f"; {MODULE}" if "not a module" in first else "")
    assert told(take, given) == message(first, following, facts)


def test_paths_and_names_of_modules():
    """A file that is not there is named, and so is a line that is no path, a text in place of one, and a name."""
    for path in ("no_such.mlir", Path("no_such.mlir")):
        for take in (hl.read, hl.lower, hl.classify):
            assert told(take, path) == message("no_such.mlir: no such file", "check the path")
    first, *rest = told(hl.read, "module " * 1000).splitlines()
    assert first.startswith("'module module module")
    assert "cannot be read: File name too long" in first
    assert rest == ["  next:    is this a module's text? A str without a line break is a path"]
    assert told(hl.read, Path("a\0.mlir")).splitlines()[-1] == "  next:    check the path"
    assert told(hl.read, TEXT, name=5) == message("name: 5 is no text", 'write name="decode.mlir"')
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
    """The value is no list of texts."""
    return no("is neither a text nor a list of texts", f"write NAME=[{example!r}]")


def no_number(least):
    """The value is no whole number from some."""
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
TARGET = "targets: stablehlo, xla, iree, litert, coreml, linalg; or the path of a file, or an hl.Target"
SIZES = 'write {"b": 4, "s": 16}'
PROGRESS = "give a function of a stage, how much is done and how much there is: print"
REASONS = 'write refused={"stablehlo.pad": "no kernel"}'
ELEMENTS = 'write op_dtypes={"stablehlo.add": {"f32"}}'
KEEP = 'write keep=(NativeScatter(combiners={"add"}),)'
FORALL = "linalg_loops: stablehlo does not read linalg, in which loops are scf.forall"
JIT_SAYS = "hl.jit: jax.jit refuses it: TypeError: 'str' object cannot be interpreted as an integer"
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
        ("target", 5, "target: 5 is no target", 'write target="stablehlo", or leave it out', TARGET),
        ("target", "no.toml", "no.toml: no such target file", "check the path"),
        *(("only", value, *no_texts("llama.py:88")) for value in (5, [5])),
        ("skip", b"#3", *no_texts("#3")),
        ("prefer", {"while": 1}, *no_texts("last_writer")),
        *(("bind", value, "bind: VALUE is no mapping of names to sizes", SIZES) for value in ("b=4", [1])),
        ("bind", {5: 4}, "bind: 5 is no name", SIZES),
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
        ("static", 5, "static: 5 is no mapping from names to values", 'write static={"config": config}'),
        ("name", 5, "name: 5 is no text", 'write name="decode"'),
        ("platforms", 5, *no_texts("cpu")),
        ("shapes", 5, "step: shapes is 5", 'write a list of shapes: shapes=["b, 64", "b"]'),
    ],
    ("Target",): [
        ("name", 5, "name: 5 is no name of a target", 'write Target("npu")'),
        ("dtypes", [5], "dtypes is a collection of names, not [5]", "write dtypes={'stablehlo.add'}"),
        ("refused", ["pad"], "refused maps names to reasons, not ['pad']", REASONS),
        ("op_dtypes", 5, "op_dtypes maps names to collections of element types, not 5", ELEMENTS),
        ("costs", 5, "costs is a table of costs, not 5", 'write costs=COSTS.with_entry("few_windows", 64)'),
        ("keep", [5], "keep is made of NativeScatters, not [5]", KEEP),
        ("legalize", "no", *FLAG),
    ],
    ("portable",): [("version", "zzz", "version: 'zzz' is no version of StableHLO", VERSION)],
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
        ({"bind": {"b": "x"}}, "<module>: b = 'x' is no size"),
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
