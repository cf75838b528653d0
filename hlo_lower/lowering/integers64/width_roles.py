"""What each operation does with 64-bit integers when they are made 32 bits wide.

Two things can be asked of a narrowed value whose original is some integer v:

- LOW: it is v modulo 2^32. Sums, products and bit operations of such values are such values again.
- NEAREST: it is the 32-bit integer nearest to v. Minima, maxima and clamps of such values are such values again.

Where v fits in 32 bits both say the same, that it is v; and only then is a comparison, a quotient, a conversion to a
float or an index right.
"""

from enum import Flag


class Narrowing(Flag):
    """What is asked of a narrowed value; both together: that its original fits."""

    NOTHING = 0
    LOW = 1
    NEAREST = 2
    BOTH = 3


def _stablehlo(*names: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in names)


RING = _stablehlo(
    *("add", "subtract", "multiply", "negate", "and", "or", "xor", "not", "dot_general", "dot", "convolution")
)
"""The low half of the result depends on the low halves of the operands alone."""

ORDERED = _stablehlo("minimum", "maximum", "clamp")
"""Monotone in every operand, so that they commute with taking the nearest value."""

EXACT = _stablehlo("divide", "remainder", "abs", "sign", "power")
"""Right where the operands fit; the result may not."""

WITHIN = _stablehlo("remainder", "sign", "shift_right_arithmetic", "shift_right_logical", "popcnt")
"""Operations whose result fits where the operands do."""

SHIFTS = _stablehlo("shift_left", "shift_right_arithmetic", "shift_right_logical")

ASKING = _stablehlo("compare", "is_finite", "dynamic_iota") | {"chlo.top_k"}
"""Operations on integers that fit, with results of another kind."""

MOVED: dict[str, tuple[int, ...]] = {
    **{
        f"stablehlo.{name}": (0,)
        for name in (
            *("reshape", "broadcast_in_dim", "transpose", "slice", "reverse", "dynamic_slice", "gather"),
            *("dynamic_reshape", "dynamic_broadcast_in_dim", "real_dynamic_slice", "dynamic_gather"),
            *("set_dimension_size", "all_gather", "all_to_all", "collective_permute", "collective_broadcast"),
        )
    },
    "stablehlo.select": (1, 2),
    "stablehlo.dynamic_update_slice": (0, 1),
    "stablehlo.pad": (0, 1),
    "stablehlo.dynamic_pad": (0, 1),
    "sdy.sharding_constraint": (0,),
    "sdy.reshard": (0,),
    "chlo.top_k": (0,),
}
"""Operations whose result is made of elements of these operands; all other operands are indices or sizes."""

SIDE_BY_SIDE = frozenset({"stablehlo.optimization_barrier", "stablehlo.sort", "func.call", "stablehlo.composite"})
"""Operations that have a result for each operand, or a body that is looked up by name."""

REFUSED = {
    "stablehlo.bitcast_convert": "it reads the bits of a 64-bit integer",
    "stablehlo.rng_bit_generator": "it draws 64-bit random bits",
    "stablehlo.rng": "it draws 64-bit random numbers",
    "stablehlo.count_leading_zeros": "it counts the zeros of 64 bits",
}
"""Operations that have no 32-bit form."""
