"""Control flow and ops of dynamic shape, as operations of scf and tensor."""

from collections.abc import Callable, Mapping

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.loops import emit_for, from_index, index_constant, move_nodes, replace_all, to_index
from hlo_lower.lowering.loops import CountedLoop, read_counted
from hlo_lower.ops.names import CASE, DYNAMIC_RESHAPE, DYNAMIC_UPDATE_SLICE, GET_DIMENSION_SIZE, IF, WHILE

# --- control flow: `stablehlo.while`, `if` and `case` as operations of scf, after their regions have become linalg ---
#
# Operations are moved, not copied, so what is nested in them keeps its place, its location and its order.


COUNTED = "hlo_lower.counted"
"""The mark of a counted loop: the counter's position, its limit, the position of that or -1, and 1 if unsigned."""

CONTROL = frozenset({WHILE, IF, CASE})


def mark_counted(graph: Graph) -> None:
    """Mark the counted loops of a module: once their conditions have become linalg they are hard to read."""
    with mlir.active(graph.context):
        for node in graph.nodes():
            counted = read_counted(node) if node.name == WHILE else None
            if counted is not None:
                numbers = (
                    counted.counter,
                    0 if counted.limit is None else counted.limit,
                    -1 if counted.limit_at is None else counted.limit_at,
                    int(counted.is_unsigned),
                )
                node.raw.attributes[COUNTED] = mlir.dense_i64(numbers)


def _counted_loop_of(node: Node) -> CountedLoop | None:
    if node.attribute(COUNTED) is None:
        return None
    counter, limit, at, unsigned = node.integers(COUNTED)
    return CountedLoop(counter, limit if at < 0 else None, at if at >= 0 else None, bool(unsigned))


def lower_control(graph: Graph) -> tuple[int, int]:
    """Replace the control flow of a module by that of scf.

    Returns:
      How many loops became `scf.for`, and how many `scf.while`.
    """
    counts = [0, 0]
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name in CONTROL]:
            if node.name != WHILE:
                _branches(node)
            elif (counted := _counted_loop_of(node)) is not None:
                emit_for(node, counted)
                counts[0] += 1
            else:
                _while(node)
                counts[1] += 1
    return counts[0], counts[1]


def _scalar(build: Builder, value: Value) -> Value:
    return build.op("tensor.extract", [value], [mlir.tensor_element(value.raw.type)]).result()


def _while(loop: Node) -> None:
    """Emit `scf.while`, whose condition hands on what is carried.

    %r = scf.while (%c = %carried) { ...; scf.condition(%p) %c } do { ^bb0(%c): ...; scf.yield %next }
    """
    build = Builder.before(loop)
    types = [value.raw.type for value in loop.operands]
    new = build.op("scf.while", loop.operands, types, regions=2)
    before, after = (Block(mlir.append_block(new.raw, region, types, loop.raw.location)) for region in range(2))
    condition, body = loop.blocks
    replace_all(condition.arguments, before.arguments)
    [predicate] = move_nodes(condition, before)
    inner = build.at_end(before)
    inner.op("scf.condition", [_scalar(inner, predicate), *before.arguments], [])
    replace_all(body.arguments, after.arguments)
    build.at_end(after).op("scf.yield", move_nodes(body, after), [])
    replace_all(loop.results, new.results)
    loop.raw.erase()


def _branches(node: Node) -> None:
    """Emit `scf.if`, nested where there are more than two branches; a single one is always taken.

    A `case` whose index names no branch takes the last one, which is therefore what is left when the index is none of
    the others. Not `scf.index_switch`: IREE 3.13 fails to compile one that gives tensors.
    """
    build, (*others, last) = Builder.before(node), node.blocks
    if not others:
        *inner, terminator = last.nodes
        for moved in inner:
            moved.raw.move_before(node.raw)
        replace_all(node.results, terminator.operands)
        node.raw.erase()
        return
    types = [value.raw.type for value in node.results]
    scalar = _scalar(build, node.operand(0))
    current, block = build, last
    for number, taken in enumerate(others):
        condition = scalar if node.name == IF else _equals(current, scalar, number)
        new = current.op("scf.if", [condition], types, regions=2)
        if number:
            current.op("scf.yield", new.results, [])
        else:
            replace_all(node.results, new.results)
        then, block = (Block(mlir.append_block(new.raw, region, [], node.raw.location)) for region in range(2))
        build.at_end(then).op("scf.yield", move_nodes(taken, then), [])
        current = build.at_end(block)
    returned = move_nodes(last, block)
    current.op("scf.yield", returned, [])
    node.raw.erase()


def _equals(build: Builder, scalar: Value, number: int) -> Value:
    value = {"value": mlir.parse_attribute(f"{number} : i32")}
    constant = build.op("arith.constant", [], [scalar.raw.type], value).result()
    equal = {"predicate": mlir.parse_attribute("0 : i64")}
    return build.op("arith.cmpi", [scalar, constant], [mlir.parse_type("i1")], equal).result()


# --- operations of dynamic shape that jaxlib's pass leaves: sizes, writes and reshapes, as operations of tensor ---
#
# get_dimension_size     tensor.dim
# dynamic_update_slice   tensor.insert_slice, its offsets clamped to [0, size - extent] as StableHLO has it
# dynamic_reshape        tensor.reshape


def lower_dynamic(graph: Graph) -> None:
    """Replace the operations of `DYNAMIC` in a module."""
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name in DYNAMIC]:
            result = _REWRITES[node.name](Builder.before(node), node)
            replace_all(node.results, [result])
            node.raw.erase()


def _size(build: Builder, value: Value, dim: int) -> Value:
    known = value.shape[dim]
    if known is not None:
        return index_constant(build, known)
    return build.op("tensor.dim", [value, index_constant(build, dim)], [mlir.parse_type("index")]).result()


def _dimension_size(build: Builder, node: Node) -> Value:
    size = _size(build, node.operand(0), node.integer("dimension"))
    return from_index(build, size, node.result().raw.type)


def _update_slice(build: Builder, node: Node) -> Value:
    operand, update, *starts = node.operands
    index = mlir.parse_type("index")
    offsets: list[Value] = []
    sizes: list[Value] = []
    for dim, start in enumerate(starts):
        extent = _size(build, update, dim)
        if update.shape[dim] is None:
            sizes.append(extent)
        last = build.op("arith.subi", [_size(build, operand, dim), extent], [index]).result()
        inside = build.op("arith.maxsi", [to_index(build, start), index_constant(build, 0)], [index]).result()
        offsets.append(build.op("arith.minsi", [inside, last], [index]).result())
    unknown = mlir.dynamic_size()
    attributes = {
        "static_offsets": mlir.dense_i64([unknown] * len(starts)),
        "static_sizes": mlir.dense_i64([unknown if size is None else size for size in update.shape]),
        "static_strides": mlir.dense_i64([1] * len(starts)),
        "operandSegmentSizes": mlir.parse_attribute(f"array<i32: 1, 1, {len(offsets)}, {len(sizes)}, 0>"),
    }
    return build.op("tensor.insert_slice", [update, operand, *offsets, *sizes], [operand.raw.type], attributes).result()


def _reshape(build: Builder, node: Node) -> Value:
    return build.op("tensor.reshape", node.operands, [node.result().raw.type]).result()


_REWRITES: Mapping[str, Callable[[Builder, Node], Value]] = {
    GET_DIMENSION_SIZE: _dimension_size,
    DYNAMIC_UPDATE_SLICE: _update_slice,
    DYNAMIC_RESHAPE: _reshape,
}

DYNAMIC = frozenset(_REWRITES)
"""The operations that are replaced here."""
