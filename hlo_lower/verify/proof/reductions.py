"""Operations that combine elements with each other: `reduce`, `dot_general`, and `map`, which combines none.

The specification leaves the order of a `reduce` open. Where the region is one operation for which the order does not
matter, the elements are combined in row-major order. Any other, and every sum of floats, is an uninterpreted function
of all of its operands' elements.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.proof import integers
from hlo_lower.verify.proof.elements import ElementKind, ProofType
from hlo_lower.verify.proof.elementwise import TRUTHS, converted
from hlo_lower.verify.proof.operation import Operation, element_name
from hlo_lower.verify.proof.tensors import Place, Tensor, built
from hlo_lower.verify.proof.terms import Term
from hlo_lower.verify.proof.uninterpreted import of_tensors

_INTEGERS = {f"stablehlo.{n}": n for n in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")}
_TRUTHS = {f"stablehlo.{n}": TRUTHS[n] for n in ("and", "or", "add", "multiply", "maximum", "minimum", "xor")}

Folding = Callable[[Term, Term], Term]


def reduce(op: Operation) -> list[Tensor]:
    """`reduce`."""
    count = len(op.operands) // 2
    foldings = _foldings(op.raw.regions[0].blocks[0], [op.element(k) for k in range(count)])
    if foldings is None:
        return whole(op)
    dims = op.integers("dimensions")
    return [
        _folded(op.operands[k], op.operands[count + k][()], dims, op.shape(k), folding)
        for k, folding in enumerate(foldings)
    ]


def _folded(value: Tensor, initial: Term, dims: Sequence[int], shape: Sequence[int], fold: Folding) -> Tensor:
    kept = [d for d in range(value.ndim) if d not in dims]

    def element_at(place: Place) -> Term:
        at = dict(zip(kept, place, strict=True))
        found = initial
        for along in product(*(range(value.shape[d]) for d in dims)):
            at.update(zip(dims, along, strict=True))
            found = fold(found, value[tuple(at[d] for d in range(value.ndim))])
        return found

    return built(shape, element_at)


def _foldings(block: mlir.RawBlock, elements: Sequence[ProofType]) -> list[Folding] | None:
    """For each operand what combines two of its elements in any order; None where the region is something else."""
    arguments, operations = list(block.arguments), [o.operation for o in block.operations]
    returned = list(operations[-1].operands)
    found: list[Folding] = []
    for k, element in enumerate(elements):
        made = [o for o in operations[:-1] if o.results[0] == returned[k]]
        own = [arguments[k], arguments[len(elements) + k]]
        if len(made) != 1 or list(made[0].operands) not in (own, own[::-1]):
            return None
        table = {ElementKind.TRUTH: _TRUTHS, ElementKind.INTEGER: _INTEGERS, ElementKind.FLOAT: {}}[element.kind]
        if made[0].name not in table:
            return None
        found.append(
            _TRUTHS[made[0].name] if element.kind is ElementKind.TRUTH else _of_integers(made[0].name, element)
        )
    return found


def _of_integers(name: str, element: ProofType) -> Folding:
    compute = integers.OPERATIONS[_INTEGERS[name]]
    return partial(compute, element)


def whole(op: Operation) -> list[Tensor]:
    """An operation as an uninterpreted function of whole tensors."""
    program, table, captured = op.evaluator.program, op.world.table, dict.fromkeys(op.op.captured.values())
    around = {value: table.of(("captured", place)) for place, value in enumerate(captured)}
    regions = [table.region(program, body, around, 0) for body in op.op.bodies]
    types = [str(value.type) for value in (*op.raw.operands, *op.raw.results)]
    outer = [(op.scope[v], op.world.element(element_name(program.types[v]))) for v in captured]
    told = f"{op.name} {op.attributes} : {', '.join(types)} {regions}"
    operands = [*zip(op.operands, op.elements, strict=True), *outer]
    return [of_tensors(f"{told} result {k}", operands, op.shape(k), op.element(k)) for k in range(len(op.raw.results))]


def dot_general(op: Operation) -> list[Tensor]:
    """`dot_general`: of integers as a sum of products in the result's type."""
    left, right = op.operands
    element = op.element()
    if element.kind is not ElementKind.INTEGER or any(e.kind is not ElementKind.INTEGER for e in op.elements):
        return whole(op)
    numbers = mlir.dot_dimension_numbers(op.raw)
    sides = [
        _ordered(left, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        _ordered(right, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ]
    batches = len(list(numbers.lhs_batching_dimensions))
    contracted = len(list(numbers.lhs_contracting_dimensions))
    free = sides[0].ndim - batches - contracted
    add, multiply = integers.OPERATIONS["add"], integers.OPERATIONS["multiply"]

    def element_at(place: Place) -> Term:
        shared, first, second = place[:batches], place[batches : batches + free], place[batches + free :]
        found: Term = 0
        for along in np.ndindex(*sides[0].shape[sides[0].ndim - contracted :]):
            terms = (sides[0][(*shared, *first, *along)], sides[1][(*shared, *second, *along)])
            wide = [converted(t, e, element) for t, e in zip(terms, op.elements, strict=True)]
            found = add(element, found, multiply(element, *wide))
        return found

    return [built(op.shape(), element_at)]


def _ordered(value: Tensor, batching: Sequence[int], contracting: Sequence[int]) -> Tensor:
    """A side with its batching dims first and its contracting dims last."""
    first, last = list(map(int, batching)), list(map(int, contracting))
    return value.transpose([*first, *(d for d in range(value.ndim) if d not in (*first, *last)), *last])


def map_(op: Operation) -> list[Tensor]:
    """`map`: its region on each place's elements."""

    def element_at(place: Place) -> Term:
        return op.evaluator.scalars(op.region(), [tensor[place] for tensor in op.operands], op.scope)[0]

    return [built(op.shape(), element_at)]
