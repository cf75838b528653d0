"""What a consumer is compared with: XLA's results on seeded or given arguments, in the types of the other version."""

from dataclasses import replace

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.base.errors import InputError
from hlo_lower.consumers.reference import reference_of
from hlo_lower.verify.run import CannotRunError


def decode(index, cache="8x4xf32"):
    """A row written into a cache at a position of a type, which is returned as well."""
    lines = f"""%start = reshape %position -> 1x{index}
        %new = scatter(%cache, %start, %row) <window=[0], inserted=[0], to=[0]> {{assign}}; return %new, %position"""
    return module(f"%cache: {cache}, %row: 4xf32, %position: {index}", lines)


WIDE, NARROW = decode("i64"), decode("i32")
CACHE, ROW = np.zeros((8, 4), np.float32), np.ones(4, np.float32)


def test_the_third_run_leaves_the_bounds():
    """Positions are in range, then at the edges, then anywhere; the names of the runs say so."""
    reference = reference_of(WIDE)
    assert [run.what for run in reference.runs] == ["in range", "first and last", "mixed"]
    assert all(0 <= int(run.arguments[2]) < 8 for run in reference.runs[:2])
    assert reference.rounding.exact == (True, True)


def test_the_same_seed_gives_the_same_arguments():
    """Another seed gives others."""
    one, same, other = (reference_of(WIDE, seed=seed).runs[0].arguments[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_given_arguments_are_run_once():
    """The user's arguments are taken as they are, and checked."""
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


def test_positions_out_of_bounds_stay_so_in_narrower_integers():
    """A seeded run whose values do not fit is run on the ends of the narrower type, and that is told."""
    reference = reference_of(WIDE, runs=90)
    beyond = [k for k, run in enumerate(reference.runs) if not -(2**31) <= int(run.arguments[2]) < 2**31]
    assert beyond
    adapted = reference.for_signature_of(NARROW)
    assert len(adapted.runs) == 90
    assert len(adapted.notes) == len(beyond)
    for k in beyond:
        position = int(adapted.runs[k].arguments[2])
        assert position in (-(2**31), 2**31 - 1)
        assert int(adapted.runs[k].expected[1]) == position
        np.testing.assert_array_equal(adapted.runs[k].expected[0], adapted.runs[k].arguments[0])


def test_a_run_that_is_left_out_is_told():
    """Results that no narrower type holds are not compared; the note says which run."""

    def text(index, value):
        return module(f"%a: {index}", f"%r = constant {value} : {index}")

    reference = reference_of(text("i64", 1 << 40), runs=1)
    fine = reference_of(text("i64", 1), runs=1).runs[0]
    adapted = replace(reference, runs=(*reference.runs, fine)).for_signature_of(text("i32", 1))
    assert len(adapted.runs) == 1
    assert adapted.notes == ("run 1 (in range): left out, its values do not fit the narrower integers",)


def test_another_signature_is_told():
    """Two versions of different shapes or counts of arguments are not compared; what jaxlib does not parse may still be
    what the consumer reads."""
    reference = reference_of(WIDE)
    for other in (module("%a: 8x4xf32", "return %a"), decode("i32", "9x4xf32")):
        with pytest.raises(CannotRunError, match="different signatures"):
            reference.for_signature_of(other)
    assert reference.for_signature_of("module { linalg.what }") is reference


def test_what_has_no_reference():
    """XLA runs static shapes, and the reason says which one is not; the error of what is no module says where."""
    with pytest.raises(CannotRunError, match="dynamic shape"):
        reference_of(module("%a: ?xf32", "return %a"))
    with pytest.raises(InputError, match="before:1:"):
        reference_of("module {")
