"""Constants of many truth values, which MLIR prints as bytes or, in older releases, as bits."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower import mlir


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


def test_a_mask_that_is_packed_is_read_from_the_lowest_bit():
    """As jaxlib 0.9 prints the lower triangle of 16 x 16, two bytes a row; of nine values the last byte holds one."""
    lower = "0x0100030007000F001F003F007F00FF00FF01FF03FF07FF0FFF1FFF3FFF7FFFFF"
    read = mlir.parse_dense(f'dense<"{lower}"> : tensor<16x16xi1>', np.dtype(bool), 256)
    np.testing.assert_array_equal(read.reshape(16, 16), np.tril(np.ones((16, 16), bool)))
    rest = mlir.parse_dense('dense<"0x0A01"> : tensor<9xi1>', np.dtype(bool), 9)
    np.testing.assert_array_equal(np.flatnonzero(rest), [1, 3, 8])
