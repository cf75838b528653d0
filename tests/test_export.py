"""hlo_lower.ir.export: functions of files and modules, settings, symbolic shapes, locations, and what it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import export, exported_text

MODEL = """\
from dataclasses import dataclass
import jax
from helper import put

@dataclass(frozen=True)
class Config:
    rows: int = 8
    scale: float = 1.0
    wide: bool = False
    dtype: str = "float32"

    def __post_init__(self):
        if self.rows > 100:
            raise ValueError("rows must be at most 100")

def step_args(config):
    row = jax.ShapeDtypeStruct((4,), config.dtype)
    return jax.ShapeDtypeStruct((config.rows, 4), config.dtype), row, jax.ShapeDtypeStruct((), "int32")

def step(cache, row, position, *, config):
    return put(cache, row * config.scale, position)

def plain(x):
    return x + 1

def broken(x):
    return x.nothing

def bare(x):
    return x

EXPORTS = {
    "step": {"args": step_args, "config": Config(), "presets": {"big": Config(rows=64)}, "donate": (0,)},
    "plain": {"args": (jax.ShapeDtypeStruct((3,), "float32"),)},
    "broken": {"args": (jax.ShapeDtypeStruct((3,), "float32"),)},
    "typo": {"arg": ()},
}
"""
HELPER = "def put(cache, row, position):\n    return cache.at[position].set(row)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with package/model.py and package/helper.py, made current."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "model.py").write_text(MODEL)
    (package / "helper.py").write_text(HELPER)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n in ("helper", "package") or n.startswith("package.")]:
        del sys.modules[name]


def _shape(rows):
    return jax.ShapeDtypeStruct((rows, 4), jnp.float32)


def _refusal(spec, **settings):
    with pytest.raises(InputError) as caught:
        load_function(spec, settings)
    return str(caught.value)


# --- exporting --------------------------------------------------------------------------------------------------


def test_export_computes_what_the_function_computes():
    """An exported function called with arrays gives the function's result."""
    exported = export(lambda x, i: x.at[i].set(7.0), _shape(3), jax.ShapeDtypeStruct((), jnp.int32))
    expected = np.zeros((3, 4))
    expected[1] = 7.0
    np.testing.assert_array_equal(expected, exported.call(jnp.zeros((3, 4)), jnp.int32(1)))


def test_donated_arguments_are_marked():
    """donate=(0,) marks the first argument, and no other, as aliased to a result."""
    text = exported_text(export(lambda x, y: (x + 1, y * 2), _shape(3), _shape(3), donate=(0,)))
    signature = next(line for line in text.splitlines() if "@main" in line)
    assert signature.count("tf.aliasing_output") == 1
    assert signature.index("tf.aliasing_output") < signature.index("%arg1")


def test_a_jitted_function_keeps_its_own_donation():
    """A function under jax.jit with donate_argnums is exported with them."""
    jitted = jax.jit(lambda x, y: (x + 1, y * 2), donate_argnums=(0,))
    assert exported_text(export(jitted, _shape(3), _shape(3))).count("tf.aliasing_output") == 1


def test_arguments_are_named_as_in_python():
    """The location of an argument is the Python name, with the path into a pytree."""

    def step(params, position):
        return params["layers"][0]["w"] * position

    text = exported_text(export(step, {"layers": [{"w": _shape(3)}]}, jax.ShapeDtypeStruct((), jnp.float32)))
    assert "loc(\"params['layers'][0]['w']\")" in text
    assert 'loc("position")' in text
    assert "module @jit_step" in text


def test_shapes_make_symbolic_dims():
    """One symbolic shape per argument, equal names equal sizes, dtypes from the specs."""
    exported = export(lambda x, y: x @ y, _shape(3), jax.ShapeDtypeStruct((4, 5), jnp.float32), shapes=["b, _", "..."])
    assert [str(aval.shape) for aval in exported.in_avals] == ["(b, 4)", "(4, 5)"]
    assert "tensor<?x4xf32>" in exported_text(exported)
    shared = export(lambda x, y: x + y, _shape(3), _shape(3), shapes=["2*b+1, 4", "2*b+1, 4"])
    assert [str(aval.shape) for aval in shared.out_avals] == ["(2*b + 1, 4)"]


def test_shapes_go_to_leaves_too():
    """Shapes are one per argument, where they hold for each leaf, or one per leaf."""
    tree = {"a": _shape(3), "b": _shape(3)}
    by_argument = export(lambda t: t["a"] + t["b"], tree, shapes=["n, 4"])
    by_leaf = export(lambda t: t["a"] + t["b"], tree, shapes=["n, 4", "n, _"])
    assert [str(a.shape) for a in by_argument.in_avals] == [str(a.shape) for a in by_leaf.in_avals] == ["(n, 4)"] * 2


def test_the_wrong_number_of_shapes_is_refused():
    """The message says how many arguments there are and what they are."""
    with pytest.raises(InputError) as caught:
        export(jnp.add, _shape(3), _shape(2), shapes=["b, 4", "b, 4", "b, 4"])
    expected = (
        "add: 3 shapes for 2 arguments\n"
        "  facts:   arguments float32[3,4], float32[2,4]\n"
        '  next:    give one shape per argument, "..." for those that stay as they are'
    )
    assert expected == str(caught.value)


def test_a_shape_that_does_not_parse_is_refused():
    """The message names the argument and points to the place in its shape."""
    with pytest.raises(InputError) as caught:
        export(jnp.add, _shape(3), _shape(3), shapes=["b, 4", "b, 4*"])
    expected = (
        "add: argument 1: a name or a number is missing here\n    b, 4*\n         ^\n  next:    a shape is made of "
    )
    assert str(caught.value).startswith(expected)


def test_a_spec_of_64_bits_is_refused_where_jax_would_narrow_it():
    """An int64 spec with 64-bit types off is an error, not an int32 argument."""
    with pytest.raises(InputError, match=r"an argument is int64\[3\], and JAX runs with 64-bit types off"):
        export(lambda x: x, jax.ShapeDtypeStruct((3,), np.int64))


WIDE = """\
import jax, jax.numpy as jnp

def take(x, positions):
    return x[positions], jnp.arange(2)

ARGS = (jax.ShapeDtypeStruct((3,), "float32"), jax.ShapeDtypeStruct((2,), jnp.dtype("int64")))
narrow = take
EXPORTS = {"take": {"args": ARGS, "x64": True}, "narrow": {"args": ARGS}}
"""


def test_an_entry_says_that_64_bit_types_are_on(folder):
    """With "x64" in its entry a function is traced with 64-bit types, and JAX is as before afterwards."""
    (folder / "wide.py").write_text(WIDE)
    exported = load_function("wide.py:take").export()
    assert [str(aval.dtype) for aval in (*exported.in_avals, *exported.out_avals)] == ["float32", "int64"] * 2
    assert jnp.arange(2).dtype == jnp.int32
    with pytest.raises(InputError, match=r'put "x64": True in its entry of EXPORTS'):
        load_function("wide.py:narrow").export()


# --- locations --------------------------------------------------------------------------------------------------


def test_locations_are_seen_from_the_current_folder(folder):
    """Locations name the user's files below the current folder by their relative path, and no folder above it."""
    text = exported_text(load_function("package/model.py:step").export())
    assert 'loc("package/helper.py":2:' in text
    assert 'loc("package/model.py":21:' in text
    assert str(folder) not in text
    assert not [line for line in text.splitlines() if 'loc("/' in line]


def test_locations_outside_the_current_folder_name_no_folder(folder, monkeypatch):
    """A model file elsewhere is named by its file name alone."""
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    text = exported_text(load_function(f"{folder}/package/model.py:step").export())
    assert 'loc("model.py":21:' in text
    assert str(folder) not in text


def test_export_leaves_the_settings_of_jax_and_python_as_they_were(folder):
    """Neither JAX's options nor Python's import path change."""
    options = ("jax_include_full_tracebacks_in_locations", "jax_hlo_source_file_canonicalization_regex")
    before = [getattr(jax.config, option) for option in options], list(sys.path)
    load_function("package/model.py:step").export()
    with pytest.raises(InputError):
        load_function("package/model.py:broken").export()
    assert before == ([getattr(jax.config, option) for option in options], list(sys.path))


def test_two_exports_are_byte_identical(folder):
    """The same function exports to the same text again, in this process and in another one on another path."""
    first = exported_text(load_function("package/model.py:step").export())
    assert first == exported_text(load_function("package/model.py:step").export())
    moved = folder / "moved"
    (moved / "package").mkdir(parents=True)
    for name in ("model.py", "helper.py"):
        (moved / "package" / name).write_text((folder / "package" / name).read_text())
    program = (
        "from hlo_lower.ir.export.load import load_function\nfrom hlo_lower.ir.export.trace import exported_text\n"
        "print(end=exported_text(load_function('package/model.py:step').export()))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    other = subprocess.run(
        [sys.executable, "-c", program], cwd=moved, env=env, capture_output=True, text=True, check=True
    )
    assert first == other.stdout


# --- files, modules and settings --------------------------------------------------------------------------------


def test_a_function_of_a_file_and_of_a_module_are_the_same(folder, monkeypatch):
    """`FILE.py:fn` and `pkg.mod:fn` export the same text."""
    monkeypatch.syspath_prepend(str(folder / "package"))
    by_file = exported_text(load_function("package/model.py:step").export())
    assert by_file == exported_text(load_function("package.model:step").export())


def test_settings_replace_fields_of_the_config(folder):
    """Values are read as the type that the field has, and a preset is where the fields start from."""
    target = load_function("package/model.py:step", {"rows": "16", "scale": "2", "wide": "true", "dtype": "float16"})
    config = target.static["config"]
    assert (config.rows, config.scale, config.wide, config.dtype) == (16, 2.0, True, "float16")
    assert (target.args[0].shape, target.args[0].dtype) == ((16, 4), "float16")
    assert load_function("package/model.py:step", {"preset": "big"}).static["config"].rows == 64
    assert target.donate == (0,)


def test_a_file_without_a_config_takes_no_settings(folder):
    """Arguments may be a plain tuple; then there is nothing to set."""
    assert load_function("package/model.py:plain").args[0].shape == (3,)
    assert "package/model.py: no config to set rows in" in _refusal("package/model.py:plain", rows="3")


REFUSED = [
    ("model.py", "model.py: not the name of a function in a file or module"),
    ("package/modle.py:step", "package/modle.py: no such file\n  nearest: package/model.py"),
    ("package/:step", "package/: a folder, not a Python file"),
    ("package/notes.txt:step", 'package/notes.txt: not a Python file\n  facts:   its name ends in ".txt", not ".py"'),
    ("package/syntax.py:f", "package/syntax.py:2: not valid Python: SyntaxError: "),
    ("package/raises.py:f", "package/raises.py:3: running the file failed: KeyError: 'weights'"),
    (
        "package/imports.py:f",
        "package/imports.py:1: running the file failed: ModuleNotFoundError: No module named 'nowhere'",
    ),
    ("package/exits.py:f", "package/exits.py:2: running the file failed: SystemExit: 3"),
    ("package.nowhere:f", "package.nowhere: no module named package.nowhere"),
    (
        "package/model.py:stop",
        "package/model.py: no function stop\n  facts:   functions there: step, plain, broken, typo, step_args, bare",
    ),
    ("package/model.py:EXPORTS", "package/model.py: EXPORTS is not a function"),
    (
        "package/model.py:bare",
        "package/model.py: bare has no example arguments\n  facts:   EXPORTS names step, plain, broken, typo",
    ),
    (
        "package/alone.py:f",
        "package/alone.py: f has no example arguments\n  facts:   the file has no EXPORTS\n"
        '  next:    --shapes "f32[8, 4]" "i32[]" says them; or add to it: EXPORTS = {"f": ',
    ),
    ("package/list.py:f", "package/list.py: EXPORTS is not a dict\n  facts:   it is of type list"),
    (
        "package/keys.py:f",
        "package/keys.py: EXPORTS['f']: unknown key 'donated'\n"
        "  facts:   keys are args, config, presets, donate, x64, shapes",
    ),
    ("package/keys.py:g", "package/keys.py: EXPORTS['g']: not a dict with \"args\""),
    ("package/keys.py:h", "package/keys.py: EXPORTS['h']: \"args\" is a int, not a tuple"),
    ("package/keys.py:i", "package/keys.py: EXPORTS['i']: \"x64\" is neither True nor False"),
    ("package/keys.py:j", "package/keys.py: EXPORTS['j']: \"shapes\" is no tuple of texts\n  next:    write one per"),
    ("package/keys.py:k", "package/keys.py: EXPORTS['k']: \"shapes\" is no tuple of texts"),
]


@pytest.mark.parametrize(("spec", "says"), REFUSED, ids=[spec for spec, _ in REFUSED])
def test_a_function_that_cannot_be_loaded_is_refused(folder, spec, says):
    """Each message names the file, the line where there is one, what is wrong and what would do."""
    files = {
        "notes.txt": "no Python",
        "syntax.py": "x = 1\ndef f(:\n",
        "raises.py": "def load():\n    table = {}\n    return table['weights']\nload()\n",
        "imports.py": "import nowhere\n",
        "exits.py": "import sys\nsys.exit(3)\n",
        "alone.py": "def f(x):\n    return x\n",
        "list.py": "def f(x):\n    return x\nEXPORTS = ['f']\n",
        "keys.py": "def f(x):\n    return x\ng = h = i = j = k = f\n"
        "EXPORTS = {'f': {'args': (), 'donated': 1}, 'g': (), 'h': {'args': 3}, 'i': {'args': (), 'x64': 'yes'},\n"
        "           'j': {'args': (), 'shapes': 'n, 4'}, 'k': {'args': (), 'shapes': lambda: ('n', 4)}}\n",
    }
    for name, content in files.items():
        (folder / "package" / name).write_text(content)
    assert _refusal(spec).startswith(says)


SETTINGS = [
    (
        "colour",
        "red",
        "--set colour=red: package/model.py has no such setting\n"
        "  facts:   settings: rows=8, scale=1.0, wide=False, dtype=float32",
    ),
    ("rows", "many", "--set rows=many: 'many' is not a whole number\n  facts:   rows is 8 by default"),
    ("scale", "x", "--set scale=x: 'x' is not a number\n  facts:   scale is 1.0 by default"),
    ("wide", "2", "--set wide=2: '2' is not true or false\n  facts:   wide is False by default"),
    ("rows", "101", "--set rows=101: rows must be at most 100"),
    ("preset", "huge", "--set preset=huge: no such preset\n  facts:   presets: big"),
]


@pytest.mark.parametrize(("key", "value", "says"), SETTINGS, ids=[f"{k}={v}" for k, v, _ in SETTINGS])
def test_a_setting_that_does_not_fit_is_refused(folder, key, value, says):
    """Each message repeats the setting and says which there are or what the value may be."""
    assert says == _refusal("package/model.py:step", **{key: value})


def test_a_function_that_fails_while_it_is_traced_is_refused(folder):
    """The message has the user's line, the exception and the arguments, and the exception is its cause."""
    with pytest.raises(InputError) as caught:
        load_function("package/model.py:broken").export()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("package/model.py:27: tracing broken failed: AttributeError: ")
    assert lines[1] == "  facts:   arguments float32[3]"
    assert isinstance(caught.value.__cause__, AttributeError)
