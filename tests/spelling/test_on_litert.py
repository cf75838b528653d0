"""What is written for LiteRT, converted and run there: taken by its delegate, and right."""

import jax
import numpy as np
import pytest
from test_spelled import WRITTEN

import hlo_lower as hl
from hlo_lower.consumers import litert

pytestmark = pytest.mark.sweep
pytest.importorskip("litert_converter")


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_runs_right(name):
    """XNNPACK takes the composite, and the results are those of XLA within a few units of rounding."""
    tensorflow = pytest.importorskip("tensorflow")  # not while tests are collected: it takes four seconds
    function, shapes = WRITTEN[name]
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape, np.float32) for shape in shapes]
    if name.startswith("rows"):
        arguments[3][0, 0, 2] = -1  # a row that sees nothing
    elif len(arguments) > 3:
        arguments[3][..., 0] = 1
    raised = hl.raise_named(jax.jit(function).lower(*arguments), target="litert")
    lowered = hl.lower(raised.text, target="litert").text
    assert "odml.scaled_dot_product_attention" in lowered
    [found] = litert.compile_module(lowered)(arguments)
    np.testing.assert_allclose(found, jax.jit(function)(*arguments), atol=1e-5)
    interpreter = tensorflow.lite.Interpreter(model_content=litert.convert_text(lowered)[0])
    interpreter.allocate_tensors()
    assert "DELEGATE" in [op["op_name"] for op in interpreter._get_ops_details()]
