"""The columns of an index tensor: where the starts in one operand dim come from, as MLIR text and in NumPy.

A column is [N0, ..., Nm], the scatter dims. It is computed as exporters compute it: from a runtime argument, a
constant, an iota, a base plus an iota, with negative indices normalised, clamped, or as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.testing.fuzz.drawn_types import TYPES, tensor_type

Array = NDArray[Any]
Kind = Literal["data", "constant", "uniform", "run", "reversed", "strided", "coordinate", "mixed"]
Treatment = Literal["", "normalised", "clamped", "clamped outside"]


@dataclass(frozen=True)
class DrawnColumn:
    """The starts in one operand dim.

    Attributes:
      dim: the operand dim.
      kind: data: a runtime argument; constant: values; uniform: one runtime scalar for all; coordinate: the position
        along a scatter dim; run, reversed, strided: base + p, base - p, base + 2 p of a runtime scalar; mixed: a base
        for each position of the other scatter dims, + p.
      along: the scatter dim of p.
      offset: a constant that is added.
      treatment: normalised: a negative start is moved up by the extent, as JAX does; clamped: into [0, D - W];
        clamped outside: into [D, D + 2].
      values: of a constant column, row-major.
    """

    dim: int
    kind: Kind = "data"
    along: int = 0
    offset: int = 0
    treatment: Treatment = ""
    values: tuple[int, ...] = ()

    def argument_shape(self, positions: Sequence[int]) -> tuple[int, ...] | None:
        """The shape of its runtime argument; None if it has none."""
        if self.kind in ("constant", "coordinate"):
            return None
        if self.kind == "data":
            return tuple(positions)
        return tuple(n for d, n in enumerate(positions) if d != self.along) if self.kind == "mixed" else ()


@dataclass
class _Lines:
    """Lines of text that define values, each computed in NumPy as it is written."""

    prefix: str
    element: str
    text: list[str]

    def add(self, op: str, value: Array) -> tuple[str, Array]:
        """Define a value by `op : type`."""
        name = f"%{self.prefix}{len(self.text)}"
        self.text.append(f"{name} = {op}")
        return name, value.astype(TYPES[self.element].dtype)

    def type(self, shape: tuple[int, ...]) -> str:
        """A tensor type of the column's element."""
        return tensor_type(shape, self.element)

    def constant(self, value: int, shape: tuple[int, ...]) -> tuple[str, Array]:
        """A splat."""
        return self.add(f"stablehlo.constant dense<{value}> : {self.type(shape)}", np.full(shape, value))

    def binary(self, op: str, a: tuple[str, Array], b: tuple[str, Array]) -> tuple[str, Array]:
        """add, subtract, multiply, minimum, maximum; they wrap around."""
        functions = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
        functions |= {"minimum": np.minimum, "maximum": np.maximum}
        with np.errstate(all="ignore"):
            value = np.asarray(functions[op](a[1], b[1]))
        return self.add(f"stablehlo.{op} {a[0]}, {b[0]} : {self.type(value.shape)}", value)


def compute(
    column: DrawnColumn,
    positions: tuple[int, ...],
    element: str,
    extent: tuple[int, int],
    argument: tuple[str, Array | None],
    prefix: str,
) -> tuple[list[str], str, Array]:
    """Write and compute a column: the lines, its name and its value.

    It is computed in the type `element` at positions N0, ..., Nm for the extents of operand and window in its dim.
    `argument` has the name and the value of its runtime argument, zeros where only the text matters; names begin with
    `prefix`.
    """
    lines = _Lines(prefix, element, [])
    name, given = argument
    value = np.zeros(column.argument_shape(positions) or (), TYPES[element].dtype) if given is None else given
    if column.kind == "constant":
        array = np.asarray(column.values, np.int64).reshape(positions)
        told = str(array.tolist()) if array.size else ""
        found = lines.add(f"stablehlo.constant dense<{told}> : {lines.type(positions)}", array)
    elif column.kind == "data":
        found = (name, value)
    elif column.kind == "uniform":
        found = _broadcast(lines, (name, value), positions, ())
    else:
        found = _run(lines, column, positions, (name, value))
    if column.offset:
        found = lines.binary("add", found, lines.constant(column.offset, positions))
    found = _treat(lines, column, positions, extent, found)
    return lines.text, found[0], found[1]


def _broadcast(
    lines: _Lines, value: tuple[str, Array], shape: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[str, Array]:
    old = value[1].shape
    spread = [old[dims.index(d)] if d in dims else 1 for d in range(len(shape))]
    op = f"stablehlo.broadcast_in_dim {value[0]}, dims = {list(dims)} : ({lines.type(old)}) -> {lines.type(shape)}"
    return lines.add(op, np.broadcast_to(value[1].reshape(spread), shape))


def _run(
    lines: _Lines, column: DrawnColumn, positions: tuple[int, ...], argument: tuple[str, Array]
) -> tuple[str, Array]:
    along = column.along
    line = np.arange(positions[along]).reshape([-1 if d == along else 1 for d in range(len(positions))])
    found = lines.add(f"stablehlo.iota dim = {along} : {lines.type(positions)}", np.broadcast_to(line, positions))
    if column.kind == "coordinate":
        return found
    if column.kind == "strided":
        found = lines.binary("multiply", found, lines.constant(2, positions))
    dims = tuple(d for d in range(len(positions)) if d != along) if column.kind == "mixed" else ()
    base = _broadcast(lines, argument, positions, dims)
    return lines.binary("subtract" if column.kind == "reversed" else "add", base, found)


def _treat(
    lines: _Lines,
    column: DrawnColumn,
    positions: tuple[int, ...],
    extent: tuple[int, int],
    found: tuple[str, Array],
) -> tuple[str, Array]:
    size, window = extent
    kind = column.treatment
    if kind == "normalised":
        moved = lines.binary("add", found, lines.constant(size, positions))
        zero = lines.constant(0, positions)
        sign = element_type(lines.element).compare_type
        flags, tensor = tensor_type(positions, "i1"), lines.type(positions)
        below = f"%{lines.prefix}{len(lines.text)}"
        types = f"({tensor}, {tensor}) -> {flags}"
        lines.text.append(f"{below} = stablehlo.compare LT, {found[0]}, {zero[0]}, {sign} : {types}")
        op = f"stablehlo.select {below}, {moved[0]}, {found[0]} : {flags}, {tensor}"
        return lines.add(op, np.where(found[1] < 0, moved[1], found[1]))
    if kind in ("clamped", "clamped outside"):
        low, high = (0, max(size - window, 0)) if kind == "clamped" else (size, size + 2)
        bounds = [lines.constant(bound, ()) for bound in (low, high)]
        scalar, tensor = lines.type(()), lines.type(positions)
        op = f"stablehlo.clamp {bounds[0][0]}, {found[0]}, {bounds[1][0]} : ({scalar}, {tensor}, {scalar}) -> {tensor}"
        return lines.add(op, np.minimum(np.maximum(found[1], bounds[0][1]), bounds[1][1]))
    return found


def permute_column(
    column: DrawnColumn, dims: Sequence[int], scatter_dims: Sequence[int], positions: Sequence[int]
) -> DrawnColumn:
    """The same column after the operand dims and the scatter dims have been put in another order."""
    values = column.values
    if values:
        order = sorted(range(len(positions)), key=lambda d: scatter_dims[d])
        values = tuple(int(v) for v in np.asarray(values).reshape(tuple(positions)).transpose(order).reshape(-1))
    along = scatter_dims[column.along] if positions else 0
    return replace(column, dim=dims[column.dim], along=along, values=values)
