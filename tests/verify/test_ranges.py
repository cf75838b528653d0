"""Intervals of values: random programs never leave them, and what a comparison cannot come out as is known."""

import numpy as np
import pytest

from hlo_lower import mlir
from hlo_lower.verify.program import Program
from hlo_lower.verify.ranges import Ranges
from hlo_lower.verify.run import Executable

BINARY = {
    "i": ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"),
    "f": ("add", "subtract", "multiply", "maximum", "minimum", "divide"),
}
UNARY = {
    "i": ("negate", "abs", "not", "sign"),
    "f": ("negate", "abs", "exponential", "tanh", "sqrt", "logistic", "floor"),
}
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")


def program(rng, element):
    """A random program over tensors of four numbers that returns all that it computes."""
    kind = "f" if element.startswith(("f", "bf")) else "i"
    made = f"tensor<4x{element}>"
    lines, values = [], ["%x", "%y"]

    def add(text):
        values.append(f"%v{len(lines)}")
        lines.append(f"{values[-1]} = stablehlo.{text}")

    for n in (0, 1, 5, 8, 100):
        add(f"constant dense<{n if kind == 'i' else float(n)}> : {made}")
    add(f"iota dim = 0 : {made}")
    for k in range(24):
        a, b, c = (values[rng.integers(len(values))] for _ in range(3))
        match int(rng.integers(8 if kind == "i" else 6)):
            case 0:
                add(f"{rng.choice(UNARY[kind]) if element[0] != 'u' else 'not'} {a} : {made}")
            case 1:
                add(f"clamp {a}, {b}, {c} : {made}")
            case 2:
                test = rng.choice(["LT", "LE", "GT", "GE", "EQ", "NE"])
                lines.append(f"%p{k} = stablehlo.compare {test}, {a}, {b} : ({made}, {made}) -> tensor<4xi1>")
                add(f"select %p{k}, {rng.choice([a, b, c])}, {c} : tensor<4xi1>, {made}")
            case 3:
                add(f"slice {a} [1:3] : ({made}) -> tensor<2x{element}>")
                part = values.pop()
                add(f"concatenate {part}, {part}, dim = 0 : (tensor<2x{element}>, tensor<2x{element}>) -> {made}")
            case 6:
                add(f"{rng.choice(SHIFTS)} {a}, {values[2 + rng.integers(4)]} : {made}")
            case 7:
                add(f"{rng.choice(['divide', 'remainder'])} {a}, {values[3 + rng.integers(4)]} : {made}")
            case _:
                add(f"{rng.choice(BINARY[kind])} {a}, {b} : {made}")
    returned = values[2:]
    results = ", ".join([made] * len(returned))
    body = "\n".join([*lines, f"return {', '.join(returned)} : {results}"])
    return f"func.func public @main(%x: {made}, %y: {made}) -> ({results}) {{\n{body}\n}}"


@pytest.mark.parametrize("element", ["i8", "i32", "ui8", "f32", "f16"])
@pytest.mark.parametrize("seed", range(3))
def test_no_value_leaves_its_interval(element, seed):
    """Every value of random programs lies in its interval, or is NaN."""
    rng = np.random.default_rng([seed, len(element), ord(element[-1])])
    text = program(rng, element)
    ranges = Ranges(Program(mlir.parse_module(text)), {})
    body = ranges.program.entries["main"]
    dtype = ranges.program.dtype_of(body.arguments[0])
    run = Executable(text, "quick")
    for turn in range(12):
        wide = rng.integers(-128, 128, (2, 4)) * (1 if turn % 2 else 0.01 if dtype.kind == "f" else 1)
        results = run.run([row.astype(dtype) for row in np.asarray(wide)])
        for value, result in zip(body.returned, results, strict=True):
            low, high = ranges.of(value)
            wide_result = np.asarray(result, np.float64 if dtype.kind == "f" else object)
            inside = (wide_result >= low) & (wide_result <= high) | (wide_result != wide_result)
            assert np.all(inside), f"{value}: {result} is not in {low} to {high}\n{text}"


CLAMPED = """func.func public @main(%i: tensor<i32>) -> tensor<i1> {
%z = stablehlo.constant dense<0> : tensor<i32>
%n = stablehlo.constant dense<7> : tensor<i32>
%c = stablehlo.clamp %z, %i, %n : tensor<i32>
%p = stablehlo.compare LT, %c, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
return %p : tensor<i1>
}"""


def test_what_is_clamped_is_never_less():
    """A clamped number may be equal to its bound and greater, and is never less."""
    ranges = Ranges(Program(mlir.parse_module(CLAMPED)), {})
    *_, compare = ranges.program.entries["main"].ops
    assert [ranges.may_be(compare, what) for what in ("equal", "greater", "less")] == [True, True, False]
