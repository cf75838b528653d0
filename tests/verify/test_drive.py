"""Roles and driven runs: what places windows is enumerated at its ends, and named constants are tried."""

import numpy as np
import pytest
from two_programs import F8, main, names, regions

from hlo_lower.verify.drive.driven_runs import listed, runs_of
from hlo_lower.verify.drive.input_roles import REGIMES, Roles, roles_of

SLICED = "%s = stablehlo.dynamic_slice %o, %i, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>\n"
R3 = "tensor<3xf32>"


def roles(before: str, after: str) -> Roles:
    """The roles of the inputs of the only region whose operations differ."""
    [region] = [found for found in regions(before, after) if names(found)[0] != names(found)[1]]
    return roles_of(region)


def sliced(change: str = "negate", start: str = "") -> Roles:
    """The roles of a slice that is rewritten as a whole."""
    arguments = "%o: tensor<8xf32>, %i: tensor<i32>"
    before = main(arguments, f"{SLICED}%r = stablehlo.negate %s : {R3}", "%r", R3)
    after = SLICED.replace("%i", "%j") if start else SLICED
    return roles(before, main(arguments, f"{start}{after}%r = stablehlo.{change} %s : {R3}", "%r", R3))


SHIFT = "%one = stablehlo.constant dense<1> : tensor<i32>\n%j = stablehlo.add %i, %one : tensor<i32>\n"


def test_every_boundary_of_a_start_is_enumerated():
    """All starts near both ends, inside and outside, the ends of the type and of narrower ones come one by one."""
    found = sliced(start=SHIFT)
    [place] = [k for k, role in enumerate(found.inputs) if role.dtype == np.int32]
    values = listed(found.inputs[place], found.integers)
    assert {*range(-2, 10), -8, -9, -(2**31), 2**31 - 1, 127, 128, 255, 256, 32767, 32768, 65536} <= set(values)
    given = {int(run.arguments[place]) for run in runs_of(found, [0])}
    assert set(values) <= given


def test_all_regimes_and_all_kinds_of_floats_come():
    """Starts go through every regime; floats are ordinary, special, large and zeros of both signs."""
    found = sliced(start=SHIFT)
    runs = list(runs_of(found, [0]))
    assert set(REGIMES) <= {run.aim for run in runs}
    floats = [run.arguments[0] for run in runs]
    assert any(np.isnan(f).any() for f in floats)
    assert any(np.isinf(f).any() for f in floats)
    assert any((np.abs(f[np.isfinite(f)]) > 1e8).any() for f in floats)
    assert any((f == 0).all() and np.signbit(f).any() for f in floats)


def test_of_each_regime_one_run_has_ordinary_floats():
    """Rounding is seen only where sums are of ordinary numbers, so no regime goes without them."""
    by_aim: dict[str, list[np.ndarray]] = {}
    for run in runs_of(sliced(start=SHIFT), [0]):
        by_aim.setdefault(run.aim, []).append(run.arguments[0])
    for regime in REGIMES:
        assert any(np.isfinite(f).all() and 0 < np.abs(f).max() < 10 for f in by_aim[regime]), regime


def plain(constant: str, kind: str = "tensor<8xi32>") -> Roles:
    """The roles of a region that compares with a constant."""
    body = f"%k = stablehlo.constant dense<{constant}> : {kind}\n%r = stablehlo.{{0}} %a, %k : {kind}"
    return roles(*(main(f"%a: {kind}", body.format(op), "%r", kind) for op in ("add", "maximum")))


def test_the_constants_of_the_pieces_are_tried_with_their_neighbours():
    """12,345 stands in the pieces, so it, the number before and the one behind are among the inputs."""
    found = plain("12345")
    assert found.integers == (12345,)
    given = {int(v) for run in runs_of(found, [0]) for v in run.arguments[0].reshape(-1)}
    assert {12344, 12345, 12346} <= given


def test_float_constants_are_tried_too():
    """0.7 stands in the pieces and comes exactly, negated and doubled, too."""
    found = plain("0.7", "tensor<8xf32>")
    given = {float(v) for run in runs_of(found, [0]) for v in run.arguments[0].reshape(-1)}
    assert {float(np.float32(0.7)), -float(np.float32(0.7))} <= given


@pytest.mark.parametrize("kind", ["i8", "ui8", "i16", "i32", "i64", "ui64", "i1", "f16", "bf16", "f64"])
def test_every_type_is_drawn(kind):
    """Inputs of every plain type come in the type, integers at both ends of it."""
    found = roles(
        *(
            main(f"%a: tensor<4x{kind}>", f"%r = stablehlo.{op} %a, %a : tensor<4x{kind}>", "%r", f"tensor<4x{kind}>")
            for op in (("add", "maximum") if kind != "i1" else ("and", "xor"))
        )
    )
    runs = [run.arguments[0] for run in runs_of(found, [0])]
    assert {r.dtype for r in runs} == {found.inputs[0].dtype}
    if found.inputs[0].is_integer:
        ends = np.iinfo(found.inputs[0].dtype)
        assert {int(ends.min), int(ends.max)} <= {int(v) for r in runs for v in r}


def test_a_byte_takes_all_its_values():
    """A scalar of 8 bits is enumerated."""
    texts = [
        main("%a: tensor<i8>", f"%r = stablehlo.{op} %a, %a : tensor<i8>", "%r", "tensor<i8>")
        for op in ("add", "maximum")
    ]
    assert {int(run.arguments[0]) for run in runs_of(roles(*texts), [0])} == set(range(-128, 128))


COUNTED = f"""%s = stablehlo.constant dense<{{0}}> : tensor<i32>
%w:2 = stablehlo.while(%k = %s, %x = %a) : tensor<i32>, {F8} cond {{{{
  %n = stablehlo.constant dense<{{1}}> : tensor<i32>
  %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}}}} do {{{{
  %one = stablehlo.constant dense<{{2}}> : tensor<i32>
  %next = stablehlo.add %k, %one : tensor<i32>
  %h = stablehlo.{{3}} %k, %k : tensor<i32>
  %f = stablehlo.convert %h : (tensor<i32>) -> tensor<f32>
  %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {F8}
  %t = stablehlo.add %x, %g : {F8}
  stablehlo.return %next, %t : tensor<i32>, {F8}
}}}}"""


@pytest.mark.parametrize(
    ("start", "end", "step", "values"),
    [(0, 4, 1, range(4)), (3, 10, 3, range(3, 12, 3)), (0, 2147483647, 1, None), (0, 4, -1, None)],
)
def test_a_loop_counter_takes_the_loop_s_values(start, end, step, values):
    """In the body the counter is the start and every step below the end; one that may wrap around is no counter."""
    texts = [main(f"%a: {F8}", COUNTED.format(start, end, step, op), "%w#1") for op in ("maximum", "multiply")]
    [role] = roles(*texts).inputs
    assert (role.values and tuple(role.values)) == (values and tuple(values))
    if values is not None:
        assert {int(run.arguments[0]) for run in runs_of(Roles([role], (), (), 0), [0])} == set(values)
