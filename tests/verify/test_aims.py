"""Constants that are met through arithmetic: runs are aimed at them, and what none reaches ends in "only run"."""

import numpy as np
import pytest
from two_programs import F8, main

from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.drive import aims
from hlo_lower.verify.drive.aims import Inverse
from hlo_lower.verify.drive.outcomes import Outcomes
from hlo_lower.verify.read.program import Program

I8 = "tensor<8xi32>"
U8 = "tensor<8xui32>"


def negated(kind, lines):
    """A module that returns x, or -x where %q, computed by lines, holds; and one that returns x."""
    tail = f"%n = stablehlo.negate %x : {kind}\n%w = stablehlo.select %q, %n, %x : tensor<8xi1>, {kind}"
    return [main(f"%x: {kind}", "\n".join([*lines, tail]), returned, kind) for returned in ("%x", "%w")]


def holds(kind, value, number):
    """A comparison of a value with a number."""
    return [
        f"%k = stablehlo.constant dense<{number}> : {kind}",
        f"%q = stablehlo.compare EQ, {value}, %k : ({kind}, {kind}) -> tensor<8xi1>",
    ]


def of(kind, number, name="%c"):
    """A constant."""
    return f"{name} = stablehlo.constant dense<{number}> : {kind}"


MET = {
    "difference": (I8, [of(I8, 1000), f"%s = stablehlo.subtract %x, %c : {I8}"], I8, 1234567),
    "square": (I8, [f"%s = stablehlo.multiply %x, %x : {I8}"], I8, 1522756),
    "hash": (
        U8,
        [
            of(U8, 2654435761),
            of(U8, 16, "%d"),
            f"%m = stablehlo.multiply %x, %c : {U8}",
            f"%s = stablehlo.shift_right_logical %m, %d : {U8}",
        ],
        U8,
        4242,
    ),
    "bits": (F8, [f"%s = stablehlo.bitcast_convert %x : ({F8}) -> {I8}"], I8, 1078530011),
    "scaled": (F8, [of(F8, 0.0078125), f"%s = stablehlo.multiply %x, %c : {F8}"], F8, 100.0),
    "converted": (I8, [f"%s = stablehlo.convert %x : ({I8}) -> {F8}"], F8, 12345.0),
    "quotient": (I8, [of(I8, 1000), f"%s = stablehlo.divide %x, %c : {I8}"], I8, 777),
    "mixed bits": (
        I8,
        [of(I8, 1431655765), f"%y = stablehlo.xor %x, %c : {I8}", f"%s = stablehlo.not %y : {I8}"],
        I8,
        987654321,
    ),
    "moved": (
        F8,
        [
            of(F8, 3.0),
            f"%r = stablehlo.reverse %x, dims = [0] : {F8}",
            f"%a = stablehlo.abs %r : {F8}",
            f"%s = stablehlo.add %a, %c : {F8}",
        ],
        F8,
        2000.5,
    ),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("name", MET)
def test_a_constant_met_through_arithmetic_is_reached(name):
    """One version treats one number otherwise, which it computes with first: the two differ."""
    kind, lines, compared, number = MET[name]
    verdict = verify(*negated(kind, [*lines, *holds(compared, "%s", number)]), level="regions")
    assert verdict.exit_code == 1, verdict.lines()


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
    kinds = ["x".join([*map(str, shape), "f32"]) for shape in (*shapes, made)]
    types = [f"tensor<{kind}>" for kind in kinds]
    line = f"%r = stablehlo.dot_general %x, %y, {how} : ({types[0]}, {types[1]}) -> {types[2]}"
    program = Program(mlir.parse_module(main(f"%x: {types[0]}, %y: {types[1]}", line, "%r", types[2])))
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


def test_what_is_not_reached_is_only_run():
    """77 x * x - x is even and never 5, which no law says: the verdict says what no run had, and is no proof."""
    lines = [of(I8, 77), f"%y = stablehlo.multiply %x, %x : {I8}", f"%z = stablehlo.multiply %y, %c : {I8}"]
    lines += [f"%s = stablehlo.subtract %z, %x : {I8}", *holds(I8, "%s", 5)]
    verdict = verify(*negated(I8, lines), level="regions")
    assert verdict.exit_code == 4, verdict.lines()
    assert "no run had equal" in verdict.regions[0].reason


ZERO, SEVEN = of("tensor<i32>", 0, "%z"), of("tensor<i32>", 7, "%n")
EQUAL = {
    "a clamp as a maximum and a minimum": (
        f"{ZERO}\n{SEVEN}\n%r = stablehlo.clamp %z, %i, %n : tensor<i32>",
        f"{ZERO}\n{SEVEN}\n%m = stablehlo.maximum %i, %z : tensor<i32>\n%r = stablehlo.minimum %m, %n : tensor<i32>",
    ),
    "a clamp as selects": (
        f"{ZERO}\n{SEVEN}\n%r = stablehlo.clamp %z, %i, %n : tensor<i32>",
        f"{ZERO}\n{SEVEN}\n%p = stablehlo.compare LT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "%a = stablehlo.select %p, %z, %i : tensor<i1>, tensor<i32>\n"
        "%q = stablehlo.compare GT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "%r = stablehlo.select %q, %n, %a : tensor<i1>, tensor<i32>",
    ),
    "a comparison that a clamp decides": (
        f"{ZERO}\n{SEVEN}\n%r = stablehlo.clamp %z, %i, %n : tensor<i32>",
        f"{ZERO}\n{SEVEN}\n%c = stablehlo.clamp %z, %i, %n : tensor<i32>\n"
        "%p = stablehlo.compare LT, %c, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "%a = stablehlo.add %c, %n : tensor<i32>\n"
        "%r = stablehlo.select %p, %a, %c : tensor<i1>, tensor<i32>",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_rewritings_are_still_equal(name):
    """What compilers rewrite has every outcome in some run, or cannot have it: equal."""
    one, other = (main("%i: tensor<i32>", text, "%r", "tensor<i32>") for text in EQUAL[name])
    verdict = verify(one, other, level="regions")
    assert verdict.exit_code == 0, verdict.lines()


SIZED = """func.func public @main(%x: tensor<?xf32>) -> (tensor<?xf32>) {{
%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
%k = stablehlo.constant dense<{most}> : tensor<i32>
%s = stablehlo.multiply %n, %n : tensor<i32>
%p = stablehlo.compare GT, %s, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
%m = stablehlo.negate %x : tensor<?xf32>
%w = stablehlo.select %p, %m, %x : tensor<i1>, tensor<?xf32>
return {returned} : tensor<?xf32>
}}"""


@pytest.mark.parametrize(("most", "code"), [(5000, 1), (1 << 30, 4)])
def test_sizes_are_tried_on_both_sides_of_what_they_are_compared_with(most, code):
    """A size of 71 shows that the two differ; one of 32,769 is not tried, and the verdict says so."""
    texts = [SIZED.format(most=most, returned=returned) for returned in ("%x", "%w")]
    verdict = verify(*texts, level="regions")
    assert verdict.exit_code == code, verdict.lines()


def test_an_element_in_which_two_tables_differ_is_met():
    """Of forty edges one is another number in the second version: runs hold both numbers."""
    edges = [round(-18 + 0.37 * k, 2) for k in range(40)]
    kind, wide = "tensor<4xf32>", "tensor<4x40xf32>"
    body = "%t = stablehlo.constant dense<{}> : tensor<40xf32>\n" + (
        f"%b = stablehlo.broadcast_in_dim %x, dims = [0] : ({kind}) -> {wide}\n"
        f"%u = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<40xf32>) -> {wide}\n"
        f"%r = stablehlo.compare GE, %b, %u : ({wide}, {wide}) -> tensor<4x40xi1>"
    )
    tables = edges, [*edges[:25], edges[25] + 1e-4, *edges[26:]]
    texts = [main(f"%x: {kind}", body.format(table), "%r", "tensor<4x40xi1>") for table in tables]
    assert verify(*texts, level="regions").exit_code == 1


@pytest.mark.parametrize("element", ["i8", "i16", "i32"])
def test_both_sides_of_a_maximum_are_looked_for_in_each_integer_type(element):
    """Of a maximum of integers, i16 among them, it is watched which of its operands is the greater one."""
    kind = f"tensor<4x{element}>"
    piece = main(f"%a: {kind}, %b: {kind}", f"%r = stablehlo.maximum %a, %b : {kind}", "%r", kind)
    watched = Outcomes.of(piece, {}, [""], only_entered=False, sorts=False, no_nan=False)
    assert {point.outcome for point in watched.points} == {"less", "greater"}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.int8])
def test_a_factor_is_undone_in_every_width_also_of_a_single_number(shape, dtype):
    """x * o modulo the type's size has one x for an odd o; a NumPy scalar does not wrap on the way."""
    x, o = np.full(shape, 100, dtype)[()], np.full(shape, 77, dtype)[()]
    with np.errstate(all="ignore"):
        assert np.all(aims._modular(x * o, o) == x)
        assert np.all(aims._middle(np.full(shape, 127, dtype)[()], np.full(shape, 125, dtype)[()]) == 126)
