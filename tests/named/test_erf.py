"""erf and erfc are read in each spelling, and one that is written out only where it is that, to the bit."""

import re

import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.named import find

TYPES = ("f32", "f64", "bf16", "f16")

SPELLINGS = {
    "chlo": "chlo.NAME %z : T -> T",
    "custom call": "stablehlo.custom_call @mhlo.NAME(%z) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (T) -> T",
    "composite": 'stablehlo.composite "any.name" %z {decomposition = @inner} : (T) -> T',
}


def gelu(name, spelling, element, inner="chlo.NAME"):
    """A module of one gelu by erf or erfc: x / 2 * (1 + erf(x / sqrt(2))), x / 2 * erfc(-x / sqrt(2))."""
    root, total = (
        ("0.70710678118654757", "add %e, %one") if name == "erf" else ("-0.70710678118654757", "multiply %e, %one")
    )
    function = f"func.func private @inner(%y: T) -> T {{\n%e = {inner} %y : T -> T\nreturn %e : T\n}}"
    return f"""
func.func public @main(%x: T) -> T {{
  %half = stablehlo.constant dense<5.000000e-01> : T
  %one = stablehlo.constant dense<1.000000e+00> : T
  %root = stablehlo.constant dense<{root}> : T
  %h = stablehlo.multiply %x, %half : T
  %z = stablehlo.multiply %x, %root : T
  %e = {SPELLINGS[spelling]}
  %s = stablehlo.{total} : T
  %r = stablehlo.multiply %h, %s : T
  return %r : T
}}
{function if spelling == "composite" else ""}""".replace("NAME", name).replace("T", f"tensor<4x{element}>")


def written_out(text):
    """A module without chlo, as jaxlib writes it out."""
    graph = read(text)
    mlir.run_pass(graph.module.operation, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
    return to_text(graph)


def gelus(text):
    """The attributes of the gelus that are found."""
    return [match.attributes for match in find(text) if match.name == "gelu"]


EXACT = [{"approximate": "none"}]


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_is_found(spelling, element):
    """As it stands and written out; what is raised of it is verified."""
    for name in ("erf", "erfc"):
        text = gelu(name, spelling, element)
        for one in (text, written_out(text)):
            assert gelus(one) == EXACT
        if element == "bf16":
            assert hl.verify(one, hl.raise_named(one, only=["gelu"]).text).ok


CONSTANT = re.compile(r"dense<(\S+?)>(?= : tensor<4xf)")


def neighbours(text):
    """The module with each of its float constants one bit off, and with each comparison another one."""
    for found in CONSTANT.finditer(text):
        element = "f64" if "f64" in text else "f32"
        bits = int(mlir.float_text(float(found[1]), element), 16) ^ 1
        digits = 16 if element == "f64" else 8
        yield f"{text[: found.start(1)]}0x{bits:0{digits}X}{text[found.end(1) :]}"
    for found in re.finditer("compare LT", text):
        yield f"{text[: found.start()]}compare LE{text[found.end() :]}"


@pytest.mark.few(2)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_no_neighbour_of_what_is_written_out_is_found(name, element):
    """A constant that is one bit off, or a comparison that holds for equal numbers as well, is another function."""
    text = written_out(gelu(name, "chlo", element))
    assert gelus(text) == EXACT
    assert [one for one in neighbours(text) if gelus(one)] == []


def test_what_is_not_seen_to_be_erf_is_none():
    """A composite is what its decomposition computes, and a custom call that says more than its name is not read."""
    text = gelu("erf", "composite", "f32", inner="chlo.tan").replace("any.name", "chlo.erf")
    assert gelus(text) == []
    text = gelu("erf", "custom call", "f32")
    for other in (
        "mhlo.version = 2",
        'backend_config = "fast", mhlo.version = 1',
        "has_side_effect = true, mhlo.version = 1",
    ):
        assert gelus(text.replace("mhlo.version = 1", other)) == []
