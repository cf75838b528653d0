"""The graph: a typed view over a jaxlib MLIR module, its reader and writer, and the builder of new operations."""
