"""Loops whose end is not known: they run in a process that can be ended, and their arguments are kept near zero."""

import time

import numpy as np
import pytest
from two_programs import regions
from untyped_mlir import module

from hlo_lower.verify import verify
from hlo_lower.verify.drive.driven_runs import runs_of
from hlo_lower.verify.drive.input_roles import LOOP_REACH, roles_of
from hlo_lower.verify.judges import devices, judge
from hlo_lower.verify.judges.devices import TookTooLongError, piece_executable


def loop(test="LT, %k, %n", turn="%y = add %x, %x", start=0, kind="8xf32"):
    """A module that adds as long as a test holds, by default up to an input."""
    body = f"""%s = constant {start} : i32
    %w:2 = while(%k = %s, %x = %o) cond {{ %p = compare {test}; return %p }} do {{
      %one = constant 1 : i32; %next = add %k, %one; {turn}; return %next, %y }}
    %r = negate %w#1"""
    return module(f"%o: {kind}, %n: i32", body)


def straight(op="abs", kind="8xf32"):
    """A module without a loop."""
    return module(f"%o: {kind}, %n: i32", f"%r = {op} %o")


ALWAYS = "EQ, %k, %k"


@pytest.fixture
def one_second(monkeypatch):
    """A limit of a second for each run, of which the second one that is late is the last."""
    monkeypatch.setattr(devices, "LOOP_LIMIT", 1.0)
    monkeypatch.setattr(judge, "LATE_RUNS", 1)


def test_arguments_stay_near_zero_where_a_loop_counts_to_one():
    """No run of a loop to an input takes more than LOOP_REACH iterations; other regions have the ends of the type."""
    [region] = regions(loop(), straight())
    roles = roles_of(region)
    assert roles.reach == LOOP_REACH
    [place] = [k for k, role in enumerate(roles.inputs) if role.is_integer]
    ends = [int(run.arguments[place].reshape(())) for run in runs_of(roles, [0])]
    assert max(map(abs, ends)) <= LOOP_REACH
    assert {0, 1, 2, -1} <= set(ends)
    [plain] = regions(straight("negate"), straight())
    assert roles_of(plain).reach is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(loop(), straight(), id="in the first version alone: the other may have fewer values"),
        pytest.param(straight(), loop(), id="in the second version alone"),
        pytest.param(loop(), loop(start=1), id="from the second iteration on"),
        # none of them is further from zero than such a loop may count
        pytest.param(loop(kind="4xi8"), straight(kind="4xi8"), id="integers of a byte beside it"),
    ],
)
def test_a_loop_to_an_input_is_told_from_what_differs(before, after):
    assert verify(before, after, level="regions").differs


def test_a_loop_to_an_input_with_its_sum_written_otherwise_is_equal():
    doubled = loop(turn="%two = constant 2.0 : 8xf32; %y = multiply %x, %two")
    verdict = verify(loop(), doubled, level="regions")
    assert verdict.ok, verdict.lines()


def test_an_endless_run_ends_in_its_time_and_the_next_one_goes_on(one_second):
    """TookTooLongError is raised about the limit, and what the same process had compiled runs in a new one."""
    endless, plain = piece_executable(loop(ALWAYS)), piece_executable(loop())
    vector, count = np.ones(8, np.float32), np.asarray(3, np.int32)
    child = devices.DeviceProcess.shared(1, 0)
    process = child._child
    start = time.perf_counter()
    with pytest.raises(TookTooLongError, match="a run took more than 1 s"):
        endless.run([vector, count])
    assert 1 <= time.perf_counter() - start < 30
    assert process.poll() is not None
    [found] = plain.run([vector, count])
    assert child._child is not process
    np.testing.assert_array_equal(found, np.full(8, -8, np.float32))


def test_a_region_whose_runs_do_not_end_is_not_judged(one_second):
    """After a few late runs it is left, with the reason, and that is neither equal nor a difference."""
    verdict = verify(loop(ALWAYS), loop(ALWAYS, "%y = add %x, %o"), level="regions")
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, False, 4), verdict.lines()
    assert {region.status for region in verdict.regions} == {"not judged"}
    assert "a run took more than 1 s" in "\n".join(verdict.lines())


RARE = {
    "at one count": "%odd = constant 1000003 : i32; %is = compare EQ, %k, %odd, SIGNED; %i = select %is, %far, %near",
    "from a count on": "%off = constant 999995 : i32; %left = subtract %k, %off; %i = maximum %left, %near",
}
DROPPED = "%at = reshape %i -> 1xi32; %q = scatter(%x, %at, %u) <inserted=[0], to=[0]> {%a, %b: return %b}"
CLAMPED = "%v = reshape %u -> 1xf32; %q = dynamic_update_slice %x, %v, %i"


@pytest.mark.sweep
@pytest.mark.parametrize("where", RARE)
def test_what_differs_after_a_million_turns_is_not_called_equal(where):
    """A write that is out of bounds in such a turn alone: the whole loop, of which runs make few turns, is no proof.

    Its body never was given what made the narrow pieces differ, and the runs of the loop around it are not aimed there.
    """
    body = f"""%s = constant 0 : i32
    %w:2 = while(%k = %s, %x = %o) cond {{ %p = compare LT, %k, %n, SIGNED; return %p }} do {{
      %far = constant 99 : i32; %near = constant 3 : i32; {RARE[where]}
      WRITE
      %one = constant 1 : i32; %next = add %k, %one; return %next, %q }}
    %r = negate %w#1"""
    texts = [module("%o: 8xf32, %u: f32, %n: i32", body.replace("WRITE", write)) for write in (DROPPED, CLAMPED)]
    verdict = verify(*texts, level="regions")
    assert [region.status for region in verdict.regions] == ["only run"], verdict.lines()
