"""Integers that few truth values decide, as tables over these: what a binary search may hold after so many steps.

Where truth values choose between integers, and what is computed of these is chosen from again, intervals do not say
that the lower bound stays below the upper one. A table has an axis of two for each truth value that is not known. It
holds for each element by itself; what is moved to another place has none, other than a constant.
"""

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.drive.sample_sizes import computed
from hlo_lower.verify.read.program import Op, Program, ValueId

MOST = 12
"""Truth values that are looked at."""

DEEP = 200
"""Operations behind a value that are looked at."""

Table = NDArray[np.generic]


class Tables:
    """The tables of a module's values, found when they are asked for.

    Args:
      program: the module.
      integer: a number that all elements of a value are, None where none is known.
    """

    def __init__(self, program: Program, integer: Callable[[ValueId], int | None]) -> None:
        self._program, self._integer = program, integer
        self._known: dict[ValueId, Table | None] = {}
        self._truths = 0

    def may_be(self, first: ValueId, second: ValueId, sign: int) -> bool:
        """Whether an element of a value may lie below (-1), at (0) or above (1) that of another one."""
        one, other = self._of(first, DEEP), self._of(second, DEEP)
        if one is None or other is None:
            return True
        return bool(np.any(np.sign(np.asarray(one, object) - np.asarray(other, object)) == sign))

    def _of(self, value: ValueId, deep: int) -> Table | None:
        if value not in self._known:
            dtype = self._program.dtype_of(value)
            if dtype is None or dtype.kind not in "iub" or not deep:
                return None
            maker, number = self._program.makers[value], self._integer(value)
            if number is not None:
                found = np.asarray(number).astype(dtype)
            else:
                found = None if maker is None or len(maker.results) != 1 else self._made(maker, deep)
            if found is not None:
                found = np.asarray(found).astype(dtype)
            elif dtype == np.bool_ and self._truths < MOST:
                found = np.asarray([False, True]).reshape((2,) + (1,) * self._truths)
                self._truths += 1
            self._known[value] = found
        return self._known[value]

    def _made(self, op: Op, deep: int) -> Table | None:
        found: dict[ValueId, Table] = {}
        for value in sorted(op.inputs, key=lambda v: self._program.dtype_of(v) == np.bool_):  # these last: they count
            table = self._of(value, deep - 1)
            if table is None:
                return None
            found[value] = table
        tables = [found[value] for value in op.inputs]
        if not tables or (op.short_name in ("divide", "remainder") and not np.all(tables[1])):
            return None
        if op.short_name == "broadcast_in_dim" and tables[0].size > 1 and not _keeps_order(op):
            return None
        if op.short_name == "bitcast_convert":
            kinds = [self._program.dtype_of(v) for v in (*op.inputs, *op.results)]
            is_same = all(k is not None and k.kind in "iu" and k.itemsize == tables[0].itemsize for k in kinds)
            return tables[0] if is_same else None
        if op.short_name in ("select", "clamp") and _are_scalars(op):
            return None
        return computed(op, tables)


def _keeps_order(op: Op) -> bool:
    """Whether a broadcast adds dimensions of one element alone."""
    dims = list(mlir.integers_of(op.raw.attributes["broadcast_dimensions"]))
    before, after = (mlir.static_shape(v.type) for v in (op.raw.operands[0], op.raw.results[0]))
    return dims == sorted(dims) and prod(before) == prod(after)


def _are_scalars(op: Op) -> bool:
    """Whether an operation reads a scalar beside tensors, of which each element meets it."""
    return len({mlir.static_shape(v.type) for v in op.raw.operands}) > 1
