"""What a scatter's region computes: one combiner per operand, by data flow and, where one op decides, by that op.

The region of a scatter over n operands has 2n scalar arguments, the current values first and the updates behind them
(trap 22), and returns n values (StableHLO spec, scatter, C22 to C24). Where its scalars are to live (a sharding
constraint, which `shard_map` over some of the axes puts on each) does not change what it computes.
"""

from dataclasses import dataclass
from enum import Enum

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.scatter.dimension_numbers import NotCanonicalError
from hlo_lower.facts.values.sources import through_identities
from hlo_lower.ir import mlir
from hlo_lower.ir.regions import used_by
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.names import CUSTOM_CALL, RNG, SUBTRACT
from hlo_lower.ops.spec import COMBINING, Role, ops_with


class Combiner(Enum):
    """How a new value comes from the current one and the update."""

    ASSIGN = "assign"  # from the updates alone
    ASSIGN_CONSTANT = "assign_constant"  # from neither
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    UNARY = "unary"  # from the current value alone
    NO_OP = "no_op"  # the current value itself
    GENERAL = "general"


ASSIGNING = frozenset({Combiner.ASSIGN, Combiner.ASSIGN_CONSTANT})
"""Combiners that do not read the current value."""

COMMUTATIVE = {name: Combiner(name.removeprefix("stablehlo.")[:3]) for name in COMBINING}
"""The combiner that each associative and commutative op is; the first three letters name it."""

_ON_BOOLEANS = {Combiner.ADD: Combiner.OR, Combiner.MUL: Combiner.AND}  # trap 25


@dataclass(frozen=True)
class RegionFacts:
    """A classified region.

    Attributes:
      combiners: one per operand.
      separable: whether each result depends on its own operand's current value and update only.
      why: what decided, one cause per operand.
    """

    combiners: tuple[Combiner, ...]
    separable: bool
    why: tuple[Cause, ...]

    @property
    def common(self) -> Combiner:
        """The combiner of all operands, GENERAL where they disagree."""
        return self.combiners[0] if len(set(self.combiners)) == 1 else Combiner.GENERAL

    @property
    def reads_current(self) -> bool:
        """Whether any operand's new value depends on a current value."""
        return any(combiner not in ASSIGNING for combiner in self.combiners)


def classify_region(block: Block) -> RegionFacts:
    """Classify a region's one block."""
    arguments = block.arguments
    n = len(arguments) // 2
    combiners: list[Combiner] = []
    why: list[Cause] = []
    separable = True
    for i, returned in enumerate(map(through_identities, block.terminator.operands)):
        used = _dependencies(returned, block)
        currents, updates = {k for k in used if k < n}, {k - n for k in used if k >= n}
        separable &= currents <= {i} and updates <= {i}
        combiner, reason = _combiner(returned, i, n, currents, updates, arguments)
        combiners.append(combiner)
        why.append(reason)
    return RegionFacts(tuple(combiners), separable, tuple(why))


def _combiner(
    returned: Value, i: int, n: int, currents: set[int], updates: set[int], arguments: tuple[Value, ...]
) -> tuple[Combiner, Cause]:
    if returned == arguments[i]:
        return Combiner.NO_OP, Code.RETURNS_CURRENT()
    if not currents and not updates:
        return Combiner.ASSIGN_CONSTANT, Code.RETURNS_CONSTANT()
    if not currents:
        return Combiner.ASSIGN, (Code.RETURNS_UPDATE if returned in arguments[n:] else Code.OF_UPDATE)()
    if currents == {i} and not updates:
        return Combiner.UNARY, Code.OF_CURRENT()
    node = returned.node
    if node is not None:
        operands = tuple(map(through_identities, node.operands))
        own = (arguments[i], arguments[n + i])
        if node.name in COMMUTATIVE and operands in (own, own[::-1]):
            combiner = COMMUTATIVE[node.name]
            if returned.element_type == "i1":
                combiner = _ON_BOOLEANS.get(combiner, combiner)
            return combiner, Code.COMBINED_BY(node.name)
        if node.name == SUBTRACT and operands == own:
            return Combiner.SUB, Code.SUBTRACTED()
    return Combiner.GENERAL, Code.COMPUTED_BY(node.name if node else None)


def _dependencies(value: Value, block: Block) -> set[int]:
    """The numbers of the block's arguments that a value depends on."""
    arguments = {argument: argument.number for argument in block.arguments}
    found: set[int] = set()
    seen: set[Value] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in arguments:
            found.add(arguments[current])
            continue
        node = current.node
        if node is not None and _is_within(node, block):
            pending.extend(used_by(node))
    return found


def _is_within(node: Node, block: Block) -> bool:
    current: Node | None = node
    owner = block.owner
    while current is not None:
        if current.parent == owner:
            return True
        current = current.parent
    return False


_EFFECTS = ops_with(role=Role.HOST) | {RNG}
"""Ops that read or move a state outside of the module; `rng_bit_generator` is given its state and is none of them."""


def refuse_side_effects(graph: Graph, region: Block) -> None:
    """Refuse a region that has a side effect itself or in a function that it calls, composites included.

    Raises:
      NotCanonicalError: naming the op.
    """
    entered: set[str] = set()
    pending = [region]
    while pending:
        for node in pending.pop().nodes:
            told = _effect(node)
            if told is not None:
                raise NotCanonicalError(told)
            pending.extend(node.blocks if node.has_regions else ())
            callee = graph.functions.get(node.body_name)
            if callee is not None and callee.has_body and callee.name not in entered:
                entered.add(callee.name)
                pending.append(callee.body)


def _effect(node: Node) -> Cause | None:
    """The side effect that a node has, or None."""
    if node.name in _EFFECTS:
        return Code.SIDE_EFFECT(node.name, None)
    if node.name == CUSTOM_CALL:
        has = node.attribute("has_side_effect")
        if has is not None and bool(has.value):
            return Code.SIDE_EFFECT(node.name, mlir.call_target(node.raw))
    return None
