"""Unsigned integers that one version computes on signed ones: both are read on signed ones, with the same results."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rule_examples import target
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.align.signed_bits import read_on_signed
from hlo_lower.verify.run import Executable

DERIVES = True
BINARY = (
    *(lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor),
    *(lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic, lax.eq, lax.ne, lax.lt, lax.ge),
)
WITHOUT_BITS = {f"stablehlo.{op}": ["i1"] for op in ("and", "or", "xor", "not")}
SIGNED_ONLY = target(
    "npu", "shift_left", "shift_right_logical", "while", dtypes=["i1", "i32", "f32"], op_dtypes=WITHOUT_BITS
)


@jax.jit
def called(x, y):
    """A function that passes such integers on."""
    return x // y, x * y


def many_ops(x, y):
    """Ops that see the sign and ops that do not, moves, reductions, a sort, a loop, a branch, a call."""
    some = [op(x, y) for op in BINARY]
    some += [~x, lax.population_count(x), lax.clz(x), x.astype("float32"), x.astype("int32"), x != 0]
    some += [jnp.flip(x.T), jnp.concatenate([x, y]), x.sum(0), x.max(1), jnp.sort(x, 1), jnp.full_like(x, 250)]
    some += [
        lax.dynamic_slice(x, (y[0, 0] % 3, y[0, 1] % 3), (2, 2)),
        lax.dynamic_update_slice(x, y[:2], (y[0, 0] % 3, y[0, 1] % 3)),
    ]
    some += [lax.fori_loop(jnp.asarray(0, x.dtype), y[1, 1] % 4, lambda k, z: z // (k + 2) + y, x)]
    some += [lax.cond(x[0, 0] > y[0, 0], lambda: x // 3, lambda: y), *called(x, y)]
    return some


def on_signed(element):
    """A module that adds signed integers, of which the bits are those of unsigned ones."""
    signed = element.removeprefix("u")
    casts = f"%a = bitcast_convert %x -> 2x{signed}; %b = add %a, %a; %r = bitcast_convert %b -> 2x{element}"
    return module(f"%x: 2x{element}", casts)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_what_is_read_computes_the_same(dtype):
    """Bit for bit, of numbers on both sides of the sign bit; no op is left on unsigned integers that need not be."""
    rng = np.random.default_rng(0)
    most = np.iinfo(dtype).max
    given = [rng.integers(0, most, (3, 3), dtype, endpoint=True), np.array([[0, 1, 2], [3, most, 7], [9, 1, 4]], dtype)]
    text = hl.export(many_ops, *given).mlir_module()
    element = f"ui{np.iinfo(dtype).bits}"
    [read, _] = read_on_signed([text, on_signed(element)])
    assert not [line for line in read.splitlines() if "stablehlo.xor" in line and element in line]
    found = [Executable(one, "quick").run(given) for one in (read, text)]
    for one, right in zip(*found, strict=True):
        np.testing.assert_array_equal(one, right)


@pytest.mark.parametrize("start", [200, 1, 127])
def test_starts_stay_unsigned(start):
    """Beyond the half of their type they are large and not below 0: the last elements are read and written."""
    body = (
        "%a = dynamic_slice %x, %i, sizes = [2]; %b = dynamic_update_slice %x, %a, %i; %c = concatenate %a, %b, dim = 0"
    )
    text = module("%x: 4xui8, %i: ui8", f"{body}; %r = add %c, %c")
    [read, _] = read_on_signed([text, on_signed("ui8")])
    given = [np.arange(4, dtype=np.uint8), np.uint8(start)]
    found = [Executable(one, "quick").run(given)[0] for one in (read, text)]
    np.testing.assert_array_equal(*found)
    assert list(found[0][:2]) == ([2, 4] if start == 1 else [4, 6])


def test_what_is_not_read_on_signed_integers():
    """Both versions compute on them; none does; no bits are cast; or a function that a composite names takes one."""
    unsigned, signed = (module(f"%x: 2x{kind}", "%r = add %x, %x") for kind in ("ui32", "i32"))
    assert read_on_signed([unsigned, unsigned]) is None
    assert read_on_signed([signed, signed]) is None
    assert read_on_signed([unsigned, signed]) is None, "nothing says that the signed integers are the same bits"
    assert read_on_signed([unsigned, on_signed("ui32")]) is not None
    named = lax.composite(lambda x: x + x, "acme.twice")
    assert read_on_signed([hl.export(named, np.zeros(2, np.uint32)).mlir_module(), on_signed("ui32")]) is None


def rounds(x, y, *, wrong=False):
    """Two rounds of a cipher; in the wrong one a bit is turned elsewhere."""
    for by in (13, 15 + wrong):
        x = x + y
        y = x ^ ((y << by) | (y >> (32 - by)))
    return x, y


def verdict_of(other):
    """What is said of two rounds and other ones on signed integers."""
    given = np.zeros((2, 8), np.uint32)
    source, lowered = hl.export(rounds, *given), hl.lower(hl.export(other, *given), target=SIGNED_ONLY)
    return hl.verify(source, lowered, level="regions").regions


def test_rounds_on_signed_integers_are_derived_one_by_one():
    """No region holds more than a round."""
    regions = verdict_of(rounds)
    assert {region.how for region in regions} == {"derived"}
    assert max(len(region.first) for region in regions) <= 3


@pytest.mark.sweep
def test_a_wrong_round_differs():
    """A bit is turned elsewhere."""
    assert "differs" in {region.status for region in verdict_of(partial(rounds, wrong=True))}
