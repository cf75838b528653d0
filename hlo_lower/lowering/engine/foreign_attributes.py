"""Take attributes off a module whose dialects its consumer does not read; with them the meshes that only these named.

A reader without Shardy's dialect fails on a `#sdy.sharding`, a linalg reader on StableHLO's attributes, too. Attributes
whose values are plain, as those that say which buffers are donated (`tf.aliasing_output`, `jax.buffer_donor`), stay:
every reader takes them.

Shardings say where values live, not what they are (Shardy, "Sharding Representation"). A module for one device has one
place for them, so that without its shardings it means what it meant. JAX writes them there nevertheless: a mesh without
axes for arguments that were put on a device, one of device 0 for a callback.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.facts.scatter.spread_dims import is_partitioned
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.targets.target import Target

ON_VALUES = ("arg_attrs", "res_attrs")


def remove_placement(graph: Graph, target: Target) -> tuple[Change, ...]:
    """Take shardings off a module for one device, in place, where its target does not know them."""
    if not graph.has_shardy or target.refuses_op(mlir.MESH) is None or is_partitioned(graph.module.operation):
        return ()
    removed = remove_foreign(graph, {"sdy"})
    where = str(graph.location(Node(graph.module.operation)))
    return tuple(Change(Outcome.LOWERED, name, Code.PLACED_ON_ONE_DEVICE(), where, n) for name, n in removed)


def remove_foreign(
    graph: Graph, dialects: Collection[str], is_left: Callable[[Node], bool] = lambda node: False
) -> tuple[tuple[str, int], ...]:
    """Take the attributes of some dialects off a module, its functions, their arguments and results, and operations.

    Args:
      graph: the module.
      dialects: as attributes and their types begin.
      is_left: operations that keep theirs.

    Returns:
      Their names and how many there were; with them the meshes, which nothing names any more.
    """
    foreign = _Foreign("|".join(sorted(dialects)))

    def visit(node: Node) -> None:
        if node.name != mlir.MESH and (node.name == "builtin.module" or not is_left(node)):
            foreign.remove(node)

    with mlir.active(graph.context):
        graph.walk(visit)
    if not _names_a_mesh(graph):
        for mesh in mlir.meshes(graph.module.operation):
            foreign.removed[mlir.MESH] += 1
            mesh.erase()
    return tuple(sorted(foreign.removed.items()))


class _Foreign:
    """Attributes of some dialects, by their own name or that of their type, and how many of each are removed."""

    def __init__(self, dialects: str) -> None:
        self.removed: Counter[str] = Counter()
        self._name, self._value = re.compile(rf"({dialects})\."), re.compile(rf"#({dialects})\b")

    def remove(self, node: Node) -> None:
        """Take them off an operation."""
        attributes = node.raw.attributes
        for name in list(attributes):
            if name in ON_VALUES:
                attributes[name] = self._without(attributes[name])
            elif self._name.match(name) or ("." in name and self._value.match(str(attributes[name]))):
                self.removed[name] += 1
                del attributes[name]

    def _without(self, dictionaries: Any) -> mlir.RawAttribute:
        """The dictionaries of a function's arguments or results without the foreign entries."""
        told: list[str] = []
        for dictionary in dictionaries:
            kept: list[str] = []
            for name, attribute in mlir.entries_of(dictionary).items():
                value = str(attribute)
                if self._name.match(name) or self._value.match(value):
                    self.removed[name] += 1
                else:
                    kept.append(f"{name} = {value}")
            told.append(f"{{{', '.join(kept)}}}")
        return mlir.parse_attribute(f"[{', '.join(told)}]")


def _names_a_mesh(graph: Graph) -> bool:
    """Whether an operation of the dialect sdy is left besides the meshes."""
    module = graph.module.operation
    return mlir.any_operation(module, lambda raw: str(raw.name).startswith("sdy.") and raw.name != mlir.MESH)
