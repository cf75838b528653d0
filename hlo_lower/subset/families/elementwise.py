"""Ops that compute each element of the result from the elements at the same place."""

from collections.abc import Sequence

from hlo_lower.graph import Node
from hlo_lower.subset.axis_link import AxisLink, Boundary
from hlo_lower.subset.rules import subset_rules

UNARY = (
    *("abs", "cbrt", "ceil", "convert", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one"),
    *("floor", "imag", "is_finite", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "real"),
    *("reduce_precision", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
BINARY = (
    *("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power"),
    *("remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor"),
)
CHLO = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma", "erf", "erf_inv"),
    *("erfc", "is_inf", "is_neg_inf", "is_pos_inf", "lgamma", "next_after", "polygamma", "sinh", "square", "tan"),
    "zeta",
)
ELEMENTWISE = frozenset(
    [f"stablehlo.{name}" for name in (*UNARY, *BINARY, "select", "clamp")] + [f"chlo.{name}" for name in CHLO]
)


@subset_rules.axes(*sorted(ELEMENTWISE))
def elementwise(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim is an axis of all operands and the result; a scalar (of select, of clamp) is taken whole.

    Right: element p of the result depends on the elements p of the operands alone.
    """
    shape = node.result().shape
    dims = range(len(shape))
    return [AxisLink(tuple(d if value.shape == shape else None for value in node.operands), (d,)) for d in dims]
