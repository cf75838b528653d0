"""A pass of the pipeline, which targets want it, and a module on its way through the passes."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from typing import TypeAlias

import jax.export

from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.engine.engine import run_stage, run_to_the_end
from hlo_lower.lowering.engine.kind import Context, Stage
from hlo_lower.lowering.engine.nested_slices import NestedSlices
from hlo_lower.lowering.integers64.demotion import Demotion
from hlo_lower.lowering.kinds import kinds_of
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.assumed import Assumption
from hlo_lower.lowering.scatter.scatters import LoweredScatters
from hlo_lower.ops.quirks import QUIRKS
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite

Op: TypeAlias = tuple[str, Hashable, Hashable]
"""An op as it is counted: its name, types and attributes."""


class MayChange(Enum):
    """What a pass may change of a module; each includes what stands before it."""

    NOTHING = "nothing"
    OPS = "ops"
    SIGNATURE = "arguments and results"


NOTHING, OPS, SIGNATURE = MayChange


@dataclass(frozen=True)
class Wanted:
    """Whether options and their target want a pass.

    Attributes:
      holds: takes the options.
      why_not: says why they do not; `{target}` stands for the target's name.
    """

    holds: Callable[[Options], bool]
    why_not: str


@dataclass(frozen=True)
class Where:
    """Whether a pass that is wanted runs, by what earlier ones did.

    Attributes:
      holds: takes the run.
      text: says where it holds ("where complex met something").
      names: the passes that it looks at.
    """

    holds: Callable[["Run"], bool]
    text: str = ""
    names: tuple[str, ...] = ()


ALWAYS = Wanted(lambda options: True, "")
ANYWHERE = Where(lambda run: True)
KEPT = Where(lambda run: not run.is_trial, "where the module is converted")


def refuses(quirk: Quirk) -> Wanted:
    """Wanted by targets that refuse a form of ops."""
    told = f"{{target}} does not reject {quirk.word!r}"
    return Wanted(lambda options: quirk.word in options.target.refused_forms, told)


def has_met(*names: str) -> Where:
    """Where one of these passes lowered or left an op."""
    return Where(lambda run: any(map(run.changes.get, names)), f"where {' or '.join(names)} met ops", names)


def has_left(name: str) -> Where:
    """Where this pass left an op."""

    def holds(run: "Run") -> bool:
        return any(change.outcome is Outcome.LEFT for change in run.changes.get(name, ()))

    return Where(holds, f"where {name} left ops", (name,))


@dataclass(frozen=True)
class Pass:
    """A pass.

    Attributes:
      name: of its own.
      sentence: what it does, after its name ("computes 64-bit integers in 32 bits").
      run: does it, in place, and gives what became of ops, if that is told.
      wanted: by which options and targets.
      where: whether it runs, by what earlier passes did.
      after: passes that have to come before it.
      may_change: what of a module it may change.
    """

    name: str
    sentence: str
    run: Callable[["Run"], Iterable[Change] | None]
    wanted: Wanted = ALWAYS
    where: Where = ANYWHERE
    after: tuple[str, ...] = ()
    may_change: MayChange = OPS

    def why_not(self, options: Options) -> str:
        """Why options and their target do not want it; "" where they do."""
        return "" if self.wanted.holds(options) else self.wanted.why_not.format(target=options.target.name)


def over(change: Callable[[Graph], object]) -> Callable[["Run"], None]:
    """What a pass does that changes a graph in place, and tells nothing."""

    def run_over(run: "Run") -> None:
        change(run.graph)

    return run_over


def kinds(
    name: str,
    stage: Stage,
    sentence: str,
    wanted: Wanted | None = None,
    *,
    only: str = "",
    repeat: int = 1,
    again: bool = False,
    carried: bool = False,
    instead_of: str = "",
    where: Where = ANYWHERE,
    after: tuple[str, ...] = (),
) -> Pass:
    """A pass that lowers the ops of a stage's kinds.

    Args:
      name, sentence, where, after: as of `Pass`.
      stage: whose kinds are lowered.
      only: the name of the one kind that is.
      repeat: how often at most; what was built may hold such ops, too.
      again: whether these kinds were lowered before, which told what is left: only what is lowered is told.
      carried: whether ops have been computed on other element types, where theirs are refused and that does.
      instead_of: a pass which left ops that this one may lower: what it left is no longer told.
      wanted: by default by targets that one of the kinds concerns.
    """
    own = [kind for kind in kinds_of(stage) if only in ("", kind.name)]
    concerned = Wanted(lambda options: any(kind.concerns(options) for kind in own), "{target} accepts all such ops")

    def lower_kinds(run: "Run") -> tuple[Change, ...]:
        context = run.context.afresh(is_carried=True) if carried else run.context
        changes = run_stage(context, own) if repeat == 1 else run_to_the_end(context, own, repeat)
        if instead_of:
            run.changes[instead_of] = _lowered_changes(run.changes[instead_of])
        return _lowered_changes(changes) if again else changes

    names = (*after, instead_of) if instead_of else after
    return Pass(name, sentence, lower_kinds, wanted or concerned, where, names)


def cures(place: Place) -> tuple[Pass, ...]:
    """The passes of quirks that run at a place, in the order of the list."""
    found = ((quirk, cure) for quirk in QUIRKS for cure in quirk.cures if isinstance(cure, Rewrite))
    return tuple(_cure(quirk, cure) for quirk, cure in found if cure.place is place)


def _cure(quirk: Quirk, cure: Rewrite) -> Pass:
    def rewrite(run: "Run") -> None:
        if cure.change(run.graph) and (retell := cure.retell):
            run.changes = {name: tuple(map(retell, changes)) for name, changes in run.changes.items()}

    return Pass(cure.name, cure.sentence, rewrite, refuses(quirk))


def _lowered_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.outcome is Outcome.LOWERED)


class PipelineError(Exception):
    """Passes stand in an order that contradicts what one of them says, or two have one name."""


def in_order(*passes: Pass) -> tuple[Pass, ...]:
    """Passes in the order in which they run.

    Raises:
      PipelineError: two have one name, or one that has to come before another does not.
    """
    places: dict[str, int] = {}
    for place, one in enumerate(passes, start=1):
        if one.name in places:
            raise PipelineError(f"pass {place} has the name of pass {places[one.name]}: {one.name!r}")
        for name in (*one.after, *one.where.names):
            if name not in places:
                later = next((k for k, other in enumerate(passes, start=1) if other.name == name), None)
                told = "of which there is none" if later is None else f"which is pass {later}"
                raise PipelineError(f"pass {place}, {one.name!r}, has to come after {name!r}, {told}")
        places[one.name] = place
    return passes


@dataclass(frozen=True)
class Done:
    """What a pass did.

    Attributes:
      seconds: how long it took.
      gone, built: ops that are no longer there, and that are new, by name; an op that has other types or attributes
        counts as both. Where they are counted.
    """

    seconds: float
    gone: Mapping[str, int]
    built: Mapping[str, int]


@dataclass
class Run:
    """A module on its way through the passes.

    Attributes:
      passes: of the pipeline.
      graph: the module.
      options: how it is lowered.
      registry: the rules.
      is_trial: whether what is lowered is thrown away, and records alone count.
      is_counted: whether ops are counted before and after each pass, which takes longer than most passes.
      changes: what became of ops, by the pass that told it.
      done: what each pass did that ran.
      scatters: what became of scatters.
      demotion: what making 64-bit integers narrower rests on.
      floats: what floats of another precision rest on.
      storage: what values are stored in whose element type the target takes nowhere.
      given: what it was exported with before values were stored so.
      assumed: which scatters are assumed to write inside.
      slices: the slices of slices that it had before.
    """

    passes: Sequence[Pass]
    graph: Graph
    options: Options
    registry: CompositeLoweringRegistry
    is_trial: bool = False
    is_counted: bool = False
    changes: dict[str, tuple[Change, ...]] = field(default_factory=dict[str, tuple[Change, ...]])
    done: dict[str, Done] = field(default_factory=dict[str, Done])
    scatters: LoweredScatters = field(init=False)
    demotion: Demotion | None = None
    floats: Demotion | None = None
    storage: Demotion | None = None
    given: jax.export.Exported | None = None
    assumed: Assumption | None = None
    slices: NestedSlices | None = None

    def __post_init__(self) -> None:
        self._next, self._version = 0, self.graph.version
        self._context = Context(self.graph, self.options, self.registry)

    @property
    def context(self) -> Context:
        """What ops are read with; once the module has changed, what was known of it is dropped."""
        if self._version != self.graph.version:
            self._version, self._context = self.graph.version, self._context.afresh()
        return self._context

    @property
    def all_changes(self) -> tuple[Change, ...]:
        """What became of ops besides scatters, in order."""
        return tuple(change for changes in self.changes.values() for change in changes)

    @property
    def variants_left(self) -> tuple[Change, ...]:
        """The composites of declared parameters that no rule fits."""
        return tuple(change for change in self.changes.get("variants", ()) if change.outcome is Outcome.LEFT)

    def up_to(self, name: str) -> "Run":
        """Run the passes that come next, up to the one of this name."""
        last = next(place for place, one in enumerate(self.passes) if one.name == name)
        while self._next <= last:
            one = self.passes[self._next]
            self._next += 1
            if one.wanted.holds(self.options) and one.where.holds(self):
                self._do(one)
        return self

    def to_the_end(self) -> "Run":
        """Run all passes that are left."""
        return self.up_to(self.passes[-1].name)

    def _do(self, one: Pass) -> None:
        before = self._ops()
        start = perf_counter()
        changes = one.run(self)
        seconds = perf_counter() - start
        if changes:
            self.changes[one.name] = tuple(changes)
        after = self._ops()
        gone, built = (_by_name(before - after), _by_name(after - before)) if self.is_counted else ({}, {})
        self.done[one.name] = Done(seconds, gone, built)

    def _ops(self) -> Counter[Op]:
        """How often each op is there, by its name, types and attributes; nothing where nobody asks."""
        found = Counter[Op]()
        for raw in mlir.operations_within(self.graph.module.operation) if self.is_counted else ():
            types = tuple(value.type for values in (raw.operands, raw.results) for value in values)
            found[(raw.name, types, tuple(mlir.attributes_of(raw).items()))] += 1
        return found


def _by_name(ops: Counter[Op]) -> dict[str, int]:
    found = Counter[str]()
    for (name, _, _), count in ops.items():
        found[name] += count
    return dict(found.most_common())
