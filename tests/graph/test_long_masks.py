"""Constants of many truth values, which MLIR prints as bytes or, in older releases, as bits."""

import numpy as np
import pytest

import hlo_lower as hl


@pytest.mark.parametrize("shape", [(16, 16), (9, 11), (1, 67)])
def test_a_long_mask_is_read_as_it_was_written(shape):
    """Each value comes back, whatever is left over of the last byte."""
    mask = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
    rows = ", ".join(f"[{', '.join('true' if one else 'false' for one in row)}]" for row in mask)
    kind = f"tensor<{shape[0]}x{shape[1]}xi1>"
    body = f"%m = stablehlo.constant dense<[{rows}]> : {kind}\nreturn %m : {kind}"
    text = f"func.func public @main() -> {kind} {{\n{body}\n}}"
    graph = hl.read(text)
    [constant] = [node for node in graph.main.body.nodes if node.name == "stablehlo.constant"]
    np.testing.assert_array_equal(constant.constant(), mask)
