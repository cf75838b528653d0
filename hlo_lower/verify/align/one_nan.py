"""Floats whose NaN may be taken for one, the positive quiet one, because IEEE 754 leaves the bits of theirs open.

It interprets the sign of a NaN in copies, negations, magnitudes and the total order alone, and leaves that of every
other result open. A region that puts such results in order is equal where it is for one NaN.
"""

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import ANY_NAN, has_one_nan, nan_operands
from hlo_lower.verify.align.align import Region
from hlo_lower.verify.read.program import Op, Program, ValueId, ops_within

MOST_STEPS = 64
"""Values that are looked at behind one."""

NOT_DRAWN = "NaN with a sign where arithmetic computes it: IEEE 754 leaves the sign open"
"""What is not compared of inputs that are such floats."""

NOT_COMPUTED = (
    "NaN and infinities, where arithmetic makes NaN of them that are put in order: IEEE 754 leaves the sign open"
)
"""What is not compared where such floats are computed within."""


def may_have_one_nan(program: Program, value: ValueId) -> bool:
    """Whether floats were computed, chosen among such, or are constants without another NaN."""
    pending, seen = [value], set[ValueId]()
    while pending:
        here = pending.pop()
        tensor, maker = program.type_of(here), program.makers[here]
        if here in seen or tensor is None or not element_type(tensor.element_name).is_float:
            continue
        seen.add(here)
        behind = None if maker is None else _behind(program, maker, here)
        if behind is None or len(seen) > MOST_STEPS:
            return False
        pending += behind
    return True


def _behind(program: Program, op: Op, value: ValueId) -> tuple[ValueId, ...] | None:
    """The operands whose NaN an op gives, none where it computes its own; None where it says nothing of it."""
    if op.name in (names.REDUCE, names.REDUCE_WINDOW):
        place = op.results.index(value)
        returned = op.bodies[0].returned[place]
        return () if any(returned in inner.results and inner.name in ANY_NAN for inner in op.bodies[0].ops) else None
    if op.name == names.CONSTANT:
        numbers = mlir.constant_value(op.raw)
        return () if numbers is not None and has_one_nan(numbers) else None
    if op.name in (names.SORT, names.OPTIMIZATION_BARRIER):
        return (op.inputs[op.results.index(value)],)
    if op.name == names.SELECT and _replaces_nan(program, op):
        return op.inputs[1:2]
    operands = nan_operands(op.name, len(op.inputs))
    return None if operands is None else tuple(op.inputs[k] for k in operands)


def _replaces_nan(program: Program, op: Op) -> bool:
    """Whether a select takes another float than what it tests for NaN, and chooses that, or numbers, otherwise."""
    test = program.makers[op.inputs[0]]
    if test is None or test.name != names.COMPARE or test.inputs[0] != test.inputs[1] or _is_total(test):
        return False
    is_unequal = mlir.enum_value(test.raw.attributes["comparison_direction"]) == "NE"
    return is_unequal and _is_or_number(program, op.inputs[2], test.inputs[0])


def _is_or_number(program: Program, value: ValueId, other: ValueId) -> bool:
    """Whether each float of a value is that of another one, or no NaN."""
    while value != other:
        maker = program.makers[value]
        if maker is None or maker.name != names.SELECT:
            numbers = program.constant_behind(value)
            return numbers is not None and bool((numbers == numbers).all())
        if not _is_or_number(program, maker.inputs[1], other):
            return False
        value = maker.inputs[2]
    return True


def _is_total(op: Op) -> bool:
    return "TOTALORDER" in str(mlir.attributes_of(op.raw).get("compare_type"))


def inputs_with_one_nan(region: Region) -> list[int]:
    """The places of inputs whose NaN may be taken for one, where the first piece asks for the bits of floats."""
    side = region.pair.first
    if not any(_asks_for_bits(side.program, op) for op in ops_within(region.first)):
        return []
    known = ((place, side.value_of.get(number)) for place, number in enumerate(region.inputs))
    return [k for k, value in known if value is not None and _is_one_nan(side.program, value)]


def computes_what_is_ordered(region: Region) -> bool:
    """Whether the first piece computes floats whose bits it asks for, and the second one asks less often.

    Then runs with NaN would show the sign that XLA's arithmetic gives it.
    """
    asking = [
        {op for op in ops_within(ops) if _asks_for_bits(side.program, op)}
        for side, ops in ((region.pair.first, region.first), (region.pair.second, region.second))
    ]
    program, own = region.pair.first.program, asking[0]
    sorts = [op for op in region.first if any(not own.isdisjoint(body.ops) for body in op.bodies)]
    read = {value for op in (*own, *sorts) for value in op.inputs}
    made = {value for op in region.first for value in op.results}
    return len(own) > len(asking[1]) and any(_is_one_nan(program, value) for value in read & made)


def _is_one_nan(program: Program, value: ValueId) -> bool:
    tensor = program.type_of(value)
    is_float = tensor is not None and element_type(tensor.element_name).name in WIDE_FLOATS
    return is_float and may_have_one_nan(program, value)


def _asks_for_bits(program: Program, op: Op) -> bool:
    """Whether the sign of a NaN among its operands may decide what an op gives."""
    if op.name == names.COMPARE:
        return _is_total(op)
    if op.name == names.BITCAST_CONVERT:
        tensor = program.type_of(op.inputs[0])
        return tensor is not None and element_type(tensor.element_name).is_float
    return op.name == "chlo.top_k"
