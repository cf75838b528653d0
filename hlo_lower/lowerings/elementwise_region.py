"""A region of scalars computed on whole tensors: what a map, a reduction or a window does to each element, to all at
once."""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.graph import Block, Builder, Node, Value
from hlo_lower.registry import DoesNotApply

ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "atan2", "bitcast_convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert"),
        *("cosine", "count_leading_zeros", "divide", "exponential", "exponential_minus_one", "floor", "imag"),
        *("is_finite", "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or"),
        *("popcnt", "power", "real", "reduce_precision", "remainder", "round_nearest_afz", "round_nearest_even"),
        *("rsqrt", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "sqrt"),
        *("subtract", "tan", "tanh", "xor"),
    )
)
"""Ops that do the same to each element, and to scalars."""


def on_tensors(build: Builder, place: Node, block: Block, values: Sequence[Value]) -> list[Value]:
    """What a region of scalars returns, for each element of tensors of one shape.

    Args:
      build: in front of the place.
      place: the op of which it is a region.
      block: the region; what it takes from around it, and its constants, are broadcast.
      values: for each argument a tensor.

    Raises:
      DoesNotApply: it holds an op that is not elementwise.
    """
    shape = values[0].static_shape
    became: dict[Value, Value] = dict(zip(block.arguments, values, strict=True))

    def spread(value: Value) -> Value:
        if value not in became:
            became[value] = build.broadcast(value, shape)
        return became[value]

    *inner, end = block.nodes
    for node in inner:
        if node.name == "stablehlo.constant":
            became[node.result()] = build.broadcast(build.repeat_before(place, node, {}).result(), shape)
            continue
        if node.name not in ELEMENTWISE:
            raise DoesNotApply(f"its region holds {node.name}, which is not elementwise")
        types = [mlir.tensor_type(shape, mlir.tensor_element(result.raw.type)) for result in node.results]
        made = build.clone(node, [spread(value) for value in node.operands], types)
        build.repeated.add(made)
        became.update(zip(node.results, made.results, strict=True))
    return [spread(value) for value in end.operands]
