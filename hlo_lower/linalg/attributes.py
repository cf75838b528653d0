"""Take off what only StableHLO's readers know: shardings and other attributes of the dialects sdy, mhlo and stablehlo.

A linalg reader fails on a `#sdy.sharding` because it has no such dialect. Attributes whose values are plain, as those
that say which buffers are donated (`tf.aliasing_output`, `jax.buffer_donor`), stay: every reader takes them.
"""

import re
from collections import Counter
from typing import Any

from hlo_lower import mlir
from hlo_lower.graph import Graph, Node
from hlo_lower.linalg.linalg_report import is_foreign

FOREIGN_NAME = re.compile(r"(sdy|mhlo|stablehlo|chlo|mpmd)\.")
FOREIGN_VALUE = re.compile(r"#(sdy|mhlo|stablehlo|chlo|mpmd)\b")
ON_VALUES = ("arg_attrs", "res_attrs")
MESH = "sdy.mesh"


def remove_foreign(graph: Graph) -> tuple[tuple[str, int], ...]:
    """Take the foreign attributes off a module, its functions, their arguments and results, and every plain operation.

    Returns:
      Their names and how many there were; with them the meshes, which nothing names any more.
    """
    removed: Counter[str] = Counter()
    meshes: list[Node] = []

    def visit(node: Node) -> None:
        if node.name == MESH:
            meshes.append(node)
        elif node.name == "builtin.module" or not is_foreign(node):
            _clean(node, removed)

    with mlir.active(graph.context):
        graph.walk(visit)
    if not _names_a_mesh(graph):
        for mesh in meshes:
            removed[MESH] += 1
            mesh.raw.erase()
    return tuple(sorted(removed.items()))


def _clean(node: Node, removed: Counter[str]) -> None:
    attributes = node.raw.attributes
    for name in list(attributes):
        if FOREIGN_NAME.match(name):
            removed[name] += 1
            del attributes[name]
        elif name in ON_VALUES:
            attributes[name] = _cleaned(attributes[name], removed)
        elif "." in name and FOREIGN_VALUE.match(str(attributes[name])):
            removed[name] += 1
            del attributes[name]


def _cleaned(dictionaries: Any, removed: Counter[str]) -> mlir.RawAttribute:
    """The dictionaries of a function's arguments or results without the foreign entries."""
    told: list[str] = []
    for dictionary in dictionaries:
        kept: list[str] = []
        for name, attribute in mlir.entries_of(dictionary).items():
            value = str(attribute)
            if FOREIGN_NAME.match(name) or FOREIGN_VALUE.match(value):
                removed[name] += 1
            else:
                kept.append(f"{name} = {value}")
        told.append(f"{{{', '.join(kept)}}}")
    return mlir.parse_attribute(f"[{', '.join(told)}]")


def _names_a_mesh(graph: Graph) -> bool:
    """Whether an operation of the dialect sdy is left besides the meshes."""
    return mlir.any_operation(graph.module.operation, lambda raw: str(raw.name).startswith("sdy.") and raw.name != MESH)
