"""A target of one's own as a file: what it says is what the target does, and what it says wrongly is told."""

import json
import re
import tomllib
from dataclasses import replace

import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets import read_target, target_of
from hlo_lower.ops.targets.costs import COSTS
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.ops.targets.target import Target

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

[refused]
"stablehlo.while" = "no control flow"

[refused_dtypes]
i64 = "32-bit addresses"

[op_dtypes]
"stablehlo.dot_general" = ["i32"]

[[keep]]
combiners = ["assign", "add"]
dtypes = ["i8"]
index_dtypes = ["i32"]
form = "rows"
in_bounds = "any"
unique = "any"
when = "no_lowering"

[[keep]]

[costs]
few_windows = 64
copy_element = 0
"""

EXPECTED = Target(
    "npu",
    "the compiler of my NPU",
    {"stablehlo.while": "no control flow"},
    {"stablehlo.add", "stablehlo.dot_general", "chlo.erf", "func.call"},
    {"f32", "i32", "i1", "complex<f32>"},
    {"i64": "32-bit addresses"},
    {"stablehlo.dot_general": {"i32"}},
    replace(COSTS, few_windows=64, copy_element=0),
    "linalg",
    "i32",
    "reassociate",
    (NativeScatter({"assign", "add"}, {"i8"}, {"i32"}, "rows", "any", "any", "no_lowering"), NativeScatter()),
    True,
    {"odml.softmax"},
    True,
)
"""What the file says."""


@pytest.fixture
def write(tmp_path):
    """Write a target file and give its path."""

    def write_file(text):
        path = tmp_path / "my_npu.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write_file


def test_a_file_says_all_that_a_target_does(write):
    """Each key is the field of its name."""
    assert read_target(write(WHOLE)) == EXPECTED


def test_a_json_file_says_the_same(write, tmp_path):
    """The keys and values of a JSON file are those of a TOML file; "stablehlo.while" may be a name or a table there."""
    content = tomllib.loads(WHOLE)
    path = tmp_path / "my_npu.json"
    path.write_text(json.dumps(content))
    assert target_of(str(path)) == target_of(path) == EXPECTED
    path.write_text(json.dumps({**content, "refused": {"stablehlo": {"while": "no control flow"}}}))
    assert target_of(path) == EXPECTED
    path.write_text("{}")
    assert target_of(path) == Target("my_npu")


@pytest.mark.parametrize(
    ("text", "what", "help_"),
    [
        ("{", "not a JSON file: Expecting property name", "quotes"),
        ("[" * 100_000, "not a JSON file: ", "quotes"),
        ("[]", "a JSON object is wanted, not list", '{"name": "npu", ...}'),
        ('{"name": "a", "name": "b"}', "'name' stands twice", "keep one of them"),
        ('{"opps": []}', "unknown key 'opps'", "keys are name, description, ops"),
        ('{"dtypes": "f32"}', "dtypes: a list of strings is wanted, not 'f32'", "write ["),
        ('{"dtypes": ["float32"]}', "dtypes: there is no element type 'float32'", "did you mean f32?"),
        ('{"legalize": 1}', "legalize: true or false is wanted, not 1", "without quotes"),
        ('{"keep": {}}', "keep: a list of tables is wanted, not {}", "[[keep]]"),
        (b"\xff\xfe", "not a JSON file: it is not UTF-8 text", "name a TOML or JSON file"),
    ],
)
def test_a_wrong_json_file_is_told(tmp_path, text, what, help_):
    """It is judged as a TOML file is."""
    path = tmp_path / "npu.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=re.escape(what)) as error:
        read_target(str(path))
    assert str(error.value).startswith(f"{path}: ")
    assert help_ in str(error.value).split("\n", 1)[1]


def test_sizes_are_those_of_the_default_but_for_what_is_given(write):
    """Entries of the table of costs, counts and costs."""
    table = read_target(write("[costs]\nfew_windows = 64\nloop = 0.5\n")).costs
    assert table == replace(COSTS, few_windows=64, loop=0.5)


def test_an_empty_file_is_a_target_that_takes_everything(write):
    """Nothing is required; the name is the file's."""
    assert Target("my_npu") == read_target(write(""))


def test_a_name_without_quotes_is_meant_as_one_name(write):
    """TOML reads `stablehlo.while = ...` as a table in a table."""
    target = read_target(write('[refused]\nstablehlo.while = "no"\n[op_dtypes.stablehlo]\nadd = ["f32"]\n'))
    assert Target("my_npu", refused={"stablehlo.while": "no"}, op_dtypes={"stablehlo.add": {"f32"}}) == target


def test_a_path_is_told_from_a_name(write, tmp_path, monkeypatch):
    """What ends in .toml or .json, holds a separator or is a Path is a file; all else is the name of a built-in one."""
    path = write("")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text('name = "plain one"')
    for named, name in ((path, "my_npu"), ("my_npu.toml", "my_npu"), ("./plain", "plain one")):
        assert target_of(named).name == name
    assert target_of(tmp_path / "plain").name == "plain one"
    with pytest.raises(InputError, match="no target named 'plain'"):
        target_of("plain")


@pytest.mark.parametrize(
    ("text", "what", "help_"),
    [
        ("opps = []", "unknown key 'opps'", "keys are name, description, ops"),
        ("name = 3", "name: a string is wanted, not 3", "quotes"),
        ('name = ""', "name: it is empty", "leave it out"),
        ('dtypes = "f32"', "dtypes: a list of strings is wanted, not 'f32'", "write ["),
        ("ops = [1]", "ops: a list of strings is wanted, not [1]", "write ["),
        ('refused = ["stablehlo.add"]', "refused: a table is wanted", "[refused]"),
        ('[refused]\n"stablehlo.add" = true', "refused: stablehlo.add: a string is wanted, not True", "quotes"),
        ('[op_dtypes]\n"stablehlo.add" = "f32"', "op_dtypes: stablehlo.add: a list of strings is wanted", "write ["),
        ('ops = ["add"]', "ops: there is no operation 'add'", "did you mean stablehlo.add?"),
        ('ops = ["aten.add_"]', "ops: there is no operation 'aten.add_'", "with its dialect"),
        ('[refused]\n"stablehlo.whlie" = ""', "there is no operation 'stablehlo.whlie'", "mean stablehlo.while?"),
        ('dtypes = ["float32"]', "dtypes: there is no element type 'float32'", "did you mean f32?"),
        ('dtypes = ["bool"]', "dtypes: there is no element type 'bool'", "did you mean i1?"),
        ('[refused_dtypes]\nlong = ""', "refused_dtypes: there is no element type 'long'", "f32, bf16, i32"),
        ('[op_dtypes]\n"stablehlo.add" = ["uint8"]', "op_dtypes: stablehlo.add: there is no element type", "mean ui8?"),
        ('ops = ["stablehlo.add"]\n[refused]\n"stablehlo.add" = ""', "among ops and among refused", "one of them"),
        ('dtypes = ["f32"]\n[refused_dtypes]\nf32 = ""', "among dtypes and among refused_dtypes", "one of them"),
        ('ops = []\n[op_dtypes]\n"stablehlo.add" = ["f32"]', "stablehlo.add is not taken at all", "add it to ops"),
        ('dtypes = ["f32"]\n[op_dtypes]\n"stablehlo.add" = ["i8"]', "i8 is not taken on any operation", "narrows"),
        ("[costs]\nfew = 3", "costs: no cost named 'few'", "hlo-lower rules"),
        ("[costs]\nfew_windows = 2.5", "costs: few_windows: a whole number above 0 is wanted, not 2.5", "hlo-lower"),
        ("[costs]\nloop = true", "costs: loop: a number above 0 is wanted, not True", "hlo-lower rules"),
        ("[costs]\ncopy_element = -1", "copy_element: a number from 0 on is wanted, not -1", "hlo-lower rules"),
        ('dialect = "mhlo"', 'dialect: "stablehlo" or "linalg" is wanted, not \'mhlo\'', "write one of these"),
        ("dialect = 1", 'dialect: "stablehlo" or "linalg" is wanted, not 1', "write one of these"),
        ('index_type = "f32"', "index_type: \"i32\" is wanted, not 'f32'", 'write one of these: "i32"'),
        ('index_type = "i64"', "index_type: \"i32\" is wanted, not 'i64'", 'write one of these: "i32"'),
        ('float_mode = "fast"', 'float_mode: "exact" or "reassociate" is wanted, not \'fast\'', "write one of these"),
        ('legalize = "yes"', "legalize: true or false is wanted, not 'yes'", "without quotes"),
        ("demote_i64 = 1", "demote_i64: true or false is wanted, not 1", "without quotes"),
        ('composites = "odml.softmax"', "composites: a list of strings is wanted", "write ["),
        ("keep = true", "keep: a list of tables is wanted, not True", "[[keep]]"),
        ('[keep]\ndtypes = ["i8"]', "keep: a list of tables is wanted", "[[keep]]"),
        ("[[keep]]\n[[keep]]\nop = 1", "keep 2: unknown key 'op'", "keys are combiners, dtypes, index_dtypes, form"),
        ('[[keep]]\ndtypes = "i8"', "keep 1: dtypes: a list of strings is wanted, not 'i8'", "write ["),
        ("[[keep]]\ndtypes = []", "keep 1: dtypes: it is empty", "leave it out"),
        ('[[keep]]\ndtypes = ["int8"]', "keep 1: dtypes: there is no element type 'int8'", "did you mean i8?"),
        ('[[keep]]\nindex_dtypes = ["int"]', "keep 1: index_dtypes: there is no element type 'int'", "f32, bf16"),
        ('[[keep]]\ncombiners = ["plus"]', "keep 1: there is no combiner 'plus'", "combiners are assign, add"),
        ('[[keep]]\nform = "row"', 'keep 1: form: "any" or "rows" or "points" is wanted, not \'row\'', "write one"),
        ("[[keep]]\nin_bounds = true", 'keep 1: in_bounds: "any" or "proved" is wanted, not True', "write one"),
        ('[[keep]]\nunique = "no"', 'keep 1: unique: "any" or "proved" is wanted, not \'no\'', "write one"),
        ('[[keep]]\nwhen = ""', 'keep 1: when: "always" or "no_lowering" or "safe" is wanted', "write one"),
        ("name = ", "not a TOML file: Invalid value", "quotes"),
        (b"\xff\xfe", "not a TOML file: it is not UTF-8 text", "name a TOML or JSON file"),
    ],
)
def test_a_wrong_file_is_told(write, text, what, help_):
    """The message begins with the path, says what is wrong, and what would be right."""
    path = write(text)
    with pytest.raises(InputError, match=re.escape(what)) as error:
        read_target(path)
    assert str(error.value).startswith(f"{path}: ")
    assert help_ in str(error.value).split("\n", 1)[1]


def test_a_file_that_cannot_be_read(tmp_path):
    """A missing file and a folder are told as such."""
    with pytest.raises(InputError, match="no such target file"):
        target_of(str(tmp_path / "missing.toml"))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        target_of(tmp_path)
