"""Quotients of 64-bit integers that one version computes by an op are written out on halves, and derived."""

import re

import numpy as np
import pytest
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.verify.align.divisions import divisions_written_out
from hlo_lower.verify.run import Executable

DERIVES = True
OPS = [f"{op} {element}" for op in ("divide", "remainder") for element in ("i64", "ui64")]
BY = [None, 1, 7, 10, 1000, 32767, 32768, -3]


def divided(how, by=None, shape=(5,)):
    """A module that divides once, by what it is given or by a number."""
    op, element = how.split()
    x = of(shape, element)
    number = f"%d = constant {by} : {x}; " if by is not None else ""
    return module(f"%x: {x}" + ("" if number else f", %d: {x}"), f"{number}%r = {op} %x, %d")


def numbers(rng, shape, element):
    """Numbers of any size, the ends of the type, and those that have ends as halves."""
    found = rng.integers(0, 2**64, shape, np.uint64) >> rng.integers(0, 64, shape, np.uint64)
    ends = np.array([0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    found = np.where(rng.random(shape) < 0.3, rng.choice(ends, shape), found)
    return np.where(rng.random(shape) < 0.3, ~found, found).view(
        element.replace("ui", "u").replace("i64", "i8").replace("u64", "u8")
    )


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("how", OPS)
def test_what_is_written_out_is_what_xla_divides(how, by):
    """Also by 0, and of the least number by -1."""
    if by is not None and by < 0 and how.endswith("ui64"):
        by += 2**64
    text, rng = divided(how, by, (40,)), np.random.default_rng(0)
    [written, _] = divisions_written_out([text, module("%x: f32", "%r = negate %x")])
    assert len(re.findall(f"{how.split()[0]} .*i64", written)) == 0
    both = [Executable(one, "quick") for one in (written, text)]
    for _ in range(20):
        given = [numbers(rng, (40,), how.split()[1]) for _ in range(1 if by is not None else 2)]
        found = [one.run(given)[0] for one in both]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 4)])
@pytest.mark.parametrize("by", [None, 7])
@pytest.mark.parametrize("how", ["divide i64", "remainder i64"])
@pytest.mark.few(4)
def test_quotients_are_derived(how, by, shape):
    """Of any shape, in a second: all steps but the first and the last ops are the same."""
    text = divided(how, by, shape)
    verdict = hl.verify(text, hl.lower(text, target="litert"), level="regions")
    assert verdict.ok
    assert all(region.how == "derived" for region in verdict.regions)


FLOORED = """
  %q = divide %x, %d; %a = sign %x; %b = sign %d; %apart = compare NE, %a, %b
  %m = remainder %x, %d; %zero = constant 0 : 3xi64; %left = compare NE, %m, %zero; %down = and %apart, %left
  %one = constant 1 : 3xi64; %less = subtract %q, %one; %r = select %down, %less, %q"""


def test_a_floored_quotient_is_derived():
    """As JAX writes `x // d`: the remainder is what the same quotient leaves."""
    text = module("%x: 3xi64, %d: 3xi64", FLOORED)
    verdict = hl.verify(text, hl.lower(text, target="litert"), level="regions")
    assert verdict.ok
    assert all(region.how == "derived" for region in verdict.regions)


def test_a_divisor_that_a_function_is_given_is_seen():
    """JAX gives the number of `x // 7` to a function: it is divided by digits, in 300 ops and not in 6,000."""
    called = """
      func.func private @by(%x: tensor<3xi64>, %d: tensor<i64>) -> tensor<3xi64> {
        %s = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<i64>) -> tensor<3xi64>
        %q = stablehlo.divide %x, %s : tensor<3xi64>
        return %q : tensor<3xi64>
      }
    }"""
    text = module("%x: 3xi64", "%d = constant 7 : i64; %r = call @by(%x, %d) -> 3xi64")
    text = f"module {{\n{text}\n{called}"
    lowered = hl.lower(text, target="litert")
    assert len(lowered.text.splitlines()) < 200
    verdict = hl.verify(text, lowered, level="regions")
    assert verdict.ok
    assert all(region.how == "derived" for region in verdict.regions)


def test_what_is_not_known_is_not_written_out():
    """Nothing is divided, or the other version divides by an op as well, or it is narrow."""
    text = divided("divide i64")
    assert divisions_written_out([text, text]) is None
    assert divisions_written_out([divided("divide i32"), module("%x: i32", "%r = negate %x")]) is None


WRONG = [
    ("compare  ?LT", "compare LE"),
    ("compare  ?LE", "compare LT"),
    ("dense<-2147483648>", "dense<-2147483647>"),
    ("dense<1>", "dense<2>"),
    (r"stablehlo.select (%\w+), (%\w+), (%\w+)", r"stablehlo.select \1, \3, \2"),
    ("stablehlo.subtract", "stablehlo.add"),
    ("stablehlo.xor", "stablehlo.maximum"),
]


@pytest.mark.sweep
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("by", [None, 7])
@pytest.mark.parametrize("seed", range(3))
def test_another_op_in_one_step_is_seen(wrong, by, seed):
    """What differs for some numbers is never called equal."""
    text, rng = divided("divide i64", by, (64,)), np.random.default_rng(seed)
    lowered = hl.lower(text, target="litert").text
    found = list(re.finditer(wrong[0], lowered))
    if not found:
        pytest.skip("no such op")
    at = found[rng.integers(len(found))].start()
    changed = lowered[:at] + re.sub(wrong[0], wrong[1], lowered[at:], count=1)
    both = [Executable(one, "quick") for one in (changed, text)]
    runs = ([numbers(rng, (64,), "i64") for _ in range(1 if by is not None else 2)] for _ in range(200))
    is_apart = any(not np.array_equal(*(one.run(given)[0] for one in both)) for given in runs)
    verdict = hl.verify(text, changed, level="regions", patience=5, timeout=40)
    assert not (is_apart and verdict.ok)
