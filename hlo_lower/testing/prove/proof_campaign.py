"""Try rules on their families: lower each module preferring the rule, see that it was taken, prove the two equal."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.api.functions import lower
from hlo_lower.base.arguments import no_rule, silent
from hlo_lower.base.change import Outcome
from hlo_lower.base.errors import HloLowerError, InputError
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
from hlo_lower.testing.prove.variant_family import stated_for, variant_cases
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import ScatterNumbers, combine_of, scatter
from hlo_lower.verify.pull import derive
from hlo_lower.verify.pull.solver import require
from hlo_lower.verify.run import CannotRunError, Executable, Rounding, entry_function, read_signature

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
    def tried_count(self) -> int:
        """How many modules the rule was tried on."""
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
        counts = {
            "proved": self.proved,
            "tried": self.tried_count,
            "other": self.other,
            "seconds": round(self.seconds, 3),
        }
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
"""The family of each op that has rules; that of a declared composite are the examples of its declaration."""

MOST_REFUTED = 3
"""Counterexamples of a rule after which no more are looked for."""

HANDFUL = 32
"""Modules that are sorted by their size where only some are tried."""

Progress = Callable[[str, int, int], None]


def rules_named(names: Sequence[str]) -> list[Rule]:
    """The rules of these short names; all that have a family, or examples, where there are none.

    Raises:
      InputError: there is no such rule, or it has no family.
    """
    registry = installed_registry()
    rules = [rule for op in registry.ops for rule in registry.rules(op)]
    known = [rule for rule in rules if rule.op in FAMILIES and (rule.op != PLAIN or has_plain_cases(rule))]
    known += [
        rule for op, declared in registry.declarations.items() if declared.examples for rule in registry.rules(op)
    ]
    every = {rule.short_name: rule for rule in rules}
    for name in names:
        if name not in every:
            raise no_rule("prove", name, every)
        if every[name] not in known:
            raise InputError(
                "prove",
                f"{name} has no family of modules to be proved on",
                facts=f"it is a rule of {every[name].op!r}; families: hlo_lower/testing/prove/proof_campaign.py",
                next_step="rules.declare(..., examples=modules), of a composite; or hlo-lower verify IN OUT, with a "
                "module that it takes and what that is lowered to",
            )
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
    cases = list(FAMILIES[rule.op](rule) if rule.op in FAMILIES else variant_cases(installed_registry(), rule))
    for number, case in enumerate(_spread(cases, shapes)):
        if outcome.tried_count == shapes or len(outcome.refuted) == MOST_REFUTED:
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
    if rule.op not in FAMILIES:
        registry = installed_registry()
        case, after = replace(case, source=stated_for(registry, case, case.text)), stated_for(registry, case, after)
    result = derive(case.text, after, seconds=timeout_s, oob=case.oob, trust_flags=case.trust_flags)
    if result:
        outcome.proved += 1
    elif (found := find_refutation(case, after, result.inputs)) is not None:
        outcome.refuted.append(found)
    else:
        outcome.unknown.append(Undecided(case.name, result.reason))


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


# --- counterexamples: without the prover XLA runs both modules, and NumPy scatters by the specification ---


Judge = Callable[[ProofCase, tuple[Array, ...], Rounding], list[Array] | None]
"""What the first version gives, by one of the judges; None where it is none."""

_ROUNDINGS: tuple[Rounding, ...] = ("quick", "unfused")

_DRAWS = 12
"""Inputs that are tried."""

_SPECIAL = (-0.0, np.nan, np.inf, -np.inf, 0.0, 1.0)


def find_refutation(case: ProofCase, after: str, model: tuple[Array, ...] = ()) -> Refuted | None:
    """Find arguments on which the two versions differ; None if there are none among those tried.

    Args:
      case: the case.
      after: the lowered module.
      model: arguments that the solver names, if it does; every second time they are tried. Its floats mean little:
        others are drawn in their place.
    """
    arguments = read_signature(mlir.parse_module(case.text)).arguments
    rng = np.random.default_rng(0)
    for number in range(_DRAWS):
        drawn = tuple(_draw_array(a, rng, is_special=number >= _DRAWS // 2) for a in arguments)
        kept = zip(model, drawn, strict=True) if model and number % 2 == 0 else ()
        inputs = tuple(a if a.dtype.kind in "biu" or number == 0 else b for a, b in kept) or drawn
        if found := _differences(case, after, inputs):
            return Refuted(case, after, inputs, next(iter(found.values())), " and ".join(found))
    return None


def _draw_array(aval: Any, rng: np.random.Generator, *, is_special: bool) -> Array:
    """Integers in and around the bounds of small tensors; floats, or what is special among them."""
    dtype = np.dtype(aval.dtype)
    if dtype.kind in "biu":
        low, high = {"b": (0, 2), "u": (0, 5), "i": (-2, 5)}[dtype.kind]
        return np.asarray(rng.integers(low, high, aval.shape), dtype)
    return np.asarray(rng.choice(_SPECIAL, aval.shape) if is_special else rng.normal(size=aval.shape) * 10, dtype)


def _differences(case: ProofCase, after: str, inputs: tuple[Array, ...]) -> dict[str, str]:
    """For each judge of the first version that the second one does not agree with, where they first differ."""
    found: dict[str, str] = {}
    for how in _ROUNDINGS:
        if how == "unfused" and any(_scatters_into_a_scalar(text) for text in (case.text, after)):
            continue  # XLA's compiler ends the process on such a one without its simplifier
        try:
            second = _compile(after, how).run(inputs)
        except CannotRunError:
            continue
        for name, judge in _JUDGES.items():
            with suppress(CannotRunError):
                for number, (a, b) in enumerate(zip(judge(case, inputs, how) or (), second, strict=False)):
                    if first_difference([a], [b]) is not None:
                        found.setdefault(name, f"result {number}: {a.tolist()} and {b.tolist()}")
    return found


@lru_cache(maxsize=8)
def _compile(text: str, how: Rounding) -> Executable:
    return Executable(text, how)


def _scatters_into_a_scalar(text: str) -> bool:
    """Whether a module has a scatter whose operand has rank 0."""

    def is_one(operation: mlir.RawOperation) -> bool:
        return operation.name == SCATTER and not mlir.tensor_shape(operation.results[0].type)

    return mlir.any_operation(mlir.parse_module(text).operation, is_one)


def _by_xla(case: ProofCase, inputs: tuple[Array, ...], how: Rounding) -> list[Array] | None:
    """XLA's results; none under "spec", of which it is not a judge."""
    return None if case.oob == "spec" else _compile(case.text, how).run(inputs)


def _by_numpy(case: ProofCase, inputs: tuple[Array, ...], how: Rounding) -> list[Array] | None:
    """The reference's results: indices and updates as XLA computes them, scattered by NumPy."""
    module = mlir.parse_module(case.text)
    scatters, _ = mlir.find_named(module.operation, (SCATTER,))
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
    indices, *updates = _compile(mlir.print_module(module), how).run(inputs)
    dtypes = [mlir.dtype_of(mlir.tensor_element_name(result.type)) for result in node.results]
    known = [dtype for dtype in dtypes if dtype is not None]
    numbers = ScatterNumbers.of(node)
    return scatter(inputs[:count], indices, updates, numbers, combine_of(node, {}), known, oob=case.oob)


_JUDGES: dict[str, Judge] = {"XLA": _by_xla, "NumPy": _by_numpy}


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
        reasons = Counter(unknown.reason for unknown in outcome.unknown)
        lines += [f"{outcome.rule}: unknown: {n} because of {reason}" for reason, n in reasons.most_common()]
        for refuted in outcome.refuted:
            lines += [
                f"{outcome.rule}: refuted: {refuted.case.name}",
                f"  {refuted.reason}; confirmed by {refuted.confirmed}",
                *(f"  | {line}" for line in refuted.module.splitlines()),
            ]
    return "\n".join(lines) + "\n"


def _row(outcome: RuleOutcome) -> tuple[str, ...]:
    counts = (outcome.proved, outcome.tried_count, len(outcome.unknown), len(outcome.refuted))
    return (outcome.rule, *map(str, counts), f"{outcome.seconds:.1f}")


def _summary(outcomes: Sequence[RuleOutcome]) -> list[str]:
    proved = [o for o in outcomes if o.proved and not o.refuted]
    without = [o.rule for o in outcomes if not o.tried_count]
    counts = [sum(o.proved for o in outcomes), sum(o.tried_count for o in outcomes)]
    told = (
        f"{len(proved)} of {len(outcomes)} rules have proved shapes and none refuted; {counts[0]} of {counts[1]} shapes"
    )
    return [told, *([f"no shape of the family is accepted by: {', '.join(without)}"] if without else [])]


def render_json(outcomes: Sequence[RuleOutcome]) -> str:
    """The outcomes as JSON."""
    return json.dumps({"rules": [outcome.to_json() for outcome in outcomes]}, indent=2) + "\n"
