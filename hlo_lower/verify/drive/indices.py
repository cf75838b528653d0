"""What is asked of indices beside results: starts in bounds, promises of flags; and windows as single elements."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.drive.input_roles import columns_of
from hlo_lower.verify.judges.silent_attributes import SORTED, UNIQUE
from hlo_lower.verify.read.program import terminator

# --- in bounds ---
#
# Gathers and scatters that must stay in bounds: for a consumer that does not look where they point (trap 51).
#
# XLA clamps the starts of a gather by itself and drops what a scatter writes outside, so a module that lacks a clamp or
# a guard computes the same there as one that has it. What is asked here is therefore not about results: whether every
# start lies inside, whatever the arguments are. Starts lie inside just where a clamp is the identity; so the module,
# with an operation with effects before each of these ops that reads its starts, is compared with the same one in which
# those operations read the starts clamped. In both a loop reads what it carries unchanged where that comes from. What
# the flags of an operation promise is asked in the same way: an operation reads where a promise is broken, and in the
# other module that it is nowhere.

INDEXED = (names.GATHER, names.SCATTER, names.DYNAMIC_GATHER)


def with_told_starts(text: str, ops: Collection[str], *, clamped: bool, in_loops: bool = True) -> str:
    """The same module with an operation with effects before every such op of static shape that reads its starts, and
    before each that is marked (`PROMISED`) one that reads where its promises are broken.

    Args:
      text: the module.
      ops: the names of the two ops, one of them, or none.
      clamped: whether it reads them clamped to where the windows are inside, and every promise kept.
      in_loops: whether those in loops and branches are looked at, too; a loop without any has no effect.
    """
    module = mlir.parse_module(text)
    left_out = set[str]() if in_loops else _functions_in_loops(module)
    asked, _ = mlir.find_named(module.operation, INDEXED)
    for loop in mlir.find_named(module.operation, (names.WHILE,))[0]:
        _read_around(loop)
    with mlir.active(module.context):
        for op in asked:
            is_inside = not in_loops and _function_of(op) in (None, *left_out)
            if is_inside or not all(mlir.is_static(v.type) for v in op.operands):
                continue
            for column, last in _columns(op) if op.name in ops else ():
                _tell(op, _clamp(op, column, last) if clamped else column)
            for broken in broken_promises(op):
                _tell(op, kept_promise(op, broken) if clamped else broken)
    return mlir.print_module(module, locations=True)


def _read_around(loop: mlir.RawOperation) -> None:
    """Let a loop read what it carries as it is where that comes from, as constants of the function around it.

    Equal: a body that returns its argument leaves there, in every turn, what the loop was given.
    """
    condition, body = (region.blocks[0] for region in loop.regions)
    returned = terminator(body).operands
    for k, given in enumerate(loop.operands):
        if returned[k] == body.arguments[k]:
            body.arguments[k].replace_all_uses_with(given)
            condition.arguments[k].replace_all_uses_with(given)


def _function_of(op: mlir.RawOperation) -> str | None:
    """The function whose own body an op stands in; None where it stands in a region of another op."""
    parent = op.parent
    if parent is None or parent.name != "func.func":
        return None
    return mlir.symbol_name(parent.attributes["sym_name"])


def _functions_in_loops(module: mlir.RawModule) -> set[str]:
    """The functions that are called within loops and branches, also by one another."""
    found, _ = mlir.find_named(module.operation, ("func.call",))
    calls = [(_function_of(op), mlir.symbol_name(op.attributes["callee"])) for op in found]
    found = {callee for caller, callee in calls if caller is None}
    while more := {callee for caller, callee in calls if caller in found} - found:
        found |= more
    return found


def _tell(op: mlir.RawOperation, starts: mlir.RawValue) -> None:
    mlir.create_operation(
        names.CUSTOM_CALL,
        [starts],
        [],
        {"call_target_name": mlir.string_attribute("starts"), "has_side_effect": mlir.parse_attribute("true")},
        location=op.location,
        insertion_point=mlir.insert_before(op),
    )


def _columns(op: mlir.RawOperation) -> list[tuple[mlir.RawValue, int]]:
    """The starts of a gather or scatter along each dim, and the last one from which a window is inside.

    Each is told by itself: how far a column reaches is known of what it is made of, which others along it are not.
    """
    number, vector, columns = columns_of(op)
    starts = op.operands[number]
    shape, dtype = mlir.static_shape(starts.type), mlir.dtype_of(mlir.tensor_element_name(starts.type))
    if dtype is None or dtype.kind not in "iu":
        return []
    largest = int(np.iinfo(dtype).max)
    last = [min(column.size - column.window, largest) for column in columns]
    if len(columns) < 2 or vector == len(shape):
        return [(starts, one) for one in last]
    maker = None if mlir.is_block_argument(starts) else starts.owner
    if maker is not None and maker.name == names.CONCATENATE:
        parts = list(maker.operands)
        is_along = mlir.integer_of(maker.attributes["dimension"]) == vector
        if is_along and all(mlir.static_shape(part.type)[vector] == 1 for part in parts):
            return list(zip(parts, last, strict=True))
    low, high, beside = [0] * len(shape), list(shape), OpsBeside(op)
    found: list[mlir.RawValue] = []
    for k in range(len(columns)):
        low[vector], high[vector] = k, k + 1
        found.append(beside.slice(starts, low, high))
    return list(zip(found, last, strict=True))


def _clamp(op: mlir.RawOperation, starts: mlir.RawValue, last: int) -> mlir.RawValue:
    """Insert a clamp to 0 and what is at most as large before an op."""
    beside = OpsBeside(op)
    low, high = (beside.splat(n, starts.type) for n in (0, last))
    return beside.op("clamp", [low, starts, high], starts.type)


# --- promises of flags ---
#
# What the flags of scatters and gathers promise of their indices: that no element is written twice, that they ascend.
#
# XLA on a CPU computes the same whatever they say, and a consumer's kernel may not: so a false one shows in no result
# here, and is looked at by itself.


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
        if op.name != names.SCATTER:
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
        written = _element_numbers(beside, starts, components)
        if mlir.static_shape(written.type)[1] > 1:
            found.append(beside.compare("EQ", _neighbours(beside, _ascending(beside, written))))
    return found


def kept_promise(op: mlir.RawOperation, broken: mlir.RawValue) -> mlir.RawValue:
    """What stands for a promise that is kept: the same tensor, false everywhere."""
    return OpsBeside(op).constant(np.zeros(mlir.static_shape(broken.type), bool), broken.type)


def _components(beside: OpsBeside, starts: _Starts) -> list[mlir.RawValue]:
    """The starts along each dim, `tensor<batches x windows>`, the windows in their order."""
    shape = mlir.static_shape(starts.value.type)
    vector = starts.vector_dim
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
        found.append(beside.reshape(beside.transpose(one, [kept.index(d) for d in order]), [batches, windows]))
    return found


def _descends(beside: OpsBeside, components: list[mlir.RawValue]) -> mlir.RawValue:
    """Where the windows behind come first, the last component counting least."""
    found: mlir.RawValue | None = None
    for one in reversed(components):
        sides = _neighbours(beside, one)
        more = beside.compare("GT", sides)
        if found is not None:
            alike = beside.compare("EQ", sides)
            more = beside.op("or", [more, beside.op("and", [alike, found], found.type)], found.type)
        found = more
    assert found is not None
    return found


def _element_numbers(beside: OpsBeside, starts: _Starts, components: list[mlir.RawValue]) -> mlir.RawValue:
    """The number of each element that a window writes along the indexed dims. Elements out of bounds get distinct
    negative numbers."""
    batches, windows = mlir.static_shape(components[0].type)
    # A window as wide as its dim lies in one place: what it writes along it tells no two of them apart.
    reach = [1 if window == size else window for window, size in zip(starts.windows, starts.sizes, strict=True)]
    places = np.indices(reach).reshape(len(reach), -1)
    shape = [batches, windows, places.shape[1]]
    kind, truth = mlir.tensor_type(shape, "i64"), mlir.tensor_type(shape, "i1")
    last = [0 if window == size else size - 1 for window, size in zip(starts.windows, starts.sizes, strict=True)]
    flat = beside.splat(0, kind)
    inside = beside.compare("EQ", [flat, flat])
    for k, one in enumerate(components):
        wide = beside.op("convert", [one], mlir.tensor_type([batches, windows], "i64"))
        wide = beside.broadcast(wide, kind, [0, 1])
        along = beside.constant(places[k].astype(np.int64), mlir.tensor_type(places[k].shape, "i64"))
        along = beside.broadcast(along, kind, [2])
        at = beside.op("add", [wide, along], kind)
        for direction, bound in (("GE", 0), ("LE", last[k])):
            within = beside.compare(direction, [at, beside.splat(bound, kind)])
            inside = beside.op("and", [inside, within], truth)
        step = beside.splat(prod(starts.sizes[k + 1 :]), kind)
        flat = beside.op("add", [flat, beside.op("multiply", [at, step], kind)], kind)
    order = beside.op("iota", [], mlir.tensor_type([prod(shape)], "i64"), iota_dimension=mlir.i64_attribute(0))
    outside = beside.op("not", [beside.reshape(order, shape)], kind)
    return beside.reshape(beside.op("select", [inside, flat, outside], kind), [batches, prod(shape[1:])])


def _ascending(beside: OpsBeside, rows: mlir.RawValue) -> mlir.RawValue:
    """Each row, sorted."""
    how = {"dimension": mlir.i64_attribute(1), "is_stable": mlir.parse_attribute("true")}
    return beside.op_with_body(names.SORT, [rows], rows.type, lambda b, x: b.compare("LT", x), **how)


def _neighbours(beside: OpsBeside, rows: mlir.RawValue) -> list[mlir.RawValue]:
    """All elements of each row but the last, and those behind them."""
    batches, count = mlir.static_shape(rows.type)
    return [beside.slice(rows, [0, first], [batches, count - 1 + first]) for first in (0, 1)]


# --- windows as single elements ---
#
# Scatters of windows written out as scatters of single elements: so XLA runs what the specification says.
#
# Out of bounds XLA drops a whole window and the specification only those of its elements that are outside. Of windows
# of one element the two say the same:
#
#     scatter %operand, %indices: 5x1, %updates: 5x3               // rows of 3 positions of a vector
#  ->
#     scatter %operand, %starts + iota: 5x3x1, %updates: 5x3       // 15 positions
#
# Where scatters of the second version may overhang under `oob="spec"`, both versions are written so, and then nobody
# drops anything else than the specification. Right: element w of the window at start s is at s + w, added in i64, where
# nothing overflows (a ui64 start is cut to 2**62, which is out of bounds, too). Positions follow each other as they
# did: those of the scatter outermost, those within a window innermost.


FAR = 1 << 62
"""A start beyond every tensor, to which another of its size may be added."""


def overhanging(module: mlir.RawModule) -> list[mlir.RawOperation]:
    """The scatters of static shapes whose windows may lie partly inside: wider than 1 where they are indexed."""
    scatters, _ = mlir.find_named(module.operation, (names.SCATTER,))
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
        found = build.splat(0, mlir.tensor_type(turned, "i64"))
        if dim in within:
            found = build.i64("iota", [], turned, iota_dimension=f"{within[dim]} : i64")
        if dim in starts:
            start = build.broadcast(starts[dim], mlir.tensor_type(turned, "i64"), range(positions))
            found = build.i64("add", [found, start], turned)
        columns.append(build.reshape(found, [*turned, 1]))
    last = len(turned)
    vectors = build.i64("concatenate", columns, [*turned, len(columns)], dimension=f"{last} : i64")
    if order != sorted(order):
        updates = [build.transpose(value, order) for value in updates]
    types = [result.type for result in scatter.results]
    point = mlir.insert_before(scatter)
    new = mlir.clone_on(scatter, point, scatter.location, [*operands[:count], vectors, *updates], types)
    new.attributes["scatter_dimension_numbers"] = mlir.parse_attribute(_numbers(numbers, placed, last))
    new.attributes["indices_are_sorted"] = mlir.parse_attribute("false")
    mlir.replace_results(scatter, new.results)
    scatter.erase()


def _starts(build: _Before, indices: mlir.RawValue, numbers: mlir.ScatterNumbers) -> dict[int, mlir.RawValue]:
    """For each operand dim that is indexed its starts, as i64, in the shape of the scatter positions."""
    shape, vector = mlir.static_shape(indices.type), numbers.index_vector_dim
    if mlir.tensor_element_name(indices.type) == "ui64":
        indices = build.op("minimum", [indices, build.splat(FAR, indices.type)], indices.type)
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
