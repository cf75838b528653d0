"""What an element type is carried in: the same bits or number in another type, a float rounded back, or two parts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from hlo_lower.ir import mlir
from hlo_lower.ops.names import BITCAST_CONVERT, CONVERT

FLOATS = {"bf16": "f32", "f16": "f32"}
"""Floats, and the one that they are carried in: it has more than twice their digits and two more, so that a sum, a
product, a quotient or a root that is rounded to it and then back is rounded as if once."""

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

SIGNED = {"ui8": "i8", "ui16": "i16", "ui32": "i32", "ui64": "i64"}
"""Unsigned integers, and the signed ones of as many bits."""

PARTS = {"complex<f32>": "f32", "complex<f64>": "f64"}
"""Complex numbers, and the type of their parts."""

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
    same = [Carrier(element, SIGNED[element], Form.SIGNED)] if element in SIGNED else []
    wider = [Carrier(element, after, Form.WIDER) for after in WIDER.get(element, ())]
    yield from (*same, *wider) if bits_of(element) >= 32 else (*wider, *same)
    if element in FLOATS:
        yield Carrier(element, FLOATS[element], Form.FLOAT)
    elif element in PARTS:
        yield Carrier(element, PARTS[element], Form.PARTS)
    elif element in ("i64", "ui64"):
        yield Carrier(element, "i32", Form.HALVES)
    if is_integer(element):
        yield Carrier(element, element, Form.ITSELF)


def bits_of(element: str) -> int:
    """How many bits an integer or a float has; 0 of other types."""
    digits = element.lstrip("uibf")
    return int(digits) if digits.isdigit() else 0


def is_integer(element: str) -> bool:
    """Whether a type is one of integers, predicates included."""
    return element.lstrip("u").startswith("i")


def is_unsigned(element: str) -> bool:
    """Whether an integer type has no negative numbers."""
    return element.startswith("u") or element == "i1"


def is_float(element: str) -> bool:
    """Whether a type is one of floats."""
    return element.startswith(("f", "bf"))


def least_of(element: str) -> int:
    """The least number of an integer type."""
    return 0 if is_unsigned(element) else -(1 << bits_of(element) - 1)


def most_of(element: str) -> int:
    """The greatest number of an integer type."""
    return (1 << bits_of(element) - (not is_unsigned(element))) - 1
