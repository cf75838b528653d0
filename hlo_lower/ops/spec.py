"""What the specification says of each op: one declaration per op of StableHLO and chlo, and what follows for many.

A column holds what is true of an op by its definition, whoever asks: the converter and the judge both read it. What
someone knows how to do with an op (a range, a proof term, a rule) stands where that is done, by the op's role first.

    TANH = OPS["stablehlo.tanh"]
    TANH.role is Role.ELEMENTWISE, TANH.rounds is Rounds.FREELY, TANH.arity == 1

To ask for many, filter: `named(role=Role.MOVES)`, or `{op.name for op in OPS.values() if op.identity}`. To add an op,
add it to the line of its kind; `tests/ops/test_spec.py` compares the list with jaxlib's ops.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import ElementType


class Role(Enum):
    """What an op does."""

    CONSTANT = "makes values of no operand"
    ELEMENTWISE = "computes each element of its result from the elements at the same place"
    MOVES = "gives elements of its operands, and computes none"
    FOLDS = "applies its body to elements of its operands until one is left for each place"
    PRODUCT = "adds up products of elements"
    ORDERS = "puts elements in an order"
    MATRIX = "solves or factorizes matrices"
    TRANSFORM = "computes whole dims at once"
    APPLIES = "applies its body to elements"
    CONTROL = "runs its bodies or not, once or often"
    CALLS = "stands for a function or for something that only its consumer knows"
    ENDS = "ends a body"
    TUPLES = "puts values together or takes them apart"
    SIZES = "reads or changes the size of a dim"
    RANDOM = "draws random numbers"
    DEVICES = "speaks with other devices, or asks for its own"
    HOST = "speaks with the host, or waits for what does"
    QUANTIZED = "is of quantized types"


class Rounds(Enum):
    """Whether the floats of a result are rounded."""

    NEVER = "it makes no float that is rounded"
    ONCE = "its result is the one float that is nearest to the exact number"
    FREELY = "every compiler has its own result near the exact number"


class Elements(Enum):
    """What becomes of the elements that an op moves."""

    ALL_ONCE = "each stands at one place of the result"
    SPREAD = "each stands at one place or more"
    SOME = "some are left out, and some may stand at several places"
    JOINED = "they stand beside elements of another operand, or are replaced by those"


class Numbers(Enum):
    """Which numbers an op gives, of those that it takes."""

    OPERANDS = "those of its operands, perhaps with another sign"
    WHOLE = "whole ones"
    WHOLE_OF_WHOLE = "whole ones where all operands are whole"
    NO_MIDDLES = "none that is the middle between two numbers of so many digits as its operands have"


@dataclass(frozen=True)
class OpSpec:
    """What is true of an op by its definition.

    Attributes:
      name: with its dialect: "stablehlo.tanh".
      role: what it does.
      arity: how many operands it takes; None where that varies.
      rounds: whether the floats that it makes are rounded.
      is_pure: whether it is a function of its operands that ends and leaves no record: one whose results nobody uses
        can be erased. Of an op with bodies that is said of the op itself.
      moved: the operands whose elements it moves, by number; None: all of them. Empty for ops of other roles.
      elements: what becomes of these.
      is_dynamic: whether operands say the shape of its result, or its attributes as another op has them.
      identity: of an associative and commutative op on integers the number that changes nothing: "0", "1", "-1" (all
        bits), "least" or "greatest" of the type.
      keeps: what a float function does with signs: "odd" (f(-x) is -f(x)) or "even".
      image: between which numbers the results of a float function lie, NaN aside; None where that is not known.
      has_bodies: whether it has regions.
      numbers: which numbers it gives; None where nothing is known. A quotient or a root in the middle would have more
        digits than there are, also where it is rounded to twice as many and two. An exponential is no fraction but 1, a
        sine none but 0; that one is rounded to a middle is an accident of each consumer.
      is_signless: whether it gives the same bits of integers with and without a sign. Of what moves elements that holds
        of these, not of the indices.
    """

    name: str
    role: Role
    arity: int | None = None
    rounds: Rounds = Rounds.NEVER
    is_pure: bool = True
    moved: tuple[int, ...] | None = ()
    elements: Elements | None = None
    is_dynamic: bool = False
    identity: str = ""
    keeps: str = ""
    image: tuple[float, float] | None = None
    has_bodies: bool = False
    numbers: Numbers | None = None
    is_signless: bool = False

    @property
    def short_name(self) -> str:
        """The name without the dialect."""
        return self.name.partition(".")[2]


def _declare_ops(names: str, role: Role, arity: int | None = None, **columns: Any) -> list[OpSpec]:
    """Declare ops with the same columns; a name without a dialect is StableHLO's."""
    full = (name if "." in name else f"stablehlo.{name}" for name in names.split())
    return [OpSpec(name, role, arity, **columns) for name in full]


_E, _M, _F, _ONCE, _FREELY = Role.ELEMENTWISE, Role.MOVES, Role.FOLDS, Rounds.ONCE, Rounds.FREELY
_SAME, _WHOLE, _STAYS, _NONE = Numbers.OPERANDS, Numbers.WHOLE, Numbers.WHOLE_OF_WHOLE, Numbers.NO_MIDDLES

_SPECS = (
    *_declare_ops("constant iota", Role.CONSTANT, 0, is_signless=True),
    *_declare_ops("dynamic_iota", Role.CONSTANT, 1, is_dynamic=True),
    # --- element by element ---
    *_declare_ops("add", _E, 2, rounds=_ONCE, identity="0", numbers=_STAYS, is_signless=True),
    *_declare_ops("multiply", _E, 2, rounds=_ONCE, identity="1", numbers=_STAYS, is_signless=True),
    *_declare_ops("and", _E, 2, identity="-1", is_signless=True),
    *_declare_ops("or xor", _E, 2, identity="0", is_signless=True),
    *_declare_ops("maximum", _E, 2, identity="least", numbers=_SAME),
    *_declare_ops("minimum", _E, 2, identity="greatest", numbers=_SAME),
    *_declare_ops("subtract", _E, 2, rounds=_ONCE, numbers=_STAYS, is_signless=True),
    *_declare_ops("remainder", _E, 2, rounds=_ONCE, numbers=_STAYS),
    *_declare_ops("divide", _E, 2, rounds=_ONCE, numbers=_NONE),
    *_declare_ops("power", _E, 2, rounds=_FREELY),
    *_declare_ops("atan2", _E, 2, rounds=_FREELY, numbers=_NONE),
    *_declare_ops("compare complex", _E, 2),
    *_declare_ops("shift_left shift_right_arithmetic shift_right_logical", _E, 2, is_signless=True),
    *_declare_ops("negate", _E, 1, keeps="odd", numbers=_SAME, is_signless=True),
    *_declare_ops("sign", _E, 1, keeps="odd", image=(-1, 1), numbers=_WHOLE),
    *_declare_ops("abs", _E, 1, keeps="even", image=(0, inf), numbers=_SAME),
    *_declare_ops("ceil floor", _E, 1, numbers=_WHOLE),
    *_declare_ops("real imag is_finite", _E, 1),
    *_declare_ops("not popcnt count_leading_zeros", _E, 1, is_signless=True),
    *_declare_ops("round_nearest_afz round_nearest_even", _E, 1, keeps="odd", numbers=_WHOLE),
    *_declare_ops("convert reduce_precision", _E, 1, rounds=_ONCE, numbers=_STAYS),
    *_declare_ops("tan cbrt", _E, 1, rounds=_FREELY, keeps="odd", numbers=_NONE),
    *_declare_ops("sine tanh", _E, 1, rounds=_FREELY, keeps="odd", image=(-1, 1), numbers=_NONE),
    *_declare_ops("cosine", _E, 1, rounds=_FREELY, keeps="even", image=(-1, 1), numbers=_NONE),
    *_declare_ops("exponential sqrt", _E, 1, rounds=_FREELY, image=(0, inf), numbers=_NONE),
    *_declare_ops("exponential_minus_one", _E, 1, rounds=_FREELY, image=(-1, inf), numbers=_NONE),
    *_declare_ops("logistic", _E, 1, rounds=_FREELY, image=(0, 1), numbers=_NONE),
    *_declare_ops("log log_plus_one rsqrt", _E, 1, rounds=_FREELY, numbers=_NONE),
    *_declare_ops("clamp", _E, 3, numbers=_SAME),
    *_declare_ops("select", _E, 3, numbers=_SAME, is_signless=True),
    *_declare_ops(
        "chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.erf chlo.sinh chlo.tan", _E, 1, rounds=_FREELY, keeps="odd"
    ),
    *_declare_ops("chlo.acos chlo.acosh chlo.bessel_i1e chlo.digamma chlo.erf_inv chlo.erfc", _E, 1, rounds=_FREELY),
    *_declare_ops("chlo.cosh", _E, 1, rounds=_FREELY, keeps="even"),
    *_declare_ops("chlo.lgamma", _E, 1, rounds=_FREELY),
    *_declare_ops("chlo.polygamma chlo.zeta", _E, 2, rounds=_FREELY),
    *_declare_ops("chlo.square", _E, 1, rounds=_ONCE),
    *_declare_ops("chlo.conj chlo.is_inf chlo.is_neg_inf chlo.is_pos_inf", _E, 1),
    *_declare_ops("chlo.next_after", _E, 2),
    # --- elements that are moved ---
    *_declare_ops("reshape transpose reverse", _M, 1, moved=None, elements=Elements.ALL_ONCE),
    *_declare_ops("bitcast_convert", _M, 1, moved=None),
    *_declare_ops("broadcast_in_dim broadcast", _M, 1, moved=None, elements=Elements.SPREAD),
    *_declare_ops("slice", _M, 1, moved=None, elements=Elements.SOME),
    *_declare_ops("dynamic_slice", _M, moved=(0,), elements=Elements.SOME),
    *_declare_ops("gather torch_index_select", _M, 2, moved=(0,), elements=Elements.SOME),
    *_declare_ops("concatenate", _M, moved=None, elements=Elements.JOINED),
    *_declare_ops("pad", _M, 2, moved=None, elements=Elements.JOINED),
    *_declare_ops("dynamic_update_slice", _M, moved=(0, 1), elements=Elements.JOINED),
    *_declare_ops("dynamic_reshape", _M, 2, moved=(0,), elements=Elements.ALL_ONCE, is_dynamic=True),
    *_declare_ops("dynamic_broadcast_in_dim", _M, 2, moved=(0,), elements=Elements.SPREAD, is_dynamic=True),
    *_declare_ops("real_dynamic_slice", _M, 4, moved=(0,), elements=Elements.SOME, is_dynamic=True),
    *_declare_ops("dynamic_gather", _M, 3, moved=(0,), elements=Elements.SOME, is_dynamic=True),
    *_declare_ops("dynamic_pad", _M, 5, moved=(0, 1), elements=Elements.JOINED, is_dynamic=True),
    # --- several elements at once ---
    *_declare_ops("reduce reduce_window", _F, rounds=_FREELY, has_bodies=True),
    *_declare_ops("scatter", _F, rounds=_FREELY, has_bodies=True),
    *_declare_ops("select_and_scatter", _F, 3, rounds=_FREELY, has_bodies=True),
    *_declare_ops("map", Role.APPLIES, rounds=_FREELY, has_bodies=True),
    *_declare_ops("dot dot_general convolution", Role.PRODUCT, 2, rounds=_FREELY, numbers=_STAYS),
    *_declare_ops("dynamic_conv", Role.PRODUCT, 3, rounds=_FREELY, is_dynamic=True),
    *_declare_ops("einsum", Role.PRODUCT, 2, rounds=_FREELY),
    *_declare_ops("unary_einsum", Role.PRODUCT, 1, rounds=_FREELY),
    *_declare_ops("chlo.ragged_dot", Role.PRODUCT, 3, rounds=_FREELY),
    *_declare_ops("sort", Role.ORDERS, has_bodies=True, numbers=_SAME),
    *_declare_ops("chlo.top_k", Role.ORDERS, 1),
    *_declare_ops("cholesky", Role.MATRIX, 1, rounds=_FREELY),
    *_declare_ops("triangular_solve", Role.MATRIX, 2, rounds=_FREELY),
    *_declare_ops("fft", Role.TRANSFORM, 1, rounds=_FREELY),
    *_declare_ops("batch_norm_inference", Role.TRANSFORM, 5, rounds=_FREELY),
    *_declare_ops("batch_norm_training", Role.TRANSFORM, 3, rounds=_FREELY),
    *_declare_ops("batch_norm_grad", Role.TRANSFORM, 5, rounds=_FREELY),
    # --- around them ---
    *_declare_ops("while case if", Role.CONTROL, has_bodies=True),
    *_declare_ops("composite custom_call", Role.CALLS, rounds=_FREELY, is_pure=False),
    *_declare_ops("return", Role.ENDS),
    *_declare_ops("tuple", Role.TUPLES),
    *_declare_ops("optimization_barrier", Role.TUPLES, numbers=_SAME),
    *_declare_ops("get_tuple_element", Role.TUPLES, 1),
    *_declare_ops("get_dimension_size", Role.SIZES, 1),
    *_declare_ops("set_dimension_size", Role.SIZES, 2, moved=(0,)),
    *_declare_ops("rng", Role.RANDOM, 3, is_pure=False),
    *_declare_ops("rng_bit_generator", Role.RANDOM, 1),
    *_declare_ops(
        "all_gather all_to_all collective_broadcast collective_permute", Role.DEVICES, moved=None, is_pure=False
    ),
    *_declare_ops("all_reduce reduce_scatter", Role.DEVICES, rounds=_FREELY, is_pure=False, has_bodies=True),
    *_declare_ops("cross-replica-sum", Role.DEVICES, 1, rounds=_FREELY, is_pure=False),
    *_declare_ops("partition_id replica_id", Role.DEVICES, 0, is_pure=False),
    *_declare_ops("after_all create_token infeed outfeed recv send async_start async_done", Role.HOST, is_pure=False),
    *_declare_ops("uniform_quantize uniform_dequantize", Role.QUANTIZED, 1, rounds=_FREELY, is_pure=False),
)

OPS: Mapping[str, OpSpec] = {op.name: op for op in _SPECS}
"""The ops, by name."""


def ops_with(**columns: Any) -> frozenset[str]:
    """The names of the ops with these column values: `ops_with(role=Role.MOVES, is_dynamic=False)`."""
    return frozenset(name for name, op in OPS.items() if all(getattr(op, key) == what for key, what in columns.items()))


def short(names: frozenset[str]) -> frozenset[str]:
    """Names of StableHLO's ops without the dialect."""
    return frozenset(name.removeprefix("stablehlo.") for name in names if name.startswith("stablehlo."))


ELEMENTWISE = ops_with(role=Role.ELEMENTWISE)
"""Ops that compute each element of the result from the elements at the same place."""

COMBINING = frozenset(name for name, op in OPS.items() if op.identity)
"""Associative and commutative ops: add, multiply, minimum, maximum, and, or, xor."""

LAYOUT = ops_with(elements=Elements.ALL_ONCE, is_dynamic=False) | ops_with(elements=Elements.SPREAD, is_dynamic=False)
"""Ops that give every element of their operand, at other places: reshape, transpose, reverse, broadcasts."""

RESHAPING = LAYOUT - {"stablehlo.reverse"}
"""Those of them that keep the order of elements along each dim: reshape, transpose, broadcasts."""

PICKS = ops_with(elements=Elements.SOME, is_dynamic=False) - {"stablehlo.torch_index_select"}
"""Ops that give some elements of their first operand, and nothing else: slice, dynamic_slice, gather."""

MOVES = ops_with(role=Role.MOVES)

KEEPS_ELEMENTS = frozenset(name for name in MOVES if OPS[name].elements)
"""Those of them whose results hold elements of the operands as they are: all but bitcast_convert."""

KEEPS_NUMBERS = KEEPS_ELEMENTS | ops_with(numbers=Numbers.OPERANDS)
"""Ops that give numbers of their operands, perhaps with another sign."""

TO_WHOLE = ops_with(numbers=Numbers.WHOLE)
"""Ops that give whole numbers: what rounds to them in whatever direction, and sign."""

BY_ALGORITHM = ops_with(role=Role.ELEMENTWISE, rounds=Rounds.FREELY)
"""Ops on single elements that each compiler rounds in its own way."""

ANY_NAN = (
    ops_with(role=Role.ELEMENTWISE, rounds=Rounds.ONCE)
    | BY_ALGORITHM
    | ops_with(role=Role.PRODUCT)
    | TO_WHOLE
    | {"stablehlo.maximum", "stablehlo.minimum", "stablehlo.clamp"}
) - {"stablehlo.convert", "stablehlo.reduce_precision"}
"""Ops that compute, so that IEEE 754 leaves open which bits a NaN among their results has, its sign included.

It does not of those that move or choose elements, negate, or take the magnitude. A conversion is left out, so that what
it makes of a NaN is asked of its operand.
"""

_NAN_FROM = {"stablehlo.select": (1, 2), "stablehlo.convert": (0,), "stablehlo.abs": (0,), "chlo.top_k": (0,)}


def nan_operands(name: str, count: int) -> tuple[int, ...] | None:
    """The operands, of so many, of which one holds each NaN of a result; none where the op computes what it gives.

    None where nothing is known of it. Of a `select` that is among the values that it chooses from.
    """
    if name in ANY_NAN or name == "stablehlo.iota":
        return ()
    if name in KEEPS_ELEMENTS:
        moved = OPS[name].moved
        return tuple(range(count)) if moved is None else moved
    return _NAN_FROM.get(name)


def has_one_nan(numbers: NDArray[Any]) -> bool:
    """Whether each NaN among floats is the positive quiet one."""
    nan = numbers[numbers != numbers]
    return bool(nan.tobytes() == np.full(nan.shape, np.nan, nan.dtype).tobytes())


SIGNLESS = ops_with(is_signless=True) | MOVES
"""Ops that give the same bits of integers with and without a sign."""

CONSTANTS = ops_with(role=Role.CONSTANT)
PRODUCTS = ops_with(role=Role.PRODUCT)
CONTROL = ops_with(role=Role.CONTROL)

OF_DEVICES = ops_with(role=Role.DEVICES) | {"stablehlo.send", "stablehlo.recv"}
"""Ops that speak with other devices, or ask which one they run on."""

WITH_BODY = frozenset(name for name, op in OPS.items() if op.has_bodies and op.role is not Role.CONTROL)
"""Ops whose bodies compute elements, and are entered often."""

NEVER_ROUNDED = ops_with(rounds=Rounds.NEVER)
"""Ops that make no float that is rounded."""


def identity_of(name: str, element: ElementType) -> float | None:
    """The number that an associative and commutative op gives the other operand for; None where there is none.

    Of float sums it is -0.0: 0.0 + -0.0 is 0.0.
    """
    spec = OPS.get(name)
    word = "" if spec is None else spec.identity
    if element.integer_range is not None:
        least, most = element.integer_range
        return {"0": 0, "1": 1, "-1": -1 if least < 0 else most, "least": least, "greatest": most}.get(word)
    return {"0": -0.0, "1": 1.0, "least": -inf, "greatest": inf}.get(word)


# --- comparisons ---


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
"""What `compare` computes, by its direction."""

MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
"""The direction of a comparison of exchanged operands."""

OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
"""The direction that holds of integers where a comparison does not."""

# --- on which devices values lie: names of Shardy and GSPMD ---

PARTITIONS, REPLICAS = "mhlo.num_partitions", "mhlo.num_replicas"
"""Attributes of a module: how many devices it is for is their product."""

SHARDY, GSPMD, FRONTEND = "sdy.sharding", "mhlo.sharding", "mhlo.frontend_attributes"
"""Attributes that give a sharding; the last one holds those of Shardy within HLO, whose names begin with `IN_HLO`."""

IN_HLO = "xla.sdy."

MANUAL = "sdy.manual_computation"
"""The op whose body is written for one of the devices along its axes."""

TO_SHARD, TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
"""The custom calls of GSPMD between which ops are written for one of the devices."""

NOTES = frozenset({"sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier"})
NOTING_CALLS = frozenset({"Sharding", "xla.sdy.FuncResultSharding"})
"""Ops and custom calls that say of their one operand where it lies, and give it back."""
