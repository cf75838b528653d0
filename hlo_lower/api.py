"""The public functions, with the keywords of DESIGN section 3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from hlo_lower.export import export
from hlo_lower.gather.facts import GATHER
from hlo_lower.graph import Graph, Source, checked_sizes, is_symbolic, open_sizes, read, to_text
from hlo_lower.graph import bind as _bind
from hlo_lower.jit import jit
from hlo_lower.legality import REGION
from hlo_lower.legalize import Demotion, Outcome, narrow_arguments, narrow_array, with_original_signature
from hlo_lower.lowerings import class_name
from hlo_lower.lowerings.composite import COMPOSITE
from hlo_lower.lowerings.dynamic_gather import DYNAMIC_GATHER
from hlo_lower.pipeline import Lowered, PlainForm, plain_form
from hlo_lower.pipeline import classify as _classify
from hlo_lower.pipeline import lower as _lower
from hlo_lower.plan import SCATTER, Options
from hlo_lower.plugins import installed_registry
from hlo_lower.preference import names_of
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.scatter.dynamic import DYNAMIC_SCATTER
from hlo_lower.scatter.record import ScatterRecord
from hlo_lower.targets import STABLEHLO, TargetLike, target_of
from hlo_lower.verify import MEMORY_BUDGET, Level, ModuleVerdict, Progress, Verdict, verify_plain
from hlo_lower.verify import verify as _verify

__all__ = ["RuleRow", "SizeRow", "bind", "classify", "export", "jit", "lower", "read", "rules", "sizes", "verify"]

Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
"""Arguments of a module, by position or by name."""


def classify(
    source: Source | Graph,
    *,
    target: TargetLike = "stablehlo",
    oob: Literal["xla", "spec"] = "xla",
    float_mode: Literal["exact", "reassociate"] | None = None,
    trust_flags: bool = False,
    prefer: Sequence[str] = (),
    registry: CompositeLoweringRegistry | None = None,
) -> tuple[ScatterRecord, ...]:
    """Classify every scatter of a module.

    Args:
      source: the module: whatever `read` takes, or a graph.
      target: the consumer that the rules are chosen for: the name of a built-in one, the path of a target file
        (`hlo_lower.targets.target_file`), or a `Target`.
      oob: out-of-bounds policy: "xla" drops a window that is not wholly inside, "spec" drops its outside elements.
      float_mode: whether a rule may reassociate float reductions.
      trust_flags: take `unique_indices = true` as a proof.
      prefer: rules to take wherever they are right ("last_writer"), and entries of the target's table of sizes with
        other values ("few_windows=64"; `hlo_lower.scatter.sizes`).
      registry: rules to choose from; by default the built-in ones and those of installed plug-ins.

    Returns:
      One record per scatter, in program order, with the rule that would lower it ("" where there is none).

    Raises:
      InputError: the module cannot be read, the target does not exist, its file does not describe one, or there is no
        such rule or size to prefer.
      PluginError: the rules of an installed distribution cannot be used.
    """
    options = Options(target_of(target), oob, float_mode or "", trust_flags, prefer=names_of(prefer))
    graph = source if isinstance(source, Graph) else read(source)
    return _classify(graph, options=options, registry=registry)


def bind(source: Source | Graph, sizes: Mapping[str, int], *, name: str | None = None) -> Graph:
    """Give a module's symbolic sizes values: the same module with static shapes (`hlo_lower.graph.bind`).

    Args:
      source: whatever `read` takes, or a graph, which is left as it is.
      sizes: {"b": 4, "s": 16}: a size for each symbol of the arguments' shapes; see `hlo_lower.graph.bind` for dims and
        arguments without a name.
      name: name for messages and records.

    Raises:
      InputError: the source cannot be read, a name is unknown or missing, or the sizes contradict the module.
    """
    return _bind(source if isinstance(source, Graph) else read(source, name), sizes)


def lower(
    source: Source | Graph,
    *,
    target: TargetLike = "stablehlo",
    oob: Literal["xla", "spec"] = "xla",
    float_mode: Literal["exact", "reassociate"] | None = None,
    trust_flags: bool = False,
    keep_unsupported: bool = False,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    bind: Mapping[str, int] | None = None,
    prefer: Sequence[str] = (),
    legalize: bool | None = None,
    demote_i64: bool | None = None,
    linalg_ops: Literal["named", "generic"] = "named",
    name: str | None = None,
    registry: CompositeLoweringRegistry | None = None,
) -> Lowered:
    """Lower the scatters of a module to plain ops.

    Args:
      source: a path, text, bytes, a `jax.export.Exported`, a `jax.stages.Lowered` or a graph (see `read`).
      target, oob, float_mode, trust_flags, prefer, registry: as in `classify`.
      keep_unsupported: leave a scatter without a rule instead of raising; `Lowered.scatters_left` counts them.
      only, skip: patterns of locations, scopes, functions or numbers ("#3"): lower only these, or all but these.
      legalize: make chlo ops, known mhlo custom calls and composites plain StableHLO first (`Lowered.changes` tells
        what); by default as the target says.
      demote_i64: make 64-bit integers 32 bits wide first, arguments and results included (`Lowered.demotion` tells what
        that rests on); by default as the target says.
      linalg_ops: for a target that reads linalg: "named" ops where there are any, or all "generic".
      bind: symbolic sizes to bind first, {"b": 4, "s": 16} (see `hlo_lower.bind`); without it a scatter of dynamic
        shape is lowered as such, with sizes taken at run time.
      name: name for messages and records.

    Raises:
      InputError: the source cannot be read, the target does not exist, a pattern matches nothing, sizes do not fit, or
        there is no such rule or size to prefer.
      NotLoweredError: a scatter has no lowering that the target takes.
      PluginError: the rules of an installed distribution cannot be used.
    """
    kept = (tuple(only), tuple(skip), tuple(checked_sizes({} if bind is None else bind).items()))
    plain: dict[str, Any] = {"legalize": legalize, "demote_i64": demote_i64, "linalg_ops": linalg_ops}
    how = (target_of(target), oob, float_mode or "", trust_flags, keep_unsupported)
    options = Options(*how, *kept, prefer=names_of(prefer), **plain)
    return _lower(source, options=options, name=name, registry=registry)


def verify(
    source: Source | Graph,
    lowered: Source | Graph | Lowered,
    *,
    target: TargetLike | None = None,
    oob: Literal["xla", "spec"] | None = None,
    float_mode: Literal["exact", "reassociate"] | None = None,
    trust_flags: bool | None = None,
    legalize: bool | None = None,
    demote_i64: bool | None = None,
    registry: CompositeLoweringRegistry | None = None,
    level: Level = "auto",
    inputs: Inputs = None,
    bind: Mapping[str, int] | None = None,
    seed: int = 0,
    runs: int = 3,
    accept_runs: bool = False,
    progress: Progress | None = None,
) -> Verdict:
    """Verify that two versions of a module are the same function, whoever wrote the second one.

    The versions are aligned; what they do not have in common falls into regions, and each region is judged alone on
    driven inputs (`hlo_lower.verify`); then both versions are run.

    Args:
      source, lowered: the two versions; what the scatters of the first one mean out of bounds is said by `oob`.
      oob, float_mode, trust_flags: as they were given to `lower`; by default what lowered says, where it is a
        `Lowered`, else the defaults of `lower` for the target.
      target, legalize, demote_i64, registry: likewise; what was narrowed or legalized first is made anew and compared
        with the module as it was given, then the lowered one with that (`Verdict.plain`).
      level: "regions" judges the regions alone, "full" runs the whole module too, "auto" runs it if it fits.
      inputs: arguments of the whole module; by default seeded random ones.
      bind: symbolic sizes to verify at, for both versions; by default those that lowered was bound to, else, where a
        version has symbolic sizes, a few small ones that fit.
      seed, runs: of the random inputs.
      accept_runs: whether what could not be judged, only run, counts as verified.
      progress: called with a stage, how much of it is done and how much there is.

    Raises:
      InputError: a version cannot be read or run.
    """
    made_with = lowered.options if isinstance(lowered, Lowered) else None
    bind = None if bind is None else checked_sizes(bind)
    sizes = dict(made_with.sizes) if made_with is not None and bind is None else bind
    before = _text_of(source, sizes)
    after = lowered.stablehlo if isinstance(lowered, Lowered) else _text_of(lowered)
    if bind and is_symbolic(after):
        after = _text_of(after, open_sizes(after, bind))
    by_default = made_with or Options(STABLEHLO if target is None else target_of(target))
    asked = replace(
        by_default,
        target=by_default.target if target is None else target_of(target),
        oob=by_default.oob if oob is None else oob,
        float_mode=float_mode or (made_with.float_mode if made_with else ""),
        trust_flags=by_default.trust_flags if trust_flags is None else trust_flags,
        legalize=by_default.legalize if legalize is None else legalize,
        demote_i64=by_default.demote_i64 if demote_i64 is None else demote_i64,
    )
    about_plain = None
    if asked.legalize or asked.demote_i64:
        plain = plain_form(
            read(before), asked, registry or (lowered.registry if isinstance(lowered, Lowered) else None)
        )
        near = any(change.outcome is Outcome.LEGALIZED for change in plain.changes)
        about_plain = _verify_plain(before, plain, near=near, seed=seed, runs=runs)
        before, inputs = plain.text, _narrowed(inputs, plain.demotion)
    verdict = _verify(
        before,
        after,
        oob=asked.oob,
        reassociated=asked.float_mode == "reassociate",
        trust_flags=asked.trust_flags,
        level=level,
        inputs=inputs,
        seed=seed,
        runs=runs,
        accept_runs=accept_runs,
        rules={r.number: r.rule for r in lowered.records if r.rule} if isinstance(lowered, Lowered) else {},
        progress=progress,
    )
    return replace(verdict, plain=about_plain)


def _verify_plain(before: str, plain: PlainForm, *, near: bool, seed: int, runs: int) -> ModuleVerdict | None:
    """The verdict on the plain form of a module; None where there was nothing to make plain."""
    demotion = plain.demotion
    if not plain.changes and not (demotion and demotion.is_needed):
        return None
    if is_symbolic(before):
        return ModuleVerdict("not run", reason="it has symbolic sizes (--bind gives them)")
    text = plain.text if demotion is None else with_original_signature(plain.text, demotion)
    return verify_plain(before, text, seed=seed, runs=runs, memory_budget=MEMORY_BUDGET, near=near)


def _narrowed(inputs: Inputs, demotion: Demotion | None) -> Inputs:
    """Arguments of the module as it was given, as the narrower one takes them."""
    if inputs is None or demotion is None or not demotion.is_needed:
        return inputs
    if not isinstance(inputs, Mapping):
        return narrow_arguments(inputs, demotion, "inputs")
    return {name: narrow_array(np.asarray(value), f"input {name!r}") for name, value in inputs.items()}


def _text_of(source: Source | Graph, sizes: Mapping[str, int] | None = None) -> str:
    graph = source if isinstance(source, Graph) else read(source)
    return to_text(_bind(graph, sizes) if sizes else graph)


@dataclass(frozen=True)
class RuleRow:
    """A rule as documentation shows it.

    Attributes:
      name: the rule, as in a record.
      classes: the facts that it is for.
      form: its canonical form in a line.
      place: file and line.
      emits: the operations that it may build; `stablehlo.map` stands for the scatter's region, which becomes
        elementwise ops where it can.
      refused: why the target does not take it, or "".
    """

    name: str
    classes: str
    form: str
    place: str
    emits: tuple[str, ...]
    refused: str


def rules(target: TargetLike = "stablehlo", registry: CompositeLoweringRegistry | None = None) -> tuple[RuleRow, ...]:
    """The canonical form of every class under a target, from the registry, the most specific rules first.

    What a target refuses of a rule is told as far as it does not depend on a scatter's element types and region.

    Raises:
      InputError: there is no such target, or its file does not describe one.
      PluginError: the rules of an installed distribution cannot be used.
    """
    described = target_of(target)
    known = registry or installed_registry()
    ops = (SCATTER, DYNAMIC_SCATTER, GATHER, DYNAMIC_GATHER, COMPOSITE)
    found = [rule for op in ops for rule in known.rules(op)]
    return tuple(
        RuleRow(
            rule.short_name,
            class_name(rule),
            rule.form,
            rule.place,
            rule.emits,
            "; ".join(described.refusals([op for op in rule.emits if op != REGION])),
        )
        for rule in sorted(found, key=lambda rule: (ops.index(rule.op), -len(rule.constraints), rule.name))
    )


@dataclass(frozen=True)
class SizeRow:
    """An entry of a target's table of sizes.

    Attributes:
      name: as `prefer` takes it.
      value: a number, or a cost in nanoseconds.
      what: what it is of.
      measured: what its default was set by.
    """

    name: str
    value: float
    what: str
    measured: str


def sizes(target: TargetLike = "stablehlo") -> tuple[SizeRow, ...]:
    """What the forms of a scatter cost on a target, each entry with the measurement that set its default.

    Raises:
      InputError: there is no such target, or its file does not describe one.
    """
    table = target_of(target).sizes
    return tuple(
        SizeRow(entry.name, getattr(table, entry.name), entry.metadata["what"], entry.metadata["measured"])
        for entry in table.entries()
    )
