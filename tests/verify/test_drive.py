"""Driven runs: what places windows is enumerated at its ends, named constants are tried, and arithmetic is undone."""

import numpy as np
import pytest
from two_programs import names, regions
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.verify.drive import aims, ties
from hlo_lower.verify.drive.aims import Inverse
from hlo_lower.verify.drive.driven_runs import list_values, runs_of
from hlo_lower.verify.drive.input_roles import REGIMES, Roles, roles_of
from hlo_lower.verify.drive.outcomes import Outcomes
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import Executable


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
    tried = list_values(SHIFTED.inputs[place], SHIFTED.integers)
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
    solutions = list(solver.solve(entry.returned[0], (target, np.ones(made, bool))))
    assert len(solutions) == 2
    for solution in solutions:
        np.testing.assert_array_equal(np.einsum(name, *(solution[v][0] for v in entry.arguments)), target)


@pytest.mark.parametrize("depth", [3, 60])
def test_ways_back_are_tried_up_to_a_number_of_them(depth):
    """Of 60 sums of what nothing undoes there are 2^60 ways to an input, and what stands on another way is found."""
    chain = "%s0 = popcnt %x; " + "; ".join(f"%s{k + 1} = subtract %s{k}, %s{k}" for k in range(depth))
    program = Program(mlir.parse_module(module("%x: i32, %y: i32", f"{chain}; %r = add %y, %s{depth}")))
    entry = program.entries["main"]
    values = {value: np.zeros((), np.int32) for value in range(len(program.types))}
    solver = Inverse(program, values, np.random.default_rng(0), 1)
    found = list(solver.solve(entry.returned[0], (np.full((), 7, np.int32), np.ones((), bool))))
    assert [{value: int(target) for value, (target, _) in one.items()} for one in found] == [{entry.arguments[1]: 7}]


@pytest.mark.parametrize("element", ["i16", "i32"])
def test_both_sides_of_a_maximum_are_looked_for_in_each_integer_type(element):
    """Of a maximum of integers, i16 among them, it is watched which of its operands is the greater one."""
    piece = module(f"%a: 4x{element}, %b: 4x{element}", "%r = maximum %a, %b")
    watched = Outcomes.of(piece, {}, [""], only_entered=False, sorts=False, no_nan=False)
    assert {point.outcome for point in watched.points} == {"less", "greater"}


def watched(body, arguments="%x: 64xf32"):
    """What is looked at of a piece."""
    return Outcomes.of(module(arguments, body), {}, [""], only_entered=False, sorts=False, no_nan=False)


BOTH = [ties.EVEN, ties.ODD]
ROUNDINGS = {
    # numbers at a tie above an even neighbour, above an odd one, and at none though a float of fewer digits would be
    **{
        f"round_nearest_{how} %x": ("f32", [0.5, -2.5, 4194304.5], [1.5, -3.5], [0.0, 1.0, 0.49999997, -0.50000006])
        for how in ("even", "afz")
    },
    "reduce_precision %x, format = e5m10": ("f32", [1 + 2**-11], [-1 - 3 * 2**-11], [1 + 2**-12, 2**-15, 1e6]),
    "convert %x -> 64xbf16": ("f32", [1 + 2**-8, -(2.0**99) - 2.0**91], [1 + 3 * 2**-8], [1 + 2**-22, 1e-40]),
    "convert %x -> 64xf16": ("f64", [1 + 2**-11], [2 + 3 * 2**-10], [1 + 2**-50, 2**20 + 2**9, np.inf, np.nan]),
    "convert %x -> 64xf8E4M3FN": ("bf16", [1.0625, -272.0], [1.1875, 17.0 * 1.117647], [1.125, 500.0]),
    "convert %x -> 64xf32": ("i32", [2**24 + 1, -(2**25) - 2], [2**24 + 3, -(2**30) - 192], [2**24, -(2**31), 7, 0]),
    "convert %x -> 64xf64": ("ui64", [2**53 + 1, 2**63 + 2**10], [2**64 - 2**10], [2**53, 2**63, 2**64 - 1, 5, 0]),
}  # fmt: skip


@pytest.mark.parametrize("op", ROUNDINGS)
def test_ties_are_counted_and_aimed_at(op):
    """Those of either kind, and no neighbour of them; what is aimed at is what is counted."""
    source, *numbers = ROUNDINGS[op]
    found = watched(f"%r = {op}", f"%x: 64x{source}")
    assert [point.outcome for point in found.points] == BOTH
    executable = Executable(found.text, "exact")
    dtype = executable.arguments[0].dtype
    for kind, expected in zip(numbers, ([1, 0], [0, 1], [0, 0]), strict=True):
        for number in kind:
            counts = executable.run([np.full(64, number, dtype)])
            assert [int(count) // 64 for count in counts] == expected, number
    rng = np.random.default_rng(0)
    for point, expected in zip(found.points, ([64, 0], [0, 64]), strict=True):
        for there in (np.zeros(64), rng.normal(size=64) * 100):
            aimed = ties.aim_operand(point.op, point.outcome, there.astype(dtype), rng)
            assert [int(count) for count in executable.run([aimed])] == expected


def test_a_fraction_of_each_sign_is_counted():
    """Of what becomes an integer, of an unsigned one above zero alone."""
    for made, outcomes in (("i32", [ties.ABOVE, ties.BELOW]), ("ui8", [ties.ABOVE])):
        found = watched(f"%r = convert %x -> 64x{made}")
        assert [point.outcome for point in found.points] == outcomes
        counts = Executable(found.text, "exact").run([np.resize(np.float32([0.5, -1.25, 3.0, -0.0]), 64)])
        assert [int(count) for count in counts] == [16] * len(outcomes)


MASK = """%b = bitcast_convert %x -> 64xui32; %m = constant 4294901760 : 64xui32; %c = and %b, %m
%d = bitcast_convert %c -> 64xf32; %n = compare NE, %x, %x; %s = select %n, %x, %d"""
WIDENED = """%a = convert %x -> 64xf32; %k = constant 0.3 : 64xf32; %b = convert %k -> 64xbf16
%c = convert %b -> 64xf32; %q = maximum %a, %c; %s = negate %q"""
BITS = """%c = constant {} : 64xi32; %d = bitcast_convert %c -> 64xf32; %a = convert %x -> 64xf32
%s = maximum %a, %d; %r = convert %s -> 64xbf16"""
TIMES = "%k = constant {} : 64xf32; %s = multiply %a, %k"
NO_TIES = {
    "whole numbers": ("i8", f"%a = convert %x -> 64xf32; {TIMES.format(3.0)}; %r = round_nearest_even %s"),
    "what was rounded": ("f32", "%a = floor %x; %s = add %a, %a; %r = convert %s -> 64xi32"),
    "no half": ("f32", f"%a = logistic %x; {TIMES.format(0.25)}; %r = round_nearest_afz %s"),
    "small integers": ("i8", "%r = convert %x -> 64xbf16"),
    "a remainder": ("i32", "%k = constant 256 : 64xi32; %s = remainder %x, %k; %r = convert %s -> 64xbf16"),
    "a multiple": ("i32", "%k = constant 65536 : 64xi32; %s = multiply %x, %k; %r = convert %s -> 64xf32"),
    "the greater of two that were narrow": ("bf16", f"{WIDENED}; %r = convert %s -> 64xbf16"),
    "what a mask cuts off": ("f32", f"{MASK}; %r = convert %s -> 64xbf16"),
    "the greater of it and an infinity by its bits": ("bf16", BITS.format(-8388608)),
    "no float": ("f32", "%r = convert %x -> 64xcomplex<f32>"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_TIES)
def test_what_cannot_be_at_a_tie_is_not_asked_for(name):
    kind, body = NO_TIES[name]
    assert [point for point in watched(body, f"%x: 64x{kind}").points if point.outcome in ties.TIES] == []


NARROW = """%u = convert %x -> 64xf32; %k0 = constant {} : 64xbf16; %k = convert %k0 -> 64xf32; %p = {}
%r = convert %p -> 64xbf16"""
SQUARE = "%a = convert %x -> 64xf32; %p = multiply %a, %a"
MAY_BE = {
    f"{SQUARE}; %r = convert %p -> 64xbf16": [ties.EVEN],  # of an odd m, m * m = 8 k + 1
    NARROW.format(3.0, "multiply %u, %u"): [ties.EVEN],
    NARROW.format(0.5, "multiply %u, %k"): [],
    NARROW.format(0.30078125, "multiply %k, %u"): [ties.EVEN],  # 77 * 5 = 4 * 96 + 1, and no other odd one has 9 digits
    NARROW.format(3.0, "multiply %u, %k"): BOTH,
    NARROW.format(3.0, "divide %u, %k"): [],
    NARROW.format(3.0, "add %u, %k"): BOTH,
    f"{SQUARE}; %q = multiply %p, %a; %r = convert %q -> 64xbf16": BOTH,
    BITS.format(1067030938): BOTH,  # 1.2
    "%a = logistic %x; %r = round_nearest_even %a": [ties.EVEN],
    f"%n = compare NE, %x, %x; {SQUARE}; %k = sine %a; %s = select %n, %k, %a; %r = convert %s -> 64xbf16": BOTH,
}


@pytest.mark.parametrize(("body", "outcomes"), MAY_BE.items())
def test_what_may_be_at_a_tie_is_asked_for(body, outcomes):
    found = watched(body, "%x: 64xbf16").points
    assert [point.outcome for point in found if point.outcome in ties.TIES] == outcomes


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.int8])
def test_a_factor_is_undone_in_every_width_also_of_a_single_number(shape, dtype):
    """x * o modulo the type's size has one x for an odd o; a NumPy scalar does not wrap on the way."""
    x, o, low, high = (np.full(shape, n, dtype)[()] for n in (100, 77, 125, 127))
    with np.errstate(all="ignore"):
        assert np.all(aims._modular(x * o, o) == x)
        assert np.all(aims._middle(high, low) == 126)
