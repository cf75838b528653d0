"""What `verify` says of lowerings, right and wrong in one way each, and of whole modules; `lower(verify=...)`."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from two_programs import scattering
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import ScatterFacts
from hlo_lower.lowering.engine.kind import Context
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.one_window import one_window
from hlo_lower.lowering.scatter.scatters import read_scatters
from hlo_lower.ops.names import SCATTER
from hlo_lower.verify import Assumed, verify

CLAMPED = "%lo = constant 0 : i32; %hi = constant 7 : i32; %j = clamp %lo, %i, %hi -> 5x1xi32"
REVERSED = "%j = reverse %i, dims = [0]; %v = reverse %u, dims = [0]"
WINDOW = {"indices": "1xi32", "updates": "3xf32", "numbers": "window=[0], to=[0]"}
GUARD = """%z = constant 0 : i32; %last = constant 5 : i32; %ge = compare GE, %s, %z, SIGNED
%le = compare LE, %s, %last, SIGNED; %ok = and %ge, %le; %old = dynamic_slice %o, %s, sizes = [3]
%new = select %ok, %u, %old"""


def updating(guard="", written="%u", behind="", returned="%r"):
    """An update of a slice, guarded or not."""
    body = f"%s = reshape %i -> i32; {guard}\n%r = dynamic_update_slice %o, {written}, %s; {behind}"
    return module("%o: 8xf32, %i: 1xi32, %u: 3xf32", body, returned)


GUARDED = updating(GUARD, "%new")
SIGN_LOST = updating(GUARD, "%new", "%zero = constant 0.0 : 8xf32; %q = add %r, %zero", "%q")
WRONG = {
    "clamp for drop": ({}, {"before": CLAMPED, "used": "%o, %j, %u"}, ("one past the end", "overhanging", "negative")),
    "first writer wins": (
        *({}, {"before": REVERSED, "used": "%o, %j, %v"}),
        ("in range", "first and last", "duplicates", "all equal"),
    ),
    "nothing is written": ({}, {"returned": "%o"}, ("in range",)),
    "added once too often": (
        *({"body": "add"}, {"body": "add", "behind": "%q = add %r, %r", "returned": "%q"}),
        ("in range",),
    ),
    "signed zero lost": (WINDOW, SIGN_LOST, ("first and last", "duplicates", "mixed")),
    "unguarded update slice": (WINDOW, updating(), ("one past the end", "overhanging")),
}
"""How the scatter is written, a wrong lowering of it, and the aims of the runs that may show that."""


@pytest.mark.few(3)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_lowering_of_one_scatter_is_caught_and_named(name):
    """By a run whose aim shows it, with the scatter, the judge, the place and the values; and by runs of the module."""
    before, after, aims = WRONG[name]
    after = after if isinstance(after, str) else scattering(**after)
    verdict = verify(scattering(**before), after)
    [found] = verdict.regions
    assert (verdict.exit_code, found.status) == (1, "differs")
    # what is done to the scatter's result is a region behind the scatter, which is matched
    is_behind = name == "added once too often"
    assert found.scatters == (() if is_behind else (1,))
    assert found.difference.split(":")[0] in aims
    [line] = [line for line in verdict.lines() if " in main: differs: " in line]
    assert line.startswith("line 7 in" if is_behind else "scatter 1 at line 2 in")
    for part in ("says result 0 at [", "expected ", ", got ", "elements differ, bit for bit"):
        assert part in line
    if name == "clamp for drop":
        assert (verdict.module.status, verdict.module.difference.result) == ("differs", 0)
        assert [place.number for place in verdict.module.on_path] == [1]


def test_dropping_elements_is_wrong_where_windows_are_dropped():
    """The guarded update is right under oob="xla" and wrong under oob="spec", which keeps the inside elements."""
    before = scattering(**WINDOW)
    under_xla, under_spec = (verify(before, GUARDED, Assumed(oob), level="regions") for oob in ("xla", "spec"))
    [found] = under_xla.regions
    assert (under_xla.ok, found.status) == (True, "equal")
    inside, overhanging, outside, most = found.windows
    assert min(inside, overhanging, outside) > 0
    assert most == 1
    assert {"XLA", "reference"} <= set(found.judges)
    [region] = under_spec.regions
    assert (under_spec.ok, region.status) == (False, "differs")
    assert "reference says" in region.difference
    assert region.difference.split(":")[0] in ("overhanging", "one past the end", "first and last")


RIGHT = {
    "points": scattering(),
    "subtracted points": scattering(body="%c, %d: %s = subtract %c, %d; return %s"),
    "one window": scattering(**WINDOW),
    "i8 indices": scattering(indices="5x1xi8"),
    "unsigned indices": scattering(indices="5x1xui32"),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", RIGHT)
def test_the_tools_own_lowering_is_accepted(name, oob):
    """What `lower` makes of a scatter is equal in all regimes under both policies, judged by two oracles at least."""
    verdict = verify(RIGHT[name], hl.lower(RIGHT[name], oob=oob).text, Assumed(oob), level="regions")
    assert verdict.ok, "\n".join(verdict.lines())
    assert verdict.module is None  # which is not run
    [found] = verdict.regions
    assert (found.status, found.scatters) == ("equal", (1,))
    assert len(found.judges) >= 2


def test_a_second_version_that_does_not_parse_is_refused():
    """Text that is no module is the caller's mistake, and says which of the two it is."""
    with pytest.raises(hl.InputError, match="after"):
        verify(RIGHT["points"], "no module", level="regions")


def test_progress_is_told():
    """Progress goes from nothing to everything in each stage."""
    told = []
    text = RIGHT["one window"]
    verify(text, hl.lower(text).text, runs=1, progress=lambda *step: told.append(step))
    assert {name for name, _, _ in told} == {"regions", "module"}
    for stage in ("regions", "module"):
        steps = [(done, total) for name, done, total in told if name == stage]
        assert (steps[0][0], steps[-1][0]) == (0, steps[-1][1])
        assert steps == sorted(steps)


def test_whoever_wrote_the_second_version_it_is_judged_alike():
    """A lowering by another rule than the tool's choice is judged as well as its own, records or none."""
    source = hl.export(lambda x, i, u: x.at[i].set(u), np.zeros((8, 4)), np.zeros(3, int), np.ones((3, 4)))
    lowered = hl.lower(source, prefer=("while",))
    as_text, with_records = (hl.verify(source, other, level="regions") for other in (lowered.text, lowered))
    assert as_text.ok
    assert with_records.ok
    assert [region.scatters for region in as_text.regions] == [(1,)]
    assert {rule for region in with_records.regions for rule in region.rules} == {"while"}
    assert {rule for region in as_text.regions for rule in region.rules} == set()


NOWHERE = "%x = custom_call @nowhere({}) -> 8xf32"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (scattering(behind="%q = convert %r -> 8xf64", returned="%q"), "tensor<8xf64>"),
        (scattering().replace("(%o:", "(%x: tensor<1xi1>, %o:", 1), "tensor<1xi1>, tensor<8xf32>"),
        (scattering().replace("@main", "@other"), "@main is public in the first version only"),
    ],
)
def test_another_signature_is_a_difference(after, told):
    """A second version with other arguments or results, or another entry point, differs."""
    verdict = verify(scattering(), after)
    assert (verdict.ok, verdict.differs, bool(verdict.interface)) == (False, True, True)
    assert told in "\n".join(verdict.lines())


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        (scattering(), scattering(before=NOWHERE.format("%o"), used="%x, %i, %u"), "differs", ""),
        (scattering(), scattering().replace("public @main", "private @main"), "differs", ""),
        *[(*[scattering(behind=NOWHERE.format("%r"), returned="%x")] * 2, "not run", "nowhere")],
    ],
)
def test_what_xla_refuses_is_not_passed_over(before, after, status, reason):
    """Where the first version runs, the second one has to; a first one that does not run is told, with the reason."""
    found = verify(before, after).module
    assert found.status == status
    assert reason in found.reason


def test_what_a_run_does_not_exercise_is_told():
    """A scatter that reaches no result is named, and a result of NaN with its share."""
    text = scattering(returned="%o")
    told = "\n".join(verify(text, text).module.not_exercised)
    assert "scatter 1" in told
    assert "no result depends on it" in told
    text = scattering(behind="%k = constant 0x7FC00000 : 8xf32; %q = add %r, %k", returned="%q")
    assert any("100% of it is NaN" in told for told in verify(text, text).module.not_exercised)


def test_what_never_reaches_a_result_is_no_difference():
    """A wrong scatter whose result is not selected is no difference; where it is selected it is one."""
    for chosen in ("false", "true"):
        hidden = f"%k = constant {chosen} : 8xi1; %q = select %k, %r, %o"
        texts = (scattering(body=body, behind=hidden, returned="%q") for body in ("add", "maximum"))
        assert verify(*texts).ok == (chosen == "false")


def test_over_the_budget_it_is_not_run():
    """Beyond the memory budget level "auto" says why it did not run the module, and "full" runs it."""
    text = scattering()
    auto, full = (verify(text, text, memory_budget=10, level=level).module for level in ("auto", "full"))
    assert (auto.status, full.status) == ("not run", "equal")
    assert "--verify full" in auto.reason


ARGUMENTS = "%x: 64xf32, %s: i32, %i: 2x1xi32, %u: 2xf32"
SLICED = "%w = dynamic_slice %x, %s, sizes = [16]"
UNCLAIMED = "indices_are_sorted = false, unique_indices = false"
IN_SLICE = module(ARGUMENTS, f"{SLICED}; %r = scatter(%w, %i, %u) <inserted=[0], to=[0], ivd=1, {UNCLAIMED}> {{add}}")


def unrolled(*, clamped):
    """A scatter of two indices into a dynamic_slice, its updates guarded; the starts clamped, or as they are."""
    text, operand = f"{SLICED}; %lo = constant 0 : i32; %hi = constant 15 : i32\n", "%w"
    for k in range(2):
        start = f"%at{k}" if clamped else f"%k{k}"
        text += f"""%i{k} = slice %i [{k}:{k + 1}, 0:1]; %k{k} = reshape %i{k} -> i32; %u{k} = slice %u [{k}:{k + 1}]
        %ge{k} = compare GE, %k{k}, %lo, SIGNED; %le{k} = compare LE, %k{k}, %hi, SIGNED; %in{k} = and %ge{k}, %le{k}
        %at{k} = clamp %lo, %k{k}, %hi; %old{k} = dynamic_slice {operand}, {start}, sizes = [1]
        %sum{k} = add %old{k}, %u{k}; %new{k} = select %in{k}, %sum{k}, %old{k}
        %r{k} = dynamic_update_slice {operand}, %new{k}, {start}
        """
        operand = f"%r{k}"
    return module(ARGUMENTS, text, "%r1")


def test_an_unclamped_start_within_another_slice_is_found():
    """XLA adds the two starts; each region is right alone, and only the whole module shows it."""
    verdict = verify(IN_SLICE, unrolled(clamped=False))
    assert verdict.exit_code == 1, verdict.lines()
    assert verdict.module.status == "differs"
    verdict = verify(IN_SLICE, unrolled(clamped=True))
    assert verdict.exit_code == 0, verdict.lines()
    assert "beyond the edges" in verdict.module.how


ROW = module(
    "%o: 8x4xf32, %i: 1xi32, %u: 4xf32",
    "%r = scatter(%o, %i, %u) <window=[0], inserted=[0], to=[0]> {assign}",
)
CACHE, LINE = np.zeros((8, 4), np.float32), np.arange(4, dtype=np.float32)


def write(cache, position, row):
    """A row of a cache."""
    return cache.at[position].set(row, mode="drop")


def always_written(op):
    """The guard is left out, so that a row out of bounds is written to the nearest place."""
    return one_window(replace(op, facts=replace(op.facts, guarded_dims=(), masked_dims=())))


def wrong_registry(source):
    """The built-in rules and a wrong one that is exactly for the first scatter of a module."""
    registry, rules = default_registry(), RuleList()
    facts = read_scatters(Context(hl.read(source), Options(), registry))[0].candidates[0].facts
    constraints = {fact: {facts[fact]} for fact in ScatterFacts.domains}
    rules.lowers(SCATTER, form=always_written.__doc__, **constraints)(always_written)
    registry.extend(rules, origin="wrong-on-purpose 1.0, entry point wrong")
    registry.check()
    return registry


def test_what_is_right_is_returned():
    """The module that is returned is the one that is returned without verification."""
    assert hl.lower(ROW, verify="full").text == hl.lower(ROW).text


@pytest.mark.parametrize("level", ["regions", "full"])
def test_a_wrong_rule_raises(level):
    """The error names the module, what differs and where, the rule, and what to do, in lines of its own."""
    registry = wrong_registry(ROW)
    assert hl.lower(ROW, registry=registry).records[0].rule == "always_written"
    with pytest.raises(hl.DifferenceError) as error:
        hl.lower(ROW, registry=registry, verify=level, name="row")
    what, facts, *nearest, following = str(error.value).splitlines()
    assert what == "row: the lowered module computes something else"
    assert facts.startswith("  facts:   1 region differs")
    assert nearest
    assert all(line.startswith("  nearest: ") for line in nearest)
    assert any("scatter 1 at " in line and "written by always_written: differs: " in line for line in nearest)
    assert following.startswith("  next:    hl.verify(source, lowered).lines() says all of it")
    assert error.value.exit_code == 1
    # where one line tells the difference there are four: what, facts, the nearest, and what to do next
    assert level != "regions" or len(nearest) == 1


def test_a_function_that_is_lowered_wrongly_raises_where_it_is_traced():
    """A wrong rule under hl.jit raises with the name of the function, before anything is computed."""
    source = jax.export.export(jax.jit(write))(jnp.asarray(CACHE), jnp.int32(0), jnp.asarray(LINE))
    fast = hl.jit(write, registry=wrong_registry(source), verify="regions")
    with pytest.raises(hl.DifferenceError, match=r"^write: the lowered module computes something else"):
        fast(CACHE, np.int32(0), LINE)
    unverified = hl.jit(write, registry=wrong_registry(source))
    assert unverified(CACHE, np.int32(8), LINE)[7, 3] == 3
