"""The symbolic evaluator computes each operation as XLA does: on numbers, and on variables given those numbers."""

from pathlib import Path

import numpy as np
import pytest

z3 = pytest.importorskip("z3")

from hlo_lower.ir import mlir  # noqa: E402
from hlo_lower.verify.proof.elements import ElementKind  # noqa: E402
from hlo_lower.verify.proof.evaluator import Evaluator  # noqa: E402
from hlo_lower.verify.proof.moving import literal  # noqa: E402
from hlo_lower.verify.proof.query import _arguments, _results  # noqa: E402
from hlo_lower.verify.proof.terms import lifted  # noqa: E402
from hlo_lower.verify.proof.world import World  # noqa: E402
from hlo_lower.verify.read.program import Program  # noqa: E402
from hlo_lower.verify.run import Executable, read_signature  # noqa: E402

BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "remainder", "and", "or", "xor")
SHIFTS = ("shift_left", "shift_right_arithmetic", "shift_right_logical")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def elementwise():
    """One module for each integer type with every elementwise operation."""
    for element in ("i8", "ui8", "i32"):
        t, sign = f"tensor<24x{element}>", "UNSIGNED" if element[0] == "u" else "SIGNED"
        lines = [f"%r{k} = stablehlo.{name} %a, %b : {t}" for k, name in enumerate((*BINARY, *SHIFTS))]
        lines.append(f"%r{len(lines)} = stablehlo.clamp %b, %a, %c : {t}")
        unary = ("not", "negate", *(() if element[0] == "u" else ("abs", "sign")))
        lines += [f"%r{len(lines) + k} = stablehlo.{name} %a : {t}" for k, name in enumerate(unary)]
        types = [t] * len(lines)
        for direction in DIRECTIONS:
            kinds = f"({t}, {t}) -> tensor<24xi1>"
            lines.append(f"%r{len(lines)} = stablehlo.compare {direction}, %a, %b, {sign} : {kinds}")
            types.append("tensor<24xi1>")
        for target in ("i1", "i8", "ui8", "i16", "i32", "ui32"):
            lines.append(f"%r{len(lines)} = stablehlo.convert %a : ({t}) -> tensor<24x{target}>")
            types.append(f"tensor<24x{target}>")
        names = ", ".join(f"%r{k}" for k in range(len(lines)))
        results, body = ", ".join(types), "\n".join(lines)
        head = f"func.func public @main(%a: {t}, %b: {t}, %c: {t}) -> ({results})"
        yield element, f"{head} {{\n{body}\nreturn {names} : {results}\n}}"


MODULES = {
    **dict(elementwise()),
    **{path.stem: path.read_text() for path in sorted((Path(__file__).parent / "operations").glob("*.mlir"))},
}


def drawn(aval, number):
    """An array in which the ends of the type, 0 and small numbers are frequent."""
    rng = np.random.default_rng(number)
    if aval.dtype == np.bool_:
        return rng.integers(0, 2, aval.shape).astype(bool)
    info = np.iinfo(aval.dtype)
    ends = rng.choice(np.array([info.min, info.max, 0, 1, 2, 7], aval.dtype), aval.shape)
    return np.where(rng.random(aval.shape) < 0.5, ends, rng.integers(-3 if info.min else 0, 6, aval.shape)).astype(
        aval.dtype
    )


def as_known(program, world, inputs):
    """The results of @main on Python numbers."""
    main = program.entries["main"]
    elements = [world.element(mlir.tensor_element_name(program.types[a])) for a in main.arguments]
    tensors = []
    for value, element in zip(inputs, elements, strict=True):
        tensor = np.empty(value.shape, object)
        for at in np.ndindex(*value.shape):
            tensor[at] = literal(value[at], element)
        tensors.append(tensor)
    return Evaluator(program, world).body(main, tensors, {})


@pytest.mark.parametrize("name", MODULES)
def test_known_numbers_are_computed_as_xla_does(name):
    """On Python numbers nothing of z3 is built, and each element is what XLA computes."""
    module = Program(mlir.parse_module(MODULES[name]))
    executable, avals = Executable(MODULES[name], "quick"), read_signature(module.raw).arguments
    for seed in range(4):
        inputs = [drawn(aval, 10 * seed + k) for k, aval in enumerate(avals)]
        for expected, found in zip(executable.run(inputs), as_known(module, World(60), inputs), strict=True):
            np.testing.assert_array_equal(found.astype(expected.dtype), expected, f"{name}, seed {seed}")


@pytest.mark.few(3)
@pytest.mark.parametrize("name", MODULES)
def test_variables_are_computed_as_xla_does(name):
    """The terms over variables, with numbers in the place of those, are what XLA computes."""
    world = World(60)
    module = Program(mlir.parse_module(MODULES[name]))
    executable, avals = Executable(MODULES[name], "quick"), read_signature(module.raw).arguments
    arguments = _arguments(module, world)
    results = _results(module, arguments, world)
    inputs = [drawn(aval, 100 + k) for k, aval in enumerate(avals)]
    given = [
        (typed.tensor[at], lifted(literal(value[at], typed.element), typed.element))
        for typed, value in zip(arguments, inputs, strict=True)
        for at in np.ndindex(*value.shape)
    ]
    for expected, typed in zip(executable.run(inputs), results, strict=True):
        for at in np.ndindex(*expected.shape):
            term = z3.simplify(z3.substitute(lifted(typed.tensor[at], typed.element), *given))
            known = (
                z3.is_true(term)
                if typed.element.kind is ElementKind.TRUTH
                else typed.element.declared.wrapped(term.as_long())
            )
            assert expected[at] == known, (name, at)
