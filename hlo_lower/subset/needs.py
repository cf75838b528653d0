"""Which part of an operand a part of a result needs, and which part of a result depends on a part of an operand."""

from hlo_lower.graph import Node
from hlo_lower.subset.axis_link import Boundary, OpAxes
from hlo_lower.subset.rules import SubsetRules
from hlo_lower.subset.tensor_subset import StridedRange, TensorSubset


def needed(rules: SubsetRules, node: Node, part: TensorSubset) -> tuple[TensorSubset, ...]:
    """For each operand a part that is enough to compute a part of the first result.

    Along a dim that no axis links, an operand is needed whole.
    """
    found = [TensorSubset.full(value.static_shape) for value in node.operands]
    axes = rules.of(node)
    if isinstance(axes, Boundary):
        return tuple(found)
    for dim in (d for d in range(len(part.shape)) if not part.is_whole(d)):
        axis = axes.of_result(dim)
        for number, mine in enumerate(axis.operands if axis else ()):
            if mine is not None and part.shape[dim] == found[number].shape[mine]:
                found[number] = found[number].along(mine, part.axes[dim])
    return tuple(found)


def dependent(rules: SubsetRules, node: Node, number: int, part: TensorSubset) -> TensorSubset:
    """The part of the first result outside of which nothing depends on this part of an operand."""
    result = node.result()
    found = TensorSubset.full(result.static_shape)
    axes = rules.of(node)
    if isinstance(axes, Boundary):
        return found
    assert isinstance(axes, OpAxes)
    for dim in (d for d in range(len(part.shape)) if not part.is_whole(d)):
        axis = axes.of_operand(number, dim)
        mine = axis.results[0] if axis else None
        if mine is not None and found.shape[mine] == part.shape[dim] and isinstance(part.axes[dim], StridedRange):
            found = found.along(mine, part.axes[dim])
    return found
