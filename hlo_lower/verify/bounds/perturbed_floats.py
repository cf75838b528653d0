"""How far a float is moved in the last place, and the function in MLIR that moves it by a hash of its bits."""

from dataclasses import dataclass
from math import prod

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.ir import mlir

SHORT = {"f64": 26, "f32": 12, "f16": 7, "bf16": 5}
"""Bits at the end of the mantissa that are 0 in a number that is taken as exact."""


@dataclass(frozen=True)
class Most:
    """Units in the last place that a float type is moved by, at most.

    Attributes:
      plain: of what every compiler rounds correctly. Rounding itself is within half a unit, so that 2 is five times its
        spread; wide types have digits to spare.
      function: of exp, tanh and their kin, which consumers approximate; narrow types are computed wider, and rounded.
      term: of a sum of n terms, times sqrt(n).
      sum: the same at most: more would be the number itself.
    """

    plain: int
    function: int
    term: int
    sum: int


MOST = {"f64": Most(8, 32, 4, 256), "f32": Most(8, 32, 4, 256), "f16": Most(2, 4, 1, 8), "bf16": Most(2, 2, 1, 4)}


def float_format(raw_type: mlir.RawType) -> str:
    """The float type of a tensor's elements or their parts, "" where nothing of it is moved, as of 8 bits and less."""
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None or not tensor.is_static or not prod(size or 0 for size in tensor.shape):
        return ""
    name = element_type(tensor.element_name).part
    return name if name in WIDE_FLOATS else ""


def function_text(name: str, shape: list[int], element: str) -> str:
    """The function that moves each element by -most to most units in the last place, by a hash of its bits.

    Not moved are numbers that have none of `tail_bits`: those are `SHORT`'s, or all of 32 where short ones are moved.

    Bits of a float, taken as an integer, go up by one from a number to the next one of larger magnitude.
    """
    declared = element_type(element)
    width, mantissa = declared.bits, declared.mantissa
    dims = "".join(f"{size}x" for size in shape)
    floats, bits, bools = f"tensor<{dims}{element}>", f"tensor<{dims}ui{width}>", f"tensor<{dims}i1>"
    scalar = f"tensor<ui{width}>"
    largest, smallest = ((1 << declared.exponent) - 2) << mantissa, 2 << mantissa
    hashes = {64: (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), 32: (0x9E3779B1, 0x85EBCA6B), 16: (0x9E3B, 0x85CB)}[width]

    def constant(label: str, value: int) -> str:
        return f"  %{label} = stablehlo.constant dense<{value}> : {bits}"

    def binary(label: str, op: str, a: str, b: str) -> str:
        return f"  %{label} = stablehlo.{op} %{a}, %{b} : {bits}"

    def spread(label: str, value: str) -> list[str]:
        narrow = [f"  %{label}n = stablehlo.convert %{value} : (tensor<ui32>) -> {scalar}"]
        return [*narrow, f"  %{label} = stablehlo.broadcast_in_dim %{label}n, dims = [] : ({scalar}) -> {bits}"]

    lines = [
        f"func.func private @{name}(%v: {floats}, %salt: tensor<ui32>, %place: tensor<ui32>, %most: tensor<ui32>,"
        " %tail_bits: tensor<ui32>)"
        f" -> {floats} {{",
        f"  %bits = stablehlo.bitcast_convert %v : ({floats}) -> {bits}",
        "  %golden = stablehlo.constant dense<2654435769> : tensor<ui32>",
        "  %mixed = stablehlo.multiply %place, %golden : tensor<ui32>",
        "  %sum = stablehlo.add %mixed, %salt : tensor<ui32>",
        *spread("key", "sum"),
        *spread("m", "most"),
        *spread("low", "tail_bits"),
        *(constant(label, value) for label, value in (("c1", hashes[0]), ("c2", hashes[1]), ("half", width // 2))),
        *(constant(label, value) for label, value in (("one", 1), ("none", 0))),
        *(constant(label, value) for label, value in (("unsigned", (1 << (width - 1)) - 1), ("top", largest))),
        constant("bottom", smallest),
        binary("h0", "xor", "bits", "key"),
        binary("h1", "multiply", "h0", "c1"),
        binary("h2", "shift_right_logical", "h1", "half"),
        binary("h3", "xor", "h1", "h2"),
        binary("h4", "add", "h3", "key"),
        binary("h5", "multiply", "h4", "c2"),
        binary("h6", "shift_right_logical", "h5", "half"),
        binary("h7", "xor", "h5", "h6"),
        binary("twice", "add", "m", "m"),
        binary("span", "add", "twice", "one"),
        binary("step", "remainder", "h7", "span"),
        binary("up", "add", "bits", "step"),
        binary("to", "subtract", "up", "m"),
        f"  %moved = stablehlo.bitcast_convert %to : ({bits}) -> {floats}",
        binary("tail", "and", "bits", "low"),
        binary("size", "and", "bits", "unsigned"),
        f"  %k0 = stablehlo.compare EQ, %tail, %none : ({bits}, {bits}) -> {bools}",
        f"  %k1 = stablehlo.compare GE, %size, %top : ({bits}, {bits}) -> {bools}",
        f"  %k2 = stablehlo.compare LT, %size, %bottom : ({bits}, {bits}) -> {bools}",
        f"  %k3 = stablehlo.or %k0, %k1 : {bools}",
        f"  %kept = stablehlo.or %k2, %k3 : {bools}",
        f"  %r = stablehlo.select %kept, %v, %moved : {bools}, {floats}",
        f"  return %r : {floats}",
        "}",
    ]
    return "\n".join(lines)
