"""The public functions: what comes of a decoder step, which scatters are lowered, and what stays as it is."""

import gc
import re
import weakref
from pathlib import Path

import jax
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.base.registry import RuleList
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.kinds import new_registry
from hlo_lower.verify.run import Executable


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
    """A lowered Exported, also by its graph, has the same pytrees; a bare module takes and gives a flat list."""
    lowered = hl.lower(exported).exported
    assert (exported.in_tree, exported.out_tree) == (lowered.in_tree, lowered.out_tree)
    for pos in (3, -1, 8):
        expected, found = exported.call(STATE, np.int32(pos), ROW), lowered.call(STATE, np.int32(pos), ROW)
        np.testing.assert_array_equal(found["cache"], expected["cache"])
        assert found["pos"] == pos + 1
    assert "stablehlo.scatter" not in lowered.mlir_module()
    assert hl.lower(hl.read(exported)).exported.in_tree == exported.in_tree
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
    """Each rule has a form and a place, the one for anything too; only the scatters of consumers are refused here."""
    rows = hl.rules()
    assert all(row.form and row.place for row in rows)
    assert next(row for row in rows if row.name == "while").classes == "anything"
    assert {row.name for row in rows if row.refused} == {"safe_scatter", "safe_scatter_of_run"}


POINT = module("%o: 8xf32, %i: 1xi32, %u: f32", "%r = scatter(%o, %i, %u) <inserted=[0], to=[0]> {assign}")


def two(k_cache, v_cache, pos, row):
    """Two cache writes, one in each line."""
    k_cache = k_cache.at[:, pos].set(row)
    v_cache = v_cache.at[:, pos].set(row)
    return k_cache, v_cache


@pytest.fixture(scope="module")
def decode():
    """Two cache writes as text with locations."""
    cache, row = np.zeros((2, 16, 4), np.float32), np.zeros((2, 4), np.float32)
    return jax.jit(two, donate_argnums=(0, 1)).lower(cache, cache, np.int32(0), row).as_text(debug_info=True)


LINE = two.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, [True, True]),
        ({"only": [f"test_api.py:{LINE}"]}, [True, False]),
        ({"skip": [f"test_api.py:{LINE}"]}, [False, True]),
        ({"only": ["#2"]}, [False, True]),
        ({"only": ["test_api.py:*"], "skip": ["#1"]}, [False, True]),
        ({"skip": ["main"]}, [False, False]),
        ({"only": ["kind=insert_slice"], "skip": ["combiner=add"]}, [True, True]),
        ({"only": ["kind=reduction_add"]}, [False, False]),
        ({"skip": ["subset=T*"]}, [False, False]),
    ],
)
def test_only_and_skip(decode, options, left):
    """Patterns of places, numbers and functions say which scatters are lowered; the others stay and are counted."""
    lowered = hl.lower(decode, **options)
    assert [bool(record.rule) for record in lowered.records] == left
    assert lowered.scatters_left == left.count(False) == lowered.text.count('"stablehlo.scatter"(')


def test_a_pattern_that_matches_nothing_is_an_error(decode):
    """A mistyped place is told, with the places that there are; so is a class that does not exist."""
    with pytest.raises(hl.InputError, match="there is no class 'kind=insert'") as error:
        hl.lower(decode, only=["kind=insert"])
    assert "kind is insert_slice, reduction_add, general; subset is " in error.value.facts
    with pytest.raises(hl.InputError, match=r"no scatter matches 'llama\.py:1'") as error:
        hl.lower(decode, only=["llama.py:1"])
    assert f"test_api.py:{LINE}" in error.value.facts


def test_a_rule_that_is_preferred_in_vain_is_told(decode):
    """With the scatters for which it is not right, and the facts that it needs; one that was taken needs no word."""
    [note] = hl.lower(decode, prefer=["updated_slice"]).notes
    assert note.startswith("prefer updated_slice: not for #1, #2: combiner=assign, needs add|")
    assert note.endswith("; in_bounds=unknown, needs always")
    assert hl.lower(decode, prefer=["updated_slice", "while"]).notes == ()


def test_lowering_is_deterministic_and_done_once(decode):
    """The same text and bytecode come out, a graph that is given is left as it is, and what is lowered stays so."""
    graph = hl.read(decode)
    before = to_text(graph)
    first, second = hl.lower(decode), hl.lower(graph)
    assert (first.text, first.bytecode()) == (second.text, second.bytecode())
    assert to_text(graph) == before
    assert hl.lower(first.text).text == first.text


def test_a_module_goes_with_the_last_who_holds_it():
    """Nothing of a conversion waits for a collection: the module is gone once what was made of it is."""
    gc.disable()
    try:
        lowered = hl.lower(POINT)
        held = weakref.ref(lowered.graph)
        del lowered
        assert held() is None
    finally:
        gc.enable()


DECODE = f"{Path(__file__).parent.parent}/models/llama.py:decode"


def test_every_cache_update_is_one_slice_update_and_gives_what_xla_gives():
    """Of a step of two tiny layers each update is one slice update without a loop, its guard smaller than the cache.

    It is what native scatter gives, bit for bit: inside, at the end, one past it, negative, far out.
    """
    exported = load_function(DECODE, {"layers": "2"}).export()
    lowered = hl.lower(exported)
    assert [r.kind for r in lowered.records] == ["insert_slice"] * 4
    ops = re.findall(r"stablehlo\.(scatter|dynamic_update_slice|while)\b", lowered.text)
    assert ops == ["dynamic_update_slice"] * 4
    selects = re.findall(r"stablehlo\.select .*tensor<([0-9x]+)xf32>", lowered.text)
    assert ("2x2x1x16" in selects, "2x2x64x16" in selects) == (True, False)
    executables = [Executable(text, "exact") for text in (exported.mlir_module_serialized, lowered.bytecode())]
    rng = np.random.default_rng(0)
    for position in (0, 5, 63, 64, -1, -64, -65, 2**31 - 1, -(2**31)):
        arguments = [
            np.full(aval.shape, 7 if aval.shape else position, np.int32)
            if aval.dtype == np.int32
            else np.asarray(rng.standard_normal(aval.shape), np.float32)
            for aval in executables[0].arguments
        ]
        expected, actual = ([result.tobytes() for result in one.run(arguments)] for one in executables)
        assert expected == actual, position
