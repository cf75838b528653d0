"""The element types of StableHLO, each declared once: width, family, range, NumPy's type, and the layout of a float.

These are facts of the specification, so that the judge may read them, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray


class Family(Enum):
    """What the elements of a type are."""

    TRUTH = "truth"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    OTHER = "other"  # quantized elements, tokens: nothing below is known of them


@dataclass(frozen=True)
class ElementType:
    """An element type.

    Attributes:
      name: as MLIR prints it ("f32", "ui8", "complex<f32>").
      family: what its elements are.
      bits: the width of an element.
      least, most: the ends of its finite numbers; of a complex type, here and below, those of its parts.
      dtype: NumPy's type, or that of ml_dtypes; None where XLA has no such type.
      exponent, mantissa: bits of a float's exponent and mantissa, the leading digit not counted.
      smallest: the smallest normal number of a float above 0.
      part: the name of the type of a complex number's parts; of any other type its own name.
    """

    name: str
    family: Family
    bits: int = 0
    least: float = 0
    most: float = 0
    dtype: np.dtype[Any] | None = None
    exponent: int = 0
    mantissa: int = 0
    smallest: float = 0.0
    part: str = ""

    @property
    def is_integer(self) -> bool:
        """Whether its elements are integers; truths are, of one bit."""
        return self.family in (Family.TRUTH, Family.SIGNED, Family.UNSIGNED)

    @property
    def is_signed(self) -> bool:
        """Whether it is an integer type with negative numbers."""
        return self.family is Family.SIGNED

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an integer type without negative numbers, and not truths."""
        return self.family is Family.UNSIGNED

    @property
    def is_float(self) -> bool:
        """Whether its elements are real floats."""
        return self.family is Family.FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether its elements are complex numbers."""
        return self.family is Family.COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Whether its elements are floats, or complex numbers of floats."""
        return self.family in (Family.FLOAT, Family.COMPLEX)

    @cached_property
    def integer_range(self) -> tuple[int, int] | None:
        """The least and the greatest value of an integer type; None for others."""
        return (int(self.least), int(self.most)) if self.is_integer else None

    @property
    def integer_bits(self) -> int:
        """The width of an integer type; 0 of others."""
        return self.bits if self.is_integer else 0

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number of a float type."""
        return 2.0**-self.mantissa

    @property
    def tiniest(self) -> float:
        """The smallest number of a float type above 0, subnormal ones included."""
        return self.smallest * 2.0**-self.mantissa

    @property
    def signed_type(self) -> str:
        """The signed integer type of as many bits."""
        return f"i{self.bits}"

    @property
    def unsigned_type(self) -> str:
        """The unsigned integer type of as many bits."""
        return f"ui{self.bits}"

    @property
    def compare_type(self) -> str:
        """How `stablehlo.compare` compares such elements."""
        if self.is_inexact:
            return "FLOAT"
        return "SIGNED" if self.is_signed else "UNSIGNED"

    def holds(self, other: "ElementType") -> bool:
        """Whether it is a float that holds each number of a real type, infinities and NaN apart."""
        if not self.is_float or self.least > other.least or self.most < other.most:
            return False
        if other.is_integer:
            return other.bits - other.is_signed <= self.mantissa + 1
        return other.is_float and self.mantissa >= other.mantissa and self.tiniest <= other.tiniest

    def wrap(self, value: int) -> int:
        """Wrap an integer modulo 2^bits into the range of this type."""
        low = value & ((1 << self.bits) - 1)
        return low - (1 << self.bits) if self.is_signed and low >> (self.bits - 1) else low


def _dtype(name: str) -> "np.dtype[Any] | None":
    """NumPy's type of a name, or that of ml_dtypes; None where the installed release has neither."""
    found = getattr(np, name, None) or getattr(ml_dtypes, name, None)
    return None if found is None else np.dtype(found)


def _integer(bits: int, *, is_signed: bool, name: str = "") -> ElementType:
    family, letters = (Family.SIGNED, "") if is_signed else (Family.UNSIGNED, "u")
    name = name or f"{letters}i{bits}"
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    dtype = _dtype(f"{letters}int{bits}") if name != "index" else None
    return ElementType(name, family, bits, least, most, dtype, part=name)


def _float(
    name: str, numpy: str, exponent: int, mantissa: int, *, most: float | None = None, smallest: float | None = None
) -> ElementType:
    """A float whose sign, exponent and mantissa are laid out as IEEE 754 does; what differs from it is given."""
    bias = (1 << exponent - 1) - 1
    most = (2.0 - 2.0**-mantissa) * 2.0**bias if most is None else most
    smallest = 2.0 ** (1 - bias) if smallest is None else smallest
    bits, dtype = 1 + exponent + mantissa, _dtype(numpy) if numpy else None
    return ElementType(name, Family.FLOAT, bits, -most, most, dtype, exponent, mantissa, smallest, name)


def _complex(of: ElementType) -> ElementType:
    """Complex numbers of two such floats."""
    bits, name = 2 * of.bits, f"complex<{of.name}>"
    return replace(of, name=name, family=Family.COMPLEX, bits=bits, dtype=_dtype(f"complex{bits}"), part=of.name)


def _element_types() -> Iterator[ElementType]:
    yield ElementType("i1", Family.TRUTH, 1, 0, 1, np.dtype(np.bool_), part="i1")
    for bits in (2, 4, 8, 16, 32, 64):
        yield _integer(bits, is_signed=True)
        yield _integer(bits, is_signed=False)
    yield _integer(64, is_signed=True, name="index")
    for wide in (_float("f64", "float64", 11, 52), _float("f32", "float32", 8, 23)):
        yield from (wide, _complex(wide))
    yield _float("f16", "float16", 5, 10)
    yield _float("bf16", "bfloat16", 8, 7)
    yield _float("f8E3M4", "float8_e3m4", 3, 4)
    yield _float("f8E4M3", "float8_e4m3", 4, 3)
    yield _float("f8E5M2", "float8_e5m2", 5, 2)
    # Types without infinities have numbers where IEEE 754 has those; a bias of its own moves the smallest number.
    yield _float("f8E4M3FN", "float8_e4m3fn", 4, 3, most=448.0)
    yield _float("f8E4M3FNUZ", "float8_e4m3fnuz", 4, 3, most=240.0, smallest=2.0**-7)
    yield _float("f8E4M3B11FNUZ", "float8_e4m3b11fnuz", 4, 3, most=30.0, smallest=2.0**-10)
    yield _float("f8E5M2FNUZ", "float8_e5m2fnuz", 5, 2, most=57344.0, smallest=2.0**-15)
    yield _float("f6E2M3FN", "", 2, 3, most=7.5)  # XLA has no floats of six bits
    yield _float("f6E3M2FN", "", 3, 2, most=28.0)
    yield _float("f4E2M1FN", "float4_e2m1fn", 2, 1, most=6.0)
    # Powers of two: neither a sign nor a zero.
    least, most = 2.0**-127, 2.0**127
    yield ElementType("f8E8M0FNU", Family.FLOAT, 8, least, most, _dtype("float8_e8m0fnu"), 8, 0, least, "f8E8M0FNU")


ELEMENT_TYPES = {declared.name: declared for declared in _element_types()}
"""Every element type by its printed name."""

_OF_DTYPES = {declared.dtype: declared for declared in ELEMENT_TYPES.values() if declared.dtype is not None}

WIDE_FLOATS = frozenset(e.name for e in ELEMENT_TYPES.values() if e.is_float and e.bits >= 16)
"""Floats with both zeros, infinities, NaN and normal arithmetic; those of 8 bits and less differ in all of these."""

HALF_FLOATS = frozenset(e.name for e in ELEMENT_TYPES.values() if e.is_float and e.bits == 16)
"""Floats of 16 bits: f32 has more than twice their digits and two more."""


COMPLEX = frozenset(e.name for e in ELEMENT_TYPES.values() if e.is_complex)


def element_type(name: str) -> ElementType:
    """The declaration of an element type; of the family OTHER for what StableHLO does not compute with."""
    return ELEMENT_TYPES.get(name) or ElementType(name, Family.OTHER, part=name)


def element_type_of(dtype: np.dtype[Any]) -> ElementType:
    """The declaration of a NumPy dtype's element type; of the family OTHER for strings, objects and the like."""
    return _OF_DTYPES.get(dtype) or ElementType(dtype.name, Family.OTHER, part=dtype.name)


def python_integers(array: NDArray[Any] | np.generic) -> NDArray[Any]:
    """Integers as Python's, which do not wrap; of a NumPy scalar, too, which `np.asarray(scalar, object)` keeps."""
    return np.asarray(array).astype(object)


def type_range(name: str) -> tuple[int, int] | None:
    """The least and the greatest value of an integer type, truths and `index` included; None for others."""
    return element_type(name).integer_range
