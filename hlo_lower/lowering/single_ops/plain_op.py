"""Ops that a target refuses, each by a rule of its own out of plainer ones: one kind, whose rules are a table.

A rule is found by the op's name and what its elements are; whether the target takes what it builds shows once it is
built, type by type.
"""

from dataclasses import dataclass
from enum import Enum

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.base.registry import DoesNotApply, FactsByName
from hlo_lower.lowering.engine.kind import OpLowering
from hlo_lower.ops import names
from hlo_lower.ops.refused_forms import RefusedForm

PLAIN = "op"
"""The name under which rules for these ops are registered."""


class PlainOp(Enum):
    """The ops for which there are rules."""

    ATAN2 = names.ATAN2
    BATCH_NORM_GRAD = names.BATCH_NORM_GRAD
    BATCH_NORM_INFERENCE = names.BATCH_NORM_INFERENCE
    BATCH_NORM_TRAINING = names.BATCH_NORM_TRAINING
    BITCAST_CONVERT = names.BITCAST_CONVERT
    CBRT = names.CBRT
    CLAMP = names.CLAMP
    CONVOLUTION = names.CONVOLUTION
    COUNT_LEADING_ZEROS = names.COUNT_LEADING_ZEROS
    DOT_GENERAL = names.DOT_GENERAL
    DYNAMIC_GATHER = names.DYNAMIC_GATHER
    DYNAMIC_UPDATE_SLICE = names.DYNAMIC_UPDATE_SLICE
    EXPM1 = names.EXPONENTIAL_MINUS_ONE
    FFT = names.FFT
    IS_FINITE = names.IS_FINITE
    LOG1P = names.LOG_PLUS_ONE
    LOGISTIC = names.LOGISTIC
    PAD = names.PAD
    POPCNT = names.POPCNT
    REDUCE_PRECISION = names.REDUCE_PRECISION
    REDUCE = names.REDUCE
    REDUCE_WINDOW = names.REDUCE_WINDOW
    REMAINDER = names.REMAINDER
    RNG_BIT_GENERATOR = names.RNG_BIT_GENERATOR
    ROUND_AFZ = names.ROUND_NEAREST_AFZ
    ROUND_EVEN = names.ROUND_NEAREST_EVEN
    SELECT_AND_SCATTER = names.SELECT_AND_SCATTER
    SHIFT_LEFT = names.SHIFT_LEFT
    SHIFT_RIGHT = names.SHIFT_RIGHT_ARITHMETIC
    SHIFT_RIGHT_LOGICAL = names.SHIFT_RIGHT_LOGICAL
    SIGN = names.SIGN
    TAN = names.TAN


class Elements(Enum):
    """What its first operand holds."""

    SIGNED = "signed integers"
    UNSIGNED = "unsigned integers"
    FLOAT = "floats"
    BOOLEAN = "booleans"
    OTHER = "others"


class Numbers(Enum):
    """Whether floats may come out otherwise than the op's own, within the bound of the rule (the float mode)."""

    EXACT = "exact"
    BOUNDED = "bounded"


class Whole(Enum):
    """What an op is refused for that is refused in every form."""

    WHOLE = "whole"


@dataclass(frozen=True)
class PlainFacts(FactsByName):
    """The facts of one op of static shape.

    Attributes:
      named, elements, numbers, needs: the facts that rules constrain; `needs` is the form that the target refuses.
      bits: of an integer of its first operand; 0 of other elements.
      is_safe_divisor: of an integer division: whether no divisor is 0 or -1.
      window: elements of a window; 0 where there is none.
      summed: numbers that each element of a product is the sum of.
      exponent: of integers that are bitcast to floats: the exponent's bits where all have the same, and no result is
        small or infinite; else 0.
      may_have_sign: of such integers: whether a float may be negative.
      has_one_nan: of floats that are bitcast: whether every NaN among them may be taken for the positive one.
      shift: by how many bits a shift shifts, where that is one number that is known; else None.
    """

    named: PlainOp
    elements: Elements
    numbers: Numbers
    needs: Whole | RefusedForm = Whole.WHOLE
    bits: int = 0
    is_safe_divisor: bool = False
    window: int = 0
    summed: int = 0
    exponent: int = 0
    may_have_sign: bool = False
    shift: int | None = None
    has_one_nan: bool = False


PlainLowering = OpLowering[PlainFacts]


ANOTHER_ORDER = "floats may be added in another order, which has to be allowed: --float-mode reassociate"
"""Why a rule does not apply that leaves it to XLA, or to the consumer, in which order floats are rounded."""


def must_not_round_otherwise(op: PlainLowering) -> None:
    """Say that an op may add the same products in another order.

    Raises:
      DoesNotApply: they are floats, and that is not allowed.
    """
    if op.facts.elements not in (Elements.SIGNED, Elements.UNSIGNED) and op.facts.numbers is not Numbers.BOUNDED:
        raise DoesNotApply(ANOTHER_ORDER)


def elements_of(name: str) -> Elements:
    """What an element type is, of those that rules tell apart."""
    if name == "i1":
        return Elements.BOOLEAN
    if name in WIDE_FLOATS:
        return Elements.FLOAT
    declared = element_type(name)
    if declared.is_integer and declared.bits >= 8:
        return Elements.SIGNED if declared.is_signed else Elements.UNSIGNED
    return Elements.OTHER
