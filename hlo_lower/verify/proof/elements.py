"""Element types as the proof sees them: truths, integers of a width, and floats of which nothing is known.

A float is an element of an uninterpreted sort, so that whatever is proved holds of every value, NaN and -0.0 included,
and of every number format. Only where a module looks at the bits of floats (`bitcast_convert`) are they bit-vectors;
what is computed with them is uninterpreted all the same.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.solver import z3


class ElementKind(Enum):
    """What is known of the values of an element type."""

    TRUTH = "truth"
    INTEGER = "integer"
    FLOAT = "float"


@dataclass(frozen=True)
class ElementType:
    """An element type.

    Attributes:
      name: as printed ("f32", "ui8").
      kind: what is known of its values.
      width: in bits; 0 for an uninterpreted sort.
      is_signed: of an integer.
    """

    name: str
    kind: ElementKind
    width: int
    is_signed: bool = False

    @property
    def sort(self) -> Any:
        """The sort of its values in z3."""
        if self.kind is ElementKind.TRUTH:
            return z3.BoolSort()
        return z3.BitVecSort(self.width) if self.width else z3.DeclareSort(self.name)

    @property
    def least(self) -> int:
        """The least value of an integer type."""
        return -(1 << (self.width - 1)) if self.is_signed else 0

    @property
    def greatest(self) -> int:
        """The greatest value of an integer type."""
        return (1 << (self.width - self.is_signed)) - 1

    def wrapped(self, value: int) -> int:
        """An integer modulo 2^width, in the type's range."""
        low = value & ((1 << self.width) - 1)
        return low - (1 << self.width) if self.is_signed and low >> (self.width - 1) else low


TRUTH = ElementType("i1", ElementKind.TRUTH, 1)

_INTEGER = re.compile(r"(u?)i(\d+)")
_FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


@cache
def element_of(name: str, *, floats_as_bits: bool = False) -> ElementType:
    """An element type by its printed name.

    Raises:
      Beyond: it is neither a truth, an integer nor a float (quantized types, tokens).
    """
    if name == "i1":
        return TRUTH
    if found := _INTEGER.fullmatch(name):
        return ElementType(name, ElementKind.INTEGER, int(found[2]), not found[1])
    if re.match(r"(bf|f|complex<f)\d", name):
        if floats_as_bits and name not in _FLOAT_BITS:
            raise Beyond(f"the bits of {name}")
        return ElementType(name, ElementKind.FLOAT, _FLOAT_BITS[name] if floats_as_bits else 0)
    raise Beyond(f"element type {name}")
