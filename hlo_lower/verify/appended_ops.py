"""Ops that are built beside a program's own, before an op or one behind the other after it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlo_lower import mlir


@dataclass
class BuildPlace:
    """Where ops are built: behind an op, and what salts them."""

    salt: mlir.RawValue
    location: Any


class Behind:
    """The insertion point behind an op and what was built there before."""

    def __init__(self, op: mlir.RawOperation) -> None:
        self.last = op

    def __call__(self) -> Any:
        return mlir.insert_after(self.last)


def built(
    name: str,
    operands: list[mlir.RawValue],
    raw_type: mlir.RawType,
    place: BuildPlace,
    point: Callable[[], Any],
    **attributes: str,
) -> mlir.RawValue:
    """The result of an op that is made at a point."""
    made = mlir.create_operation(
        name,
        operands,
        [raw_type],
        {key: mlir.parse_attribute(text) for key, text in attributes.items()},
        location=place.location,
        insertion_point=point(),
    )
    if isinstance(point, Behind):
        point.last = made
    return made.results[0]


def unless_equal(
    result: mlir.RawValue, operand: mlir.RawValue, moved: mlir.RawValue, place: BuildPlace, point: Callable[[], Any]
) -> mlir.RawValue:
    """What was moved, but the result itself where it is the operand."""
    shape = mlir.tensor_shape(result.type)
    is_equal = built(
        "stablehlo.compare",
        [result, operand],
        mlir.tensor_type(shape, "i1"),
        place,
        point,
        comparison_direction="#stablehlo<comparison_direction EQ>",
    )
    return built("stablehlo.select", [is_equal, result, moved], result.type, place, point)
