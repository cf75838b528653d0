"""Find what a scan stacks, and who reads rows of it.

    %r:n = stablehlo.while(%k = 0, %x = %first, %s = %any, ...)
      cond { %k < N }
      do   { ...; %new = dynamic_update_slice %s, %row, %k, 0, ... ; return %k + 1, %next, %new, ... }

Row k of the result %s is %row of trip k, whatever was there before: the trips are 0 to N - 1, each in bounds, and the
stack has N rows. A `dynamic_slice` of one row of it at i, clamped, is %row of trip clamp(i, 0, N - 1).
"""

from dataclasses import dataclass

from hlo_lower.facts.memory.dataflow import size_of
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.loops import CountedLoop, read_counted
from hlo_lower.ops import names
from hlo_lower.tile.prepare.loop_carries import is_kept

SMALL = 1 << 24
"""Numbers below this are added and multiplied without a wrap."""


def steps_of_counter(value: Value, counter: Value, trips: int) -> tuple[int, int] | None:
    """The first number and the step of a scalar of integers, by the argument that counts a loop's trips from 0; None
    where it is no such line."""
    if value == counter:
        return 0, 1
    constant, node = value.integer, value.node
    if constant is not None:
        return (constant, 0) if abs(constant) < SMALL else None
    if node is None or value.element_type not in ("i32", "i64") or value.shape != ():
        return None
    if node.name == names.SELECT:
        kept = as_not_negative(node)
        found = None if kept is None else steps_of_counter(kept, counter, trips)
        return found if found is not None and min(ends(found, trips)) >= 0 else None
    if node.name not in (names.ADD, names.SUBTRACT):
        return None
    left, right = (steps_of_counter(operand, counter, trips) for operand in node.operands)
    if left is None or right is None:
        return None
    sign = 1 if node.name == names.ADD else -1
    found = left[0] + sign * right[0], left[1] + sign * right[1]
    return found if max(map(abs, ends(found, trips))) < SMALL else None


def ends(line: tuple[int, int], trips: int) -> tuple[int, int]:
    """The numbers of the first and of the last trip."""
    return line[0], line[0] + line[1] * (trips - 1)


def as_not_negative(select: Node) -> Value | None:
    """x of select(x < 0, x + n, x), which counts negative numbers from the end: what it is if x is not negative."""
    predicate, kept = select.operand(0).node, select.operand(2)
    if predicate is None or predicate.name != names.COMPARE or predicate.operand(0) != kept:
        return None
    is_below = mlir.enum_value(predicate.attribute("comparison_direction")) == "LT"
    return kept if is_below and predicate.operand(1).integer == 0 else None


@dataclass(frozen=True)
class ScanStack:
    """A carried value of a scan that each trip writes one row of, and only writes."""

    loop: Node  # the scan
    place: int  # its position among the carried values
    row: Value  # what a trip writes, with a leading dim of 1
    value: Value  # what that is made of by a reshape that puts the leading dim there, or itself

    @property
    def bytes(self) -> int:
        """Of the whole stack."""
        return size_of(self.loop.result(self.place))


@dataclass(frozen=True)
class Scan:
    """A loop that counts its trips from 0 to a constant, all of which write their rows."""

    loop: Node  # it
    counter: int  # the position of its counter
    trips: int  # how many
    stacks: tuple[ScanStack, ...]  # what it stacks


@dataclass(frozen=True)
class RowRead:
    """A `dynamic_slice` of one row of a stack."""

    node: Node  # it
    # the loop whose body it stands in, which takes the stack at `place`; None where it stands beside the scan
    loop: Node | None = None
    place: int = -1

    @property
    def start(self) -> Value:
        """Which row, before it is clamped."""
        return self.node.operand(1)


def scan_of(loop: Node) -> Scan | None:
    """What a loop stacks, where it is such a scan."""
    counted = read_counted(loop)
    trips = None if counted is None else trips_of(loop, counted)
    if counted is None or not trips:
        return None
    body = loop.blocks[1]
    places = range(len(loop.operands))
    found = [stack for n in places if (stack := _stack_at(loop, body, n, counted.counter, trips)) is not None]
    return Scan(loop, counted.counter, trips, tuple(found))


def trips_of(loop: Node, counted: CountedLoop) -> int | None:
    """The trips of a loop that counts from 0 to a constant."""
    if loop.operand(counted.counter).integer != 0:
        return None
    return counted.limit if counted.limit_at is None else loop.operand(counted.limit_at).integer


def _stack_at(loop: Node, body: Block, place: int, counter: int, trips: int) -> ScanStack | None:
    argument = body.argument(place)
    update = body.terminator.operand(place).node
    if (
        update is None
        or update.name != names.DYNAMIC_UPDATE_SLICE
        or not update.is_static
        or len(list(argument.users)) != 1
    ):
        return None
    shape = argument.static_shape
    if update.operand(0) != argument or len(list(update.result().users)) != 1:
        return None
    row = update.operand(1)
    if not shape or row.static_shape != (1, *shape[1:]):
        return None
    if not (is_full(shape[0], trips) and is_at_trip(update.operand(2), body.argument(counter), trips)):
        return None
    return ScanStack(loop, place, row, without_leading_dim(row))


def is_full(rows: int, trips: int) -> bool:
    """Whether every row of a stack is written: one in each trip."""
    return rows == trips


def is_at_trip(start: Value, counter: Value, trips: int) -> bool:
    """Whether a trip writes the row of its own number; starts along the other dims are clamped to 0."""
    return steps_of_counter(start, counter, trips) == (0, 1)


def without_leading_dim(row: Value) -> Value:
    """What a leading dim of 1 was put before, or the value itself."""
    node = row.node
    if node is None or node.operands == () or node.operand(0).shape != row.shape[1:]:
        return row
    if node.name == names.RESHAPE:
        return node.operand(0)
    is_put = node.name == names.BROADCAST_IN_DIM and node.integers("broadcast_dimensions") == tuple(
        range(1, len(row.shape))
    )
    return node.operand(0) if is_put else row


def row_reads(stack: ScanStack) -> list[RowRead] | None:
    """All reads of a stack behind its scan, where each is of one row; None where one is of more.

    A row is read beside the scan, or in the body of a loop beside it that takes the stack and leaves it as it is.
    """
    found: list[RowRead] = []
    result, around = stack.loop.result(stack.place), stack.loop.parent
    for use in result.raw.uses:
        user, number = Node(use.owner.operation), int(use.operand_number)
        if user.parent != around:
            return None
        if user.name != names.WHILE:
            found.append(RowRead(user))
            continue
        if not is_kept(user, number) or user.result(number).is_used:
            return None
        condition, body = user.blocks
        inside = list(body.argument(number).users)
        inside.remove(body.terminator)
        if condition.argument(number).is_used or any(node.parent != user for node in inside):
            return None
        found += [RowRead(node, user, number) for node in inside]
    return found if all(_is_of_a_row(read.node) for read in found) else None


def _is_of_a_row(node: Node) -> bool:
    if node.name != names.DYNAMIC_SLICE or not node.is_static:
        return False
    shape = node.operand(0).static_shape
    starts = node.operands[1:]
    is_row = node.result().static_shape == (1, *shape[1:])
    dtypes = [mlir.dtype_of(start.element_type) for start in starts]
    return is_row and all(dtype is not None and dtype.kind in "iu" for dtype in dtypes)
