"""Give the symbolic sizes of a module values: the same module with static shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.export

from hlo_lower import mlir
from hlo_lower.errors import InputError
from hlo_lower.graph.view import Graph
from hlo_lower.shapes import SizesError, bind_module, specification_of
from hlo_lower.shapes.expressions import ExpressionError, evaluate


def bind(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Bind symbolic sizes, by jaxlib's shape refinement; what the graph came as stays as it was.

    Args:
      graph: a module with symbolic shapes.
      sizes: a size for each symbol of the entry point's arguments ({"b": 4, "s": 16}). A dim can be given by its place
        ("arg1.0": dim 0 of argument 1), which is its only name where the module gives none; and an integer scalar
        argument by number ("arg0", unless a symbol has that name): it becomes a constant within, and its value is not
        looked at any more.

    Returns:
      A graph whose functions have static shapes. Private functions are inlined where their sizes differ by caller, and
      assertions about sizes are checked and gone.

    Raises:
      InputError: a name is unknown or missing, or the sizes contradict the module; it names the assertion that fails.
    """
    exported = graph.exported
    given = [exported.in_avals[i].shape for i in exported.module_kept_var_idx] if exported is not None else None
    specification = specification_of(graph.module, given)
    try:
        module = bind_module(graph.module, sizes, specification)
    except SizesError as error:
        raise InputError(graph.name, error.what, facts=error.facts, next_step=error.next_step) from None
    bound = None if exported is None else _with_sizes(exported, module, sizes)
    return Graph(module, graph.name, has_locations=graph.has_locations, exported=bound)


def _with_sizes(exported: jax.export.Exported, module: mlir.RawModule, sizes: Mapping[str, int]) -> jax.export.Exported:
    """An `Exported` with the sizes in its signature."""
    return replace(
        exported,
        in_avals=_static(exported.in_avals, sizes),
        out_avals=_static(exported.out_avals, sizes),
        mlir_module_serialized=mlir.module_portable_artifact(module),
        uses_global_constants=False,
    )


def _static(avals: Sequence[Any], sizes: Mapping[str, int]) -> tuple[Any, ...]:
    return tuple(aval.update(shape=tuple(_size(dim, sizes) for dim in aval.shape)) for aval in avals)


def _size(dim: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(dim, int):
        return dim
    try:
        return evaluate(str(dim), sizes)
    except ExpressionError:  # of an argument that the module does not use
        return dim


def is_symbolic(text: str) -> bool:
    """Whether the entry point of a module has an argument of unknown size."""
    specification = specification_of(mlir.parse_module(text, mlir.make_context()))
    return specification is not None and specification.is_dynamic
