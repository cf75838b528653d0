"""Named ops at Core ML's converter: what it makes of the composites, and of modules without them."""

from collections import Counter
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.consumers import COREML
from hlo_lower.consumers.coreml_named import HANDLERS, register

pytestmark = [
    pytest.mark.coreml,
    pytest.mark.sweep,
    pytest.mark.skipif(not COREML.version(), reason="the extra coreml is not installed"),
]

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


CALLS = {
    "a norm with constant weights": ("coreml.layer_norm", 2, 'epsilon = 1.0e-3 : f32, weight = "plain"'),
    "a norm with a bias alone": ("coreml.layer_norm", 1, 'epsilon = 1.0e-3 : f32, weight = "none"'),
    "a norm without either": ("coreml.layer_norm", 0, 'epsilon = 1.0e-3 : f32, weight = "none"'),
    "gelu": ("coreml.gelu", 0, 'mode = "EXACT"'),
    "gelu by tanh": ("coreml.gelu", 0, 'mode = "TANH_APPROXIMATION"'),
}
EXPECTED = {
    "a norm with constant weights": lambda x: normalized(x) * WEIGHT + BIAS,
    "a norm with a bias alone": lambda x: normalized(x) + WEIGHT,
    "a norm without either": normalized,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu by tanh": jax.nn.gelu,
}


@pytest.mark.parametrize("name", CALLS)
def test_an_op_is_what_coremltools_computes_for_it(name):
    """On constants coremltools computes an op itself: its result is that of the composite."""
    mil = import_module("coremltools.converters.mil.mil")
    composite, count, told = CALLS[name]
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    with mlir.active(mlir.make_context()):
        told = f"{{{told}, normalized_shape = dense<8> : tensor<1xi64>}}"
        attributes = mlir.entries_of(mlir.parse_attribute(told))
        found = []

        @mil.Builder.program(input_specs=[mil.Builder.TensorSpec(shape=(1,))])
        def program(given):
            operands = [mil.Builder.const(val=value) for value in (x, WEIGHT, BIAS)[: count + 1]]
            found.append(HANDLERS[composite](mil.Builder, operands, attributes).val)
            return given

    np.testing.assert_allclose(found[0], EXPECTED[name](x), rtol=1e-5, atol=1e-6)
