"""Wrong types and values at the public surface: an InputError with the choices and the next step, and nothing else."""

from pathlib import Path

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify import verify as verify_texts

TEXT = """\
func.func public @main(%cache: tensor<8x4xf32>, %pos: tensor<1xi32>, %row: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = "stablehlo.scatter"(%cache, %pos, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
GRAPH = hl.read(TEXT)
ARGS = (np.zeros((8, 4), np.float32), np.int32(0), np.ones(4, np.float32))


class Named:
    """What a message shows as `<thing>`."""

    def __repr__(self):
        return "<thing>"


class Function(Named):
    """A function without an address in its repr."""

    __name__ = "step"

    def __call__(self, cache, pos, row):
        return cache.at[pos].set(row)


STEP = Function()
FORMS = "path, text, bytes, jax.export.Exported, jax.stages.Lowered or hl.Graph"


def told(call, *args, **keywords):
    """The message of the InputError that a call raises."""
    with pytest.raises(hl.InputError) as caught:
        call(*args, **keywords)
    return str(caught.value)


def message(first, facts="", nearest="", following=""):
    """The lines of a message."""
    lines = [first]
    lines += [f"  facts:   {facts}"] * bool(facts) + [f"  nearest: {nearest}"] * bool(nearest)
    return "\n".join(lines + [f"  next:    {following}"] * bool(following))


# --- modules -----------------------------------------------------------------------------------------------------

TAKERS = {
    "read": hl.read,
    "lower": hl.lower,
    "classify": hl.classify,
    "bind": lambda source: hl.bind(source, {"b": 1}),
    "verify, first": lambda source: hl.verify(source, TEXT),
    "verify, second": lambda source: hl.verify(TEXT, source),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(
    ("source", "shown", "kind", "following"),
    [
        (STEP, "<thing>", "Function", "hl.export(step, *args) makes a module of a function"),
        (5, "5", "int", "give its path or its text"),
        (None, "None", "NoneType", "give its path or its text"),
        (["a.mlir"], "['a.mlir']", "list", "give its path or its text"),
    ],
    ids=["function", "number", "None", "list"],
)
def test_what_is_no_module(take, source, shown, kind, following):
    """Whatever takes a module says of what is none which forms there are; of a function, that hl.export makes one."""
    facts = f"it is of type {kind}; a module is a {FORMS}"
    assert told(take, source) == message(f"{shown} is not a module", facts, following=following)


def test_what_was_lowered_is_not_read_again():
    """A `Lowered` where a module is wanted is told to give its graph or its text; only verify takes it, second."""
    lowered = hl.lower(TEXT)
    first, facts, following = told(hl.lower, lowered).splitlines()
    assert first == "<Lowered <module> for stablehlo: 1 scatter, 0 left; rules gu... is not a module"
    assert facts == f"  facts:   it is of type Lowered; a module is a {FORMS}"
    assert following == "  next:    its .graph is the module, and its .text is the module as text"


def test_a_graph_where_text_is_expected():
    """`read` and the judge of two texts refuse a graph, and say who takes one."""
    shown = "<Graph <module>: 5 ops, 1 scatter, 1 function>"
    following = "it has been read: hl.lower(graph), hl.classify(graph), hl.bind(graph, sizes) take it as it is"
    facts = f"it is of type Graph; a module is a {FORMS}"
    assert told(hl.read, GRAPH) == message(f"{shown} is not a module", facts, following=following)
    following = "hl.verify takes graphs, paths and whatever else hl.read takes"
    expected = message(f"after: {shown} is neither text nor bytes", "it is of type Graph", following=following)
    assert told(verify_texts, TEXT, GRAPH) == expected


@pytest.mark.parametrize("path", ["no_such.mlir", Path("no_such.mlir")], ids=["text", "path"])
def test_a_path_that_does_not_exist(path):
    """A module's file that is not there is named."""
    for take in (hl.read, hl.lower, hl.classify):
        assert told(take, path) == message("no_such.mlir: no such file", following="check the path")


def test_text_that_is_taken_for_a_path():
    """A line that is too long for a path, or holds a zero byte, is an InputError, too."""
    following = "is this a module's text? A str without a line break is a path"
    first, *rest = told(hl.read, "module " * 1000).splitlines()
    assert first.startswith("'module module module")
    assert "cannot be read: File name too long" in first
    assert rest == [f"  next:    {following}"]
    assert told(hl.read, Path("a\0.mlir")).splitlines()[-1] == "  next:    check the path"


def test_the_name_of_a_module():
    """A name is a text."""
    assert told(hl.read, TEXT, name=5) == message("name: 5 is no text", following='write name="decode.mlir"')


# --- options -----------------------------------------------------------------------------------------------------

BY_KEYWORD = {
    "Options": lambda **given: hl.Options(**given),
    "lower": lambda **given: hl.lower(TEXT, **given),
    "classify": lambda **given: hl.classify(TEXT, **given),
    "classify_modules": lambda **given: hl.classify_modules("no_such.mlir", **given),
    "verify": lambda **given: hl.verify(TEXT, TEXT, **given),
    "jit": lambda **given: hl.jit(STEP, **given),
}
TARGETS = "targets: stablehlo, xla, iree, litert, coreml, linalg; or the path of a file, or an hl.Target"
FLAG = "is False or True"


def none_of(name, shown, choices, default):
    """The message of a value that is none of the choices."""
    following = f"write {name}={default}, or leave it out"
    return message(f"{name}: {shown} is not one of its values", f"{name} is {choices}", following=following)


def no_texts(name, shown, kind, example):
    """The message of what is no list of texts."""
    first = f"{name}: {shown} is neither a text nor a list of texts"
    return message(first, f"it is of type {kind}", following=f"write {name}=[{example!r}]")


WRONG_OPTIONS = [
    ({"oob": "zzz"}, none_of("oob", "'zzz'", "'xla' or 'spec'", "'xla'")),
    ({"oob": 5}, none_of("oob", "5", "'xla' or 'spec'", "'xla'")),
    (
        {"oob": "spek"},
        message(
            "oob: 'spek' is not one of its values",
            "oob is 'xla' or 'spec'",
            "oob='spec'",
            "write oob='spec', or leave it out",
        ),
    ),
    ({"float_mode": "fast"}, none_of("float_mode", "'fast'", "None, 'exact', 'reassociate' or ''", "None")),
    ({"linalg_ops": "zzz"}, none_of("linalg_ops", "'zzz'", "'named' or 'generic'", "'named'")),
    ({"linalg_loops": "zzz"}, none_of("linalg_loops", "'zzz'", "'for' or 'forall'", "'for'")),
    (
        {"linalg_loops": "forall"},
        message(
            "linalg_loops: stablehlo does not read linalg, in which loops are scf.forall",
            "",
            "",
            "write --target linalg, or leave it out",
        ),
    ),
    ({"trust_flags": "no"}, none_of("trust_flags", "'no'", "False or True", "False")),
    ({"keep_unsupported": 1}, none_of("keep_unsupported", "1", "False or True", "False")),
    ({"legalize": "no"}, none_of("legalize", "'no'", "None, False or True", "None")),
    ({"demote_i64": 0}, none_of("demote_i64", "0", "None, False or True", "None")),
    ({"target": 5}, message("target: 5 is no target", TARGETS, "", 'write target="stablehlo", or leave it out')),
    (
        {"target": "tpu9"},
        message(
            "no target named 'tpu9'",
            "targets: stablehlo, xla, iree, litert, coreml, linalg",
            "",
            "--target stablehlo, or a file of your own: --target ./my_npu.toml",
        ),
    ),
    ({"target": "no.toml"}, message("no.toml: no such target file", following="check the path")),
    ({"only": 5}, no_texts("only", "5", "int", "llama.py:88")),
    ({"only": [5]}, no_texts("only", "[5]", "list", "llama.py:88")),
    ({"skip": b"#3"}, no_texts("skip", "b'#3'", "bytes", "#3")),
    ({"prefer": {"while": 1}}, no_texts("prefer", "{'while': 1}", "dict", "last_writer")),
    ({"bind": 5}, message("bind: 5 is no mapping of names to sizes", following='write {"b": 4, "s": 16}')),
    ({"bind": "b=4"}, message("bind: 'b=4' is no mapping of names to sizes", following='write {"b": 4, "s": 16}')),
    ({"bind": {5: 4}}, message("bind: 5 is no name", following='write {"b": 4, "s": 16}')),
    ({"bind": [1]}, message("bind: [1] is no mapping of names to sizes", following='write {"b": 4, "s": 16}')),
]


@pytest.mark.parametrize("call", BY_KEYWORD.values(), ids=BY_KEYWORD)
@pytest.mark.parametrize(("given", "expected"), WRONG_OPTIONS, ids=[str(given) for given, _ in WRONG_OPTIONS])
def test_a_wrong_option(call, given, expected):
    """Wherever an option is given by keyword, a wrong one is refused before anything is done, in the same words."""
    assert told(call, **given) == expected


TAKING_OPTIONS = {
    "lower": lambda **given: hl.lower(TEXT, **given),
    "classify": lambda **given: hl.classify(TEXT, **given),
    "classify_modules": lambda **given: hl.classify_modules("no_such.mlir", **given),
    "verify": lambda **given: hl.verify(TEXT, TEXT, **given),
    "jit": lambda **given: hl.jit(STEP, **given),
    "rules": lambda **given: hl.rules(**given),
    "costs": lambda **given: hl.costs(**given),
}


@pytest.mark.parametrize("call", TAKING_OPTIONS.values(), ids=TAKING_OPTIONS)
def test_options_and_keywords_at_once(call):
    """Whoever takes options refuses keywords beside them, and options that are none."""
    expected = message(
        "options: options and keywords are given at once: target",
        "each of them could contradict the options",
        following="dataclasses.replace(options, target=...) makes other options",
    )
    assert told(call, options=hl.Options(), target="iree") == expected
    following = 'write options=hl.Options(target="iree")'
    assert told(call, options=5) == message("options: 5 is not an hl.Options", "it is of type int", "", following)


@pytest.mark.parametrize("call", BY_KEYWORD.values(), ids=BY_KEYWORD)
def test_an_option_that_does_not_exist(call):
    """A misspelt keyword is told what there is, and what is near."""
    first, facts, *rest = told(call, flaot_mode="exact").splitlines()
    assert first.endswith(": there is no option 'flaot_mode'")
    assert facts.startswith("  facts:   options are ")
    assert "oob, float_mode, trust_flags" in facts
    assert rest == ["  nearest: float_mode", "  next:    write float_mode=..."]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"only": "foo.py:3"}, "<module>: no scatter matches 'foo.py:3'"),
        ({"skip": ["#9"]}, "<module>: no scatter matches '#9'"),
        ({"prefer": "nope"}, "--prefer: no rule named 'nope'"),
        ({"bind": {"b": "x"}}, "<module>: b = 'x' is no size"),
        ({"bind": {"b": 1.5}}, "<module>: b = 1.5 is no size"),
    ],
)
def test_an_option_that_does_not_fit_the_module(given, expected):
    """A pattern, a rule or a size that is well written and fits nothing is named whole, not by its letters."""
    first, *rest = told(hl.lower, TEXT, **given).splitlines()
    assert first == expected
    assert rest


# --- the other arguments -----------------------------------------------------------------------------------------

LOWERED = hl.lower(TEXT)
LEVEL = "'auto', 'regions' or 'full'"


def no_number(name, shown, kind, least):
    """The message of what is no whole number from some."""
    first = f"{name}: {shown} is not a whole number from {least}"
    return message(first, f"it is of type {kind}", following=f"write {name}=1, or leave it out")


def no_inputs(shown, kind):
    """The message of inputs that are neither listed nor named."""
    first = f"inputs: {shown} is neither a list of arrays nor a mapping from names to arrays"
    following = 'write inputs=[x, y], one for each argument, or inputs={"x": x, "y": y}'
    return message(first, f"it is of type {kind}", following=following)


def no_registry(shown, kind):
    """The message of what is no registry."""
    following = "registry = hlo_lower.lowering.kinds.default_registry(); registry.extend(rules) adds an hl.RuleList"
    return message(f"registry: {shown} is not a registry", f"it is of type {kind}", following=following)


WRONG_EFFORT = [
    ({"level": "module"}, none_of("level", "'module'", LEVEL, "'auto'")),
    ({"level": 5}, none_of("level", "5", LEVEL, "'auto'")),
    ({"seed": -1}, no_number("seed", "-1", "int", 0)),
    ({"seed": 1.5}, no_number("seed", "1.5", "float", 0)),
    ({"seed": "x"}, no_number("seed", "'x'", "str", 0)),
    ({"runs": -1}, no_number("runs", "-1", "int", 0)),
    ({"runs": True}, no_number("runs", "True", "bool", 0)),
    ({"jobs": 0}, no_number("jobs", "0", "int", 1)),
    ({"jobs": "2"}, no_number("jobs", "'2'", "str", 1)),
    ({"jobs": np.zeros(2, int)}, no_number("jobs", "array([0, 0])", "ndarray", 1)),
    ({"inputs": 5}, no_inputs("5", "int")),
    ({"inputs": "x.npz"}, no_inputs("'x.npz'", "str")),
    ({"inputs": {1: 2}}, no_inputs("{1: 2}", "dict")),
    ({"inputs": np.zeros(2)}, no_inputs("array([0., 0.])", "ndarray")),
    (
        {"progress": 5},
        message(
            "progress: 5 is not a function",
            "it is of type int",
            following="give a function of a stage, how much is done and how much there is: print",
        ),
    ),
    ({"accept_runs": "no"}, none_of("accept_runs", "'no'", "False or True", "False")),
]


@pytest.mark.parametrize("call", [hl.verify, verify_texts], ids=["hl.verify", "hlo_lower.verify.verify"])
@pytest.mark.parametrize(("given", "expected"), WRONG_EFFORT, ids=[str(given) for given, _ in WRONG_EFFORT])
def test_wrong_arguments_of_verify(call, given, expected):
    """Levels, numbers, inputs and who is told are looked at before anything is run, by both functions."""
    assert told(call, TEXT, LOWERED.text, **given) == expected


def test_wrong_arguments_of_the_public_verify():
    """`prove` is a flag, and a registry is one even where no rule is run."""
    assert told(hl.verify, TEXT, LOWERED, prove="x") == none_of("prove", "'x'", "False or True", "False")
    assert told(hl.verify, TEXT, LOWERED, registry=5) == no_registry("5", "int")


def test_inputs_that_do_not_fit():
    """Too few inputs, and inputs of another type, are told what the module takes."""
    assert told(hl.verify, TEXT, LOWERED, inputs=[1]) == "1 inputs for 3 arguments"
    expected = message("input 0 does not fit", "expected float32[8, 4], got <U1[]")
    assert told(hl.verify, TEXT, LOWERED, inputs=["a", "b", "c"]) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: hl.lower(TEXT, registry=Named()),
        lambda: hl.classify(TEXT, registry=Named()),
        lambda: hl.rules(registry=Named()),
        lambda: hl.jit(STEP, registry=Named()),
    ],
    ids=["lower", "classify", "rules", "jit"],
)
def test_what_is_no_registry(call):
    """A registry of a wrong type is told how one is made."""
    assert told(call) == no_registry("<thing>", "Named")


def test_a_level_of_lower_and_jit():
    """`verify=` is a level; True is none."""
    expected = none_of("verify", "True", LEVEL, "'auto'")
    assert told(hl.lower, TEXT, verify=True) == expected
    assert told(hl.jit, STEP, verify=True) == expected


@pytest.mark.parametrize("fn", [5, "step"])
def test_jit_of_what_is_no_function(fn):
    """`hl.jit(5)` fails where it stands, not where it is called."""
    following = "hl.jit takes the Python function: hl.jit(f), or @hl.jit above it"
    expected = message(f"hl.jit: {fn!r} is not a function", f"it is of type {type(fn).__name__}", "", following)
    assert told(hl.jit, fn) == expected
    assert told(hl.jit(), fn) == expected


def test_what_jax_refuses_of_jit():
    """Static and donated arguments are those of `jax.jit`; what it refuses is an InputError with its words."""
    expected = message(
        "hl.jit: jax.jit refuses it: TypeError: 'str' object cannot be interpreted as an integer",
        "static_argnums='x'",
        following="positions are whole numbers, names are texts: static_argnums=(0,), static_argnames=('n',)",
    )
    assert told(hl.jit, STEP, static_argnums="x") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"jobs": 0}, no_number("jobs", "0", "int", 1)),
        ({"jobs": 1.5}, no_number("jobs", "1.5", "float", 1)),
        (
            {"timeout": -1},
            message(
                "timeout: -1 is not a number of seconds above 0",
                "it is of type int",
                "",
                "write timeout=60, or leave it out",
            ),
        ),
        (
            {"executor": 5},
            message(
                "executor: 5 has no submit", "it is of type int", "", "give a concurrent.futures executor, or jobs"
            ),
        ),
    ],
    ids=str,
)
def test_wrong_arguments_of_classify_modules(given, expected):
    """How the work is spread is looked at before a file is."""
    assert told(hl.classify_modules, "no_such.mlir", **given) == expected


@pytest.mark.parametrize(
    ("paths", "shown", "facts"),
    [(5, "5", "it is of type int"), ([5], "5", "it is of type int"), (TEXT, None, "it is the text of a module")],
    ids=["number", "list of numbers", "text"],
)
def test_paths_that_are_none(paths, shown, facts):
    """Files and folders are wanted; a module's text goes to `classify`."""
    first, *rest = told(hl.classify_modules, paths).splitlines()
    assert first == f"paths: {shown or repr(TEXT)[:60] + '...'} is not a path"
    assert rest == [
        f"  facts:   {facts}",
        "  next:    hl.classify takes a module, whatever its form; this takes files and folders",
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"donate": "x"}, no_number("donate", "'x'", "str", 0)),
        ({"donate": [-1]}, no_number("donate", "-1", "int", 0)),
        (
            {"static": 5},
            message("static: 5 is no mapping from names to values", "", "", 'write static={"config": config}'),
        ),
        ({"name": 5}, message("name: 5 is no text", "", "", 'write name="decode"')),
        ({"platforms": 5}, no_texts("platforms", "5", "int", "cpu")),
        ({"shapes": 5}, message("step: shapes is 5", "", "", 'write a list of shapes: shapes=["b, 64", "b"]')),
    ],
    ids=str,
)
def test_wrong_arguments_of_export(given, expected):
    """What a function is exported with is looked at before it is traced."""
    assert told(hl.export, STEP, *ARGS, **given) == expected


def test_export_of_what_is_no_function():
    """`hl.export("model.py:f")` is no command line."""
    following = "give the function, then example arguments: hl.export(f, *args)"
    assert told(hl.export, 5) == message("hl.export: 5 is not a function", "it is of type int", "", following)


def test_platforms_as_one_text():
    """One platform can be given as it is; it is not read letter by letter."""
    assert hl.export(lambda x: x, np.float32(1), platforms="cpu").platforms == ("cpu",)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": 5}, message("name: 5 is no name of a target", "", "", 'write Target("npu")')),
        (
            {"ops": "stablehlo.add"},
            message("ops is a collection of names, not 'stablehlo.add'", "", "", "write ops={'stablehlo.add'}"),
        ),
        (
            {"dtypes": [5]},
            message("dtypes is a collection of names, not [5]", "", "", "write dtypes={'stablehlo.add'}"),
        ),
        (
            {"refused": ["stablehlo.pad"]},
            message(
                "refused maps names to reasons, not ['stablehlo.pad']",
                "",
                "",
                'write refused={"stablehlo.pad": "no kernel"}',
            ),
        ),
        (
            {"op_dtypes": 5},
            message(
                "op_dtypes maps names to collections of element types, not 5",
                "",
                "",
                'write op_dtypes={"stablehlo.add": {"f32"}}',
            ),
        ),
        (
            {"costs": 5},
            message("costs is a table of costs, not 5", "", "", 'write costs=COSTS.with_entry("few_windows", 64)'),
        ),
        (
            {"keep": [5]},
            message(
                "keep is made of NativeScatters, not [5]", "", "", 'write keep=(NativeScatter(combiners={"add"}),)'
            ),
        ),
        ({"legalize": "no"}, none_of("legalize", "'no'", "False or True", "False")),
    ],
    ids=str,
)
def test_wrong_arguments_of_target(given, expected):
    """A target that is made in Python says at once what it does not take."""
    assert told(hl.Target, **{"name": "npu", **given}) == expected


@pytest.mark.parametrize("version", ["zzz", 5])
def test_a_version_of_stablehlo(version):
    """A version has three numbers."""
    expected = message(
        f"version: {version!r} is no version of StableHLO", "", "", 'write version="1.0.0", or leave it out'
    )
    assert told(LOWERED.portable, version) == expected
