"""Row-major numbers are equal where their digits are: what is said of an equality holds for all numbers."""

import numpy as np
import pytest

pytest.importorskip("z3")

from untyped_mlir import module

from hlo_lower.verify.pull import derive
from hlo_lower.verify.pull.digits import equalities_of_digits
from hlo_lower.verify.pull.parts import parts_of, terms_anew
from hlo_lower.verify.pull.solver import z3

DERIVES = True


def summed(rng, variables, tests):
    """A random sum of variables, some of which are chosen, and of a number."""
    places = rng.choice([1, 2, 3, 5, 7, 10, 12, 35, 50, 110, -1, -10], rng.integers(1, 4))
    found = z3.BitVecVal(int(rng.integers(-3, 130)) * int(rng.integers(2)), 32)
    for place in places:
        found = found + z3.BitVecVal(int(place), 32) * variables[rng.integers(len(variables))]
    return (
        z3.If(tests[rng.integers(2)], found, z3.BitVecVal(int(rng.integers(300)), 32)) if rng.random() < 0.4 else found
    )


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.sweep if k > 3 else ()) for k in range(40)])
def test_what_is_said_of_an_equality_holds(seed):
    """Of random sums at small numbers and at those that wrap: where the condition holds, both are one."""
    rng, told = np.random.default_rng(seed), 0
    with terms_anew():
        variables = [z3.BitVec(f"v{k}", 32) for k in range(6)]
        tests = [z3.Bool("p"), z3.Bool("q")]
        for _ in range(20):
            equality = z3.simplify(summed(rng, variables, tests) == summed(rng, variables, tests))
            for atom, cases in equalities_of_digits(parts_of([equality])):
                told += 1
                for _ in range(60):
                    high = int(rng.choice([2, 12, 200, 2**32]))
                    given = [(v, z3.BitVecVal(int(rng.integers(high)), 32)) for v in variables]
                    given += [(test, z3.BoolVal(bool(rng.integers(2)))) for test in tests]
                    for condition, equal in cases:
                        holds, one, other = (z3.simplify(z3.substitute(t, *given)) for t in (condition, atom, equal))
                        assert not z3.is_true(holds) or one.eq(other)
    assert told > 0 or seed


@pytest.mark.parametrize("seed", range(8))
def test_what_is_said_of_an_equality_is_proved(seed):
    """By z3, of numbers of few bits: for all of them at once."""
    rng = np.random.default_rng(seed)
    with terms_anew():
        variables = [z3.ZeroExt(27, z3.BitVec(f"v{k}", 5)) for k in range(4)]
        tests = [z3.Bool("p"), z3.Bool("q")]
        for _ in range(10):
            equality = z3.simplify(summed(rng, variables, tests) == summed(rng, variables, tests))
            for atom, cases in equalities_of_digits(parts_of([equality])):
                for condition, equal in cases:
                    solver = z3.Solver()
                    solver.add(condition, atom != equal)
                    assert solver.check() != z3.sat


def written(rows, columns, by, ok="%ok"):
    """A scatter at places of a matrix, and what writes it where one number of row and column is met."""
    n = rows * columns
    arguments = f"%x: {rows}x{columns}xf32, %i: 4x2xi32"
    first = """%u = constant 1.0 : 4xf32
    %r = scatter(%x, %i, %u) <inserted=[0, 1], to=[0, 1], ivd=1> {%c, %d: return %d}"""
    second = f"""%a = slice %i [0:4, 0:1]; %b = reshape %a -> 4xi32; %c = slice %i [0:4, 1:2]; %d = reshape %c -> 4xi32
    %none = constant -1 : 4xi32; %rows = constant {rows} : 4xi32; %columns = constant {columns} : 4xi32
    %p = compare GT, %b, %none, SIGNED; %q = compare LT, %b, %rows, SIGNED; %s = and %p, %q
    %t = compare GT, %d, %none, SIGNED; %v = compare LT, %d, %columns, SIGNED; %w = and %t, %v; %ok = and %s, %w
    %by = constant {by} : 4xi32; %e = multiply %b, %by; %f = add %e, %d; %out = constant {n} : 4xi32
    %at = select {ok}, %f, %out; %each = broadcast_in_dim %at, dims = [1] -> {n}x4xi32; %here = iota dim = 0 : {n}x4xi32
    %is = compare EQ, %each, %here, SIGNED; %no = constant false : i1
    %any = reduce(%is init: %no) applies stablehlo.or across dimensions = [1]
    %mask = reshape %any -> {rows}x{columns}xi1; %one = constant 1.0 : {rows}x{columns}xf32
    %r = select %mask, %one, %x"""
    return module(arguments, first), module(arguments, second)


@pytest.mark.parametrize(("rows", "columns"), [(11, 110), (100, 7), (3, 5)])
def test_writes_at_rows_and_columns_are_those_at_one_number(rows, columns):
    """And not at a number of other rows, nor where a row or a column may be outside."""
    assert derive(*written(rows, columns, columns))
    assert not derive(*written(rows, columns, columns - 1), seconds=0.5)
    assert not derive(*written(rows, columns, columns, ok="%s"), seconds=0.5)
    assert not derive(*written(rows, columns, columns, ok="%w"), seconds=0.5)
