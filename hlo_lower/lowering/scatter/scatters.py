"""The scatters of a module: all of them read, then lowered, inner ones first, each told once and in program order."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial

from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.domains import text_of
from hlo_lower.base.errors import InputError, NotLoweredError
from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.facts import KINDS, ScatterFacts
from hlo_lower.facts.scatter.record import Rejection, ScatterRecord
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir import mlir
from hlo_lower.ir.regions import Nested, inner_first
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.engine import Engine
from hlo_lower.lowering.engine.kind import Chosen, Context, Decision, Kept, Refused, Stage
from hlo_lower.lowering.kinds import kinds_of
from hlo_lower.lowering.scatter.kind import ScatterSubject
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import Subset

ON_REQUEST = Kept(Code.KEPT_ON_REQUEST())


@dataclass(frozen=True)
class LoweredScatters:
    """What became of the scatters of a module.

    Attributes:
      told: gives the record of each, in program order, once somebody asks.
      left: how many of them still stand.
      unsupported: how many of them have no lowering.
      kept: how many of them the target takes as they are.
      builds_parts: whether a rule may have built a slice of which there may be a slice.
    """

    told: tuple[Callable[[], ScatterRecord], ...]
    left: int
    unsupported: int
    kept: int
    builds_parts: bool

    @cached_property
    def records(self) -> tuple[ScatterRecord, ...]:
        """One record per scatter, in program order."""
        return tuple(record() for record in self.told)


def read_scatters(context: Context) -> list[ScatterSubject]:
    """The scatters of a module, in program order; nothing is changed, so a fact about one holds for all of them."""
    kinds = kinds_of(Stage.SCATTERS)
    found = (next(filter(None, (kind.read(context, node) for kind in kinds))) for node in context.graph.scatters)
    return [subject for subject in found if isinstance(subject, ScatterSubject)]


def classify_scatters(context: Context) -> tuple[ScatterRecord, ...]:
    """The record of each scatter with the rule that fits its facts; nothing is built or changed."""
    assert context.preference  # that what is preferred exists, scatters or none
    engine, records = Engine(context), list[ScatterRecord]()
    for subject in read_scatters(context):
        decision = subject.decided or engine.choose(subject)
        records.append(_record(subject.describe, _or_last_resort(subject, decision)))
    return tuple(records)


def lower_scatters(context: Context, *, is_trial: bool = False) -> LoweredScatters:
    """Lower the scatters of a module in place, as far as `only` and `skip` say.

    Args:
      context: the module, and how it is lowered.
      is_trial: whether it is only asked which rule would lower each: records say so.

    Raises:
      InputError: a pattern matches no scatter, or what is preferred does not exist.
      NotLoweredError: a scatter has no lowering, and is not to be kept then; a rule is broken.
    """
    assert context.preference
    subjects = read_scatters(context)
    asked = {subject.number for subject in asked_for(context, subjects)}
    run = _Run(context, subjects, asked, is_trial)
    with mlir.active(context.graph.context):
        for subject in _in_order(context, subjects):
            run.lower(subject)
    run.raise_first(run.decisions[subject.number] for subject in subjects)
    erase_uncalled(context.graph, run.engine.uncalled)
    context.graph.forget()
    decisions = [run.decisions[subject.number] for subject in subjects if subject.number in asked]
    return LoweredScatters(
        tuple(run.told[subject.number] for subject in subjects),
        left=sum(not isinstance(decision, Chosen) for decision in run.decisions.values()),
        unsupported=sum(isinstance(decision, Refused) for decision in decisions),
        kept=sum(isinstance(decision, Kept) for decision in decisions),
        builds_parts=run.engine.builds_parts,
    )


@dataclass
class _Run:
    """Scatters that are lowered one after the other, and what became of each, by number."""

    context: Context
    subjects: Sequence[ScatterSubject]
    asked: set[int]
    is_trial: bool
    decisions: dict[int, Decision] = field(default_factory=dict[int, Decision])
    told: dict[int, Callable[[], ScatterRecord]] = field(default_factory=dict[int, Callable[[], ScatterRecord]])

    def __post_init__(self) -> None:
        counts = Counter(subject.equivalence for subject in self.subjects if subject.equivalence is not None)
        self.engine = Engine(self.context, {equivalence for equivalence, count in counts.items() if count > 1})
        self._left: list[int] = []
        self._nested = Nested(self.context.graph)

    def raise_first(self, decisions: Iterable[Decision | None]) -> None:
        """Raise the error of the first scatter without a lowering, unless such scatters are kept."""
        refused = next((decision for decision in decisions if isinstance(decision, Refused)), None)
        if refused is not None and not self.context.options.keep_unsupported:
            raise refused.error

    def lower(self, subject: ScatterSubject) -> None:
        """Lower one scatter, if it is asked for, and tell what became of it."""

        def tell(decision: Decision) -> None:
            decision = self.decisions[subject.number] = _or_last_resort(subject, decision)
            self.told[subject.number] = partial(_record, subject.describe, decision, is_lowered=not self.is_trial)
            if not isinstance(decision, Chosen):
                self._left.append(subject.number)

        if subject.number not in self.asked:
            tell(ON_REQUEST)
        elif (certain := subject.decided or self._holds(subject)) is not None:
            tell(certain)
        else:
            self.engine.lower(subject, tell)

    def _holds(self, subject: ScatterSubject) -> Refused | None:
        """A scatter cannot be lowered for a target without any where one that is kept stands in its computation."""
        target = self.context.target
        if not self._left or target.refuses_op(SCATTER) is None:
            return None
        numbers = [self.context.numbers.get(node) for node in self._nested.within(subject.node)]
        held = next((number for number in reversed(numbers) if number in self._left), None)
        return None if held is None else _refusal_of_outer(self.context, subject, self.subjects[held - 1])


def _refusal_of_outer(context: Context, subject: ScatterSubject, inner: ScatterSubject) -> Refused:
    why = Code.HOLDS_KEPT(inner.number, str(context.graph.location(inner.node)))
    error = NotLoweredError(
        context.place(subject.node),
        f"{SCATTER}: {english.phrase(why)}",
        facts="a lowering copies the update computation",
        next_step=f"lower #{inner.number}, too, or leave both: --skip '#{subject.number}' --skip '#{inner.number}'",
    )
    return Refused(error, why)


def _in_order(context: Context, subjects: Sequence[ScatterSubject]) -> list[ScatterSubject]:
    """Scatters in the order in which they are lowered: inner ones first.

    A lowering copies the update computation, so a scatter that stands in it or in a function that it calls has to be
    lowered before. In one function what stands in the region of a scatter comes behind it.
    """
    if not any(map(_is_in_scatter, context.graph.callers)):
        return list(reversed(subjects))
    nested = Nested(context.graph)
    by_node = {subject.node: subject for subject in subjects}
    within = {node: nested.within(node)[::-1] for node in by_node}
    return [by_node[node] for node in inner_first(list(by_node), lambda node: within[node])]


def _is_in_scatter(node: Node) -> bool:
    while (around := node.parent) is not None and around.name != SCATTER:
        node = around
    return around is not None


# --- what is told ---


def _or_last_resort(subject: ScatterSubject, decision: Decision) -> Decision:
    """Kept instead of refused, where the target takes a scatter for which there is no rule."""
    return (subject.last_resort() or decision) if isinstance(decision, Refused) else decision


def _record(describe: Callable[[], ScatterRecord], decision: Decision, *, is_lowered: bool = False) -> ScatterRecord:
    record = describe()
    match decision:
        case Chosen(facts=facts, choice=choice):
            strategy = facts.strategy.value if isinstance(facts, ScatterFacts) and facts.strategies else None
            why = Code.CHOSEN(text_of(facts["drops"]), strategy, choice.rule.place if choice.rule.origin else None)
            why_not = _rejections(choice.rejected)
            return replace(record, rule=choice.rule.short_name, form=choice.rule.form, why=why, why_not=why_not)
        case Kept(why=why):
            return replace(record, why=why)
        case Refused(why=why, nearest=nearest):
            why = Code.KEPT_UNSUPPORTED(why) if is_lowered else why
            return replace(record, why=why, why_not=_rejections(nearest))


def _rejections(rejected: Iterable[tuple[Rule, tuple[Cause, ...]]]) -> tuple[Rejection, ...]:
    return tuple(Rejection(rule.name, reasons) for rule, reasons in rejected)


# --- only and skip ---


CLASSES: Mapping[str, tuple[str, ...]] = {
    "kind": KINDS,
    "subset": tuple(subset.value for subset in Subset),
    "combiner": tuple(combiner.value for combiner in Combiner),
}
"""What a scatter is, by which it is selected ("kind=insert_slice"): a column of its record, and its values."""


def asked_for(context: Context, subjects: Sequence[ScatterSubject]) -> list[ScatterSubject]:
    """The scatters that `only` and `skip` leave. That there is none of a class is no mistake.

    Raises:
      InputError: a pattern matches no place, or there is no such class.
    """
    options, graph = context.options, context.graph
    if not (options.only or options.skip):
        return list(subjects)
    names = {subject.number: _names(context, subject) for subject in subjects}
    found = list(subjects)
    records: dict[int, ScatterRecord] = {}
    for patterns, keep in ((options.only, True), (options.skip, False)):
        if not patterns:
            continue
        matched: set[int] = set()
        for pattern in patterns:
            if "=" in pattern:
                records = records or {subject.number: subject.describe() for subject in subjects}
                matched |= _of_class(pattern, records)
                continue
            of_one = {n for n, own in names.items() if any(fnmatchcase(name, pattern) for name in own)}
            if not of_one:
                locations = [graph.location(subject.node) for subject in subjects]
                places = ", ".join(sorted({str(location) for location in locations})[:8]) or "none"
                scopes = ", ".join(sorted({location.scope for location in locations if location.scope})[:4])
                raise InputError(
                    graph.name,
                    f"no scatter matches {pattern!r}",
                    facts=f"scatters are at {places}" + (f"; scopes are {scopes}" if scopes else ""),
                    next_step=f"hlo-lower report --all {graph.name}",
                )
            matched |= of_one
        found = [subject for subject in found if (subject.number in matched) is keep]
    return found


def _of_class(pattern: str, records: Mapping[int, ScatterRecord]) -> set[int]:
    """The numbers of the scatters of a class.

    Raises:
      InputError: there is no such class.
    """
    column, _, wanted = pattern.partition("=")
    if not any(fnmatchcase(value, wanted) for value in CLASSES.get(column, ())):
        values = "; ".join(f"{name} is {', '.join(values)}" for name, values in CLASSES.items())
        raise InputError(
            "--only, --skip", f"there is no class {pattern!r}", facts=values, next_step="--only kind=insert_slice"
        )
    return {number for number, record in records.items() if _is_of(getattr(record, column), wanted)}


def _is_of(told: str, wanted: str) -> bool:
    """Whether a column has a value; of a scatter of several operands the combiners are joined by commas."""
    return any(fnmatchcase(value, wanted) for value in (told, *told.split(",")))


def _names(context: Context, subject: ScatterSubject) -> tuple[str, ...]:
    location, function = context.graph.location(subject.node), context.graph.function_of(subject.node)
    place = f"{location.file}:{location.line}"
    return (str(location), f"{location}:{location.column}", place, location.scope, function.name, f"#{subject.number}")
