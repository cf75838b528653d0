"""What the flags of scatters and gathers promise of their indices: that no element is written twice, that they ascend.

XLA on a CPU computes the same whatever they say, and a consumer's kernel may not: so a false one shows in no result
here, and is looked at by itself.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.judges.silent_attributes import SORTED, UNIQUE

PROMISED = "mhlo.promised"
"""An attribute of an operation whose flags are to be looked at: which ones."""


@dataclass(frozen=True)
class _Starts:
    """Where the windows of a scatter or gather start.

    Attributes:
      value: the index operand.
      vector_dim: its dim of index vectors, its rank where they are implicit.
      batching_dims: its dims that go along with dims of the operand.
      dims: of the operand, for each component.
      sizes: of these dims.
      windows: how far a window reaches along them.
    """

    value: mlir.RawValue
    vector_dim: int
    batching_dims: tuple[int, ...]
    dims: tuple[int, ...]
    sizes: tuple[int, ...]
    windows: tuple[int, ...]

    @classmethod
    def of(cls, op: mlir.RawOperation) -> "_Starts":
        shape = mlir.static_shape(op.operands[0].type)
        if op.name != "stablehlo.scatter":
            read = mlir.gather_dimension_numbers(op)
            dims, batching = read.start_index_map, read.start_indices_batching_dims
            sizes = tuple(shape[d] for d in dims)
            return cls(op.operands[1], read.index_vector_dim, batching, dims, sizes, (1,) * len(dims))
        numbers, count = mlir.ScatterNumbers.of(op), len(op.results)
        updates = mlir.static_shape(op.operands[count + 1].type)
        gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        kept = [d for d in range(len(shape)) if d not in gone]
        extents = dict(zip(kept, (updates[d] for d in numbers.update_window_dims), strict=True))
        dims = numbers.scatter_dims_to_operand_dims
        return cls(
            op.operands[count],
            numbers.index_vector_dim,
            numbers.scatter_indices_batching_dims,
            dims,
            tuple(shape[d] for d in dims),
            tuple(extents.get(d, 1) for d in dims),
        )


def broken_promises(op: mlir.RawOperation) -> list[mlir.RawValue]:
    """For each promise of a scatter or gather a tensor in front of it that is true where it is broken.

    Of fewer than two windows there is none.

    Args:
      op: of static shape; the context is active.
    """
    flags = mlir.symbol_name(op.attributes[PROMISED]).split() if PROMISED in op.attributes else ()
    if not flags:
        return []
    starts, beside = _Starts.of(op), OpsBeside(op)
    components = _components(beside, starts)
    if not components:
        return []
    found: list[mlir.RawValue] = []
    if SORTED in flags and mlir.static_shape(components[0].type)[1] > 1:
        found.append(_descends(beside, [components[k] for k in np.argsort(starts.dims)]))
    if UNIQUE in flags:
        written = _written(beside, starts, components)
        if mlir.static_shape(written.type)[1] > 1:
            found.append(beside.compare("EQ", _neighbours(beside, _ascending(op, written)), compare_type=SIGNED))
    return found


def kept_promise(op: mlir.RawOperation, broken: mlir.RawValue) -> mlir.RawValue:
    """What stands for a promise that is kept: the same tensor, false everywhere."""
    return OpsBeside(op).constant(np.zeros(mlir.static_shape(broken.type), bool), broken.type)


SIGNED = "#stablehlo<comparison_type SIGNED>"


def _components(beside: OpsBeside, starts: _Starts) -> list[mlir.RawValue]:
    """The starts along each dim, `tensor<batches x windows>`, the windows in their order."""
    shape = mlir.static_shape(starts.value.type)
    vector, element = starts.vector_dim, mlir.tensor_element(starts.value.type)
    kept = [d for d in range(len(shape)) if d != vector]
    order = [*starts.batching_dims, *(d for d in kept if d not in starts.batching_dims)]
    batches = prod(shape[d] for d in starts.batching_dims)
    windows = prod(shape[d] for d in kept if d not in starts.batching_dims)
    found: list[mlir.RawValue] = []
    for k in range(len(starts.dims)):
        one = starts.value
        if vector < len(shape):
            low, high = [0] * len(shape), list(shape)
            low[vector], high[vector] = k, k + 1
            one = beside.reshape(beside.slice(one, low, high), [shape[d] for d in kept])
        turned = mlir.tensor_type([shape[d] for d in order], element)
        permutation = mlir.dense_i64([kept.index(d) for d in order])
        one = beside.op("transpose", [one], turned, permutation=permutation)
        found.append(beside.reshape(one, [batches, windows]))
    return found


def _descends(beside: OpsBeside, components: list[mlir.RawValue]) -> mlir.RawValue:
    """Where the windows behind come first, the last component counting least."""
    found: mlir.RawValue | None = None
    for one in reversed(components):
        sides, how = _neighbours(beside, one), _compared(one)
        more = beside.compare("GT", sides, compare_type=how)
        if found is not None:
            alike = beside.compare("EQ", sides, compare_type=how)
            more = beside.op("or", [more, beside.op("and", [alike, found], found.type)], found.type)
        found = more
    assert found is not None
    return found


def _written(beside: OpsBeside, starts: _Starts, components: list[mlir.RawValue]) -> mlir.RawValue:
    """The numbers of all elements that windows write along the indexed dims; what lies outside has negative ones, each
    its own."""
    batches, windows = mlir.static_shape(components[0].type)
    # A window as wide as its dim lies in one place: what it writes along it tells no two of them apart.
    reach = [1 if window == size else window for window, size in zip(starts.windows, starts.sizes, strict=True)]
    places = np.indices(reach).reshape(len(reach), -1)
    shape = [batches, windows, places.shape[1]]
    kind, truth = mlir.tensor_type(shape, "i64"), mlir.tensor_type(shape, "i1")
    last = [0 if window == size else size - 1 for window, size in zip(starts.windows, starts.sizes, strict=True)]
    flat = _filled(beside, kind, 0)
    inside = beside.compare("EQ", [flat, flat], compare_type=SIGNED)
    for k, one in enumerate(components):
        wide = beside.op("convert", [one], mlir.tensor_type([batches, windows], "i64"))
        wide = beside.op("broadcast_in_dim", [wide], kind, broadcast_dimensions=mlir.dense_i64([0, 1]))
        along = beside.constant(places[k].astype(np.int64), mlir.tensor_type(places[k].shape, "i64"))
        along = beside.op("broadcast_in_dim", [along], kind, broadcast_dimensions=mlir.dense_i64([2]))
        at = beside.op("add", [wide, along], kind)
        for direction, bound in (("GE", 0), ("LE", last[k])):
            within = beside.compare(direction, [at, _filled(beside, kind, bound)], compare_type=SIGNED)
            inside = beside.op("and", [inside, within], truth)
        step = _filled(beside, kind, prod(starts.sizes[k + 1 :]))
        flat = beside.op("add", [flat, beside.op("multiply", [at, step], kind)], kind)
    order = beside.op("iota", [], mlir.tensor_type([prod(shape)], "i64"), iota_dimension=mlir.i64_attribute(0))
    outside = beside.op("not", [beside.reshape(order, shape)], kind)
    return beside.reshape(beside.op("select", [inside, flat, outside], kind), [batches, prod(shape[1:])])


def _filled(beside: OpsBeside, kind: mlir.RawType, number: int) -> mlir.RawValue:
    one = beside.constant(np.asarray(number, np.int64), mlir.tensor_type((), "i64"))
    return beside.op("broadcast_in_dim", [one], kind, broadcast_dimensions=mlir.dense_i64([]))


def _ascending(op: mlir.RawOperation, rows: mlir.RawValue) -> mlir.RawValue:
    """Each row, sorted."""
    attributes = {"dimension": mlir.i64_attribute(1), "is_stable": mlir.parse_attribute("true")}
    sort = mlir.create_operation(
        "stablehlo.sort",
        [rows],
        [rows.type],
        attributes,
        regions=1,
        location=op.location,
        insertion_point=mlir.insert_before(op),
    )
    scalar = mlir.tensor_type((), mlir.tensor_element(rows.type))
    block = mlir.append_block(sort, 0, [scalar, scalar], op.location)
    end = mlir.insert_at_end(block)
    given, truth = list(block.arguments), mlir.tensor_type((), "i1")
    how = {
        "comparison_direction": mlir.parse_attribute("#stablehlo<comparison_direction LT>"),
        "compare_type": mlir.parse_attribute(SIGNED),
    }
    less = mlir.create_operation("stablehlo.compare", given, [truth], how, location=op.location, insertion_point=end)
    mlir.create_operation("stablehlo.return", list(less.results), [], location=op.location, insertion_point=end)
    return sort.results[0]


def _neighbours(beside: OpsBeside, rows: mlir.RawValue) -> list[mlir.RawValue]:
    """All elements of each row but the last, and those behind them."""
    batches, count = mlir.static_shape(rows.type)
    return [beside.slice(rows, [0, first], [batches, count - 1 + first]) for first in (0, 1)]


def _compared(rows: mlir.RawValue) -> str:
    return f"#stablehlo<comparison_type {element_type(mlir.tensor_element_name(rows.type)).compare_type}>"
