"""What each operation does with 64-bit integers when they are made 32 bits wide.

Two things can be asked of a narrowed value whose original is some integer v:

- LOW: it is v modulo 2^32. Sums, products and bit operations of such values are such values again.
- NEAREST: it is the 32-bit integer nearest to v. Minima, maxima and clamps of such values are such values again.

Where v fits in 32 bits both say the same, that it is v; and only then is a comparison, a quotient, a conversion to a
float or an index right.
"""

from enum import Flag

from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, OPS


class Narrowing(Flag):
    """What is asked of a narrowed value; both together: that its original fits."""

    NOTHING = 0
    LOW = 1
    NEAREST = 2
    BOTH = 3


RING = COMBINING - {names.MINIMUM, names.MAXIMUM} | {
    names.SUBTRACT,
    names.NEGATE,
    names.NOT,
    names.DOT_GENERAL,
    names.DOT,
    names.CONVOLUTION,
}
"""The low half of the result depends on the low halves of the operands alone."""

ORDERED = frozenset({names.MINIMUM, names.MAXIMUM, names.CLAMP})
"""Monotone in every operand, so that they commute with taking the nearest value."""

EXACT = frozenset({names.DIVIDE, names.REMAINDER, names.ABS, names.SIGN, names.POWER})
"""Right where the operands fit; the result may not."""

WITHIN = frozenset({names.REMAINDER, names.SIGN, names.SHIFT_RIGHT_ARITHMETIC, names.SHIFT_RIGHT_LOGICAL, names.POPCNT})
"""Operations whose result fits where the operands do."""

SHIFTS = frozenset({names.SHIFT_LEFT, names.SHIFT_RIGHT_ARITHMETIC, names.SHIFT_RIGHT_LOGICAL})

ASKING = frozenset({names.COMPARE, names.IS_FINITE, names.DYNAMIC_IOTA, "chlo.top_k"})
"""Operations on integers that fit, with results of another kind."""

_MOVING = {
    name: op for name, op in OPS.items() if op.moved != () and name not in (names.CONCATENATE, names.BITCAST_CONVERT)
}
"""A concatenate moves any number of operands; a bitcast of integers is refused."""

MOVED: dict[str, tuple[int, ...]] = {
    **{name: op.moved or tuple(range(op.arity or 1)) for name, op in _MOVING.items()},
    names.SELECT: (1, 2),
    **dict.fromkeys(("sdy.sharding_constraint", "sdy.reshard", "chlo.top_k"), (0,)),
}
"""Operations whose result is made of elements of these operands; all other operands are indices or sizes."""

SIDE_BY_SIDE = frozenset({names.OPTIMIZATION_BARRIER, names.SORT, "func.call", names.COMPOSITE})
"""Operations that have a result for each operand, or a body that is looked up by name."""

REFUSED = {
    names.BITCAST_CONVERT: "it reads the bits of a 64-bit integer",
    names.RNG_BIT_GENERATOR: "it draws 64-bit random bits",
    names.RNG: "it draws 64-bit random numbers",
    names.COUNT_LEADING_ZEROS: "it counts the zeros of 64 bits",
}
"""Operations that have no 32-bit form."""
