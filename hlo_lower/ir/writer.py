"""Write a module: what was not lowered leaves as jaxlib prints it."""

from dataclasses import dataclass
from functools import cached_property

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph


def to_text(graph: Graph, *, is_verified: bool = False) -> str:
    """The module as text: with locations if it came with them, else as `str(module)`; see `mlir.print_module`."""
    return mlir.print_module(graph.module, locations=graph.has_locations, is_verified=is_verified)


def to_bytecode(graph: Graph) -> bytes:
    """The module as MLIR bytecode, locations kept."""
    return mlir.module_bytecode(graph.module)


def to_portable_artifact(graph: Graph, version: str | None = None) -> bytes:
    """The module as a portable artifact of a StableHLO version, by default the current one."""
    return mlir.module_portable_artifact(graph.module, version)


@dataclass(frozen=True)
class Writable:
    """A result that is a module, in each form that a module is written in.

    Attributes:
      graph: the module.
    """

    graph: Graph

    @cached_property
    def text(self) -> str:
        """The module as text."""
        return to_text(self.graph)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        return to_bytecode(self.graph)

    def portable(self) -> bytes:
        """The module as a portable artifact."""
        return to_portable_artifact(self.graph)
