"""Fourier transforms that a consumer has of one dim only, or of lengths that are powers of two."""

from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.names import FFT
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module


def _is_no_power_of_two(_graph: Graph, node: Node) -> bool:
    return any(length & (length - 1) for length in node.integers("fft_length"))


def _transform(shape: str, lengths: str) -> str:
    kind = f"tensor<{shape}xcomplex<f32>>"
    return module(f"%x: {kind}", kind, f"%r = stablehlo.fft %x, type = FFT, length = [{lengths}] : ({kind}) -> {kind}")


SEVERAL_DIMS = Quirk(
    "fft of several dims",
    (FFT,),
    {"iree": "it is not legalized"},
    "an `fft` of each dim, transposed",
    _transform("2x4", "2, 4"),
    lambda _graph, node: len(node.integers("fft_length")) > 1,
    (Rules("op", ("fft_to_ffts",)),),
)

OTHER_LENGTH = Quirk(
    "fft of a length that is no power of two",
    (FFT,),
    {"iree": "it is not legalized"},
    "products with matrices of cosines and sines, if floats may be added in another order",
    _transform("6", "6"),
    _is_no_power_of_two,
    (Rules("op", ("fft_to_dot_general",)),),
)
