"""Comparisons in f64 of numbers of f32, for targets without f64: the same answer for each number."""

import numpy as np
import pytest
from rewrites import assert_same as same
from rule_examples import target
from untyped_mlir import module

import hlo_lower as hl

NPU = target("no_f64", refused_dtypes={"f64": "none"})
CONSTANTS = (0.1, -0.1, 20.0, 1 / 3, 1e300, -1e300, 0.0, -0.0, np.inf, np.nan, 65505.0, 3.4028235677973366e38)
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
TYPES = {"f32": np.float32, "f16": np.float16}


def compared(constant, element="f32", directions=DIRECTIONS):
    """What was widened, compared with a constant: each way, on either side."""
    lines = ["%w = convert %x -> 64xf64", f"%c = constant 0x{np.float64(constant).view(np.uint64):016X} : 64xf64"]
    pairs = [(direction, sides) for direction in directions for sides in ("%w, %c", "%c, %w")]
    lines += [f"%r{k} = compare {direction}, {sides}, FLOAT" for k, (direction, sides) in enumerate(pairs)]
    return module(f"%x: 64x{element}", "\n".join(lines), ", ".join(f"%r{k}" for k in range(len(pairs))))


def around(constant, dtype):
    """Numbers of a type: those next to a constant, zeros, infinities, NaN, and others."""
    with np.errstate(all="ignore"):
        near = np.array(constant).astype(dtype)
        told = [near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf)), -near]
    told += [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny]
    return np.concatenate([np.array(told, dtype), np.random.default_rng(0).normal(0, 30, 64 - len(told)).astype(dtype)])


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("constant", CONSTANTS, ids=str)
def test_each_number_compares_as_in_f64(constant, element):
    """With a constant that the narrower type has, and with one between two of its numbers."""
    text = compared(constant, element)
    lowered = hl.lower(text, target=NPU)
    assert "f64" not in lowered.text
    same(text, lowered, around(constant, TYPES[element]))


def test_it_is_derived():
    """By the law of numbers that were widened; the nearest number in the place of the one below is seen to differ."""
    text = compared(0.1, directions=["GT"])
    lowered = hl.lower(text, target=NPU)
    assert {region.how for region in hl.verify(text, lowered).regions} == {"derived"}
    assert "0.099999994" in lowered.text
    assert not hl.verify(text, lowered.text.replace("0.099999994", "0.1")).ok


@pytest.mark.parametrize("lines", ["%w = convert %x -> 64xf64\n%d = add %w, %w", "%d = convert %i -> 64xf64"])
def test_other_numbers_of_f64_stay(lines):
    """A sum is none of f32, nor is an integer; what is next to 0 in f32 may be 0 to a processor; a total order tells
    zeros apart."""
    text = module("%x: 64xf32, %i: 64xi32", f"{lines}\n%c = constant 0.5 : 64xf64\n%r = compare GT, %d, %c, FLOAT")
    assert "f64" in hl.lower(text, target=NPU).text
    assert "f64" in hl.lower(compared(1e-50, directions=["LT"]), target=NPU).text
    assert "f64" in hl.lower(compared(0.0, directions=["LT"]).replace("FLOAT", "TOTALORDER"), target=NPU).text
