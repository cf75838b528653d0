"""Gathers of many forms, as text of one function of an operand and indices."""

from dataclasses import dataclass

import numpy as np
from untyped_mlir import module, of

from hlo_lower.ir.mlir import GatherNumbers


@dataclass(frozen=True)
class Case:
    """A form of a gather: shapes, dimension numbers and window."""

    name: str
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

    def text(self, element: str = "f32", index: str = "i32") -> str:
        """The module."""
        n = self.numbers
        fields = [
            f"offset_dims = {list(n.offset_dims)}",
            f"collapsed_slice_dims = {list(n.collapsed_slice_dims)}",
            f"operand_batching_dims = {list(n.operand_batching_dims)}",
            f"start_indices_batching_dims = {list(n.start_indices_batching_dims)}",
            f"start_index_map = {list(n.start_index_map)}",
            f"index_vector_dim = {n.index_vector_dim}",
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


CASES = (
    Case("rows", (6, 4), (5, 1), GatherNumbers((1,), (0,), (), (), (0,), 1), (1, 4), (5, 4)),
    Case("implicit vector", (6, 4), (5,), GatherNumbers((1,), (0,), (), (), (0,), 1), (1, 4), (5, 4)),
    Case("scalar index", (6, 4), (), GatherNumbers((0,), (0,), (), (), (0,), 0), (1, 4), (4,)),
    Case("vector first", (6, 4), (1, 5), GatherNumbers((0,), (0,), (), (), (0,), 0), (1, 4), (4, 5)),
    Case("pages", (5, 3, 2), (2, 3, 1), GatherNumbers((2, 3), (0,), (), (), (0,), 2), (1, 3, 2), (2, 3, 3, 2)),
    Case("two components", (4, 3, 2), (5, 2), GatherNumbers((1,), (0, 1), (), (), (1, 0), 1), (1, 1, 2), (5, 2)),
    Case("points", (4, 3), (2, 3, 2), GatherNumbers((), (0, 1), (), (), (0, 1), 2), (1, 1), (2, 3)),
    Case("windows", (6, 5), (4, 2), GatherNumbers((1, 2), (), (), (), (0, 1), 1), (3, 2), (4, 3, 2)),
    Case("one component of windows", (6, 5), (3, 1), GatherNumbers((0, 1), (), (), (), (1,), 1), (4, 2), (4, 2, 3)),
    Case(
        "offsets in between",
        (6, 4, 3),
        (2, 2, 1),
        GatherNumbers((1, 3), (1,), (), (), (1,), 2),
        (6, 1, 3),
        (2, 6, 2, 3),
    ),
    Case("batching", (3, 6, 4), (3, 5, 1), GatherNumbers((2,), (1,), (0,), (0,), (1,), 2), (1, 1, 4), (3, 5, 4)),
    Case(
        "batching crossed",
        (3, 6, 2),
        (2, 5, 3, 1),
        GatherNumbers((), (1,), (0, 2), (2, 0), (1,), 3),
        (1, 1, 1),
        (2, 5, 3),
    ),
    Case("vector between", (3, 6, 4), (3, 1, 5), GatherNumbers((2,), (1,), (0,), (0,), (1,), 1), (1, 1, 4), (3, 5, 4)),
    Case(
        "narrow in a dim that is not indexed",
        (6, 4),
        (5, 1),
        GatherNumbers((1,), (0,), (), (), (0,), 1),
        (1, 3),
        (5, 3),
    ),
    Case("no component", (3, 2), (4, 0), GatherNumbers((1, 2), (), (), (), (), 1), (3, 2), (4, 3, 2)),
    Case("no position", (6, 4), (0, 1), GatherNumbers((1,), (0,), (), (), (0,), 1), (1, 4), (0, 4)),
    Case("no element", (6, 0), (5, 1), GatherNumbers((1,), (0,), (), (), (0,), 1), (1, 0), (5, 0)),
    Case("whole", (2, 3), (4, 2), GatherNumbers((1, 2), (), (), (), (0, 1), 1), (2, 3), (4, 2, 3)),
)
