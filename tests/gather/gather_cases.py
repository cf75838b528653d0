"""Gathers of many forms, as text of one function of an operand and indices."""

from dataclasses import dataclass

import numpy as np
from untyped_mlir import module, of

from hlo_lower.ir.mlir import GatherNumbers


@dataclass(frozen=True)
class Case:
    """A form of a gather: shapes, dimension numbers and window."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    numbers: GatherNumbers
    window: tuple[int, ...]
    result: tuple[int, ...]

    @property
    def reads_rows(self):
        """Whether each window has extent 1 in indexed dims, of which there are some, and there is one."""
        indexed = self.numbers.start_index_map
        return bool(indexed) and all(self.window[d] == 1 for d in indexed) and 0 not in self.result

    def text(self, element="f32", index="i32"):
        """The module."""
        fields = [
            f"{name} = {dims if isinstance(dims, int) else list(dims)}" for name, dims in vars(self.numbers).items()
        ]
        sizes = f"array<i64{': ' if self.window else ''}{', '.join(map(str, self.window))}>"
        attributes = f"dimension_numbers = #stablehlo.gather<{', '.join(fields)}>, slice_sizes = {sizes}"
        given = f"%o: {of(self.operand, element)}, %i: {of(self.indices, index)}"
        return module(given, f"%r = gather(%o, %i) <{attributes}> -> {of(self.result, element)}")

    def draw(self, rng, dtype, index_dtype):
        """An operand with special values, and indices in, at and beyond the bounds."""
        operand = (rng.standard_normal(self.operand) * 100).astype(dtype)
        if np.dtype(dtype).kind == "f" and operand.size:
            flat = operand.reshape(-1)
            flat[rng.integers(0, flat.size, 4)] = [-0.0, np.nan, np.inf, -np.inf]
        info = np.iinfo(index_dtype)
        near = np.maximum(rng.integers(-3, 9, self.indices), max(info.min, -3)).astype(index_dtype)
        ends = np.asarray([info.min, info.max, 0, 1], index_dtype)
        return operand, np.where(rng.random(self.indices) < 0.7, near, rng.choice(ends, self.indices))


ROWS, LAST = GatherNumbers((1,), (0,), (), (), (0,), 1), GatherNumbers((0,), (0,), (), (), (0,), 0)
BATCH = (2,), (1,), (0,), (0,), (1,)
CASES = {
    "rows": Case((6, 4), (5, 1), ROWS, (1, 4), (5, 4)),
    "implicit vector": Case((6, 4), (5,), ROWS, (1, 4), (5, 4)),
    "scalar index": Case((6, 4), (), LAST, (1, 4), (4,)),
    "vector first": Case((6, 4), (1, 5), LAST, (1, 4), (4, 5)),
    "pages": Case((5, 3, 2), (2, 3, 1), GatherNumbers((2, 3), (0,), (), (), (0,), 2), (1, 3, 2), (2, 3, 3, 2)),
    "two components": Case((4, 3, 2), (5, 2), GatherNumbers((1,), (0, 1), (), (), (1, 0), 1), (1, 1, 2), (5, 2)),
    "points": Case((4, 3), (2, 3, 2), GatherNumbers((), (0, 1), (), (), (0, 1), 2), (1, 1), (2, 3)),
    "windows": Case((6, 5), (4, 2), GatherNumbers((1, 2), (), (), (), (0, 1), 1), (3, 2), (4, 3, 2)),
    "one component of windows": Case((6, 5), (3, 1), GatherNumbers((0, 1), (), (), (), (1,), 1), (4, 2), (4, 2, 3)),
    "offsets in between": Case(
        *((6, 4, 3), (2, 2, 1), GatherNumbers((1, 3), (1,), (), (), (1,), 2), (6, 1, 3), (2, 6, 2, 3))
    ),
    "batching": Case((3, 6, 4), (3, 5, 1), GatherNumbers(*BATCH, 2), (1, 1, 4), (3, 5, 4)),
    "batching crossed": Case(
        *((3, 6, 2), (2, 5, 3, 1), GatherNumbers((), (1,), (0, 2), (2, 0), (1,), 3), (1, 1, 1), (2, 5, 3))
    ),
    "vector between": Case((3, 6, 4), (3, 1, 5), GatherNumbers(*BATCH, 1), (1, 1, 4), (3, 5, 4)),
    "narrow in a dim that is not indexed": Case((6, 4), (5, 1), ROWS, (1, 3), (5, 3)),
    "no component": Case((3, 2), (4, 0), GatherNumbers((1, 2), (), (), (), (), 1), (3, 2), (4, 3, 2)),
    "no position": Case((6, 4), (0, 1), ROWS, (1, 4), (0, 4)),
    "no element": Case((6, 0), (5, 1), ROWS, (1, 0), (5, 0)),
    "whole": Case((2, 3), (4, 2), GatherNumbers((1, 2), (), (), (), (0, 1), 1), (2, 3), (4, 2, 3)),
}
