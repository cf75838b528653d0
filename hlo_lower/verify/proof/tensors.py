"""Tensors of terms: NumPy arrays of objects, one term an element."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.terms import Term, chosen

Tensor: TypeAlias = NDArray[Any]
Place: TypeAlias = tuple[int, ...]

MOST_ELEMENTS = 4096
"""Elements of one tensor beyond which nothing is tried."""


def places(shape: Sequence[int]) -> Iterator[Place]:
    """Every place of a shape, in row-major order.

    Raises:
      Beyond: there are too many.
    """
    if np.prod(shape, dtype=object) > MOST_ELEMENTS:
        raise Beyond(f"a tensor of more than {MOST_ELEMENTS} elements")
    return product(*map(range, shape))


def built(shape: Sequence[int], element_at: Callable[[Place], Term]) -> Tensor:
    """A tensor from a function of the place.

    Raises:
      Beyond: it is too large.
    """
    found = np.empty(tuple(shape), object)
    for place in places(shape):
        found[place] = element_at(place)
    return found


def scalar(term: Term) -> Tensor:
    """A tensor of rank 0."""
    found = np.empty((), object)
    found[()] = term
    return found


def as_tensor(found: Term) -> Tensor:
    """What NumPy gives where it moves elements: of a tensor of rank 0 the element, and no array."""
    return cast(Tensor, found) if isinstance(found, np.ndarray) else scalar(found)


def mapped(shape: Sequence[int], function: Callable[..., Term], *tensors: Tensor) -> Tensor:
    """A function of each place's terms; a tensor of rank 0 stands for itself everywhere.

    Raises:
      Beyond: it is too large.
    """
    spread = [np.broadcast_to(tensor, tuple(shape)) for tensor in tensors]
    return built(shape, lambda place: function(*(tensor[place] for tensor in spread)))


def selected(condition: Tensor, yes: Tensor, no: Tensor, element: ProofType) -> Tensor:
    """Each element of `yes` where the condition holds, else of `no`; a condition of rank 0 is for all."""

    def pick(here: Term, a: Term, b: Term) -> Term:
        return chosen(here, a, b, element)

    return mapped(yes.shape, pick, condition, yes, no)
