"""What a consumer is compared with, and how closely: XLA's results on seeded or given arguments, and their rounding."""

from dataclasses import replace

import numpy as np
import pytest
from untyped_mlir import function, module

from hlo_lower.base.errors import InputError
from hlo_lower.consumers.reference import reference_of
from hlo_lower.consumers.rounding import Rounding, rounding_of
from hlo_lower.ir import mlir
from hlo_lower.verify.run import CannotRunError


def decode(index, cache="8x4xf32"):
    """A row written into a cache at a position of a type, which is returned as well."""
    lines = f"""%start = reshape %position -> 1x{index}
        %new = scatter(%cache, %start, %row) <window=[0], inserted=[0], to=[0]> {{assign}}; return %new, %position"""
    return module(f"%cache: {cache}, %row: 4xf32, %position: {index}", lines)


WIDE, NARROW = decode("i64"), decode("i32")
CACHE, ROW = np.zeros((8, 4), np.float32), np.ones(4, np.float32)


def test_seeded_and_given_arguments():
    """Positions are in range, then at the edges, then anywhere; a seed gives the same ones; given ones are checked."""
    reference = reference_of(WIDE)
    assert [run.what for run in reference.runs] == ["in range", "first and last", "mixed"]
    assert all(0 <= int(run.arguments[2]) < 8 for run in reference.runs[:2])
    assert reference.rounding.exact == (True, True)
    one, same, other = (reference_of(WIDE, seed=seed, runs=1).runs[0].arguments[0] for seed in (1, 1, 2))
    assert (np.array_equal(one, same), np.array_equal(one, other)) == (True, False)
    (run,) = reference_of(WIDE, inputs=[CACHE, ROW, np.int64(8)]).runs
    np.testing.assert_array_equal(run.expected[0], CACHE)
    with pytest.raises(InputError, match="1 inputs for 3 arguments"):
        reference_of(WIDE, inputs=[CACHE])


def test_runs_for_narrower_integers_are_those_that_fit():
    """A version with i32 in the place of i64 takes the same values; a run whose values do not fit is left out."""
    (run,) = reference_of(WIDE, inputs=[CACHE, ROW, np.int64(-3)]).for_signature_of(NARROW).runs
    assert (run.arguments[2].dtype, int(run.arguments[2]), run.expected[1].dtype) == (np.int32, -3, np.int32)
    with pytest.raises(CannotRunError, match="the values of no run fit"):
        reference_of(WIDE, inputs=[CACHE, ROW, np.int64(2**40)]).for_signature_of(NARROW)
    large, fine = (reference_of(module("%a: i64", f"%r = constant {n} : i64"), runs=1) for n in (1 << 40, 1))
    narrow = module("%a: i32", "%r = constant 1 : i32")
    adapted = replace(large, runs=(*large.runs, *fine.runs)).for_signature_of(narrow)
    assert len(adapted.runs) == 1
    assert adapted.notes == ("run 1 (in range): left out, because its values do not fit the narrower integers",)


def test_positions_out_of_bounds_stay_so_in_narrower_integers():
    """A seeded run whose values do not fit is run on the ends of the narrower type, and that is told."""
    reference = reference_of(WIDE, runs=90)
    beyond = [k for k, run in enumerate(reference.runs) if not -(2**31) <= int(run.arguments[2]) < 2**31]
    adapted = reference.for_signature_of(NARROW)
    assert (len(adapted.runs), len(adapted.notes)) == (90, len(beyond))
    assert beyond
    for k in beyond:
        position = int(adapted.runs[k].arguments[2])
        assert position in (-(2**31), 2**31 - 1)
        assert int(adapted.runs[k].expected[1]) == position
        np.testing.assert_array_equal(adapted.runs[k].expected[0], adapted.runs[k].arguments[0])


def test_integers_that_are_stored_as_their_bits_are_those_bits():
    """A number beyond the signed type is given and expected as the negative one; no argument becomes another."""
    stored = "%one = constant 1 : 2xTYPE; %r = add %x, %one"
    one, other = (module(f"%x: 2x{dtype}", stored.replace("TYPE", dtype)) for dtype in ("ui32", "i32"))
    [run] = reference_of(one, inputs=[np.uint32([2**32 - 5, 7])]).for_signature_of(other).runs
    assert (run.arguments[0].tolist(), run.expected[0].tolist()) == ([-5, 7], [-4, 8])
    assert reference_of(one).for_signature_of(other).notes == ()


def test_what_is_not_compared():
    """Another signature, and what XLA does not run; what jaxlib does not parse may still be what the consumer reads."""
    reference = reference_of(WIDE, runs=1)
    for other in (module("%a: 8x4xf32", "return %a"), decode("i32", "9x4xf32")):
        with pytest.raises(CannotRunError, match="different signatures"):
            reference.for_signature_of(other)
    assert reference.for_signature_of("module { linalg.what }") is reference
    with pytest.raises(CannotRunError, match="dynamic shape"):
        reference_of(module("%a: ?xf32", "return %a"))
    with pytest.raises(InputError, match="before:1:"):
        reference_of("module {")


SQUARED = function("private @f", "%x: 4xf32", "%r = multiply %x, %x")


def rounding(lines):
    """The rounding of a module whose @main has these lines."""
    return rounding_of(mlir.parse_module(module("%a: 4xf32, %i: i32", lines) + SQUARED))


MOVED, ADDED = "%r = reverse %a, dims = [0]", "%r = add %a, %a"
INDEXED = """%f = cosine %a; %k = convert %f -> 4xi32; %s = slice %k [0:1]; %t = reshape %s -> i32
    %u = slice %a [1:2]; %r = dynamic_update_slice %a, %u, %t"""
SCATTERED = """%s = reshape %i -> 1xi32; %u = slice %a [1:2]; %w = reshape %u -> f32
    %r = scatter(%a, %s, %w) <inserted=[0], to=[0]> {{ %x, %y: %z = {}; return %z }}"""


@pytest.mark.parametrize(
    ("lines", "exact"),
    [
        (MOVED, True),
        (ADDED, False),
        ("%r = call @f(%a) -> 4xf32", False),
        (INDEXED, False),  # placed by a computed float
        (SCATTERED.format("optimization_barrier %y"), True),
        (SCATTERED.format("add %x, %y"), False),
        ("return %a", True),
        ("%r = add %i, %i", True),  # sums of integers are in any order the same
    ],
)
def test_floats_that_are_only_moved_are_exact(lines, exact):
    """A result is compared bit for bit where nothing that it depends on rounds, in calls and regions, too."""
    assert rounding(lines).exact == (exact,)


def test_a_computed_float_has_the_bound_of_its_element():
    """What is within passes, a missing row does not; bounds are made only where a bit of an inexact one differs."""
    bound, expected = rounding(ADDED), np.linspace(1, 8, 1000, dtype=np.float32)
    limits = lambda: [np.abs(expected) * 1e-5]  # noqa: E731 a maker of bounds, as a run has it
    near = expected * np.float32(1 + 5e-6)
    assert bound.difference([expected], [near], limits) is None
    assert bound.difference([expected], [near]) is not None
    assert bound.difference([expected], [expected * np.float32(1 + 2e-5)], limits) is not None
    missing = expected.copy()
    missing[10:20] = 0
    found = bound.difference([expected], [missing], limits)
    assert (found.index, found.count) == ((10,), 10)

    def never():
        raise AssertionError

    assert bound.difference([expected], [expected.copy()], never) is None
    assert Rounding((True,)).difference([expected], [near], never) is not None
    assert bound.difference([np.int32([5])], [np.int32([6])], lambda: [np.zeros(1)]) is not None


ONE, NAN = np.float32([1.0]), np.float32([np.nan])


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        # the sign of a zero, and the last bit, are differences where nothing is rounded
        (np.float32([0.0]), np.float32([-0.0]), "result 0"),
        (ONE, np.nextafter(ONE, np.float32(2)), "result 0"),
        (NAN, NAN, "None"),
        # a consumer that has no unsigned integers gives the same bytes; another width is a difference
        (np.uint32([2**32 - 1]), np.int32([-1]), "None"),
        (np.bool_([True]), np.int8([1]), "None"),
        (np.int64([1]), np.int32([1]), "int64"),
    ],
)
def test_exact_results_differ_in_one_bit(expected, actual, told):
    """Where nothing is rounded, each bit counts."""
    exact = rounding(MOVED)
    assert exact.description == "bit for bit"
    assert told in str(exact.difference([expected], [actual]))
