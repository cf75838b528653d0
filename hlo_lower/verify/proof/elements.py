"""Element types as the proof sees them: truths, integers of a width, and floats of which nothing is known.

A float is an element of an uninterpreted sort, so that whatever is proved holds of every value, NaN and -0.0 included,
and of every number format. Only where a module looks at the bits of floats (`bitcast_convert`) are they bit-vectors;
what is computed with them is uninterpreted all the same.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from hlo_lower.base.element_types import WIDE_FLOATS, ElementType, element_type
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.solver import z3


class ElementKind(Enum):
    """What is known of the values of an element type."""

    TRUTH = "truth"
    INTEGER = "integer"
    FLOAT = "float"


@dataclass(frozen=True)
class ProofType:
    """An element type as the solver has it.

    Attributes:
      declared: the element type.
      kind: what is known of its values.
      width: in bits; 0 for an uninterpreted sort.
    """

    declared: ElementType
    kind: ElementKind
    width: int

    @property
    def name(self) -> str:
        """Its element type as printed ("f32", "ui8")."""
        return self.declared.name

    @property
    def sort(self) -> Any:
        """The sort of its values in z3."""
        if self.kind is ElementKind.TRUTH:
            return z3.BoolSort()
        return z3.BitVecSort(self.width) if self.width else z3.DeclareSort(self.name)


TRUTH = ProofType(element_type("i1"), ElementKind.TRUTH, 1)


@cache
def element_of(name: str, *, floats_as_bits: bool = False) -> ProofType:
    """An element type by its printed name.

    Raises:
      Beyond: it is neither a truth, an integer nor a float (quantized types, tokens).
    """
    declared = element_type(name)
    if name == "i1":
        return TRUTH
    if declared.is_integer and name != "index":
        return ProofType(declared, ElementKind.INTEGER, declared.bits)
    if declared.is_inexact:
        if floats_as_bits and name not in WIDE_FLOATS:
            raise Beyond(f"the bits of {name}")
        return ProofType(declared, ElementKind.FLOAT, declared.bits if floats_as_bits else 0)
    raise Beyond(f"element type {name}")
