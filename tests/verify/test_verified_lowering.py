"""`hl.lower(verify=...)` and `hl.jit(verify=...)`: what is right is returned, and what is wrong raises."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
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


@pytest.mark.parametrize("level", ["regions", "auto", "full"])
def test_what_is_right_is_returned(level):
    """The module that is returned is the one that is returned without verification."""
    assert hl.lower(ROW, verify=level).text == hl.lower(ROW).text


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


def test_a_function_that_is_lowered_rightly_is_called():
    """Under hl.jit each signature is verified once, and the result is that of jax.jit."""
    fast = hl.jit(write, verify="regions")
    for position in (0, 7, 8, -9):
        given = CACHE, np.int32(position), LINE
        np.testing.assert_array_equal(fast(*given), jax.jit(write)(*given))


def test_a_function_that_is_lowered_wrongly_raises_where_it_is_traced():
    """A wrong rule under hl.jit raises with the name of the function, before anything is computed."""
    source = jax.export.export(jax.jit(write))(jnp.asarray(CACHE), jnp.int32(0), jnp.asarray(LINE))
    fast = hl.jit(write, registry=wrong_registry(source), verify="regions")
    with pytest.raises(hl.DifferenceError, match=r"^write: the lowered module computes something else"):
        fast(CACHE, np.int32(0), LINE)
    unverified = hl.jit(write, registry=wrong_registry(source))
    assert unverified(CACHE, np.int32(8), LINE)[7, 3] == 3
