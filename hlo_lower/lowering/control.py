"""Control flow for consumers that have none: loops of known or bounded trips unrolled, branches selected from.

With them what only names control flow or placement, for consumers that do not know it: `map`, barriers, notes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change
from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.base.registry import DoesNotApply, FactsByName, RuleList
from hlo_lower.facts.ranges.loop_ranges import most_trips
from hlo_lower.facts.ranges.transfer import comparison_of
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.lowering.engine.kind import Context, Decision, Kind, OpLowering, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import Refusal, dtypes_on, refused_by_name, refused_of
from hlo_lower.lowering.engine.refused_ops import node_label
from hlo_lower.lowering.plain.custom_call import NOTES
from hlo_lower.lowering.single_ops.reductions import on_tensors
from hlo_lower.lowering.types.element_type import stored_types
from hlo_lower.ops import names
from hlo_lower.ops.knowledge import LOGIC, NUMPY
from hlo_lower.ops.names import CASE, CUSTOM_CALL, IF, MAP, OPTIMIZATION_BARRIER, WHILE
from hlo_lower.ops.purity import Functional
from hlo_lower.ops.quirks.branches import MANY
from hlo_lower.ops.quirks.loops import CALL, LOOP
from hlo_lower.ops.refused_forms import refused_form
from hlo_lower.ops.targets.target import Target

# --- integer and boolean scalars that follow from constants, in wrapping arithmetic of the op's own type ---


Scalar = np.generic


def known_constant(node: Node) -> Scalar | None:
    """The value of a constant that is an integer or boolean scalar."""
    result = node.result()
    array: Any = node.constant() if result.shape == () and _dtype(result.element_type) is not None else None
    return None if array is None else array[()]


def known_result(node: Node, operands: Sequence[Scalar | None]) -> Scalar | None:
    """The result of an op of one result, if it is a scalar that follows from operands that are known.

    Args:
      node: the op.
      operands: for each operand its value, None where that is not known.
    """
    if node.name == names.CONSTANT:
        return known_constant(node)
    if node.has_regions or len(node.raw.results) != 1 or node.result().shape != ():
        return None
    dtype = _dtype(node.result().element_type)
    if dtype is None:
        return None
    if node.name == names.SELECT and operands[0] is not None:
        return operands[1 if operands[0] else 2]
    if any(operand is None for operand in operands):
        return None
    with np.errstate(all="ignore"):
        found = _compute(node, operands, dtype)
    scalar: Any = None if found is None else np.asarray(found).astype(dtype)[()]
    return scalar


def _compute(node: Node, operands: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    if node.name == names.COMPARE:
        return comparison_of(node)(*operands)
    if node.name == names.CONVERT:
        return operands[0] != 0 if dtype == np.bool_ else operands[0]
    if node.name == names.RESHAPE:
        return operands[0]
    if node.name in NUMPY and (dtype != np.bool_ or node.name in LOGIC):
        return NUMPY[node.name](*operands)
    return None


def _dtype(element: str) -> np.dtype[Any] | None:
    """The NumPy type of integers of 8 bits and more and of booleans."""
    declared = element_type(element)
    return declared.dtype if element == "i1" or (declared.is_integer and declared.bits >= 8) else None


# --- blocks copied in front of an op, with loops unrolled whose trips are known, and branches taken that are ---
#
# What is known are integer and boolean scalars that follow from constants: counters, what is compared with them, and
# flags. They are computed here and become constants where something else takes them. Every other op is copied as it
# stands, regions included, in the order in which it would run, so effects keep their order, too.


Item: TypeAlias = Value | Scalar
"""What a value of a block became: a value in front of the op, or a number that is known."""


class NotFlatError(Exception):
    """A loop of which nobody knows how often it runs at most, or more ops than are allowed.

    Attributes:
      why: the reason.
    """

    def __init__(self, why: Cause) -> None:
        """Raised for a reason."""
        super().__init__(why)
        self.why = why


COPIED = 64
"""Ops up to which a function is copied where a trip calls it."""

ENDLESS = 1 << 30
"""A bound that is as good as none: of the type of a counter."""

Bounds: TypeAlias = tuple[tuple[Node, int], ...]
"""Loops, each with the most trips that it can make."""


class FlatCopy:
    """Copies of blocks, one after the other.

    Attributes:
      size: ops copied, and trips of loops, so far.
      bounds: the loops of which some trips may not be made, with the most that each makes.
    """

    def __init__(
        self,
        most: int,
        bound: Callable[[Node], int | None],
        functions: Mapping[str, Function],
        build: Builder | None = None,
    ) -> None:
        """Copy in front of a node, or only count.

        Args:
          most: ops and trips beyond which it is given up.
          bound: the most trips that a loop can make, asked where they do not follow from constants; None: not known.
          functions: of the module: small ones are copied where they are called, as what a trip gives them is known.
          build: builds in front of the node; None: nothing is built.
        """
        self.size = 0
        self.bounds: dict[Node, int] = {}
        self._most, self._bound = most, bound
        self._functions = functions
        self._build = build
        self._became: dict[Value, Item] = {}
        self._nodes: dict[Block, list[Node]] = {}
        self._reads: dict[Node, tuple[list[Value], int]] = {}

    def loop(self, node: Node) -> list[Item]:
        """What a `stablehlo.while` returns.

        Raises:
          NotFlatError: its condition does not follow from constants in each trip, and nothing bounds its trips; or it
            is too large.
        """
        condition, body = node.blocks
        carried = [self._item(value) for value in node.operands]
        ends: list[tuple[Item, list[Item]]] = []  # where it may end: whether it goes on, and what it would return
        for trips in count():
            holds = self._holds(condition, carried)
            if holds is None:
                if trips == self._bound_of(node):
                    break
                [answer] = self.block(condition)
                ends.append((answer, carried))
            elif not holds:
                break
            self._count(1)
            self._bind(body.arguments, carried)
            carried = self.block(body)
        for answer, early in reversed(ends):
            self._count(len(carried))
            carried = [self._choose(answer, *each) for each in zip(node.results, carried, early, strict=True)]
        return carried

    def block(self, block: Block) -> list[Item]:
        """What a block returns; its arguments, if it has any, are bound before.

        Raises:
          NotFlatError: as `loop`.
        """
        *nodes, end = self._nodes_of(block)
        for node in nodes:
            self._run(node)
        return [self._item(value) for value in end.operands]

    def known_branch(self, node: Node) -> Block | None:
        """The branch that a `stablehlo.case` or `stablehlo.if` takes; None where that is not known."""
        index, branches = self._item(node.operand(0)), node.blocks
        if not isinstance(index, np.generic):
            return None
        if node.name == IF:
            return branches[0 if index else 1]
        return branches[int(index)] if 0 <= int(index) < len(branches) else branches[-1]

    def value(self, item: Item) -> Value:
        """The value of what is returned; a number becomes a constant."""
        assert self._build is not None
        if isinstance(item, Value):
            return item
        return self._build.constant(int(item), (), element_type_of(item.dtype).name)

    # --- one op ---

    def _run(self, node: Node) -> None:
        known = self._known_scalar(node)
        if known is not None:
            self._became[node.result()] = known
        elif node.name == WHILE:
            self._bind(node.results, self.loop(node))
        elif node.name in (CASE, IF) and (branch := self.known_branch(node)) is not None:
            self._bind(node.results, self.block(branch))
        elif (body := self._small_body(node)) is not None:
            self._bind(body.arguments, [self._item(value) for value in node.operands])
            self._bind(node.results, self.block(body))
        else:
            self._copy(node)

    def _small_body(self, node: Node) -> Block | None:
        """The block of a small function without regions that a node calls; None of others."""
        function = self._functions.get(node.callee) if node.name == CALL else None
        if function is None or not function.has_body:
            return None
        inner = self._nodes_of(function.body)
        is_small = len(inner) <= COPIED and not any(each.has_regions for each in inner)
        return function.body if is_small else None

    def _nodes_of(self, block: Block) -> list[Node]:
        if block not in self._nodes:
            self._nodes[block] = list(block.nodes)
        return self._nodes[block]

    def _copy(self, node: Node) -> None:
        reads, size = self._reads_of(node)
        self._count(size)
        results = node.results
        if self._build is None:
            self._bind(results, results)
            return
        replaced = {value: self.value(self._became[value]) for value in reads if value in self._became}
        self._bind(results, self._build.repeat(node, replaced).results)

    def _reads_of(self, node: Node) -> tuple[list[Value], int]:
        if node not in self._reads:
            walked = mlir.operations_within(node.raw) if node.has_regions else [node.raw]
            self._reads[node] = [Value(raw) for op in walked for raw in op.operands], len(walked)
        return self._reads[node]

    def _count(self, more: int) -> None:
        self.size += more
        if self.size > self._most:
            raise NotFlatError(Code.UNROLLED_TOO_LARGE(self._most))

    # --- what is known ---

    def _holds(self, condition: Block, carried: Sequence[Item]) -> bool | None:
        """Whether a loop's condition holds, of which nothing is copied; None where that is not known."""
        self._bind(condition.arguments, carried)
        *nodes, end = self._nodes_of(condition)
        for inner in nodes:
            known = self._known_scalar(inner)
            if known is not None:
                self._became[inner.result()] = known
            else:
                self._bind(inner.results, inner.results)
        answer = self._item(end.operand(0))
        return bool(answer) if isinstance(answer, np.generic) else None

    def _bound_of(self, node: Node) -> int:
        if node not in self.bounds:
            found = self._bound(node)
            if (
                found is None
                or found >= ENDLESS
                or not all(value.is_tensor and value.is_static for value in node.results)
            ):
                raise NotFlatError(Code.TRIPS_NOT_KNOWN())
            self.bounds[node] = found
        return self.bounds[node]

    def _choose(self, predicate: Item, result: Value, on_true: Item, on_false: Item) -> Item:
        """One of two items for a result of a loop, of whose type both are."""
        is_known = isinstance(on_true, np.generic) and isinstance(on_false, np.generic)
        if (is_known and on_true == on_false) or on_true is on_false:
            return on_true
        if self._build is None:
            return result
        return _select(self._build, *map(self.value, (predicate, on_true, on_false)))

    def _known_scalar(self, node: Node) -> Scalar | None:
        items = [self._became.get(value, value) for value in node.operands]
        return known_result(node, [item if isinstance(item, np.generic) else self._constant(item) for item in items])

    def _constant(self, value: Value) -> Scalar | None:
        node = value.node
        return None if node is None else known_constant(node)

    def _item(self, value: Value) -> Item:
        found = self._became.get(value, value)
        if isinstance(found, Value) and (number := self._constant(found)) is not None:
            return number
        return found

    def _bind(self, values: Sequence[Value], items: Sequence[Item]) -> None:
        self._became.update(zip(values, items, strict=True))


# --- the rules ---

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
    BOUNDED = "bounded"
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
      bounds: loops in it that may end early, with the most trips that each makes.
      why: why it is not known which way it goes, or why its contents are not harmless; None where it is known.
    """

    named: ControlOp
    goes: Outcome = Outcome.UNKNOWN
    contents: Contents = Contents.NOT
    way: Way = Way.ALL
    says: Placed = Placed.NOT
    most: int = 0
    bounds: Bounds = ()
    why: Cause | None = None


Op = OpLowering[ControlFacts]
rules = RuleList()


def _flat(op: Op) -> FlatCopy:
    return FlatCopy(op.facts.most, dict(op.facts.bounds).get, op.graph.functions, op.build)


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


@rules.lowers(
    CONTROL,
    named={ControlOp.WHILE},
    goes={Outcome.BOUNDED},
    form="as many trips as it makes at most, and a select of where it ends",
)
def while_to_bounded_trips(op: Op) -> Sequence[Value]:
    """Copy the body once for each trip that may be made, and choose afterwards.

        %r = stablehlo.while(%i = 0, %x = %a) cond { %i < min(%n, 2) } do { return %i + 1, f(%i, %x) }
        ->   %p0 = 0 < min(%n, 2);  %x1 = f(0, %a);  %p1 = 1 < min(%n, 2);  %x2 = f(1, %x1)
             %r = select(%p0, select(%p1, %x2, %x1), %a)

    Equal: a counter that stays below a limit of known range bounds how often the loop runs; the first condition that
    does not hold chooses what was carried there, whatever later trips make of it. What is in it ends, without effects.
    Costs the ops of all trips that may be made, `--max-unroll` at most, and what each of them carries.
    """
    return while_to_trips(op)


@rules.lowers(CONTROL, named={ControlOp.CASE, ControlOp.IF}, goes={Outcome.KNOWN}, form="the selected branch")
def branches_to_taken(op: Op) -> Sequence[Value]:
    """Copy the branch that a constant names.

    Equal: an index that is no branch's number takes the last one, as the specification says.
    """
    flat = _flat(op)
    block = flat.known_branch(op.node)
    assert block is not None
    return [flat.value(item) for item in flat.block(block)]


@rules.lowers(CONTROL, named={ControlOp.IF}, goes={Outcome.UNKNOWN}, way={Way.ONE}, form="a case of two branches")
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
    CONTROL,
    named={ControlOp.CASE},
    goes={Outcome.UNKNOWN},
    way={Way.ONE},
    form="one case of two branches after the other",
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
        raise DoesNotApply("a result is not a tensor of static shape")
    index, types = node.operand(0), [result.raw.type for result in node.results]
    last = len(node.blocks) - 1
    found = [build.zeros_like(v) for v in node.results]
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
        raise DoesNotApply("a result is not a tensor")
    index = node.operand(0)
    if node.name == IF:
        return [_select(build, index, *pair) for pair in zip(*given, strict=True)]
    found = given[-1]
    for number in reversed(range(len(given) - 1)):
        is_here = build.compare(index, "EQ", build.constant(number, (), "i32"))
        found = [_select(build, is_here, *pair) for pair in zip(given[number], found, strict=True)]
    return found


def _select(build: Builder, predicate: Value, on_true: Value, on_false: Value) -> Value:
    return on_true if on_true == on_false else build.select(predicate, on_true, on_false)


@rules.lowers(CONTROL, named={ControlOp.MAP}, form="its body on whole tensors")
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


# --- the kind: what stands in an op that is kept is looked at, too ---


class ControlKind(Kind):
    """Loops, branches, maps, barriers and notes."""

    name = op = CONTROL
    ops = frozenset(op.value for op in ControlOp)
    stage = Stage.FLATTENED
    domains = ControlFacts.domains
    families = (rules,)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where the target takes it, or it stands in one that is lowered first."""
        if not _is_refused(context, node) or _is_within_refused(context, node):
            return None
        if node.name in (CUSTOM_CALL, CONSTRAINT) and not _is_note(context, node):
            return None
        if node.name == MAP and not node.result().is_static:
            return self.subject(context, node)
        facts = _facts(context, node)
        if facts.goes is Outcome.BOUNDED and _is_taken_as_stored(context, node):
            context.left.add(node)
            return None
        is_many = refused_form(context.graph, context.target, node, CONTROL) is MANY
        ways = (Way.ONE, Way.ALL) if node.name == IF or is_many else (Way.ALL,)
        return self.subject(context, node, *(replace(facts, way=way) for way in ways), label=node_label(node))

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) if node.name in (CUSTOM_CALL, CONSTRAINT) else OWNED

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """Of a `case` its name and its form alone count: what it holds is copied, and looked at afterwards."""
        cases = [node for node in built if node.name == CASE]
        others = [node for node in built if node.name != CASE]
        return refused_of(target, graph, others) or refused_by_name(target, graph, cases)

    def tell(self, context: Context, subject: Subject, decision: Decision) -> Change | None:
        if isinstance(decision, Refused):
            context.left.add(subject.node)
        return super().tell(context, subject, decision)

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        facts = subject.candidates[-1].facts if subject.candidates else None
        why = facts.why if isinstance(facts, ControlFacts) else None
        return why or super().why_left(context, subject, refused)


OWNED = frozenset({"dimensions"})


def _is_refused(context: Context, node: Node) -> bool:
    is_taken = context.target.refusal(node.name, dtypes_on(node)) is None
    return not is_taken or refused_form(context.graph, context.target, node, CONTROL) is not None


def _is_taken_as_stored(context: Context, node: Node) -> bool:
    """Whether a loop is taken once its values are stored in the types that the target has: where nobody knows how often
    it runs, its trips would each choose what was carried."""
    is_taken = context.target.refusal(node.name, stored_types(context.target, dtypes_on(node))) is None
    return is_taken and refused_form(context.graph, context.target, node, CONTROL) is None


def _is_within_refused(context: Context, node: Node) -> bool:
    """Whether a loop or a branch around it is looked at first: what that leaves of this one is read afterwards."""
    around = node.parent
    while around is not None and around.name != "func.func":
        if around.name in (WHILE, CASE, IF) and around not in context.left and _is_refused(context, around):
            return True
        around = around.parent
    return False


def _facts(context: Context, node: Node) -> ControlFacts:
    op, most = ControlOp(node.name), context.options.max_unroll
    if node.name not in (WHILE, CASE, IF):
        return ControlFacts(op, says=Placed.NOTE, contents=Contents.HARMLESS)
    flat = FlatCopy(most, partial(_most_trips, context), context.graph.functions)
    goes, why = _goes(context, node, flat)
    if goes is not Outcome.UNKNOWN or node.name == WHILE:
        return ControlFacts(op, goes, most=most, bounds=tuple(flat.bounds.items()), why=why)
    flat = FlatCopy(most, partial(_most_trips, context), context.graph.functions)
    why = _harm(context, node, flat)
    contents = Contents.NOT if why else Contents.HARMLESS
    return ControlFacts(op, contents=contents, most=most, bounds=tuple(flat.bounds.items()), why=why)


def _most_trips(context: Context, node: Node) -> int | None:
    """The most trips of a loop; None also for a target that takes any loop in calls, which end early."""
    if not node.results or LOOP.word in context.target.refused_forms:
        return None
    return most_trips(context.analysis, Carried.at(Site(node.result(0)), node, 0))


def _goes(context: Context, node: Node, flat: FlatCopy) -> tuple[Outcome, Cause | None]:
    """Whether a loop or branch goes a way that is known, and if not, why."""
    try:
        if node.name == WHILE:
            flat.loop(node)
        elif (branch := flat.known_branch(node)) is None:
            return Outcome.UNKNOWN, None
        else:
            flat.block(branch)
    except NotFlatError as error:
        return Outcome.UNKNOWN, error.why
    if flat.bounds and not Functional(context.graph)(node):
        return Outcome.UNKNOWN, Code.TRIP_WITH_EFFECT()
    return (Outcome.BOUNDED if flat.bounds and node.name == WHILE else Outcome.KNOWN), None


def _harm(context: Context, node: Node, flat: FlatCopy) -> Cause | None:
    """Why the branches may not all be computed; None if they may."""
    if not Functional(context.graph)(node):
        return Code.BRANCH_WITH_EFFECT()
    try:
        for block in node.blocks:
            flat.block(block)
    except NotFlatError as error:
        return Code.LOOP_IN_BRANCH(error.why)
    return None


def _is_note(context: Context, node: Node) -> bool:
    """Whether all that it says is where a value lives, in a module for one device."""
    is_named = node.name == CONSTRAINT or mlir.call_target(node.raw) in NOTES
    is_same = [v.raw.type for v in node.operands] == [v.raw.type for v in node.results]
    return is_named and is_same and not context.is_partitioned
