"""Control flow: loops unrolled as long as they may go on, branches merged by their predicate.

A loop ends where its condition cannot hold any more, for any arguments; where that is not found within a number of
rounds nothing is proved.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.verify.proof.beyond import Beyond
from hlo_lower.verify.proof.elements import TRUTH, ProofType
from hlo_lower.verify.proof.operation import Operation
from hlo_lower.verify.proof.tensors import Tensor, scalar, selected
from hlo_lower.verify.proof.terms import Term, both, equal, is_known, opposite, simplified
from hlo_lower.verify.read.program import CALLS

MOST_ROUNDS = 256
"""Rounds of a loop whose number is known."""

MOST_OPEN_ROUNDS = 16
"""Rounds of a loop that goes on for some arguments and not for others."""


def while_(op: Operation) -> list[Tensor]:
    """`while`."""
    current, alive, open_rounds = list(op.operands), True, 0
    for _ in range(MOST_ROUNDS):
        [condition] = op.evaluator.body(op.region(0), current, op.scope)
        alive = simplified(both(alive, condition[()]), TRUTH)
        if not op.world.is_possible(alive):
            return current
        with op.world.under(alive):
            following = op.evaluator.body(op.region(1), current, op.scope)
        current = _merged(alive, following, current, op.elements)
        open_rounds += not is_known(alive)
        if open_rounds > MOST_OPEN_ROUNDS:
            break
    raise Beyond("a loop of too many rounds")


def _merged(
    condition: Term, yes: Sequence[Tensor], no: Sequence[Tensor], elements: Sequence[ProofType]
) -> list[Tensor]:
    if is_known(condition):
        return list(yes if condition else no)
    return [selected(scalar(condition), a, b, e) for a, b, e in zip(yes, no, elements, strict=True)]


def if_(op: Operation) -> list[Tensor]:
    """`if`: both branches, merged."""
    return _branches(op, [op.operands[0][()], opposite(op.operands[0][()])])


def case(op: Operation) -> list[Tensor]:
    """`case`: all branches; an index that is no branch's takes the last."""
    index, element, count = op.operands[0][()], op.operand_element(), len(op.raw.regions)
    own = [equal(index, k, element) for k in range(count - 1)]
    return _branches(op, [*own, both(*map(opposite, own))])


def _branches(op: Operation, conditions: Sequence[Term]) -> list[Tensor]:
    """The results of the branch whose condition holds; one of them does."""
    elements = [op.element(k) for k in range(len(op.raw.results))]
    found: list[Tensor] | None = None
    for number, condition in enumerate(conditions):
        if condition is False:
            continue
        with op.world.under(condition):
            own = op.evaluator.body(op.region(number), [], op.scope)
        found = own if found is None else _merged(condition, own, found, elements)
    if found is None:
        raise Beyond("a branch that is never taken")
    return found


def call(op: Operation) -> list[Tensor]:
    """`func.call` or `composite`; those of functions that have a body are inlined."""
    name = mlir.symbol_name(op.raw.attributes[CALLS[op.op.name]])
    raise Beyond(f"@{name}, of which there is no body, or which calls itself")
