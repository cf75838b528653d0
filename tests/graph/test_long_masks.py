"""Constants of many truth values, which MLIR prints as bytes or, in older releases, as bits."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir


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


def _module_of(*constants):
    kinds = ", ".join(kind for _, kind in constants)
    body = "\n".join(f"%{i} = stablehlo.constant {text} : {kind}" for i, (text, kind) in enumerate(constants))
    results = ", ".join(f"%{i}" for i in range(len(constants)))
    return f"func.func public @main() -> ({kinds}) {{\n{body}\nreturn {results} : {kinds}\n}}"


def _raw(array):
    return f'dense<"0x{array.tobytes().hex()}">'


@pytest.mark.parametrize("count", [16, 99, 130])
def test_text_of_another_mlir_is_read_whichever_way_it_writes_masks(count):
    """As bits and as bytes, side by side, beside raw data of another type: one is not how this MLIR writes."""
    mask = np.random.default_rng(count).integers(0, 2, count).astype(bool)
    floats = np.arange(count, dtype=np.float32)
    kind = f"tensor<{count}xi1>"
    packed = _raw(np.packbits(mask, bitorder="little"))
    graph = hl.read(_module_of((packed, kind), (_raw(floats), f"tensor<{count}xf32>"), (_raw(mask), kind)))
    bits, other, as_bytes = (n.constant() for n in graph.main.body.nodes if n.name == "stablehlo.constant")
    np.testing.assert_array_equal(bits, mask)
    np.testing.assert_array_equal(as_bytes, mask)
    np.testing.assert_array_equal(other, floats)


@pytest.mark.parametrize(("raw", "kind"), [("0x0A010", "99xi1"), ("0x0A01", "99xi1"), ("0x0A0102", "16xf32")])
def test_raw_data_of_no_known_size_stays_an_error(raw, kind):
    """Half a byte, neither bits nor bytes, another type: told at its place."""
    with pytest.raises(InputError, match=r":2:.*hex"):
        hl.read(_module_of((f'dense<"{raw}">', f"tensor<{kind}>")))
