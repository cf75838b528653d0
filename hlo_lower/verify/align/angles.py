"""Sines, cosines and tangents that a version computes of what it leaves of an angle: read as the functions themselves.

A consumer's own reduction of large angles may be a bad one, so a version may do it itself. A function that is not
rounded correctly has no one right value, and XLA has other bits. The law says which reduction is meant, op by op and
constant by constant: within 3 units in the last place of the true value for every f32, if the functions are within one
up to pi/4 (tests/verify/test_angles.py tries all of them). A version that has just these ops has the function.

    quadrants = m * (2/pi * 2^e), m and e those of |x| = m * 2^e, in units of 2^-62 and modulo 4, the last unit cut off
    k, rest   = the nearest whole number of them, and what is left, times pi/2
    a         = |x| up to 0.785 and of infinities, |rest| beyond it
    sine x    = sign(x) * (k odd ? k * cosine a : (1 - |k|) * sign(rest) * sine a);   cosine x and tangent x likewise
"""

from dataclasses import dataclass
from functools import cache
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.names import COSINE, SINE, TAN
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.read.program import location_of

Array = NDArray[Any]

QUADRANTS = "quadrants"
"""The law, as verdicts name it (`hlo_lower.verify.pull.laws`)."""

ANGLES = (SINE, COSINE, TAN, "chlo.tan")

UNIT, FIRST = 62, 0.785
"""Bits behind the point of quadrants, and a number a little below pi/4."""

DIRECTION, KIND = "comparison_direction", "compare_type"
NUMBERS = "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {}>"


@dataclass(frozen=True, eq=False)
class Term:
    """What a value has to be.

    Attributes:
      op: the op that makes it; "" for the angle, of any op.
      element: its element type.
      operands: the op's.
      direction: of a comparison.
      constant: of a constant, the one number that it is everywhere, or all of a table.
    """

    op: str
    element: str
    operands: "tuple[Term, ...]" = ()
    direction: str = ""
    constant: Array | None = None


ANGLE = Term("", "f32")


def with_angles_in_place(text: str) -> tuple[str, tuple[str, ...]]:
    """A module with functions of angles in the place of their reductions, and where these were."""
    if names.BITCAST_CONVERT not in text or names.ROUND_NEAREST_EVEN not in text:
        return text, ()
    context = mlir.shared_context(len(text))
    with mlir.active(context):
        module = mlir.parse_module(text, context)
        ops = mlir.operations_within(module.operation)
        roots = {terms.op for terms in _functions().values()}
        found = [made for op in ops if op.name in roots if (made := _function_of(op)) is not None]
        places = tuple(dict.fromkeys(location_of(op) for op, *_ in found))
        matched = {op for *_, match in found for op in match.ops}
        for op, name, match in found:
            function = OpsBeside(op).op(name, [match.found[ANGLE]], op.results[0].type)
            mlir.replace_results(op, [function])
        for op in reversed(ops):
            if op in matched and not any(map(mlir.is_used, op.results)):
                op.erase()
        return mlir.print_module(module, locations=True) if found else text, places


def _function_of(op: mlir.RawOperation) -> "tuple[mlir.RawOperation, str, _Match] | None":
    """Which function of an angle an op gives, if it does, and of what."""
    for name, terms in _functions().items():
        match = _Match(op)
        if match.holds(op.results[0], terms):
            return op, name, match
    return None


class _Match:
    """Values that are what terms say, in the shape of what an op gives."""

    def __init__(self, root: mlir.RawOperation) -> None:
        self._shape = mlir.tensor_shape(root.results[0].type)
        self.found: dict[Term, mlir.RawValue] = {}
        self.ops: list[mlir.RawOperation] = []

    def holds(self, value: mlir.RawValue, term: Term) -> bool:
        """Whether a value is what a term says, and the angle the same everywhere; a barrier gives what it is given."""
        while (op := mlir.producer(value)) is not None and op.name == names.OPTIMIZATION_BARRIER:
            self.ops.append(op)
            value = op.operands[mlir.result_number(value)]
        if term in self.found and self.found[term] == value:
            return True
        if term.constant is not None:
            return self._is_constant(value, term)
        is_typed = mlir.tensor_shape(value.type) == self._shape and mlir.tensor_element_name(value.type) == term.element
        if not is_typed or (term is ANGLE and term in self.found):
            return False
        if term is not ANGLE:
            if op is None or not self._is_made(op, term):
                return False
            self.ops.append(op)
        self.found[term] = value
        return True

    def _is_made(self, op: mlir.RawOperation, term: Term) -> bool:
        if op.name != term.op or not self._is_as_said(op, term):
            return False
        return all(self.holds(value, one) for value, one in zip(op.operands, term.operands, strict=True))

    def _is_as_said(self, op: mlir.RawOperation, term: Term) -> bool:
        """Whether it has no attributes but those that the term means."""
        told = mlir.attributes_of(op)
        if op.name == names.COMPARE:
            is_float = KIND not in told or mlir.enum_value(told.pop(KIND)) == "FLOAT"
            return is_float and mlir.enum_value(told.pop(DIRECTION)) == term.direction and not told
        if op.name == names.GATHER:
            is_of_one = mlir.integers_of(told.pop("slice_sizes")) == (1,)
            is_read = told.pop("dimension_numbers") == mlir.parse_attribute(NUMBERS.format(len(self._shape)))
            return is_read and is_of_one and not told
        return not told

    def _is_constant(self, value: mlir.RawValue, term: Term) -> bool:
        op, number = mlir.producer(value), term.constant
        if op is None or number is None or mlir.tensor_element_name(value.type) != term.element:
            return False
        is_table = number.ndim > 0
        if mlir.tensor_shape(value.type) != (number.shape if is_table else self._shape):
            return False
        found = mlir.constant_value(op) if op.name == names.CONSTANT else None
        self.ops.append(op)
        return found is not None and _bits(found) == _bits(np.broadcast_to(number, found.shape))


def _bits(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


# --- what the functions are ---


@cache
def _functions() -> dict[str, Term]:
    """Each function of an angle as it is to be computed."""
    size = _made("abs", ANGLE)
    bits = _made("bitcast_convert", size, "i32")
    unit = _number(1 << 23, "i32")
    exponent = _made("divide", bits, unit)
    mantissa = _made("add", _made("subtract", bits, _made("multiply", exponent, unit)), unit)
    whole, part = (
        Term(names.GATHER, element, (Term(names.CONSTANT, element, constant=table), exponent))
        for element, table in zip(("i64", "f32"), _quadrants_of_units(), strict=True)
    )
    parts = _convert(_made("multiply", _convert(mantissa, "f32"), part), "i64")
    quadrants = _made("add", _made("multiply", _convert(mantissa, "i64"), whole), parts)
    k = _made("round_nearest_even", _made("multiply", _convert(quadrants, "f32"), _number(2.0**-UNIT)))
    left = _made("subtract", quadrants, _made("multiply", _convert(k, "i64"), _number(1 << UNIT, "i64")))
    rest = _made("multiply", _convert(left, "f32"), _number(pi / 2 * 2.0**-UNIT))
    is_beyond = _made("and", _compare(size, "GT", FIRST), _compare(size, "LE", float(np.finfo(np.float32).max)))
    a = _made("abs", _select(is_beyond, rest, size))
    sign, even = _made("sign", ANGLE), _made("subtract", _number(1.0), _made("abs", k))
    is_odd, sine, cosine = _compare(even, "EQ", 0.0), _signed(rest, _made(SINE, a)), _made(COSINE, a)
    found = {
        SINE: _made("multiply", _select(is_odd, _made("multiply", k, cosine), _made("multiply", even, sine)), sign),
        COSINE: _select(is_odd, _made("multiply", _made("negate", k), sine), _made("multiply", even, cosine)),
    }
    for name in (TAN, "chlo.tan"):
        tangent = _signed(rest, _made(name, a))
        turned = _made("divide", _number(-1.0), tangent)
        found[name] = _made("multiply", _select(_compare(_made("abs", k), "EQ", 1.0), turned, tangent), sign)
    return found


def _made(op: str, first: Term, *others: Any) -> Term:
    """An op of terms of the type of the first one, or of the one that is said."""
    element = others[0] if others and isinstance(others[0], str) else first.element
    return Term(
        op if "." in op else f"stablehlo.{op}", element, (first, *(one for one in others if one is not element))
    )


def _convert(term: Term, element: str) -> Term:
    return _made("convert", term, element)


def _select(predicate: Term, on_true: Term, on_false: Term) -> Term:
    return Term(names.SELECT, on_true.element, (predicate, on_true, on_false))


def _compare(term: Term, direction: str, number: float) -> Term:
    return Term(names.COMPARE, "i1", (term, _number(number)), direction)


def _signed(rest: Term, function: Term) -> Term:
    return _select(_compare(rest, "LT", 0.0), _made("negate", function), function)


def _number(number: float, element: str = "f32") -> Term:
    return Term(names.CONSTANT, element, constant=np.asarray(number, mlir.dtype_of(element)))


@cache
def _quadrants_of_units() -> tuple[Array, Array]:
    """For each exponent the quadrants in a unit of a mantissa, in units of 2^-62: modulo 2^64, and the part of one."""
    bits = 512
    of_pi, one = _pi(bits), 1 << 2 * bits + 1
    whole, part = list[int](), list[float]()
    for exponent in range(-150, 106):
        number = (one << UNIT + 150 + exponent) // of_pi  # 2/pi * 2^(exponent + 62), in units of 2^-(bits + 150)
        whole.append(number >> bits + 150 & (1 << 64) - 1)
        part.append((number & (1 << bits + 150) - 1) / (1 << bits + 150))
    return np.asarray(whole, np.uint64).view(np.int64), np.asarray(part, np.float32)


def _pi(bits: int) -> int:
    """Pi in units of 2^-bits, but for the last ten bits: 16 arccot 5 - 4 arccot 239."""

    def arccot(x: int) -> int:
        term = (1 << bits) // x
        total, count = term, 1
        while term:
            term, count = -term // (x * x), count + 2
            total += term // count
        return total

    return 16 * arccot(5) - 4 * arccot(239)
