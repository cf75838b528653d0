"""What does not end in time, or is too large, is not judged; what is dear runs in a process that can be ended."""

import sys
import time
from contextlib import suppress
from importlib import import_module
from math import inf

import numpy as np
import pytest
from two_programs import programs, regions
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.api.verified import more_careful
from hlo_lower.verify import region_proofs as proofs_file
from hlo_lower.verify import regions as regions_file
from hlo_lower.verify import run, verify
from hlo_lower.verify.align import piece as piece_file
from hlo_lower.verify.align.loops import counters_of
from hlo_lower.verify.align.piece import pieces_of
from hlo_lower.verify.drive import driven_runs
from hlo_lower.verify.drive.driven_runs import runs_of
from hlo_lower.verify.drive.input_roles import LOOP_REACH, Role, Roles, roles_of
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.judges import devices, judge, kept
from hlo_lower.verify.judges.devices import OPERATIONS, SOON, DeviceProcess, TookTooLongError, cost_of
from hlo_lower.verify.judges.devices import executable as executed
from hlo_lower.verify.judges.devices import piece_executable as piece
from hlo_lower.verify.judges.interpreter import InterpreterError, shared_interpreter
from hlo_lower.verify.judges.judge import Terms
from hlo_lower.verify.patience import Deadline, LateError, at_most, deadline_of, patience
from hlo_lower.verify.pull import derive
from hlo_lower.verify.read import meanings
from hlo_lower.verify.read import program as program_file
from hlo_lower.verify.regions import RegionJudge
from hlo_lower.verify.run import CannotRunError


def counted(turns, op="add", depth=1, test="LT, %i0, %end"):
    """A module of loops in one another, each of so many turns."""
    body, result = f"%r = {op} %a{depth - 1}, %y", "%r"
    for k in reversed(range(depth)):
        more = test if k == 0 else f"LT, %i{k}, %end"
        body = f"""%w{k}:2 = while(%i{k} = %zero, %a{k} = {f"%a{k - 1}" if k else "%x"}) cond {{
          %p{k} = compare {more}; return %p{k} }} do {{ {body}; %n{k} = add %i{k}, %one; return %n{k}, {result} }}"""
        result = f"%w{k}#1"
    constants = f"%zero = constant 0 : i32; %one = constant 1 : i32; %end = constant {turns} : i32\n"
    return module("%x: 8xf32, %y: 8xf32", f"{constants}{body}\n%m = negate %w0#1", "%m")


def calling(depth, op, times=2):
    """A module of functions each of which calls the one before so many times."""
    more = function("private @f0", "%v0: 8xf32", f"%r = {op} %v0, %v0")
    for k in range(depth):
        calls = "; ".join(f"%v{n + 1} = call @f{k}(%v{n}) -> 8xf32" for n in range(times))
        more += function(f"private @f{k + 1}", "%v0: 8xf32", calls, f"%v{times}")
    return module("%x: 8xf32", f"%r = call @f{depth}(%x) -> 8xf32", "%r", more)


def test_the_cost_of_a_module_grows_with_its_turns_operations_and_values():
    """Turns and calls multiply; open loops do not end; a long text and a large value are dear."""
    assert cost_of(counted(10)).is_small
    assert 1e3 < cost_of(counted(100_000, depth=2)).seconds / cost_of(counted(1_000)).seconds < inf
    assert cost_of(counted(10, test="NE, %i0, %end")).seconds == inf
    assert not cost_of(calling(13, "add")).is_small
    assert cost_of(calling(30, "add")).operations > 1 << 30 > OPERATIONS
    assert not cost_of(f"{counted(1)}// {'x' * (1 << 24)}").is_small
    body = """%z = constant 0.0 : f32; %a = broadcast_in_dim %x, dims = [0] -> 20000x20000xf32
    %r = reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1]"""
    assert SOON < cost_of(module("%x: 20000xf32", body)).seconds < inf


def test_what_is_too_large_is_not_judged(monkeypatch):
    """Too many calls, too deep, or 2^34 numbers between two regions: exit code 4, with the reason."""
    large = "%a = broadcast_in_dim %x, dims = [] -> 17179869184xf32; %b = {} %a, %a; %r = slice %b [0:8]"
    deep, ops = sys.getrecursionlimit(), program_file.MAX_OPS
    for most, level, told, texts in (
        (1000, "auto", "more than 1,000 operations", [calling(30, op) for op in ("add", "multiply")]),
        (ops, "auto", "too deep", [calling(deep, op, 1) for op in ("add", "multiply")]),
        (
            ops,
            "regions",
            "this machine's memory",
            [module("%x: f32", large.format(op)) for op in ("maximum", "minimum")],
        ),
    ):
        monkeypatch.setattr(program_file, "MAX_OPS", most)
        verdict = verify(*texts, level=level)
        assert verdict.exit_code == 4
        assert told in "\n".join(verdict.lines())


def test_a_counter_of_a_thousand_million_values_is_not_counted_through():
    """Its ends say whether it fits its type; a run of more turns is told in no time, and nothing is charged."""
    [region] = regions(counted(1_000_000_000), counted(1_000_000_000, "subtract"))
    assert max(map(len, counters_of(region.pair).values())) == 1_000_000_000
    with at_most(2):
        with pytest.raises(TookTooLongError, match="not tried"):
            piece(counted(100_000, depth=2))
        assert patience().left == 2


OPEN, ALWAYS = "LT, %k, %n", "EQ, %k, %k"
DOUBLED = "%two = constant 2.0 : 8xf32; %y = multiply %x, %two"
GIVEN = [np.ones(8, np.float32), np.asarray(3, np.int32)]


def loop(test=OPEN, turn="%y = add %x, %x", start=0, kind="8xf32"):
    """A module that adds as long as a test holds, by default up to an input."""
    body = f"""%s = constant {start} : i32
    %w:2 = while(%k = %s, %x = %o) cond {{ %p = compare {test}; return %p }} do {{
      %one = constant 1 : i32; %next = add %k, %one; {turn}; return %next, %y }}
    %r = negate %w#1"""
    return module(f"%o: {kind}, %n: i32", body)


def straight(op="abs", kind="8xf32"):
    """A module without a loop."""
    return module(f"%o: {kind}, %n: i32", f"%r = {op} %o")


def test_arguments_stay_near_zero_where_a_loop_counts_to_one():
    """No run of a loop to an input takes more than LOOP_REACH iterations; other regions have the ends of the type."""
    [region], [plain] = regions(loop(), straight()), regions(straight("negate"), straight())
    roles = roles_of(region)
    assert (roles.reach, roles_of(plain).reach) == (LOOP_REACH, None)
    [place] = [k for k, role in enumerate(roles.inputs) if role.is_integer]
    ends = [int(run.arguments[place].reshape(())) for run in runs_of(roles, [0])]
    assert max(map(abs, ends)) <= LOOP_REACH
    assert {0, 1, 2, -1} <= set(ends)


@pytest.mark.parametrize(
    ("before", "after", "is_equal"),
    [
        (straight(), loop(), False),
        (loop(), loop(start=1), False),  # from the second iteration on
        # integers of a byte beside it, none of them further from zero than such a loop may count
        (loop(kind="4xi8"), straight(kind="4xi8"), False),
        (loop(), loop(turn=DOUBLED), True),
    ],
)
def test_a_loop_to_an_input_is_told_from_what_differs(before, after, is_equal):
    verdict = verify(before, after, level="regions")
    assert (verdict.ok, verdict.differs) == (is_equal, not is_equal), verdict.lines()


def test_an_endless_run_ends_in_its_time_and_the_next_one_goes_on(one_second):
    """TookTooLongError is raised about the limit, and what the same process had compiled runs in a new one."""
    endless, plain = piece(loop(ALWAYS)), piece(loop())
    child = devices.DeviceProcess.of_this_process(1, 0)
    process, start = child._child, time.perf_counter()
    with pytest.raises(TookTooLongError, match="a run took more than 1 s"):
        endless.run(GIVEN)
    assert 1 <= time.perf_counter() - start < 30
    assert process.poll() is not None
    [found] = plain.run(GIVEN)
    assert child._child is not process
    np.testing.assert_array_equal(found, np.full(8, -8, np.float32))


def test_what_is_late_is_charged_and_then_nothing_dear_is_tried():
    """The seconds are those of the whole verification."""
    with at_most(60):
        late = executed(loop(ALWAYS), "exact")
    with at_most(1):
        with pytest.raises(TookTooLongError, match="took more than 1 s"):
            late.run(GIVEN)
        assert patience().is_over
        with pytest.raises(TookTooLongError, match="others took"):
            executed(loop(ALWAYS), "exact")


def test_a_region_or_a_module_whose_runs_do_not_end_is_not_judged(one_second):
    """After a late run it is left, with the reason, and that is neither equal nor a difference."""
    verdict = verify(loop(ALWAYS), loop(ALWAYS, "%y = add %x, %o"), level="regions")
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, False, 4), verdict.lines()
    assert {region.status for region in verdict.regions} == {"not judged"}
    assert "a run took more than 1 s" in "\n".join(verdict.lines())
    verdict = verify(loop(ALWAYS), loop(ALWAYS, DOUBLED), inputs=GIVEN, patience=1)
    assert verdict.module.status == "not run"
    assert "took more than 1 s" in verdict.module.reason


def test_fewer_runs_of_what_is_large(monkeypatch):
    """A piece that gives more values than all runs may has two runs, which the verdict says; a difference is seen."""
    product = "%d = dot_general %x, %y, contracting_dims = [1] x [0]; "
    one, other, same = (
        module("%x: 64x8xf32, %y: 8x64xf32", product + last)
        for last in ("%r = tanh %d", "%r = logistic %d", "%m = negate %d; %n = negate %m; %r = tanh %n")
    )
    few = hl.verify(one, same, level="regions").regions[0]
    for where in (driven_runs, judge):
        monkeypatch.setattr(where, "VALUES", 1 << 12)
    kept.forget_judgements()
    [region] = hl.verify(one, same, level="regions").regions
    assert (few.runs, few.excluded) == (driven_runs.PLAIN_RUNS + 2 * len(driven_runs.LONE_VALUES), ())
    assert region.runs == driven_runs.LEAST_OF_LARGE
    assert region.excluded == ("further runs, because each gives 4,096 values",)
    assert hl.verify(one, other, level="regions").differs


def test_windows_are_mixed_first():
    """Of a large piece that places windows the first run has ordinary floats, and each window a place of its own."""
    role = Role((50,), np.dtype(np.int32), columns=(driven_runs.Column(100, 1),))
    first = next(runs_of(Roles([role], (), (), positions=50), [0], 1 << 40))
    starts = first.arguments[0]
    assert (first.aim, first.is_special) == ("mixed", False)
    assert (min(starts) < 0, max(starts) >= 100, sum(0 <= start < 100 for start in starts) > 10) == (True,) * 3


SPLAT, DENSE = "1.0", "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]"
ENOUGH = 12 * 8 * 4
"""Bytes that a run takes for eight floats."""


def text(value, op="add"):
    """A module that adds a constant."""
    return module("%a: 8xf32", f"%k = constant {value} : 8xf32; %r = {op} %a, %k")


@pytest.mark.parametrize(
    ("value", "budget", "level", "status"),
    [
        (DENSE, ENOUGH, "auto", "equal"),
        (DENSE, ENOUGH - 1, "auto", "not run"),
        (DENSE, ENOUGH - 1, "full", "equal"),
        (SPLAT, ENOUGH - 1, "auto", "equal"),
    ],
)
def test_a_module_of_large_constants_is_not_run(value, budget, level, status):
    """What a run takes for them counts against the budget of memory; one number that is repeated takes nothing."""
    verdict = verify(text(value), text(value), level=level, memory_budget=budget)
    assert verdict.module.status == status
    assert ("constants" in verdict.module.reason) == (status == "not run")


def test_a_region_of_large_constants_is_not_cut_out(monkeypatch):
    """Its pieces would be printed and compiled; where constants are what both have in common, it is."""
    monkeypatch.setattr(meanings, "MAX_ELEMENTS", 4)
    monkeypatch.setattr(piece_file, "over_budget", lambda ops: run.over_budget(ops, ENOUGH - 1))
    [region] = regions(text(DENSE), text(DENSE, "subtract"))
    pieces_of(region)
    [region] = regions(text(DENSE), text(DENSE.replace("0.0", "9.0", 1)))
    with pytest.raises(CannotRunError, match=r"0\.0 GiB of constants"):
        pieces_of(region)


@pytest.mark.parametrize("array", [np.zeros(7, np.float32), np.zeros(8, np.float64)])
def test_arguments_of_another_type_are_not_run(array):
    """XLA would read beyond them, or take their bytes for other numbers."""
    compiled = run.Executable(module("%x: 8xf32", "%r = negate %x"), "quick")
    with pytest.raises(CannotRunError, match="in the place of float32"):
        compiled.run([array])


def test_a_run_whose_temporaries_are_too_large_is_not_begun(monkeypatch):
    """Beside arguments and results, which have room."""
    monkeypatch.setattr(run, "MEMORY_LIMIT", 1024)
    body = "%a = broadcast_in_dim %x, dims = [0] -> 8x8x8xf32; %s = sine %a; %z = constant 0.0 : f32"
    text = module("%x: 8xf32", f"{body}; %r = reduce(%s init: %z) applies stablehlo.add across dimensions = [1, 2]")
    with pytest.raises(CannotRunError, match="for a run, more than half"):
        run.Executable(text, "unfused")


TWO_REGIONS = "%a = abs %x; %b = tanh %a; %s = {} %y, %y; %c = tanh %s"


@pytest.mark.parametrize("jobs", [1, 2])
def test_behind_a_deadline_nothing_is_begun_and_that_is_told(monkeypatch, jobs):
    """What was judged before keeps its verdict; the rest was not reached, and neither were the module's runs."""
    first, second = (
        module("%x: 8xf32, %y: 8xf32", TWO_REGIONS.format(op), "%b, %c").replace("stablehlo.abs %x", before)
        for op, before in (("add", "stablehlo.abs %x"), ("subtract", "stablehlo.negate %x"))
    )
    assert hl.verify(first, first, timeout=60).ok
    late = hl.verify(first, second, timeout=1e-6, jobs=jobs)
    assert (late.exit_code, {region.status for region in late.regions}) == (4, {"not judged"}), late.lines()
    assert {late.module.reason, *(region.reason for region in late.regions)} == {
        "it was not reached in the 1e-06 s of --timeout"
    }
    judged, seen = regions_file.RegionJudge.judge_region, []
    monkeypatch.setattr(devices.Deadline, "is_over", property(lambda self: bool(seen)))
    monkeypatch.setattr(
        regions_file.RegionJudge, "judge_region", lambda *given: [judged(*given), seen.append(given)][0]
    )
    found = hl.verify(first, second, timeout=60, level="regions")
    assert sorted(region.status for region in found.regions) == ["differs", "not judged"], found.lines()


def test_claims_that_were_not_reached_are_no_verdict():
    """All regions may be judged before the deadline; what the converter claims was not looked at then."""
    text = module("%o: 8xf32, %i: 1xi32, %u: f32", "%r = scatter(%o, %i, %u) <inserted=[0], to=[0]> {assign}")
    lowered = hl.lower(text)
    found = hl.verify(text, lowered, timeout=1e-6, level="regions")
    assert (found.exit_code, found.claims) == (4, None)
    assert any("the converter's claims: it was not reached" in region.reason for region in found.regions)


def test_nothing_is_begun_behind_a_deadline():
    """No alignment, no compilation, no run, wherever it is asked for; what was compiled before does not run, either."""
    first, second = counted(3), counted(4)
    compiled = DeviceProcess.of_this_process(1, 0)
    with at_most(60, Deadline(0.0)):
        [told] = RegionJudge(*programs(first, second), Terms(), shared_interpreter(), None, None).verify("main")  # type: ignore[arg-type]
        assert (told.status, told.reason) == ("not judged", "it was not reached in the 0 s of --timeout")
        with pytest.raises(TookTooLongError, match="--timeout"):
            piece(first)
        with pytest.raises(TookTooLongError, match="--timeout"):
            compiled.result(("compile", 0, first, "exact"))
        with pytest.raises(InterpreterError, match="--timeout"):
            shared_interpreter().run(first, [])


def test_a_part_of_a_verification_has_its_deadline():
    """What is verified within another verification ends with it, whatever its own timeout is."""
    with at_most(60, Deadline(1e-6)):
        late = verify(counted(3), counted(4), timeout=600)
    assert {region.reason for region in late.regions} == {"it was not reached in the 1e-06 s of --timeout"}
    with at_most(60):
        assert deadline_of(600).left < inf


def test_what_the_clock_ended_is_not_tried_more_carefully():
    """A conversion without what loops show would take as long once more."""
    source = hl.export(lambda x, i: x.at[i].set(1.0), np.zeros(8, np.float32), np.int32(0))
    lowered = hl.lower(source, target="iree")
    late = hl.verify(source, lowered, timeout=1e-6)
    assert late.is_late
    assert not hl.verify(source, lowered).is_late
    assert more_careful(source, lowered, late, None) == (lowered, late)


patience_file = import_module("hlo_lower.verify.patience")
CHAIN = "\n".join(f"%a{k + 1} = add %a{k}, %y" for k in range(40))


@pytest.mark.parametrize("what", ["a derivation", "ranges", "reading"])
def test_what_has_many_steps_looks_at_the_clock_between_them(what, monkeypatch):
    """What began before the deadline ends there, and says so. The clock goes on by a second with each look."""
    text = module("%a0: 8xi32, %y: 8xi32", CHAIN, "%a40")
    read, looks = programs(text), iter(range(1000))
    monkeypatch.setattr(patience_file, "monotonic", lambda: float(next(looks)))
    monkeypatch.setattr(program_file, "LOOKS", 1)
    work = {
        "a derivation": lambda: derive(text, text.replace("%a0, %y", "%y, %a0")),
        "ranges": lambda: Ranges(*read, {}).of(41),
        "reading": lambda: programs(text),
    }
    with at_most(60, Deadline(20.0)), pytest.raises(LateError, match="in the 20 s of --timeout"):
        work[what]()
    assert 20 < next(looks) < 30


def test_what_loops_were_taken_to_carry_is_forgotten_where_the_clock_ends_it(monkeypatch):
    """It is not shown then, and may be asked for once more."""
    [program] = programs(counted(3).replace("8xf32", "8xi32"))
    [value] = program.entries["main"].returned
    for left in range(40):
        ranges, looks = Ranges(program, {}), iter([0.0] * (left + 1))
        monkeypatch.setattr(patience_file, "monotonic", lambda looks=looks: next(looks, 99.0))
        with at_most(60, Deadline(20.0)), suppress(LateError):
            ranges.of(value)
            break
        assert ranges.of(value) == Ranges(program, {}).of(value)
    assert left > 5


def test_a_question_ends_with_the_deadline():
    """z3 is not waited for: that a * b / b is a for numbers of 32 bits takes it long."""
    low = "%m = constant 4294967295 : 8xui64; %one = constant 1 : 8xui64; %a = and %x, %m; %c = and %y, %m"
    product = f"{low}; %b = or %c, %one; %p = multiply %a, %b; %r = divide %p, %b"
    texts = [module("%x: 8xui64, %y: 8xui64", body) for body in (product, f"{low}; %r = or %a, %a")]
    with at_most(60, Deadline(0.3)), pytest.raises(LateError):
        derive(*texts, seconds=60)


def test_what_was_derived_before_the_deadline_stays_derived(monkeypatch):
    """Of two regions the second one is late while it is derived: it is not judged, and nothing of it is kept."""
    halves = "%two = constant 2.0 : 8xf32; %half = constant 0.5 : 8xf32; %n = negate %y"
    first, second = (
        module("%x: 8xf32, %y: 8xf32", f"{halves}; %a = {one}; %b = tanh %a; %s = {other}; %c = sine %s", "%b, %c")
        for one, other in (("subtract %x, %y", "divide %x, %two"), ("add %x, %n", "multiply %x, %half"))
    )
    calls, real = [], proofs_file.derive

    def late(*texts, **how):
        calls.append(texts)
        return real(*texts, **how)

    monkeypatch.setattr(proofs_file, "derive", late)
    monkeypatch.setattr(patience_file, "monotonic", lambda: 99.0 * (len(calls) > 1))
    monkeypatch.setattr(proofs_file.RegionProofs, "may_derive", True)
    found = hl.verify(first, second, timeout=60, level="regions")
    assert sorted((r.status, r.how) for r in found.regions) == [("equal", "derived"), ("not judged", "as it stands")]
    assert all(r.how == "derived" for r in hl.verify(first, second, level="regions").regions)


def test_a_timeout_is_a_number_of_seconds():
    """Anything else is an error that says so."""
    for wrong in (0, -1.0, inf, True, "5"):
        with pytest.raises(hl.InputError, match="is not a number of seconds above 0"):
            hl.verify(counted(3), counted(3), timeout=wrong)
