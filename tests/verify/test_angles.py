"""A reduction of an angle that is known op by op is read as a function of the angle, which it is; no other one is."""

import re

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.align.angles import with_angles_in_place
from hlo_lower.verify.run import Executable

FUNCTIONS = {"sine": np.sin, "cosine": np.cos, "tan": np.tan}
TARGET = hl.Target("quadrants", refused_forms=["sine, cosine or tangent of large numbers"])
ALL = "; ".join(f"%{op} = {op} %x" for op in FUNCTIONS), ", ".join(f"%{op}" for op in FUNCTIONS)
NEAREST = 16367173 * 2.0**72
"""The f32 that is nearest to a multiple of pi/2."""


def of(op, size=64, element="f32"):
    """A module of one function."""
    return module(f"%x: {size}x{element}", f"%r = {op} %x")


def written(op, size=64):
    """The function of what is left of the angle."""
    return hl.lower(of(op, size), target=TARGET).text


def errors(found, x, function):
    """In units in the last place of f32."""
    with np.errstate(invalid="ignore"):
        true = function(x.astype(np.float64))
    return np.abs(found.astype(np.float64) - true) / np.spacing(np.abs(true).astype(np.float32)).astype(np.float64)


@pytest.mark.parametrize(("op", "most"), [("sine", 3.0), ("cosine", 3.0), ("tan", 5.0)])
def test_what_is_read_as_a_function_is_near_it(op, most):
    """For angles of every exponent and sign, the one nearest to a multiple of pi/2, and steps around small ones."""
    bits = np.random.default_rng(0).integers(0, 255 << 23, 1 << 15).astype(np.int32)
    edges = np.float32([0.785, 0.7850001, NEAREST, 3.4028235e38, *(np.arange(1, 200) * np.pi / 2)])
    x = np.concatenate([bits.view(np.float32), edges])
    x = np.concatenate([x, -x])
    x = x[np.abs(x) > 2.0**-126]
    [found] = Executable(written(op, x.size), "exact").run([x])
    assert errors(found, x, FUNCTIONS[op]).max() < most
    first = np.abs(x) <= np.float32(0.785)
    [own] = Executable(of(op, x.size), "exact").run([x])
    np.testing.assert_array_equal(found[first], own[first])


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "most"), [("sine", 3.0), ("cosine", 3.0), ("tan", 5.0)])
def test_every_f32(op, most):
    """All 2^31 of no sign; a function of the size and the sign alone has the same errors below 0."""
    size = 1 << 23
    runnable = Executable(written(op, size), "default")
    for exponent in range(1, 255):
        x = np.arange(exponent << 23, exponent + 1 << 23, dtype=np.int32).view(np.float32)
        [found] = runnable.run([x])
        assert errors(found, x, FUNCTIONS[op]).max() < most, exponent


@pytest.mark.parametrize("op", FUNCTIONS)
def test_edges_are_those_of_the_function(op):
    """Zeros keep their signs; infinities and NaN give NaN."""
    x = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan])
    [found], [own] = (Executable(text, "exact").run([x]) for text in (written(op, 5), of(op, 5)))
    np.testing.assert_array_equal(found, own)
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(own[:2]))


def test_it_is_read_back():
    """All three of one angle, of one number and of an empty tensor, also twice; nothing of the reduction is left."""
    body, results = ALL
    for shape in ("5x3xf32", "f32", "0xf32"):
        text = module(f"%x: {shape}", f"{body}; return {results}")
        lowered = hl.lower(text, target=TARGET)
        back, places = with_angles_in_place(lowered.text)
        assert re.findall(r"stablehlo\.(\w+)", back) == list(FUNCTIONS)
        assert (len(places), with_angles_in_place(text)) == (len(FUNCTIONS), (text, ()))
        assert hl.verify(text, back).regions == ()
        [region] = hl.verify(text, lowered).regions
        assert (region.basis, region.laws) == ("derived", ("quadrants",))


OTHERS = {
    "abs": "negate", "add": "subtract", "and": "or", "cosine": "sine", "divide": "multiply", "multiply": "add",
    "negate": "abs", "round_nearest_even": "floor", "sign": "abs", "sine": "cosine", "subtract": "add", "tan": "tanh",
}  # fmt: skip


def wrong_versions(text):
    """The text with each op as another one, its operands in another order, and each digit of constants another one."""
    for line in text.splitlines():
        made = re.match(r'    (%\S+) = "?stablehlo\.(\w+)"?[ (]', line)
        if made is None:
            continue
        if other := OTHERS.get(made[2]):
            yield text.replace(line, line.replace(f"stablehlo.{made[2]}", f"stablehlo.{other}"))
        operands = re.findall(r"%\w+", line)[1:]
        if made[2] in ("subtract", "divide", "select", "compare") and operands[-1] != operands[-2]:
            a, b = operands[-2:]
            yield text.replace(line, line.replace(f"{a}, {b}", f"{b}, {a}", 1))
        if made[2] == "compare":
            for way in ("GE", "NE", "LE"):
                yield text.replace(line, re.sub(r"(compare +)\w\w", rf"\g<1>{way}", line))
        if made[2] == "constant":
            number = re.search(r'dense<"?(.+?)"?>', line)
            digits = [k for k in range(number.start(1), number.end(1)) if line[k] in "123456789ABCDF"]
            for k in digits[:: max(1, len(digits) // 12)]:
                other = f"{line[:k]}{'7' if line[k] != '7' else '3'}{line[k + 1 :]}"
                old, new = number[1], other[slice(*number.span(1))]
                if "E" not in old or old.startswith("0x") or abs(float(old) / float(new) - 1) > 1e-6:
                    yield text.replace(line, other)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_no_other_reduction_is(op):
    """Each op, operand and constant counts."""
    text = written(op)
    assert with_angles_in_place(text)[1]
    versions = [version for version in wrong_versions(text) if version != text]
    assert len(versions) > 60
    assert [version for version in versions if with_angles_in_place(version)[1]] == []


BROKEN = {
    "a digit of 2/pi": lambda text: _with_digit(text, 0, 140 * 16 + 14),
    "a last digit of 2/pi": lambda text: _with_digit(text, 0, 200 * 16 + 1),
    "a digit of what is left of it": lambda text: _with_digit(text, 1, 150 * 8 + 4),
    "the sign": lambda text: text.replace("stablehlo.sign", "stablehlo.abs"),
    "the quadrant": lambda text: text.replace("round_nearest_even", "floor"),
    "the quadrant by one": lambda text: text.replace("dense<1.0", "dense<2.0"),
    "the sign of what is left": lambda text: text.replace("stablehlo.negate", "stablehlo.abs"),
    "pi": lambda text: text.replace("3.40612167E-19", "3.406122E-19"),
}


def _with_digit(text, number, place):
    found = list(re.finditer('dense<"0x([0-9A-F]+)">', text))[number]
    place += found.start(1)
    return f"{text[:place]}{int(text[place], 16) ^ 1:X}{text[place + 1 :]}"


@pytest.mark.parametrize("float_mode", ["exact", "reassociate"])
@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.few(3)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_broken_ones_are_not_equal(op, broken, float_mode):
    """Where sums have an order they differ; else no run may count as a proof."""
    text = written(op)
    version = BROKEN[broken](text)
    if version == text:
        assert (op, broken) == ("cosine", "the sign")
        return
    verdict = hl.verify(of(op), version, float_mode=float_mode, level="regions")
    statuses = {region.status for region in verdict.regions}
    assert statuses == {"differs"} if float_mode == "exact" else statuses <= {"differs", "only run"}


def test_a_barrier_within_is_looked_through():
    """It gives what it is given, each operand in its order: with the two turned it is another function."""
    line = re.search(r"( *)%(\d+) = stablehlo\.subtract (%\w+), (%\w+) : (\S+)\n", text := written("sine"))
    indent, _, one, other, kind = line.groups()
    for turned in (False, True):
        operands = ["%b#1", "%b#0"] if turned else ["%b#0", "%b#1"]
        barrier = f"{indent}%b:2 = stablehlo.optimization_barrier {one}, {other} : {kind}, {kind}\n"
        held = barrier + line[0].replace(f"{one}, {other}", ", ".join(operands))
        assert bool(with_angles_in_place(text.replace(line[0], held))[1]) != turned
