"""Bind some of a module's symbols and leave the others open: jaxlib's refinement, and the module's own assertions.

The refinement looks at assertions only where it can decide all of them, so they are called otherwise while it runs.
Afterwards those that came true are gone, and the others stay, with what they say of the sizes brought up to date: it is
there that the names of the sizes left open are read from.
"""

import re
from collections.abc import Mapping, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.constraints import substituted_constraint
from hlo_lower.ir.shapes.expressions import substitute
from hlo_lower.ir.shapes.given_sizes import SizesError, without_places
from hlo_lower.ir.shapes.specification import Specification

_ASSERTION = "shape_assertion"
_HELD = "hlo_lower.shape_assertion"
_WRAPPER = "stablehlo.shape_refinement_operand_wrapper"
"""What jaxlib's pass leaves between an argument and its uses, where the argument's shape is not all known."""

_SPECIFICATIONS = re.compile(
    r"(?<=polymorphic shapes specifications: ).*?(?=\. Obtained dimension variables)", re.DOTALL
)
_CONSTRAINT = re.compile(r"(?<=symbolic shape constraint ).*?(?=\. Expected ')", re.DOTALL)


def refine_partly(
    module: mlir.RawModule,
    types: Sequence[str],
    fixed: Mapping[int, int],
    specification: Specification,
    sizes: Mapping[str, int],
) -> mlir.RawModule:
    """A copy of a module with these argument types, dims of unknown size among them.

    Args:
      module: the module; it is left as it is.
      types: the types of the arguments of @main.
      fixed: values of scalar integer arguments, by number.
      specification: what the dims are called.
      sizes: the sizes that are known.

    Raises:
      RefinementError: the sizes contradict the module.
      SizesError: an assertion of the module is false for the sizes.
    """
    copy = mlir.parse_module(mlir.module_bytecode(module), module.context)
    with mlir.active(copy.context):
        for op in _calls(copy, _ASSERTION):
            op.attributes["call_target_name"] = mlir.string_attribute(_HELD)
    refined = mlir.refine_shapes(copy, types, fixed=fixed, is_partial=True)
    listed = _shape_list(specification, sizes)
    with mlir.active(refined.context):
        for op in _calls(refined, _WRAPPER):
            _unwrap(op)
        for op in _calls(refined, _HELD):
            holds = _constant(op.operands[0])
            if holds is None:
                _tell(op, listed, sizes)
                op.attributes["call_target_name"] = mlir.string_attribute(_ASSERTION)
            elif holds:
                op.erase()
            else:
                message = mlir.symbol_name(op.attributes["error_message"])
                told = without_places(message.split(" Using the following")[0])
                raise SizesError(f"an assertion of the module fails: {told}")
    return refined


def _calls(module: mlir.RawModule, target: str) -> list[mlir.RawOperation]:
    return [op for op in mlir.operations_within(module.operation) if mlir.call_target(op) == target]


def _unwrap(op: mlir.RawOperation) -> None:
    """Put a conversion from the argument's type to the one that its uses have in the place of a wrapper."""
    value, result = op.operands[0], op.results[0]
    if value.type != result.type:
        point = mlir.insert_before(op)
        made = mlir.create_operation(
            "stablehlo.convert", [value], [result.type], {}, location=op.location, insertion_point=point
        )
        value = made.results[0]
    result.replace_all_uses_with(value)
    op.erase()


def _constant(value: mlir.RawValue) -> bool | None:
    """What a scalar truth value is, where it is constant."""
    if mlir.is_block_argument(value):
        return None
    owner = value.owner
    found = mlir.constant_value(owner) if owner.name == "stablehlo.constant" else None
    return None if found is None else bool(found)


def _shape_list(specification: Specification, sizes: Mapping[str, int]) -> str:
    """The shapes of the arguments of unknown size, as JAX lists them."""
    shapes = {
        n: [substitute(dim, sizes) for dim in dims]
        for n, dims in enumerate(specification.dims)
        if dims is not None and any(not dim.isdigit() for dim in dims)
    }
    return ",".join(
        f"args[{n}].shape = ({', '.join(dims)}{',' if len(dims) == 1 else ''})"
        for n, dims in shapes.items()
        if any(not dim.isdigit() for dim in dims)
    )


def _tell(op: mlir.RawOperation, listed: str, sizes: Mapping[str, int]) -> None:
    """Bring the message of an assertion up to date."""
    message = mlir.symbol_name(op.attributes["error_message"])
    message = _SPECIFICATIONS.sub(lambda _: listed, message)
    message = _CONSTRAINT.sub(lambda found: substituted_constraint(found[0], sizes), message)
    op.attributes["error_message"] = mlir.string_attribute(message)
