"""Control flow for consumers that have none: loops of known trips unrolled, branches computed and selected from.

With them what only names control flow or placement, for consumers that do not know it: `map`, barriers, notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hlo_lower.base.causes import Cause
from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.control.flat_copy import FlatCopy
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.lowering.single_ops.elementwise_region import on_tensors
from hlo_lower.ops.names import CASE, CUSTOM_CALL, IF, MAP, OPTIMIZATION_BARRIER, WHILE

CONTROL = "control flow"
"""The name under which rules for these ops are registered."""


CONSTRAINT = "sdy.sharding_constraint"


class ControlOp(Enum):
    """Which op it is."""

    WHILE = WHILE
    CASE = CASE
    IF = IF
    MAP = MAP
    BARRIER = OPTIMIZATION_BARRIER
    CUSTOM_CALL = CUSTOM_CALL
    CONSTRAINT = CONSTRAINT


class Outcome(Enum):
    """Whether it is known which way it goes: how often a loop runs, which branch is taken."""

    KNOWN = "known"
    UNKNOWN = "unknown"


class Contents(Enum):
    """Whether what stands in its regions may be computed where it would not have been."""

    HARMLESS = "harmless"
    NOT = "not"


class Way(Enum):
    """What is run of its branches."""

    ONE = "one branch"
    ALL = "all branches"


class Placed(Enum):
    """Whether it says more than where a value is to live, on a single device."""

    NOTE = "note"
    NOT = "not"


@dataclass(frozen=True)
class ControlFacts(FactsByName):
    """The facts of one op of control flow.

    Attributes:
      named, goes, contents, way, says: the facts that rules constrain.
      most: ops that an unrolled loop may have.
      why: why it is not known which way it goes, or why its contents are not harmless; None where it is known.
    """

    named: ControlOp
    goes: Outcome = Outcome.UNKNOWN
    contents: Contents = Contents.NOT
    way: Way = Way.ALL
    says: Placed = Placed.NOT
    most: int = 0
    why: Cause | None = None


Op = OpLowering[ControlFacts]
rules = RuleList()


def _flat(op: Op) -> FlatCopy:
    return FlatCopy(op.facts.most, op.node, op.build)


@rules.lowers(CONTROL, named={ControlOp.WHILE}, goes={Outcome.KNOWN}, form="its trips one after the other")
def while_to_trips(op: Op) -> Sequence[Value]:
    """Copy the body once for each trip.

        %r = stablehlo.while(%i = 0, %x = %a) cond { %i < 2 } do { return %i + 1, f(%i, %x) }
        ->   %x1 = f(0, %a);  %r = f(1, %x1)

    Equal: the condition follows from constants in each trip, so how often the loop runs is known; what the copies
    compute, and in which order, is what the trips do. Counters become constants. Nested loops are unrolled with it, and
    branches taken that are known then. Costs the ops of all trips together, `--max-unroll` at most.
    """
    flat = _flat(op)
    return [flat.value(item) for item in flat.loop(op.node)]


@rules.lowers(CONTROL, named={ControlOp.CASE, ControlOp.IF}, goes={Outcome.KNOWN}, form="the branch that is taken")
def branches_to_taken(op: Op) -> Sequence[Value]:
    """Copy the branch that a constant names.

    Equal: an index that is no branch's number takes the last one, as the specification says.
    """
    flat = _flat(op)
    block = flat.taken(op.node)
    assert block is not None
    return [flat.value(item) for item in flat.block(block)]


@rules.lowers(CONTROL, named={ControlOp.IF}, goes={Outcome.UNKNOWN}, way={Way.ONE}, form="a case of two")
def if_to_case(op: Op) -> Sequence[Value]:
    """Number the branches.

        %r = stablehlo.if %p { a } else { b }   ->   %r = stablehlo.case convert(%p) { b } { a }

    Equal: false is 0. One branch is run, as before, so for targets that have a case it is taken before both are.
    """
    index = op.build.convert(op.node.operand(0), "i32")
    types = [result.raw.type for result in op.node.results]
    case = op.build.op(CASE, [index], types, regions=2)
    for region, block in enumerate(reversed(op.node.blocks)):
        op.build.repeat_block(block, case, region)
    return case.results


@rules.lowers(
    CONTROL, named={ControlOp.CASE}, goes={Outcome.UNKNOWN}, way={Way.ONE}, form="one case of two after the other"
)
def case_to_pairs(op: Op) -> Sequence[Value]:
    """Ask for each branch whether it is the one.

        %r = stablehlo.case %i { a } { b } { c }
        ->
        %2 = stablehlo.case (%i is neither 0 nor 1) { c } { 0 };   %1 = stablehlo.case (%i is 1) { b } { %2 };
        %r = stablehlo.case (%i is 0) { a } { %1 }

    Equal: one branch is run, that of the index, the last one of an index that is no branch's; the others hand on what
    is there, zeros at first, which are replaced.
    """
    node, build = op.node, op.build
    if not all(value.is_tensor and value.is_static for value in node.results):
        raise DoesNotApply("a result is no tensor of static shape")
    index, types = node.operand(0), [result.raw.type for result in node.results]
    last = len(node.blocks) - 1
    found = [build.broadcast(build.zero(mlir.tensor_element(v.raw.type)), v.static_shape) for v in node.results]
    for number in reversed(range(last + 1)):
        if number == last:
            is_other = build.and_(build.compare(index, "GE", 0), build.compare(index, "LT", last))
        else:
            is_other = build.compare(index, "NE", build.constant(number, (), "i32"))
        case = build.op(CASE, [build.convert(is_other, "i32")], types, regions=2)
        build.repeat_block(node.blocks[number], case, 0)
        handed = tuple(found)
        build.region(case, 1, [], lambda _build, _given, handed=handed: handed)
        found = list(case.results)
    return found


@rules.lowers(
    CONTROL,
    named={ControlOp.CASE, ControlOp.IF},
    goes={Outcome.UNKNOWN},
    contents={Contents.HARMLESS},
    way={Way.ALL},
    form="all branches, and a select of their results",
)
def branches_to_selects(op: Op) -> Sequence[Value]:
    """Compute every branch and choose afterwards.

        %r = stablehlo.case %i { a } { b } { c }   ->   select(%i == 0, a, select(%i == 1, b, c))

    Equal: the branches have no effects and end (a loop in one has known trips), so computing one that is not taken
    changes nothing; StableHLO's integer division by zero gives a number. An index that is no branch's number takes the
    last one. Costs all branches each time.
    """
    node, build = op.node, op.build
    given: list[list[Value]] = []
    for block in node.blocks:
        flat = _flat(op)
        given.append([flat.value(item) for item in flat.block(block)])
    if not all(value.is_tensor for value in given[0]):
        raise DoesNotApply("a result is no tensor")
    index = node.operand(0)
    if node.name == IF:
        return [_chosen(build, index, *pair) for pair in zip(*given, strict=True)]
    found = given[-1]
    for number in reversed(range(len(given) - 1)):
        is_here = build.compare(index, "EQ", build.constant(number, (), "i32"))
        found = [_chosen(build, is_here, *pair) for pair in zip(given[number], found, strict=True)]
    return found


def _chosen(build: Builder, predicate: Value, on_true: Value, on_false: Value) -> Value:
    return on_true if on_true == on_false else build.select(predicate, on_true, on_false)


@rules.lowers(CONTROL, named={ControlOp.MAP}, form="its region on whole tensors")
def map_to_elementwise(op: Op) -> Sequence[Value]:
    """Compute elementwise what the region computes of scalars.

        %r = stablehlo.map(%x, %y) { return %a + %b }   ->   %r = stablehlo.add %x, %y

    Equal: an elementwise op on tensors is the op on each element; what the region takes from around it, and its
    constants, are broadcast. A region with other ops is left.
    """
    return on_tensors(op, op.node.blocks[0], op.node.operands)


@rules.lowers(CONTROL, named={ControlOp.BARRIER}, form="its operands")
def barrier_to_operands(op: Op) -> Sequence[Value]:
    """Take a barrier away. Equal: it returns its operands; all that it says is what a compiler may not reorder."""
    return op.node.operands


@rules.lowers(CONTROL, named={ControlOp.CUSTOM_CALL, ControlOp.CONSTRAINT}, says={Placed.NOTE}, form="its operand")
def note_to_operand(op: Op) -> Sequence[Value]:
    """Take away a note of where a value is to live.

        %r = stablehlo.custom_call @Sharding(%x)   ->   %x

    Equal: it returns its operand. Only in a module for one device, where there is nothing to spread.
    """
    return op.node.operands
