"""Ops that are built beside a program's own, before an op or one behind the other after it."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
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

    def splat(self, number: int, made: mlir.RawType) -> mlir.RawValue:
        """A constant tensor with one number everywhere."""
        return self.op("constant", [], made, value=f"dense<{number}> : {made}")

    def compare(self, direction: str, operands: list[mlir.RawValue]) -> mlir.RawValue:
        """A comparison of two tensors of one type."""
        shape, element = mlir.tensor_shape(operands[0].type), mlir.tensor_element_name(operands[0].type)
        how = {
            "comparison_direction": f"#stablehlo<comparison_direction {direction}>",
            "compare_type": f"#stablehlo<comparison_type {element_type(element).compare_type}>",
        }
        return self.op("compare", operands, mlir.tensor_type(shape, "i1"), **how)

    def slice(self, value: mlir.RawValue, start: list[int], limit: list[int], step: int = 1) -> mlir.RawValue:
        """A part of a tensor; the step is that of every dim."""
        shape = [-(-(b - a) // step) for a, b in zip(start, limit, strict=True)]
        bounds = {"start_indices": start, "limit_indices": limit, "strides": [step] * len(shape)}
        made = mlir.tensor_type(shape, mlir.tensor_element(value.type))
        return self.op("slice", [value], made, **{key: mlir.dense_i64(b) for key, b in bounds.items()})

    def reshape(self, value: mlir.RawValue, shape: Sequence[int]) -> mlir.RawValue:
        """A tensor in another shape."""
        return self.op("reshape", [value], mlir.tensor_type(shape, mlir.tensor_element(value.type)))

    def transpose(self, value: mlir.RawValue, order: Sequence[int]) -> mlir.RawValue:
        """A tensor with its dims in another order."""
        shape = mlir.static_shape(value.type)
        made = mlir.tensor_type([shape[d] for d in order], mlir.tensor_element(value.type))
        return self.op("transpose", [value], made, permutation=mlir.dense_i64(order))

    def broadcast(self, value: mlir.RawValue, made: mlir.RawType, dims: Sequence[int] = ()) -> mlir.RawValue:
        """A tensor spread over a type, its own dims at these."""
        return self.op("broadcast_in_dim", [value], made, broadcast_dimensions=mlir.dense_i64(dims))

    def op_with_body(
        self,
        name: str,
        operands: list[mlir.RawValue],
        made: mlir.RawType,
        body: Callable[["OpsBeside", list[mlir.RawValue]], mlir.RawValue],
        **attributes: mlir.RawAttribute,
    ) -> mlir.RawValue:
        """The result of a new op before the anchor whose body works on two scalars of the result's element type."""
        where, point = self.anchor.location, mlir.insert_before(self.anchor)
        new = mlir.create_operation(
            name, operands, [made], attributes, regions=1, location=where, insertion_point=point
        )
        scalar = mlir.tensor_type([], mlir.tensor_element(made))
        block = mlir.append_block(new, 0, [scalar, scalar], where)
        given, end = list(block.arguments), mlir.insert_at_end(block)
        returned = mlir.create_operation("stablehlo.return", given[:1], [], location=where, insertion_point=end)
        returned.operands[0] = body(OpsBeside(returned), given)
        return new.results[0]
