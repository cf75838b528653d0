"""What stands around a scatter, as a drawing: what computes its indices, what reads it, and the ops that it becomes."""

import re
from collections.abc import Mapping, Sequence

from hlo_lower.base.drawing.graph import Box, Drawn, graph_svg
from hlo_lower.ir.view import Graph, Node, Value

DEPTH = 3
"""Steps that are taken back from the indices."""

MOST = 14
"""Ops that are drawn of what computes the indices, and of what a scatter becomes."""

MOST_READERS = 5

RESULT = re.compile(r'(%[\w.]+)(?::\d+)? = "?[a-z_]\w*\.(\w+)')
"""The result and the op of a line of MLIR."""

VALUE = re.compile(r"%[\w.]+")


def neighbourhoods(graph: Graph) -> Mapping[int, str]:
    """A drawing for each scatter, by its number: what computes its indices, `DEPTH` steps back, its other operands,
    and what reads it."""
    return {number: graph_svg(_around(node), "before") for number, node in enumerate(graph.scatters, start=1)}


def _around(scatter: Node) -> Drawn:
    drawn = Drawn()
    centre = drawn.add(Box("scatter", DEPTH + 1, is_centre=True))
    known = {scatter: centre}
    count = (len(scatter.operands) - 1) // 2
    _add(drawn, known, scatter.operand(count), centre, DEPTH)
    for place, value in enumerate(scatter.operands):
        if place != count:
            _add(drawn, known, value, centre, 1)
    readers = dict.fromkeys(user for result in scatter.results for user in result.users)
    for reader in list(readers)[:MOST_READERS]:
        drawn.reads.append((centre, drawn.add(Box(_label(reader), DEPTH + 2))))
    if len(readers) > MOST_READERS:
        more = Box(f"and {len(readers) - MOST_READERS:,} more", DEPTH + 2, is_op=False)
        drawn.reads.append((centre, drawn.add(more)))
    return drawn


def _add(drawn: Drawn, known: dict[Node, int], value: Value, reader: int, depth: int) -> None:
    """Draw what makes a value that a box reads, and what that is made of."""
    column, node = drawn.boxes[reader].column - 1, value.node
    if node is None:
        box = Box(f"argument {value.number} {_type(value)}", column, is_op=False)
        drawn.reads.append((drawn.add(box), reader))
        return
    if node in known:
        if drawn.boxes[known[node]].column <= column:
            drawn.reads.append((known[node], reader))
        return
    if len(drawn.boxes) >= MOST:
        return
    known[node] = drawn.add(Box(_label(node), column))
    drawn.reads.append((known[node], reader))
    if depth > 1:
        for operand in node.operands:
            _add(drawn, known, operand, known[node], depth - 1)


def _label(node: Node) -> str:
    """ "clamp 4xi32"."""
    types = _type(node.result()) if node.results else ""
    return f"{node.name.split('.', 1)[-1]} {types}".strip()


def _type(value: Value) -> str:
    return re.sub(r"^tensor<(.*)>$", r"\1", str(value.raw.type))


def of_built(lines: Sequence[str]) -> str:
    """A drawing of lines that were built for a scatter: their ops, the values from outside that these read, and that
    the scatter's readers read what nothing else does."""
    drawn, made, given = Drawn(), dict[str, int](), dict[str, int]()
    found = [(match, line) for line in lines if (match := RESULT.match(line))]
    every = [(match, line) for match, line in found if match[2] != "constant"]
    ops, left = every[:MOST], len(every[MOST:])
    constants = {match[1] for match, _ in found if match[2] == "constant"}
    names = {match[1] for match, _ in ops}
    read = {name for match, line in ops for name in VALUE.findall(line[match.end() :]) if name in names}
    for match, line in ops:
        type_ = re.findall(r"tensor<([^<>]*)>", line)
        operands = [name for name in dict.fromkeys(VALUE.findall(line[match.end() :])) if name not in constants]
        column = 1 + max((drawn.boxes[made[name]].column for name in operands if name in made), default=0)
        label = f"{match[2]} {type_[-1] if type_ else ''}".strip()
        own = drawn.add(Box(label, column, is_centre=not left and match[1] not in read))
        for name in operands:
            if name not in made and name not in given:
                given[name] = drawn.add(Box(name, 0, is_op=False))
            drawn.reads.append((made[name] if name in made else given[name], own))
        made[match[1]] = own
    ends = [] if left else [own for name, own in made.items() if name not in read]
    if made:
        column = 1 + max(box.column for box in drawn.boxes)
        last = drawn.add(Box(f"and {left:,} more ops" if left else "the same readers", column, is_op=False))
        drawn.reads += [(own, last) for own in ends]
    return graph_svg(drawn, "after")
