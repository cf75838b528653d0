"""Operations element by element: of truths and integers as they are computed, of floats as uninterpreted functions."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hlo_lower.verify.proof import integers
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import TRUTH, ElementKind, ProofType
from hlo_lower.verify.proof.operation import Operation
from hlo_lower.verify.proof.solver import z3
from hlo_lower.verify.proof.tensors import Tensor, built, mapped, selected
from hlo_lower.verify.proof.terms import (
    Term,
    at_most,
    below,
    both,
    chosen,
    either,
    equal,
    is_known,
    lifted,
    opposite,
    simplified,
)
from hlo_lower.verify.proof.uninterpreted import applied


def differing(a: Term, b: Term) -> Term:
    """Whether one of two truths holds, and not the other."""
    return opposite(equal(a, b, TRUTH))


TRUTHS: Mapping[str, Callable[..., Term]] = {
    "and": both,
    "or": either,
    "not": opposite,
    "xor": differing,
    "add": either,
    "multiply": both,
    "maximum": either,
    "minimum": both,
}
"""On truths an addition is `or` and a multiplication is `and` (specification, add and multiply)."""


def elementwise(op: Operation) -> list[Tensor]:
    """One of `ELEMENTWISE`, on whatever type; those that have no meaning of their own below are uninterpreted."""
    elements = op.elements
    if elements[0].kind is ElementKind.TRUTH and op.name in TRUTHS:
        return [mapped(op.shape(), TRUTHS[op.name], *op.operands)]
    if elements[0].kind is ElementKind.INTEGER and op.name in integers.OPERATIONS:
        return [mapped(op.shape(), partial(integers.OPERATIONS[op.name], elements[0]), *op.operands)]
    return [_uninterpreted(op, op.name, op.element())]


def _uninterpreted(op: Operation, symbol: str, result: ProofType) -> Tensor:
    return _mapped_symbol(op, f"{symbol} {op.attributes}", op.elements, result)


def _mapped_symbol(op: Operation, symbol: str, elements: Sequence[ProofType], result: ProofType) -> Tensor:
    """A function symbol on each place's terms."""

    def at_place(*terms: Term) -> Term:
        return applied(symbol, list(zip(terms, elements, strict=True)), result)

    return mapped(op.shape(), at_place, *op.operands)


def compare(op: Operation) -> list[Tensor]:
    """`compare`: integers and truths by value, floats by an uninterpreted relation for each direction."""
    element, direction = op.operand_element(), op.keyword("comparison_direction")
    if element.kind is ElementKind.FLOAT:
        kind = op.keyword("compare_type")
        symbol = f"compare {direction} {'' if kind in ('FLOAT', 'NOTYPE') else kind}"
        return [_mapped_symbol(op, symbol, [element, element], TRUTH)]
    relations = _RELATIONS if element.kind is ElementKind.INTEGER else _OF_TRUTHS
    if direction not in relations:
        raise Beyond(f"compare {direction} of {element.name}")
    relation = relations[direction]

    def holds(a: Term, b: Term) -> Term:
        return relation(a, b, element)

    return [mapped(op.shape(), holds, *op.operands)]


_RELATIONS: Mapping[str, Callable[[Term, Term, ProofType], Term]] = {
    "EQ": equal,
    "NE": lambda a, b, e: opposite(equal(a, b, e)),
    "LT": below,
    "LE": at_most,
    "GT": lambda a, b, e: below(b, a, e),
    "GE": lambda a, b, e: at_most(b, a, e),
}
_OF_TRUTHS: Mapping[str, Callable[[Term, Term, ProofType], Term]] = {
    "EQ": equal,
    "NE": lambda a, b, e: opposite(equal(a, b, e)),
    "LT": lambda a, b, _: both(opposite(a), b),
    "LE": lambda a, b, _: either(opposite(a), b),
    "GT": lambda a, b, _: both(a, opposite(b)),
    "GE": lambda a, b, _: either(a, opposite(b)),
}


def select(op: Operation) -> list[Tensor]:
    """`select`; a predicate of rank 0 is for all elements."""
    condition, yes, no = op.operands
    return [selected(condition, yes, no, op.element())]


def convert(op: Operation) -> list[Tensor]:
    """`convert`: between integers and truths by value, from and to floats uninterpreted."""
    return [converted_tensor(op.operands[0], op.operand_element(), op.element())]


def converted_tensor(tensor: Tensor, source: ProofType, target: ProofType) -> Tensor:
    """A tensor in another element type."""
    return mapped(tensor.shape, partial(converted, source=source, target=target), tensor)


def converted(term: Term, source: ProofType, target: ProofType) -> Term:
    """One element in another element type."""
    if source == target:
        return term
    if ElementKind.FLOAT in (source.kind, target.kind):
        return applied("convert", [(term, source)], target)
    if source.kind is ElementKind.TRUTH:
        return chosen(term, target.declared.wrapped(1), 0, target)
    if target.kind is ElementKind.TRUTH:
        return opposite(equal(term, 0, source))
    return integers.converted(term, source, target)


def bitcast_convert(op: Operation) -> list[Tensor]:
    """`bitcast_convert` between types of one width, floats are bit-vectors in a module that has one; or of integers
    into parts along a last dim, the lowest bits first, and back."""
    source, target = op.operand_element(), op.element()
    [tensor] = op.operands
    if source.kind is target.kind is ElementKind.INTEGER and source.width != target.width:
        if source.width > target.width:
            return [built(op.shape(), lambda place: _part(tensor[place[:-1]], place[-1], source, target))]
        return [built(op.shape(), lambda place: _joined(list(tensor[place]), source, target))]
    if source.width != target.width or not source.width:
        raise Beyond(f"bitcast_convert from {source.name} to {target.name}")
    return [mapped(op.shape(), partial(_wrapped, target=target), op.operands[0])]


def _part(term: Term, number: int, source: ProofType, target: ProofType) -> Term:
    """Some bits of an integer."""
    low = number * target.width
    return simplified(z3.Extract(low + target.width - 1, low, lifted(term, source)), target)


def _joined(terms: list[Term], source: ProofType, target: ProofType) -> Term:
    """The integer of these bits, the lowest first."""
    return simplified(z3.Concat(*(lifted(term, source) for term in reversed(terms))), target)


def _wrapped(term: Term, target: ProofType) -> Term:
    return target.declared.wrapped(term) if is_known(term) and target.kind is not ElementKind.TRUTH else term
