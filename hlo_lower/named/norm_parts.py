"""What norms are made of: means over rows, a mean of squares, and a product with what is left of a root."""

from dataclasses import dataclass
from math import prod

from hlo_lower.named.arithmetic import square_of, uncast, with_constant
from hlo_lower.named.axis_atoms import View, leaves
from hlo_lower.named.rows import Reduced, reduced
from hlo_lower.named.terms import Term


@dataclass(frozen=True)
class Mean:
    """The mean of a value over rows, or its sum.

    Attributes:
      of: what is summed, seen with the atoms of where the mean is used, and new ones along what is summed.
      total: the sum.
      divided: whether it is divided by how many there are.
    """

    of: View
    total: Reduced
    divided: bool


def mean_of(view: View) -> Mean | None:
    """The mean, or the sum, that a value is, beneath layout and conversions."""
    root = view.root()
    scaled = root
    count: float | None = None
    for op in ("divide", "multiply"):
        found = with_constant(root.term, op)
        if found is not None and (op == "multiply" or root.term.operands[0] is found[0]):
            count = float(found[1]) if op == "divide" else 1 / float(found[1]) if found[1] else None
            scaled = root.on(found[0])
            break
    total = reduced(scaled, "add")
    if total is None:
        return None
    elements = prod(atom.extent for atom in leaves(total.new))
    if count is None:
        return Mean(total.operand, total, False)
    return Mean(total.operand, total, True) if abs(count - elements) <= 1e-3 * elements * _slack(root.term) else None


def _slack(term: Term) -> float:
    """Counts are exact in f32; a reciprocal in bf16 is off by up to a part in 256."""
    return 0.01 if term.element in ("f32", "f64") else 8


def square(term: Term) -> Term | None:
    """The value of which a term is the square, or the square of the absolute value, beneath conversions."""
    found = square_of(uncast(term))
    if found is None:
        return None
    return found.operands[0] if found.op == "abs" else found
