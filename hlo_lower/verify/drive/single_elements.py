"""Scatters of windows written out as scatters of single elements: so XLA runs what the specification says.

Out of bounds XLA drops a whole window and the specification only those of its elements that are outside. Of windows of
one element the two say the same:

    scatter %operand, %indices: 5x1, %updates: 5x3               // rows of 3 positions of a vector
 ->
    scatter %operand, %starts + iota: 5x3x1, %updates: 5x3       // 15 positions

Where scatters of the second version may overhang under `oob="spec"`, both versions are written so, and then nobody
drops anything else than the specification. Right: element w of the window at start s is at s + w, added in i64, where
nothing overflows (a ui64 start is cut to 2**62, which is out of bounds, too). Positions follow each other as they did:
those of the scatter outermost, those within a window innermost.
"""

from collections.abc import Iterable, Sequence

from hlo_lower.ir import mlir
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.drive.input_roles import columns_of

FAR = 1 << 62
"""A start beyond every tensor, to which another of its size may be added."""


def overhanging(module: mlir.RawModule) -> list[mlir.RawOperation]:
    """The scatters of static shapes whose windows may lie partly inside: wider than 1 where they are indexed."""
    scatters, _ = mlir.named(module.operation, ("stablehlo.scatter",))
    return [
        op
        for op in scatters
        if all(mlir.is_static(v.type) for v in op.operands) and any(c.window != 1 for c in columns_of(op)[2])
    ]


def with_single_elements(module: mlir.RawModule) -> str:
    """The text of a module with every such scatter written out; the module is changed."""
    with mlir.active(module.context):
        for scatter in overhanging(module):
            _write_out(scatter)
    return mlir.print_module(module, locations=True)


def _window_dims(numbers: mlir.ScatterNumbers, rank: int) -> list[int]:
    """The operand's dim of each window dim of the updates."""
    gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    return [d for d in range(rank) if d not in gone]


class _Before(OpsBeside):
    """Ops of i64 in front of a scatter."""

    def i64(self, name: str, operands: list[mlir.RawValue], shape: Sequence[int], **how: str) -> mlir.RawValue:
        """The result of an op."""
        return self.op(name, operands, mlir.tensor_type(shape, "i64"), **how)

    def filled(self, value: int, shape: Sequence[int], element: str) -> mlir.RawValue:
        """A constant of one value."""
        made = mlir.tensor_type(shape, element)
        return self.op("constant", [], made, value=f"dense<{value}> : {made}")


def _write_out(scatter: mlir.RawOperation) -> None:
    build, count, numbers = _Before(scatter), len(scatter.results), mlir.ScatterNumbers.of(scatter)
    operands = list(scatter.operands)
    updates = operands[count + 1 :]
    shape, rank = mlir.static_shape(updates[0].type), len(mlir.static_shape(operands[0].type))
    windows = list(numbers.update_window_dims)
    order = [d for d in range(len(shape)) if d not in windows] + windows
    turned = [shape[d] for d in order]
    positions = len(order) - len(windows)
    starts = _starts(build, operands[count], numbers)
    within = dict(zip(_window_dims(numbers, rank), range(positions, len(order)), strict=True))
    placed = [d for d in range(rank) if d not in numbers.input_batching_dims]
    columns: list[mlir.RawValue] = []
    for dim in placed:
        found = build.filled(0, turned, "i64")
        if dim in within:
            found = build.i64("iota", [], turned, iota_dimension=f"{within[dim]} : i64")
        if dim in starts:
            start = build.i64("broadcast_in_dim", [starts[dim]], turned, broadcast_dimensions=_array(range(positions)))
            found = build.i64("add", [found, start], turned)
        columns.append(build.reshape(found, [*turned, 1]))
    last = len(turned)
    vectors = build.i64("concatenate", columns, [*turned, len(columns)], dimension=f"{last} : i64")
    if order != sorted(order):
        types = [mlir.tensor_type(turned, mlir.tensor_element(v.type)) for v in updates]
        how = {"permutation": _array(order)}
        updates = [build.op("transpose", [v], kind, **how) for v, kind in zip(updates, types, strict=True)]
    types = [result.type for result in scatter.results]
    point = mlir.insert_before(scatter)
    new = mlir.clone_on(scatter, point, scatter.location, [*operands[:count], vectors, *updates], types)
    new.attributes["scatter_dimension_numbers"] = mlir.parse_attribute(_numbers(numbers, placed, last))
    new.attributes["indices_are_sorted"] = mlir.parse_attribute("false")
    for old, result in zip(scatter.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    scatter.erase()


def _array(values: Iterable[int]) -> str:
    told = ", ".join(map(str, values))
    return f"array<i64: {told}>" if told else "array<i64>"


def _starts(build: _Before, indices: mlir.RawValue, numbers: mlir.ScatterNumbers) -> dict[int, mlir.RawValue]:
    """For each operand dim that is indexed its starts, as i64, in the shape of the scatter positions."""
    shape, vector = mlir.static_shape(indices.type), numbers.index_vector_dim
    if mlir.tensor_element_name(indices.type) == "ui64":
        indices = build.op("minimum", [indices, build.filled(FAR, shape, "ui64")], indices.type)
    wide = build.i64("convert", [indices], shape)
    found: dict[int, mlir.RawValue] = {}
    for column, dim in enumerate(numbers.scatter_dims_to_operand_dims):
        part = wide
        if vector < len(shape):
            low = [column if d == vector else 0 for d in range(len(shape))]
            high = [column + 1 if d == vector else n for d, n in enumerate(shape)]
            part = build.slice(wide, low, high)
        found[dim] = build.reshape(part, [n for d, n in enumerate(shape) if d != vector])
    return found


def _numbers(numbers: mlir.ScatterNumbers, placed: Sequence[int], last: int) -> str:
    """Every dim that is no batching dim is indexed, and none is left to a window."""
    vector = numbers.index_vector_dim
    batching = [d - (d > vector) for d in numbers.scatter_indices_batching_dims]
    told = f"inserted_window_dims = {list(placed)}, input_batching_dims = {list(numbers.input_batching_dims)}"
    told += f", scatter_indices_batching_dims = {batching}, scatter_dims_to_operand_dims = {list(placed)}"
    return f"#stablehlo.scatter<{told}, index_vector_dim = {last}>"
