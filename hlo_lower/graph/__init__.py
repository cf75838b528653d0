"""The graph: a typed view over a jaxlib MLIR module, its reader and writer, and the builder of new operations."""

from hlo_lower.graph.binding import bind, checked_sizes, is_symbolic, open_sizes
from hlo_lower.graph.builder import Builder
from hlo_lower.graph.cleanup import erase, erase_built, erase_uncalled
from hlo_lower.graph.purity import ELEMENTWISE, FUNCTIONS, PLACEMENT_NOTES, Functional
from hlo_lower.graph.reader import Source, file_bytes, read, text_of
from hlo_lower.graph.view import Block, Function, Graph, Location, Node, Value
from hlo_lower.graph.writer import Writable, to_bytecode, to_portable_artifact, to_text

__all__ = [
    "ELEMENTWISE",
    "FUNCTIONS",
    "PLACEMENT_NOTES",
    "Block",
    "Builder",
    "Function",
    "Functional",
    "Graph",
    "Location",
    "Node",
    "Source",
    "Value",
    "Writable",
    "bind",
    "checked_sizes",
    "erase",
    "erase_built",
    "erase_uncalled",
    "file_bytes",
    "is_symbolic",
    "open_sizes",
    "read",
    "text_of",
    "to_bytecode",
    "to_portable_artifact",
    "to_text",
]
