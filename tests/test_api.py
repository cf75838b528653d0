"""The public functions."""

import jax
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.base.registry import RuleList
from hlo_lower.lowering.kinds import default_registry, new_registry


def step(state, pos, row):
    """A cache write on a pytree."""
    return {"cache": state["cache"].at[pos].set(row), "pos": pos + 1}


STATE = {"cache": np.zeros((8, 4), np.float32)}
ROW = np.ones(4, np.float32)


@pytest.fixture(scope="module")
def exported():
    """The exported step."""
    return jax.export.export(jax.jit(step))(STATE, np.int32(0), ROW)


def test_lowered_exported_keeps_the_pytree(exported):
    """An Exported that is lowered, also by its graph, is called with the same pytrees and gives the same pytree."""
    lowered = hl.lower(exported).exported
    assert (exported.in_tree, exported.out_tree) == (lowered.in_tree, lowered.out_tree)
    for pos in (3, -1, 8):
        expected, found = exported.call(STATE, np.int32(pos), ROW), lowered.call(STATE, np.int32(pos), ROW)
        np.testing.assert_array_equal(found["cache"], expected["cache"])
        assert found["pos"] == pos + 1
    assert "stablehlo.scatter" not in lowered.mlir_module()
    assert hl.lower(hl.read(exported)).exported.in_tree == exported.in_tree


def test_lowered_exported_of_text_is_flat(exported):
    """A bare module is called with flat arguments and gives a flat list."""
    found = hl.lower(exported.mlir_module()).exported.call(STATE["cache"], np.int32(3), ROW)
    assert [r.shape for r in found] == [(8, 4), ()]
    assert found[0][3].tolist() == ROW.tolist()


def test_verify_uses_the_registry_of_what_was_lowered():
    """A wrong rule of a registry of one's own is found by what it wrote, and is named."""
    wrong = RuleList()

    @wrong.lowers("stablehlo.scatter", form="nothing, wrongly")
    def scatter_to_nothing(op):
        return op.scatter.promoted_operands(op.build)

    registry = new_registry()
    registry.extend(wrong)
    source = jax.jit(lambda x, i, u: x.at[i].set(u)).lower(STATE["cache"], np.int32(0), ROW)
    verdict = hl.verify(source, hl.lower(source, registry=registry), level="regions")
    assert [(region.status, region.rules) for region in verdict.regions] == [("differs", ("nothing",))]
    assert hl.verify(source, hl.lower(source), level="regions").ok


def test_rules_have_rows():
    """Each rule has a name, classes, a form, a place and what it builds; the most specific ones come first."""
    rows = hl.rules()
    named = [row.name for row in rows]
    static = named[: named.index("while") + 1]
    assert rows[len(static) - 1].classes == "anything"
    registry = default_registry()
    others = [rule.short_name for op in registry.ops if op != "stablehlo.scatter" for rule in registry.rules(op)]
    assert sorted(others) == sorted(named[len(static) :])
    assert all(row.form and row.place for row in rows)
    own = {row.name for row in rows if row.refused}
    assert own == {"safe_scatter", "safe_scatter_of_run"}  # a scatter, for consumers whose own one is right
    assert [row.name for row in rows if not row.builds] == [
        *("elementwise", "updates", "operand", "dynamic_shape_operand"),
        *("gather_to_itself", "dynamic_shape_gather_to_itself", "composite_to_itself", "chlo_to_itself"),
        *("sort_to_operands", "branches_to_taken", "note_to_operand", "barrier_to_operands"),
        "set_dimension_size_to_operand",
    ]
