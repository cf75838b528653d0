"""The cases that a rule is tried on: what of the family its constraints admit.

Which rule takes a module is the converter's to say; here only what cannot be is left out, so that little is tried in
vain.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import product
from math import prod
from typing import Any, Literal

from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.facts import Dialect, Drops, InBounds, Offsets, Order, Strategy, Unique
from hlo_lower.lowering.scatter.short_operand import SHORT
from hlo_lower.ops.subset import Subset
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.prove.family_forms import BODIES, ProofBody, form_of, forms
from hlo_lower.testing.prove.producers import KNOWN, NOTHING, PRODUCERS, Indices
from hlo_lower.testing.prove.proof_case import ProofCase, scatter_case

SETTINGS: tuple[tuple[str, Literal["xla", "spec"]], ...] = (
    ("i8", "xla"),
    ("i8", "spec"),
    ("i32", "xla"),
    ("i32", "spec"),
)
"""Index types and policies."""

ONLY_ELEMENTS = frozenset({Drops.ELEMENTS})
COMPARING = frozenset({Strategy.MASK, Strategy.INVERSION, Strategy.REDUCTION, Strategy.DOT})
"""Forms that compare each row with each write: all at once, or in parts."""

ONLY_CONSTANT = frozenset({Offsets.CONSTANT})

SMALLEST = form_of((2,), (None,), (0,), (2,))
"""The form in which a rule is proved with every region that it takes."""


def scatter_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for scatters may take.

    In rank 1 each form is tried with both index types under both policies, in rank 2 with each of them once. The
    regions that a rule takes come in turn, and all of them in the smallest form.
    """
    bodies = [body for body in BODIES if _takes_body(rule, body)]
    is_uniform = Strategy.MASK in rule.constraints.get("strategy", ())
    turn = 0
    for form, (index, oob) in product(forms(), SETTINGS):
        if _takes_policy(rule, oob) and not (len(form.operand) > 1 and _is_skipped(form, index, oob)):
            for indices in _indices(rule, form, index):
                turn += 1
                for body in bodies if form == SMALLEST else bodies[turn % len(bodies) :][:1]:
                    options = _options(rule, form, is_in_parts=turn % 4 == 0)
                    yield scatter_case(indices, body, index, oob, options, is_uniform=is_uniform)


def _is_skipped(form: CaseForm, index: str, oob: str) -> bool:
    """Every second setting of a form of more than one dim: each index type and each policy is there once."""
    is_odd = (sum(form.operand) + len(form.updates)) % 2
    return ((index == "i8") == (oob == "xla")) != is_odd


def _options(rule: Rule, form: CaseForm, *, is_in_parts: bool) -> dict[str, Any]:
    """Keywords of `hlo_lower.lower`: the rule preferred; now and then with small masks, if it takes them in parts."""
    found: dict[str, Any] = {"prefer": (rule.short_name,)}
    if COMPARING & rule.constraints.get("strategy", frozenset()) and is_in_parts and prod(form.positions) > 1:
        found["prefer"] = (rule.short_name, "mask_elements=2")
    if (
        ONLY_CONSTANT.issuperset(rule.constraints.get("offsets", Offsets))
        and Strategy.MANY in rule.constraints["strategy"]
    ):
        found["prefer"] = ("few_windows=1",)
    if Dialect.STABLEHLO not in rule.constraints.get("dialect", frozenset(Dialect)):
        found["target"] = "linalg"
    if rule.when is SHORT:
        found["prefer"] = (rule.short_name, "short_operand=4096")
    if Strategy.OWN_SCATTER in rule.constraints.get("strategy", ()):
        found["target"] = "iree"
    return found


def _takes(rule: Rule, fact: str, values: Iterable[Enum]) -> bool:
    accepted = rule.constraints.get(fact)
    return accepted is None or any(value in accepted for value in values)


def _takes_body(rule: Rule, body: ProofBody) -> bool:
    if not _takes(rule, "combiner", [body.combiner]):
        return False
    is_product = Strategy.DOT in rule.constraints.get("strategy", ())
    return (body.is_free or _takes(rule, "order", [Order.KEPT])) and body.is_wide == is_product


def _takes_policy(rule: Rule, oob: str) -> bool:
    """Whether a rule can be for a policy: only under "spec" are there single elements to drop."""
    return oob == "spec" or not ONLY_ELEMENTS.issuperset(rule.constraints.get("drops", Drops))


def _indices(rule: Rule, form: CaseForm, index: str) -> Iterator[Indices]:
    """The indices of a form that may have what a rule asks for."""
    for producer in PRODUCERS:
        for indices in producer(form, index):
            facts: dict[str, Iterable[Enum]] = {
                "subset": _subsets(indices, form),
                "parts": [indices.parts],
                "offsets": indices.offsets,
                "in_bounds": [indices.in_bounds] if indices.in_bounds else InBounds,
                "unique": [indices.unique] if indices.unique else Unique,
            }
            if all(_takes(rule, fact, values) for fact, values in facts.items()) and (
                indices.is_example or _asks(rule, indices)
            ):
                yield indices


def _asks(rule: Rule, indices: Indices) -> bool:
    """Whether a rule is for what is particular of indices that are no example: constants, out of bounds, unique."""
    if indices.offsets == KNOWN:
        return Offsets.CONSTANT in rule.constraints.get("offsets", ())
    return "unique" in rule.constraints or Subset.EMPTY in rule.constraints["subset"]


def _subsets(indices: Indices, form: CaseForm) -> frozenset[Subset]:
    """What a scatter at indices can write: nothing, where there is nothing to write or to write to."""
    if not prod(form.positions) or not prod(form.operand) or not prod(form.updates):
        return NOTHING
    return indices.subsets
