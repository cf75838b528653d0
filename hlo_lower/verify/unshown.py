"""What is asked of an operation and does not show on a CPU: the precision of products, of functions, of random bits.

XLA computes all products of one type alike there, and takes an algorithm of its own choice for random bits where none
is asked for. A second version that asks for less would be equal, and would not be on another device.
"""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.verify.program import Op, ops_within

PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"})
PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")

ASKED = ("algorithm", "rng_algorithm", "result_accuracy")
"""Attributes that the second piece has as the first one has them."""


def asks_for_less(first: Sequence[Op], second: Sequence[Op]) -> str:
    """Why two pieces are not compared: the second one asks for less of what the first one does, too; "" else."""
    mine, theirs = (ops_within(ops) for ops in (first, second))
    own, other = ([_precision(op) for op in ops if op.name in PRODUCTS] for ops in (mine, theirs))
    if own and other and min(other) < min(own):
        return f"a product of {PRECISIONS[min(other)]} precision in the place of {PRECISIONS[min(own)]}"
    for name in ASKED:
        asked, given = ({(_family(op), _asked(op, name)) for op in ops if _family(op)} for ops in (mine, theirs))
        known = {family for family, _ in asked}
        if less := [what for family, what in given - asked if family in known]:
            return f"{name} = {less[0] or 'none'}, which no operation of that kind has in the first version"
    return ""


def _family(op: Op) -> str:
    return "product" if op.name in PRODUCTS else op.name if len(op.results) else ""


def _asked(op: Op, name: str) -> str:
    return next((str(value) for key, value in op.attributes if key == name), "")


def _precision(op: Op) -> int:
    """The least precision of the operands."""
    given = op.raw.attributes
    told = list(given["precision_config"]) if "precision_config" in given else []
    return min((PRECISIONS.index(mlir.enum_value(one)) for one in told), default=0)
