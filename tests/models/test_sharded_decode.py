"""models/sharded_decode.py: what its exports say of places, without a device, and what their scatters become."""

import re
from pathlib import Path

import jax
import pytest

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function

MODEL = f"{Path(__file__).parents[2]}/models/sharded_decode.py"
QUICK = {"hidden": "16", "head_dim": "4", "ffn": "16", "vocab": "32", "max_length": "12", "prompt": "4"}
FORMS = ("decode", "decode_rows", "prefill")


def exported(function, **settings):
    """An export of a small decoder."""
    return load_function(f"{MODEL}:{function}", {**QUICK, **{k: str(v) for k, v in settings.items()}}).export()


@pytest.mark.parametrize("function", FORMS)
@pytest.mark.parametrize(
    ("spread", "axes"), [("heads", '[{}, {"model"}, {}, {}]'), ("batch", '[{"model"}, {}, {}, {}]')]
)
def test_an_export_is_for_devices_that_need_not_be_there(function, spread, axes):
    """It is for eight devices whatever this machine has, and holds its caches in their places four times a layer."""
    export = exported(function, spread=spread)
    text = export.mlir_module()
    assert export.nr_devices == 8
    assert "mhlo.num_partitions = 8" in text
    assert 'sdy.mesh @mesh = <["model"=8]>' in text
    assert text.count(f"sdy.sharding = #sdy.sharding<@mesh, {axes}>") == 2
    assert len(re.findall(rf"sdy\.sharding_constraint %\S+ <@mesh, {re.escape(axes)}>", text)) == 4
    assert text.count('"stablehlo.scatter"(') == 2


def test_any_number_of_devices():
    """Devices are only a number, so there can be more of them than any test has."""
    assert exported("decode", devices=32, kv_heads=32, heads=32, ffn=64).nr_devices == 32


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"devices": 0}, "devices=0 must be at least 1"),
        ({"spread": "length"}, "spread=length must be one of heads, batch"),
        ({"kv_heads": 4}, "kv_heads=4 must be a multiple of devices=8"),
        ({"ffn": 12}, "ffn=12 must be a multiple of devices=8"),
        ({"spread": "batch", "batch": 12}, "batch=12 must be a multiple of devices=8"),
    ],
)
def test_a_size_that_does_not_spread_is_refused(settings, says):
    """A config says which of its fields does not fit the devices."""
    with pytest.raises(Exception, match=re.escape(says)):
        exported("decode", **settings)


UNSHARDED = {
    "decode": "llama.py:decode",
    "decode_rows": "ragged_decode.py:decode_vmap_set",
    "prefill": "llama.py:prefill",
}


def unsharded(function):
    """An export of the decoder that a sharded one is made of, of the same sizes."""
    sizes = {**QUICK, "layers": "1", "heads": "8", "kv_heads": "8", "batch": "8"}
    return load_function(f"{Path(MODEL).parent}/{UNSHARDED[function]}", sizes).export()


@pytest.mark.parametrize("function", FORMS)
def test_it_computes_what_the_unsharded_decoder_exports(function):
    """But for places, names and what holds them, the module is the export of the decoder that it is made of."""
    single = unsharded(function).mlir_module()

    def operations(text):
        return [
            op
            for op in re.findall(r"(?:stablehlo|sdy|chlo)\.[\w.]+", text)
            if not op.startswith("sdy") and "mesh" not in op
        ]

    assert operations(exported(function).mlir_module()) == operations(single)


@pytest.mark.parametrize(
    ("function", "rules"),
    [
        ("decode", {"guarded_dynamic_update_slice"}),
        # whichever costs less at these sizes
        pytest.param("decode_rows", {"unrolled", "select_per_batch"}, marks=pytest.mark.sweep),
        pytest.param("prefill", {"wrapped_rows"}, marks=pytest.mark.sweep),
    ],
)
def test_its_scatters_are_lowered(function, rules, lowered_and_verified):
    """Two cache writes a layer, each in the form that it has without shardings where the heads are spread."""
    records = lowered_and_verified(f"sharded_decode.py:{function}", **QUICK)
    [rule] = {r.rule for r in records}
    assert rule in rules
    assert [r.rule for r in records] == [r.rule for r in hl.classify(hl.read(unsharded(function)))]


def test_specs_are_placed():
    """Over the heads, weights are split; over the batch, they are whole and the tokens are split."""
    module = load_function(f"{MODEL}:decode").module
    heads, batch = (module.Config(layers=1, heads=8, kv_heads=8, batch=8, spread=s) for s in ("heads", "batch"))

    def split(config):
        params, caches, tokens, _ = module.decode_args(config)
        leaves = jax.tree.leaves(params["layers"])
        return sum(any(leaf.sharding.spec) for leaf in leaves), tokens.sharding.spec, caches[0]["k"].sharding.spec

    assert split(heads) == (7, jax.P(), jax.P(None, "model"))
    assert split(batch) == (0, jax.P("model"), jax.P("model"))
