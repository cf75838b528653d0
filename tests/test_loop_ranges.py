"""What rests on a range that a loop keeps: used, and where that cannot be verified, done without."""

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl
from hlo_lower.api.many.converted import convert_source
from hlo_lower.api.verified import more_careful
from hlo_lower.base.errors import DifferenceError


def walk(table, following, at, steps):
    """Rows in the order in which each one names the next."""

    def turn(carried):
        i, at, total = carried
        return i + 1, jnp.clip(following[at], 0, 7), total + table[at]

    start = (jnp.int32(0), jnp.clip(at, 0, 7), jnp.zeros((3, 4)))
    return jax.lax.while_loop(lambda carried: carried[0] < steps, turn, start)[2]


ARGUMENTS = (jnp.ones((8, 4)), jnp.zeros(8, jnp.int32), jnp.zeros(3, jnp.int32), jnp.int32(3))


def clamps(text):
    """How often a module bounds something from above, besides where the program does."""
    return text.count("stablehlo.minimum") - hl.lower(hl.export(walk, *ARGUMENTS)).text.count("stablehlo.minimum")


@pytest.fixture(scope="module")
def exported():
    """The walk as a module."""
    return hl.export(walk, *ARGUMENTS)


def test_a_range_that_a_loop_keeps_spares_clamps(exported):
    """IREE's gathers have to stay inside: by induction these do, as the body clips; asked for, they are clamped."""
    assert clamps(hl.lower(exported, target="iree").text) == 0
    assert clamps(hl.lower(exported, target="iree", loop_ranges=False).text) > 0


def test_what_induction_shows_is_derived(exported):
    """The judge derives that these gathers stay inside; without the clip within the loop it does not."""
    assert hl.verify(exported, hl.lower(exported, target="iree"), level="regions").ok


@pytest.fixture(scope="module")
def unsure():
    """A verdict that is neither good nor a difference: gathers in a loop, where nothing shows that they stay inside."""

    def unclipped(table, following, at, steps):
        start = (jnp.int32(0), at, jnp.zeros((3, 4)))
        turn = lambda c: (c[0] + 1, following.at[c[1]].get(mode="clip"), c[2] + table.at[c[1]].get(mode="clip"))  # noqa: E731
        return jax.lax.while_loop(lambda c: c[0] < steps, turn, start)[2]

    module = hl.export(unclipped, *ARGUMENTS)
    verdict = hl.verify(module, hl.lower(module).text, level="regions", target="iree")
    assert not verdict.ok
    assert not verdict.differs
    return verdict


def test_what_is_not_verified_is_done_without_where_it_is_verified(exported, unsure):
    """Where the judge does not follow the induction, the module that is verified has the clamps."""
    judge = lambda lowered: unsure if lowered.options.loop_ranges else verified(exported, lowered)  # noqa: E731
    found = convert_source(exported, "walk", hl.Options(target="iree"), "text", judge)
    assert not found.lowered.options.loop_ranges
    assert "guards and clamps stay" in found.lowered.notes[-1]
    assert found.report.exit_code == 0
    assert clamps(found.data.decode()) > 0


def verified(exported, lowered):
    """The verdict on the regions."""
    return hl.verify(exported, lowered, level="regions")


def test_what_is_not_verified_either_way_is_refused(exported, unsure, monkeypatch):
    """A verdict that no other version betters is told as it is."""
    monkeypatch.setattr("hlo_lower.api.verified.verify", lambda *_, **__: unsure)
    with pytest.raises(DifferenceError, match="only run"):
        hl.lower(exported, target="iree", verify="regions")


@pytest.mark.sweep
def test_a_version_that_differs_is_told_though_a_careful_one_would_not(exported):
    """What computes something else is a defect of ours, and is not hidden behind another version."""
    right = hl.lower(exported, target="iree")
    lines = right.text.splitlines()
    wrong_text = "\n".join(x.replace(".add", ".subtract") if "tensor<3x4xf32> loc" in x else x for x in lines)
    wrong = hl.verify(exported, wrong_text, level="regions", target="stablehlo")
    assert wrong.differs
    assert more_careful(exported, right, wrong, lambda _: pytest.fail("asked")) == (right, wrong)


def test_counters_are_counted_without_it():
    """How often a loop runs at most bounds its counter in any case: its scatter needs no guard."""

    def fill(x):
        return jax.lax.fori_loop(0, 8, lambda i, x: x.at[i].set(jnp.float32(1)), x)

    [record] = hl.lower(hl.export(fill, jnp.zeros(8)), loop_ranges=False).records
    assert record.rule == "dynamic_update_slice"
