"""Slices and gathers, pulled up through what makes the large value that they pick from: no loop is needed then."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.facts.memory.dataflow import is_of_integers, size_of, type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.axes.op_axes import ELEMENTWISE, clamped_position
from hlo_lower.ops.axes.parts import clamped_start
from hlo_lower.ops.cleanup import erase_built
from hlo_lower.ops.names import BROADCAST_IN_DIM, DOT_GENERAL, DYNAMIC_SLICE, GATHER, SLICE
from hlo_lower.ops.spec import PICKS
from hlo_lower.tile.prepare.row_picks import row_pick, write_rows

MAKERS = ELEMENTWISE | {BROADCAST_IN_DIM, DOT_GENERAL}
"""Ops through which picks are pulled."""

PULLED = 1 << 12
"""Bytes from which a value is large enough that picks of it are pulled up."""


@dataclass
class PulledRecord:
    """A pick that was pulled up."""

    where: str  # its place ("llama.py:88")
    op: str  # what it is ("stablehlo.gather")
    # source, picked: the types of what it picked from, and of what it picks
    source: str
    picked: str
    ops: int = 0  # through how many ops
    is_exact: bool = True  # whether none of them is a sum of floats, whose order XLA chooses by the sizes

    def __str__(self) -> str:
        return f"{self.where}: {self.op} of {self.picked} of {self.source}, through {self.ops} ops"


def pull_up(graph: Graph, least: int = PULLED) -> tuple[PulledRecord, ...]:
    """Pull every pick of a value of at least so many bytes in the entry point as far up as it goes."""
    told: list[PulledRecord] = []
    with mlir.active(graph.context):
        for node in list(graph.main.body.nodes):
            if node.name not in PICKS:
                continue
            pull = PulledRecord(str(graph.location(node)), node.name, type_of(node.operand(0)), type_of(node.result()))
            if node.name == GATHER and _is_worth(node, least):
                _clamp(node)
            pending = [node]
            while pending:
                pick = _row_form(pending.pop())
                if _is_worth(pick, least):
                    pending += _pull_through(pick, pull)
            if pull.ops:
                told.append(pull)
    graph.forget()
    return tuple(told)


def _clamp(gather: Node) -> None:
    """Clamp the indices of a gather of one position, as it does itself (see `clamped_position`)."""
    numbers, sizes = mlir.gather_dimension_numbers(gather.raw), gather.integers("slice_sizes")
    last = [gather.operand(0).static_shape[d] - sizes[d] for d in numbers.start_index_map]
    moved = clamped_position(Builder.before(gather), gather.operand(1), last, numbers.index_vector_dim)
    gather.raw.operands[1] = moved.raw


def _row_form(pick: Node) -> Node:
    """A gather of a product, in the form in which it is pulled through one."""
    maker = pick.operand(0).node
    is_of_product = maker is not None and maker.name == DOT_GENERAL and pick.is_static
    return write_rows(pick) if is_of_product and pick.name == GATHER else pick


def _is_worth(pick: Node, least: int) -> bool:
    """Whether a pick is of a large value that is made by what it may be pulled through."""
    source = pick.operand(0)
    maker = source.node
    if maker is None or maker.name not in MAKERS or size_of(source) < least:
        return False
    values = (*maker.operands, *maker.results, *pick.operands, pick.result())
    if not all(value.is_static and mlir.dtype_of(value.element_type) is not None for value in values):
        return False
    if any("sharding" in name for node in (maker, pick) for name in mlir.attributes_of(node.raw)):
        return False
    if maker.name == DOT_GENERAL and len({use.owner.operation for use in source.raw.uses}) != 1:
        return False
    return not (maker.name == DOT_GENERAL and pick.name == GATHER and row_pick(pick) is None)


def _pull_through(pick: Node, pull: PulledRecord) -> list[Node]:
    maker, build = pick.operand(0).node, Builder.before(pick)
    assert maker is not None
    through = (
        _through_broadcast
        if maker.name == BROADCAST_IN_DIM
        else _through_dot
        if maker.name == DOT_GENERAL
        else _elementwise
    )
    result = through(build, pick, maker)
    new = sum(size_of(value) for node in build.built if node.name in (*PICKS, maker.name) for value in node.results)
    if result is None or new >= size_of(pick.operand(0)):
        erase_built(build.built, pick)
        return []
    pull.ops += 1
    pull.is_exact &= maker.name != DOT_GENERAL or is_of_integers(maker.result())
    pick.result().raw.replace_all_uses_with(result.raw)
    pick.raw.erase()
    _erase_unused(maker)
    return [node for node in build.built if node.name in PICKS and node.result().is_used]


def _elementwise(build: Builder, pick: Node, maker: Node) -> Value | None:
    """P(f(a, b)) = f(P(a), P(b))."""
    shape = maker.result().shape
    picked = {v: _same_pick(build, pick, v) if v.shape == shape else v for v in dict.fromkeys(maker.operands)}
    return _copy(build, maker, [picked[v] for v in maker.operands], pick.result().static_shape)


def _same_pick(build: Builder, pick: Node, value: Value) -> Value:
    """The pick, of another value of the operand's shape; starts clamped (see `picks`)."""
    if pick.name != GATHER:
        found = in_place(build, pick, value, tuple(range(len(value.shape))))
        assert found is not None
        return found
    raw_type = mlir.tensor_type(pick.result().shape, mlir.tensor_element(value.raw.type))
    return build.copy_on(pick, [value, *pick.operands[1:]], [raw_type], {}).result()


def _through_broadcast(build: Builder, pick: Node, maker: Node) -> Value | None:
    """The broadcast of what is picked along the dims that its operand has."""
    source, dims, shape = maker.operand(0), maker.integers("broadcast_dimensions"), maker.result().static_shape
    if list(dims) != sorted(dims):
        return None
    kept = [(n, d) for n, d in zip(source.static_shape, dims, strict=True) if n == shape[d]]
    value = build.reshape(source, [n for n, _ in kept])
    found = of_some_dims(build, pick, value, [d for _, d in kept])
    return None if found is None else build.broadcast(found[0], pick.result().static_shape, found[1])


def _through_dot(build: Builder, pick: Node, maker: Node) -> Value | None:
    """The dot of operands picked along their batch and free dims."""
    numbers = mlir.dot_dimension_numbers(maker.raw)
    batching = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))
    summed = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    place, picked = len(batching[0]), list[Value]()
    for value, batch, gone in zip(maker.operands, batching, summed, strict=True):
        alike: list[int | None] = []
        for dim in range(len(value.shape)):
            is_free = dim not in batch and dim not in gone
            alike.append(batch.index(dim) if dim in batch else place if is_free else None)
            place += is_free
        found = in_place(build, pick, value, tuple(alike))
        if found is None:
            return None
        picked.append(found)
    return _copy(build, maker, picked, pick.result().static_shape)


def _copy(build: Builder, maker: Node, operands: list[Value], shape: tuple[int, ...]) -> Value:
    raw_type = mlir.tensor_type(shape, mlir.tensor_element(maker.result().raw.type))
    return build.copy_on(maker, operands, [raw_type], {}).result()


def _erase_unused(node: Node) -> None:
    """Erase a maker that nothing reads any more, and those before it that only it read."""
    dead: dict[Node, None] = {}
    pending = [node]
    while pending:
        maker = pending.pop()
        if maker.name in MAKERS and maker not in dead and all(user in dead for user in maker.result().users):
            dead[maker] = None
            pending += [found for found in (value.node for value in maker.operands) if found is not None]
    for maker in dead:
        maker.raw.erase()


Dims = tuple[int | None, ...]
"""For each dim of a tensor the dim of a pick's operand that it is alike."""


def in_place(build: Builder, pick: Node, value: Value, dims: Dims) -> Value | None:
    """A pick of a tensor, whose dims stay in their places; None of a gather that does more than take rows."""
    if pick.name == SLICE:
        return _slice_dims(build, pick, value, dims)
    if pick.name == DYNAMIC_SLICE:
        return _sliced_at(build, pick, value, dims)
    rows = row_pick(pick)
    if rows is None or rows.dim not in dims:
        return None if rows is None else value
    if not set(rows.batch) <= set(dims):
        return None
    places = [dims.index(d) for d in rows.named]
    batch = tuple(dims.index(d) for d in rows.batch)
    vector = mlir.gather_dimension_numbers(pick.raw).index_vector_dim
    if places != sorted(places):
        return None
    return build.gather_rows(value, pick.operand(1), dims.index(rows.dim), batch, vector)


def _slice_dims(build: Builder, pick: Node, value: Value, dims: Dims) -> Value:
    starts, limits, strides = (pick.integers(name) for name in ("start_indices", "limit_indices", "strides"))
    runs = [
        (0, n, 1) if d is None else (starts[d], limits[d], strides[d])
        for n, d in zip(value.static_shape, dims, strict=True)
    ]
    first, last, step = ([run[k] for run in runs] for k in range(3))
    return build.slice(value, first, last, step)


def _sliced_at(build: Builder, pick: Node, value: Value, dims: Dims) -> Value:
    """Starts are clamped here, too: XLA adds up the starts of nested slices without (`subset.nested_slices`)."""
    wanted, found = pick.integers("slice_sizes"), pick.operands[1:]
    element = found[0].element_type if found else "i32"
    starts: list[Value] = []
    sizes: list[int] = []
    for extent, dim in zip(value.static_shape, dims, strict=True):
        size = extent if dim is None else wanted[dim]
        if dim is None or size == extent:
            starts.append(build.constant(0, (), element))
        else:
            starts.append(clamped_start(build, found[dim], extent - size))
        sizes.append(size)
    return value if tuple(sizes) == value.shape else build.dynamic_slice(value, starts, sizes)


def of_some_dims(build: Builder, pick: Node, value: Value, dims: Sequence[int]) -> tuple[Value, tuple[int, ...]] | None:
    """A pick of a tensor that has some dims of the operand, in order: what is picked, and its dims in the result.

    None of a gather whose indices count along dims of which those that are left do not follow each other in its index
    vectors, and of one with batching dims.
    """
    if pick.name != GATHER:
        found = in_place(build, pick, value, tuple(dims))
        return None if found is None else (found, tuple(dims))
    numbers = mlir.gather_dimension_numbers(pick.raw)
    if numbers.operand_batching_dims:
        return None
    windows = [d for d in range(len(pick.operand(0).shape)) if d not in numbers.collapsed_slice_dims]
    offset = dict(zip(windows, numbers.offset_dims, strict=True))
    sizes = [pick.integers("slice_sizes")[d] for d in dims]
    shape = pick.result().static_shape
    columns = [k for k, d in enumerate(numbers.start_index_map) if d in dims]
    if not columns:  # the same window for each position: where nothing is counted it begins at 0
        part = build.slice(value, [0] * len(sizes), sizes)
        places = tuple(offset[d] for d in dims if d in offset)
        return build.reshape(part, [shape[r] for r in places]), places
    indices = _columns(build, pick.operand(1), columns, len(numbers.start_index_map), numbers.index_vector_dim)
    if indices is None:
        return None
    places = tuple(r for r in range(len(shape)) if r not in offset.values() or any(offset.get(d) == r for d in dims))
    order = {d: k for k, d in enumerate(dims)}
    told = _numbers(
        [places.index(offset[d]) for d in dims if d in offset],
        [order[d] for d in numbers.collapsed_slice_dims if d in order],
        [order[d] for d in numbers.start_index_map if d in order],
        numbers.index_vector_dim,
    )
    # The flag of sorted indices is not kept: of some columns it need not be true.
    return build.gather(value, indices, told, sizes, [shape[r] for r in places]), places


def _columns(build: Builder, indices: Value, columns: Sequence[int], count: int, vector: int) -> Value | None:
    """The columns of index vectors that are left; None where they do not follow each other."""
    if len(columns) == count:
        return indices
    if list(columns) != list(range(columns[0], columns[-1] + 1)):
        return None
    shape = indices.static_shape
    starts = [columns[0] if d == vector else 0 for d in range(len(shape))]
    limits = [columns[-1] + 1 if d == vector else n for d, n in enumerate(shape)]
    return build.slice(indices, starts, limits)


def _numbers(offset: Sequence[int], collapsed: Sequence[int], counted: Sequence[int], vector: int) -> str:
    told = f"offset_dims = {list(offset)}, collapsed_slice_dims = {list(collapsed)}, "
    return f"{told}start_index_map = {list(counted)}, index_vector_dim = {vector}"
