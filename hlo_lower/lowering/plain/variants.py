"""Composites, and custom calls, whose parameters are declared: each variant is lowered by the rule for it.

    rules.declare("my.expand_clone", mode=Mode)

    %r = stablehlo.composite "my.expand_clone" %x {composite_attributes = {mode = "repeat"}, decomposition = @f}
    %r = stablehlo.custom_call @my.expand_clone(%x) {backend_config = {mode = "repeat"}}
    %r = stablehlo.custom_call @my.expand_clone(%x) {backend_config = "{\\"mode\\": \\"repeat\\"}"}
    %r = stablehlo.custom_call @my.expand_clone(%x) {backend_config = "mode=repeat"}

A name and attributes are claims (trap 52): that a rule is right is for verification to say, which holds what it built
against the decomposition. A custom call has none, but what its declaration states (`stated`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, cast

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change
from hlo_lower.base.domains import Declared, UnfitError, text_of
from hlo_lower.base.registry import describe_rules
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.attributes import SHARDINGS
from hlo_lower.lowering.engine.kind import Candidate, Chosen, Context, Decision, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import Refusal
from hlo_lower.lowering.engine.op_facts import every_fact
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.plain.chlo import CHLO
from hlo_lower.lowering.plain.composite import OWN, LegalizedKind, composite_facts
from hlo_lower.ops.names import COMPOSITE, CUSTOM_CALL
from hlo_lower.ops.targets.target import Target

CONFIGS = ("backend_config", "mhlo.backend_config")
"""The attributes of a custom call that hold its parameters."""

VERSION = "version"
"""A parameter that stands on a composite itself; where it is not declared, only version 0 is known."""


@dataclass(frozen=True)
class VariantFacts:
    """The facts of one composite whose parameters are declared: `facts["mode"]`.

    Attributes:
      full_name: its name in the module ("my.expand_clone").
      values: the value of each parameter as it was declared, and dtype, layout and target.
      attributes: its parameters as the module has them: truth values, numbers, texts, tuples of these.
    """

    full_name: str
    values: Mapping[str, Any] = field(hash=False)
    attributes: Mapping[str, object] = field(hash=False)

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter, or of a fact of every op."""
        return self.values[name]


class VariantKind(LegalizedKind):
    """Composites and custom calls of a name that is declared. Their rules stand under that name."""

    name, op = "variant", COMPOSITE
    ops = frozenset({COMPOSITE, CUSTOM_CALL})
    stage = Stage.VARIANTS
    domains = MappingProxyType[str, Any]({})
    families = ()

    def __init__(self, later: frozenset[str], *, must: bool = False) -> None:
        """Say what else is lowered.

        Args:
          later: ops that the stages which come next lower by their names, where the target refuses them.
          must: whether one without a rule is an error. It is none at first: what a rule builds in the place of a
            composite calls its decomposition no more, and whatever stands in there is gone then.
        """
        self._later, self._must = later, must

    def concerns(self, options: Options) -> bool:
        return True

    def owns(self, node: Node) -> frozenset[str]:
        return OWN if node.name == COMPOSITE else frozenset(mlir.attributes_of(node.raw)) - SHARDINGS

    def read(self, context: Context, node: Node) -> Subject | None:
        """None where nothing is declared of its name, or not for this target, or the target takes it whole."""
        is_composite, target = node.name == COMPOSITE, context.target
        name = mlir.symbol_name(node.raw.attributes["name"]) if is_composite else mlir.call_target(node.raw)
        declared = context.registry.declarations.get(name)
        if declared is None or not declared.is_for(target.name) or name in target.composites:
            return None
        own, problem, candidates = every_fact(node, target.name), None, list[Candidate]()
        told = dict(own)
        try:
            attributes = _of_composite(node, declared) if is_composite else of_custom_call(node, declared)
            told = {**attributes, **own}
            facts = VariantFacts(name, declared.read(attributes, own), attributes)
            told = facts.values
            candidates.append(Candidate(facts, op=name))
        except UnfitError as error:
            problem = error.cause
        if declared.is_called and is_composite:
            candidates.append(Candidate(composite_facts(context.graph, node, whole=()), op=COMPOSITE))
        label = f'{COMPOSITE} "{name}"' if is_composite else f"{CUSTOM_CALL} @{name}"
        known = describe_rules(context.registry.rules(name)) or "none"
        missing = "declare what it says" if problem else "register a rule for it"
        call = f', declare {name} with otherwise="call"{"" if is_composite else " and a decomposition"}, '
        return replace(
            self.subject(context, node, label=label),
            candidates=candidates,
            told=f"{', '.join(f'{key}={text_of(value)}' for key, value in told.items())}; registered: {known}",
            next_step=f"{missing}{call}or write --keep-unsupported, which leaves it",
            problem=problem,
        )

    def tell(self, context: Context, subject: Subject, decision: Decision) -> Change | None:
        """What became of it.

        Raises:
          NotLoweredError: it has no rule, and is not to be kept then.
        """
        if self._must and isinstance(decision, Refused) and not context.options.keep_unsupported:
            raise decision.error
        return super().tell(context, subject, decision)

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """By names, as whatever is built is looked at by the stages that come next: what they lower counts as taken."""
        own = [node for node in built if not (target.legalize and node.name.startswith(CHLO))]
        return super().refusal(target, graph, [node for node in own if node.name not in self._later])

    def became(self, chosen: Chosen) -> Cause:
        return Code.BECAME(chosen.choice.rule.form or "what its rule builds", chosen.choice.rule.name, None)

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        return subject.problem or super().why_left(context, subject, refused)


# --- what an op says of its parameters ---


def _of_composite(node: Node, declared: Declared) -> dict[str, object]:
    """The attributes of a composite; its version among them where that is declared.

    Raises:
      UnfitError: it is of a version that nobody declared.
    """
    raw = node.attribute("composite_attributes")
    found = {} if raw is None else mlir.plain_entries(raw)
    version = node.attribute(VERSION)
    number = 0 if version is None else mlir.integer_of(version)
    if VERSION in declared.parameters:
        return {VERSION: number, **found}
    if number:
        raise UnfitError(Code.OTHER_VERSION(number))
    return found


def of_custom_call(node: Node, declared: Declared) -> dict[str, object]:
    """The entries of a custom call's `backend_config`: a dictionary, a JSON object, or a text.

    Raises:
      UnfitError: it is none of these, or the call has an effect.
    """
    if mlir.is_true(node.raw, "has_side_effect"):
        raise UnfitError(Code.NAME_IN_DOUBT("has_side_effect"))
    found: dict[str, object] = {}
    for key in CONFIGS:
        raw = node.attribute(key)
        if raw is None:
            continue
        value = mlir.plain_value(raw)
        if isinstance(value, str) and str(raw).startswith("{"):
            found |= mlir.plain_entries(raw)
        else:
            found |= _of_text(str(value), declared)
    return found


def _of_text(text: str, declared: Declared) -> dict[str, object]:
    """The parameters in a text: a JSON object, "mode=repeat, copies=2", or the value of the only parameter.

    Raises:
      UnfitError: it is none of these.
    """
    try:
        read: object = json.loads(text) if text.strip() else {}
    except ValueError:
        read = text.strip()
    if isinstance(read, dict):
        return {str(key): _hashable(value) for key, value in cast(dict[object, object], read).items()}
    pairs = [part.partition("=") for part in re.split(r"[,;\s]+", text.strip()) if part]
    if all(name and equals for name, equals, _ in pairs):
        return {name: value for name, _, value in pairs}
    if len(declared.parameters) == 1:
        return {declared.parameters[0]: _hashable(read)}
    raise UnfitError(Code.NEEDS(f"a backend_config that is a JSON object, or name=value pairs, not {text!r}"))


def _hashable(value: object) -> object:
    """What JSON holds, with tuples for lists and texts for objects."""
    if isinstance(value, list):
        return tuple(map(_hashable, cast(list[object], value)))
    return json.dumps(value) if isinstance(value, dict) else value
