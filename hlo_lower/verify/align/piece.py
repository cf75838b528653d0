"""Pieces of modules as modules of their own: main(inputs of the region) -> its outputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.vectors import Told, told_of, with_what_is_told
from hlo_lower.verify.judges.silent_attributes import freed_order
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.partitions import remove_shardings
from hlo_lower.verify.read.program import Op, Program, ValueId, ops_within
from hlo_lower.verify.run import CannotRunError, over_budget


@dataclass(frozen=True)
class Pieces:
    """Both pieces of a region as text.

    Attributes:
      first, second: the two modules, of one signature.
      seen: what the first one returns behind the outputs: values inside that are to be looked at.
    """

    first: str
    second: str
    seen: tuple[Number, ...] = ()


def pieces_of(region: Region, seen: Sequence[Number] = ()) -> Pieces:
    """Both pieces of a region; of vectors they return what is told of them (`vectors`).

    Args:
      region: the region.
      seen: numbers of values within the first piece that it returns behind its outputs.

    Raises:
      CannotRunError: a piece cannot be cut out, its constants are too large to be run, or it is run in an order that
        it need not take.
    """
    pair = region.pair
    reason = over_budget(op.raw for op in ops_within([*region.first, *region.second]))
    reason = reason or freed_order(region.first, region.second)
    if reason:
        raise CannotRunError(reason)
    outputs = [o.first for o in region.outputs], [o.second for o in region.outputs]
    values = pair.first.value_of
    watched, told = [values[number] for number in seen], told_of(region)
    first = piece(
        pair.first,
        region.first,
        region.inputs,
        [*outputs[0], *watched],
        types_of(region),
        [(one, one.matrices[0]) for one in told],
    )
    second = piece(
        pair.second,
        region.second,
        region.inputs,
        outputs[1],
        types_of(region),
        [(one, one.matrices[1]) for one in told],
    )
    return Pieces(first, second, tuple(seen))


def types_of(region: Region) -> list[mlir.RawType]:
    """The types of a region's inputs."""
    found: list[mlir.RawType] = []
    for number in region.inputs:
        side = region.pair.first if number in region.pair.first.value_of else region.pair.second
        found.append(side.program.types[side.value_of[number]])
    return found


def piece(
    side: Side,
    ops: Iterable[Op],
    inputs: Sequence[Number],
    outputs: Sequence[ValueId],
    types: Sequence[mlir.RawType],
    told: Sequence[tuple[Told, ValueId]] = (),
) -> str:
    """The module that computes some values by some operations.

    Args:
      side: the body that the operations are of.
      ops: the operations, in order.
      inputs: the numbers of the values that are given, in the order of the arguments.
      outputs: the values that are returned.
      types: the types of the arguments.
      told: what is returned in the place of outputs that are vectors, and of which matrix.
    """
    return module_of(side.program, ops, dict(enumerate(inputs)), side.numbers, outputs, types, told)


def module_of(
    program: Program,
    ops: Iterable[Op],
    inputs: Mapping[int, Number],
    numbers: Mapping[ValueId, Number],
    outputs: Sequence[ValueId],
    types: Sequence[mlir.RawType],
    told: Sequence[tuple[Told, ValueId]] = (),
) -> str:
    """See `piece`.

    Raises:
      CannotRunError: it holds what is written for one of several devices.
    """
    context = program.raw.context
    with mlir.active(context):
        module = mlir.parse_module("module {}", context)
        location = mlir.unknown_location(context)
        main = mlir.create_operation(
            "func.func",
            [],
            [],
            {"sym_name": mlir.string_attribute("main"), "function_type": mlir.parse_attribute("() -> ()")},
            regions=1,
            location=location,
            insertion_point=mlir.insert_at_end(module.body),
        )
        block = mlir.append_block(main, 0, list(types), location)
        given = {number: block.arguments[place] for place, number in inputs.items()}
        made: dict[ValueId, mlir.RawValue] = {}
        by_number: dict[Number, mlir.RawValue] = {}

        def value(number: ValueId) -> mlir.RawValue:
            if number in made:
                return made[number]
            own = numbers[number]
            return by_number[own] if own in by_number else given[own]

        called: list[mlir.RawOperation] = []
        for op in ops:
            replaced = {raw: value(inner) for raw, inner in op.captured.items()}
            copy = mlir.clone_into(op.raw, block, replaced)
            for place, operand in enumerate(op.inputs):
                copy.operands[place] = value(operand)
            for result, raw in zip(op.results, copy.results, strict=True):
                made[result] = raw
                by_number.setdefault(numbers[result], raw)
            called += program.functions_named(op.raw)
        mlir.create_operation(
            "func.return",
            with_what_is_told(module, block, [value(v) for v in outputs], [(one, value(of)) for one, of in told]),
            [],
            location=location,
            insertion_point=mlir.insert_at_end(block),
        )
        mlir.set_signature(main)
        _add_functions(module, called)
        if not remove_shardings(module):
            raise CannotRunError("it is written for one of several devices")
        return mlir.print_module(module)


def _add_functions(module: mlir.RawModule, functions: Iterable[mlir.RawOperation]) -> None:
    """Copy functions as private ones."""
    for function in dict.fromkeys(functions):
        copy = function.clone(ip=mlir.insert_at_end(module.body)).operation
        copy.attributes["sym_visibility"] = mlir.string_attribute("private")
        if mlir.symbol_name(copy.attributes["sym_name"]) == "main":
            raise CannotRunError("it calls @main")
