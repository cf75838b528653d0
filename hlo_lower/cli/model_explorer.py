"""Node data for Google's Model Explorer: each scatter and each op that the target refuses, in a colour by its class.

    model-explorer m.mlir --node_data_paths=m.json        # what is written here colours the graph that it draws

The viewer draws a graph for each function and numbers its ops in program order, those in the regions of an op of the
function's body with it; ops of regions further in are not drawn, so what is told of them is told of the op around.
Source: the package `ai-edge-model-explorer`, `model_explorer/node_data_builder.py`, and the graphs that its adapter
makes.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlo_lower.ir.view import Block, Graph, Node
    from hlo_lower.report.module import ModuleReport

NAME = "hlo-lower"
COLORS = {"refused": "#f4b6ae", "loop": "#f6d08a", "kept": "#d4d8dc", "guarded": "#b9d4f5", "lowered": "#b5e2c3"}
"""Background by class, the first one that fits; black text is readable on each."""


def node_data(graph: "Graph", report: "ModuleReport") -> str:
    """The JSON text of the node data of a module."""
    told = dict(zip(graph.scatters, report.records, strict=True))
    ops = {one.op: one for one in report.refused if one.op}
    types = {str(one.reason["dtype"]) for one in report.refused if not one.op}
    data: dict[str, Any] = {}
    for name, function in graph.functions.items():
        results: dict[str, dict[str, str]] = {}
        for number, node in _ops_by_number(function.body) if function.has_body else ():
            record = told.get(node)
            if record is not None:
                found = _of_scatter(record)
            elif node.name in ops or types & _types(node):
                found = ("refused", f"refused: {node.name if node.name in ops else ', '.join(types & _types(node))}")
            else:
                continue
            worst = results.get(str(number))
            if worst is None or list(COLORS.values()).index(worst["bgColor"]) > list(COLORS).index(found[0]):
                results[str(number)] = {"value": found[1], "bgColor": COLORS[found[0]], "textColor": "#000000"}
        if results:
            data[name] = {
                "name": f"{NAME}, {report.target}",
                "results": results,
                "showExpandedSummaryOnGroupNode": True,
            }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _of_scatter(record: Any) -> tuple[str, str]:
    """Its class and what is told of it: "Tile assign: guarded_dynamic_update_slice"."""
    from hlo_lower.report.module import KEPT, LOOP, NO_RULE, rule_of
    from hlo_lower.report.row import rule_name

    rule = rule_of(record)
    is_guarded = record.in_bounds == "unknown"
    otherwise = "guarded" if is_guarded else "lowered"
    return {NO_RULE: "refused", KEPT: "kept", LOOP: "loop"}.get(rule, otherwise), (
        f"{record.subset} {record.combiner}: {rule_name(rule)}"
    )


def _ops_by_number(block: "Block") -> Iterator[tuple[int, "Node"]]:
    """The ops of a function, each with the number of the drawn op that stands for it."""
    from hlo_lower.ir import mlir
    from hlo_lower.ir.view import Node

    number = 0
    for node in block.nodes:
        yield number, node
        number += 1
        for child in (child for inner in node.blocks for child in inner.nodes):
            yield from ((number, Node(raw)) for raw in mlir.operations_within(child.raw))
            number += 1


def _types(node: "Node") -> set[str]:
    values = [*node.operands, *node.results]
    return {value.element_type for value in values if value.is_tensor}
