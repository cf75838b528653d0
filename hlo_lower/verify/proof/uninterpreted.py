"""Functions of which only this is known: the same operation on the same operands gives the same result, bit for bit.

Of one element (a float sum, an exponential): one symbol for an operation, its attributes and its types. Of whole
tensors (a convolution, a float `reduce` or `dot_general`, whose order of operations the specification leaves open): one
symbol for each element of the result, applied to all elements of the operands.
"""

from collections.abc import Sequence

from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.tensors import Tensor, built
from hlo_lower.verify.proof.terms import Term, lifted, lowered


def applied(symbol: str, arguments: Sequence[tuple[Term, ProofType]], result: ProofType) -> Term:
    """A function symbol of scalars; the types are part of the symbol."""
    name = f"{symbol}({', '.join(e.name for _, e in arguments)}) -> {result.name}"
    if not arguments:
        return z3.Const(name, result.sort)
    function = z3.Function(name, *(e.sort for _, e in arguments), result.sort)
    return lowered(function(*(lifted(term, e) for term, e in arguments)), result)


def of_tensors(
    symbol: str, operands: Sequence[tuple[Tensor, ProofType]], shape: Sequence[int], result: ProofType
) -> Tensor:
    """A function of whole tensors."""
    told = f"{symbol} of {[tensor.shape for tensor, _ in operands]}"
    arguments = [(term, element) for tensor, element in operands for term in tensor.flat]
    return built(shape, lambda place: applied(f"{told} at {place}", arguments, result))
