"""Concrete arguments of a solver's model, and the results that it stands for, as NumPy arrays.

What the solver says of an uninterpreted float is only which ones are the same and which is a constant of the module.
The others are drawn: numbers first, then NaN, infinities and signed zeros among them. Which ones are the same may be
what the difference rests on, or may hide it; so every second draw keeps to it, and the others draw each element.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import ElementKind, ProofType
from hlo_lower.verify.proof.query import Typed
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.terms import lifted

Array = NDArray[Any]

DRAWS = 12
"""How many draws are worth trying."""

_LITERAL = re.compile(r"(\S+) 0x([0-9a-f]+)")
_SPECIAL = (-0.0, np.nan, np.inf, -np.inf, 0.0, 1.0)


class Drawing:
    """Numbers for what a model holds.

    Args:
      model: of the solver.
      number: which of the draws.
    """

    def __init__(self, model: Any, number: int) -> None:
        self._model, self._rng = model, np.random.default_rng(number)
        self._is_special, self._is_free = number >= DRAWS // 2, number % 2 == 1
        self._floats: dict[str, Any] = {}
        for declaration in model.decls():
            found = _LITERAL.fullmatch(str(declaration.name()))
            if found and declaration.arity() == 0:
                dtype = _dtype(found[1])
                bits = int(found[2], 16).to_bytes(dtype.itemsize, "little")
                self._floats[str(model[declaration])] = np.frombuffer(bits, dtype)[0]

    def argument(self, typed: Typed) -> Array:
        """An argument as an array.

        Raises:
          Beyond: NumPy does not know its element type.
        """
        found = np.empty(typed.tensor.shape, _dtype(typed.element.name))
        for at in np.ndindex(*found.shape):
            value = None if self._is_free else self._known(typed.tensor[at], typed.element)
            if value is None and typed.element.kind is not ElementKind.FLOAT:
                value = self._known(typed.tensor[at], typed.element)
            found[at] = self._drawn(typed.tensor[at], typed.element) if value is None else value
        return found

    def expected(self, typed: Typed) -> Array | None:
        """A result as an array, after all arguments were drawn; None where it is computed with floats."""
        found = np.empty(typed.tensor.shape, _dtype(typed.element.name))
        for at in np.ndindex(*found.shape):
            value = self._known(typed.tensor[at], typed.element)
            if value is None or (self._is_free and typed.element.kind is ElementKind.FLOAT):
                return None
            found[at] = value
        return found

    def _known(self, term: Any, element: ProofType) -> Any:
        """The number that the model has for a term; None for a float that is neither a constant nor drawn yet."""
        value = self._model.eval(lifted(term, element), model_completion=True)
        if element.kind is ElementKind.TRUTH:
            return bool(z3.is_true(value))
        if element.kind is ElementKind.INTEGER:
            return element.declared.wrapped(value.as_long())
        if element.width:
            dtype = _dtype(element.name)
            return np.frombuffer(int(value.as_long()).to_bytes(dtype.itemsize, "little"), dtype)[0]
        return self._floats.get(str(value))

    def _drawn(self, term: Any, element: ProofType) -> Any:
        """A float, the same one wherever the model has the same."""
        drawn = self._rng.choice(_SPECIAL) if self._is_special else self._rng.normal() * 10
        number = np.asarray(drawn).astype(_dtype(element.name))[()]
        if not self._is_free:
            self._floats[str(self._model.eval(lifted(term, element), model_completion=True))] = number
        return number


def _dtype(name: str) -> np.dtype[Any]:
    found = mlir.dtype_of(name)
    if found is None:
        raise Beyond(f"a number of type {name}")
    return found
