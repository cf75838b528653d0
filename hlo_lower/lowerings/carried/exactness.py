"""For each op what makes it exact on carriers, with the proof in a line.

U is a w-bit unsigned integer and S the signed one of the same bits: equal modulo 2^w, and in the other order where the
sign bits differ. N is a narrow integer in a wider one: the same number. F is bf16 or f16 in f32: the same number, f32
has p digits of which more than twice those of F and two. C is a complex number in its two parts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from hlo_lower.lowerings.carried.carrier import Form
from hlo_lower.lowerings.carried.complex_functions import BOUNDED, EXACT, EXPANDED


class How(Enum):
    """What an op needs on carriers."""

    SAME = "same"  # nothing: the op, and its result is a number of the type
    SETTLED = "settled"  # the op, and its result put into the range of the type, or rounded to it
    FLIPPED = "flipped"  # the op on operands whose sign bit is flipped, and so a result of the type
    WRITTEN = "written"  # a form of its own (`written_ops`)
    NONE = "none"  # there is none


@dataclass(frozen=True)
class Exactness:
    """What an op needs.

    Attributes:
      signed, wider, float: on each form of carrier.
      proof: why that is exact.
      moved: for an op that only moves elements, the operands that it moves; None: all of them.
      bits, itself, parts: on halves, on the type itself by other ops, and on the parts of complex numbers.
    """

    signed: How
    wider: How
    float: How
    proof: str
    moved: tuple[int, ...] | None = None
    bits: How = How.NONE
    itself: How = How.NONE
    parts: How = How.NONE

    def on(self, form: Form) -> How:
        """What it needs on a form of carrier."""
        of_form = {Form.SIGNED: self.signed, Form.WIDER: self.wider, Form.FLOAT: self.float, Form.HALVES: self.bits}
        return {**of_form, Form.ITSELF: self.itself, Form.PARTS: self.parts}[form]


_S, _T, _F, _W, _N = How.SAME, How.SETTLED, How.FLIPPED, How.WRITTEN, How.NONE


ON_HALVES = ("reshape", "broadcast_in_dim", "transpose", "slice", "concatenate", "reverse", "select")
"""Moves that are written for elements of two halves."""

BY_HALVES = ("dynamic_slice", "dynamic_update_slice", "gather", "pad")
"""Moves that are done for each half."""

BY_PART = (
    *("reshape", "broadcast_in_dim", "transpose", "slice", "reverse", "concatenate", "dynamic_slice"),
    *("dynamic_update_slice", "gather", "pad", "select", "optimization_barrier"),
)
"""Moves of complex numbers that are those of their parts."""

FUNCTIONS = (*EXACT, *BOUNDED, *EXPANDED)
"""Functions of complex numbers that are made of those of their parts."""


def _moves(name: str, moved: tuple[int, ...]) -> Exactness:
    proof = "elements are moved, not looked at, and a carrier holds each as it is"
    return Exactness(
        _S, _S, _S, proof, moved or None, bits=_on(name, (*ON_HALVES, *BY_HALVES)), parts=_on(name, BY_PART)
    )


def _on(name: str, names: Collection[str]) -> How:
    return _W if name in names else _N


_RING = (
    "sums and products modulo 2^w depend on the operands modulo 2^w; f32 rounds them so that rounding again is right"
)
_ORDER = "numbers keep their order in a wider type; flipping the sign bit makes S ordered as U"
_BITS = "bit by bit; extending by zeros or by the sign bit commutes with it"
_WHOLE = "the result is a number of the type"
_NEAR = "defined as f32's result, rounded: XLA computes it so"

TABLE: Mapping[str, Exactness] = {
    **{
        f"stablehlo.{name}": _moves(name, moved)
        for name, moved in {
            "reshape": (),
            "broadcast_in_dim": (),
            "transpose": (),
            "slice": (),
            "reverse": (),
            "concatenate": (),
            "optimization_barrier": (),
            "dynamic_slice": (0,),
            "dynamic_update_slice": (0, 1),
            "gather": (0,),
            "dynamic_gather": (0,),
            "pad": (),
            "dynamic_pad": (0, 1),
            "dynamic_reshape": (0,),
            "dynamic_broadcast_in_dim": (0,),
            "real_dynamic_slice": (0,),
            "get_dimension_size": (),
            "select": (),
        }.items()
    },
    "stablehlo.constant": Exactness(_W, _W, _W, "the constant's numbers, on the carrier", bits=_W, parts=_W),
    "stablehlo.iota": Exactness(_S, _T, _T, "positions modulo 2^w, or rounded to F once", parts=_W, bits=_W),
    "stablehlo.add": Exactness(_S, _T, _T, _RING, bits=_W, parts=_W),
    "stablehlo.subtract": Exactness(_S, _T, _T, _RING, bits=_W, parts=_W),
    "stablehlo.multiply": Exactness(_S, _T, _T, _RING, bits=_W, parts=_W),
    "stablehlo.dot_general": Exactness(
        _S, _T, _T, f"{_RING}; products of F are exact in f32, where XLA adds them", parts=_W, bits=_W
    ),
    "stablehlo.negate": Exactness(_S, _T, _S, "modulo 2^w; of F the sign bit alone", bits=_W, parts=_W),
    "stablehlo.and": Exactness(_S, _S, _N, _BITS, bits=_S, itself=_W),
    "stablehlo.or": Exactness(_S, _S, _N, _BITS, bits=_S, itself=_W),
    "stablehlo.xor": Exactness(_S, _S, _N, _BITS, bits=_S),
    "stablehlo.not": Exactness(_S, _T, _N, "bit by bit; settling drops the bits that extend U", bits=_S),
    "stablehlo.shift_left": Exactness(
        _S, _T, _N, "bits move up; those beyond w are dropped, and shifts by w or more give 0", bits=_W
    ),
    "stablehlo.shift_right_logical": Exactness(_S, _W, _N, "zeros move in: of N extended by zeros first", bits=_W),
    "stablehlo.shift_right_arithmetic": Exactness(
        _S, _W, _N, "sign bits move in: of N extended by its top bit first", bits=_W
    ),
    "stablehlo.popcnt": Exactness(_S, _W, _N, "of N extended by zeros, which do not count", bits=_W),
    "stablehlo.count_leading_zeros": Exactness(
        _S, _W, _N, "of N extended by zeros, less the bits that extend it", bits=_W
    ),
    "stablehlo.compare": Exactness(
        _F, _S, _S, f"{_ORDER}; equality needs no flip; f32 orders F, its zeros and NaN alike", bits=_W, parts=_W
    ),
    "stablehlo.minimum": Exactness(_F, _S, _S, _ORDER, bits=_W),
    "stablehlo.maximum": Exactness(_F, _S, _S, _ORDER, bits=_W),
    "stablehlo.clamp": Exactness(_F, _S, _S, _ORDER, bits=_W),
    "stablehlo.divide": Exactness(
        _W,
        _T,
        _T,
        "quotients of N leave it only at the least number by -1 and at U by 0 (all ones); half of U is in S",
        parts=_W,
        bits=_W,
    ),
    "stablehlo.remainder": Exactness(
        _W, _S, _T, f"{_WHOLE}: its size is below the divisor's, or it is the dividend", bits=_W
    ),
    "stablehlo.abs": Exactness(
        _N, _T, _S, "of N only the least number leaves it; there is none of U", parts=_W, bits=_W
    ),
    "stablehlo.sign": Exactness(_W, _S, _S, "-1, 0 or 1; of U whether it is 0", parts=_W, bits=_W),
    "stablehlo.is_finite": Exactness(_N, _N, _S, "f32 holds Inf and NaN of F, and makes no others"),
    "stablehlo.convert": Exactness(
        _W, _W, _W, "the number itself, or where it does not fit what XLA makes of it", bits=_W, parts=_W
    ),
    "stablehlo.bitcast_convert": Exactness(_S, _N, _N, "the same bits"),
    "stablehlo.reduce": Exactness(
        _W, _W, _W, "the body on carriers; of a sum or product the result is settled once", parts=_W, bits=_W
    ),
    "stablehlo.reduce_window": Exactness(_W, _W, _W, "as a reduce", parts=_W, bits=_W),
    "stablehlo.sort": Exactness(
        _W, _W, _W, "elements are moved, in the order of the comparator on carriers", parts=_W, bits=_W
    ),
    **{
        f"stablehlo.{name}": Exactness(_N, _N, _S, f"{_WHOLE}: F has every integer up to its precision")
        for name in ("floor", "ceil", "round_nearest_even", "round_nearest_afz", "reduce_precision")
    },
    **{
        f"stablehlo.{name}": Exactness(_N, _N, _T, _NEAR, parts=_on(name, FUNCTIONS))
        for name in (
            *("sqrt", "rsqrt", "cbrt", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic"),
            *("tanh", "tan", "sine", "cosine", "power", "atan2"),
        )
    },
    **{
        f"stablehlo.{name}": Exactness(_N, _N, _N, "the parts are what carries C", parts=_W)
        for name in ("real", "imag", "complex")
    },
    "stablehlo.convolution": Exactness(
        _N, _N, _N, "linear in both operands, so in their parts and digits", parts=_W, bits=_W
    ),
}
"""Each op that can be carried."""
