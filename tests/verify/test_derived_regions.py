"""Regions that are derived: through conversions, by several processes; and what the solver finds is run."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from two_programs import aligned, programs, scattering
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import Assumed, region_proofs, regions, verify
from hlo_lower.verify.align.align import regions_of
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.judges.judge import Judgement, Terms
from hlo_lower.verify.pull import Derivation, derive
from hlo_lower.verify.run import Executable

DERIVES = True

ARGUMENTS = "%x: 4x8xbf16, %w: 8x8xbf16, %b: 8xbf16"
BEFORE = """%y = dot_general %x, %w, contracting_dims = [1] x [0]; %c = broadcast_in_dim %b, dims = [1] -> 4x8xbf16
%z = add %y, %c; %t = tanh %z; %r = transpose %t, dims = [1, 0]"""
AFTER = """%0 = convert %x -> 4x8xf32; %1 = convert %w -> 8x8xf32; %2 = dot_general %0, %1, contracting_dims = [1] x [0]
%y = convert %2 -> 4x8xbf16; %3 = convert %b -> 8xf32; %4 = broadcast_in_dim %3, dims = [1] -> 4x8xf32
%5 = convert %y -> 4x8xf32; %6 = add SUMMAND, %4; %z = convert %6 -> 4x8xbf16; %t = tanh %z
%7 = convert %t -> 4x8xf32; %8 = transpose %7, dims = [1, 0]; %r = convert %8 -> 8x4xbf16"""


def test_each_op_is_a_region_and_a_number_that_is_not_rounded_is_another():
    """What is computed in f32 and rounded is derived op by op; a sum of the product before it is rounded is not."""
    before, after, unrounded = (
        module(ARGUMENTS, body) for body in (BEFORE, *(AFTER.replace("SUMMAND", name) for name in ("%5", "%2")))
    )
    assert [(r.how, len(r.first)) for r in hl.verify(before, after).regions] == [("derived", n) for n in (1, 2, 1)]
    verdict = hl.verify(before, unrounded)
    assert verdict.exit_code == 1
    assert verdict.summary().count("derived") <= 1


@pytest.fixture
def attempts(monkeypatch):
    """The attempts to derive regions, one after the other, each whether it was derived."""
    found = []

    def noted(*pieces, **terms):
        found.append(derive(*pieces, **terms))
        return found[-1]

    monkeypatch.setattr(region_proofs, "derive", noted)
    return found


TWICE = "%i: 8xi32, %x: 8xf32, %z: 8xf32", "%j = add %i, %i; %y = negate %x; %p = compare LT, %j, %i; "
EVEN = "%one = constant 1 : 8xi32; %r = and %j, %one", "%r = constant 0 : 8xi32"
CHOSEN = "%n = negate %y; %r = select %p, %n, %z", "%q = not %p; %r = select %q, %z, %x"


def both(ways):
    """Two modules that have the same values, and at last compute one of them in two ways."""
    return [module(TWICE[0], TWICE[1] + last, returned="%r, %j, %y, %p") for last in ways]


def test_producers_are_taken_in_after_seconds_in_vain(monkeypatch, attempts):
    """That a number is even is seen where it is doubled; a region that is tried in a hurry may look there, too."""
    monkeypatch.setattr(region_proofs, "VAIN_SECONDS", -1.0)
    [region] = hl.verify(*both(EVEN), level="regions").regions
    assert (region.how, region.producers, [*map(bool, attempts)]) == ("derived", 1, [False, True])


LOG_PLUS_ONE = (
    "%x: 8xf32",
    "%a = abs %x; %y = tanh %a; %r = log_plus_one %y",
    "%a = abs %x; %y = tanh %a; %one = constant 1.0 : 8xf32; %s = add %y, %one; %r = log %s",
)


ROOT = (
    "%x: 1x1xf32",
    "%a = abs %x; %y = tanh %a; %r = cholesky %y",
    "%a = abs %x; %y = tanh %a; %r = sqrt %y",
)


@pytest.mark.parametrize("ways", [LOG_PLUS_ONE, ROOT], ids=["rounded", "without a law"])
def test_no_producers_are_taken_in_of_what_a_formula_approximates(ways, attempts, monkeypatch):
    """A broken version that takes them in tries more."""
    before, after = (module(ways[0], body) for body in ways[1:])
    assert [region.how for region in hl.verify(before, after).regions] != ["derived"]
    alone = len(attempts)
    monkeypatch.setattr(region_proofs.RegionProofs, "has_function_alone", lambda *_: False)
    hl.verify(before, after)
    assert 1 == alone < len(attempts) - alone


def test_no_producers_are_taken_in_that_are_too_long(monkeypatch):
    """The region itself is tried, whatever its length is; then it is tested with producers."""
    monkeypatch.setattr(region_proofs, "WIDER_LETTERS", 1)
    [region] = hl.verify(*both(EVEN), level="regions").regions
    assert region.how == "widened"


def test_no_integers_are_opened_for_a_float_that_one_piece_reads(attempts):
    """Where one piece reads y and the other x, what makes y is taken in at once, and nothing is tried without it."""
    [region] = hl.verify(*both(CHOSEN), level="regions").regions
    assert (region.how, [*map(bool, attempts)]) == ("derived", [False, True])


def test_a_region_that_takes_too_long_is_not_made_wider(monkeypatch):
    """An attempt that ends while it finds what the outputs are has no more time with producers."""
    tried = []
    monkeypatch.setattr(
        region_proofs,
        "derive",
        lambda *pieces, **_: tried.append(pieces) or Derivation("open", reason="no time is left"),
    )
    assert {region.how for region in hl.verify(*both(CHOSEN), level="regions").regions} == {"widened"}
    assert len(tried) == 1


@pytest.mark.parametrize("element", ["i1", "i8", "i64", "bf16", "complex<f32>", "i4"])
def test_the_inputs_are_those_of_the_model(element):
    """The element that is told apart is where the outputs differ, in its own type."""
    bodies = ("", "%x"), ("%r = reverse %x, dims = [0]", "%r")
    [array] = derive(*(module(f"%x: 3x{element}", *body) for body in bodies)).inputs
    assert array.shape == (3,)
    assert array[0].tobytes() != array[2].tobytes()


def texts(*bodies, kind="2xi32", returned="%r"):
    """Modules of two vectors."""
    return [module(f"%a: {kind}, %b: {kind}", body, returned) for body in bodies]


SUM, OTHER_ORDER = "%s = add %a, %b; %r = add %s, %a", "%s = add %a, %a; %r = add %b, %s"
RARELY = """%c = constant 13 : 2xi32; %d = constant 7 : 2xi32; %e = shift_right_logical %t, %c; %m = xor %t, %e
%f = shift_left %m, %d; %h = xor %m, %f; %k = constant 987654321 : 2xi32; %is = compare EQ, %h, %k, SIGNED
%not = not %t; %r = select %is, %not, %t"""
ARGUMENT = texts("", returned="%a") + texts(RARELY.replace("%t", "%a"))
COMPUTED = texts(SUM, f"{SUM.replace('%r', '%t')}\n{RARELY}")


@pytest.mark.parametrize("both", [ARGUMENT, COMPUTED])
def test_a_difference_that_no_run_has_is_found_by_the_solver(both):
    """One number of 2^32, that stands nowhere in the module, is in no run; a model has it, with arguments."""
    verdict = verify(*both, level="regions")
    assert verdict.exit_code == 1, verdict.lines()
    [region] = verdict.regions
    assert (region.status, region.how) == ("differs", "as it stands")
    assert "inputs of a model" in region.difference
    given = [region.inputs[place] for place in range(2)]
    [first], [second] = (Executable(text, "exact").run(given) for text in both)
    assert not np.array_equal(first, second)


def test_what_rounds_is_not_told_by_the_solver():
    """A function on floats is whatever the model says, so that a run decides."""
    both = texts("%r = tanh %a", "%t = add %a, %a; %s = subtract %t, %a; %r = tanh %s", kind="4xf32")
    assert not derive(*both)
    assert hl.verify(*both).exit_code in (1, 4)


def test_what_the_solver_finds_and_no_run_shows_is_only_run():
    """No law says that x + x is 2 x; the solver's inputs stand in the verdict."""
    both = texts("%r = add %a, %a", "%c = constant 2.0 : 2xf32; %r = multiply %a, %c", kind="2xf32")
    assert verify(*both, level="regions").exit_code == 0
    verdict = verify(*both, level="regions", prove=True)
    assert verdict.exit_code == 4, verdict.lines()
    [region] = verdict.regions
    assert (region.status, len(region.inputs)) == ("only run", 2)
    assert "z3 finds a difference" in region.reason


def test_of_another_order_of_floats_no_doubt_is_raised():
    """Where sums may be in another order a model in which they differ is beside the point."""
    both = texts(SUM, OTHER_ORDER, kind="2xf32")
    verdict = verify(*both, Assumed(reassociated=True), level="regions", prove=True)
    assert verdict.ok, verdict.lines()
    assert "derived" not in verdict.counts()


@pytest.mark.parametrize(("oob", "other"), [("xla", "spec"), ("spec", "xla")])
def test_what_the_tool_writes_is_derived(oob, other):
    """A lowered scatter is derived through the API, under either policy; under the other one it is refuted by runs."""
    row = scattering("4xf32", "1xi32", "2xf32", "window=[0], to=[0]")
    lowered = hl.lower(row, oob=oob)
    verdict = hl.verify(row, lowered, level="regions", prove=True)
    assert (verdict.ok, verdict.counts()) == (True, {"derived": 1}), verdict.lines()
    assert hl.verify(row, lowered, oob=other, level="regions", prove=True).differs


def test_several_processes_say_what_one_says():
    """Two regions, one of them wrong: the verdict of two processes is that of one."""
    two = "%x = abs %a; %y = negate %b"
    other = "%m = negate %a; %x = maximum %a, %m; %z = constant -2.0 : 8xf32; %y = multiply %b, %z"
    both = texts(two, other, kind="8xf32", returned="%x, %y")
    alone, shared = (verify(*both, level="regions", jobs=jobs) for jobs in (1, 2))
    assert (len(alone.regions), alone.differs) == (2, True)
    assert shared.regions == alone.regions
    assert [sorted(r.inputs) for r in shared.regions] == [sorted(r.inputs) for r in alone.regions]


def test_equal_pieces_of_two_modules_are_derived_once(attempts):
    """Names and what stands around do not matter; other terms are asked for anew."""
    texts = both(EVEN)
    first, second = (hl.verify(*pair, level="regions") for pair in (texts, [f"// again\n{t}" for t in texts]))
    assert [*map(bool, attempts)] == [False, True]
    assert first.regions == second.regions
    hl.verify(*texts, level="regions", float_mode="reassociate")
    assert len(attempts) > 2


@pytest.mark.parametrize(("is_apart", "how"), [(False, "derived"), (True, "widened")])
def test_a_long_derivation_is_not_tried_of_values_that_are_apart(is_apart, how, monkeypatch):
    """Where both functions give other values, producers are in vain; the region itself is tried first."""
    monkeypatch.setattr(region_proofs, "SHORT_LETTERS", 0)
    monkeypatch.setattr(regions.RegionJudge, "_is_apart", lambda *_: is_apart)
    [region] = hl.verify(*both(EVEN), level="regions").regions
    assert region.how == how


def test_what_is_known_to_be_apart_is_aligned_anew_at_once(monkeypatch):
    """No region of such an alignment is judged."""
    judge = regions.RegionJudge(*programs(*both(EVEN)), Terms(), shared_interpreter(), lambda *_: None, lambda *_: None)
    found = aligned(*both(EVEN))
    monkeypatch.setattr(judge, "_is_apart", lambda _: True)
    judge._refuse_apart("main", regions_of(found))
    judge._apart["main"] = {(8, 9)}
    with pytest.raises(regions.WrongAssumptionError) as wrong:
        judge._refuse_apart("main", regions_of(found))
    assert wrong.value.pairs == ((8, 9),)


@pytest.mark.parametrize("is_told_apart", [False, True])
def test_modules_that_are_known_to_differ_are_not_aligned_anew(is_told_apart, monkeypatch):
    """Their verdict is known, and with it where they differ first; else other assumptions are made."""
    given = *programs(*both(EVEN)), Terms(), shared_interpreter(), lambda *_: None, lambda *_: None, None
    judge, tried = regions.RegionJudge(*given, lambda: is_told_apart), []

    def differs(name, region):
        tried.append(region)
        raise regions.WrongAssumptionError(
            [], replace(judge._verdict(name, region, region, Judgement()), difference="0, 1")
        )

    monkeypatch.setattr(judge, "judge_region", differs)
    monkeypatch.setattr(regions, "MAX_ALIGNMENTS", 2)
    [told] = judge.verify("main")
    assert (told.status, told.reason.startswith(regions.BOTH_DIFFER)) == ("not judged", is_told_apart)
    assert len(tried) == 2 - is_told_apart


SCRIPT = """
import gc, threading, time
from hlo_lower.verify.pull.solver import alone, z3

def free():
    while not done:
        gc.collect()
        time.sleep(0.002)

done = False
other = threading.Thread(target=free)
other.start()
with alone():
    x, y = z3.BitVecs("x y", 32)
    for k in range(30):
        for j in range(20):
            cycle = [x * y + 20 * k + j, z3.Solver()]
            cycle.append(cycle)
        asked = z3.Solver()
        asked.set("timeout", 50)
        asked.add(x * y == 12345677 + k, z3.ULT(x, 1 << 16), z3.ULT(y, 1 << 16), x > 3, y > 3)
        asked.check()
done = True
other.join()
"""


def test_another_thread_may_free_a_term():
    """Cycles of terms are collected in one thread while another solves: a z3 that is not told ends with SIGSEGV."""
    assert subprocess.run([sys.executable, "-c", SCRIPT], check=False).returncode == 0


PICKED = "%x: 8xf32, %a: 3x1xi32, %b: 3x1xi32, %k: 3x1xi32"
LARGER = "%p = compare GT, %a, %b; %m = select %p, %a, %b; %q = compare LT, %a, %b; %z = select %q, %a, %b"
READ = """%v = add %m, %k; %w = add %z, %k; %i = negate %m; INSIDE
%g = gather(%x, %j) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0],
  index_vector_dim = 1>, slice_sizes = array<i64: 1>> -> 3xf32
%r = multiply %v, %w"""
INSIDE = "%lo = constant 0 : 3x1xi32; %hi = constant {} : 3x1xi32; %c = maximum %i, %lo; %j = minimum %c, %hi"


def picked(most):
    """Reads at an index, and at one that is clamped; what the index is made of has several likely counterparts."""
    before = "%m = maximum %a, %b; %z = minimum %a, %b; " + READ.replace("INSIDE", "").replace("%j", "%i")
    after = LARGER + "; " + READ.replace("INSIDE", INSIDE.format(most))
    return [module(PICKED, body, "%g, %r") for body in (before, after)]


@pytest.mark.parametrize(("most", "is_equal"), [(7, True), (6, False)])
def test_an_index_that_both_versions_have_is_not_taken_for_the_clamped_one(most, is_equal, monkeypatch):
    """It was, as one op reads either: what reads it is equal, and the two are not. No run has to show that."""
    if is_equal:
        monkeypatch.delattr(regions, "judge")
    verdict = verify(*picked(most), level="regions")
    assert verdict.ok is is_equal
    assert verdict.differs is not is_equal
    assert not is_equal or set(verdict.counts()) == {"derived"}, verdict.lines()


def test_a_region_is_tried_before_what_a_sort_made_of_its_operand(attempts):
    """A write at a constant needs no order; what was shuffled before it is not looked at."""
    given, body = (
        "%x: 4xf32, %u: 1xf32, %f: 4xf32",
        """%n = iota dim = 0 : 4xi32
%s:2 = sort(%f, %n) <dimension = 0, is_stable = true> {%a, %b, %c, %d: %p = compare LT, %a, %b; return %p}
%i = reshape %s#1 -> 4x1xi32; %o = constant 2 : 1xi32
%y = gather(%x, %i) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0],
  index_vector_dim = 1>, slice_sizes = array<i64: 1>> -> 4xf32
""",
    )
    before = body + "%r = scatter(%y, %o, %u) <window=[0], to=[0]> {assign}"
    after = body + "%at = constant 2 : i32; %r = dynamic_update_slice %y, %u, %at"
    [region] = verify(module(given, before), module(given, after), level="regions").regions
    assert (region.how, region.producers, len(attempts)) == ("derived", 0, 1)


def test_more_may_be_spent_in_vain_where_more_is_derived(monkeypatch):
    """A module of many regions has many that are derived, and some that are not."""
    monkeypatch.setattr(region_proofs, "VAIN_SECONDS", -1.0)
    proofs = region_proofs.RegionProofs(Terms(), region_proofs.nowhere, shared_interpreter())
    assert proofs.is_hurried
    proofs._derived = round(1.0 / region_proofs.FOR_EACH_DERIVED) + 1
    assert not proofs.is_hurried
