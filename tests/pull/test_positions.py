"""What is said of positions holds at every place: ranges of terms, the choices that these decide, parts of places."""

import numpy as np
import pytest

pytest.importorskip("z3")

from hlo_lower.verify.pull.occurrences import as_parts, common_refinement
from hlo_lower.verify.pull.positions import Positions
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import number

SIZES = 3, 8, 12, 64


def drawn(rng, variables, depth):
    """A random term of 32 bits, mostly of variables."""
    if depth == 0 or rng.random() < 0.15:
        return variables[rng.integers(len(variables))] if rng.random() < 0.7 else number(int(rng.integers(-9, 40)))
    a, b = drawn(rng, variables, depth - 1), drawn(rng, variables, depth - 1)
    by = number(int(rng.integers(1, 20)))
    low = int(rng.integers(6))
    return [
        lambda: a + b,
        lambda: a * by,
        lambda: a - by,
        lambda: z3.UDiv(a, by),
        lambda: z3.URem(a, by),
        lambda: z3.Concat(z3.BitVecVal(0, low + 1), z3.Extract(31, low + 1, a)),
        lambda: z3.Concat(z3.BitVecVal(0, 29 - low), z3.Extract(low + 2, 0, a)),
        lambda: z3.SignExt(29 - low, z3.Extract(low + 2, 0, a)),
        lambda: z3.If(a <= b, a, b),
        lambda: z3.If(z3.ULT(a, by), a, by),
        lambda: z3.If(z3.Extract(low, 0, a) <= z3.Extract(low, 0, b), b, by),
    ][rng.integers(11)]()


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(3, 40))])
def test_a_term_lies_between_its_ends(seed):
    """At random places; and it is the same without the choices that ranges decide."""
    rng, positions, known = np.random.default_rng(seed), Positions(), 0
    variables = [positions.variable(f"v{k}.", size) for k, size in enumerate(SIZES)]
    for _ in range(150):
        term = z3.simplify(drawn(rng, variables, 3))
        ends = positions.ranges.ends(term)
        if ends is None:
            continue
        known += 1
        settled = positions.ranges.simplify(term)
        for _ in range(6):
            place = [(v, number(int(rng.integers(size)))) for v, size in zip(variables, SIZES, strict=True)]
            value, other = (z3.simplify(z3.substitute(each, *place)) for each in (term, settled))
            assert ends[0] <= value.as_signed_long() <= ends[1], (term, ends, place)
            assert value.eq(other), (term, settled, place)
    assert known > 30


def test_a_part_that_stands_in_a_term_many_times_is_looked_at_once():
    """A chain of choices of 60 links is a tree of 2^60 leaves."""
    positions = Positions()
    term = start = positions.variable("v", 64)
    for k in range(60):
        term = z3.If(term <= number(k), term + number(1), term * number(1) + start)
    positions.ranges.simplify(term)
    assert positions.ranges.ends(start) == (0, 63)


@pytest.mark.parametrize(
    ("first", "second", "parts"),
    [
        ((96,), (6, 16), [6, 16]),
        ((6, 16), (96,), [6, 16]),
        ((4, 6), (2, 2, 6), [2, 2, 6]),
        ((4, 6), (8, 3), [4, 2, 3]),
        ((4, 6), (6, 4), None),
        ((8,), (8,), [8]),
    ],
)
def test_positions_are_counted_in_parts(first, second, parts):
    """Row-major: each place of both shapes is that of its parts, and each once."""
    assert common_refinement(first, second) == parts
    if parts is None:
        return
    names = [z3.BitVec(f"c{k}", 32) for k in range(len(parts))]
    for shape in (first, second):
        found = []
        for place in np.ndindex(*parts):
            given = list(zip(names, map(number, place), strict=True))
            terms = as_parts(shape, parts, names)
            found.append(tuple(z3.simplify(z3.substitute(term, *given)).as_long() for term in terms))
        assert found == list(np.ndindex(*shape))
