"""The pipeline: which scatters are lowered, what stays, that the same input gives the same output."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.writer import to_text

SCATTER = """"stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) ATTRS : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>"""


def module(attributes="", argument=""):
    """A public function with one point write."""
    return f"""func.func public @main(%o: tensor<8xf32>{argument}, %i: tensor<1xi32>, %u: tensor<f32>)
    -> tensor<8xf32> {{
  %r = {SCATTER.replace("ATTRS", attributes)}
  return %r : tensor<8xf32>
}}
"""


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
        ({"only": ["test_pipeline.py:*"]}, [True, True]),
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


def test_keep_unsupported():
    """A scatter without a rule stays and is counted where that is asked for, and fails the conversion elsewhere."""
    text = module().replace("f32", "!quant.uniform<i8:f32, 2.0>")
    with pytest.raises(hl.NotLoweredError):
        hl.lower(text)
    lowered = hl.lower(text, keep_unsupported=True)
    assert (lowered.scatters_left, lowered.records[0].rule) == (1, "")
    assert lowered.text == to_text(hl.read(text))


def test_the_same_input_gives_the_same_bytes(decode):
    """Lowering is deterministic: text and bytecode."""
    first, second = hl.lower(decode), hl.lower(decode)
    assert (first.text, first.bytecode()) == (second.text, second.bytecode())


def test_lowering_twice_changes_nothing(decode):
    """What is lowered has no scatter, so lowering it again gives it back."""
    once = hl.lower(decode).text
    assert hl.lower(once).text == once


def test_the_source_graph_is_left_as_it_is(decode):
    """A graph that is given is not rewritten."""
    graph = hl.read(decode)
    before = to_text(graph)
    assert hl.lower(graph).text == hl.lower(decode).text
    assert to_text(graph) == before


def test_a_decode_step_is_one_write_per_cache(decode):
    """Each cache is written by exactly one dynamic_update_slice, and there is no loop."""
    text = hl.lower(decode).text
    assert tuple(text.count(f"stablehlo.{op}") for op in ("dynamic_update_slice", "while", "scatter")) == (2, 0, 0)


@pytest.mark.parametrize("name", ["tf.aliasing_output", "jax.buffer_donor"])
def test_argument_attributes_survive(name):
    """Donation is kept (trap 31)."""
    value = "0 : i32" if name == "tf.aliasing_output" else "true"
    text = hl.lower(module(argument=f" {{{name} = {value}}}")).text
    assert f"{name} = {value}" in text


def test_a_sharding_moves_to_the_new_op():
    """The scatter's own discardable attributes stand on the op that gives its result (trap 30)."""
    text = hl.lower(module('{mhlo.sharding = "{replicated}"}')).text
    [line] = [line for line in text.splitlines() if "dynamic_update_slice" in line]
    assert 'mhlo.sharding = "{replicated}"' in line


def test_scatters_in_functions_and_loops_are_lowered():
    """A scatter in a private function, in a branch and in a loop's body is lowered like any other (trap 35)."""

    @jax.jit
    def inner(x, i):
        return x.at[i].set(1.0)

    def outer(x, i):
        x = jax.lax.cond(i[0] > 2, lambda x: x.at[i].add(2.0), lambda x: inner(x, i), x)
        return jax.lax.fori_loop(0, 3, lambda k, x: x.at[k].max(3.0), x)

    lowered = hl.lower(jax.jit(outer).lower(jnp.zeros(8), jnp.zeros(3, jnp.int32)))
    assert len(lowered.records) == 3
    assert "stablehlo.scatter" not in lowered.text


def test_a_module_goes_with_the_last_who_holds_it():
    """Nothing of a conversion waits for a collection: the module is gone once what was made of it is."""
    gc.disable()
    try:
        lowered = hl.lower(module())
        held = weakref.ref(lowered.graph)
        del lowered
        assert held() is None
    finally:
        gc.enable()
