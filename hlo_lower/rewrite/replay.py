"""What a rule built for one op, built again for its twins: copied, not decided and built anew.

Why the copy is right. Twins are ops of which their kind reads the same (`Subject.twins`): facts, region, attributes and
types. So they have the same candidates, of which the same ones fail. A rule of this package is given the op in canonical
form, its facts, and a builder. It takes the op's operands as values: it asks for their types, which twins share, and not
for what computes them; what matters of that is a fact. So it is a function of what twins share, applied to operands that
it does not look into, and builds for a twin the same ops on the twin's operands. A copy is that, if each value that was
taken from outside is an operand; which of the operands are the same value has to be the same for the twin, so that a rule
that compared two of them saw the same. Where something else was taken or named (a value that the region captures, a
function), nothing is replayed: the twin's lowering is built as if there had been no other. So it is for rules of somebody
else, which may look at anything.

Locations are copied, too: each is that of the op or of something in its region, and the twin has one in the same place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.graph import Node, Value
from hlo_lower.registry import Rule
from hlo_lower.rewrite.decision import Chosen


@dataclass(frozen=True)
class _Op:
    """An op of a lowering, with the ops in its regions: those of a walk, itself first.

    Attributes:
      raw: the op, in a module of its own.
      taken: which op of the walk takes with which operand the value of which number, where that is from outside of it.
      locations: for each op of the walk, then each argument of its blocks, the places of its location among those of
        the scatter (`mlir.locations_within`); none where all are that of the scatter itself, and of nothing else.
    """

    raw: mlir.RawOperation
    taken: tuple[tuple[int, int, int], ...]
    locations: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Recipe:
    """A lowering that can be repeated. Values have numbers: the op's operands, then the results of what is built.

    Attributes:
      decision: the rule.
      module: holds what is copied: what was built for the first op may be erased before the last twin is lowered.
      operands: for each operand the number of the first one that is the same value.
      results: types of the op's results.
      ops: what is built.
      given: the numbers of the values that replace the op's results.
    """

    decision: Chosen
    module: mlir.RawModule
    operands: tuple[int, ...]
    results: tuple[mlir.RawType, ...]
    ops: tuple[_Op, ...]
    given: tuple[int, ...]

    def built_for(self, node: Node) -> list[mlir.RawValue] | None:
        """Build in front of a twin; gives what replaces its results, or None, and nothing built, where it differs."""
        raw = node.raw
        values, point, here = list(raw.operands), mlir.insert_before(raw), raw.location
        if _alike(values) != self.operands or tuple(result.type for result in raw.results) != self.results:
            return None
        own = mlir.locations_within(raw) if any(op.locations for op in self.ops) else []
        if any(own[n] != own[places[0]] for op in self.ops for places in op.locations for n in places):
            return None
        for op in self.ops:
            copy = mlir.copied(op.raw, point)
            walked = mlir.walked(copy) if op.locations or any(n for n, _, _ in op.taken) else [copy]
            for n, k, number in op.taken:
                walked[n].operands[k] = values[number]
            if op.locations:
                mlir.set_locations(copy, [own[places[0]] for places in op.locations])
            else:
                copy.location = here
            values.extend(copy.results)
        return [values[number] for number in self.given]


def recipe_of(node: Node, decision: Chosen, built: Sequence[Node], values: Sequence[Value]) -> Recipe | None:
    """How to repeat what was built for an op; None where that is not known to be right.

    Args:
      node: the op, which still stands.
      decision: the rule.
      built: what was built in front of it, ops within regions included.
      values: what replaces its results.
    """
    raw = node.raw
    tops = [made.raw for made in built if made.raw.parent == raw.parent]
    if not _is_of_package(decision.choice.rule) or any(top.block != raw.block for top in tops):
        return None
    operands, places, module = list(raw.operands), mlir.locations_within(raw), mlir.empty_module(raw.location)
    numbers = {value: n for n, value in reversed(list(enumerate(operands)))}
    copies = {value: mlir.placeholder(module, value.type) for value in numbers}
    ops: list[_Op] = []
    for top in tops:
        taken, locations = _taken(top, numbers), _places(top, places)
        if taken is None or locations is None:
            return None
        copy = mlir.clone_into(top, module.body, copies)
        copies.update(zip(top.results, copy.results, strict=True))
        numbers.update({value: len(operands) + k for k, value in enumerate(top.results)})
        operands.extend(top.results)
        ops.append(_Op(copy, taken, locations))
    if any(value.raw not in numbers for value in values):
        return None
    types = tuple(result.type for result in raw.results)
    given = tuple(numbers[value.raw] for value in values)
    return Recipe(decision, module, _alike(list(raw.operands)), types, tuple(ops), given)


def _taken(top: mlir.RawOperation, numbers: dict[mlir.RawValue, int]) -> tuple[tuple[int, int, int], ...] | None:
    """What an op takes from outside of itself; None where that is no operand, or where it names a function."""
    walked = mlir.walked(top)
    inside = {value for op in walked for value in mlir.defined_by(op)} - set(top.results)
    found: list[tuple[int, int, int]] = []
    for n, op in enumerate(walked):
        outer = [(k, value) for k, value in enumerate(op.operands) if value not in inside]
        if Node(op).body_name or any(value not in numbers for _, value in outer):
            return None
        found += [(n, k, numbers[value]) for k, value in outer]
    return tuple(found)


def _places(top: mlir.RawOperation, places: Sequence[mlir.RawLocation]) -> tuple[tuple[int, ...], ...] | None:
    """Where the locations within an op stand among those of the scatter; None where one does not."""
    found = tuple(tuple(n for n, other in enumerate(places) if other == at) for at in mlir.locations_within(top))
    if not all(found):
        return None
    return () if found == ((0,),) else found


def _alike(values: list[mlir.RawValue]) -> tuple[int, ...]:
    return tuple(map(values.index, values))


def _is_of_package(rule: Rule) -> bool:
    return str(getattr(rule.lowering, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]
