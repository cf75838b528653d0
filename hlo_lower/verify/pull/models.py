"""Inputs of a model: what z3 says of two outputs that it can tell apart, as arrays to run."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import ElementType
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Term, is_truth

MOST_BYTES = 1 << 28
"""Bytes of an argument up to which it is made."""

Array = NDArray[Any]


def inputs_of(model: Any, types: Sequence[tuple[tuple[int, ...], ElementType]]) -> tuple[Array, ...]:
    """The arguments that a model stands for; none where NumPy has no such type, or one is too large.

    Args:
      model: z3's.
      types: the shape and element type of each argument. An element that the model says nothing of is 0.
    """
    told = {str(decl.name()).split(":")[0]: decl for decl in model.decls()}
    found: list[Array] = []
    for place, (shape, element) in enumerate(types):
        dtype = element.dtype
        if dtype is None or dtype.itemsize * 8 != max(element.bits, 8) or prod(shape) * dtype.itemsize > MOST_BYTES:
            return ()
        decl = told.get(f"argument {place}")
        interpreted: Any = None if decl is None else model[decl]
        array = np.zeros(shape, dtype)
        if hasattr(interpreted, "entry"):
            array[...] = _number(interpreted.else_value(), element)
            for k in range(interpreted.num_entries()):
                entry = interpreted.entry(k)
                at = tuple(entry.arg_value(d).as_long() for d in range(entry.num_args()))
                if all(place < size for place, size in zip(at, shape, strict=True)):
                    array[at] = _number(entry.value(), element)
        elif interpreted is not None:
            array[...] = _number(interpreted, element)
        found.append(array)
    return tuple(found)


def _number(value: Term, element: ElementType) -> Any:
    """A numeral or truth of z3 as a NumPy number; 0 where a model leaves it open."""
    assert element.dtype is not None
    if is_truth(element):
        return bool(z3.is_true(value))
    bits = value.as_long() if z3.is_bv_value(value) else 0
    raw = bits if element.bits >= 8 else int(element.wrap(bits)) & 0xFF
    return np.frombuffer(int(raw).to_bytes(element.dtype.itemsize, "little"), element.dtype)[0]
