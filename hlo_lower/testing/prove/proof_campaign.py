"""Try rules on their families: lower each module preferring the rule, see that it was taken, prove the two equal."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter

from hlo_lower.api.functions import lower
from hlo_lower.base.arguments import no_rule, silent
from hlo_lower.base.change import Outcome
from hlo_lower.base.errors import HloLowerError
from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER
from hlo_lower.ir.mlir import RefinementError
from hlo_lower.lowering.control.control import CONTROL
from hlo_lower.lowering.engine.plugins import installed_registry
from hlo_lower.lowering.gather.dynamic_gather import DYNAMIC_GATHER
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.single_ops.plain_op import PLAIN
from hlo_lower.lowering.types.element_type import ON_INTEGERS
from hlo_lower.ops.names import COMPOSITE, GATHER, REVERSE, SCATTER, SORT
from hlo_lower.testing.prove.confirm import confirmed
from hlo_lower.testing.prove.family import scatter_cases
from hlo_lower.testing.prove.gathers import gather_cases
from hlo_lower.testing.prove.op_families import (
    composite_cases,
    control_cases,
    element_type_cases,
    has_plain_cases,
    plain_cases,
    reverse_cases,
    sort_cases,
)
from hlo_lower.testing.prove.open_dims import at_static_sizes, dynamic_gather_cases, dynamic_scatter_cases
from hlo_lower.testing.prove.proof_case import ProofCase
from hlo_lower.testing.prove.proof_outcome import Refuted, RuleOutcome, Undecided
from hlo_lower.verify.proof import prove_equal, require

FAMILIES: dict[str, Callable[[Rule], Iterator[ProofCase]]] = {
    SCATTER: scatter_cases,
    DYNAMIC_SCATTER: dynamic_scatter_cases,
    GATHER: gather_cases,
    DYNAMIC_GATHER: dynamic_gather_cases,
    COMPOSITE: composite_cases,
    REVERSE: reverse_cases,
    ON_INTEGERS: element_type_cases,
    SORT: sort_cases,
    CONTROL: control_cases,
    PLAIN: plain_cases,
}
"""The family of each op that has rules."""

MOST_REFUTED = 3
"""Counterexamples of a rule after which no more are looked for."""

HANDFUL = 32
"""Modules that are sorted by their size where only some are tried."""

Progress = Callable[[str, int, int], None]


def rules_named(names: Sequence[str]) -> list[Rule]:
    """The rules of these short names, all of them where there are none.

    Raises:
      InputError: there is no such rule.
    """
    known = [rule for op in FAMILIES for rule in installed_registry().rules(op)]
    known = [rule for rule in known if rule.op != PLAIN or has_plain_cases(rule)]
    missing = [name for name in names if name not in {rule.short_name for rule in known}]
    if missing:
        raise no_rule("prove", missing[0], (rule.short_name for rule in known))
    return [rule for rule in known if not names or rule.short_name in names]


def prove_rules(
    rules: Iterable[Rule],
    *,
    timeout_s: float = 10.0,
    shapes: int | None = None,
    progress: Progress | None = None,
) -> list[RuleOutcome]:
    """Prove rules over their families.

    Args:
      rules: of the registry.
      timeout_s: seconds for each module.
      shapes: modules that each rule is to take at most, spread evenly over its family; None for all.
      progress: told of each rule, how much of its family is done and how much there is.

    Raises:
      InputError: z3 is not installed.
    """
    require()
    return [_outcome(rule, timeout_s, shapes, progress or silent) for rule in rules]


def _outcome(rule: Rule, timeout_s: float, shapes: int | None, progress: Progress) -> RuleOutcome:
    outcome, start = RuleOutcome(rule.op, rule.short_name), perf_counter()
    cases = list(FAMILIES[rule.op](rule))
    for number, case in enumerate(_spread(cases, shapes)):
        if outcome.tried == shapes or len(outcome.refuted) == MOST_REFUTED:
            break
        progress(rule.short_name, number, len(cases))
        _try(outcome, rule, case, timeout_s)
    progress(rule.short_name, len(cases), len(cases))
    outcome.seconds = perf_counter() - start
    return outcome


def _spread(cases: Sequence[ProofCase], shapes: int | None) -> Iterator[ProofCase]:
    """All cases; where only some are wanted, handfuls from everywhere in the family, each from small to large."""
    if shapes is None:
        yield from cases
        return
    stride = next(n for n in (7919, 104729) if not cases or len(cases) % n)
    order = [cases[k * stride % len(cases)] for k in range(len(cases))]
    for start in range(0, len(order), HANDFUL):
        yield from sorted(order[start : start + HANDFUL], key=lambda case: len(case.text))


def _try(outcome: RuleOutcome, rule: Rule, case: ProofCase, timeout_s: float) -> None:
    """Lower one case and, if the rule took it, prove it."""
    source = case.dynamic_text or case.text
    try:
        lowered = lower(source, oob=case.oob, trust_flags=case.trust_flags, name=case.name, **case.options)
        if rule_taken(lowered, rule) != rule.short_name:
            outcome.other += 1
            return
        after = at_static_sizes(lowered.stablehlo, case.text) if case.dynamic_text else lowered.stablehlo
    except RefinementError as error:
        outcome.unknown.append(Undecided(case.name, f"no static form at these sizes: {_reason(error)}"))
        return
    except HloLowerError as error:
        outcome.unknown.append(Undecided(case.name, f"not lowered: {error.what}"))
        return
    result = prove_equal(case.text, after, timeout_s=timeout_s, oob=case.oob, trust_flags=case.trust_flags)
    if result.status == "proved":
        outcome.proved += 1
    elif result.status != "refuted":
        outcome.unknown.append(Undecided(case.name, result.reason))
    else:
        told = confirmed(case, after, result.inputs)
        outcome.refuted.append(Refuted(case, after, result.inputs, result.reason, told))


def _reason(error: RefinementError) -> str:
    """What jaxlib says, without where."""
    return str(error).splitlines()[0].rpartition("error: ")[2]


_NOTED = re.compile(r"\((\w+)\)$")


def rule_taken(lowered: Lowered, rule: Rule) -> str:
    """The short name of the rule by which a module's one op was lowered.

    Scatters tell it in their record, what else was changed in a note; what a rule leaves as it is, in none.
    """
    if lowered.records:
        return lowered.records[0].rule
    for note in lowered.notes:
        found = _NOTED.search(note)
        if found:
            return found[1]
    is_left = all(change.outcome is Outcome.KEPT for change in lowered.changes)
    return rule.short_name if is_left and rule.short_name.endswith("_to_itself") else ""
