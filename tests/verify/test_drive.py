"""Driven runs: what places windows is enumerated at its ends, named constants are tried, and arithmetic is undone."""

import numpy as np
import pytest
from two_programs import names, regions
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.verify.drive import aims
from hlo_lower.verify.drive.aims import Inverse
from hlo_lower.verify.drive.driven_runs import listed, runs_of
from hlo_lower.verify.drive.input_roles import REGIMES, Roles, roles_of
from hlo_lower.verify.drive.outcomes import Outcomes
from hlo_lower.verify.read.program import Program


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


@pytest.mark.parametrize("regime", REGIMES)
def test_each_regime_comes_with_ordinary_floats(regime):
    """Rounding is seen only where sums are of ordinary numbers, so no regime goes without them."""
    floats = [run.arguments[0] for run in runs_of(SHIFTED, [0]) if run.aim == regime]
    assert any(np.isfinite(f).all() and 0 < np.abs(f).max() < 10 for f in floats)


def test_all_kinds_of_floats_come():
    """Some are NaN, infinite, large, and zeros with a sign."""
    floats = [run.arguments[0] for run in runs_of(SHIFTED, [0])]
    large = any((np.abs(f[np.isfinite(f)]) > 1e8).any() for f in floats)
    zeros = any((f == 0).all() and np.signbit(f).any() for f in floats)
    assert (np.isnan(floats).any(), np.isinf(floats).any(), large, zeros) == (True,) * 4


def test_the_constants_of_the_pieces_are_tried():
    """Of 12,345 in the pieces the neighbours come, too; 0.7 comes exactly, and negated."""
    for kind, constant, tried in (
        ("i32", "12345", {12344, 12345, 12346}),
        ("f32", "0.7", {float(np.float32(0.7)), -float(np.float32(0.7))}),
    ):
        body = f"%k = constant {constant} : 8x{kind}; %r = {{}} %a, %k"
        found = roles(f"%a: 8x{kind}", body.format("add"), body.format("maximum"))
        assert found.integers == ((12345,) if kind == "i32" else ())
        assert tried <= values(found)


@pytest.mark.parametrize("kind", ["i8", "ui8", "i64", "ui64", "i1", "f16", "f64"])
def test_every_type_is_drawn(kind):
    """Inputs of every plain type come in the type, integers at both ends of it."""
    one, other = ("add", "maximum") if kind != "i1" else ("and", "xor")
    found = roles(f"%a: 4x{kind}", f"%r = {one} %a, %a", f"%r = {other} %a, %a")
    assert {run.arguments[0].dtype for run in runs_of(found, [0])} == {found.inputs[0].dtype}
    if found.inputs[0].is_integer:
        ends = np.iinfo(found.inputs[0].dtype)
        assert {int(ends.min), int(ends.max)} <= {int(v) for v in values(found)}


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


PRODUCTS = {
    "bij,bkj->bik": ("batching_dims = [0] x [0], contracting_dims = [2] x [2]", (2, 3, 5), (2, 4, 5)),
    "ij,jk->ik": ("contracting_dims = [1] x [0]", (3, 4), (4, 4)),
    "ijbc,jlcb->bil": ("batching_dims = [2] x [3], contracting_dims = [1, 3] x [0, 2]", (2, 3, 2, 2), (3, 4, 2, 2)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_solved_for_its_operands(name):
    """What the operands are to be has the product that is wanted."""
    how, *shapes = PRODUCTS[name]
    made = np.einsum(name, *map(np.zeros, shapes)).shape
    first, second = ("x".join([*map(str, shape), "f32"]) for shape in shapes)
    text = module(f"%x: {first}, %y: {second}", f"%r = dot_general %x, %y, {how}")
    program = Program(mlir.parse_module(text))
    entry = program.entries["main"]
    values = {
        v: np.ones(s, np.float32) for v, s in zip([*entry.arguments, *entry.returned], [*shapes, made], strict=True)
    }
    target = np.random.default_rng(1).normal(size=made).astype(np.float32)
    solver = Inverse(program, values, np.random.default_rng(0), 1)
    solutions = list(solver.solved(entry.returned[0], (target, np.ones(made, bool))))
    assert len(solutions) == 2
    for solution in solutions:
        np.testing.assert_array_equal(np.einsum(name, *(solution[v][0] for v in entry.arguments)), target)


@pytest.mark.parametrize("element", ["i16", "i32"])
def test_both_sides_of_a_maximum_are_looked_for_in_each_integer_type(element):
    """Of a maximum of integers, i16 among them, it is watched which of its operands is the greater one."""
    piece = module(f"%a: 4x{element}, %b: 4x{element}", "%r = maximum %a, %b")
    watched = Outcomes.of(piece, {}, [""], only_entered=False, sorts=False, no_nan=False)
    assert {point.outcome for point in watched.points} == {"less", "greater"}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.int8])
def test_a_factor_is_undone_in_every_width_also_of_a_single_number(shape, dtype):
    """x * o modulo the type's size has one x for an odd o; a NumPy scalar does not wrap on the way."""
    x, o, low, high = (np.full(shape, n, dtype)[()] for n in (100, 77, 125, 127))
    with np.errstate(all="ignore"):
        assert np.all(aims._modular(x * o, o) == x)
        assert np.all(aims._middle(high, low) == 126)
