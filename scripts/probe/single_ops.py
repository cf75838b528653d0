"""Modules of one op: for each op one or a few forms, on every element type on which XLA takes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

TYPES = ("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64")

UNARY = (
    *("abs", "cbrt", "ceil", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one", "floor"),
    *("log", "log_plus_one", "logistic", "negate", "not", "popcnt", "round_nearest_afz", "round_nearest_even"),
    *("rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
BINARY = (
    *("add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left"),
    *("shift_right_arithmetic", "shift_right_logical", "subtract", "xor"),
)
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")

Writer = Callable[[str], str]
"""The text of a module on an element type."""


@dataclass(frozen=True)
class SingleOp:
    """A module of one op.

    Attributes:
      op: as target files name it.
      form: which of its forms, "" where there is one.
      element: the element type.
      text: the module.
    """

    op: str
    form: str
    element: str
    text: str


def single_ops() -> dict[str, Mapping[str, Writer]]:
    """For each op its forms."""
    forms: dict[str, Mapping[str, Writer]] = {f"stablehlo.{op}": {"": _elementwise(op, 1)} for op in UNARY}
    forms |= {f"stablehlo.{op}": {"": _elementwise(op, 2)} for op in BINARY}
    forms["stablehlo.compare"] = {direction: _compare(direction) for direction in DIRECTIONS}
    forms["stablehlo.clamp"] = {"": _elementwise("clamp", 3)}
    line = "%r = stablehlo.is_finite %a : (tensor<3x4x{t}>) -> tensor<3x4xi1>"
    forms["stablehlo.is_finite"] = {"": _line(("3x4",), line, "3x4xi1")}
    forms["stablehlo.select"] = {"": _select}
    line = "%r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4x{t}>) -> tensor<3x4x{t}>"
    forms["stablehlo.broadcast_in_dim"] = {"": _line(("4",), line, "3x4x{t}")}
    line = "%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<3x4x{t}>, tensor<3x2x{t}>) -> tensor<3x6x{t}>"
    forms["stablehlo.concatenate"] = {"": _line(("3x4", "3x2"), line, "3x6x{t}")}
    line = "%r = stablehlo.reverse %a, dims = [1] : tensor<3x4x{t}>"
    forms["stablehlo.reverse"] = {"": _line(("3x4",), line, "3x4x{t}")}
    line = "%r = stablehlo.slice %a [1:3, 0:4:2] : (tensor<3x4x{t}>) -> tensor<2x2x{t}>"
    forms["stablehlo.slice"] = {"": _line(("3x4",), line, "2x2x{t}")}
    line = "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x4x{t}>) -> tensor<4x3x{t}>"
    forms["stablehlo.transpose"] = {"": _line(("3x4",), line, "4x3x{t}")}
    line = (
        "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
        "(tensor<3x4x{t}>, tensor<4x2x{t}>) -> tensor<3x2x{t}>"
    )
    forms["stablehlo.dot_general"] = {"": _line(("3x4", "4x2"), line, "3x2x{t}")}
    line = "%r = stablehlo.pad %a, %b, low = [1, 0], high = [0, 2], interior = [0, 0] : "
    line += "(tensor<3x4x{t}>, tensor<{t}>) -> tensor<4x6x{t}>"
    forms["stablehlo.pad"] = {"": _line(("3x4", ""), line, "4x6x{t}")}
    return forms


def modules_of(op: str) -> list[SingleOp]:
    """The modules of an op, on every type, forms of a type together."""
    return [SingleOp(op, form, t, write(t)) for t in TYPES for form, write in single_ops()[op].items()]


def _line(shapes: tuple[str, ...], line: str, result: str) -> Writer:
    """A module of one line on arguments %a, %b, ...; {t} stands for the element type."""

    def write(element: str) -> str:
        kinds = ["x".join(filter(None, (shape, element))) for shape in shapes]
        declared = ", ".join(f"%{name}: tensor<{kind}>" for name, kind in zip("abc", kinds, strict=False))
        told = f"tensor<{result.replace('{t}', element)}>"
        body = line.replace("{t}", element)
        return f"func.func public @main({declared}) -> {told} {{\n  {body}\n  return %r : {told}\n}}\n"

    return write


def _elementwise(op: str, operands: int) -> Writer:
    names = ", ".join(f"%{name}" for name in "abc"[:operands])
    kinds = ", ".join(["tensor<3x4x{t}>"] * operands)
    line = f'%r = "stablehlo.{op}"({names}) : ({kinds}) -> tensor<3x4x{{t}}>'
    return _line(("3x4",) * operands, line, "3x4x{t}")


def _compare(direction: str) -> Writer:
    line = f"%r = stablehlo.compare {direction}, %a, %b : (tensor<3x4x{{t}}>, tensor<3x4x{{t}}>) -> tensor<3x4xi1>"
    return _line(("3x4", "3x4"), line, "3x4xi1")


def _select(element: str) -> str:
    line = "%r = stablehlo.select %p, %a, %b : tensor<3x4xi1>, tensor<3x4x{t}>"
    text = _line(("3x4", "3x4"), line, "3x4x{t}")(element)
    return text.replace("@main(", "@main(%p: tensor<3x4xi1>, ")
