"""The decoders of models: llama's numbers and masks, and that other ways to write its cache are the same decoder."""

import dataclasses
import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_runs import QUICKLY, assert_close, jitted, model, target_of, text_of

llama, ragged, index_copy, scan, sharded = (
    model(f"{name}.py") for name in ("llama", "ragged_decode", "index_copy", "scan_layers", "sharded_decode")
)
TINY = llama.Config(
    layers=2, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=16, vocab=32, max_length=10, batch=3, prompt=4
)
TOKENS = np.random.default_rng(0).integers(0, TINY.vocab, (TINY.batch, 8))


@cache
def params():
    """Weights, made once."""
    return jax.jit(llama.init_params, static_argnums=0, compiler_options=QUICKLY)(TINY, jax.random.key(0))


def prefill(caches, tokens, start):
    """Logits and caches after a piece of a prompt."""
    return jitted(llama.prefill, TINY)(params(), caches, jnp.asarray(tokens), jnp.int32(start))


def decode(caches, token, position):
    """Logits and caches after one more token."""
    return jitted(llama.decode, TINY)(params(), caches, jnp.asarray(token), jnp.int32(position))


@cache
def first_piece(start):
    """Logits and caches after the first half of a prompt."""
    return prefill(llama.init_cache(TINY), TOKENS[:, :4], start)


def test_pieces_of_a_prompt_and_steps_are_one_prompt():
    """Four tokens and four steps, or two pieces of four, predict what eight tokens do; later tokens are not seen."""
    whole, whole_caches = prefill(llama.init_cache(TINY), TOKENS, 0)
    logits, first = first_piece(0)
    steps, caches = [logits], first
    for position in range(4, 8):
        logits, caches = decode(caches, TOKENS[:, position], position)
        steps.append(logits[:, None])
    assert_close((jnp.concatenate(steps, axis=1), caches), (whole, whole_caches))
    assert_close(prefill(first, TOKENS[:, 4:], 4)[0], whole[:, 4:])
    other = TOKENS.copy()
    other[:, -1] = (other[:, -1] + 1) % TINY.vocab
    after, _ = prefill(llama.init_cache(TINY), other, 0)
    np.testing.assert_array_equal(whole[:, :-1], after[:, :-1])
    assert not np.allclose(whole[:, -1], after[:, -1])


def test_a_decode_step_sees_only_the_written_part_of_the_cache():
    """What stands in the cache behind the position has no influence, and what stands before it has."""
    _, caches = first_piece(0)
    later = jax.tree.map(lambda c: c.at[:, :, 5:].set(1e3), caches)
    earlier = jax.tree.map(lambda c: c.at[:, :, 3].add(1.0), caches)
    step = [decode(c, TOKENS[:, 4], 4)[0] for c in (caches, later, earlier)]
    np.testing.assert_array_equal(step[0], step[1])
    assert not np.allclose(step[0], step[2])


def test_heads():
    """A tied head is the transposed embedding; grouped heads share a key head; rotary scores depend on distances."""
    tied, x = dataclasses.replace(TINY, tied_head=True), params()["embedding"][:3]
    expected = llama.logits_of({**params(), "head": params()["embedding"].T}, x, TINY)
    assert_close(llama.logits_of(params(), x, tied), expected, 1e-5, 1e-5)
    assert "head" not in llama.param_specs(tied)
    generator = np.random.default_rng(0)
    q, k, v = (generator.normal(size=(2, *s, 8)).astype(np.float32) for s in ((4, 3), (2, 6), (2, 6)))
    attend = jax.jit(llama.attend, compiler_options=QUICKLY)
    shared, alone = (attend(q, *(np.repeat(x, n, axis=1) for x in (k, v)), jnp.array([1, 2, 3])) for n in (1, 2))
    assert_close(shared, alone, 1e-5, 1e-6)
    q, k = q[:1, :1, :1, : TINY.head_dim], k[:1, :1, :1, : TINY.head_dim]
    far, same, near = (
        jnp.vdot(*(llama.rotate(x, *llama.rotary(jnp.array([n]), TINY)) for x, n in ((q, query), (k, key))))
        for query, key in ((3, 1), (9, 7), (9, 6))
    )
    np.testing.assert_allclose(far, same, rtol=1e-4)
    assert not np.allclose(far, near)


@pytest.mark.parametrize("function", ["decode", "prefill"])
def test_an_export_holds_two_scatters_per_layer(function):
    """Each layer writes its keys and its values; each names its layer; the caches are given away, nothing else."""
    text = text_of(f"llama.py:{function}", layers=3)
    assert text.count('"stablehlo.scatter"(') == text.count("tf.aliasing_output") == 2 * 3
    assert all(f"jit({function})/layer_{i}" in text for i in range(3))
    assert "select" in text.split('"stablehlo.scatter"(')[0]  # the negative-index normalisation


def stacked(layers):
    """Layers as one tree of arrays."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)


@cache
def two_steps():
    """What llama makes of four tokens from position 1 on and one more: logits, and the caches."""
    logits, caches = first_piece(1)
    return logits, *decode(caches, TOKENS[:, 4], 5)


@pytest.mark.parametrize("form", ["slices", pytest.param("carry", marks=pytest.mark.sweep)])
def test_a_scan_over_layers_is_the_unrolled_decoder(form):
    """Prefill and decode predict and write what llama's do, with weights and caches stacked."""
    weights, caches = {**params(), "layers": stacked(params()["layers"])}, stacked(llama.init_cache(TINY))
    prefill, decode = (jitted(getattr(scan, f"{step}_{form}"), TINY) for step in ("prefill", "decode"))
    logits, caches = prefill(weights, caches, TOKENS[:, :4], jnp.int32(1))
    logits_next, caches = decode(weights, caches, TOKENS[:, 4], jnp.int32(5))
    expected, expected_next, expected_caches = two_steps()
    assert_close((logits, logits_next), (expected, expected_next))
    assert_close(caches, stacked(expected_caches), atol=1e-5)
    as_made = jax.eval_shape(stacked, llama.param_specs(TINY)["layers"])
    told = jax.tree.map(lambda s: (s.shape, s.dtype), [scan.param_specs(TINY)["layers"], as_made])
    assert told[0] == told[1]
    assert scan.cache_specs(TINY)["k"].shape == caches["k"].shape


def test_index_copy_is_the_same_decoder():
    """With positions of 64 bits; a negative one is not counted from the end but dropped, as one too far."""
    generator = np.random.default_rng(0)
    cache, rows = (generator.normal(size=(2, 2, n, 3)).astype(np.float32) for n in (7, 5))
    with jax.enable_x64(True):
        caches = llama.init_cache(TINY)
        logits, caches = jitted(index_copy.prefill, TINY)(params(), caches, TOKENS[:, :4], np.arange(1, 5))
        logits_next, caches = jitted(index_copy.decode, TINY)(params(), caches, TOKENS[:, 4:5], np.array([5]))
        copied = index_copy.index_copy(jnp.asarray(cache), jnp.array([4, -1, 0, 7, 2**32]), rows)
    expected, expected_next, expected_caches = two_steps()
    assert_close((logits, logits_next), (expected, expected_next))
    assert_close(caches, expected_caches, atol=1e-5)
    cache[:, :, 4], cache[:, :, 0] = rows[:, :, 0], rows[:, :, 2]
    np.testing.assert_array_equal(cache, copied)


@pytest.mark.parametrize(("function", "count"), [("decode", 1), ("prefill", 4)])
def test_the_argument_itself_indexes_the_cache(function, count):
    """A scatter's indices are the int64 argument in another shape; no float gets wide, JAX stays as it was."""
    text = text_of(f"index_copy.py:{function}", layers=1, prompt=4)
    [argument] = re.findall(rf"(%arg\d+): tensor<{count}xi64> loc\(\"cache_position\"", text)
    indices = re.findall(r'"stablehlo.scatter"\(%\w+, (%\w+), ', text)
    assert len(indices) == 2
    for value in indices:
        reshaped = rf"{value} = stablehlo.(broadcast_in_dim|reshape) {argument}[, ].*-> tensor<{count}x1xi64>"
        assert re.search(reshaped, text)
    assert "f64" not in re.sub(r" loc\(.*", "", text)
    assert jnp.arange(1).dtype == jnp.int32


FORMS = ("decode_vmap_slice", "decode_vmap_set", "decode_rows")


@cache
def ragged_steps():
    """Caches full of numbers, a token and a position of each sequence, and llama's steps for each sequence alone."""
    generator = np.random.default_rng(1)
    caches = jax.tree.map(lambda s: jnp.asarray(generator.normal(size=s.shape), s.dtype), llama.cache_specs(TINY))
    tokens, positions = jnp.array([5, 9, 31]), jnp.array([0, 3, 6])
    step = jitted(llama.decode, dataclasses.replace(TINY, batch=1))
    alone = [jax.tree.map(lambda cache, i=i: cache[i : i + 1], caches) for i in range(3)]
    return caches, tokens, positions, [step(params(), alone[i], tokens[i : i + 1], positions[i]) for i in range(3)]


@pytest.mark.parametrize("form", FORMS)
def test_a_ragged_step_is_a_step_of_each_sequence_alone(form):
    """Each sequence is stepped at its own position; what stands behind that has no influence on it."""
    caches, tokens, positions, alone = ragged_steps()
    step = jitted(getattr(ragged, form), TINY)
    logits, written = step(params(), caches, tokens, positions)
    for i, (expected, expected_caches) in enumerate(alone):
        assert_close(logits[i], expected[0])
        assert_close(jax.tree.map(lambda cache, i=i: cache[i], written), jax.tree.map(lambda c: c[0], expected_caches))
    later, _ = step(params(), jax.tree.map(lambda c: c.at[1, :, 4:].set(1e3), caches), tokens, positions)
    np.testing.assert_array_equal(logits, later)


@pytest.mark.parametrize(
    ("write", "landing"),
    [("write_vmap_slice", [2, 6, 6, 0, 6]), *((f"write_{how}", [2, 6, None, None, 6]) for how in ("vmap_set", "rows"))],
)
def test_where_a_row_lands(write, landing):
    """A negative position counts from the end; one still outside goes to the nearest row or is dropped, by form."""
    generator = np.random.default_rng(0)
    cache, rows = (generator.normal(size=shape).astype(np.float32) for shape in ((5, 2, 7, 3), (5, 2, 3)))
    expected = cache.copy()
    for i, row in enumerate(landing):
        if row is not None:
            expected[i, :, row] = rows[i]
    actual = getattr(ragged, write)(jnp.asarray(cache), rows, jnp.array([2, 6, 7, -8, -1]))
    np.testing.assert_array_equal(expected, actual)
    exported = text_of(f"ragged_decode.py:{write.replace('write', 'decode')}", layers=1)
    assert ("input_batching_dims" in exported) == ("vmap" in write)  # in the others an index column has their place


VMAP_SET = "ragged_decode.py:decode_vmap_set"
UNSHARDED = {"decode": "llama.py:decode", "decode_rows": VMAP_SET, "prefill": "llama.py:prefill"}


@pytest.mark.parametrize("function", UNSHARDED)
def test_an_export_is_for_devices_that_need_not_be_there(function):
    """It is for eight devices, places its caches four times a layer, and is else the plain decoder."""
    texts = []
    for spread, axes in (("heads", '[{}, {"model"}, {}, {}]'), ("batch", '[{"model"}, {}, {}, {}]')):
        export = target_of(f"sharded_decode.py:{function}", spread=spread).export()
        texts.append(text := export.mlir_module())
        assert export.nr_devices == 8
        assert "mhlo.num_partitions = 8" in text
        assert 'sdy.mesh @mesh = <["model"=8]>' in text
        assert text.count(f"sdy.sharding = #sdy.sharding<@mesh, {axes}>") == 2
        assert len(re.findall(rf"sdy\.sharding_constraint %\S+ <@mesh, {re.escape(axes)}>", text)) == 4
        assert text.count('"stablehlo.scatter"(') == 2
    texts.append(target_of(UNSHARDED[function], layers=1, heads=8, kv_heads=8, batch=8).export().mlir_module())
    ops = [[op for op in re.findall(r"(?:stablehlo|chlo)\.[\w.]+", text) if "mesh" not in op] for text in texts]
    assert ops[0] == ops[2]


def test_devices_are_only_a_number_and_specs_are_placed():
    """Over the heads, weights are split; over the batch, they are whole and the tokens are split."""
    more = target_of("sharded_decode.py:decode", devices=32, kv_heads=32, heads=32, ffn=64).export()
    assert more.nr_devices == 32
    split = []
    for spread in ("heads", "batch"):
        config = sharded.Config(layers=1, heads=8, kv_heads=8, batch=8, spread=spread)
        params, caches, tokens, _ = sharded.decode_args(config)
        count = sum(any(leaf.sharding.spec) for leaf in jax.tree.leaves(params["layers"]))
        split.append((count, tokens.sharding.spec, caches[0]["k"].sharding.spec))
    assert split == [(7, jax.P(), jax.P(None, "model")), (0, jax.P("model"), jax.P("model"))]
