"""Every comparison is able to fail: lowerings that are wrong in one way each, and right ones that are not accused."""

import re

import numpy as np
import pytest
from two_programs import scattering
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify

CLAMPED = "%lo = constant 0 : i32; %hi = constant 7 : i32; %j = clamp %lo, %i, %hi -> 5x1xi32"
WRAPPED = """%z = constant 0 : 5x1xi32; %n = constant 8 : 5x1xi32; %neg = compare LT, %i, %z, SIGNED
%w = add %i, %n; %j = select %neg, %w, %i"""
SHIFTED = "%one = constant 1 : 5x1xi32; %j = add %i, %one"
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
    "negative indices wrap": ({}, {"before": WRAPPED, "used": "%o, %j, %u"}, ("negative",)),
    "off by one": ({}, {"before": SHIFTED, "used": "%o, %j, %u"}, ("in range",)),
    "first writer wins": (
        *({}, {"before": REVERSED, "used": "%o, %j, %v"}),
        ("in range", "first and last", "duplicates", "all equal"),
    ),
    "nothing is written": ({}, {"returned": "%o"}, ("in range",)),
    "added once too often": (
        *({"body": "add"}, {"body": "add", "behind": "%q = add %r, %r", "returned": "%q"}),
        ("in range",),
    ),
    "arguments swapped": (
        *({"body": "subtract"}, {"body": "%c, %d: %s = subtract %d, %c; return %s"}),
        ("in range",),
    ),
    "order of additions": (
        *({"body": "add"}, {"body": "add", "before": REVERSED, "used": "%o, %j, %v"}),
        ("one past the end", "first and last", "all equal", "duplicates", "in range"),
    ),
    "signed zero lost": (WINDOW, SIGN_LOST, ("first and last", "duplicates", "mixed")),
    "unguarded update slice": (WINDOW, updating(), ("one past the end", "overhanging")),
}
"""How the scatter is written, a wrong lowering of it, and the aims of the runs that may show that."""


def texts(name):
    """A module and a wrong lowering of it."""
    before, after, _ = WRONG[name]
    return scattering(**before), after if isinstance(after, str) else scattering(**after)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_lowering_of_one_scatter_is_caught_and_named(name):
    """A lowering that is wrong in one way is caught by a run whose aim shows it, and the scatter is named."""
    verdict = verify(*texts(name), level="regions")
    [found] = verdict.regions
    assert (verdict.ok, verdict.exit_code, found.status) == (False, 1, "differs")
    # what is done to the scatter's result is a region behind the scatter, which is matched
    assert found.scatters == (() if name == "added once too often" else (1,))
    assert found.difference.split(":")[0] in WRONG[name][2]
    [line] = [line for line in verdict.lines() if ": differs: " in line]
    assert line.startswith(f"{'scatter 1 at line 2' if found.scatters else 'line 7'} in main: differs: ")


@pytest.mark.parametrize("name", ["clamp for drop", "off by one", "nothing is written", "arguments swapped"])
def test_a_wrong_module_is_caught_and_the_scatter_on_its_path_named(name):
    """The module's own runs tell what they find, with the scatters that the result depends on."""
    verdict = verify(*texts(name))
    assert (verdict.ok, verdict.module.status) == (False, "differs")
    assert verdict.module.difference.result == 0
    assert [place.number for place in verdict.module.on_path] == [1]


def test_dropping_elements_is_wrong_where_windows_are_dropped():
    """The guarded update is right under oob="xla" and wrong under oob="spec", which keeps the inside elements.

    Windows of its region lie inside, outside and overhanging, and two judges at least look at them.
    """
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


CASES = {
    "points": {},
    "added points": {"body": "add"},
    "integers": {"operand": "8xi32", "updates": "5xi32", "body": "add"},
    "bfloat16": {"operand": "8xbf16", "updates": "5xbf16", "body": "add"},
    "booleans": {"operand": "8xi1", "updates": "5xi1", "body": "add"},
    "i64 indices": {"indices": "5x1xi64"},
    "unsigned indices": {"indices": "5x1xui32"},
    "one window": WINDOW,
    "normalised": {"before": WRAPPED, "used": "%o, %j, %u"},
    "clamped": {"before": CLAMPED, "used": "%o, %j, %u"},
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
def test_a_right_rewriting_is_accepted_by_two_judges(name):
    """The scatter with updates turned round twice is a region, equal as it stands, with windows where they can lie; of
    the scatter itself there is none, and nothing is run for it."""
    case = {"used": "%o, %i, %u", "before": "", **CASES[name]}
    twice = f"{case['before']}; %u1 = reverse %u, dims = [0]; %u2 = reverse %u1, dims = [0]"
    after = scattering(**{**case, "before": twice, "used": case["used"].replace("%u", "%u2")})
    before = scattering(**case)
    assert verify(before, before, level="regions").summary() == "the same operations"
    verdict = verify(before, after, level="regions")
    assert verdict.ok, "\n".join(verdict.lines())
    [found] = verdict.regions
    assert (found.how, found.scatters) == ("as it stands", (1,))
    assert len(found.judges) >= 2
    assert min(found.windows[0], found.windows[2]) > 0  # a clamp before it is no part of the region
    assert (name == "one window") == (found.windows[1] > 0)


RIGHT = {
    "points": scattering(),
    "subtracted points": scattering(body="%c, %d: %s = subtract %c, %d; return %s"),
    "one window": scattering(**WINDOW),
    "one added window": scattering(**WINDOW, body="add"),
    "booleans": scattering("8xi1", updates="5xi1", body="add"),
    "i8 indices": scattering(indices="5x1xi8"),
}


def lower(text: str, oob: str = "xla") -> str:
    """The tool's conversion."""
    return hl.lower(text, oob=oob).text


def without_guard(text: str) -> str:
    """What the tool makes of it, with each guard's choice replaced by the update: windows are clamped, not dropped."""
    return re.sub(r"select %\w+, (%\w+), %\w+ : \S+ (\S+)", r"maximum \1, \1 : \2", lower(text))


def swapped(text: str) -> str:
    """The same with the operands of each subtraction swapped."""
    return lower(text.replace("stablehlo.subtract %c, %d", "stablehlo.subtract %d, %c"))


@pytest.mark.few(3)
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", RIGHT)
def test_the_tools_own_lowering_is_accepted(name, oob):
    """What `lower` makes of a scatter is equal in all regimes under both policies, judged by two oracles at least."""
    verdict = verify(RIGHT[name], lower(RIGHT[name], oob), Assumed(oob), level="regions")
    assert verdict.ok, "\n".join(verdict.lines())
    assert verdict.module is None  # which is not run
    [found] = verdict.regions
    assert (found.status, found.scatters) == ("equal", (1,))
    assert len(found.judges) >= 2


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "lowered"),
    [
        ("one window", without_guard),
        ("one added window", without_guard),
        ("points", without_guard),
        ("subtracted points", swapped),
    ],
)
def test_the_same_lowering_made_wrong_is_not(name, lowered):
    """One change to what the tool makes of it, and the verdict names scatter, judge, place and values."""
    verdict = verify(RIGHT[name], lowered(RIGHT[name]), level="regions")
    [found] = verdict.regions
    assert (verdict.ok, found.status) == (False, "differs")
    [line] = [line for line in verdict.lines() if "differs" in line]
    assert line.startswith("scatter 1 at line 2 in main: differs: ")
    for part in ("says result 0 at [", "expected ", ", got ", "elements differ, bit for bit"):
        assert part in line


def test_a_second_version_that_does_not_parse_is_refused():
    """Text that is no module is the caller's mistake, and says which of the two it is."""
    with pytest.raises(hl.InputError, match="after"):
        verify(RIGHT["points"], "no module", level="regions")


def test_progress_is_told():
    """Progress goes from nothing to everything in each stage."""
    told = []
    text = RIGHT["one window"]
    verify(text, lower(text), runs=1, progress=lambda *step: told.append(step))
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
