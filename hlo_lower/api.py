"""The public functions; docs/usage.md shows them in use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hlo_lower import english
from hlo_lower.export import export
from hlo_lower.graph import Graph, Source, checked_sizes, read
from hlo_lower.graph import bind as _bind
from hlo_lower.jit import jit
from hlo_lower.options import Options, names_of
from hlo_lower.pipeline import Lowered
from hlo_lower.pipeline import classify as _classify
from hlo_lower.pipeline import lower as _lower
from hlo_lower.plugins import installed_registry
from hlo_lower.registry import CompositeLoweringRegistry, Rule
from hlo_lower.rewrite.built_ops import BUILT_OPS
from hlo_lower.rewrite.kinds import KINDS, title_of
from hlo_lower.scatter.record import ScatterRecord
from hlo_lower.targets import Target, TargetLike, target_of
from hlo_lower.verified import check, verify
from hlo_lower.verify import Level

__all__ = ["RuleRow", "SizeRow", "bind", "classify", "export", "jit", "lower", "read", "rules", "sizes", "verify"]


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
    verify: Level | None = None,
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
      verify: what is verified before the result is returned: "regions", "auto" or "full", as in `verify`; by default
        nothing.

    Raises:
      InputError: the source cannot be read, the target does not exist, a pattern matches nothing, sizes do not fit, or
        there is no such rule or size to prefer.
      NotLoweredError: a scatter has no lowering that the target takes.
      DifferenceError: the result is not verified to be equal.
      PluginError: the rules of an installed distribution cannot be used.
    """
    kept = (tuple(only), tuple(skip), tuple(checked_sizes({} if bind is None else bind).items()))
    plain: dict[str, Any] = {"legalize": legalize, "demote_i64": demote_i64, "linalg_ops": linalg_ops}
    how = (target_of(target), oob, float_mode or "", trust_flags, keep_unsupported)
    options = Options(*how, *kept, prefer=names_of(prefer), **plain)
    lowered = _lower(source, options=options, name=name, registry=registry)
    if verify is not None:
        check(source, lowered, verify)
    return lowered


@dataclass(frozen=True)
class RuleRow:
    """A rule as documentation shows it.

    Attributes:
      name: the rule, as in a record.
      classes: the facts that it is for.
      form: its canonical form in a line.
      place: file and line.
      builds: the operations that it builds in its golden modules, those of a region left out; none of a plug-in's rule.
      refused: what the target does not take of these, or "".
    """

    name: str
    classes: str
    form: str
    place: str
    builds: tuple[str, ...]
    refused: str


def rules(target: TargetLike = "stablehlo", registry: CompositeLoweringRegistry | None = None) -> tuple[RuleRow, ...]:
    """The canonical form of every class under a target, from the registry, the most specific rules first.

    What a target refuses of a rule is told of the ops that its golden modules have; what it builds elsewhere is looked
    at there.

    Raises:
      InputError: there is no such target, or its file does not describe one.
      PluginError: the rules of an installed distribution cannot be used.
    """
    described, known = target_of(target), registry or installed_registry()
    ops = [kind.name for kind in KINDS]
    found = [rule for op in ops for rule in known.rules(op)]
    rows = sorted(found, key=lambda rule: (ops.index(rule.op), -len(rule.constraints), rule.name))
    return tuple(_row(rule, described) for rule in rows)


def _row(rule: Rule, target: Target) -> RuleRow:
    builds = () if rule.origin else BUILT_OPS.get(rule.short_name, ())
    refused = english.listed(target.refusals(builds))
    return RuleRow(rule.short_name, title_of(rule), rule.form, rule.place, builds, refused)


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
