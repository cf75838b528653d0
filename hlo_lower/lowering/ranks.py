"""Ops on tensors of more dims than a consumer has, on fewer: dims that stay neighbours are one.

Whatever an op does along one dim or between two, the dims around are so many rows of it; a tensor is the same numbers
in row-major order under any shape. So each op is done on few dims, between two reshapes, which meet those around.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.engine.kind import Context, Kind, OpLowering, Stage, Subject
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.single_ops.plain_op import ANOTHER_ORDER, Elements, elements_of
from hlo_lower.lowering.single_ops.products import matrices
from hlo_lower.ops import names
from hlo_lower.ops.axes.op_axes import ELEMENTWISE
from hlo_lower.ops.names import COMPOSITE, CUSTOM_CALL, RETURN
from hlo_lower.ops.spec import CONTROL
from hlo_lower.ops.targets.target import Target

ANY_OP = "*"
NOT_COUNTED = ("func.call", "func.return", RETURN, CUSTOM_CALL, COMPOSITE)


def refused_rank(target: Target, node: Node) -> tuple[int, int] | None:
    """The rank of an op, and the most that the target takes on it, where that is less."""
    most = target.max_rank.get(node.name, target.max_rank.get(ANY_OP))
    if most is None or node.name in NOT_COUNTED:
        return None
    rank = max((len(value.shape) for value in (*node.operands, *node.results) if value.is_tensor), default=0)
    return (rank, most) if rank > most else None


RANK = "op of many dims"


class Dims(Enum):
    """What an op does with the dims of its operands."""

    ELEMENTWISE = "each element alone"
    TRANSPOSED = "transposed"
    BROADCAST = "broadcast"
    REDUCED = "reduced"
    ALONG = "along dims"
    CONTRACTED = "contracted"
    WRITTEN = "written down"


@dataclass(frozen=True)
class RankFacts(FactsByName):
    """The facts of an op of many dims.

    Attributes:
      dims: what rules constrain.
      reassociated: whether floats may be added in another order.
    """

    dims: Dims
    reassociated: bool = False


RankLowering = OpLowering[RankFacts]

rules = RuleList()


@rules.lowers(RANK, dims={Dims.ELEMENTWISE}, form="the op on one dim, reshaped")
def elementwise_to_row(op: RankLowering) -> Sequence[Value]:
    """Compute on all elements in a row. Equal: each element of the result is made of those in its place."""
    build, shape = op.build, op.node.result().static_shape
    values = [build.reshape(value, (prod(shape),)) if value.static_shape else value for value in op.node.operands]
    return [build.reshape(_like(build, op.node, values, (prod(shape),)), shape)]


def _like(
    build: Builder, node: Node, values: Sequence[Value], shape: Sequence[int], **attributes: mlir.RawAttribute
) -> Value:
    result = mlir.tensor_type(shape, mlir.tensor_element(node.result().raw.type))
    return build.copy_on(node, values, [result], attributes).result()


@rules.lowers(RANK, dims={Dims.WRITTEN}, form="the numbers in one dim, reshaped")
def constant_to_row(op: RankLowering) -> Sequence[Value]:
    """Write a constant in a row. Equal: a reshape keeps the row-major order, in which numbers are written."""
    build, result, attribute = op.build, op.node.result(), op.node.raw.attributes["value"]
    kind = mlir.tensor_type((prod(result.static_shape),), result.element_type)
    if mlir.is_splat(op.node.raw):
        value = mlir.resplat(attribute, kind)
    elif (numbers := op.node.constant()) is not None:
        value = mlir.dense_attribute(numbers.reshape(-1), kind)
    else:
        raise DoesNotApply("its numbers have no form in NumPy")
    return [build.reshape(build.op(op.node.name, [], [kind], {"value": value}).result(), result.static_shape)]


@rules.lowers(RANK, dims={Dims.TRANSPOSED}, form="one dim after the other moved to its place, on four dims")
def transpose_to_moves(op: RankLowering) -> Sequence[Value]:
    """Bring the dim that comes first to the front, then the one that comes second behind it, and so on.

        transpose %x, [2, 0, 1]   ->   %x as [1, A * B, C, 1], its two middle dims exchanged

    Equal: a dim that jumps over neighbours exchanges two blocks of a tensor of four dims. Costs a copy for each jump.
    """
    return [transpose_in_steps(op.build, op.node.operand(0), op.node.integers("permutation"))]


def transpose_in_steps(build: Builder, value: Value, permutation: Sequence[int]) -> Value:
    """Transpose in steps on four dims."""
    shape, order = value.static_shape, list(range(len(permutation)))
    for place, dim in enumerate(permutation):
        at = order.index(dim)
        if at != place:
            sizes = [shape[d] for d in order]
            blocks = (prod(sizes[:place]), prod(sizes[place:at]), sizes[at], prod(sizes[at + 1 :]))
            value = build.transpose(build.reshape(value, blocks), [0, 2, 1, 3])
            order.insert(place, order.pop(at))
    return build.reshape(value, [shape[d] for d in order])


@rules.lowers(RANK, dims={Dims.BROADCAST}, form="one dim after the other, on three dims")
def broadcast_to_steps(op: RankLowering) -> Sequence[Value]:
    """Repeat what stands there along one dim after the other. Equal: the dims are independent of each other."""
    build, node, shape = op.build, op.node, op.node.result().static_shape
    value, dims = node.operand(0), node.integers("broadcast_dimensions")
    given = [1] * len(shape)
    ordered = sorted(range(len(dims)), key=lambda k: dims[k])
    for k, size in enumerate(value.static_shape):
        given[dims[k]] = size
    value = transpose_in_steps(build, value, ordered)
    for dim, size in enumerate(shape):
        if given[dim] != size:
            before, after = prod(given[:dim]), prod(given[dim + 1 :])
            value = build.broadcast(build.reshape(value, (before, after)), (before, size, after), [0, 2])
            given[dim] = size
    return [build.reshape(value, shape)]


@rules.lowers(RANK, dims={Dims.REDUCED}, form="reduced dims moved last, and reduced as one")
def reduce_to_rows(op: RankLowering) -> Sequence[Value]:
    """Reduce rows of which each holds what one element is made of.

    Equal: in a row they stand in row-major order of the dims, as before, and nothing is rounded, or floats may be added
    in another order: the specification leaves it open, and XLA takes another one of a row than of several dims.
    """
    build, node = op.build, op.node
    if not op.facts.reassociated and _rounds(node):
        raise DoesNotApply(ANOTHER_ORDER)
    count, dims = len(node.results), node.integers("dimensions")
    shape = node.operand(0).static_shape
    others = [d for d in range(len(shape)) if d not in dims]
    kept, reduced = prod(shape[d] for d in others), prod(shape[d] for d in dims)
    rows = [
        build.reshape(transpose_in_steps(build, value, [*others, *dims]), (kept, reduced))
        for value in node.operands[:count]
    ]
    types = [mlir.tensor_type((kept,), mlir.tensor_element(result.raw.type)) for result in node.results]
    made = build.copy_on(node, [*rows, *node.operands[count:]], types, {"dimensions": mlir.dense_i64([1])})
    return [build.reshape(value, [shape[d] for d in others]) for value in made.results]


CHOOSING = frozenset(f"stablehlo.{name}" for name in ("constant", "maximum", "minimum", "select"))
"""Ops whose results are numbers that stood there before."""


def _rounds(node: Node) -> bool:
    """Whether a region computes floats, or other numbers that are not integers, by more than choosing one."""
    made = [value for inner in node.blocks[0].nodes if inner.name not in CHOOSING for value in inner.results]
    return any(elements_of(value.element_type) in (Elements.FLOAT, Elements.OTHER) for value in made)


@rules.lowers(RANK, dims={Dims.ALONG}, form="the op along one dim after the other, on three dims")
def op_to_three_dims(op: RankLowering) -> Sequence[Value]:
    """Slice, pad, reverse, concatenate and count along one dim after the other, those before and behind it as one each.

    Equal: each of these ops does to one dim what it does, whatever is done to others. Of an update of a part in several
    dims the part along the first is read, updated along the others, and put back.
    """
    build, node = op.build, op.node
    result = node.result().static_shape
    match node.name:
        case "stablehlo.iota":
            dim = node.integer("iota_dimension")
            made = build.iota(_blocks(result, dim), 1, node.result().element_type)
        case "stablehlo.concatenate":
            dim = node.integer("dimension")
            made = build.concatenate([_on_blocks(build, value, dim) for value in node.operands], 1)
        case "stablehlo.dynamic_update_slice":
            value, update, *starts = node.operands
            made = _update_from_dim(build, value, update, starts, 0)
        case _:
            made = node.operand(0)
            for dim in range(len(made.static_shape)):
                made = _along(build, node, made, dim)
    return [build.reshape(made, result)]


def _blocks(shape: Sequence[int], dim: int) -> tuple[int, int, int]:
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


def _on_blocks(build: Builder, value: Value, dim: int) -> Value:
    return build.reshape(value, _blocks(value.static_shape, dim))


def _along(build: Builder, node: Node, value: Value, dim: int) -> Value:
    shape, flat = value.static_shape, _blocks(value.static_shape, dim)
    blocks = build.reshape(value, flat)
    match node.name:
        case "stablehlo.slice":
            keys = ("start_indices", "limit_indices", "strides")
            start, limit, step = (node.integers(name)[dim] for name in keys)
            made = build.slice(blocks, (0, start, 0), (flat[0], limit, flat[2]), (1, step, 1))
        case "stablehlo.reverse":
            made = build.reverse(blocks, [1]) if dim in node.integers("dimensions") else blocks
        case "stablehlo.pad":
            keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
            low, high, gap = (node.integers(name)[dim] for name in keys)
            made = build.pad(blocks, node.operand(1), (0, low, 0), (0, high, 0), (0, gap, 0))
        case _:
            size = node.integers("slice_sizes")[dim]
            made = blocks if size == flat[1] else _read(build, blocks, node.operand(1 + dim), size)
    return build.reshape(made, (*shape[:dim], made.static_shape[1], *shape[dim + 1 :]))


def _read(build: Builder, blocks: Value, start: Value, size: int) -> Value:
    before, _, after = blocks.static_shape
    zero = build.zero_of(start)
    return build.dynamic_slice(blocks, [zero, start, zero], (before, size, after))


def _update_from_dim(build: Builder, value: Value, update: Value, starts: Sequence[Value], dim: int) -> Value:
    """Write an update in its place, from a dim on."""
    shape = value.static_shape
    while dim < len(shape) and shape[dim] == update.static_shape[dim]:
        dim += 1
    if dim == len(shape):
        return update
    blocks, size = _on_blocks(build, value, dim), update.static_shape[dim]
    part = build.reshape(_read(build, blocks, starts[dim], size), (*shape[:dim], size, *shape[dim + 1 :]))
    changed = _on_blocks(build, _update_from_dim(build, part, update, starts, dim + 1), dim)
    zero = build.zero(mlir.tensor_element(starts[dim].raw.type))
    return build.reshape(build.dynamic_update_slice(blocks, changed, [zero, starts[dim], zero]), shape)


@rules.lowers(RANK, dims={Dims.CONTRACTED}, form="a product of batches of matrices")
def dot_to_batches(op: RankLowering) -> Sequence[Value]:
    """Multiply matrices whose batch, rows, columns and what is contracted are one dim each.

    Equal: each element is the sum of the same products, in the same order: that of what is contracted stays, and XLA
    multiplies matrices of these four dims itself, whatever it is given.
    """
    build, node, numbers = op.build, op.node, mlir.dot_dimension_numbers(op.node.raw)
    left, right = node.operands
    batch, inner = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    rows = matrices(build, left, batch, inner, is_left=True, transpose=transpose_in_steps)
    batch, inner = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    others = matrices(build, right, batch, inner, is_left=False, transpose=transpose_in_steps)
    told = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
    told += "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]"
    attribute = mlir.parse_attribute(f"#stablehlo.dot<{told}>")
    shape = (*rows.static_shape[:2], others.static_shape[2])
    made = _like(build, node, [rows, others], shape, dot_dimension_numbers=attribute)
    return [build.reshape(made, node.result().static_shape)]


_SLICES = (names.SLICE, names.DYNAMIC_SLICE, names.DYNAMIC_UPDATE_SLICE)
_ALONG = (*_SLICES, names.CONCATENATE, names.PAD, names.REVERSE, names.IOTA)
BY_NAME = {
    **dict.fromkeys(ELEMENTWISE, Dims.ELEMENTWISE),
    **dict.fromkeys(_ALONG, Dims.ALONG),
    names.CONSTANT: Dims.WRITTEN,
    names.TRANSPOSE: Dims.TRANSPOSED,
    names.BROADCAST_IN_DIM: Dims.BROADCAST,
    names.REDUCE: Dims.REDUCED,
    names.DOT_GENERAL: Dims.CONTRACTED,
}
"""What each op does with its dims."""


class RankKind(Kind):
    """Ops of many dims; the reshapes between two of them meet."""

    name = op = RANK
    ops = frozenset(BY_NAME)
    stage = Stage.RANKS
    domains = RankFacts.domains
    families = (rules,)
    owned = frozenset(
        (
            *("permutation", "broadcast_dimensions", "dimensions", "dimension", "iota_dimension", "slice_sizes"),
            *("start_indices", "limit_indices", "strides", "dot_dimension_numbers", "precision_config", "algorithm"),
            *("edge_padding_low", "edge_padding_high", "interior_padding", "comparison_direction", "compare_type"),
            *("result_accuracy", "value"),
        )
    )

    def concerns(self, options: Options) -> bool:
        return bool(options.target.max_rank)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None of few dims."""
        if refused_rank(context.target, node) is None:
            return None
        if not node.is_static:
            return self.subject(context, node)
        facts = RankFacts(BY_NAME[node.name], reassociated=context.options.float_mode == "reassociate")
        return self.subject(context, node, facts)


def most_dims(target: Target) -> int | None:
    """The most dims of a value that is passed on as it is: those of a reshape."""
    return target.max_rank.get(names.RESHAPE, target.max_rank.get(ANY_OP))


def pass_in_rows(graph: Graph, most: int) -> None:
    """Pass values of more dims than there are to private functions, loops and branches, and back, in one dim, in place.

        call @f(%x : tensor<1x2x3x4x5x6xf32>)   ->   call @f(reshape %x : tensor<720xf32>), which reshapes it back

    Equal: a tensor is the same numbers in row-major order under any shape. Each reshape meets one that is there.
    """
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name in CONTROL]:
            _open_rows(node.blocks, most)
            _give_rows(node, most)
        for name, function in graph.functions.items():
            is_named = function.is_public or graph.has_other_reference(name)
            if is_named or not function.has_body or "sharding" in str(function.node.attribute("arg_attrs")):
                continue
            _open_rows([function.body], most)
            mlir.set_signature(function.node.raw)
            for call in graph.calls_of(name):
                _give_rows(call, most)
    graph.forget()


def _is_of_many(value: Value, most: int) -> bool:
    return value.is_tensor and value.is_static and len(value.shape) > most


def _row_type(value: Value) -> mlir.RawType:
    return mlir.tensor_type((prod(value.static_shape),), mlir.tensor_element(value.raw.type))


def _open_rows(blocks: Sequence[Block], most: int) -> None:
    """Let blocks take and return rows in the place of values of many dims."""
    for block in blocks:
        start = Builder(mlir.insert_at_begin(block.raw), block.terminator.raw.location)
        for value in block.arguments:
            if _is_of_many(value, most):
                _read_reshaped(start, value, _row_type(value))
        _put_rows(block.terminator, most)


def _give_rows(node: Node, most: int) -> None:
    """Give an op rows in the place of operands of many dims, and spread the rows that it then returns."""
    _put_rows(node, most)
    after = Builder(mlir.insert_after(node.raw), node.raw.location)
    for value in node.results:
        if _is_of_many(value, most):
            _read_reshaped(after, value, _row_type(value))


def _put_rows(node: Node, most: int) -> None:
    for number, value in enumerate(node.operands):
        if _is_of_many(value, most):
            row = Builder.before(node).op(names.RESHAPE, [value], [_row_type(value)]).result()
            node.raw.operands[number] = row.raw


def join_reshapes(graph: Graph, most: int = 0) -> None:
    """Let each reshape of a reshape to more than `most` dims read what that one reads, in place; what nobody reads then
    goes."""
    with mlir.active(graph.context):
        reshapes = [node for node in graph.nodes() if node.name == names.RESHAPE]
        for node in reshapes:
            before = node.operand(0).node
            if before is not None and before.name == names.RESHAPE and len(node.operand(0).shape) > most:
                node.raw.operands[0] = before.operand(0).raw
            if node.operand(0).raw.type == node.result().raw.type:
                node.result().raw.replace_all_uses_with(node.operand(0).raw)
        for node in reversed(reshapes):
            if not node.result().is_used:
                node.raw.erase()
    graph.forget()


def _read_reshaped(build: Builder, value: Value, becomes: mlir.RawType) -> None:
    """Give a value a type of as many elements, and let all that read it read a reshape to the one that it had."""
    uses, before = [(use.owner, use.operand_number) for use in value.raw.uses], value.raw.type
    mlir.set_type(value.raw, becomes)
    back = build.op(names.RESHAPE, [value], [before]).result()
    for owner, number in uses:
        owner.operands[number] = back.raw
