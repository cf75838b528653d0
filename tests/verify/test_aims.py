"""Constants that are met through arithmetic: runs are aimed at them, and what none reaches ends in "only run"."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.drive import aims
from hlo_lower.verify.drive.aims import Inverse
from hlo_lower.verify.drive.outcomes import Outcomes
from hlo_lower.verify.read.program import Program


def negated(kind, lines, compared, number):
    """A module that returns x, and one that returns -x where %s, computed by lines, is a number."""
    body = f"{lines}; %k = constant {number} : {compared}; %q = compare EQ, %s, %k; %n = negate %x"
    return [module(f"%x: {kind}", f"{body}; %w = select %q, %n, %x", returned) for returned in ("%x", "%w")]


HASH = """%c = constant 2654435761 : 8xui32; %d = constant 16 : 8xui32
%m = multiply %x, %c; %s = shift_right_logical %m, %d"""
MET = {
    "difference": ("8xi32", "%c = constant 1000 : 8xi32; %s = subtract %x, %c", "8xi32", 1234567),
    "square": ("8xi32", "%s = multiply %x, %x", "8xi32", 1522756),
    "hash": ("8xui32", HASH, "8xui32", 4242),
    "bits": ("8xf32", "%s = bitcast_convert %x -> 8xi32", "8xi32", 1078530011),
    "scaled": ("8xf32", "%c = constant 0.0078125 : 8xf32; %s = multiply %x, %c", "8xf32", 100.0),
    "converted": ("8xi32", "%s = convert %x -> 8xf32", "8xf32", 12345.0),
    "quotient": ("8xi32", "%c = constant 1000 : 8xi32; %s = divide %x, %c", "8xi32", 777),
    "mixed bits": ("8xi32", "%c = constant 1431655765 : 8xi32; %y = xor %x, %c; %s = not %y", "8xi32", 987654321),
    "moved": (
        *("8xf32", "%c = constant 3.0 : 8xf32; %r = reverse %x, dims = [0]; %a = abs %r; %s = add %a, %c"),
        *("8xf32", 2000.5),
    ),
    # 77 x * x - x is even and never 5, which no law says
    "never met": (
        *("8xi32", "%c = constant 77 : 8xi32; %y = multiply %x, %x; %z = multiply %y, %c; %s = subtract %z, %x"),
        *("8xi32", 5),
    ),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("name", MET)
def test_a_constant_met_through_arithmetic_is_reached(name):
    """One version treats one number otherwise, which it computes with first: the two differ. Where it is not reached
    the verdict says what no run had, and is no proof."""
    verdict = verify(*negated(*MET[name]), level="regions")
    assert verdict.exit_code == (4 if name == "never met" else 1), verdict.lines()
    assert name != "never met" or "no run had equal" in verdict.regions[0].reason


PRODUCTS = {
    "bij,bkj->bik": ("batching_dims = [0] x [0], contracting_dims = [2] x [2]", (2, 3, 5), (2, 4, 5)),
    "ij,jk->ik": ("contracting_dims = [1] x [0]", (3, 4), (4, 4)),
    "ji,j->i": ("contracting_dims = [0] x [0]", (3, 3), (3,)),
    "ijc,cbk->ijbk": ("contracting_dims = [2] x [0]", (2, 3, 6), (6, 2, 1)),
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


CLAMP = "%r = clamp %z, %i, %n"
SELECTS = """%p = compare LT, %i, %z; %a = select %p, %z, %i
%q = compare GT, %a, %n; %r = select %q, %n, %a"""
DECIDED = "%c = clamp %z, %i, %n; %p = compare LT, %c, %z; %a = add %c, %n; %r = select %p, %a, %c"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("%m = maximum %i, %z; %r = minimum %m, %n", id="a clamp as a maximum and a minimum"),
        pytest.param(SELECTS, id="a clamp as selects"),
        pytest.param(DECIDED, id="a comparison that a clamp decides"),
    ],
)
def test_rewritings_are_still_equal(other):
    """What compilers rewrite has every outcome in some run, or cannot have it: equal."""
    ends = "%z = constant 0 : i32; %n = constant 7 : i32;"
    verdict = verify(*(module("%i: i32", f"{ends} {body}") for body in (CLAMP, other)), level="regions")
    assert verdict.exit_code == 0, verdict.lines()


@pytest.mark.parametrize(("most", "code"), [(5000, 1), (1 << 30, 4)])
def test_sizes_are_tried_on_both_sides_of_what_they_are_compared_with(most, code):
    """A size of 71 shows that the two differ; one of 32,769 is not tried, and the verdict says so."""
    body = f"""%n = get_dimension_size %x, dim = 0; %k = constant {most} : i32; %s = multiply %n, %n
    %p = compare GT, %s, %k; %m = negate %x; %w = select %p, %m, %x"""
    verdict = verify(*(module("%x: ?xf32", body, returned) for returned in ("%x", "%w")), level="regions")
    assert verdict.exit_code == code, verdict.lines()


def test_an_element_in_which_two_tables_differ_is_met():
    """Of forty edges one is another number in the second version: runs hold both numbers."""
    edges = [round(-18 + 0.37 * k, 2) for k in range(40)]
    body = """%t = constant TABLE : 40xf32; %b = broadcast_in_dim %x, dims = [0] -> 4x40xf32
    %u = broadcast_in_dim %t, dims = [1] -> 4x40xf32; %r = compare GE, %b, %u"""
    tables = edges, [*edges[:25], edges[25] + 1e-4, *edges[26:]]
    texts = [module("%x: 4xf32", body.replace("TABLE", str(table))) for table in tables]
    assert verify(*texts, level="regions").exit_code == 1


@pytest.mark.parametrize("element", ["i8", "i16", "i32"])
def test_both_sides_of_a_maximum_are_looked_for_in_each_integer_type(element):
    """Of a maximum of integers, i16 among them, it is watched which of its operands is the greater one."""
    piece = module(f"%a: 4x{element}, %b: 4x{element}", "%r = maximum %a, %b")
    watched = Outcomes.of(piece, {}, [""], only_entered=False, sorts=False, no_nan=False)
    assert {point.outcome for point in watched.points} == {"less", "greater"}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.int8])
def test_a_factor_is_undone_in_every_width_also_of_a_single_number(shape, dtype):
    """x * o modulo the type's size has one x for an odd o; a NumPy scalar does not wrap on the way."""
    x, o, low, high = (np.full(shape, n, dtype)[()] for n in (100, 77, 125, 127))
    with np.errstate(all="ignore"):
        assert np.all(aims._modular(x * o, o) == x)
        assert np.all(aims._middle(high, low) == 126)
