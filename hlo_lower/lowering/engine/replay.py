"""What a rule built for one op, built again for its twins: copied, not decided and built anew.

Why the copy is right. Twins are ops of which their kind reads the same (`Subject.equivalence`): facts, region,
attributes and types. So they have the same candidates, of which the same ones fail. A rule of this package is given the
op in canonical form, its facts, and a builder. It takes the op's operands as values: it asks for their types, which
twins share, and not for what computes them; what matters of that is a fact. So it is a function of what twins share,
applied to operands that it does not look into, and builds for a twin the same ops on the twin's operands. A copy is
that, if each value that was taken from outside is an operand; which of the operands are the same value has to be the
same for the twin, so that a rule that compared two of them saw the same. Where something else was taken or named (a
value that the region captures, a function), nothing is replayed: the twin's lowering is built as if there had been no
other. So it is for rules of somebody else, which may look at anything.

Locations are copied, too: each is that of the op or of something in its region, and the twin has one in the same
place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.base.registry import Rule
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.decision import Chosen


@dataclass(frozen=True)
class Recipe:
    """A lowering that can be repeated.

    Attributes:
      decision: the rule.
      template: a function of the op's operands that is what was built, and returns what replaces the op's results. It
        stands in no module: what was built itself may be erased before the last twin is lowered.
      operands: for each operand the number of the first one that is the same value.
      results: types of the op's results.
      places: for each op of the template, each op in its regions and each argument of their blocks: where its location
        stands among those of the op and its region (`mlir.locations_within`); () where all are the op's own.
      alike: where one of these locations stands more than once, each such set of places.
    """

    decision: Chosen
    template: mlir.RawOperation
    operands: tuple[int, ...]
    results: tuple[mlir.RawType, ...]
    places: tuple[tuple[int, ...], ...]
    alike: frozenset[tuple[int, ...]]

    def built_for(self, node: Node) -> list[mlir.RawValue] | None:
        """Build in front of a twin; gives what replaces its results, or None, and nothing built, where it differs."""
        raw = node.raw
        operands = list(raw.operands)
        if _alike(operands) != self.operands or tuple([result.type for result in raw.results]) != self.results:
            return None
        own = mlir.locations_within(raw) if self.places else []
        if any(own[n] != own[same[0]] for same in self.alike for n in same):
            return None
        built, given = mlir.inlined(self.template, operands, raw)
        for op, places in zip(built, self.places, strict=False):
            mlir.set_locations(op, [own[n] for n in places])
        return given


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
    known = {*raw.operands, *(value for top in tops for value in top.results)}
    if not _is_of_package(decision.choice.rule) or any(value.raw not in known for value in values):
        return None
    if any(top.block != raw.block or not _takes_only(top, known) for top in tops):
        return None
    own = mlir.locations_within(raw)
    places = [[_where(at, own) for at in mlir.locations_within(top)] for top in tops]
    if not all(same for of_op in places for same in of_op):
        return None
    is_plain = all(of_op == [(0,)] for of_op in places)
    operands = list(raw.operands)
    return Recipe(
        decision,
        mlir.template_of(tops, operands, [value.raw for value in values], raw.location),
        _alike(operands),
        tuple(result.type for result in raw.results),
        () if is_plain else tuple(tuple([same[0] for same in of_op]) for of_op in places),
        frozenset() if is_plain else frozenset(same for of_op in places for same in of_op if len(same) > 1),
    )


def _takes_only(top: mlir.RawOperation, known: set[mlir.RawValue]) -> bool:
    """Whether an op takes nothing from around it but these values, and names no function."""
    walked = mlir.walked(top)
    inside = {value for op in walked for value in mlir.defined_by(op)}
    return all(value in known or value in inside for op in walked for value in op.operands) and not any(
        Node(op).body_name for op in walked
    )


def _where(location: mlir.RawLocation, own: Sequence[mlir.RawLocation]) -> tuple[int, ...]:
    return tuple(n for n, other in enumerate(own) if other == location)


def _alike(values: list[mlir.RawValue]) -> tuple[int, ...]:
    return tuple(map(values.index, values))


def _is_of_package(rule: Rule) -> bool:
    return str(getattr(rule.lowering, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]
