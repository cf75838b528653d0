"""The docstrings of the public names: each says what comes back, and has an example that runs as it stands."""

import ast
import doctest
import inspect
import re
import textwrap
from pathlib import Path

import jax
import numpy as np
import pytest
from decode_module import ROW

import hlo_lower as hl

PACKAGE = Path(hl.__file__).parent

ALIASES = {"Inputs", "Level", "Source", "TargetLike"}
"""Names for annotations, which are no objects with a docstring of their own."""

NAMES = sorted(set(hl.__all__) - ALIASES - {"__version__"})
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(hl, name))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module that the examples read."""
    (tmp_path / "decode.mlir").write_text(ROW)
    monkeypatch.chdir(tmp_path)


def failures(docstring):
    """What running the examples of a docstring gives that it does not show."""
    globs = {"hl": hl, "np": np, "jax": jax}
    test = doctest.DocTestParser().get_doctest(textwrap.dedent(docstring), globs, "docstring", None, 0)
    assert test.examples, "no example"
    told = []
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    return "".join(told)


@pytest.mark.few(11)
@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, folder):
    """Each public function and class has an example in its docstring, which gives what it shows."""
    docstring = inspect.cleandoc(getattr(hl, name).__doc__)
    assert "Example:\n" in docstring
    assert failures(docstring) == ""


def test_an_example_that_is_wrong_is_found(folder):
    """One that shows something else fails, and a docstring without one does."""
    assert "Expected:" in failures('>>> hl.lower("decode.mlir").scatters_left\n1')
    with pytest.raises(AssertionError, match="no example"):
        failures("Nothing runs here.")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_gives_and_raises(name):
    """Args, Returns and Raises stand in the docstring of each public function."""
    assert {"lower", "classify", "verify", "jit", "export", "read", "bind", "rules", "costs"} <= set(FUNCTIONS)
    docstring = getattr(hl, name).__doc__
    assert [part for part in ("Args:", "Returns:", "Raises:") if f"    {part}\n" not in docstring] == []


def misnamed(source):
    """What docstrings of functions tell of among their Args that is no parameter, with the function's name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        docstring = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
        if docstring is None or "Args:\n" not in docstring or node.args.kwarg:
            continue
        args = re.split(r"\n(?=\S)", docstring.split("Args:\n")[1])[0]
        told = re.findall(r"^  (?! )([\w, *]+?)(?: \([^)]*\))?:", args, re.MULTILINE)
        own = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg) if a}
        names = {name.strip(" *") for line in told for name in line.split(",")}
        found += [(node.name, name) for name in sorted(names - own)]
    return found


@pytest.mark.few(14)
@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_what_is_documented_is_a_parameter(folder):
    """A parameter that was renamed has its new name in the docstring; one that is none would be found."""
    wrong = 'def bind(source, costs):\n    """Bind.\n\n    Args:\n      source: it.\n      sizes: those.\n    """\n'
    assert misnamed(wrong) == [("bind", "sizes")]
    assert [found for path in sorted(folder.glob("*.py")) for found in misnamed(path.read_text())] == []
