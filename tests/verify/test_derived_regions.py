"""Regions that are derived: through conversions, by several processes, and what the solver finds is run."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import region_processes, verify
from hlo_lower.verify.pull import derive
from hlo_lower.verify.regions import RegionJudge

DERIVES = True

ARGUMENTS = "%x: 4x8xbf16, %w: 8x8xbf16, %b: 8xbf16, %i: 1xi32"
BEFORE = module(
    ARGUMENTS,
    """%y = dot_general %x, %w, contracting_dims = [1] x [0]; %c = broadcast_in_dim %b, dims = [1] -> 4x8xbf16
    %z = add %y, %c; %t = tanh %z; %r = transpose %t, dims = [1, 0]""",
    "%r",
)
AFTER = module(
    ARGUMENTS,
    """%0 = convert %x -> 4x8xf32; %1 = convert %w -> 8x8xf32; %2 = dot_general %0, %1, contracting_dims = [1] x [0]
    %y = convert %2 -> 4x8xbf16; %3 = convert %b -> 8xf32; %4 = broadcast_in_dim %3, dims = [1] -> 4x8xf32
    %5 = convert %y -> 4x8xf32; %6 = add %5, %4; %z = convert %6 -> 4x8xbf16; %t = tanh %z
    %7 = convert %t -> 4x8xf32; %8 = transpose %7, dims = [1, 0]; %r = convert %8 -> 8x4xbf16""",
    "%r",
)


def test_each_op_is_a_region():
    """What is computed in f32 and rounded is derived op by op, and the tanh between is the same in both."""
    verdict = hl.verify(BEFORE, AFTER)
    assert [(region.how, len(region.first)) for region in verdict.regions] == [("derived", n) for n in (1, 2, 1)]


def test_a_number_that_is_not_rounded_is_another():
    """The sum of the product before it is rounded looks like another value, and is one."""
    unrounded = AFTER.replace("%6 = stablehlo.add %5, %4", "%6 = stablehlo.add %2, %4")
    assert unrounded != AFTER
    verdict = hl.verify(BEFORE, unrounded)
    assert verdict.exit_code == 1
    assert verdict.summary().count("derived") <= 1


MIXED = module(
    "%x: 8xi32",
    """%a = constant 69069 : 8xi32; %b = constant 13 : 8xi32; %c = constant 305419896 : 8xi32; %m = multiply %x, %a
    %n = shift_right_logical %x, %b; %s = xor %m, %n; %p = compare EQ, %s, %c, SIGNED; %d = constant 7 : 8xi32
    %r = select %p, %d, %x""",
    "%r",
)
"""One hash in four billion makes the difference."""


@pytest.mark.parametrize("element", ["i1", "i8", "ui16", "i64", "f32", "bf16", "complex<f32>", "i4"])
def test_the_inputs_are_those_of_the_model(element):
    """The element that is told apart is where the outputs differ, in its own type."""
    bodies = ("", "%x"), ("%r = reverse %x, dims = [0]", "%r")
    found = derive(*(module(f"%x: 3x{element}", *body) for body in bodies))
    [array] = found.inputs
    assert array.shape == (3,)
    assert array[0].tobytes() != array[2].tobytes()


def test_a_model_is_run():
    """A hash that no pool holds, nor any operation undone gives, is found, and the run with it shows the difference."""
    verdict = hl.verify(MIXED, MIXED.replace("dense<7>", "dense<8>"))
    assert verdict.exit_code == 1
    [region] = verdict.regions
    assert "inputs of a model" in region.difference


def test_what_rounds_is_not_told_by_the_solver():
    """A function on floats is whatever the model says, so that a run decides."""
    bodies = "%r = tanh %x", "%t = add %x, %x; %s = subtract %t, %x; %r = tanh %s"
    plain, other = (module("%x: 4xf32", body, "%r") for body in bodies)
    assert not derive(plain, other)
    assert hl.verify(plain, other).exit_code in (1, 4)


TWO = module("%a: 8xf32, %b: 8xf32", "%x = abs %a; %y = negate %b", "%x, %y")
OTHERWISE = module(
    "%a: 8xf32, %b: 8xf32",
    "%m = negate %a; %x = maximum %a, %m; %z = constant -1.0 : 8xf32; %y = multiply %b, %z",
    "%x, %y",
)
WRONG = OTHERWISE.replace("dense<-1.0>", "dense<-2.0>")


@pytest.mark.parametrize("after", [OTHERWISE, WRONG])
def test_several_processes_say_what_one_says(after):
    """Two regions, both equal or one of them not: the verdicts of two processes are those of one."""
    alone, shared = (verify(TWO, after, level="regions", jobs=jobs) for jobs in (1, 2))
    assert len(alone.regions) == 2
    assert alone.differs is (after is WRONG)
    assert shared.regions == alone.regions
    assert [sorted(r.inputs) for r in shared.regions] == [sorted(r.inputs) for r in alone.regions]


@pytest.mark.sweep
def test_a_region_that_a_process_does_not_find_is_judged_here(monkeypatch):
    """A process whose pieces are others says nothing of the region, and this one judges it: nothing is lost."""
    here, settled = [], RegionJudge.settled

    def counted(self, name, region):
        here.append(region.where)
        return settled(self, name, region)

    monkeypatch.setattr(RegionJudge, "settled", counted)
    assert verify(TWO, WRONG, level="regions", jobs=2).differs
    assert here == []
    monkeypatch.setattr(region_processes, "digest", lambda pieces: "")
    assert verify(TWO, WRONG, level="regions", jobs=2).differs
    assert here == ["main", "main"]
