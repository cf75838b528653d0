"""Which outcomes a piece's runs had: of comparisons, choices, bounds, branches, loops and roundings. What none had is
not known.

A piece is written anew to return how many elements had each outcome: those of comparisons that stand in loops and
branches are counted through these. Not looked at is what cannot come (`hlo_lower.verify.drive.ranges`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import CONTROL, KEEPS_NUMBERS, RESHAPING, TO_WHOLE
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.drive import ties
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import (
    Body,
    Op,
    Program,
    ValueId,
    inline_calls,
    location_of,
    ops_within,
    terminator,
)
from hlo_lower.verify.run import CannotRunError, entry_function

Array = NDArray[Any]

BRANCHING = CONTROL - {names.WHILE}
ORDER = {"less": "LT", "equal": "EQ", "greater": "GT"}
"""Outcomes of two numbers, and the comparison that tells them."""


@dataclass(frozen=True)
class Point:
    """A place where a piece may go one way or another.

    Attributes:
      op: the operation.
      outcome: "less", "equal", "greater", "different", "true", "false", the number of a branch or body, or one of
        `hlo_lower.verify.drive.ties`.
      pair: the operands that are compared; two equal ones for a truth value and for what is rounded.
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
        if self.op.name == names.WHILE:
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
      had: the numbers of the points that a run showed.
    """

    module: mlir.RawModule
    program: Program
    ranges: Ranges
    points: list[Point]
    text: str
    had: set[int] = field(default_factory=set[int])

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
        inline_calls(module)
        program = Program(module)
        body = program.entries["main"]
        ranges = Ranges(program, counters, sorts, no_nan)
        ops = ops_within(body.ops)
        written = dict(zip(ops, places, strict=True)) if len(ops) == len(places) else {}
        found: list[Point] = []
        for op in _countable_ops(body.ops, ranges):
            for outcome, pair in _outcomes(op):
                if (op.name in CONTROL or not only_entered) and ranges.may_be(op, outcome):
                    found.append(Point(op, outcome, pair, written.get(op) or location_of(op.raw)))
        return cls(module, program, ranges, found, _counting(module, found) if found else "")

    def add(self, counts: Sequence[Array]) -> None:
        """Look at a run."""
        self.had |= {k for k, count in enumerate(counts) if np.any(count)}

    def missed_points(self) -> list[Point]:
        """The points that no run showed."""
        return [point for k, point in enumerate(self.points) if k not in self.had]

    def possible_missed_points(self) -> list[Point]:
        """The points that no run showed, except those that constants rule out."""
        missed = self.missed_points()
        had = {point.op for point in self.points if point.outcome == "equal" and point not in missed}
        missed = [point for point in missed if point.op not in had or not _is_as_equal(point)]
        if missed:
            self.ranges.know_constants()
        return [point for point in missed if self.ranges.may_be(point.op, point.outcome)]

    def wrapping_counts(self) -> list[Op]:
        """Where truth values are counted in an integer type that has fewer numbers than there are values."""
        return [op for op in self.program.entries["main"].ops if _may_wrap(self.program, op)]


def counts_truths(program: Program, value: ValueId) -> bool:
    """Whether a sum of a value's elements counts truth values: they are converted to integers."""
    maker, dtype = program.makers[value], program.dtype_of(value)
    if maker is None or maker.name != names.CONVERT or dtype is None:
        return False
    return program.dtype_of(maker.inputs[0]) == np.bool_ and dtype.kind in "iu"


def _may_wrap(program: Program, op: Op) -> bool:
    if op.name != names.REDUCE or len(op.results) != 1 or [o.name for o in op.bodies[0].ops] != [names.ADD]:
        return False
    tensor, dtype = program.type_of(op.inputs[0]), program.dtype_of(op.results[0])
    if not counts_truths(program, op.inputs[0]) or tensor is None or not tensor.is_static or dtype is None:
        return False
    dims = mlir.integers_of(op.raw.attributes["dimensions"])
    return prod(program.shape_of(op.inputs[0])[d] for d in dims) >= 1 << 8 * dtype.itemsize


def _countable_ops(ops: Sequence[Op], ranges: Ranges) -> Iterator[Op]:
    """The ops whose outcomes can be counted: those of a body, of its branches, and of loops that may run."""
    for op in ops:
        yield op
        is_loop = op.name == names.WHILE
        if op.name in BRANCHING or (is_loop and ranges.may_be(op, "1")):
            for body in op.bodies[is_loop:]:
                yield from _countable_ops(body.ops, ranges)


def _outcomes(op: Op) -> Iterator[tuple[str, tuple[mlir.RawValue, mlir.RawValue]]]:
    """What an operation may come out as, and what is compared for it."""
    raw = op.raw
    operands = list(raw.operands)
    match op.name:
        case names.COMPARE:
            if "complex" in str(operands[0].type):
                return
            is_equality = mlir.enum_value(raw.attributes["comparison_direction"]) in ("EQ", "NE")
            for outcome in ("equal", "different") if is_equality else ORDER:
                yield outcome, (operands[0], operands[1])
        case names.SELECT:
            maker = mlir.producer(operands[0])
            if maker is not None and maker.name not in (names.COMPARE, names.CONSTANT):
                yield from ((outcome, (operands[0], operands[0])) for outcome in ("true", "false"))
        case names.MAXIMUM | names.MINIMUM:
            element = element_type(mlir.tensor_element_name(operands[0].type))
            if not element.is_complex and element.name != "i1":
                yield from ((outcome, (operands[0], operands[1])) for outcome in ("less", "greater"))
        case names.CLAMP:
            yield "less", (operands[1], operands[0])
            yield "greater", (operands[1], operands[2])
        case names.IF | names.CASE | names.WHILE:
            for number in range(len(raw.regions)) if op.name in BRANCHING else (1,):
                yield str(number), (operands[0], operands[0])
        case _:
            yield from ((outcome, (operands[0], operands[0])) for outcome in ties.ties_of(op))


def _is_as_equal(point: Point) -> bool:
    """Whether a comparison says of an outcome what it says of equal numbers."""
    if point.op.name != names.COMPARE or point.outcome not in ("less", "greater"):
        return False
    direction = mlir.enum_value(point.op.raw.attributes["comparison_direction"])
    return direction in (("LE", "GT") if point.outcome == "less" else ("LT", "GE"))


# --- counting ---

NUMBER = "hl.number"
"""The attribute that finds an operation again while others change: its hash changes with its operands."""


def _counting(module: mlir.RawModule, points: Sequence[Point]) -> str:
    """The module that returns the counts of points and nothing else."""
    copy = mlir.parse_module(mlir.print_module(module), module.context)
    main = entry_function(copy)
    mine, theirs = mlir.operations_within(entry_function(module)), mlir.operations_within(main)
    numbers: dict[mlir.RawOperation, int] = {op: k for k, op in enumerate(mine)}
    at: dict[int, list[tuple[int, Point]]] = {}
    for k, point in enumerate(points):
        at.setdefault(numbers[point.op.raw], []).append((k, point))
    with mlir.active(copy.context):
        for number in at:
            theirs[number].attributes[NUMBER] = mlir.i64_attribute(number)
        counting = _Counting(at)
        counts = counting.block(main.regions[0].blocks[0])
        last = terminator(main.regions[0].blocks[0])
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
            if op.name in CONTROL:
                found |= self._within(op, own)
            else:
                found |= {k: self._count_outcome(op, point) for k, point in own}
        return found

    def _count_outcome(self, op: mlir.RawOperation, point: Point) -> mlir.RawValue:
        """How many elements of an op show an outcome."""
        beside = OpsBeside(op)
        places = {value: k for k, value in enumerate(point.op.raw.operands)}
        first, second = (op.operands[places[value]] for value in point.pair)
        if point.outcome in ties.TIES:
            is_so = ties.emit_tie_test(beside, point.op, point.outcome, first)
        elif point.outcome in ("true", "false"):
            is_so = first if point.outcome == "true" else beside.op("not", [first], first.type)
        else:
            if first.type != second.type:  # the bound of a clamp is a scalar
                second = beside.broadcast(second, first.type)
            direction = ORDER.get(point.outcome, "NE")
            is_so = beside.compare(direction, [first, second])
        shape = list(mlir.static_shape(is_so.type))
        numbers = beside.op("convert", [is_so], mlir.tensor_type(shape, "i32"))
        return _sum(beside, numbers, self._type) if shape else numbers

    def _within(self, op: mlir.RawOperation, own: Sequence[tuple[int, Point]]) -> dict[int, mlir.RawValue]:
        """The counts of what stands in an operation's blocks, and of how often these are entered."""
        blocks = [region.blocks[0] for region in op.regions]
        is_loop = op.name == names.WHILE
        inner = [
            self.block(block) if not is_loop or n else dict[int, mlir.RawValue]() for n, block in enumerate(blocks)
        ]
        for k, point in own:
            inner[int(point.outcome)][k] = OpsBeside(terminator(blocks[int(point.outcome)])).splat(1, self._type)
        keys = [k for counts in inner for k in counts]
        if not keys:
            return {}
        operands = list(op.operands)
        if is_loop:
            operands += [OpsBeside(op).splat(0, self._type) for _ in keys]
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
                    block,
                    [self._returned_count(block, counts, k, c) for k, c in zip(keys, carried or keys, strict=True)],
                )
            mlir.move_block(block, new, number)
        for old, result in zip(op.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        given = list(new.results)[len(op.results) :]
        op.erase()
        return dict(zip(keys, given, strict=True))

    def _returned_count(
        self, block: mlir.RawBlock, counts: dict[int, mlir.RawValue], k: int, carried: Any
    ) -> mlir.RawValue:
        """The count that a block returns: its own, in a loop added to the count so far."""
        beside = OpsBeside(terminator(block))
        own = counts[k] if k in counts else beside.splat(0, self._type)
        return own if isinstance(carried, int) else beside.op("add", [own, carried], self._type)


def _return_more(block: mlir.RawBlock, values: Sequence[mlir.RawValue]) -> None:
    last = terminator(block)
    operands = [*last.operands, *values]
    mlir.create_operation(last.name, operands, [], location=last.location, insertion_point=mlir.insert_before(last))
    last.erase()


def _sum(beside: OpsBeside, numbers: mlir.RawValue, scalar: mlir.RawType) -> mlir.RawValue:
    shape, zero = mlir.static_shape(numbers.type), beside.splat(0, scalar)
    if not prod(shape):
        return zero
    dims = mlir.dense_i64(range(len(shape)))
    return beside.op_with_body(
        names.REDUCE, [numbers, zero], scalar, lambda b, x: b.op("add", x, scalar), dimensions=dims
    )


DECIDING = {names.COMPARE: 2, names.MAXIMUM: 2, names.MINIMUM: 2, names.CLAMP: 3}
"""Operations that decide, and how many operands they decide by."""

KEEPING = RESHAPING | {names.NEGATE, names.ABS, names.BITCAST_CONVERT, names.COMPARE, names.SELECT}
"""Operations that compare their operands, choose among them, or give each as it is, perhaps with another sign."""

OF_TRUTHS = frozenset({names.AND, names.OR, names.NOT})
"""Operations that join truth values."""


def undriven(region: Region) -> Iterator[str]:
    """What decides by computed values within such a body, where the other piece has no such body."""
    bodies = [dict(_bodies(side, ops)) for side, ops in region.sides]
    for mine, others in zip(bodies, bodies[::-1], strict=True):
        for number, (side, body) in mine.items():
            if number not in others:
                for op in ops_within(body.ops):
                    if any(_is_computed(side, v) for v in op.inputs[: DECIDING.get(op.name, 0)]):
                        yield f"the {op.short_name} at {location_of(op.raw)}: no run counts its outcomes in this body"


def _bodies(side: Side, ops: list[Op]) -> Iterator[tuple[Number | ValueId, tuple[Side, Body]]]:
    for op in ops_within(ops):
        for body in op.bodies if op.name not in CONTROL else ():
            try:
                number = side.table.region(side.program, body, side.numbers, side.depth + 1)
            except KeyError:  # it reads what stands in another body, and so is like no other
                number = -1 - body.arguments[0]
            yield number, (side, body)


def _is_computed(side: Side, value: ValueId) -> bool:
    """Whether a value is not an argument of a body, no constant, and no choice among these."""
    maker, dtypes = side.program.makers[value], side.program.dtype_of
    if maker is None or maker.name == names.CONSTANT:
        return False
    made = dtypes(value)
    if maker.name == names.CONVERT:
        given = dtypes(maker.inputs[0])
        is_kept = given is not None and made is not None and _is_widened(given, made)
    else:
        is_kept = maker.name in KEEPING or (maker.name in OF_TRUTHS and made == np.bool_)
    return not is_kept or any(_is_computed(side, operand) for operand in maker.inputs)


def _is_widened(given: np.dtype[Any], made: np.dtype[Any]) -> bool:
    """Whether a conversion keeps all numbers apart."""
    return element_type_of(given).is_float == element_type_of(made).is_float and given.itemsize <= made.itemsize


# --- integers that are rounded as floats ---
#
# Integers that one piece alone computes in floats: right only where no number is larger than a float holds exactly.
#
# No runs show that, however many: one sum of a certain parity may be the only one that is rounded. So a bound is
# sought, from the ranges of the integers by a law for each operation; where it lies beyond the float's mantissa nothing
# is known.


KEPT = KEEPS_NUMBERS | TO_WHOLE | {names.CONVERT}
"""Operations that give no larger magnitudes than they are given, and integers for integers."""


def rounded_integers(pieces: Sequence[tuple[Program, Ranges]]) -> Iterator[str]:
    """Where one of two pieces makes integers of floats that may be rounded integers, and the other one does not."""
    found = [list(_back(program, ranges)) for program, ranges in pieces]
    for mine, others in zip(found, found[::-1], strict=True):
        if not others:
            for op, bound in mine:
                if bound == inf:
                    yield f"the convert at {location_of(op.raw)}: whether its integers were rounded as floats"


def _back(program: Program, ranges: Ranges) -> Iterator[tuple[Op, float]]:
    """Conversions to integers of floats made of integers, and the floats' bound: infinite beyond exact ones."""
    bounds: dict[ValueId, float] = {}
    for op in ops_within(program.entries["main"].ops):
        dtypes = [program.dtype_of(v) for v in (*op.inputs, *op.results)]
        if not op.inputs or not op.results or any(dtype is None for dtype in dtypes):
            continue
        source, made = program.dtype_of(op.inputs[0]), program.dtype_of(op.results[0])
        if source is None or made is None:
            continue
        if op.name == names.CONVERT and source.kind in "iub" and element_type_of(made).is_float:
            bound = max(map(abs, ranges.of(op.inputs[0])))
        elif not any(value in bounds for value in op.inputs):
            continue
        elif op.name == names.CONVERT and made.kind in "iu":
            yield op, bounds[op.inputs[0]]
            continue
        elif element_type_of(made).is_float:
            bound = _bound(op, [bounds[v] if v in bounds else _constant(program, v) for v in op.inputs])
        else:
            continue
        bounds |= dict.fromkeys(op.results, bound if bound <= 2 << element_type_of(made).mantissa else inf)


def _constant(program: Program, value: ValueId) -> float:
    """The largest magnitude of a constant of whole numbers; infinite for other floats, which are no such integers."""
    dtype = program.dtype_of(value)
    if dtype is not None and not element_type_of(dtype).is_float:  # a condition, or where something lies
        return 0.0
    number = program.constant_behind(value)
    if number is None or not number.size:
        return inf
    number = number.astype("float64")
    return float(abs(number).max()) if (number == number.round()).all() else inf


def _bound(op: Op, given: Sequence[float]) -> float:
    """The largest magnitude that an operation gives, sums of parts of it included."""
    if op.name in KEPT:
        return max(given)
    if op.name in (names.ADD, names.SUBTRACT):
        return sum(given)
    if inf in given:
        return inf
    if op.name == names.MULTIPLY:
        return prod(given)
    if op.name in (names.DOT_GENERAL, names.CONVOLUTION):
        shapes = [mlir.static_shape(v.type) for v in (*op.raw.operands, *op.raw.results)]
        return given[0] * given[1] * _terms(op, *map(prod, shapes))
    inner = op.bodies[0].ops if op.name == names.REDUCE and len(op.results) == 1 else ()
    if len(inner) == 1 and inner[0].name == names.ADD:
        shapes = [prod(mlir.static_shape(v.type)) for v in (op.raw.operands[0], op.raw.results[0])]
        return given[1] + given[0] * -(-shapes[0] // max(1, shapes[1]))
    return given[0] if len(inner) == 1 and inner[0].name in (names.MAXIMUM, names.MINIMUM) else inf


def _terms(op: Op, first: int, second: int, made: int) -> int:
    """Products that a sum has, at most."""
    if op.name == names.CONVOLUTION:
        return min(first, second)
    numbers = mlir.dot_dimension_numbers(op.raw)
    shape, dims = mlir.static_shape(op.raw.operands[0].type), map(int, numbers.lhs_contracting_dimensions)
    return prod(shape[d] for d in dims)
