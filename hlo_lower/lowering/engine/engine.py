"""The engine: for one op of any kind, candidates in order, build, check, take it back and try the next, replace."""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change, Outcome, merge_changes
from hlo_lower.base.errors import NotLoweredError, RegistryError
from hlo_lower.base.registry import Choice, ConditionError, DoesNotApply, Facts, NoRuleError, Rule, Without
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import refine_shape
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.attributes import keep_attributes
from hlo_lower.lowering.engine.kind import Candidate, Chosen, Context, Decision, Kept, Kind, Refused, Stage, Subject
from hlo_lower.lowering.engine.legality import RETURNS, dtypes_on, refused_of
from hlo_lower.lowering.engine.nested_slices import may_hold_part
from hlo_lower.lowering.types.element_type import (
    WITH_BODIES,
    ComplexTypeKind,
    FloatTypeKind,
    IntegerTypeKind,
    is_refused_by_name,
    refused_types,
    stored_types,
)
from hlo_lower.ops.cleanup import erase, erase_built, erase_uncalled
from hlo_lower.ops.names import CASE, IF, WHILE

MOVING = frozenset({"func.call", WHILE, IF, CASE, *RETURNS})
"""Ops that get other types as they stand, where those are what a type is stored in."""


class Later:
    """Says of ops whether they will be lowered; it tries those of the same name and types once.

    Args:
      context: the module.
      can_lower: whether a rule lowers an op into what the target takes; nothing is left of the trial.
    """

    def __init__(self, context: Context, can_lower: Callable[[Subject], bool]) -> None:
        self._context = context
        self._can_lower = can_lower
        self._kinds = (ComplexTypeKind(), IntegerTypeKind(), FloatTypeKind())
        self._known: dict[tuple[object, ...], bool] = {}

    def lowers(self, node: Node) -> bool:
        """Whether an op that is refused will be lowered, alone or with what it stands in, or stored otherwise."""
        parent = node.parent
        if parent is not None and parent.name in WITH_BODIES:
            return self.lowers(parent)
        target = self._context.target
        refused = refused_types(target, node.name, dtypes_on(node))
        if not refused or is_refused_by_name(target, node):
            return False
        if node.name in MOVING:
            return not refused_types(target, node.name, stored_types(target, dtypes_on(node)))
        inner = tuple(n.name for block in node.blocks for n in block.nodes) if node.has_regions else ()
        types = tuple(str(value.raw.type) for value in (*node.operands, *node.results))
        key = (node.name, types, inner)
        if key not in self._known:
            subjects = filter(None, (kind.read(self._context, node) for kind in self._kinds))
            self._known[key] = any(map(self._can_lower, subjects))
        return self._known[key]


Tell = Callable[[Decision], None]

NOT_BY_TYPES = (Stage.VARIANTS, Stage.LEGALIZED, Stage.TYPES, Stage.RANKS)
"""Stages whose rules build nothing that the stage of element types would lower, or of which only names are checked."""


class Engine:
    """Lowers ops, one after the other.

    Attributes:
      uncalled: functions that may have lost their last call, for `erase_uncalled`.
      builds_parts: whether a rule may have built a slice of which there may be a slice.
    """

    def __init__(self, context: Context, repeated: Collection[Hashable] = ()) -> None:
        """Args: context: the module. repeated: what is the twin of another op, as `Subject.equivalence`."""
        self._context = context
        self._repeated = repeated
        self._recipes: dict[Hashable, Recipe | None] = {}
        self._tried: dict[tuple[Hashable, bool], dict[str, Cause]] = {}
        self.uncalled: set[str] = set()
        self.builds_parts = False
        self.tell_erased: Callable[[Node], None] | None = None

    @cached_property
    def _later(self) -> Later:
        """Made when it is needed: each of the two then holds the other, and so the module until both are collected."""
        return Later(self._context, self.can_lower)

    def choose(self, subject: Subject, without: Without = ()) -> Chosen | Refused:
        """The rule for an op: of the first form that has one, as far as facts say; nothing is built.

        Args:
          subject: the op.
          without: rules that turned out not to do, each with the reason.

        Raises:
          NotLoweredError: two rules fit, neither more specific, or the condition of one raises.
        """
        try:
            for candidate in subject.candidates:
                choice = self._of_candidate(subject, candidate, without)
                if choice is not None:
                    return Chosen(candidate.facts, choice)
            nearest = self._nearest(subject, without)
        except RegistryError as error:
            raise self._ambiguous(subject, error) from None
        except ConditionError as error:
            raise self._broken(
                subject, error.rule, f"{_exception_text(error.error)}, asked whether it fits"
            ) from error.error
        return Refused(self._no_rule(subject, nearest), Code.NO_LOWERING(self._context.target.name), nearest)

    def lower(self, subject: Subject, tell: Tell) -> Decision:
        """Lower an op in place, by the best rule that builds what the target takes.

        Args:
          subject: the op.
          tell: is told what becomes of it, once that is certain and while the op still stands.

        Raises:
          NotLoweredError: as `choose`; or a rule raises, or gives what cannot replace the op.
        """
        if (decision := self._replay(subject, tell)) is not None:
            return decision
        by_types = False
        tried = self._tried_of(subject, by_types=by_types)
        while True:
            decision = self.choose(subject, tuple(tried.items()))
            if isinstance(decision, Refused):
                if not by_types and subject.kind.stage not in NOT_BY_TYPES and any(map(_is_of_types, tried.values())):
                    by_types = True
                    tried = self._tried_of(subject, by_types=by_types)
                    continue
                tell(decision)
                return decision
            rule, node = decision.choice.rule, subject.node
            build = Builder.before(node)
            try:
                values = self._build_values(subject, rule, decision.facts, build, by_types=by_types)
            except DoesNotApply as reason:
                tried[rule.name] = reason.cause
                self._take_back(build, node)
                continue
            if values == _results_of(subject):
                kept = Kept(Code.TAKEN_WHOLE(self._context.target.name))
                tell(kept)
                return kept
            tell(decision)
            self.builds_parts = self.builds_parts or any(map(may_hold_part, build.built))
            values = self._keep_attributes(subject, values, build)
            if subject.equivalence in self._repeated and subject.equivalence not in self._recipes:
                self._recipes[subject.equivalence] = recipe_of(node, decision, build.built, values)
            self._replace(subject, [value.raw for value in values])
            return decision

    def can_lower(self, subject: Subject) -> bool:
        """Whether a rule builds what the target takes for an op; nothing is left of the trial."""
        tried: dict[str, Cause] = {}
        while isinstance(decision := self.choose(subject, tuple(tried.items())), Chosen):
            rule, build = decision.choice.rule, Builder.before(subject.node)
            try:
                self._build_values(subject, rule, decision.facts, build)
                return True
            except DoesNotApply as reason:
                tried[rule.name] = reason.cause
            finally:
                self._take_back(build, subject.node)
        return False

    def _tried_of(self, subject: Subject, *, by_types: bool) -> dict[str, Cause]:
        """The rules that turned out not to do for ops like this one, each with the reason."""
        known: dict[str, Cause] = {}
        return known if subject.equivalence is None else self._tried.setdefault((subject.equivalence, by_types), known)

    def _replay(self, subject: Subject, tell: Tell) -> Decision | None:
        """Lower an op as its twin was lowered; None where it has none, or that cannot be repeated."""
        recipe = self._recipes.get(subject.equivalence)
        values = None if recipe is None else recipe.built_for(subject.node)
        if recipe is None or values is None:
            return None
        tell(recipe.decision)
        self._replace(subject, values)
        return recipe.decision

    # --- candidates ---

    def _of_candidate(self, subject: Subject, candidate: Candidate, without: Without) -> Choice | None:
        """The rule for an op in a form; None where it has none of its own."""
        registry, op = self._context.registry, candidate.op or subject.kind.name
        facts = self._context.op_facts(subject.node, candidate.facts)
        try:
            choice = registry.select(op, facts, without)
        except NoRuleError:
            return None
        if candidate.rule:
            wanted = next(rule for rule in registry.rules(op) if rule.name == candidate.rule)
            is_right = wanted.name not in dict(without) and not wanted.misses(facts)
            return choice.instead(wanted) if is_right else None
        return choice if not candidate.own or candidate.own in choice.rule.constraints else None

    def _nearest(self, subject: Subject, without: Without) -> tuple[tuple[Rule, tuple[Cause, ...]], ...]:
        """What the rules lack that come nearest to an op for which there is none, in its best form."""
        for candidate in [c for c in subject.candidates if not c.rule][:1]:
            facts = self._context.op_facts(subject.node, candidate.facts)
            try:
                self._context.registry.select(candidate.op or subject.kind.name, facts, without)
            except NoRuleError as error:
                return error.nearest
        return ()

    # --- building ---

    def _build_values(
        self, subject: Subject, rule: Rule, facts: Facts, build: Builder, *, by_types: bool = False
    ) -> tuple[Value, ...]:
        """Build the values of an op's results by a rule.

        Args:
          subject, rule, facts: the op, and by what it is lowered.
          build: in front of the op.
          by_types: whether what is refused for its element types counts as taken, where they are lowered later.

        Raises:
          DoesNotApply: it says so, or the target refuses what it built.
          NotLoweredError: it raises, or gives what cannot replace the op.
        """
        kind, context, results = subject.kind, self._context, _results_of(subject)
        try:
            given: object = rule.lowering(subject.given(facts, build))
            values = _in_result_types(results, _values_of(given), build)
        except DoesNotApply:
            raise
        except Exception as error:
            raise self._broken(subject, rule, _exception_text(error)) from error
        told, wanted = (_types_of(values) for values in (values, results))
        if told != wanted:
            raise self._broken(subject, rule, f"gives {told} instead of {wanted}")
        added = [made for made in build.built if made not in build.repeated] if build.repeated else build.built
        refusal = kind.refusal(context.target, context.graph, added)
        if refusal is not None and by_types:
            refusal = refused_of(
                context.target, context.graph, kind.nodes_to_judge(context.target, added), self._later.lowers
            )
        if refusal is not None:
            raise DoesNotApply(refusal.reason)
        return cast(tuple[Value, ...], values)

    def _take_back(self, build: Builder, node: Node) -> None:
        """Erase what was built beside an op, and the functions that it brought."""
        graph = self._context.graph
        brought = {made.body_name for made in build.built} - {"", *graph.functions}
        erase_built(build.built, node)
        if brought:
            graph.forget()
            erase_uncalled(graph, brought)
            graph.forget()

    def _keep_attributes(self, subject: Subject, values: Sequence[Value], build: Builder) -> tuple[Value, ...]:
        kept: list[Value] = []
        for node in subject.replaced_nodes:
            own = values[len(kept) : len(kept) + len(node.results)]
            kept += keep_attributes(node, own, build, subject.kind.owns(node), mesh=subject.mesh)
        return tuple(kept)

    def _replace(self, subject: Subject, values: Sequence[mlir.RawValue]) -> None:
        results = [result for node in subject.replaced_nodes for result in node.raw.results]
        for result, value in zip(results, values, strict=True):
            result.replace_all_uses_with(value)
        if name := subject.node.body_name:
            self.uncalled.add(name)
        for reader in subject.readers:
            if self.tell_erased is not None:
                self.tell_erased(reader)
            reader.raw.erase()
        self.uncalled |= erase(self._context.graph, subject.node, self.tell_erased)

    # --- errors ---

    def _error(self, subject: Subject, what: str, facts: str, next_step: str, *nearest: str) -> NotLoweredError:
        where = self._context.place(subject.node)
        return NotLoweredError(where, f"{subject.label}: {what}", facts, nearest, next_step)

    def _no_rule(self, subject: Subject, nearest: Iterable[tuple[Rule, tuple[Cause, ...]]]) -> NotLoweredError:
        lines = [f"{rule.name} ({rule.place}): {english.join_phrases(reasons)}" for rule, reasons in nearest]
        what = f"no lowering for target {self._context.target.name}"
        what += f": {english.phrase(subject.problem)}" if subject.problem else ""
        return self._error(subject, what, subject.told, subject.next_step, *lines)

    def _ambiguous(self, subject: Subject, error: RegistryError) -> NotLoweredError:
        next_step = "constrain one of the two rules further, or add one that is more specific than both"
        return self._error(subject, f"no one rule for target {self._context.target.name}", str(error), next_step)

    def _broken(self, subject: Subject, rule: Rule, what: str) -> NotLoweredError:
        whom = "to whoever wrote the rule" if rule.origin else "as a mistake in hlo-lower, unless the rule is yours"
        next_step = f"report it {whom}{subject.otherwise and f'; {subject.otherwise}'}"
        return self._error(subject, f"the rule {rule.name} {what}", f"the rule is at {rule.place}", next_step)


def _exception_text(error: Exception) -> str:
    return f"raised {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _is_of_types(why: Cause) -> bool:
    return why.code in (Code.REFUSES_DTYPE, Code.REFUSES_OP_ON)


def _values_of(given: object) -> tuple[object, ...]:
    """What a rule gave, one by one; itself where it is no sequence of anything."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return tuple(cast(Iterable[object], given))
    return (given,)


def _types_of(values: Sequence[object]) -> str:
    """The types of values, in a line; of what is not a value, what it is in Python."""
    told = (str(v.raw.type) if isinstance(v, Value) else f"a Python {type(v).__name__}" for v in values)
    return ", ".join(told) or "nothing"


def _results_of(subject: Subject) -> tuple[Value, ...]:
    return tuple(result for node in subject.replaced_nodes for result in node.results)


def _in_result_types(results: Sequence[Value], values: Sequence[object], build: Builder) -> tuple[object, ...]:
    """The values in the types of an op's results, which may know other sizes than its operands."""
    found = list(values)
    for k, (value, result) in enumerate(zip(values, results, strict=False)):
        if isinstance(value, Value) and value.raw.type != result.raw.type and _is_compatible(value, result):
            found[k] = refine_shape(build, value, result.raw.type)
    return tuple(found)


def _is_compatible(value: Value, result: Value) -> bool:
    """Whether two tensors may be of one shape, of which they know different sizes."""
    if not (value.is_tensor and result.is_tensor) or value.element_type != result.element_type:
        return False
    pairs = zip(value.shape, result.shape, strict=False)
    return len(value.shape) == len(result.shape) and all(a == b or None in (a, b) for a, b in pairs)


# --- what a rule built for one op, built again for its twins: copied, not decided and built anew ---
#
# Why the copy is right. Twins are ops of which their kind reads the same (`Subject.equivalence`): facts, region,
# attributes and types. So they have the same candidates, of which the same ones fail. A rule of this package is given
# the op in canonical form, its facts, and a builder. It takes the op's operands as values: it asks for their types,
# which twins share, and not for what computes them; what matters of that is a fact. So it is a function of what twins
# share, applied to operands that it does not look into, and builds for a twin the same ops on the twin's operands. A
# copy is that, if each value that was taken from outside is an operand; which of the operands are the same value has to
# be the same for the twin, so that a rule that compared two of them saw the same. Where something else was taken or
# named (a value that the region captures, a function), nothing is replayed: the twin's lowering is built as if there
# had been no other. So it is for rules of somebody else, which may look at anything.
#
# Locations are copied, too: each is that of the op or of something in its region, and the twin has one in the same
# place.


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
        built, given = mlir.inline_template(self.template, operands, raw)
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
    return known.issuperset(mlir.taken_by(top)) and not any(Node(op).body_name for op in mlir.operations_within(top))


def _where(location: mlir.RawLocation, own: Sequence[mlir.RawLocation]) -> tuple[int, ...]:
    return tuple(n for n, other in enumerate(own) if other == location)


def _alike(values: list[mlir.RawValue]) -> tuple[int, ...]:
    return tuple(map(values.index, values))


def _is_of_package(rule: Rule) -> bool:
    return str(getattr(rule.lowering, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]


# --- a stage: the ops of several kinds, all of them read, then each lowered, and told what became of them ---


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
    found = list(_find_subjects(context, concerned)) if concerned else []
    if not found:
        return ()
    engine, changes = Engine(context), list[Change | None]()
    places = defaultdict[Node, list[int]](list)
    for place, subject in enumerate(found):
        places[subject.node].append(place)
    # Ops within one that was replaced, or read by it alone, and itself as an op of another kind: what it became may
    # hold others of their kind.
    gone: set[int] = set()

    def note_erased(node: Node) -> None:
        gone.update(places.pop(node, ()))

    engine.tell_erased = note_erased
    with mlir.active(context.graph.context):
        for place, subject in enumerate(found):
            if place in gone:
                continue

            def tell(decision: Decision, subject: Subject = subject) -> None:
                changes.append(subject.kind.tell(context, subject, decision))

            nodes = [subject.node, *_within(subject.node)] if len(found) > 1 else ()
            inner = {other for node in nodes for other in places.get(node, ())} - {place}
            if isinstance(engine.lower(subject, tell), Chosen):
                gone |= inner
        context.graph.forget()
        erase_uncalled(context.graph, engine.uncalled)
    context.graph.forget()
    if gone:
        changes += [change for change in run_stage(context.afresh(), kinds) if change.outcome is Outcome.LOWERED]
    return merge_changes(change for change in changes if change is not None)


def _within(node: Node) -> Iterator[Node]:
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
    return merge_changes((*lowered, *changes))


def _find_subjects(context: Context, kinds: Sequence[Kind]) -> Iterator[Subject]:
    """Read the ops of each kind, in program order, before any of them is changed."""
    nodes: dict[str, list[Node]] = {}  # by name, or by how the name begins
    exact = {op for kind in kinds for op in kind.ops or (kind.op,)}
    beginnings = tuple(op for op in exact if op.endswith("."))

    for raw in mlir.operations_within(context.graph.module.operation):
        name = raw.name
        if name in exact:
            nodes.setdefault(name, []).append(Node(raw))
        if name.startswith(beginnings):
            begun = next(beginning for beginning in beginnings if name.startswith(beginning))
            nodes.setdefault(begun, []).append(Node(raw))
    for kind in kinds:
        wanted = kind.ops or {kind.op}
        for op in (op for op in nodes if op in wanted):
            yield from filter(None, (kind.read(context, node) for node in nodes[op]))
