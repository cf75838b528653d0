"""Passes: their order is checked, and what is known of a module is dropped once one changed it."""

from dataclasses import replace

import pytest
from decode_module import SCATTER

import hlo_lower as hl
from hlo_lower.base.errors import RegistryError
from hlo_lower.lowering.kinds import KINDS, distinct, new_registry
from hlo_lower.lowering.passes import NOTHING, PipelineError, has_met, in_order
from hlo_lower.lowering.pipeline import PIPELINE, start_run

ONE, TWO = (replace(PIPELINE[0], name=name) for name in ("one", "two"))


@pytest.mark.parametrize(
    ("passes", "says"),
    [
        ((ONE, ONE), "pass 2 has the name of pass 1: 'one'"),
        ((replace(ONE, after=("two",)), TWO), "pass 1, 'one', has to come after 'two', which is pass 2"),
        ((ONE, replace(TWO, after=("three",))), "pass 2, 'two', has to come after 'three', of which there is none"),
        (
            (ONE, replace(TWO, where=has_met("three"))),
            "pass 2, 'two', has to come after 'three', of which there is none",
        ),
    ],
)
def test_a_wrong_order_is_an_error(passes, says):
    """Two passes of one name, and one before what it has to come after, are told with their places."""
    with pytest.raises(PipelineError) as error:
        in_order(*passes)
    assert str(error.value) == says


def test_what_is_known_is_dropped_once_a_pass_changed_the_module():
    """The pass of scatters leaves other facts; one that changes nothing leaves the same."""
    run = start_run(SCATTER, hl.Options(), is_counted=True)
    before = run.up_to("ops").context
    assert run.context is before
    assert run.up_to("scatters").context is not before
    run.to_the_end()
    assert [one.name for one in PIPELINE if one.may_change is NOTHING and run.done[one.name].built] == []


def test_a_second_kind_or_rule_of_one_name_is_an_error():
    """The message names both and where they stand; `mask` and `scatter_to_mask` are one name to reports."""
    another = type("Another", (type(KINDS[2]),), {})
    with pytest.raises(RegistryError, match=r"ReverseKind \(hlo_lower.lowering.single_ops.reverse\)") as error:
        distinct(*KINDS, another())
    assert "Another" in str(error.value)

    def scatter_to_mask(op): ...

    def mask(op): ...

    registry = new_registry()
    name, values = next(iter(KINDS[0].domains.items()))
    registry.add("stablehlo.scatter", scatter_to_mask, constraints={})
    with pytest.raises(RegistryError, match=r"passes.py:\d+: mask has the name of scatter_to_mask at .*passes"):
        registry.add("stablehlo.scatter", mask, constraints={name: {next(iter(values))}})
