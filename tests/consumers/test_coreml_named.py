"""Named ops at Core ML's converter: what it makes of the composites, and of modules without them."""

from collections import Counter
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.consumers import COREML
from hlo_lower.consumers.coreml_named import HANDLERS, register
from hlo_lower.ir import mlir

pytestmark = [
    pytest.mark.coreml,
    pytest.mark.sweep,
    pytest.mark.skipif(not COREML.version(), reason="the extra coreml is not installed"),
]

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "modules"

WEIGHT, BIAS = np.linspace(0.5, 1.5, 8, dtype=np.float32), np.linspace(-1, 1, 8, dtype=np.float32)


def normalized(x):
    """A layer norm without weights."""
    left = x - x.mean(-1, keepdims=True)
    return left / jnp.sqrt((left * left).mean(-1, keepdims=True) + 1e-3)


def function_of_all(x, weight, bias):
    """Layer norms with weights that are constants and that are none, a gelu written with a sigmoid, and a silu."""
    h = normalized(x) * WEIGHT + BIAS
    h = normalized(h) * weight + bias
    h = h * jax.nn.sigmoid(2 * np.float32(np.sqrt(2 / np.pi)) * (h + 0.044715 * h**3))
    return jax.nn.silu(h)


def converted(text):
    """How many there are of each op in the program that Core ML gets."""
    ct, hlo = import_module("coremltools"), import_module("stablehlo_coreml")
    how = {"minimum_deployment_target": ct.target.iOS18, "skip_model_load": True}
    context = mlir.make_context()
    with mlir.active(context):
        program = hlo.convert(mlir.parse_module(text, context), minimum_deployment_target=ct.target.iOS18)
        model = ct.convert(program, source="milinternal", pass_pipeline=hlo.build_pass_pipeline(), **how)
    return Counter(op.op_type for op in model._mil_program.functions["main"].operations)


def test_composites_are_named_ops_there():
    """Each composite is one op; of the same module as it is the converter finds none of them."""
    register()
    x = np.ones((2, 3, 8), np.float32)
    source = hl.export(function_of_all, x, WEIGHT, BIAS)
    raised = converted(hl.lower(hl.raise_named(source, target="coreml").text, target="coreml").text)
    plain = converted(hl.lower(source, target="coreml").text)
    assert [raised[op] for op in ("layer_norm", "gelu", "silu")] == [2, 1, 1]
    assert [plain[op] for op in ("layer_norm", "gelu", "silu")] == [0, 0, 0]
    assert raised.total() < plain.total()


NORM = "epsilon = 1.0e-3 : f32, weight = "
CALLS = {  # a composite, how many operands besides x, its attributes, and the function
    "a norm with constant weights": ("layer_norm", 2, f'{NORM}"plain"', lambda x: normalized(x) * WEIGHT + BIAS),
    "a norm with a bias alone": ("layer_norm", 1, f'{NORM}"none"', lambda x: normalized(x) + WEIGHT),
    "a norm without either": ("layer_norm", 0, f'{NORM}"none"', normalized),
    "gelu": ("gelu", 0, 'mode = "EXACT"', lambda x: jax.nn.gelu(x, approximate=False)),
    "gelu by tanh": ("gelu", 0, 'mode = "TANH_APPROXIMATION"', jax.nn.gelu),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_op_is_what_coremltools_computes_for_it(name):
    """On constants coremltools computes an op itself: its result is that of the composite."""
    composite, count, told, function = CALLS[name]
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    told = f"{told}, normalized_shape = dense<8> : tensor<1xi64>"
    found = computed_there(f"coreml.{composite}", (x, WEIGHT, BIAS)[: count + 1], told)
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1 / np.sqrt(8), 0.7])
def test_an_attention_is_what_coremltools_computes_for_it(scale):
    """Its scale is that of the composite, and a mask is added, where queries are two for each key's head."""
    query, mask = drawn_normal((2, 3, 10, 8), 0), np.where(drawn_normal((2, 1, 10, 5), 3) > 0.3, -np.inf, 0.0)
    mask[..., 0] = 0.0
    key, value = drawn_normal((2, 3, 5, 8), 1), drawn_normal((2, 3, 5, 4), 2)
    given = (query, key, value, mask.astype(np.float32))
    found = computed_there("coreml.scaled_dot_product_attention", given, f"scale = {scale:.9e} : f32")
    powers = jax.nn.softmax(np.einsum("bnqh,bnkh->bnqk", query, key) * scale + mask, axis=-1)
    np.testing.assert_allclose(found, np.einsum("bnqk,bnkv->bnqv", powers, value), rtol=1e-5, atol=1e-6)


def drawn_normal(shape, seed):
    """Numbers around 0."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def computed_there(composite, values, told):
    """What coremltools computes of constants for what the handler of a composite makes of them."""
    mil = import_module("coremltools.converters.mil.mil")
    with mlir.active(mlir.make_context()):
        attributes, found = mlir.entries_of(mlir.parse_attribute(f"{{{told}}}")), []

        @mil.Builder.program(
            input_specs=[mil.Builder.TensorSpec(shape=(1,))], opset_version=import_module("coremltools").target.iOS18
        )
        def program(given):
            operands = [mil.Builder.const(val=value) for value in values]
            found.append(HANDLERS[composite](mil.Builder, operands, attributes).val)
            return given

    return found[0]


def decode(q, k, v, position):
    """A decode step of grouped queries over a cache, as PyTorch exports it."""
    k, v = (jnp.broadcast_to(x[:, :, None], (1, 2, 2, 16, 8)).reshape(1, 4, 16, 8) for x in (k, v))
    scores = jnp.einsum("bnqh,bnkh->bnqk", q, k) * 0.35
    seen = jnp.arange(16) <= position
    return jnp.einsum("bnqk,bnkh->bnqh", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1), v)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_an_attention_is_one_op_there(dtype):
    """A step of decoding has one attention there, and its keys are not repeated."""
    register()
    q, k = np.ones((1, 4, 1, 8), dtype), np.ones((1, 2, 16, 8), dtype)
    source = hl.export(decode, q, k, k, np.int32(3))
    raised = converted(hl.lower(hl.raise_named(source, target="coreml").text, target="coreml").text)
    assert raised["scaled_dot_product_attention"] == 1
    assert [raised[op] for op in ("softmax", "matmul", "exp", "tile", "transpose")] == [0] * 5


@pytest.mark.parametrize("name", ["llama_decode", "llama_prefill", "gpt2_decode", "deepseek_v3_step_decode"])
def test_decoders_have_their_attentions_there(name):
    """Both layers' attentions are the op; of the module as it is the converter finds none."""
    file = CORPUS / "torchax" / f"{name}.mlir"
    if not file.is_file():
        pytest.skip("the corpus is not there")
    register()
    raised = hl.raise_named(str(file), target="coreml").text
    found = [
        converted(hl.lower(text, target="coreml", demote_i64=True).text)["scaled_dot_product_attention"]
        for text in (raised, file.read_text())
    ]
    assert found == [2, 0]
