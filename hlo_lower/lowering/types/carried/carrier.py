"""What an element type is carried in: the same bits or number in another type, a float rounded back, or two parts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from hlo_lower.base.element_types import HALF_FLOATS, element_type
from hlo_lower.ir import mlir
from hlo_lower.ops.names import BITCAST_CONVERT, CONVERT

WIDER = {
    "i1": ("i32", "i64"),
    "i8": ("i32", "i16", "i64"),
    "ui8": ("i32", "i16", "i64"),
    "i16": ("i32", "i64"),
    "ui16": ("i32", "i64"),
    "i32": ("i64",),
    "ui32": ("i64",),
}
"""Integers, and the signed ones that hold each of their numbers, those first that most targets compute on."""

MARK = "hlo_lower.carried"
"""An attribute of what gives a value back in its own type, where its carrier holds exactly that value. It stands in a
module only for as long as the stage runs."""


PAIRED = "builtin.unrealized_conversion_cast"
"""Between complex numbers and their parts along a last dim. It stands in a module only for as long as the stage runs,
and is then what either gives (`pairs`)."""


class Form(Enum):
    """How a value is carried."""

    SIGNED = "signed"  # the same bits, read as a signed integer
    WIDER = "wider"  # the same number in a wider signed integer
    FLOAT = "float"  # the same number in f32
    HALVES = "halves"  # the bits of 64 as two of 32, the lower ones first, along a last dim
    PARTS = "parts"  # the real and the imaginary part of a complex number, along a last dim
    ITSELF = "itself"  # the type itself: the op is written out by others


@dataclass(frozen=True)
class Carrier:
    """An element type and what it is carried in.

    Attributes:
      before, after: the element types ("ui8", "i32").
      form: how.
      through: of halves of a type that is stored in another one: that type ("ui64" is "i64" first); "" of all others.
    """

    before: str
    after: str
    form: Form
    through: str = ""

    @property
    def cast(self) -> str:
        """The op that goes to the carrier, and that comes back; for what no one op does, one that stands for it."""
        if self.form is Form.PARTS:
            return PAIRED
        bits = self.form in (Form.SIGNED, Form.HALVES)
        return BITCAST_CONVERT if bits else CONVERT

    def shape_of(self, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """The shape of the carrier of a tensor of a shape: what is two has one dim more."""
        return (*shape, 2) if self.form in (Form.HALVES, Form.PARTS) else tuple(shape)

    def type_of(self, shape: Sequence[int | None]) -> mlir.RawType:
        """The type of the carrier of a tensor of a shape."""
        return mlir.tensor_type(self.shape_of(shape), self.after)


def carriers_of(element: str) -> Iterable[Carrier]:
    """What an element type may be carried in, the cheapest first.

    The same bits of 32 or 64 cost nothing; fewer bits are mostly computed with in 32, whatever their sign.
    """
    declared = element_type(element)
    same = [Carrier(element, declared.signed, Form.SIGNED)] if declared.is_unsigned and declared.bits >= 8 else []
    wider = [Carrier(element, after, Form.WIDER) for after in WIDER.get(element, ())]
    yield from (*same, *wider) if declared.bits >= 32 else (*wider, *same)
    if element in HALF_FLOATS:  # a sum, product, quotient or root that f32 rounds, and then they, is rounded as if once
        yield Carrier(element, "f32", Form.FLOAT)
    elif declared.is_complex:
        yield Carrier(element, declared.part, Form.PARTS)
    elif element in ("i64", "ui64"):
        yield Carrier(element, "i32", Form.HALVES)
    if declared.is_integer:
        yield Carrier(element, element, Form.ITSELF)
