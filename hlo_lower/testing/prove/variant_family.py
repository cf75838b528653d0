"""The family of a declared composite: the modules that its declaration gives as examples, for a target of each rule.

    rules.declare("acme.double", by=int, examples=modules)      hlo-lower prove double_to_add

A custom call in them is what its declaration says that it computes (`hlo_lower.lowering.plain.stated`).
"""

from collections.abc import Iterator

from hlo_lower.base.domains import Declared, texts_of
from hlo_lower.base.errors import InputError
from hlo_lower.base.registry import CompositeLoweringRegistry, Rule
from hlo_lower.ir.export.user_code import one_line
from hlo_lower.lowering.plain.stated import Stated
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.prove.proof_case import ProofCase


def variant_cases(registry: CompositeLoweringRegistry, rule: Rule) -> Iterator[ProofCase]:
    """The examples of a rule's composite, for a target that the rule is for; those of other variants are not taken.

    Raises:
      InputError: what makes the examples raises, or gives something else than the texts of modules.
    """
    declared = registry.declarations[rule.op]
    target = Target(_target_name(declared, rule))
    for number, text in enumerate(_texts(declared), start=1):
        yield ProofCase(text, f"example {number}", "xla", {"target": target, "keep_unsupported": True})


def stated_for(registry: CompositeLoweringRegistry, case: ProofCase, text: str) -> str:
    """A version of a case with what is stated of its custom calls in their place."""
    target: Target | None = case.options.get("target")
    return Stated(registry, target if isinstance(target, Target) else Target("stablehlo")).of(text)


def _target_name(declared: Declared, rule: Rule) -> str:
    values = rule.constraints.get("target", ())
    if not values and "target" in declared.domains:
        values = declared.domains["target"].values
    return min(texts_of(values), default="stablehlo")


def _texts(declared: Declared) -> Iterator[str]:
    try:
        texts = list(declared.examples() if callable(declared.examples) else declared.examples or ())
    except Exception as error:
        told = f"the examples of {declared.op} raised {one_line(error)}"
        raise InputError("prove", told, facts=f"declared at {declared.place}") from error
    if others := [text for text in texts if not isinstance(text, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
        told = f"an example of {declared.op} is of type {type(others[0]).__name__}, not the text of a module"
        raise InputError("prove", told, facts=f"declared at {declared.place}")
    yield from texts
