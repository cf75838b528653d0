"""Sizes for what has symbolic ones: both versions are refined with the same sizes and then compared like any other.

Only the sizes are chosen here; jaxlib's shape refinement makes the static modules, of the original and of what it was
converted to alike, so a lowering that takes its bounds from the wrong dim is refined into one that differs. Sizes of 0
are among them wherever the original may have them; one that has no place there for what it reads is not refined at all,
which is told as a failure of the lowering and not as sizes that do not fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from hlo_lower import mlir
from hlo_lower.errors import InputError
from hlo_lower.shapes import SizesError, Specification, bind_module, specification_of
from hlo_lower.shapes.bind import fits, instances
from hlo_lower.verify.cutout import Cutout, ModuleIndex
from hlo_lower.verify.run import CannotRunError

MODULE_INSTANCES = 2
"""Choices of ordinary sizes that a whole module is run with; then come some at their lower end."""

_OPERAND_SIZES = (5, 7, 4, 6, 3, 8)
_POSITIONS = (3, 2, 4, 1)

_NO_POSITION, _EMPTY_WINDOW, _NO_PLACE = range(3, 6)
"""The variants of a cut-out's sizes in which some are 0. The three ordinary ones come first, and each of these is like
one of them but for what is 0, so that it is not tried where nothing is."""


@dataclass(frozen=True)
class Instance:
    """A cut-out and what it was converted to, both of static shape.

    Attributes:
      cutout: the cut-out.
      converted: what it was converted to.
      sizes: the sizes that were chosen, for a reader: "5x8, 3x1, 3x8"; "" where none had to be.
    """

    cutout: Cutout
    converted: str
    sizes: str


def instances_of(cutout: Cutout, converted: str) -> list[Instance]:
    """A cut-out as it is, or, where its shapes are dynamic, with several choices of sizes.

    Raises:
      CannotRunError: no sizes fit the cut-out, or some that do have no place in what it was converted to.
    """
    module = mlir.parse_module(cutout.text, mlir.make_context())
    specification = specification_of(module)
    if specification is None or not specification.is_dynamic:
        return [Instance(cutout, converted, "")]
    found: list[Instance] = []
    refusal = ""
    tried: list[dict[str, int]] = []
    for sizes in _sizes(module, specification):
        if sizes in tried:
            continue
        tried.append(sizes)
        try:
            text = _bound(cutout.text, sizes)
            indices = _bound(cutout.indices_text, _index_sizes(cutout, sizes))
        except SizesError as error:
            refusal = error.what
            continue
        told = ", ".join(_shape_text(t) for t in _argument_types(text))
        try:
            lowered = _bound(converted, sizes)
        except SizesError as error:
            raise CannotRunError(
                f"the original runs at {told}, what it was converted to does not: {error.what}"
            ) from error
        found.append(Instance(replace(cutout, text=text, indices_text=indices), lowered, told))
    if not found:
        raise CannotRunError(f"no sizes were found that fit it: {refusal}")
    return found


def _bound(text: str, sizes: Mapping[str, int]) -> str:
    module = mlir.parse_module(text, mlir.make_context())
    return mlir.print_module(bind_module(module, sizes))


def _index_sizes(cutout: Cutout, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes for the module that computes the indices: its arguments come after operands and updates."""
    skipped = 2 * cutout.arity
    found: dict[str, int] = {}
    for place, size in sizes.items():
        number, _, dim = place.removeprefix("arg").partition(".")
        if skipped <= int(number) < skipped + cutout.index_leaves:
            found[f"arg{int(number) - skipped}.{dim}"] = size
    return found


def _argument_types(text: str) -> list[tuple[int | None, ...]]:
    module = mlir.parse_module(text, mlir.make_context())
    specification = specification_of(module)
    assert specification is not None
    return [tuple(int(d) for d in dims or ()) for dims in specification.dims]


def _shape_text(shape: Sequence[int | None]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _sizes(module: mlir.RawModule, specification: Specification) -> Iterator[dict[str, int]]:
    """Sizes for the dynamic dims of a cut-out, which belong together as the specification of scatter says.

    Windows smaller than the operand, windows that fill it, and one position; then no position, windows that are empty,
    and no place in the dims that the window is not in: each 0 of a size that is open. A window dim has a place for what
    the updates write, by constraint C4 of the specification; an inserted dim may have none.
    """
    scatter = ModuleIndex(module).scatters[0]
    arity = len(scatter.results)
    shapes = [mlir.tensor_shape(v.type) for v in scatter.operands]
    numbers = mlir.scatter_dimension_numbers(scatter)
    operand, indices, updates = _known(shapes[:arity]), shapes[arity], _known(shapes[arity + 1 :])
    in_indices = map(int, numbers.scatter_indices_batching_dims)
    batching = dict(zip(map(int, numbers.input_batching_dims), in_indices, strict=True))
    kept = [d for d in range(len(operand)) if d not in {*numbers.inserted_window_dims, *batching}]
    window_of = dict(zip(kept, map(int, numbers.update_window_dims), strict=True))
    scatter_dims = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
    index_dims = [d for d in range(len(indices)) if d != int(numbers.index_vector_dim)]
    for variant in range(6):
        own = [
            _positions(indices[i], updates[u], variant, k)
            for k, (i, u) in enumerate(zip(index_dims, scatter_dims, strict=True))
        ]
        position_of = dict(zip(index_dims, own, strict=True))
        full: list[int] = []
        for dim, size in enumerate(operand):
            extent = updates[window_of[dim]] if dim in window_of else 1
            chosen = max(extent or 1, _OPERAND_SIZES[(dim + variant % 3) % len(_OPERAND_SIZES)])
            if variant == _NO_PLACE and dim not in window_of:
                chosen = 0
            full.append(position_of[batching[dim]] if dim in batching else chosen if size is None else size)
        windows = {u: full[d] if variant % 3 == 1 else max(1, min(2, full[d])) for d, u in window_of.items()}
        if variant == _EMPTY_WINDOW:
            windows = dict.fromkeys(windows, 0)
        windows |= {u: size for u in windows if (size := updates[u]) is not None}
        update_size = {**windows, **dict(zip(scatter_dims, own, strict=True))}
        yield _by_place(specification, arity, full, update_size, position_of)


def _known(shapes: Sequence[tuple[int | None, ...]]) -> list[int | None]:
    """The shape that several tensors have: each size that one of them knows."""
    return [next((size for size in sizes if size is not None), None) for sizes in zip(*shapes, strict=True)]


def _positions(in_indices: int | None, in_updates: int | None, variant: int, k: int) -> int:
    """The size of a scatter dim: what either side says, or one chosen."""
    if in_indices is not None:
        return in_indices
    if in_updates is not None or variant == _NO_POSITION:
        return in_updates or 0
    return 1 if variant % 3 == 2 else _POSITIONS[(k + variant) % 3]


def _by_place(
    specification: Specification,
    arity: int,
    operand: Sequence[int],
    updates: Mapping[int, int],
    positions: Mapping[int, int],
) -> dict[str, int]:
    """Sizes under the places of the cut-out's arguments: operands, updates, the indices or what they are made of."""
    found: dict[str, int] = {}
    for name in specification.symbols:
        number, dim = (int(part) for part in name.removeprefix("arg").split("."))
        if number < arity:
            found[name] = operand[dim]
        elif number < 2 * arity:
            found[name] = updates[dim]
        else:
            found[name] = positions.get(dim, 1)
    return found


# --- the whole module ---


def is_open(module: mlir.RawModule) -> bool:
    """Whether a module has dims without a size, so that sizes that fit the original have to fit it, too."""
    specification = specification_of(module)
    return specification is not None and specification.is_dynamic


def sizes_of_module(
    module: mlir.RawModule, inputs: Sequence[Any] | Mapping[str, Any] | None, name: str
) -> list[dict[str, int]] | None:
    """The sizes that a module is run with: those of the user's arrays, or a few that fit and some at their lower end;
    None if it has no dynamic argument.

    Raises:
      InputError: inputs are given by name, are not as many as the arguments, or one of them does not fit.
    """
    specification = specification_of(module)
    if specification is None or not specification.is_dynamic:
        return None
    if inputs is None:
        usual = instances(specification, module, MODULE_INSTANCES)
        return [*usual, *_least(specification, module, usual)]
    if isinstance(inputs, Mapping) or len(inputs) != len(specification.dims):
        raise InputError(
            name,
            "a module with symbolic sizes takes its inputs by position, one for each argument",
            next_step="give the sizes too: --bind b=4,s=16",
        )
    shapes = [_fitting_shape(specification, n, value) for n, value in enumerate(inputs)]
    sizes = {f"arg{n}.{i}": size for n, shape in enumerate(shapes) for i, size in enumerate(shape)}
    try:
        bind_module(module, sizes, specification)
    except SizesError as error:
        raise InputError(
            name, f"the inputs do not fit the module: {error.what}", facts=error.facts, next_step=error.next_step
        ) from None
    return [sizes]


def _least(
    specification: Specification, module: mlir.RawModule, usual: Sequence[dict[str, int]]
) -> Iterator[dict[str, int]]:
    """Sizes at their lower end that fit: all of them, and the first of those that differ from usual ones in one.

    A dim that is called by its place may be 0. A name of JAX's is 1 or more, but what is computed of it may be 0.
    """
    if not usual:
        return
    symbols = specification.symbols
    least = 1 if specification.is_given else 0
    alone = ({**usual[0], name: least} for name in symbols)
    for choices in ([dict.fromkeys(symbols, least)], alone):
        yield from islice((s for s in choices if s not in usual and fits(module, specification, s)), 1)


def _fitting_shape(specification: Specification, number: int, value: Any) -> tuple[int, ...]:
    """The shape of an input, which has the rank of its argument and the sizes that are known.

    Raises:
      InputError: it has not.
    """
    dims = specification.dims[number] or ()
    try:
        shape = np.shape(value)
    except ValueError as error:
        raise InputError("", f"input {number} is no array", facts=str(error)) from None
    known = [int(dim) if dim.isdigit() else None for dim in dims]
    if len(shape) != len(known) or any(size not in (None, own) for size, own in zip(known, shape, strict=True)):
        told = f"expected ({', '.join(dims)}), got ({', '.join(map(str, shape))})"
        raise InputError("", f"input {number} does not fit", facts=told)
    return tuple(map(int, shape))
