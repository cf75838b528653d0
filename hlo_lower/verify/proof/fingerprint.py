"""What an operation is, as text: equal texts mean the same function of the operands. Names and places do not count."""

from typing import Any

from hlo_lower import mlir
from hlo_lower.verify.proof.beyond import Beyond


def fingerprint(operation: mlir.RawOperation) -> tuple[str, list[mlir.RawValue]]:
    """An operation's name, attributes, types and regions, and the values from outside that its regions read.

    Attributes of other dialects (shardings) are no part of it.

    Raises:
      Beyond: a region calls a function.
    """
    captured: list[mlir.RawValue] = []
    return _told(operation, {}, captured, is_outer=True), captured


def _told(operation: mlir.RawOperation, numbers: dict[Any, str], captured: list[Any], *, is_outer: bool) -> str:
    if operation.name == "func.call" or "callee" in operation.attributes:
        raise Beyond(f"{operation.name} in a region")
    attributes = mlir.attributes_of(operation)
    told = [f"{name} = {attributes[name]}" for name in sorted(attributes) if "." not in name]
    read: list[str] = []
    for operand in () if is_outer else operation.operands:
        if operand not in numbers:
            numbers[operand] = f"outer{len(captured)}"
            captured.append(operand)
        read.append(numbers[operand])
    types = [str(v.type) for v in (*operation.operands, *operation.results)]
    for result in operation.results:
        numbers[result] = f"v{len(numbers)}"
    regions = [_region(region, numbers, captured) for region in operation.regions]
    return f"{operation.name}({', '.join(read)}) {{{'; '.join(told)}}} : {', '.join(types)} {''.join(regions)}"


def _region(region: Any, numbers: dict[Any, str], captured: list[Any]) -> str:
    lines: list[str] = []
    for block in region.blocks:
        for argument in block.arguments:
            numbers[argument] = f"v{len(numbers)}"
            lines.append(str(argument.type))
        for inner in block.operations:
            lines.append(_told(inner.operation, numbers, captured, is_outer=False))
    return "{" + "\n".join(lines) + "}"
