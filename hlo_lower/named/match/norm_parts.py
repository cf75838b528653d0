"""What norms are made of: means over rows, a mean of squares, and a product with what is left of a root."""

from dataclasses import dataclass
from math import prod
from typing import Any

from hlo_lower.named.match.arithmetic import square_of, uncast, with_constant
from hlo_lower.named.match.axis_atoms import View, leaves
from hlo_lower.named.match.rows import Reduced, reduced
from hlo_lower.named.match.terms import Term, is_rounded


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
    divisor: Any = None
    for op in ("divide", "multiply"):
        found = with_constant(root.term, op)
        if found is not None and (op == "multiply" or root.term.operands[0] is found[0]):
            divisor, scaled = (op, found[1]), root.on(found[0])
            break
    total = reduced(scaled, "add")
    if total is None:
        return None
    if divisor is None:
        return Mean(total.operand, total, False)
    op, number = divisor
    elements = prod(atom.extent for atom in leaves(total.new))
    is_count = elements and is_rounded(number, elements if op == "divide" else 1 / elements)
    return Mean(total.operand, total, True) if is_count else None


def square(term: Term) -> Term | None:
    """The value of which a term is the square, or the square of the absolute value, beneath conversions."""
    found = square_of(uncast(term))
    if found is None:
        return None
    return found.operands[0] if found.op == "abs" else found
