"""Random bits that a consumer draws otherwise than XLA."""

from hlo_lower.ops.names import RNG_BIT_GENERATOR
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module

THREE_WORDS = Quirk(
    "rng_bit_generator from three numbers",  # a key and a counter of 128 bits
    (RNG_BIT_GENERATOR,),
    {"iree": "its Philox draws other bits than XLA's"},
    "Philox in plain ops",
    module(
        "%s: tensor<3xui64>",
        "tensor<4xui32>",
        "%t, %r = stablehlo.rng_bit_generator %s, algorithm = PHILOX",
        "  : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)",
    ),
    lambda _graph, node: node.operand(0).static_shape == (3,),
    (Rules("op", ("random_bits_to_rounds",)),),
)
