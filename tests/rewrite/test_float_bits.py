"""Floats from their bits, and their bits, without `bitcast_convert`: of each exponent, and where it is not possible."""

import jax
import numpy as np
import pytest
from rule_examples import target
from untyped_mlir import module

import hlo_lower as hl

TARGET = target("npu", "bitcast_convert")


def words():
    """The bits of zeros, infinities, NaN and numbers of each exponent but that of subnormals, of both signs."""
    mantissas = np.int64([0, 1, 2, 0x155555, 0x400000, 0x7FFFFE, 0x7FFFFF])
    found = ((np.arange(1, 255, dtype=np.int64) << 23)[:, None] | mantissas).reshape(-1)
    found = np.append(found, [0, 255 << 23, 0x7FC00000])
    return np.concatenate([found, found | 1 << 31]).astype(np.uint32).view(np.int32)


def computed(text, *given):
    """What a lowered module gives, without the op."""
    lowered = hl.lower(text, target=TARGET)
    assert "bitcast_convert" not in lowered.text
    [found] = jax.tree.leaves(jax.jit(lowered.exported.call)(*given))
    return np.asarray(found)


WORDS = words()
MADE = f"%f = bitcast_convert %b -> {len(WORDS)}xf32; %r = multiply %f, %x"
READ = f"%f = multiply %x, %y; %r = bitcast_convert %f -> {len(WORDS)}xi32"


def test_floats_are_those_of_their_bits():
    """NaN and infinities as well; zeros keep their sign."""
    floats = computed(module(f"%b: {len(WORDS)}xi32, %x: {len(WORDS)}xf32", MADE), WORDS, np.ones(len(WORDS), "f4"))
    same = floats.view(np.int32) == WORDS
    assert (same | np.isnan(WORDS.view(np.float32)) & np.isnan(floats)).all()


def test_bits_are_those_of_the_floats():
    """A NaN that was computed is the positive one."""
    given = WORDS.view(np.float32)
    bits = computed(module(f"%x: {len(WORDS)}xf32, %y: {len(WORDS)}xf32", READ), given, np.ones(len(WORDS), "f4"))
    assert np.array_equal(bits, np.where(np.isnan(given), 0x7FC00000, WORDS))


LEFT = {
    "the bits of an argument, whose NaN may be any": ("%x: 4xf32", "%r = bitcast_convert %x -> 4xi32"),
    "floats that are returned": ("%b: 4xi32", "%r = bitcast_convert %b -> 4xf32"),
    "floats whose sign is read": ("%b: 4xi32", "%f = bitcast_convert %b -> 4xf32; %r = negate %f"),
    "f16": ("%x: 4xf16", "%f = add %x, %x; %r = bitcast_convert %f -> 4xi16"),
    "words": ("%b: 4x2xui32", "%r = bitcast_convert %b -> 4xui64"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_may_not_be_computed_is_left(name):
    """Where bits of a NaN or of a subnormal number may be read, and for other types."""
    lowered = hl.lower(module(*LEFT[name]), target=TARGET)
    assert [left.op for left in lowered.refused] == ["stablehlo.bitcast_convert"]
