"""The definition of gather (StableHLO specification, section gather), in terms.

full_start_index[d]  = clamp(0, index vector [k] where start_index_map[k] = d, D - slice size), else 0
full_batching_index  = the coordinate of the position in each operand_batching_dim
result element       = operand[full_start_index + full_batching_index + full_offset_index]
"""

from itertools import product

from hlo_lower.ir import mlir
from hlo_lower.verify.proof.operation import Operation
from hlo_lower.verify.proof.starts import clamped_starts
from hlo_lower.verify.proof.tensors import Place, Tensor, built
from hlo_lower.verify.proof.terms import Term, both, chosen


def gather(op: Operation) -> list[Tensor]:
    """`gather`: each element of the result is a mux of what the operand has at the places that it may come from."""
    numbers, (operand, indices) = mlir.gather_dimension_numbers(op.raw), op.operands
    element, index_element = op.element(), op.operand_element(1)
    sizes, vector = op.integers("slice_sizes"), int(numbers.index_vector_dim)
    indexed = {int(d): k for k, d in enumerate(numbers.start_index_map)}
    batched = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    batching = {int(dim): int(axis) for dim, axis in batched}
    dropped = {*numbers.collapsed_slice_dims, *batching}
    offset_dims = [int(d) for d in numbers.offset_dims]
    offset_of = dict(zip([d for d in range(operand.ndim) if d not in dropped], offset_dims, strict=True))

    def element_at(place: Place) -> Term:
        position = [c for d, c in enumerate(place) if d not in offset_dims]
        choices: list[list[tuple[int, Term]]] = []
        for dim, size in enumerate(operand.shape):
            within = place[offset_of[dim]] if dim in offset_of else 0
            if dim in batching:
                at = position[batching[dim] - (batching[dim] > vector)]
                choices.append([(at + within, True)])
            elif dim in indexed:
                where = list(position)
                if vector < indices.ndim:
                    where.insert(vector, indexed[dim])
                starts = clamped_starts(indices[tuple(where)], size - sizes[dim], index_element)
                choices.append([(start + within, there) for start, there in enumerate(starts)])
            else:
                choices.append([(within, True)])
        found: Term = None
        for choice in product(*choices):
            term = operand[tuple(at for at, _ in choice)]
            condition = both(*(there for _, there in choice))
            found = term if found is None else chosen(condition, term, found, element)
        return found

    return [built(op.shape(), element_at)]
