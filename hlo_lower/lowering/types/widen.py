"""Floats made those of another precision, as asked for: bf16 or f16 in f32, f64 in f32. Numbers change."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.integers64.demotion import DemotedValue, Demotion
from hlo_lower.lowering.plain.custom_call import NOTES
from hlo_lower.lowering.types.storage import retype, retyped, with_avals
from hlo_lower.ops.names import BITCAST_CONVERT, CONSTANT, CONVERT, CUSTOM_CALL


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
    nodes = [n for n in map(Node, mlir.walked(graph.module.operation)) if not every.keys().isdisjoint(dtypes_on(n))]
    if not nodes:
        return None
    for node in nodes:
        _refuse(graph, node)
    told = _told(graph, every, nodes)
    with mlir.active(graph.context):
        for node in nodes:
            if node.name == CONSTANT:
                _recode(graph, node, every)
        retype(graph, every)
        for node in nodes:
            if node.name == CONVERT and node.operand(0).raw.type == node.result().raw.type:
                node.result().raw.replace_all_uses_with(node.operand(0).raw)
                node.raw.erase()
    graph.forget()
    graph.exported = with_avals(graph, becomes)
    return told


def _refuse(graph: Graph, node: Node) -> None:
    """Refuse an op that is another one on other floats.

    Raises:
      NotLoweredError: it is.
    """
    unknown = node.name == CUSTOM_CALL and mlir.call_target(node.raw) not in NOTES
    if node.name == BITCAST_CONVERT or unknown:
        what = "calls what is not known" if unknown else "looks at the bits of floats"
        raise NotLoweredError(
            str(graph.location(node)),
            f"{node.name}: its floats cannot be of another precision: it {what}",
            next_step="convert without --widen and --demote-f64",
        )


def _recode(graph: Graph, node: Node, becomes: Mapping[str, str]) -> None:
    """Give a constant the nearest numbers of its new type."""
    result = node.result()
    values, dtype = node.constant(), mlir.dtype_of(becomes[result.element_type])
    if values is None or dtype is None:
        raise NotLoweredError(str(graph.location(node)), f"a constant of {result.element_type} cannot be read")
    if mlir.is_splat(node.raw):
        values = values.reshape(-1)[:1]
    with np.errstate(all="ignore"):
        given: Any = values.astype(dtype)
    node.raw.attributes["value"] = mlir.dense_attribute(given, retyped(result.raw.type, becomes))


def _told(graph: Graph, becomes: Mapping[str, str], nodes: list[Node]) -> Demotion:
    main = graph.main
    count = sum(_is(value, becomes) for node in nodes for value in node.results)
    arguments = tuple(_of("argument", main.body.arguments, becomes))
    results = tuple(_of("result", main.body.terminator.operands, becomes))
    return Demotion(main.name, arguments, results, count + len(arguments), ())


def _is(value: Value, becomes: Mapping[str, str]) -> bool:
    return value.is_tensor and value.element_type in becomes


def _of(what: str, values: tuple[Value, ...], becomes: Mapping[str, str]) -> Iterator[DemotedValue]:
    for number, value in enumerate(values):
        if _is(value, becomes):
            name = mlir.value_name(value.raw) if what == "argument" else ""
            told = f"{what} {number}" + (f" ({name})" if name else "")
            yield DemotedValue(number, told, value.element_type, becomes[value.element_type])


def float_lines(floats: Demotion) -> Iterator[str]:
    """What changed, a line for what all of it rests on, and one for each argument and result."""
    yield f"numbers change, as asked for: {floats.values} tensors of floats of another precision"
    for value in (*floats.arguments, *floats.results):
        yield f"numbers change: {value.name} of @{floats.entry} is {value.after}, was {value.before}"
