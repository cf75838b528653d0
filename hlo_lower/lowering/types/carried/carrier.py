"""What an element type is carried in: the same bits or number in another type, a float rounded back, or two parts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partialmethod

import numpy as np

from hlo_lower.base.element_types import HALF_FLOATS, element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.names import ADD, BITCAST_CONVERT, CONSTANT, CONVERT, DIVIDE, MAXIMUM, MULTIPLY, SUBTRACT, XOR

WIDER = {
    "i1": ("i32", "i64"),
    **dict.fromkeys(("i2", "ui2", "i4", "ui4"), ("i32", "i8", "i16", "i64")),
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
    NARROWER = "narrower"  # the number in f32 that it was before it was widened
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
    same = [Carrier(element, declared.signed_type, Form.SIGNED)] if declared.is_unsigned and declared.bits >= 8 else []
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


# --- values on their carriers ---
#
# Cast there and back, settled into the range of their own type, their sign bit flipped.


Takes = Callable[[str, str], bool]
"""Whether the target takes an op ("and") on an element type."""


@dataclass(frozen=True)
class Carrying:
    """Builds on carriers.

    Attributes:
      build: where.
      scheme: what each element type that is carried is carried in.
      takes: what the target takes, where there is a choice.
      reassociated: whether floats may be added in another order, and so be rounded once.
      are_truths: whether the operands are 0 or 1 everywhere.
      are_apart: whether no bit is set in two operands.
      is_extreme: whether it reduces to an extreme and its first place, from the end of the type.
      divisor: of a quotient, what is divided by everywhere; 0 where that is not known.
      is_nested: whether that is a region, of which a target may take a few ops alone.
    """

    build: Builder
    scheme: Mapping[str, Carrier]
    takes: Takes
    reassociated: bool = False
    are_truths: bool = False
    are_apart: bool = False
    is_extreme: bool = False
    divisor: int = 0
    is_nested: bool = False

    def inside(self, build: Builder) -> "Carrying":
        """The same in a region."""
        return replace(
            self, build=build, are_truths=False, are_apart=False, is_extreme=False, divisor=0, is_nested=True
        )

    def carrier(self, value: Value) -> Carrier | None:
        """What values of this one's element type are carried in; None of what is not carried."""
        return self.scheme.get(value.element_type) if value.is_tensor else None

    def is_on(self, value: Value, form: Form) -> bool:
        """Whether values of this one's element type are carried in a form."""
        carrier = self.carrier(value)
        return carrier is not None and carrier.form is form

    def carried_type(self, raw_type: mlir.RawType) -> mlir.RawType:
        """A type with the carrier of its element type."""
        tensor = mlir.read_tensor_type(raw_type)
        carrier = None if tensor is None else self.scheme.get(tensor.element_name)
        if tensor is None or carrier is None:
            return raw_type
        return carrier.type_of(tensor.shape)

    # --- there and back ---

    def to(self, value: Value) -> Value:
        """A value on its carrier."""
        carrier = self.carrier(value)
        if carrier is None or carrier.form is Form.ITSELF:
            return value
        node = value.node
        for element in filter(None, (carrier.through, carrier.after)):
            if node is not None and node.attribute(MARK) is not None and node.operand(0).element_type == element:
                value = node.operand(0)
                node = value.node
        if value.element_type == carrier.after:
            return value
        if node is not None and node.name == CONSTANT:
            return self._constant(value, carrier)
        if carrier.through and value.element_type != carrier.through:
            value = self._cast(value, mlir.tensor_type(value.shape, carrier.through), carrier)
        return self._cast(value, carrier.type_of(value.shape), carrier)

    def back(self, value: Value, element: str, *, is_exact: bool = True) -> Value:
        """A value in its own type.

        Args:
          value: on the carrier, in the range of its own type, or in that type already.
          element: its own type.
          is_exact: whether the carrier holds a number of that type; a float may be still to be rounded.
        """
        if value.element_type == element:
            return value
        carrier = self.scheme[element]
        shape = value.shape if carrier.shape_of(()) == () else value.shape[:-1]
        for step in filter(None, (carrier.through, element)):
            value = self._cast(value, mlir.tensor_type(shape, step), carrier)
            if is_exact and value.node is not None:
                value.node.raw.attributes[MARK] = mlir.parse_attribute("unit")
        return value

    def _cast(self, value: Value, raw_type: mlir.RawType, carrier: Carrier) -> Value:
        if (
            mlir.tensor_element_name(raw_type) == "i1"
        ):  # by definition a conversion to it asks whether it is other than 0
            return self.build.compare(value, "NE", self.number(0, value))
        return self.build.op(carrier.cast, [value], [raw_type]).result()

    def _constant(self, value: Value, carrier: Carrier) -> Value:
        node = value.node
        values = None if node is None else mlir.constant_value(node.raw, is_complex=carrier.form is Form.PARTS)
        dtype = mlir.dtype_of(carrier.after)
        if node is None or values is None or dtype is None:
            raise DoesNotApply("a constant that cannot be read")
        raw_type = carrier.type_of(value.shape)
        if carrier.form in (Form.HALVES, Form.PARTS):
            values = np.ascontiguousarray(np.broadcast_to(values, value.static_shape))[..., None]
        elif mlir.is_splat(node.raw):
            values = values.reshape(-1)[:1]
        with np.errstate(all="ignore"):
            carried = values.astype(dtype) if carrier.cast == CONVERT else values.view(dtype)
        attributes = {"value": mlir.dense_attribute(carried, raw_type)}
        return self.build.op(CONSTANT, [], [raw_type], attributes).result()

    # --- on carriers ---

    def number(self, number: int, like: Value) -> Value:
        """A constant of the shape and the type of a value."""
        if not like.is_static:
            raise DoesNotApply("of dynamic shape")
        if not like.element.is_float:
            return self.build.constant(number, like.static_shape, like.element_type)
        raw_type = mlir.tensor_type(like.shape, like.element_type)
        value = mlir.parse_attribute(f"dense<{float(number)}> : {raw_type}")
        return self.build.op(CONSTANT, [], [raw_type], {"value": value}).result()

    def do(self, op: str, left: Value, right: Value | int) -> Value:
        """An elementwise op of two values, or of one and a number."""
        return self.build.elementwise(op, left, self.number(right, left) if isinstance(right, int) else right)

    add, subtract, multiply = partialmethod(do, ADD), partialmethod(do, SUBTRACT), partialmethod(do, MULTIPLY)
    divide, xor, maximum = partialmethod(do, DIVIDE), partialmethod(do, XOR), partialmethod(do, MAXIMUM)

    def holds(self, left: Value, direction: str, right: Value | int) -> Value:
        """A comparison of two values, or of one with a number."""
        if isinstance(right, int) and (left.element.is_float or not left.is_static):
            right = self.number(right, left)
        return self.build.compare(left, direction, right)

    def choose(self, predicate: Value, on_true: Value | int, on_false: Value) -> Value:
        """An elementwise choice, the first one a value or a number."""
        chosen = self.number(on_true, on_false) if isinstance(on_true, int) else on_true
        return self.build.select(predicate, chosen, on_false)

    def settle(self, value: Value, element: str) -> Value:
        """The number of an integer type that a wider one is congruent to, on its carrier.

            unsigned, w bits     x and 2^w - 1
            signed               ((x and 2^w - 1) xor 2^(w-1)) - 2^(w-1)

        Without these bit operations r = x - trunc(x / 2^w) 2^w is congruent, too, and in (-2^w, 2^w): at most one 2^w
        has to be added or subtracted.
        """
        bits, half = element_type(element).bits, 1 << element_type(element).bits - 1
        if bits >= value.element.bits:
            return value
        if self.takes("and", value.element_type):
            low = self.do("and", value, (1 << bits) - 1)
            if not element_type(element).is_signed:
                return low
            flipped = "xor" if self.takes("xor", value.element_type) else "add"
            moved = self.do(flipped, low, half)
            moved = moved if flipped == "xor" else self.do("and", moved, (1 << bits) - 1)
            return self.do("subtract", moved, half)
        whole = self.do("multiply", self.do("divide", value, 1 << bits), 1 << bits)
        rest = self.do("subtract", value, whole)
        below = self.holds(rest, "LT", int(element_type(element).least))
        rest = self.choose(below, self.do("add", rest, 1 << bits), rest)
        if not element_type(element).is_signed:
            return rest
        above = self.holds(rest, "GT", int(element_type(element).most))
        return self.choose(above, self.do("subtract", rest, 1 << bits), rest)

    def round_to_type(self, value: Value, of: Value) -> Value:
        """A float on its carrier, rounded to the type of another value, where each step of a sum is rounded to that."""
        carrier = self.carrier(of)
        if carrier is None or carrier.form is not Form.FLOAT or self.reassociated:
            return value
        narrow = self._cast(value, mlir.tensor_type(value.shape, carrier.before), carrier)
        return self._cast(narrow, carrier.type_of(value.shape), carrier)

    def saturate(self, value: Value, element: str) -> Value:
        """The nearest number of an integer type, on its carrier."""
        above = self.do("maximum", value, int(element_type(element).least))
        return self.do("minimum", above, int(element_type(element).most))

    def flip(self, value: Value) -> Value:
        """The same bits but the sign: unsigned order becomes signed order, and back. Adding 2^(w-1) does that."""
        least = int(value.element.least)
        node, values = value.node, value.constant()
        if node is not None and values is not None:
            given = values.reshape(-1)[:1] if mlir.is_splat(node.raw) else values
            attributes = {"value": mlir.dense_attribute(given ^ given.dtype.type(least), value.raw.type)}
            return self.build.op(CONSTANT, [], [value.raw.type], attributes).result()
        return self.do(XOR if self.takes("xor", value.element_type) else ADD, value, least)
