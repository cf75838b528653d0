"""What the tool itself makes of a scatter is accepted where a wrong version of it is not, and the values are told."""

import re

import numpy as np
import pytest
from two_programs import scattering

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify

ONE_WINDOW = {"indices": "1xi32", "updates": "3xf32", "numbers": "window=[0], to=[0]"}
RIGHT = {
    "points": scattering(),
    "subtracted points": scattering(body="%c, %d: %s = subtract %c, %d; return %s"),
    "one window": scattering(**ONE_WINDOW),
    "one added window": scattering(**ONE_WINDOW, body="add"),
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
