"""What a region is made of: the one op that it may be, and the values that it takes from around it."""

from hlo_lower.ir.view import Block, Node, Value


def only_op(block: Block) -> Node | None:
    """The op that a region of two scalars consists of, in either order of its arguments; None where it is more."""
    [*nodes] = block.nodes
    if len(nodes) != 2 or len(block.arguments) != 2 or nodes[1].operands != nodes[0].results:
        return None
    return nodes[0] if set(nodes[0].operands) == set(block.arguments) else None


def captured_values(*blocks: Block) -> list[Value]:
    """The values that regions, nested regions included, take from around them."""
    inside = {argument for block in blocks for argument in block.arguments}
    captured: dict[Value, None] = {}

    def visit(block: Block) -> None:
        for node in block.nodes:
            captured.update(dict.fromkeys(v for v in node.operands if v not in inside))
            inside.update(node.results)
            for inner in node.blocks:
                inside.update(inner.arguments)
                visit(inner)

    for block in blocks:
        visit(block)
    return list(captured)
