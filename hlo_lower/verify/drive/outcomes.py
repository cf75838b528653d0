"""Which outcomes a piece's runs had: of comparisons, choices, bounds, branches and loops. What none had is not known.

A piece is written anew to return how many elements had each outcome: those of comparisons that stand in loops and
branches are counted through these. Not looked at is what cannot come (`hlo_lower.verify.drive.ranges`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.drive.ranges import Interval, Ranges
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import CALLS, Body, Op, Program, ValueId, location_of, ops_within
from hlo_lower.verify.run import CannotRunError, entry_function

Array = NDArray[Any]

BRANCHING = ("stablehlo.if", "stablehlo.case")
ENTERED = (*BRANCHING, "stablehlo.while")
ORDER = {"less": "LT", "equal": "EQ", "greater": "GT"}
"""Outcomes of two numbers, and the comparison that tells them."""


@dataclass(frozen=True)
class Point:
    """A place where a piece may go one way or another.

    Attributes:
      op: the operation.
      outcome: "less", "equal", "greater", "different", "true", "false", or the number of a branch or body.
      pair: the operands that are compared; two equal ones for a truth value.
      where: where the operation is.
    """

    op: Op
    outcome: str
    pair: tuple[mlir.RawValue, mlir.RawValue]
    where: str

    def __str__(self) -> str:
        name = self.op.short_name
        if self.op.name in BRANCHING:
            return f"the {name} at {self.where}: no run took branch {self.outcome}"
        if self.op.name == "stablehlo.while":
            return f"the loop at {self.where}: no run entered it"
        return f"the {name} at {self.where}: no run had {self.outcome}"


@dataclass
class Outcomes:
    """What is watched of a piece, and what its runs had.

    Attributes:
      module: the piece, calls inlined.
      program: the same as it is compared.
      ranges: of its values.
      points: what is looked at.
      text: the piece that returns how many elements had each.
      told: for each run the counts.
    """

    module: mlir.RawModule
    program: Program
    ranges: Ranges
    points: list[Point]
    text: str
    told: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    @classmethod
    def of(
        cls,
        piece: str,
        counters: Mapping[int, Sequence[float]],
        places: Sequence[str],
        *,
        only_entered: bool,
        sorts: bool,
        no_nan: bool,
    ) -> "Outcomes":
        """What is to be watched of a piece.

        Args:
          piece: its module.
          counters: all that some arguments may be, in order, by place.
          places: where its operations are, in their order.
          only_entered: whether branches and loops alone are looked at.
          sorts, no_nan: see `hlo_lower.verify.drive.ranges`.
        """
        module = mlir.parse_module(piece)
        _inline(module)
        program = Program(module)
        body = program.entries["main"]
        ranges = Ranges(program, counters, sorts, no_nan)
        ops = ops_within(body.ops)
        names = dict(zip(ops, places, strict=True)) if len(ops) == len(places) else {}
        found: list[Point] = []
        for op in _reached(body.ops, ranges):
            for outcome, pair in _outcomes(op):
                if (op.name in ENTERED or not only_entered) and ranges.may_be(op, outcome):
                    found.append(Point(op, outcome, pair, names.get(op) or location_of(op.raw)))
        return cls(module, program, ranges, found, _counting(module, found) if found else "")

    def add(self, counts: Sequence[Array]) -> None:
        """Look at a run."""
        self.told.append(tuple(int(np.asarray(count).reshape(())) for count in counts))

    def missed(self) -> list[Point]:
        """What no run had."""
        return [point for k, point in enumerate(self.points) if not any(counts[k] for counts in self.told)]

    def left(self) -> list[Point]:
        """What no run had and what, as far as constants tell, may be."""
        missed = self.missed()
        had = {point.op for point in self.points if point.outcome == "equal" and point not in missed}
        missed = [point for point in missed if point.op not in had or not _is_as_equal(point)]
        if missed:
            self.ranges.know_constants()
        return [point for point in missed if self.ranges.may_be(point.op, point.outcome)]


def intervals_of(piece: str, counters: Mapping[int, Sequence[float]]) -> list[Interval]:
    """Between which numbers the results of a piece lie.

    Args:
      piece: its module.
      counters: all that some arguments may be, in order, by place.
    """
    module = mlir.parse_module(piece)
    _inline(module)
    program = Program(module)
    ranges = Ranges(program, counters)
    with suppress(CannotRunError):  # what is written as a constant is known without
        ranges.know_constants()
    return [ranges.of(value) for value in program.entries["main"].returned]


def _reached(ops: Sequence[Op], ranges: Ranges) -> Iterator[Op]:
    """The operations of which counts can be told: of a body, its branches, and loops that may be entered."""
    for op in ops:
        yield op
        is_loop = op.name == "stablehlo.while"
        if op.name in BRANCHING or (is_loop and ranges.may_be(op, "1")):
            for body in op.bodies[is_loop:]:
                yield from _reached(body.ops, ranges)


def _outcomes(op: Op) -> Iterator[tuple[str, tuple[mlir.RawValue, mlir.RawValue]]]:
    """What an operation may come out as, and what is compared for it."""
    raw = op.raw
    operands = list(raw.operands)
    match op.short_name:
        case "compare":
            if "complex" in str(operands[0].type):
                return
            is_equality = mlir.enum_value(raw.attributes["comparison_direction"]) in ("EQ", "NE")
            for outcome in ("equal", "different") if is_equality else ORDER:
                yield outcome, (operands[0], operands[1])
        case "select":
            maker = mlir.producer(operands[0])
            if maker is not None and maker.name not in ("stablehlo.compare", "stablehlo.constant"):
                yield from ((outcome, (operands[0], operands[0])) for outcome in ("true", "false"))
        case "maximum" | "minimum":
            element = element_type(mlir.tensor_element_name(operands[0].type))
            if not element.is_complex and element.name != "i1":
                yield from ((outcome, (operands[0], operands[1])) for outcome in ("less", "greater"))
        case "clamp":
            yield "less", (operands[1], operands[0])
            yield "greater", (operands[1], operands[2])
        case "if" | "case" | "while":
            for number in range(len(raw.regions)) if op.name in BRANCHING else (1,):
                yield str(number), (operands[0], operands[0])
        case _:
            return


def _is_as_equal(point: Point) -> bool:
    """Whether a comparison says of an outcome what it says of equal numbers."""
    if point.op.short_name != "compare" or point.outcome not in ("less", "greater"):
        return False
    direction = mlir.enum_value(point.op.raw.attributes["comparison_direction"])
    return direction in (("LE", "GT") if point.outcome == "less" else ("LT", "GE"))


def _inline(module: mlir.RawModule) -> None:
    """Write every call's function out in its place."""
    written = (f.operation for f in module.body.operations if len(f.operation.regions[0].blocks))
    functions = {mlir.symbol_name(f.attributes["sym_name"]): f for f in written}
    main = entry_function(module)
    with mlir.active(module.context):
        while calls := [op for op in mlir.walked(main) if _callee(op) in functions]:
            for call in calls:
                _, given = mlir.inlined(functions[_callee(call)], list(call.operands), call)
                for old, new in zip(call.results, given, strict=True):
                    old.replace_all_uses_with(new)
                mlir.discard([call])


def _callee(op: mlir.RawOperation) -> str:
    """The function that a call names."""
    return mlir.symbol_name(op.attributes[CALLS[op.name]]) if op.name in CALLS else ""


# --- counting ---

NUMBER = "hl.number"
"""The attribute that finds an operation again while others change: its hash changes with its operands."""


def _counting(module: mlir.RawModule, points: Sequence[Point]) -> str:
    """The module that returns the counts of points and nothing else."""
    copy = mlir.parse_module(mlir.print_module(module), module.context)
    main = entry_function(copy)
    mine, theirs = mlir.walked(entry_function(module)), mlir.walked(main)
    numbers: dict[mlir.RawOperation, int] = {op: k for k, op in enumerate(mine)}
    at: dict[int, list[tuple[int, Point]]] = {}
    for k, point in enumerate(points):
        at.setdefault(numbers[point.op.raw], []).append((k, point))
    with mlir.active(copy.context):
        for number in at:
            theirs[number].attributes[NUMBER] = mlir.i64_attribute(number)
        counting = _Counting(at)
        counts = counting.block(main.regions[0].blocks[0])
        end = main.regions[0].blocks[0].operations
        last = end[len(end) - 1].operation
        given = [counts[k] for k in range(len(points))]
        mlir.create_operation(
            "func.return", given, [], location=last.location, insertion_point=mlir.insert_before(last)
        )
        last.erase()
        mlir.set_signature(main)
        if reason := mlir.verify_module(copy):
            raise CannotRunError(f"what is counted of it: {reason}")
        return mlir.print_module(copy)


class _Counting:
    """Writes the counts of a module's points into it.

    Args:
      points: the numbers of the points of each operation, and the points.
    """

    def __init__(self, points: dict[int, list[tuple[int, Point]]]) -> None:
        self._points = points
        self._type = mlir.parse_type("tensor<i32>")

    def block(self, block: mlir.RawBlock) -> dict[int, mlir.RawValue]:
        """The counts of the points in a block, made in it, by number."""
        found: dict[int, mlir.RawValue] = {}
        for op in [operation.operation for operation in block.operations]:
            own: Sequence[tuple[int, Point]] = ()
            if NUMBER in op.attributes:
                own = self._points[mlir.integer_of(op.attributes[NUMBER])]
                del op.attributes[NUMBER]
            if op.name in ENTERED:
                found |= self._within(op, own)
            else:
                found |= {k: self._counted(op, point) for k, point in own}
        return found

    def _constant(self, beside: OpsBeside, value: int) -> mlir.RawValue:
        return beside.constant(np.asarray(value, np.int32), self._type)

    def _counted(self, op: mlir.RawOperation, point: Point) -> mlir.RawValue:
        """How many elements of an operation have an outcome."""
        beside = OpsBeside(op)
        places = {value: k for k, value in enumerate(point.op.raw.operands)}
        first, second = (op.operands[places[value]] for value in point.pair)
        if point.outcome in ("true", "false"):
            is_so = first if point.outcome == "true" else beside.op("not", [first], first.type)
        else:
            first, second = _of_one_shape(beside, first, second)
            direction = ORDER.get(point.outcome, "NE")
            is_so = beside.compare(direction, [first, second], **_how(first))
        shape = list(mlir.static_shape(is_so.type))
        numbers = beside.op("convert", [is_so], mlir.tensor_type(shape, "i32"))
        return _sum(beside, numbers, self._type) if shape else numbers

    def _within(self, op: mlir.RawOperation, own: Sequence[tuple[int, Point]]) -> dict[int, mlir.RawValue]:
        """The counts of what stands in an operation's blocks, and of how often these are entered."""
        blocks = [region.blocks[0] for region in op.regions]
        is_loop = op.name == "stablehlo.while"
        inner = [
            self.block(block) if not is_loop or n else dict[int, mlir.RawValue]() for n, block in enumerate(blocks)
        ]
        for k, point in own:
            last = blocks[int(point.outcome)].operations
            beside = OpsBeside(last[len(last) - 1].operation)
            inner[int(point.outcome)][k] = self._constant(beside, 1)
        keys = [k for counts in inner for k in counts]
        if not keys:
            return {}
        operands = list(op.operands)
        if is_loop:
            operands += [self._constant(OpsBeside(op), 0) for _ in keys]
        types = [*(result.type for result in op.results), *(self._type for _ in keys)]
        attributes = mlir.attributes_of(op)
        new = mlir.create_operation(
            op.name,
            operands,
            types,
            attributes,
            regions=len(blocks),
            location=op.location,
            insertion_point=mlir.insert_before(op),
        )
        for number, (block, counts) in enumerate(zip(blocks, inner, strict=True)):
            carried = [mlir.add_argument(block, self._type, op.location) for _ in keys] if is_loop else []
            if number or not is_loop:
                _return_more(
                    block, [self._carried(block, counts, k, c) for k, c in zip(keys, carried or keys, strict=True)]
                )
            mlir.move_block(block, new, number)
        for old, result in zip(op.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        given = list(new.results)[len(op.results) :]
        op.erase()
        return dict(zip(keys, given, strict=True))

    def _carried(self, block: mlir.RawBlock, counts: dict[int, mlir.RawValue], k: int, carried: Any) -> mlir.RawValue:
        """What a block returns for a count: what it has counted, of a loop with what came before."""
        beside = OpsBeside(block.operations[len(block.operations) - 1].operation)
        own = counts[k] if k in counts else self._constant(beside, 0)
        return own if isinstance(carried, int) else beside.op("add", [own, carried], self._type)


def _return_more(block: mlir.RawBlock, values: Sequence[mlir.RawValue]) -> None:
    last = block.operations[len(block.operations) - 1].operation
    operands = [*last.operands, *values]
    mlir.create_operation(last.name, operands, [], location=last.location, insertion_point=mlir.insert_before(last))
    last.erase()


def _how(value: mlir.RawValue) -> dict[str, str]:
    kind = element_type(mlir.tensor_element_name(value.type)).compare_type
    return {"compare_type": f"#stablehlo<comparison_type {kind}>"}


def _of_one_shape(
    beside: OpsBeside, first: mlir.RawValue, second: mlir.RawValue
) -> tuple[mlir.RawValue, mlir.RawValue]:
    """Two values of which the bound of a clamp may be a scalar."""
    if first.type != second.type:
        second = beside.op("broadcast_in_dim", [second], first.type, broadcast_dimensions="array<i64>")
    return first, second


def _sum(beside: OpsBeside, numbers: mlir.RawValue, scalar: mlir.RawType) -> mlir.RawValue:
    """The sum of a tensor of i32."""
    shape = mlir.static_shape(numbers.type)
    if prod(shape) == 0:
        return beside.constant(np.asarray(0, np.int32), scalar)
    rest = list(range(len(shape)))
    zero = beside.constant(np.asarray(0, np.int32), scalar)
    op = mlir.create_operation(
        "stablehlo.reduce",
        [numbers, zero],
        [scalar],
        {"dimensions": mlir.dense_i64(rest)},
        regions=1,
        location=beside.anchor.location,
        insertion_point=mlir.insert_before(beside.anchor),
    )
    block = mlir.append_block(op, 0, [scalar, scalar], op.location)
    point = mlir.insert_at_end(block)
    total = mlir.create_operation(
        "stablehlo.add", list(block.arguments), [scalar], location=op.location, insertion_point=point
    )
    mlir.create_operation(
        "stablehlo.return", list(total.results), [], location=op.location, insertion_point=mlir.insert_at_end(block)
    )
    return op.results[0]


COUNTED = frozenset({"if", "case", "while"})
"""Operations in whose bodies outcomes are counted (`hlo_lower.verify.drive.outcomes`)."""

DECIDING = {"compare": 2, "maximum": 2, "minimum": 2, "clamp": 3}
"""Operations that decide, and how many operands they decide by."""

KEEPING = frozenset({"negate", "abs", "bitcast_convert", "reshape", "broadcast_in_dim", "compare", "select"})
"""Operations that compare their operands, choose among them, or give each as it is, perhaps with another sign."""

OF_TRUTHS = frozenset({"and", "or", "not"})
"""Operations that join truth values."""


def undriven(region: Region) -> Iterator[str]:
    """What decides by computed values within such a body, where the other piece has no such body."""
    bodies = [dict(_bodies(side, ops)) for side, ops in region.sides]
    for mine, others in zip(bodies, bodies[::-1], strict=True):
        for number, (side, body) in mine.items():
            if number not in others:
                for op in ops_within(body.ops):
                    if any(_is_computed(side, v) for v in op.inputs[: DECIDING.get(op.short_name, 0)]):
                        yield f"the {op.short_name} at {location_of(op.raw)}: no run counts its outcomes in this body"


def _bodies(side: Side, ops: list[Op]) -> Iterator[tuple[Number | ValueId, tuple[Side, Body]]]:
    for op in ops_within(ops):
        for body in op.bodies if op.short_name not in COUNTED else ():
            try:
                number = side.table.region(side.program, body, side.numbers, side.depth + 1)
            except KeyError:  # it reads what stands in another body, and so is like no other
                number = -1 - body.arguments[0]
            yield number, (side, body)


def _is_computed(side: Side, value: ValueId) -> bool:
    """Whether a value is no argument of a body, no constant, and no choice among these."""
    maker, dtypes = side.program.makers[value], side.program.dtype_of
    if maker is None or maker.short_name == "constant":
        return False
    made = dtypes(value)
    if maker.short_name == "convert":
        given = dtypes(maker.inputs[0])
        is_kept = given is not None and made is not None and _is_widened(given, made)
    else:
        is_kept = maker.short_name in KEEPING or (maker.short_name in OF_TRUTHS and made == np.bool_)
    return not is_kept or any(_is_computed(side, operand) for operand in maker.inputs)


def _is_widened(given: np.dtype[Any], made: np.dtype[Any]) -> bool:
    """Whether a conversion keeps all numbers apart."""
    return element_type_of(given).is_float == element_type_of(made).is_float and given.itemsize <= made.itemsize
