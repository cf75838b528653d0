"""Try rules on their families: lower each module preferring the rule, see that it was taken, prove the two equal."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from hlo_lower.api.functions import lower
from hlo_lower.base.arguments import no_rule, silent
from hlo_lower.base.change import Outcome
from hlo_lower.base.errors import HloLowerError
from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER
from hlo_lower.ir import mlir
from hlo_lower.ir.mlir import RefinementError
from hlo_lower.lowering.control import CONTROL
from hlo_lower.lowering.gather import DYNAMIC_GATHER
from hlo_lower.lowering.kinds import installed_registry
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.single_ops.plain_op import PLAIN
from hlo_lower.lowering.types.element_type import ON_INTEGERS
from hlo_lower.ops.names import COMPOSITE, GATHER, REVERSE, SCATTER, SORT
from hlo_lower.testing.prove.gathers import at_static_sizes, dynamic_gather_cases, dynamic_scatter_cases, gather_cases
from hlo_lower.testing.prove.op_families import (
    composite_cases,
    control_cases,
    element_type_cases,
    has_plain_cases,
    plain_cases,
    reverse_cases,
    sort_cases,
)
from hlo_lower.testing.prove.proof_case import ProofCase, concrete
from hlo_lower.testing.prove.scatters import scatter_cases
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import ScatterNumbers, combine_of, scatter
from hlo_lower.verify.proof import prove_equal, require
from hlo_lower.verify.proof.equal import scatters_into_a_scalar
from hlo_lower.verify.run import CannotRunError, Executable, Rounding, entry_function

Array = NDArray[Any]


@dataclass(frozen=True)
class Refuted:
    """A case in which a rule is wrong."""

    case: ProofCase  # the case
    after: str  # the lowered module
    inputs: tuple[Array, ...]  # an array for each argument, on which the two differ
    reason: str  # where they differ
    confirmed: str  # by which runs, in words

    @property
    def module(self) -> str:
        """The first module with its arguments concrete."""
        return concrete(self.case.text, self.inputs)


@dataclass(frozen=True)
class Undecided:
    """A case of which nothing is proved, and why."""

    name: str
    reason: str


@dataclass
class RuleOutcome:
    """The cases of one rule."""

    # op, rule: what it lowers, and its short name
    op: str
    rule: str
    proved: int = 0  # number of modules that are proved for all indices and payloads
    other: int = 0  # modules that another rule took, so that they say nothing of this one
    # unknown, refuted: the others
    unknown: list[Undecided] = field(default_factory=list[Undecided])
    refuted: list[Refuted] = field(default_factory=list[Refuted])
    seconds: float = 0.0  # what it took

    @property
    def tried(self) -> int:
        """Modules that the rule took."""
        return self.proved + len(self.unknown) + len(self.refuted)

    @property
    def status(self) -> str:
        """ "refuted", "proved", "in part" or "no shape"."""
        if self.refuted:
            return "refuted"
        if not self.proved:
            return "no shape"
        return "in part" if self.unknown else "proved"

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`."""
        refuted = [
            {"case": r.case.name, "reason": r.reason, "confirmed": r.confirmed, "module": r.module, "after": r.after}
            for r in self.refuted
        ]
        counts = {"proved": self.proved, "tried": self.tried, "other": self.other, "seconds": round(self.seconds, 3)}
        unknown = [{"case": u.name, "reason": u.reason} for u in self.unknown]
        return {
            "op": self.op,
            "rule": self.rule,
            "status": self.status,
            **counts,
            "unknown": unknown,
            "refuted": refuted,
        }


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
    """The rules of these short names, all of them where there are none; InputError if there is no such rule."""
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
    """Prove rules over their families: at most `shapes` modules each, spread evenly over the family, in seconds
    each. InputError if z3 is not installed."""
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


# --- a counterexample once more, without the prover: XLA runs both modules, NumPy scatters by the specification ---


Judge = Callable[[ProofCase, tuple[Array, ...], Rounding], list[Array] | None]
"""What the first version gives, by one of the judges; None where it is none."""

_ROUNDINGS: tuple[Rounding, ...] = ("quick", "unfused")


def confirmed(case: ProofCase, after: str, inputs: tuple[Array, ...]) -> str:
    """By which runs the two versions differ on arguments: "XLA", "NumPy", both or "nothing"."""
    judges = (("XLA", _by_xla), ("NumPy", _by_numpy))
    found = [name for name, judge in judges if any(_differs(judge, case, after, inputs, how) for how in _ROUNDINGS)]
    return " and ".join(found) or "nothing"


def _differs(judge: Judge, case: ProofCase, after: str, inputs: tuple[Array, ...], how: Rounding) -> bool:
    """Whether the second version gives something else than a judge of the first."""
    if how == "unfused" and any(scatters_into_a_scalar(text) for text in (case.text, after)):
        return False
    try:
        first, second = judge(case, inputs, how), Executable(after, how).run(inputs)
    except CannotRunError:
        return False
    return first is not None and first_difference(first, second) is not None


def _by_xla(case: ProofCase, inputs: tuple[Array, ...], how: Rounding) -> list[Array] | None:
    """XLA's results; none under "spec", of which it is no judge."""
    return None if case.oob == "spec" else Executable(case.text, how).run(inputs)


def _by_numpy(case: ProofCase, inputs: tuple[Array, ...], how: Rounding) -> list[Array] | None:
    """The reference's results: indices and updates as XLA computes them, scattered by NumPy."""
    module = mlir.parse_module(case.text)
    scatters, _ = mlir.named(module.operation, (SCATTER,))
    if len(scatters) != 1:
        return None
    [node], main = scatters, entry_function(module)
    count = len(node.results)
    *_, end = (operation.operation for operation in main.regions[0].blocks[0].operations)
    with mlir.active(module.context):
        read, point = list(node.operands)[count:], mlir.insert_before(end)
        mlir.create_operation(end.name, read, [], location=end.location, insertion_point=point)
        end.erase()
        mlir.set_signature(main)
    indices, *updates = Executable(mlir.print_module(module), how).run(inputs)
    dtypes = [mlir.dtype_of(mlir.tensor_element_name(result.type)) for result in node.results]
    known = [dtype for dtype in dtypes if dtype is not None]
    numbers = ScatterNumbers.of(node)
    return scatter(inputs[:count], indices, updates, numbers, combine_of(node, {}), known, oob=case.oob)


# --- the table ---

HEADERS = ("rule", "proved", "tried", "unknown", "refuted", "seconds")


def render_text(outcomes: Sequence[RuleOutcome]) -> str:
    """A line for each rule, what is unknown by reason, and each counterexample as a module."""
    rows = [HEADERS, *(_row(o) for o in outcomes)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADERS))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines += ["", *_summary(outcomes)]
    for outcome in outcomes:
        lines += [f"{outcome.rule}: unknown: {count} because of {reason}" for reason, count in _reasons(outcome)]
        for refuted in outcome.refuted:
            lines += [
                f"{outcome.rule}: refuted: {refuted.case.name}",
                f"  {refuted.reason}; confirmed by {refuted.confirmed}",
                *(f"  | {line}" for line in refuted.module.splitlines()),
            ]
    return "\n".join(lines) + "\n"


def _row(outcome: RuleOutcome) -> tuple[str, ...]:
    counts = (outcome.proved, outcome.tried, len(outcome.unknown), len(outcome.refuted))
    return (outcome.rule, *map(str, counts), f"{outcome.seconds:.1f}")


def _reasons(outcome: RuleOutcome) -> list[tuple[str, int]]:
    return Counter(unknown.reason for unknown in outcome.unknown).most_common()


def _summary(outcomes: Sequence[RuleOutcome]) -> list[str]:
    proved = [o for o in outcomes if o.proved and not o.refuted]
    without = [o.rule for o in outcomes if not o.tried]
    counts = [sum(o.proved for o in outcomes), sum(o.tried for o in outcomes)]
    told = (
        f"{len(proved)} of {len(outcomes)} rules have proved shapes and none refuted; {counts[0]} of {counts[1]} shapes"
    )
    return [told, *([f"no shape of the family is taken by: {', '.join(without)}"] if without else [])]


def render_json(outcomes: Sequence[RuleOutcome]) -> str:
    """The outcomes as JSON."""
    return json.dumps({"rules": [outcome.to_json() for outcome in outcomes]}, indent=2) + "\n"
