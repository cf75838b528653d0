"""A stage: the ops of several kinds, all of them read, then each lowered, and told what became of them."""

import sys
from collections.abc import Iterator, Sequence

from hlo_lower.base.change import Change, Outcome, grouped
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Chosen, Decision
from hlo_lower.lowering.engine.engine import Engine
from hlo_lower.lowering.engine.kind import Kind, Subject
from hlo_lower.ops.cleanup import erase_uncalled

UNTIL_DONE = sys.maxsize
"""How often kinds are run that are run until nothing of them is lowered any more."""


def run_stage(context: Context, kinds: Sequence[Kind]) -> tuple[Change, ...]:
    """Lower the ops of these kinds in place; a module without any stays as it is, byte for byte.

    Args:
      context: the module, and how it is lowered.
      kinds: one after the other. For one that does not concern the target nothing is looked at.

    Returns:
      What was changed, kept and left, grouped by kind; what needs nothing is not told.

    Raises:
      NotLoweredError: a rule is broken, or two contradict each other.
    """
    concerned = [kind for kind in kinds if kind.concerns(context.options)]
    found = list(_found(context, concerned)) if concerned else []
    if not found:
        return ()
    engine, changes = Engine(context), list[Change | None]()
    places = {subject.node: place for place, subject in enumerate(found)}
    gone: set[int] = set()  # ops within one that was replaced: what it became may hold copies of them
    with mlir.active(context.graph.context):
        for place, subject in enumerate(found):
            if place in gone:
                continue

            def tell(decision: Decision, subject: Subject = subject) -> None:
                changes.append(subject.kind.tell(context, subject, decision))

            inner = {places[node] for node in _within(subject.node) if node in places} if len(found) > 1 else set[int]()
            if isinstance(engine.lower(subject, tell), Chosen):
                gone |= inner
        context.graph.forget()
        erase_uncalled(context.graph, engine.uncalled)
    context.graph.forget()
    if gone:
        changes += [change for change in run_stage(context.afresh(), kinds) if change.outcome is Outcome.LOWERED]
    return grouped(change for change in changes if change is not None)


def _within(node: Node) -> Iterator[Node]:
    """The ops in its regions, at any depth."""
    for block in node.blocks if node.has_regions else ():
        for inner in block.nodes:
            yield inner
            yield from _within(inner)


def run_to_the_end(context: Context, kinds: Sequence[Kind], most: int = UNTIL_DONE) -> tuple[Change, ...]:
    """The same again and again, until nothing is lowered any more.

    Of ops that hold others the outer ones come first. What a rule builds of one holds copies of what that op held,
    nested less deeply, so it ends. What stands in an op that is left is looked at afterwards.

    Args:
      context, kinds: as of `run_stage`.
      most: how often at most.

    Returns:
      What was lowered, and what is left in the end.
    """
    lowered, changes = list[Change](), tuple[Change, ...]()
    for _ in range(most):
        known = len(context.left)
        changes = run_stage(context, kinds)
        done = [change for change in changes if change.outcome is Outcome.LOWERED]
        lowered += done
        if done:
            context = context.afresh()
            changes = tuple(change for change in changes if change.outcome is not Outcome.LOWERED)
        elif len(context.left) == known:
            break
    return grouped((*lowered, *changes))


def _found(context: Context, kinds: Sequence[Kind]) -> Iterator[Subject]:
    """The ops of each kind, in program order, as they are read before any of them is changed."""
    nodes: dict[str, list[Node]] = {}  # by name, or by how the name begins
    exact = {op for kind in kinds for op in kind.ops or (kind.op,)}
    beginnings = tuple(op for op in exact if op.endswith("."))

    def visit(raw: mlir.RawOperation) -> None:
        name = raw.name
        if name in exact:
            nodes.setdefault(name, []).append(Node(raw))
        if name.startswith(beginnings):
            begun = next(beginning for beginning in beginnings if name.startswith(beginning))
            nodes.setdefault(begun, []).append(Node(raw))

    mlir.walk(context.graph.module.operation, visit)
    for kind in kinds:
        wanted = kind.ops or {kind.op}
        for op in (op for op in nodes if op in wanted):
            yield from filter(None, (kind.read(context, node) for node in nodes[op]))
