"""Ops that are built beside a program's own, before an op or one behind the other after it."""

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir


class OpsBeside:
    """Makes ops in front of an op, or behind it and what was made there before; the context has to be active.

    Args:
      anchor: the op.
      is_behind: where they are made.
    """

    def __init__(self, anchor: mlir.RawOperation, *, is_behind: bool = False) -> None:
        self.anchor, self._is_behind = anchor, is_behind

    def op(
        self, name: str, operands: list[mlir.RawValue], made: mlir.RawType, **attributes: mlir.RawAttribute | str
    ) -> mlir.RawValue:
        """The result of an op of StableHLO, or of the dialect that its name has; attributes may be as printed."""
        new = mlir.create_operation(
            name if "." in name else f"stablehlo.{name}",
            operands,
            [made],
            {key: mlir.parse_attribute(a) if isinstance(a, str) else a for key, a in attributes.items()},
            location=self.anchor.location,
            insertion_point=mlir.insert_after(self.anchor) if self._is_behind else mlir.insert_before(self.anchor),
        )
        self.anchor = new if self._is_behind else self.anchor
        return new.results[0]

    def constant(self, array: NDArray[np.generic], made: mlir.RawType) -> mlir.RawValue:
        """A constant of a type."""
        return self.op("constant", [], made, value=mlir.dense_attribute(array, made))

    def compare(self, direction: str, operands: list[mlir.RawValue], **attributes: str) -> mlir.RawValue:
        """A comparison of two tensors of one type."""
        made = mlir.tensor_type(mlir.tensor_shape(operands[0].type), "i1")
        how = f"#stablehlo<comparison_direction {direction}>"
        return self.op("compare", operands, made, comparison_direction=how, **attributes)

    def slice(self, value: mlir.RawValue, start: list[int], limit: list[int], step: int = 1) -> mlir.RawValue:
        """A part of a tensor; the step is that of every dim."""
        shape = [-(-(b - a) // step) for a, b in zip(start, limit, strict=True)]
        bounds = {"start_indices": start, "limit_indices": limit, "strides": [step] * len(shape)}
        made = mlir.tensor_type(shape, mlir.tensor_element(value.type))
        return self.op("slice", [value], made, **{key: mlir.dense_i64(b) for key, b in bounds.items()})

    def reshape(self, value: mlir.RawValue, shape: list[int]) -> mlir.RawValue:
        """A tensor in another shape."""
        return self.op("reshape", [value], mlir.tensor_type(shape, mlir.tensor_element(value.type)))
