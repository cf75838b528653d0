"""Give the symbolic sizes of a module values: the same module with static shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.export

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_and_complete
from hlo_lower.ir.shapes.constraints import names_of, substituted_constraint
from hlo_lower.ir.shapes.expressions import ExpressionError, substitute
from hlo_lower.ir.shapes.given_sizes import SizesError, named_sizes
from hlo_lower.ir.shapes.specification import Specification, is_place, specification_of
from hlo_lower.ir.view import Graph


def bind(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Bind symbolic sizes, all or some, by jaxlib's shape refinement; what the graph came as stays as it was.

    Args:
      graph: a module with symbolic shapes.
      sizes: a size for each symbol of the entry point's arguments ({"b": 4, "s": 16}). A dim can be given by its place
        ("arg1.0": dim 0 of argument 1), which is its only name where the module gives none; and an integer scalar
        argument by number ("arg0", unless a symbol has that name): it becomes a constant within, and its value is not
        looked at any more.

    Returns:
      A graph whose functions have static shapes, as far as the sizes tell. Private functions are inlined where their
      sizes differ by caller, and assertions about sizes are checked and gone; those about names left open stay.

    Raises:
      InputError: a name is unknown, all are missing, or the sizes contradict the module; it names what does not hold.
    """
    exported = graph.exported
    given = [exported.in_avals[i].shape for i in exported.module_kept_var_idx] if exported is not None else None
    specification = specification_of(graph.module, given)
    try:
        module, known = bind_and_complete(graph.module, sizes, specification)
    except SizesError as error:
        raise InputError(graph.name, error.what, facts=error.facts, next_step=error.next_step) from None
    try:
        bound = None if exported is None else _with_sizes(exported, module, known, specification)
    except ExpressionError as error:
        raise InputError(
            graph.name,
            f"a dim of the exported signature cannot be computed: {error.what}",
            next_step="bind the text of its module",
        ) from None
    return Graph(module, graph.name, has_locations=graph.has_locations, exported=bound)


def _with_sizes(
    exported: jax.export.Exported, module: mlir.RawModule, sizes: Mapping[str, int], specification: Specification | None
) -> jax.export.Exported:
    """An `Exported` with the sizes in its signature; names that are left open keep the constraints that they have."""
    constraints = () if specification is None else specification.constraints
    kept = [substituted_constraint(c, sizes) for c in constraints if not names_of(c) <= set(sizes)]
    scope = jax.export.SymbolicScope(kept)
    in_avals, out_avals = (_bind_avals(avals, sizes, scope) for avals in (exported.in_avals, exported.out_avals))
    return replace(
        exported,
        in_avals=in_avals,
        out_avals=out_avals,
        mlir_module_serialized=mlir.module_portable_artifact(module),
        uses_global_constants=any(not isinstance(dim, int) for aval in in_avals for dim in aval.shape),
    )


def _bind_avals(avals: Sequence[Any], sizes: Mapping[str, int], scope: jax.export.SymbolicScope) -> tuple[Any, ...]:
    return tuple(aval.update(shape=tuple(_size(dim, sizes, scope) for dim in aval.shape)) for aval in avals)


def _size(dim: Any, sizes: Mapping[str, int], scope: jax.export.SymbolicScope) -> Any:
    if isinstance(dim, int):
        return dim
    text = substitute(str(dim), sizes)
    return int(text) if text.lstrip("-").isdigit() else jax.export.symbolic_shape(text, scope=scope)[0]


def is_symbolic(text: str) -> bool:
    """Whether the entry point of a module has an argument of unknown size."""
    specification = specification_of(mlir.parse_module(text))
    return specification is not None and specification.is_dynamic


def checked_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes as a caller gives them, whole numbers of any kind, as Python's.

    Raises:
      InputError: they are no mapping from names to whole numbers.
    """
    try:
        return named_sizes(sizes)
    except SizesError as error:
        raise InputError("bind", error.what, next_step=error.next_step) from None


def open_sizes(text: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Those of the sizes whose names a module leaves open: others may have been bound in it before.

    Raises:
      InputError: they are no mapping from names.
    """
    sizes = checked_sizes(sizes)
    specification = specification_of(mlir.parse_module(text))
    if specification is None:
        return sizes
    named = {*specification.symbols, *specification.scalars}
    return {name: size for name, size in sizes.items() if name in named or is_place(name)}
