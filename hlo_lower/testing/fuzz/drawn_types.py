"""The element types of fuzzed scatters: what may be computed in each, and how a constant is written."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hlo_lower.base.element_types import ELEMENT_TYPES, element_type, type_range

Class = Literal["float", "signed", "unsigned", "bool", "complex", "scale"]
"""What is legal on a type; "scale" is f8E8M0FNU, powers of two without a sign or a zero, which are only moved."""

FLOATS = (
    *("f32", "f64", "f16", "bf16"),
    *("f8E4M3FN", "f8E5M2", "f8E4M3", "f8E3M4", "f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2FNUZ", "f4E2M1FN"),
)
SIGNED = ("i32", "i64", "i16", "i8", "i4", "i2")
UNSIGNED = ("ui32", "ui64", "ui16", "ui8", "ui4", "ui2")
COMPLEX = ("complex<f32>", "complex<f64>")

INDEX_TYPES = ("i32", "i64", "i16", "i8", "ui32", "ui64", "ui16", "ui8")

PACKED = frozenset(e.name for e in ELEMENT_TYPES.values() if e.bits < 8 and e.name != "i1")
"""Types of less than a byte."""

WIDER = {
    "f16": ("f32", "f64"),
    "bf16": ("f32",),
    "f32": ("f64",),
    "f8E4M3FN": ("f32", "bf16", "f16"),
    "f8E5M2": ("f16", "f32"),
    "i4": ("i8", "i32"),
    "i8": ("i32", "i16"),
    "i16": ("i32",),
    "i32": ("i64",),
    "ui4": ("ui8",),
    "ui8": ("ui32",),
    "ui16": ("ui64",),
    "complex<f32>": ("complex<f64>",),
}
"""Promotions in which the wider type holds every value of the narrow one (trap 24)."""


@dataclass(frozen=True)
class DrawnType:
    """An element type."""

    name: str  # as MLIR prints it
    kind: Class  # what may be computed in it

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type; ml_dtypes' for what NumPy has not."""
        dtype = element_type(self.name).dtype
        assert dtype is not None, self.name
        return dtype

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type."""
        limits = type_range(self.name)
        assert limits is not None, self.name
        return limits

    def constant(self, value: int) -> np.ndarray[Any, Any]:
        """A scalar of this type that stands for a small integer."""
        if self.kind == "bool":
            return np.asarray(bool(value & 1))
        if self.kind == "scale":
            return np.asarray(2.0 ** (value % 4)).astype(self.dtype)
        if self.kind in ("signed", "unsigned"):
            value = element_type(self.name).wrap(value)
        return np.asarray(value).astype(self.dtype)

    def literal(self, value: int) -> str:
        """The same as the text of a `dense<...>` element."""
        scalar = self.constant(value)
        if self.kind == "bool":
            return str(bool(scalar)).lower()
        if self.kind == "complex":
            return f"({float(scalar.real)}, {float(scalar.imag)})"
        return str(float(scalar)) if self.kind in ("float", "scale") else str(int(scalar))


OPEN = -1
"""An extent that is known at run time only."""


def tensor_type(shape: tuple[int, ...], element: str) -> str:
    """`tensor<shape x element>`."""
    return f"tensor<{'x'.join((*('?' if size == OPEN else str(size) for size in shape), element))}>"


def _all() -> dict[str, DrawnType]:
    kinds: dict[Class, tuple[str, ...]] = {
        "float": FLOATS,
        "signed": SIGNED,
        "bool": ("i1",),
        "unsigned": UNSIGNED,
        "complex": COMPLEX,
        "scale": ("f8E8M0FNU",),
    }
    known = {name: DrawnType(name, kind) for kind, names in kinds.items() for name in names}
    return {name: element for name, element in known.items() if element_type(name).dtype is not None}


TYPES = _all()
"""Every type that NumPy has here, the simplest first."""

ANY = tuple(TYPES)
ORDERED = tuple(name for name, t in TYPES.items() if t.kind in ("float", "signed", "unsigned"))
NUMBERS = tuple(name for name, t in TYPES.items() if t.kind in ("float", "signed", "unsigned", "complex"))
INTEGERS = tuple(name for name, t in TYPES.items() if t.kind in ("signed", "unsigned"))
