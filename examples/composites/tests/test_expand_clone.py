"""Each variant is lowered by the rule for it, and is equal; a variant without one, and a wrong rule, show."""

import re
from pathlib import Path

import jax
import pytest
from expand_clone import EXPAND_CLONE, Mode, copied, expand_clone_to_concatenate, rules
from jax import lax

import hlo_lower as hl
from hlo_lower.lowering.kinds import installed_registry, registry_with

FOLDER = Path(__file__).parents[1]
ROWS, TILES = (str(FOLDER / f"{name}.toml") for name in ("npu_rows", "npu_tiles"))
RULES = {
    (ROWS, Mode.STACK, 3): "expand_clone_to_concatenate",
    (ROWS, Mode.TILE, 3): "expand_clone_to_concatenate",
    (ROWS, Mode.INTERLEAVE, 3): "expand_clone_to_wide_rows",
    (ROWS, Mode.MIRROR, 3): "expand_clone_to_mirrored",
    (TILES, Mode.STACK, 3): "expand_clone_to_broadcast",
    (TILES, Mode.INTERLEAVE, 3): "expand_clone_to_broadcast",
    (TILES, Mode.INTERLEAVE, 1): "expand_clone_to_reshape",
}


def module(mode, copies=3):
    """A module that holds one variant."""
    named = lax.composite(copied, EXPAND_CLONE)
    matrix = jax.ShapeDtypeStruct((4, 5), "float32")
    return hl.export(lambda x: named(x, mode=mode.value, copies=copies), matrix)


@pytest.mark.parametrize(("target", "mode", "copies"), RULES)
def test_each_variant_is_lowered_by_its_rule(target, mode, copies):
    """The rule that a look-up gives without a module is taken; no bit changes, and the target refuses nothing."""
    rule = RULES[target, mode, copies]
    found = installed_registry().lookup(EXPAND_CLONE, mode=mode, copies=copies, target=Path(target).stem)
    assert found.name == rule
    lowered = hl.lower(module(mode, copies), target=target, verify="regions")
    assert f"({rule})" in lowered.notes[0]
    assert lowered.refused == ()


def test_a_variant_without_a_rule_is_an_error():
    """It says what was asked for, the nearest rules and all that there are; other targets see nothing of that."""
    with pytest.raises(hl.NotLoweredError, match=r"no lowering for target npu_tiles") as error:
        hl.lower(module(Mode.MIRROR), target=TILES)
    told = str(error.value)
    assert "mode=mirror, copies=3, dtype=f32, layout=default, target=npu_tiles" in told
    assert all(rule in told.split("registered: ")[1] for rule in RULES.values())
    assert re.search(r"nearest: expand_clone_to_mirrored .*: target=npu_tiles, needs npu_rows", told)
    assert EXPAND_CLONE in hl.lower(module(Mode.MIRROR)).text


def test_a_wrong_rule_for_one_variant_is_found():
    """Where the first copy is upside down in place of the second, verification tells; another variant stays right."""

    def expand_clone_to_mirrored(op):
        x = op.node.operand(0)
        copies = [x if k % 2 else op.build.reverse(x, [0]) for k in range(op.facts["copies"])]
        return [op.build.concatenate(copies, 0)]

    registry = registry_with(())
    registry.take_declared(rules)
    registry.register(EXPAND_CLONE, expand_clone_to_mirrored, mode=Mode.MIRROR)
    registry.register(EXPAND_CLONE, expand_clone_to_concatenate, mode=Mode.TILE)
    assert hl.lower(module(Mode.TILE), target=ROWS, registry=registry, verify="regions").refused == ()
    with pytest.raises(hl.DifferenceError, match="computes something else"):
        hl.lower(module(Mode.MIRROR), target=ROWS, registry=registry, verify="regions")
