"""Writes with strides, for linalg: its `tensor.insert_slice` has strides, which StableHLO's slices for writing lack.

Windows without strides need no form of their own there: jaxlib's pass makes `tensor.insert_slice` of
`dynamic_update_slice` and `tensor.extract_slice` of `dynamic_slice`, both at the same clamped place, so the guards of
the one-window rules hold as they stand, and a constant place folds into static offsets.
"""

import re
from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Dialect, Offsets, Strategy
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.constant import FlatRows
from hlo_lower.lowering.scatter.window import new_values, reads_current
from hlo_lower.ops.names import COMPOSITE, SCATTER
from hlo_lower.ops.subset import MANY_WINDOWS

rules = RuleList()

INSERT_SLICE = "hlo_lower.insert_slice"
"""The composite that stands for `tensor.insert_slice` until a module leaves in linalg."""


@rules.lowers(
    SCATTER,
    subset=MANY_WINDOWS,
    offsets={Offsets.CONSTANT},
    strategy={Strategy.STRIDED},
    dialect={Dialect.LINALG},
    form="tensor.insert_slice with a stride; with a region, of it and the strided extract_slice",
)
def scatter_to_strided_insert_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower constant windows whose rows are an even distance apart where the module leaves in linalg.

        %r = stablehlo.composite "hlo_lower.insert_slice" %rows, %updates
               {offsets = [first, 0], strides = [distance, 1]}
        ->
        %r = tensor.insert_slice %updates into %rows[first, 0] [n, W] [distance, 1]

    Equal: both put update k at first + k * distance, each row once, all in bounds, and nothing else. Combined rows are
    read by the same slice before. Both policies: what is dropped was left out when the indices were solved. The
    composite's decomposition is the form of `scatter_to_strided_select`, so it can be run before it leaves. Costs the
    update; a buffer is written in place, where the decomposition passes over it.
    """
    rows, build = FlatRows(op), op.build
    assert rows.solved.pieces is not None
    piece = rows.solved.pieces[0]
    rank = len(rows.updates[0].static_shape)
    offsets, strides = [0] * rank, [1] * rank
    offsets[rows.axis], strides[rows.axis] = piece.target, piece.stride
    updates = rows.taken(piece)
    if reads_current(op):
        placed = zip(offsets, strides, updates[0].static_shape, strict=True)
        limits = [first + (count - 1) * step + 1 for first, step, count in placed]
        currents = [build.slice(v, offsets, limits, strides) for v in rows.operands]
    else:
        currents = updates
    values = new_values(op, build, currents, updates)
    pairs = zip(rows.operands, values, strict=True)
    return rows.restored([insert_slice(build, op.graph, operand, v, offsets, strides) for operand, v in pairs])


def insert_slice(
    build: Builder, graph: Graph, operand: Value, update: Value, offsets: Sequence[int], strides: Sequence[int]
) -> Value:
    """The operand with an update written at offsets + k * strides, as a composite; every place is in bounds."""
    place = f"{{offsets = {_numbers(offsets)}, strides = {_numbers(strides)}}}"
    attributes = {
        "name": mlir.parse_attribute(f'"{INSERT_SLICE}"'),
        "composite_attributes": mlir.parse_attribute(place),
        "decomposition": mlir.parse_attribute(f"@{_decomposition(graph, operand, update, offsets, strides)}"),
    }
    return build.op(COMPOSITE, [operand, update], [operand.raw.type], attributes).result()


def _numbers(values: Sequence[int]) -> str:
    return f"dense<[{', '.join(map(str, values))}]> : tensor<{len(values)}xi64>"


def read_place(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The offsets and the strides of such a composite."""
    place = node.raw.attributes["composite_attributes"]
    rank = len(node.operand(0).static_shape)
    read = (mlir.dense_value(place[name], (rank,), "i64") for name in ("offsets", "strides"))
    offsets, strides = (tuple(map(int, values)) for values in read if values is not None)
    return offsets, strides


def _decomposition(graph: Graph, operand: Value, update: Value, offsets: Sequence[int], strides: Sequence[int]) -> str:
    """The function that says what the composite does: the updates padded in between, selected where they are."""
    told = ("x".join(map(str, numbers)) for numbers in (offsets, strides))
    name = "_".join(("hlo_lower_insert_slice", *told, str(operand.raw.type), str(update.raw.type)))
    name = re.sub(r"\W+", "_", name).strip("_")
    if mlir.has_symbol(graph.module, name):
        return name
    types = [str(operand.raw.type), str(update.raw.type)]
    attributes = {
        "sym_name": mlir.parse_attribute(f'"{name}"'),
        "sym_visibility": mlir.parse_attribute('"private"'),
        "function_type": mlir.parse_attribute(f"({', '.join(types)}) -> {types[0]}"),
    }
    # A builder of its own: what it builds is no part of the lowering, it never reaches the target.
    location = mlir.unknown_location(graph.context)
    top = Builder(mlir.insert_at_end(graph.module.body), location)
    function = top.op("func.func", [], [], attributes, regions=1)
    block = Block(mlir.append_block(function.raw, 0, [operand.raw.type, update.raw.type], location))
    inner = top.at_end(block)
    target, source = block.arguments
    shape, sizes = target.static_shape, source.static_shape
    behind = [d - (o + (n - 1) * s + 1) for d, o, n, s in zip(shape, offsets, sizes, strides, strict=True)]
    between = [s - 1 for s in strides]
    spread = inner.pad(source, inner.zero(mlir.tensor_element(source.raw.type)), offsets, behind, between)
    everywhere = inner.constant(1, sizes, "i1")
    mask = inner.pad(everywhere, inner.constant(0, (), "i1"), offsets, behind, between)
    inner.op("func.return", [inner.select(mask, spread, target)], [])
    return name
