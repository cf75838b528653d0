"""The pipeline: which scatters are lowered, what stays, that the same input gives the same output."""

import gc
import weakref

import jax
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.writer import to_text

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
        ({"only": [f"test_pipeline.py:{LINE}"]}, [True, False]),
        ({"skip": [f"test_pipeline.py:{LINE}"]}, [False, True]),
        ({"only": ["#2"]}, [False, True]),
        ({"only": ["test_pipeline.py:*"], "skip": ["#1"]}, [False, True]),
        ({"skip": ["main"]}, [False, False]),
    ],
)
def test_only_and_skip(decode, options, left):
    """Patterns of places, numbers and functions say which scatters are lowered; the others stay and are counted."""
    lowered = hl.lower(decode, **options)
    assert [bool(record.rule) for record in lowered.records] == left
    assert lowered.scatters_left == left.count(False) == lowered.text.count('"stablehlo.scatter"(')


def test_a_pattern_that_matches_nothing_is_an_error(decode):
    """A mistyped place is told, with the places that there are."""
    with pytest.raises(hl.InputError, match=r"no scatter matches 'llama\.py:1'") as error:
        hl.lower(decode, only=["llama.py:1"])
    assert f"test_pipeline.py:{LINE}" in error.value.facts


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
