"""Change what a `stablehlo.while` carries: values that it no longer needs go, values that its body reads come in."""

from collections.abc import Collection, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.linalg.scf_for import move_nodes, replace_all
from hlo_lower.ops.names import RETURN, WHILE


def change_carried(loop: Node, dropped: Collection[int], added: Sequence[Value]) -> Node:
    """Replace a loop by one that carries other values; its operations are moved, not copied.

    Args:
      loop: is erased.
      dropped: positions of carried values that nothing but the terminators reads, inside and behind the loop.
      added: values from around the loop, which the body returns as they are: its last arguments.

    Returns:
      The new loop.
    """
    build = Builder.before(loop)
    kept = [number for number in range(len(loop.operands)) if number not in dropped]
    initial = [*(loop.operand(number) for number in kept), *added]
    types = [value.raw.type for value in initial]
    new = build.op(WHILE, initial, types, mlir.attributes_of(loop.raw), regions=2)
    for region, old in enumerate(loop.blocks):
        block = Block(mlir.append_block(new.raw, region, types, loop.raw.location))
        replace_all([old.argument(number) for number in kept], block.arguments[: len(kept)])
        returned = move_nodes(old, block)
        if region:
            returned = (*(returned[number] for number in kept), *block.arguments[len(kept) :])
        build.at_end(block).op(RETURN, returned, [])
    replace_all([loop.result(number) for number in kept], new.results[: len(kept)])
    loop.raw.erase()
    return new


def is_kept(loop: Node, number: int) -> bool:
    """Whether the body of a loop returns a carried value as it is."""
    body = loop.blocks[1]
    return body.terminator.operand(number) == body.argument(number)
