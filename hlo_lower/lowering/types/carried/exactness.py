"""For each op what makes it exact on carriers, with the proof in a line.

U is a w-bit unsigned integer and S the signed one of the same bits: equal modulo 2^w, and in the other order where the
sign bits differ. N is a narrow integer in a wider one: the same number. F is bf16 or f16 in f32: the same number, f32
has p digits of which more than twice those of F and two. C is a complex number in its two parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from hlo_lower.lowering.types.carried.carrier import Form
from hlo_lower.lowering.types.carried.complex_functions import BOUNDED, EXACT, EXPANDED
from hlo_lower.ops import names
from hlo_lower.ops.spec import LAYOUT, MOVES, OPS


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


_LETTERS = {"S": How.SAME, "T": How.SETTLED, "F": How.FLIPPED, "W": How.WRITTEN, "-": How.NONE}

ON_HALVES = (*(name.removeprefix("stablehlo.") for name in LAYOUT), "slice", "concatenate", "select")
"""Moves that are written for elements of two halves."""

BY_HALVES = ("dynamic_slice", "dynamic_update_slice", "gather", "pad")
"""Moves that are done for each half."""

BY_PART = (*ON_HALVES, *BY_HALVES, "optimization_barrier")
"""Moves of complex numbers that are those of their parts."""

FUNCTIONS = (*EXACT, *BOUNDED, *EXPANDED)
"""Functions of complex numbers that are made of those of their parts."""

_RING = (
    "sums and products modulo 2^w depend on the operands modulo 2^w; f32 rounds them so that rounding again is right"
)
_ORDER = "numbers keep their order in a wider type; flipping the sign bit makes S ordered as U"
_BITS = "bit by bit; extending by zeros or by the sign bit commutes with it"
_WHOLE = "the result is a number of the type"
_NEAR = "defined as f32's result, rounded: XLA computes it so"
_MOVED = "elements are moved, not looked at, and a carrier holds each as it is"

_NOT_CARRIED = (names.BITCAST_CONVERT, names.BROADCAST, names.TORCH_INDEX_SELECT)
"""A bitcast reads the bits of its carrier; the other two are older forms of ops."""

_MOVES: Mapping[str, tuple[int, ...] | None] = {
    **{name: op.moved for name, op in OPS.items() if name in MOVES and name not in _NOT_CARRIED},
    **dict.fromkeys((names.SELECT, names.OPTIMIZATION_BARRIER, names.GET_DIMENSION_SIZE)),
}
"""Ops that only move elements, and the operands that they move."""

_OTHERS: Mapping[str, tuple[str, str]] = {
    "constant": ("WWW W-W", "the constant's numbers, on the carrier"),
    "iota": ("STT W-W", "positions modulo 2^w, or rounded to F once"),
    "add": ("STT W-W", _RING),
    "subtract": ("STT W-W", _RING),
    "multiply": ("STT W-W", _RING),
    "dot_general": ("STT W-W", f"{_RING}; products of F are exact in f32, where XLA adds them"),
    "negate": ("STS W-W", "modulo 2^w; of F the sign bit alone"),
    "and": ("SS- SW-", _BITS),
    "or": ("SS- SW-", _BITS),
    "xor": ("SS- SW-", _BITS),
    "not": ("ST- SW-", "bit by bit; settling drops the bits that extend U"),
    "shift_left": ("ST- W--", "bits move up; those beyond w are dropped, and shifts by w or more give 0"),
    "shift_right_logical": ("SW- W--", "zeros move in: of N extended by zeros first"),
    "shift_right_arithmetic": ("SW- W--", "sign bits move in: of N extended by its top bit first"),
    "popcnt": ("SW- W--", "of N extended by zeros, which do not count"),
    "count_leading_zeros": ("SW- W--", "of N extended by zeros, less the bits that extend it"),
    "compare": ("FSS W-W", f"{_ORDER}; equality needs no flip; f32 orders F, its zeros and NaN alike"),
    "minimum": ("FSS W--", _ORDER),
    "maximum": ("FSS W--", _ORDER),
    "clamp": ("FSS W--", _ORDER),
    "divide": (
        "WTT W-W",
        "quotients of N leave it only at the least number by -1 and at U by 0 (all ones); half of U is in S",
    ),
    "remainder": ("WST W--", f"{_WHOLE}: its size is below the divisor's, or it is the dividend"),
    "abs": ("-TS W-W", "of N only the least number leaves it; there is none of U"),
    "sign": ("WSS W-W", "-1, 0 or 1; of U whether it is 0"),
    "is_finite": ("--S ---", "f32 holds Inf and NaN of F, and makes no others"),
    "convert": ("WWW W-W", "the number itself, or where it does not fit what XLA makes of it"),
    "bitcast_convert": ("S-- ---", "the same bits"),
    "reduce": ("WWW W-W", "the body on carriers; of a sum or product the result is settled once"),
    "reduce_window": ("WWW W-W", "as a reduce"),
    "sort": ("WWW W-W", "elements are moved, in the order of the comparator on carriers"),
    "convolution": (
        "--T W-W",
        "linear in both operands, so in their parts and digits; products of F are exact in f32, where XLA adds them",
    ),
    **dict.fromkeys(("real", "imag", "complex"), ("--- --W", "the parts are what carries C")),
    **dict.fromkeys(
        ("floor", "ceil", "round_nearest_even", "round_nearest_afz", "reduce_precision"),
        ("--S ---", f"{_WHOLE}: F has every integer up to its precision"),
    ),
    **dict.fromkeys(FUNCTIONS, ("--T --W", _NEAR)),
    **dict.fromkeys(("cbrt", "atan2"), ("--T ---", _NEAR)),
}
"""By letters: on signed, wider and float carriers; on halves, on the type itself, on parts. "-": there is none."""

CHLO_ON_F32: Mapping[str, tuple[str, str]] = {"chlo.square": ("--T ---", _RING)}
"""Those of chlo that are exact there: others are rounded at each step of what they are written out as."""


def _moves(name: str, moved: tuple[int, ...] | None) -> Exactness:
    halves = "W" if name in (*ON_HALVES, *BY_HALVES) else "-"
    return _read(f"SSS {halves}-{'W' if name in BY_PART else '-'}", _MOVED, moved)


def _read(letters: str, proof: str, moved: tuple[int, ...] | None = None) -> Exactness:
    signed, wider, of_float, bits, itself, parts = (_LETTERS[letter] for letter in letters.replace(" ", ""))
    return Exactness(signed, wider, of_float, proof, moved, bits, itself, parts)


TABLE: Mapping[str, Exactness] = {
    **{name: _moves(name.removeprefix("stablehlo."), moved) for name, moved in _MOVES.items()},
    **{f"stablehlo.{name}": _read(letters, proof) for name, (letters, proof) in _OTHERS.items()},
    **{name: _read(letters, proof) for name, (letters, proof) in CHLO_ON_F32.items()},
}
"""Each op that can be carried."""
