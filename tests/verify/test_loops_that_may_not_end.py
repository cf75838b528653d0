"""Loops whose end is not known: they run in a process that can be ended, and their arguments are kept near zero."""

import time

import numpy as np
import pytest
from two_programs import F8, main, regions

from hlo_lower.verify import verify
from hlo_lower.verify.drive.driven_runs import runs_of
from hlo_lower.verify.drive.input_roles import LOOP_REACH, roles_of
from hlo_lower.verify.judges import devices, judge
from hlo_lower.verify.judges.devices import TookTooLongError, piece_executable

LOOP = f"""%s = stablehlo.constant dense<0> : tensor<i32>
%w:2 = stablehlo.while(%k = %s, %x = %o) : tensor<i32>, {F8} cond {{{{
  %p = stablehlo.compare {{test}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}}}} do {{{{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %k, %one : tensor<i32>
  %y = stablehlo.add {{sum}} : {F8}
  stablehlo.return %next, %y : tensor<i32>, {F8}
}}}}
%r = stablehlo.negate %w#1 : {F8}"""
TO_AN_INPUT, ALWAYS = "LT, %k, %n", "EQ, %k, %k"


def loop(test, total="%x, %x"):
    """A module that adds as long as a test holds."""
    return main(f"%o: {F8}, %n: tensor<i32>", LOOP.format(test=test, sum=total), "%r")


@pytest.fixture
def one_second(monkeypatch):
    """A limit of a second for each run, of which the second one that is late is the last."""
    monkeypatch.setattr(devices, "LOOP_LIMIT", 1.0)
    monkeypatch.setattr(judge, "LATE_RUNS", 1)


def test_arguments_stay_near_zero_where_a_loop_counts_to_one():
    """No run of a loop to an input takes more than LOOP_REACH iterations; other regions have the ends of the type."""
    straight = main(f"%o: {F8}, %n: tensor<i32>", f"%r = stablehlo.abs %o : {F8}", "%r")
    [region] = regions(loop(TO_AN_INPUT), straight)
    roles = roles_of(region)
    assert roles.reach == LOOP_REACH
    [place] = [k for k, role in enumerate(roles.inputs) if role.is_integer]
    ends = [int(run.arguments[place].reshape(())) for run in runs_of(roles, [0])]
    assert max(map(abs, ends)) <= LOOP_REACH
    assert {0, 1, 2, -1} <= set(ends)
    [plain] = regions(*(main(f"%o: {F8}", f"%r = stablehlo.{n} %o : {F8}", "%r") for n in ("negate", "abs")))
    assert roles_of(plain).reach is None


def test_a_loop_in_the_first_version_alone_is_judged():
    """Whether a loop may end is asked of its own module: the other one may have no loop, and fewer values."""
    straight = main(f"%o: {F8}, %n: tensor<i32>", f"%r = stablehlo.abs %o : {F8}", "%r")
    verdicts = [
        verify(*texts, level="regions") for texts in ((loop(TO_AN_INPUT), straight), (straight, loop(TO_AN_INPUT)))
    ]
    assert all(verdict.differs for verdict in verdicts)


def test_a_loop_to_an_input_is_judged():
    """One that begins with the second iteration differs from it, and one with its sum written otherwise does not."""
    assert verify(loop(TO_AN_INPUT), loop(TO_AN_INPUT).replace("dense<0>", "dense<1>"), level="regions").differs
    doubled = loop(TO_AN_INPUT).replace(
        f"%y = stablehlo.add %x, %x : {F8}",
        f"%two = stablehlo.constant dense<2.0> : {F8}\n  %y = stablehlo.multiply %x, %two : {F8}",
    )
    verdict = verify(loop(TO_AN_INPUT), doubled, level="regions")
    assert verdict.ok, verdict.lines()


def test_an_endless_run_ends_in_its_time_and_the_next_one_goes_on(one_second):
    """TookTooLongError is raised about the limit, and what the same process had compiled runs in a new one."""
    text = loop(TO_AN_INPUT)
    endless, plain = piece_executable(loop(ALWAYS)), piece_executable(text)
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
    verdict = verify(loop(ALWAYS), loop(ALWAYS, "%x, %o"), level="regions")
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, False, 4), verdict.lines()
    assert {region.status for region in verdict.regions} == {"not judged"}
    assert "a run took more than 1 s" in "\n".join(verdict.lines())


RARE = {
    "at one count": """%odd = stablehlo.constant dense<1000003> : tensor<i32>
      %is = stablehlo.compare EQ, %k, %odd, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %i = stablehlo.select %is, %far, %near : tensor<i1>, tensor<i32>""",
    "from a count on": """%off = stablehlo.constant dense<999995> : tensor<i32>
      %left = stablehlo.subtract %k, %off : tensor<i32>
      %i = stablehlo.maximum %left, %near : tensor<i32>""",
}
DROPPED = """%at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %q = "stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        stablehlo.return %b : tensor<f32>
      }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>"""
CLAMPED = """%v = stablehlo.reshape %u : (tensor<f32>) -> tensor<1xf32>
      %q = stablehlo.dynamic_update_slice %x, %v, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>"""


@pytest.mark.sweep
@pytest.mark.parametrize("where", RARE)
def test_what_differs_after_a_million_turns_is_not_called_equal(where):
    """A write that is out of bounds in such a turn alone: the whole loop, of which runs make few turns, is no proof.

    Its body never was given what made the narrow pieces differ, and the runs of the loop around it are not aimed there.
    """

    def text(write):
        return main(
            f"%o: {F8}, %u: tensor<f32>, %n: tensor<i32>",
            f"""%s = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%k = %s, %x = %o) : tensor<i32>, {F8} cond {{
      %p = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %far = stablehlo.constant dense<99> : tensor<i32>
      %near = stablehlo.constant dense<3> : tensor<i32>
      {RARE[where]}
      {write}
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %q : tensor<i32>, {F8}
    }}
    %r = stablehlo.negate %w#1 : {F8}""",
            "%r",
        )

    verdict = verify(text(DROPPED), text(CLAMPED), level="regions")
    assert [region.status for region in verdict.regions] == ["only run"], verdict.lines()


def test_integers_of_a_byte_beside_a_loop_to_an_input_are_drawn():
    """None of them is further from zero than such a loop may count."""
    small, arguments = "tensor<4xi8>", "%o: tensor<4xi8>, %n: tensor<i32>"
    turning = main(arguments, LOOP.format(test=TO_AN_INPUT, sum="%x, %x").replace(F8, small), "%r", small)
    straight = main(arguments, f"%r = stablehlo.abs %o : {small}", "%r", small)
    assert verify(turning, straight, level="regions").differs
