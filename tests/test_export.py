"""hlo_lower.ir.export: functions of files and modules, settings, symbolic shapes, locations, and what it refuses."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
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


def test_arguments_are_named_as_in_python_and_donated_ones_are_marked():
    """A name has the path into a pytree; donate=(0,) marks the first argument alone, and a jitted function's own."""
    step, shapes = (lambda x, y: (x + 1, y * 2)), (_shape(3), _shape(3))
    for exported in (export(step, *shapes, donate=(0,)), export(jax.jit(step, donate_argnums=(0,)), *shapes)):
        signature = next(line for line in exported_text(exported).splitlines() if "@main" in line)
        assert signature.count("tf.aliasing_output") == 1
        assert signature.index("tf.aliasing_output") < signature.index("%arg1")
    step = lambda params, position: params["layers"][0]["w"] * position  # noqa: E731
    text = exported_text(export(step, {"layers": [{"w": _shape(3)}]}, jax.ShapeDtypeStruct((), jnp.float32)))
    assert "loc(\"params['layers'][0]['w']\")" in text
    assert 'loc("position")' in text


def test_shapes_make_symbolic_dims():
    """One symbolic shape per argument, for each leaf of it, or one per leaf; equal names are equal sizes."""
    for shapes in (["n, 4"], ["n, 4", "n, _"]):
        exported = export(lambda t: t["a"] + t["b"], {"a": _shape(3), "b": _shape(3)}, shapes=shapes)
        assert [str(a.shape) for a in (*exported.in_avals, *exported.out_avals)] == ["(n, 4)"] * 3
        assert "tensor<?x4xf32>" in exported_text(exported)
    with pytest.raises(InputError) as caught:
        export(jnp.add, _shape(3), _shape(2), shapes=["b, 4", "b, 4", "b, 4"])
    assert str(caught.value).splitlines() == [
        "add: 3 shapes for 2 arguments",
        "  facts:   arguments float32[3,4], float32[2,4]",
        '  next:    give one shape per argument, "..." for those that stay as they are',
    ]


@pytest.mark.skipif(not mlir.XLA_TAKES_CHLO, reason="the XLA of this jax reads no chlo")
@pytest.mark.parametrize("shapes", [None, ["n, 8"]])
def test_chlo_stays_unless_plain_stablehlo_is_asked_for(shapes):
    """The ops that JAX lowers to are in the module, below what computes symbolic sizes; both forms compute the same."""

    def gelu_and_top(x):
        return jax.nn.gelu(x, approximate=False), jax.lax.top_k(x, 2), x.reshape(-1)

    x = np.linspace(-4, 4, 32, dtype=np.float32).reshape(4, 8)
    kept, plain = (export(gelu_and_top, x, shapes=shapes, plain_stablehlo=asked) for asked in (False, True))
    chlo = [set(re.findall(r" (chlo\.\w+)", exported_text(one))) for one in (kept, plain)]
    assert chlo == [{"chlo.erfc", "chlo.top_k"}, set()]
    assert ("_wrapped_jax_export_main" in exported_text(kept)) == (shapes is not None)
    again = jax.export.deserialize(kept.serialize())
    results = [jax.tree.leaves(jax.jit(one.call)(x)) for one in (kept, plain, again)]
    assert all(np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(*results, strict=True))


WIDE = """\
import jax, jax.numpy as jnp

def take(x, positions):
    return x[positions], jnp.arange(2)

ARGS = (jax.ShapeDtypeStruct((3,), "float32"), jax.ShapeDtypeStruct((2,), jnp.dtype("int64")))
narrow = take
EXPORTS = {"take": {"args": ARGS, "x64": True}, "narrow": {"args": ARGS}}
"""


def test_an_entry_says_that_64_bit_types_are_on(folder):
    """With "x64" in its entry a function is traced with 64-bit types, and JAX is as before; else they are refused."""
    with pytest.raises(InputError, match=r"an argument is int64\[3\], and JAX runs with 64-bit types off"):
        export(lambda x: x, jax.ShapeDtypeStruct((3,), np.int64))
    (folder / "wide.py").write_text(WIDE)
    exported = load_function("wide.py:take").export()
    assert [str(aval.dtype) for aval in (*exported.in_avals, *exported.out_avals)] == ["float32", "int64"] * 2
    assert jnp.arange(2).dtype == jnp.int32
    with pytest.raises(InputError, match=r'put "x64": True in its entry of EXPORTS'):
        load_function("wide.py:narrow").export()


def test_locations_are_seen_from_the_current_folder(folder, monkeypatch):
    """Files below the current folder have their relative path, others their name alone; no folder above is named."""
    text = exported_text(load_function("package/model.py:step").export())
    assert "module @jit_step" in text
    assert 'loc("package/helper.py":2:' in text
    assert 'loc("package/model.py":21:' in text
    assert not [line for line in text.splitlines() if 'loc("/' in line]
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    elsewhere = exported_text(load_function(f"{folder}/package/model.py:step").export())
    assert 'loc("model.py":21:' in elsewhere
    assert str(folder) not in text + elsewhere


def test_two_exports_are_byte_identical(folder, monkeypatch):
    """The same text comes again from the file, from its module, and in another process on another path."""
    first = exported_text(load_function("package/model.py:step").export())
    assert first == exported_text(load_function("package/model.py:step").export())
    moved = folder / "moved"
    shutil.copytree(folder / "package", moved / "package")
    program = (
        "from hlo_lower.ir.export.load import load_function\nfrom hlo_lower.ir.export.trace import exported_text\n"
        "print(end=exported_text(load_function('package/model.py:step').export()))"
    )
    how = {"cwd": moved, "env": {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, "text": True}
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, **how)
    assert first == other.stdout
    monkeypatch.syspath_prepend(str(folder / "package"))
    assert first == exported_text(load_function("package.model:step").export())


def test_settings_replace_fields_of_the_config(folder):
    """Values are read as the type that the field has, and a preset is where the fields start from."""
    target = load_function("package/model.py:step", {"rows": "16", "scale": "2", "wide": "true", "dtype": "float16"})
    config = target.static["config"]
    assert (config.rows, config.scale, config.wide, config.dtype) == (16, 2.0, True, "float16")
    assert (target.args[0].shape, target.args[0].dtype) == ((16, 4), "float16")
    assert load_function("package/model.py:step", {"preset": "big"}).static["config"].rows == 64
    assert target.donate == (0,)
    assert load_function("package/model.py:plain").args[0].shape == (3,)  # without a config there is nothing to set
    assert "package/model.py: no config to set rows in" in _refusal("package/model.py:plain", rows="3")


RUNNING = "running the file failed:"
THERE = "facts:   functions there: step, plain, broken, typo, step_args, bare"
NO_EXPORTS = """facts:   the file has no EXPORTS
  next:    --shapes "f32[8, 4]" "i32[]" says them; or add to it: EXPORTS = {"f": """
KEYS = "facts:   keys are args, config, presets, donate, x64, shapes"
REFUSED = [  # a file of the package and a function; what the message says behind the name of the file
    ("modle.py:step", ": no such file\n  nearest: package/model.py"),
    (":step", ": a folder, not a Python file"),
    ("notes.txt:step", ': not a Python file\n  facts:   its name ends in ".txt", not ".py"'),
    ("syntax.py:f", ":2: not valid Python: SyntaxError: "),
    ("raises.py:f", f":3: {RUNNING} KeyError: 'weights'"),
    ("exits.py:f", f":2: {RUNNING} SystemExit: 3"),
    ("model.py:stop", f": no function stop\n  {THERE}"),
    ("model.py:EXPORTS", ": EXPORTS is not a function"),
    ("model.py:bare", ": bare has no example arguments\n  facts:   EXPORTS names step, plain, broken, typo"),
    ("alone.py:f", f": f has no example arguments\n  {NO_EXPORTS}"),
    ("list.py:f", ": EXPORTS is not a dict\n  facts:   it is of type list"),
    ("keys.py:f", f": EXPORTS['f']: unknown key 'donated'\n  {KEYS}"),
    ("keys.py:g", ": EXPORTS['g']: not a dict with \"args\""),
    ("keys.py:h", ": EXPORTS['h']: \"args\" is a int, not a tuple"),
    ("keys.py:i", ": EXPORTS['i']: \"x64\" is neither True nor False"),
    ("keys.py:j", ": EXPORTS['j']: \"shapes\" is not a tuple of shapes\n  next:    write one per"),
]


@pytest.mark.parametrize(("spec", "says"), REFUSED, ids=[spec for spec, _ in REFUSED])
def test_a_function_that_cannot_be_loaded_is_refused(folder, spec, says):
    """Each message names the file, the line where there is one, what is wrong and what would do."""
    files = {
        "notes.txt": "no Python",
        "syntax.py": "x = 1\ndef f(:\n",
        "raises.py": "def load():\n    table = {}\n    return table['weights']\nload()\n",
        "exits.py": "import sys\nsys.exit(3)\n",
        "alone.py": "def f(x):\n    return x\n",
        "list.py": "def f(x):\n    return x\nEXPORTS = ['f']\n",
        "keys.py": "def f(x):\n    return x\ng = h = i = j = f\n"
        "EXPORTS = {'f': {'args': (), 'donated': 1}, 'g': (), 'h': {'args': 3}, 'i': {'args': (), 'x64': 'yes'},\n"
        "           'j': {'args': (), 'shapes': 'n, 4'}}\n",
    }
    for name, content in files.items():
        (folder / "package" / name).write_text(content)
    assert _refusal(f"package/{spec}").startswith(f"package/{spec.split(':')[0]}{says}")


OTHERS = "facts:   settings: rows=8, scale=1.0, wide=False, dtype=float32"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("colour=red", f"package/model.py has no such setting\n  {OTHERS}"),
        ("rows=many", "'many' is not a whole number\n  facts:   rows is 8 by default"),
        ("scale=x", "'x' is not a number\n  facts:   scale is 1.0 by default"),
        ("wide=2", "'2' is not true or false\n  facts:   wide is False by default"),
        ("rows=101", "rows must be at most 100"),
        ("preset=huge", "no such preset\n  facts:   presets: big"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(folder, setting, says):
    """Each message repeats the setting and says which there are or what the value may be."""
    name, value = setting.split("=")
    assert _refusal("package/model.py:step", **{name: value}) == f"--set {setting}: {says}"


def test_a_function_that_fails_while_it_is_traced_is_refused(folder):
    """The message has the user's line and the arguments; JAX's options and Python's import path are as before."""
    options = ("jax_include_full_tracebacks_in_locations", "jax_hlo_source_file_canonicalization_regex")
    before = [getattr(jax.config, option) for option in options], list(sys.path)
    load_function("package/model.py:step").export()
    with pytest.raises(InputError) as caught:
        load_function("package/model.py:broken").export()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("package/model.py:27: tracing broken failed: AttributeError: ")
    assert lines[1] == "  facts:   arguments float32[3]"
    assert isinstance(caught.value.__cause__, AttributeError)
    assert before == ([getattr(jax.config, option) for option in options], list(sys.path))
