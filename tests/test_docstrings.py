"""The docstrings of the public names: each says what comes back, and has an example that runs as it stands."""

import doctest
import inspect
import textwrap

import jax
import numpy as np
import pytest

import hlo_lower as hl

DECODE = """\
func.func public @main(%cache: tensor<8x4xf32>, %pos: tensor<1xi32>, %row: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = "stablehlo.scatter"(%cache, %pos, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""

ALIASES = {"Inputs", "Level", "Source", "TargetLike"}
"""Names for annotations, which are no objects with a docstring of their own."""

NAMES = sorted(set(hl.__all__) - ALIASES - {"__version__"})
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(hl, name))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module that the examples read."""
    (tmp_path / "decode.mlir").write_text(DECODE)
    monkeypatch.chdir(tmp_path)


def failures(docstring):
    """What running the examples of a docstring gives that it does not show."""
    globs = {"hl": hl, "np": np, "jax": jax}
    test = doctest.DocTestParser().get_doctest(textwrap.dedent(docstring), globs, "docstring", None, 0)
    assert test.examples, "no example"
    told = []
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    return "".join(told)


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
    docstring = getattr(hl, name).__doc__
    assert [part for part in ("Args:", "Returns:", "Raises:") if f"    {part}\n" not in docstring] == []


def test_the_functions_are_those_that_are_documented():
    """What is a function is not mistaken for a class."""
    assert {"lower", "classify", "verify", "jit", "export", "read", "bind", "rules", "costs"} <= set(FUNCTIONS)
