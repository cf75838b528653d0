"""Emit a counted loop as `scf.for`: an index as its counter, what is carried as its iter_args.

    %r:n = stablehlo.while(%i = %first, %c = %carried) cond { %i < limit } do { ...; return %i + 1, %next }
    ->
    %r = scf.for %k = %lower to %upper step %one iter_args(%c = %carried) {
      %i = tensor.from_elements (arith.index_cast %k); ...; scf.yield %next }

Equal: both run for first, first + 1, ..., limit - 1, and not at all where first >= limit. After the loop the counter is
max(first, limit). The operations of the body are moved, not copied. An index is at least as wide as the counter.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.loops.counted import CountedLoop


def index_constant(build: Builder, value: int) -> Value:
    """`arith.constant` of index type."""
    attribute = mlir.parse_attribute(f"{value} : index")
    return build.op("arith.constant", [], [mlir.parse_type("index")], {"value": attribute}).result()


def to_index(build: Builder, scalar: Value, *, is_unsigned: bool = False) -> Value:
    """A scalar tensor of integers as an index."""
    element = build.op("tensor.extract", [scalar], [mlir.tensor_element(scalar.raw.type)]).result()
    cast = "arith.index_castui" if is_unsigned else "arith.index_cast"
    return build.op(cast, [element], [mlir.parse_type("index")]).result()


def from_index(build: Builder, index: Value, scalar_type: mlir.RawType, *, is_unsigned: bool = False) -> Value:
    """An index as a scalar tensor of integers."""
    cast = "arith.index_castui" if is_unsigned else "arith.index_cast"
    element = build.op(cast, [index], [mlir.tensor_element(scalar_type)]).result()
    return build.op("tensor.from_elements", [element], [scalar_type]).result()


def move_nodes(block: Block, to: Block) -> tuple[Value, ...]:
    """Move the nodes of a block to the end of another and drop its terminator; what that returned."""
    *nodes, terminator = block.nodes
    for node in nodes:
        mlir.move_to_end(node.raw, to.raw)
    returned = terminator.operands
    terminator.raw.erase()
    return returned


def replace_all(old: Sequence[Value], new: Sequence[Value]) -> None:
    """Use other values in the place of these."""
    for before, after in zip(old, new, strict=True):
        before.raw.replace_all_uses_with(after.raw)


def emit_for(loop: Node, counted: CountedLoop) -> Node:
    """Replace a `stablehlo.while` by `scf.for`.

    Args:
      loop: the loop, in types without signs; its condition is not looked at any more.
      counted: what counts in it.

    Returns:
      The `scf.for`.
    """
    build = Builder.before(loop)
    at, is_unsigned = counted.counter, counted.is_unsigned
    initial = loop.operands
    carried = [value for number, value in enumerate(initial) if number != at]
    lower = to_index(build, initial[at], is_unsigned=is_unsigned)
    if counted.limit_at is None:
        assert counted.limit is not None
        upper = index_constant(build, counted.limit)
    else:
        upper = to_index(build, initial[counted.limit_at], is_unsigned=is_unsigned)
    types = [value.raw.type for value in carried]
    new = build.op("scf.for", [lower, upper, index_constant(build, 1), *carried], types, regions=1)
    body = loop.blocks[1]
    block = Block(mlir.append_block(new.raw, 0, [mlir.parse_type("index"), *types], loop.raw.location))
    inner = build.at_end(block)
    counter, *arguments = block.arguments
    given = list(arguments)
    given.insert(at, from_index(inner, counter, initial[at].raw.type, is_unsigned=is_unsigned))
    replace_all(body.arguments, given)
    returned = move_nodes(body, block)
    inner.op("scf.yield", [value for number, value in enumerate(returned) if number != at], [])
    results = list(new.results)
    last = loop.result(at)
    if last.is_used:
        greatest = build.op("arith.maxsi", [lower, upper], [lower.raw.type]).result()
        results.insert(at, from_index(build, greatest, last.raw.type, is_unsigned=is_unsigned))
    else:
        results.insert(at, initial[at])
    replace_all(loop.results, results)
    loop.raw.erase()
    return new
