"""Transposes in one form while a module is StableHLO: none where what is turned can be had that way.

what                                        its one form
transpose of a transpose or broadcast       one of them; of dims of extent 1 alone a reshape
transpose of elementwise ops, pads, windows the ops of transposes, where all of these go: into another transpose, a
                                            broadcast, a convolution or a product that nothing else reads
pad or reduce_window of a transpose         the transposed one of what is turned
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.linalg.convolution_forms import convolution_turned, letters_of
from hlo_lower.lowering.linalg.moved_forms import filled_with, is_read_once, is_scalar, maker_named, scalar_at, stays
from hlo_lower.lowering.linalg.open_sizes import SPREADS, broadcast, reshape, sizes_of, type_of
from hlo_lower.lowering.linalg.reduction_forms import is_in_order
from hlo_lower.ops.names import CONVOLUTION, DOT_GENERAL, PAD, REDUCE_WINDOW, TRANSPOSE
from hlo_lower.ops.spec import ELEMENTWISE

BY_DIM: Mapping[str, tuple[str, ...]] = {
    PAD: ("edge_padding_low", "edge_padding_high", "interior_padding"),
    REDUCE_WINDOW: ("window_dimensions", "window_strides", "base_dilations", "window_dilations"),
}
"""Ops of a value and a scalar that do the same whatever the order of the dims, and the attributes that have an entry
for each; a `padding` has two."""


def transposed_once(build: Builder, node: Node) -> Value | None:
    """What is turned, without a transpose, or with one only."""
    value, permutation = node.operand(0), node.integers("permutation")
    shape = sizes_of(node.result())
    long = [dim for dim in permutation if value.shape[dim] != 1]
    if long == sorted(long):
        return reshape(build, value, shape)
    return _turn_value(build, value, permutation) if 0 in shape or _turns(value, permutation, node) else None


def _turns(value: Value, permutation: Sequence[int], reader: Node) -> bool:
    """Whether a value can be had turned without a transpose, or with one only where it is one."""
    source = value.node
    if source is None:
        return False
    if source.name in (TRANSPOSE, *SPREADS) or is_scalar(value):
        return True
    if not (is_read_once(value) or (reader.name == TRANSPOSE and _is_read_turned(value, permutation))):
        return False
    if source.name == DOT_GENERAL:
        return reader.name != TRANSPOSE  # a product in linalg gives its result as the one transpose behind it has it
    if source.name == CONVOLUTION:
        return True
    if source.name in ELEMENTWISE:
        return all(_turns(one, permutation, source) for one in source.operands if not stays(one, source))
    if source.name not in BY_DIM or len(source.operands) != 2:
        return False
    return _is_in_order(source, permutation) and _turns(source.operand(0), permutation, source)


def _is_read_turned(value: Value, permutation: Sequence[int]) -> bool:
    """Whether a value is read by transposes to one order alone."""
    return all(user.name == TRANSPOSE and user.integers("permutation") == tuple(permutation) for user in value.users)


def _is_in_order(node: Node, permutation: Sequence[int]) -> bool:
    """Whether windows keep the order of their elements, where it matters, once their dims are turned."""
    if node.name != REDUCE_WINDOW:
        return True
    window = node.integers("window_dimensions")
    return is_in_order(node, [dim for dim in permutation if window[dim] != 1])


def _turn_value(build: Builder, value: Value, permutation: Sequence[int]) -> Value | None:
    """A value that turns, turned."""
    source, sizes = value.node, sizes_of(value)
    shape = [sizes[dim] for dim in permutation]
    assert source is not None
    if source.name == TRANSPOSE:
        before = source.integers("permutation")
        return build.transpose(source.operand(0), [before[dim] for dim in permutation])
    if (scalar := scalar_at(build, value)) is not None:
        return filled_with(build, scalar, shape)
    if source.name in SPREADS:
        dims = source.integers("broadcast_dimensions")
        return broadcast(build, source.operand(0), shape, [permutation.index(dim) for dim in dims])
    if source.name == CONVOLUTION:
        return convolution_turned(build, source, [letters_of(source)[2][dim] for dim in permutation])
    if source.name in ELEMENTWISE:
        given = [one if stays(one, source) else _turned_or_not(build, one, permutation) for one in source.operands]
        return build.clone(source, given, [type_of(shape, value)]).result()
    if source.name not in BY_DIM:
        return None
    return _along(build, source, _turned_or_not(build, source.operand(0), permutation), permutation)


def _turned_or_not(build: Builder, value: Value, permutation: Sequence[int]) -> Value:
    return _turn_value(build, value, permutation) or build.transpose(value, permutation)


def _along(build: Builder, node: Node, value: Value, permutation: Sequence[int]) -> Value:
    """The op of another value, whose dim k is dim permutation[k] of its own."""
    attributes = {
        name: mlir.dense_i64([node.integers(name)[dim] for dim in permutation])
        for name in BY_DIM[node.name]
        if node.attribute(name) is not None
    }
    if node.attribute("padding") is not None:
        around = np.array(node.padding(len(permutation))).reshape(-1, 2)[list(permutation)]
        attributes["padding"] = mlir.parse_attribute(f"dense<{around.tolist()}> : tensor<{len(permutation)}x2xi64>")
    shape = [node.result().shape[dim] for dim in permutation]
    raw_type = mlir.tensor_type(shape, node.result().element_type)
    return build.copy_on(node, [value, node.operand(1)], [raw_type], attributes).result()


def dim_by_dim_of_sources(build: Builder, node: Node) -> Value | None:
    """A pad or reduce_window of what is turned for it alone, turned."""
    turn = maker_named(node.operand(0), TRANSPOSE)
    if len(node.operands) != 2 or turn is None or not is_read_once(node.operand(0)):
        return None
    permutation = turn.integers("permutation")
    back = [permutation.index(dim) for dim in range(len(permutation))]
    return (
        build.transpose(_along(build, node, turn.operand(0), back), permutation) if _is_in_order(node, back) else None
    )
