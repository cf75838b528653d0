"""The definition of scatter, in terms: StableHLO specification, section scatter, under both out-of-bounds policies.

Scatter positions are taken in row-major order, a whole window each. The window of a position starts, in each operand
dim, at its index vector's component for the dim, at its coordinate in a batching dim, and at 0 elsewhere. A result
element t is combined with the update element w of the window where start + w = t in all dims, which is one w at most.
Under "spec" that is all: what lies outside the operand is no result element. Under "xla" only starts in [0, D - W] of
every dim count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.elementwise import converted_tensor
from hlo_lower.verify.proof.operation import Operation, element_name
from hlo_lower.verify.proof.starts import starts_at
from hlo_lower.verify.proof.tensors import Place, Tensor, places
from hlo_lower.verify.proof.terms import Term, both, chosen, either, is_known, opposite


@dataclass(frozen=True)
class _Numbers:
    """The dimension numbers of a scatter, as dicts from operand dims.

    Attributes:
      scatter_dims: the dims of the updates that make the position.
      window_dim: the updates' dim of each operand dim that the window has.
      component: the number of an indexed dim in the index vector.
      batching: the indices' dim of each batching dim.
      vector: the index vector dim.
    """

    scatter_dims: tuple[int, ...]
    window_dim: dict[int, int]
    component: dict[int, int]
    batching: dict[int, int]
    vector: int

    @classmethod
    def of(cls, raw: mlir.RawOperation, rank: int, updates_rank: int) -> "_Numbers":
        numbers = mlir.scatter_dimension_numbers(raw)
        window = list(numbers.update_window_dims)
        batching = dict(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        kept = [d for d in range(rank) if d not in numbers.inserted_window_dims and d not in batching]
        return cls(
            tuple(d for d in range(updates_rank) if d not in window),
            dict(zip(kept, window, strict=True)),
            {d: k for k, d in enumerate(numbers.scattered_dims_to_operand_dims)},
            batching,
            int(numbers.index_vector_dim),
        )


def scatter(op: Operation) -> list[Tensor]:
    """`scatter`, under the policy of the proof's setting."""
    count = len(op.raw.results)
    elements = [op.element(k) for k in range(count)]
    currents = [_promoted(op, k, op.element(k)) for k in range(count)]
    region = [op.world.element(element_name(a.type)) for a in op.raw.regions[0].blocks[0].arguments]
    updates = [_promoted(op, count + 1 + k, region[count + k]) for k in range(count)]
    numbers = _Numbers.of(op.raw, currents[0].ndim, updates[0].ndim)
    writers: dict[Place, list[Term]] = {}
    for position in places([updates[0].shape[d] for d in numbers.scatter_dims]):
        op.world.left()
        window = _Window(op, numbers, position, updates[0].shape, currents[0].shape)
        changed = [tensor.copy() for tensor in currents]
        for target in places(currents[0].shape):
            hits = window.hits(target)
            hit = either(*(condition for condition, _ in hits))
            if hit is False:
                continue
            writers.setdefault(target, []).append(hit)
            given = [_update(hits, tensor, element) for tensor, element in zip(updates, region[count:], strict=True)]
            new = op.evaluator.scalars(op.region(), [*(t[target] for t in currents), *given], op.scope)
            for tensor, term, element in zip(changed, new, elements, strict=True):
                tensor[target] = chosen(hit, term, tensor[target], element)
        currents = changed
    if op.world.trusts_flags and str(op.raw.attributes["unique_indices"]) == "true":
        op.world.assume(_no_two(writers))
    return currents


def _promoted(op: Operation, number: int, target: ProofType) -> Tensor:
    """An operand in the type that the region has for it."""
    source, tensor = op.operand_element(number), op.operands[number]
    return tensor if source == target else converted_tensor(tensor, source, target)


def _update(hits: Sequence[tuple[Term, Place]], updates: Tensor, element: ProofType) -> Term:
    """The update element that hits; one of them does."""
    found = updates[hits[0][1]]
    for condition, place in hits[1:]:
        found = chosen(condition, updates[place], found, element)
    return found


def _no_two(writers: dict[Place, list[Term]]) -> list[Term]:
    """That no result element is written by two positions."""
    pairs = (pair for hits in writers.values() for pair in combinations(hits, 2))
    clashes = (opposite(both(*pair)) for pair in pairs)
    return [clash for clash in clashes if not is_known(clash)]


class _Window:
    """The window of one position: where it may start, and what it then hits."""

    def __init__(
        self, op: Operation, numbers: _Numbers, position: Place, updates: Sequence[int], operand: Sequence[int]
    ) -> None:
        count = len(op.raw.results)
        indices, self._element = op.operands[count], op.operand_element(count)
        self._numbers, self._drops_whole, self._shape = numbers, op.world.oob == "xla", tuple(operand)
        self._coordinates = dict(zip(numbers.scatter_dims, position, strict=True))
        self._updates_rank = len(updates)
        self._sizes = [updates[numbers.window_dim[d]] if d in numbers.window_dim else 1 for d in range(len(operand))]
        self._known: dict[tuple[int, int], Term] = {}
        self._starts: list[Term | None] = []
        self._bases: list[int] = []
        for dim in range(len(operand)):
            start: Term | None = None
            if dim in numbers.component:
                where = list(position)
                if numbers.vector < indices.ndim:
                    where.insert(numbers.vector, numbers.component[dim])
                start = indices[tuple(where)]
            self._starts.append(start)
            axis = numbers.batching.get(dim)
            self._bases.append(0 if axis is None else position[axis - (axis > numbers.vector)])

    def hits(self, target: Place) -> list[tuple[Term, Place]]:
        """The update elements that may land on a result element, each with the condition that it does."""
        found: list[tuple[Term, Place]] = []
        for within in np.ndindex(*self._sizes):
            condition = both(
                *(self._starts_there(d, t - w) for d, (t, w) in enumerate(zip(target, within, strict=True)))
            )
            if condition is not False:
                found.append((condition, self._place(within)))
        return found

    def _starts_there(self, dim: int, start: int) -> Term:
        """Whether the window starts at a place of a dim, and is kept if it does."""
        if self._drops_whole and not 0 <= start <= self._shape[dim] - self._sizes[dim]:
            return False
        if (dim, start) not in self._known:
            self._known[dim, start] = starts_at(self._starts[dim], start - self._bases[dim], self._element)
        return self._known[dim, start]

    def _place(self, within: Sequence[int]) -> Place:
        """The place in the updates of an element of the window."""
        window = {axis: within[dim] for dim, axis in self._numbers.window_dim.items()}
        return tuple({**window, **self._coordinates}[d] for d in range(self._updates_rank))
