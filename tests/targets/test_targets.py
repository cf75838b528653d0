"""Targets in Python and as files: what they take and refuse, when two are the same, and what is told of wrong ones."""

import json
import re
import tomllib
from dataclasses import replace

import pytest

from hlo_lower.base.english import phrase
from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets import STABLEHLO, TARGETS, read_target, target_named, target_of
from hlo_lower.ops.targets.costs import COSTS
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.ops.targets.target import Target

ADD, DOT, WHILE = "stablehlo.add", "stablehlo.dot_general", "stablehlo.while"
WHOLE = """\
name = "npu"
description = "the compiler of my NPU"
ops = ["stablehlo.add", "stablehlo.dot_general", "chlo.erf", "func.call"]
dtypes = ["f32", "i32", "i1", "complex<f32>"]
dialect = "linalg"
index_type = "i32"
float_mode = "reassociate"
legalize = true
composites = ["odml.softmax"]
demote_i64 = true
refused = {"stablehlo.while" = "no control flow"}
refused_dtypes = {i64 = "32-bit addresses"}
op_dtypes = {"stablehlo.dot_general" = ["i32"]}
max_rank = {"*" = 5, "stablehlo.pad" = 4}
costs = {few_windows = 64, copy_element = 0}

[[keep]]
combiners = ["assign", "add"]
dtypes = ["i8"]
index_dtypes = ["i32"]
form = "rows"
in_bounds = "any"
unique = "any"
when = "no_lowering"

[[keep]]
"""
EXPECTED = Target(
    "npu",
    "the compiler of my NPU",
    {WHILE: "no control flow"},
    {ADD, DOT, "chlo.erf", "func.call"},
    {"f32", "i32", "i1", "complex<f32>"},
    {"i64": "32-bit addresses"},
    {DOT: {"i32"}},
    replace(COSTS, few_windows=64, copy_element=0),
    "linalg",
    "i32",
    "reassociate",
    (NativeScatter({"assign", "add"}, {"i8"}, {"i32"}, "rows", "any", "any", "no_lowering"), NativeScatter()),
    True,
    {"odml.softmax"},
    True,
    max_rank={"*": 5, "stablehlo.pad": 4},
)
"""What the file says."""
SMALL = {
    "refusing": Target("small", refused={WHILE: "no control flow"}, refused_dtypes={"i64": "32 bits"}),
    "listing": Target("small", ops={"stablehlo.map"}),
    "of types": Target("small", dtypes={"f32", "i1"}, op_dtypes={DOT: {"i1"}}),
    "stablehlo": STABLEHLO,
}


@pytest.mark.parametrize(
    ("name", "op", "dtypes", "says"),
    [
        ("refusing", WHILE, "", "emits stablehlo.while, which small rejects: no control flow"),
        ("refusing", ADD, "bf16", None),
        ("refusing", ADD, "i64", "emits stablehlo.add on i64, which small rejects: 32 bits"),
        ("listing", ADD, "", "emits stablehlo.add, which small rejects"),
        ("listing", "stablehlo.map", "", None),
        ("listing", "stablehlo.return", "", None),  # the end of a region belongs to its op
        ("of types", ADD, "f32", None),
        ("of types", ADD, "bf16 f32", "emits stablehlo.add on bf16, which small rejects"),
        ("of types", DOT, "f32", "emits stablehlo.dot_general, which small rejects for f32"),
        ("of types", DOT, "i1", None),
        ("stablehlo", "stablehlo.scatter", "", "emits stablehlo.scatter, which stablehlo rejects: .*"),
        ("stablehlo", "stablehlo.sort", "f64 ui2 complex<f32>", None),
    ],
)
def test_a_target_gives_the_reason_of_a_refusal(name, op, dtypes, says):
    """An op or type that is refused or not listed, on all ops or on one; what is not said restricts nothing."""
    found = SMALL[name].refusal(op, set(dtypes.split()))
    assert found is says is None or re.fullmatch(says, phrase(found))
    assert len(SMALL[name].refusals([op, op])) == (SMALL[name].refusal(op) is not None)


OTHERS = {"name": "other", "description": "", "refused": {WHILE: "never"}, "ops": {DOT}, "dtypes": {"f32", "i32"}}
OTHERS |= {"refused_dtypes": {}, "op_dtypes": {}, "costs": COSTS, "dialect": "stablehlo", "index_type": ""}
OTHERS |= {"float_mode": "exact", "keep": [NativeScatter()], "legalize": False, "composites": {"chlo.erf"}}
OTHERS |= {"demote_i64": False, "max_rank": {"*": 5}, "gather": "in_bounds"}


def test_targets_are_equal_by_all_that_they_say():
    """Two that differ in anything are two; a copy is the same one, whatever becomes of what it was made from."""
    for name, value in OTHERS.items():
        other = replace(EXPECTED, **{name: value})
        assert len({EXPECTED, replace(EXPECTED), other}) == 2, name
    refused, ops = {WHILE: "no"}, {ADD}
    target = Target("npu", refused=refused, op_dtypes={ADD: ops})
    before = hash(target)
    refused.clear()
    ops.clear()
    assert (target.refuses_op(WHILE), target.op_dtypes[ADD], hash(target)) == ("no", {ADD}, before)


@pytest.mark.parametrize(
    ("make", "says", "told"),
    [
        (Target, {"dtypes": "f32"}, "dtypes is a collection of names, not 'f32'"),
        (NativeScatter, {"dtypes": "i8"}, "dtypes is a collection of names, not 'i8'"),
        (Target, {"dialect": "mhlo"}, "dialect is one of 'stablehlo', 'linalg', not 'mhlo'"),
        (Target, {"index_type": "i64"}, "index_type is one of '', 'i32', not 'i64'"),
        (Target, {"float_mode": "fast"}, "float_mode is one of '', 'exact', 'reassociate', not 'fast'"),
        (Target, {"max_rank": {"*": 1}}, "4 or more"),
        (NativeScatter, {"form": "row"}, "form is one of any, rows, points, not 'row'"),
        (NativeScatter, {"combiners": {"plus"}}, "combiners are assign, add, .*, not 'plus'"),
    ],
)
def test_a_word_that_does_not_exist_is_refused(make, says, told):
    """A target that is made in Python is held to the words that a file is held to."""
    with pytest.raises(InputError, match=told):
        make(**({"name": "npu"} if make is Target else {}), **says)


def test_targets_are_found_by_name():
    """Each listed target under its own; an object that says what exists is used, one with a misspelt op is not."""
    assert [target_of(target.name) for target in TARGETS] == list(TARGETS)
    assert len({target.name for target in TARGETS}) == len(TARGETS)
    assert target_of(EXPECTED) is EXPECTED
    with pytest.raises(InputError, match=r"target npu: refused: there is no operation 'stablehlo\.whlie'"):
        target_of(Target("npu", refused={"stablehlo.whlie": "no"}))
    with pytest.raises(InputError, match="no target named 'nothing'") as error:
        target_named("nothing")
    assert error.value.facts == f"targets: {', '.join(t.name for t in TARGETS)}"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a target file and give its path."""
    monkeypatch.chdir(tmp_path)

    def write_file(text, name="my_npu.toml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(tmp_path / name)

    return write_file


def test_a_file_says_all_that_a_target_does(write):
    """Each key is the field of its name, in TOML and in JSON, and none is required; the name is the file's."""
    content = tomllib.loads(WHOLE)
    nested = {**content, "refused": {"stablehlo": {"while": "no control flow"}}}
    assert read_target(write(WHOLE)) == EXPECTED
    assert target_of(write(json.dumps(content), "npu.json")) == target_of(write(json.dumps(nested), "npu.json"))
    assert target_of(write(json.dumps(content), "npu.json")) == EXPECTED
    assert target_of(write("{}", "my_npu.json")) == read_target(write("")) == Target("my_npu")
    without_quotes = read_target(write('[refused]\nstablehlo.while = "no"\n[op_dtypes.stablehlo]\nadd = ["f32"]\n'))
    assert without_quotes == Target("my_npu", refused={WHILE: "no"}, op_dtypes={ADD: {"f32"}})


def test_a_path_is_told_from_a_name(write, tmp_path):
    """What ends in .toml or .json, holds a separator or is a Path is a file; all else is the name of a built-in one."""
    path = write("")
    write('name = "plain one"', "plain")
    for named, name in ((path, "my_npu"), ("my_npu.toml", "my_npu"), ("./plain", "plain one")):
        assert target_of(named).name == name
    assert target_of(tmp_path / "plain").name == "plain one"
    for named, says in (("plain", "no target named 'plain'"), ("missing.toml", "no such target file")):
        with pytest.raises(InputError, match=says):
            target_of(named)
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        target_of(tmp_path)


WRONG_TOML = [
    ("opps = []", "unknown key 'opps'", "keys are name, description, ops"),
    ("name = 3", "name: a string is wanted, not 3", "quotes"),
    ('name = ""', "name: it is empty", "leave it out"),
    ("ops = [1]", "ops: a list of strings is wanted, not [1]", "write ["),
    ('refused = ["stablehlo.add"]', "refused: a table is wanted", "[refused]"),
    ('[op_dtypes]\n"stablehlo.add" = "f32"', "op_dtypes: stablehlo.add: a list of strings is wanted", "write ["),
    ('ops = ["add"]', "ops: there is no operation 'add'", "did you mean stablehlo.add?"),
    ('ops = ["aten.add_"]', "ops: there is no operation 'aten.add_'", "with its dialect"),
    ('[refused]\n"stablehlo.whlie" = ""', "there is no operation 'stablehlo.whlie'", "mean stablehlo.while?"),
    ('dtypes = ["bool"]', "dtypes: there is no element type 'bool'", "did you mean i1?"),
    ('[refused_dtypes]\nlong = ""', "refused_dtypes: there is no element type 'long'", "f32, bf16, i32"),
    ('[op_dtypes]\n"stablehlo.add" = ["uint8"]', "op_dtypes: stablehlo.add: there is no element type", "mean ui8?"),
    ('ops = ["stablehlo.add"]\n[refused]\n"stablehlo.add" = ""', "among ops and among refused", "one of them"),
    ('dtypes = ["f32"]\n[refused_dtypes]\nf32 = ""', "among dtypes and among refused_dtypes", "one of them"),
    ('ops = []\n[op_dtypes]\n"stablehlo.add" = ["f32"]', "stablehlo.add is not accepted at all", "add it to ops"),
    ('dtypes = ["f32"]\n[op_dtypes]\n"stablehlo.add" = ["i8"]', "i8 is not accepted on any op", "narrows"),
    ("[costs]\nfew = 3", "costs: no cost named 'few'", "hlo-lower rules"),
    ("[costs]\nfew_windows = 2.5", "costs: few_windows: a whole number above 0 is wanted, not 2.5", "hlo-lower"),
    ("[costs]\nloop = true", "costs: loop: a number above 0 is wanted, not True", "hlo-lower rules"),
    ("[costs]\ncopy_element = -1", "copy_element: a number from 0 on is wanted, not -1", "hlo-lower rules"),
    ('[max_rank]\n"*" = 3', "max_rank: *: a number of dims, 4 or more, is wanted, not 3", 'write "*" = 5'),
    ('dialect = "mhlo"', 'dialect: "stablehlo" or "linalg" is wanted, not \'mhlo\'', "write one of these"),
    ('legalize = "yes"', "legalize: true or false is wanted, not 'yes'", "without quotes"),
    ('[keep]\ndtypes = ["i8"]', "keep: a list of tables is wanted", "[[keep]]"),
    ("[[keep]]\n[[keep]]\nop = 1", "keep 2: unknown key 'op'", "keys are combiners, dtypes, index_dtypes, form"),
    ("[[keep]]\ndtypes = []", "keep 1: dtypes: it is empty", "leave it out"),
    ('[[keep]]\ndtypes = ["int8"]', "keep 1: dtypes: there is no element type 'int8'", "did you mean i8?"),
    ('[[keep]]\nindex_dtypes = ["int"]', "keep 1: index_dtypes: there is no element type 'int'", "f32, bf16"),
    ('[[keep]]\ncombiners = ["plus"]', "keep 1: there is no combiner 'plus'", "combiners are assign, add"),
    ('[[keep]]\nform = "row"', 'keep 1: form: "any" or "rows" or "points" is wanted, not \'row\'', "write one"),
    ("name = ", "not a TOML file: Invalid value", "quotes"),
    (b"\xff\xfe", "not a TOML file: it is not UTF-8 text", "name a TOML or JSON file"),
]
WRONG_JSON = [
    ("{", "not a JSON file: Expecting property name", "quotes"),
    ("[" * 100_000, "not a JSON file: ", "quotes"),
    ("[]", "a JSON object is wanted, not list", '{"name": "npu", ...}'),
    ('{"name": "a", "name": "b"}', "'name' stands twice", "keep one of them"),
]


@pytest.mark.parametrize(
    ("form", "text", "what", "help_"),
    [*(("toml", *row) for row in WRONG_TOML), *(("json", *row) for row in WRONG_JSON)],
    ids=lambda part: part[:40],
)
def test_a_wrong_file_is_told(write, form, text, what, help_):
    """The message begins with the path, says what is wrong, and what would be right."""
    path = write(text, f"npu.{form}")
    with pytest.raises(InputError, match=re.escape(what)) as error:
        read_target(path)
    assert str(error.value).startswith(f"{path}: ")
    assert help_ in str(error.value).split("\n", 1)[1]
