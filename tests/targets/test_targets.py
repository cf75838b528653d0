"""Targets: what they refuse, and how they are found."""

import pytest

from hlo_lower.errors import InputError
from hlo_lower.targets import TARGETS, Target, target_named


def test_a_target_gives_the_reason_of_a_refusal():
    """A refused op has a reason that names the op and the target; any other op has none."""
    target = Target("small", "", {"stablehlo.while": "no control flow"})
    assert target.refusal("stablehlo.while") == "emits stablehlo.while, which small refuses: no control flow"
    assert target.refusal("stablehlo.add") is None


def test_targets_are_found_by_name():
    """Each listed target is found under its own name, and names are unique."""
    assert [target_named(target.name) for target in TARGETS] == list(TARGETS)
    assert len({target.name for target in TARGETS}) == len(TARGETS)


def test_an_unknown_target_lists_the_known_ones():
    """The error names what there is."""
    with pytest.raises(InputError, match="no target named 'nothing'") as error:
        target_named("nothing")
    assert error.value.facts == f"targets: {', '.join(t.name for t in TARGETS)}"
