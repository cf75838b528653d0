"""A module that the interpreter runs in the place of XLA, where XLA's compiler ends the process on it."""

from collections.abc import Sequence
from math import prod
from typing import Any

from numpy.typing import NDArray

from hlo_lower import mlir
from hlo_lower.verify.interpreter import Interpreter, InterpreterError
from hlo_lower.verify.run import CannotRunError, read_signature

Array = NDArray[Any]

MAX_INTERPRETED = 1 << 18
"""Elements up to which the interpreter is used."""


class Interpreted:
    """A module with the interface of a `run.Executable`.

    Args:
      text: the module.
      interpreter: what runs it.
      reason: why XLA does not.

    Raises:
      CannotRunError: its signature has no form in JAX, or it is too large.
    """

    def __init__(self, text: str, interpreter: Interpreter, reason: str) -> None:
        self._text, self._interpreter, self._reason = text, interpreter, reason
        self.arguments = read_signature(mlir.parse_module(text, mlir.make_context())).arguments
        if sum(prod(a.shape) for a in self.arguments) > MAX_INTERPRETED:
            raise CannotRunError(f"XLA: {reason}; the interpreter: more than {MAX_INTERPRETED} elements")

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results, as NumPy arrays.

        Raises:
          CannotRunError: the interpreter does not take it.
        """
        try:
            return self._interpreter.run(self._text, arguments)
        except InterpreterError as error:
            raise CannotRunError(f"XLA: {self._reason}; the interpreter: {error}") from None
