"""Symbolic shapes: what the dims of a module's arguments are called, and binding them to sizes."""

from hlo_lower.shapes.bind import bind_module
from hlo_lower.shapes.given_sizes import SizesError, parse_sizes
from hlo_lower.shapes.specification import Specification, specification_of

__all__ = ["SizesError", "Specification", "bind_module", "parse_sizes", "specification_of"]
