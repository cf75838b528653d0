"""Pull slices and gathers up, through what makes the large value that they pick from: no loop is needed for that.

    %d = multiply (convert %table), (broadcast %scales) : 65536x256;  %rows = gather %d, %ids : 1024x256
    ->  %rows = multiply (convert (gather %table, %ids)), (broadcast (gather %scales, %ids)) : 1024x256

Right, with P a pick: element r of its result is element q(r) of its operand, q known from starts, indices, sizes and
extents alone, not from the elements. For each kind of maker:

- **elementwise**: element q of f(a, b) is f(a[q], b[q]); so P(f(a, b)) = f(P(a), P(b)). All have one shape, so that q,
  clamping included, is the same for each. A scalar (of select, of clamp) is taken whole.
- **broadcast_in_dim**: element q of it is the element of its operand at the positions of q along the dims that it comes
  from, and 0 along those of size 1 that are expanded. Along each of the former the extent, the size of the window and
  the start are those of P, so q along it is; q along the others does not matter, whatever P does there.
- **dot_general**: element (batch, left, right) is a sum over the contracting dims, which P does not see and which are
  kept whole: P(dot(a, b)) is the dot of a picked along its batch and free dims and b picked along its own. The sum has
  the same terms; a compiler may choose its order by the sizes.

A pull is made only where what is picked of the operands and the smaller result together are less than what was picked
from, and through a dot only where nothing else uses it. Whether the module needs less by that, XLA says
(`hlo_lower.tile.plan_search`).
"""

from dataclasses import dataclass

from hlo_lower.facts.memory.dataflow import is_of_integers, size_of, type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.axes.elementwise import ELEMENTWISE
from hlo_lower.ops.axes.indexing import clamped_position
from hlo_lower.ops.cleanup import erase_built
from hlo_lower.ops.names import BROADCAST_IN_DIM, DOT_GENERAL, GATHER
from hlo_lower.ops.spec import PICKS
from hlo_lower.tile.find.picks import in_place, of_some_dims, taken_dim

MAKERS = ELEMENTWISE | {BROADCAST_IN_DIM, DOT_GENERAL}
"""Ops through which picks are pulled."""

PULLED = 1 << 12
"""Bytes from which a value is large enough that picks of it are pulled up."""


@dataclass
class PulledRecord:
    """A pick that was pulled up.

    Attributes:
      where: its place ("llama.py:88").
      op: what it is ("stablehlo.gather").
      source, picked: the types of what it picked from, and of what it picks.
      ops: through how many ops.
      is_exact: whether none of them is a sum of floats, whose order XLA chooses by the sizes.
    """

    where: str
    op: str
    source: str
    picked: str
    ops: int = 0
    is_exact: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.op} of {self.picked} of {self.source}, through {self.ops} ops"


def pull_up(graph: Graph, least: int = PULLED) -> tuple[PulledRecord, ...]:
    """Pull every pick of a large value in the entry point as far up as it goes.

    Args:
      graph: is changed.
      least: bytes from which a value is large.
    """
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
                pick = pending.pop()
                if _is_worth(pick, least):
                    pending += _pulled(pick, pull)
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
    return not (maker.name == DOT_GENERAL and pick.name == GATHER and taken_dim(pick) is None)


def _pulled(pick: Node, pull: PulledRecord) -> list[Node]:
    """Pull a pick through the op that makes what it picks from: the picks of that op's operands; none if it is not."""
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
