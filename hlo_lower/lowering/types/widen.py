"""Floats made those of another precision, as asked for: bf16 or f16 in f32, f64 in f32. Numbers change."""

from collections.abc import Iterator, Mapping

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.integers64.demotion import After, Demotion
from hlo_lower.lowering.plain.custom_call import NOTES
from hlo_lower.lowering.types.storage import erase_same, recode, retype, with_avals
from hlo_lower.ops.names import BITCAST_CONVERT, CONSTANT, CUSTOM_CALL


def other_floats(graph: Graph, becomes: Mapping[str, str]) -> Demotion | None:
    """Make floats those of another precision, in place, arguments and results included.

    Every op is computed in the new type and rounded to that alone: sums of bf16 in f32 keep digits that bf16 drops, and
    numbers of f64 lose digits, or become Inf. So results differ, which is what was asked for.

    Args:
      graph: the module.
      becomes: element types and those that they become ("bf16" to "f32").

    Returns:
      What changed; None where there is no such type in the module.

    Raises:
      NotLoweredError: an op looks at the bits of such a number, or what it does with it is not known.
    """
    if not becomes:
        return None
    pairs = {f"complex<{before}>": f"complex<{after}>" for before, after in becomes.items() if before == "f64"}
    every = {**becomes, **pairs}
    nodes = [n for n in graph.nodes() if not every.keys().isdisjoint(dtypes_on(n))]
    if not nodes:
        return None
    bits = [node for node in nodes if _is_of_upper_bits(node, every)]
    for node in nodes:
        if node not in bits:
            _refuse(graph, node)
    told = Demotion.of(graph, nodes, {before: After(after) for before, after in every.items()})
    with mlir.active(graph.context):
        nodes = [node for node in nodes if node not in bits]
        for node in bits:
            _extend(node, every["bf16"])
        for node in nodes:
            if node.name == CONSTANT:
                values = node.constant()
                if values is None:
                    what = f"a constant of {node.result().element_type} cannot be read"
                    raise NotLoweredError(str(graph.location(node)), what)
                recode(node, values, every)
        retype(graph, every)
        erase_same(nodes)
    graph.forget()
    graph.exported = with_avals(graph, becomes)
    return told


def _is_of_upper_bits(node: Node, becomes: Mapping[str, str]) -> bool:
    """Whether it makes bf16 of its bits, as uniform numbers are made: they are the upper ones of an f32."""
    is_made = node.name == BITCAST_CONVERT and becomes.get(node.result().element_type) == "f32"
    return is_made and node.result().element_type == "bf16" and node.operand(0).element_type in ("ui16", "i16")


def _extend(node: Node, after: str) -> None:
    """Make the f32 of the same number: its lower bits are 0."""
    build, operand = Builder.before(node), node.operand(0)
    wide = build.convert(operand, "ui32" if operand.element.is_unsigned else "i32")
    moved = build.multiply(wide, build.constant(1 << 16, wide.static_shape, wide.element_type))
    mlir.replace_results(node.raw, [build.bitcast(moved, after).raw])
    node.raw.erase()


def _refuse(graph: Graph, node: Node) -> None:
    """Refuse an op that is another one on other floats.

    Raises:
      NotLoweredError: it is.
    """
    unknown = node.name == CUSTOM_CALL and mlir.call_target(node.raw) not in NOTES
    if node.name == BITCAST_CONVERT or unknown:
        what = "calls something unknown" if unknown else "looks at the bits of floats"
        raise NotLoweredError(
            str(graph.location(node)),
            f"{node.name}: its floats cannot be of another precision: it {what}",
            next_step="convert without --widen and --demote-f64",
        )


def float_lines(floats: Demotion) -> Iterator[str]:
    """What changed, a line for what all of it rests on, and one for each argument and result."""
    yield f"numbers change, as asked for: {floats.values} tensors of floats of another precision"
    for value in (*floats.arguments, *floats.results):
        yield f"numbers change: {value.name} of @{floats.entry} is {value.after}, was {value.before}"
