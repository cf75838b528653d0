"""Roles and driven runs: what places windows is enumerated at its ends, and named constants are tried."""

import numpy as np
import pytest
from two_programs import names, regions
from untyped_mlir import module

from hlo_lower.verify.drive.driven_runs import listed, runs_of
from hlo_lower.verify.drive.input_roles import REGIMES, Roles, roles_of


def roles(arguments: str, before: str, after: str, returned: str = "%r") -> Roles:
    """The roles of the inputs of the only region whose operations differ."""
    found = regions(*(module(arguments, body, returned) for body in (before, after)))
    [region] = [found for found in found if names(found)[0] != names(found)[1]]
    return roles_of(region)


def values(found: Roles, place: int = 0) -> set:
    """All numbers that are given for an input."""
    return {v.item() for run in runs_of(found, [0]) for v in run.arguments[place].reshape(-1)}


SLICED = "%s = dynamic_slice %o, {}, sizes = [3]; %r = negate %s"
SHIFTED = roles(
    "%o: 8xf32, %i: i32", SLICED.format("%i"), f"%one = constant 1 : i32; %j = add %i, %one; {SLICED.format('%j')}"
)
"""A slice that is rewritten as a whole."""


def test_every_boundary_of_a_start_is_enumerated():
    """All starts near both ends, inside and outside, the ends of the type and of narrower ones come one by one."""
    [place] = [k for k, role in enumerate(SHIFTED.inputs) if role.dtype == np.int32]
    tried = listed(SHIFTED.inputs[place], SHIFTED.integers)
    assert {*range(-2, 10), -8, -9, -(2**31), 2**31 - 1, 127, 128, 255, 256, 32767, 32768, 65536} <= set(tried)
    assert set(tried) <= values(SHIFTED, place)


def test_all_regimes_and_all_kinds_of_floats_come():
    """Starts go through every regime; floats are ordinary, special, large and zeros of both signs."""
    runs = list(runs_of(SHIFTED, [0]))
    assert set(REGIMES) <= {run.aim for run in runs}
    floats = [run.arguments[0] for run in runs]
    assert any(np.isnan(f).any() for f in floats)
    assert any(np.isinf(f).any() for f in floats)
    assert any((np.abs(f[np.isfinite(f)]) > 1e8).any() for f in floats)
    assert any((f == 0).all() and np.signbit(f).any() for f in floats)


@pytest.mark.parametrize("regime", REGIMES)
def test_of_each_regime_one_run_has_ordinary_floats(regime):
    """Rounding is seen only where sums are of ordinary numbers, so no regime goes without them."""
    floats = [run.arguments[0] for run in runs_of(SHIFTED, [0]) if run.aim == regime]
    assert any(np.isfinite(f).all() and 0 < np.abs(f).max() < 10 for f in floats)


def test_the_constants_of_the_pieces_are_tried():
    """12,345 stands in the pieces, so it, the number before and the one behind are among the inputs; 0.7 comes exactly,
    and negated, too."""
    for kind, constant, tried in (
        ("i32", "12345", {12344, 12345, 12346}),
        ("f32", "0.7", {float(np.float32(0.7)), -float(np.float32(0.7))}),
    ):
        body = f"%k = constant {constant} : 8x{kind}; %r = {{}} %a, %k"
        found = roles(f"%a: 8x{kind}", body.format("add"), body.format("maximum"))
        assert found.integers == ((12345,) if kind == "i32" else ())
        assert tried <= values(found)


@pytest.mark.parametrize("kind", ["i8", "ui8", "i16", "i32", "i64", "ui64", "i1", "f16", "bf16", "f64"])
def test_every_type_is_drawn(kind):
    """Inputs of every plain type come in the type, integers at both ends of it."""
    one, other = ("add", "maximum") if kind != "i1" else ("and", "xor")
    found = roles(f"%a: 4x{kind}", f"%r = {one} %a, %a", f"%r = {other} %a, %a")
    assert {run.arguments[0].dtype for run in runs_of(found, [0])} == {found.inputs[0].dtype}
    if found.inputs[0].is_integer:
        ends = np.iinfo(found.inputs[0].dtype)
        assert {int(ends.min), int(ends.max)} <= {int(v) for v in values(found)}


def test_a_byte_takes_all_its_values():
    """A scalar of 8 bits is enumerated."""
    assert values(roles("%a: i8", "%r = add %a, %a", "%r = maximum %a, %a")) == set(range(-128, 128))


COUNTED = """%s = constant {0} : i32
%w:2 = while(%k = %s, %x = %a) cond {{ %n = constant {1} : i32; %p = compare LT, %k, %n; return %p }} do {{
  %one = constant {2} : i32; %next = add %k, %one; %h = {3} %k, %k; %f = convert %h -> f32
  %g = broadcast_in_dim %f, dims = [] -> 8xf32; %t = add %x, %g; return %next, %t }}"""


@pytest.mark.parametrize(
    ("start", "end", "step", "taken"),
    [(0, 4, 1, range(4)), (3, 10, 3, range(3, 12, 3)), (0, 2147483647, 1, None), (0, 4, -1, None)],
)
def test_a_loop_counter_takes_the_loop_s_values(start, end, step, taken):
    """In the body the counter is the start and every step below the end; one that may wrap around is no counter."""
    bodies = (COUNTED.format(start, end, step, op) for op in ("maximum", "multiply"))
    [role] = roles("%a: 8xf32", *bodies, "%w#1").inputs
    assert (role.values and tuple(role.values)) == (taken and tuple(taken))
    if taken is not None:
        assert values(Roles([role], (), (), 0)) == set(taken)
