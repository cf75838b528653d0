"""The interpreter's child process: what it cannot do is an error, never the end of the caller."""

import sys

import numpy as np
import pytest

from hlo_lower.verify.judges.interpreter import Interpreter, InterpreterError

ADD = """func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {
  %r = stablehlo.add %a, %a : tensor<2xi32>
  return %r : tensor<2xi32>
}"""
CUSTOM = """func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {
  %r = stablehlo.custom_call @nobody_knows(%a) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}"""


@pytest.fixture(scope="module")
def interpreter():
    """One child for this file."""
    with Interpreter() as child:
        yield child


def doubles(interpreter: Interpreter) -> bool:
    """Whether it answers rightly."""
    [result] = interpreter.run(ADD, [np.asarray([1, 2], np.int32)])
    return result.tolist() == [2, 4]


def test_one_child_serves_all(interpreter):
    """The same process runs one module after the other."""
    assert doubles(interpreter)
    first = interpreter._child
    assert doubles(interpreter)
    assert interpreter._child is first


@pytest.mark.parametrize("text", [CUSTOM, "func.func @main("])
def test_what_it_does_not_support_is_an_error(interpreter, text):
    """An unsupported op and broken text raise InterpreterError, and the next module runs."""
    with pytest.raises(InterpreterError):
        interpreter.run(text, [np.asarray([1, 2], np.int32)])
    assert doubles(interpreter)


def test_a_dead_child_is_replaced(interpreter):
    """When the child dies, the run in question fails with an error and the next one has a new child."""
    assert doubles(interpreter)
    dead = interpreter._child
    dead.kill()
    dead.wait()
    with pytest.raises(InterpreterError, match="died"):
        doubles(interpreter)
    assert doubles(interpreter)
    assert interpreter._child is not dead


def test_a_slow_module_is_given_up(monkeypatch):
    """A module that takes longer than the limit is an error, and the child is ended."""
    monkeypatch.setattr(sys.modules[Interpreter.__module__], "TIME_LIMIT", 0.01)
    with Interpreter() as child:
        with pytest.raises(InterpreterError, match="no answer"):
            doubles(child)
        assert child._child is None


def test_closing_ends_the_child():
    """Leaving the context ends the process; closing twice does no harm."""
    with Interpreter() as child:
        process = child._start()
    assert process.poll() is not None
    child.close()
