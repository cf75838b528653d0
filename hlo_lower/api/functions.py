"""The public functions; docs/usage.md shows them in use."""

import inspect
from collections.abc import Mapping
from typing import Unpack

from hlo_lower.api.jit import jit
from hlo_lower.api.many.survey import classify as _classify
from hlo_lower.api.verified import verify, verify_lowered
from hlo_lower.base import english
from hlo_lower.base.registry import CompositeLoweringRegistry, Rule
from hlo_lower.ir.binding import bind as _bind
from hlo_lower.ir.export.trace import export
from hlo_lower.ir.reader import Source, read
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.kinds import KINDS, built_ops, registry_of, title_of
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import Keywords, Options, options_of
from hlo_lower.lowering.pipeline import lower as _lower
from hlo_lower.ops.targets import TargetLike
from hlo_lower.ops.targets.target import Target
from hlo_lower.report.notebook import Records
from hlo_lower.report.rules_table import CostRow, RuleRow
from hlo_lower.verify import Level
from hlo_lower.verify.effort import checked_level

__all__ = ["CostRow", "RuleRow", "bind", "classify", "costs", "export", "jit", "lower", "read", "rules", "verify"]


def classify(
    source: Source | Graph,
    *,
    options: Options | None = None,
    registry: CompositeLoweringRegistry | None = None,
    **keywords: Unpack[Keywords],
) -> Records:
    """Classify every scatter of a module.

    Args:
      source: the module: whatever `read` takes, or a graph.
      options: how it would be lowered, as an `Options`; or its keywords (target, oob, float_mode, prefer, ...) here.
      registry: rules to choose from; by default the built-in ones and those of installed plug-ins.

    Returns:
      One record per scatter, in program order, with the rule that would lower it ("" where there is none). In a
      notebook they are a table.

    Raises:
      InputError: the module cannot be read, the target does not exist, its file does not describe one, there is no
        such rule or size to prefer, or an argument is of a wrong type or none of its choices.
      PluginError: the rules of an installed distribution cannot be used.

    Example:
      >>> [record] = hl.classify("decode.mlir", target="iree")
      >>> record.subset, record.combiner, record.rule
      ('Tile', 'assign', 'guarded_short_set')
    """
    chosen = options_of(options, keywords)
    return Records(_classify(_graph(source), options=chosen, registry=registry))


def _graph(source: Source | Graph, name: str | None = None) -> Graph:
    return source if isinstance(source, Graph) else read(source, name)


def bind(source: Source | Graph, sizes: Mapping[str, int], *, name: str | None = None) -> Graph:
    """Give a module's symbolic sizes values: the same module with static shapes (`hlo_lower.ir.bind`).

    Args:
      source: whatever `read` takes, or a graph, which is left as it is.
      sizes: {"b": 4, "s": 16}: a size for each symbol of the arguments' shapes; see `hlo_lower.ir.bind` for dims and
        arguments without a name.
      name: name for messages and records.

    Returns:
      A graph of its own.

    Raises:
      InputError: the source cannot be read, a name is unknown or missing, or the sizes contradict the module.

    Example:
      >>> exported = hl.export(lambda x: x + 1, shapes=["b, 64"])
      >>> "tensor<4x64xf32>" in hl.lower(hl.bind(exported, {"b": 4})).text
      True
    """
    return _bind(_graph(source, name), sizes)


def lower(
    source: Source | Graph,
    *,
    options: Options | None = None,
    registry: CompositeLoweringRegistry | None = None,
    name: str | None = None,
    verify: Level | None = None,
    **keywords: Unpack[Keywords],
) -> Lowered:
    """Lower the scatters of a module to plain ops.

    Args:
      source: a path, text, bytes, a `jax.export.Exported`, a `jax.stages.Lowered` or a graph (see `read`).
      options: how, as an `Options`, which says what each of these is; or its keywords here: target, oob, float_mode,
        trust_flags, keep_unsupported (`Lowered.scatters_left` counts what is left), only, skip, prefer, legalize
        (`Lowered.changes` tells what), demote_i64 (`Lowered.demotion` tells what that rests on),
        demote_f64 and widen (`Lowered.floats`: numbers change), linalg_ops, linalg_loops, and bind;
        without sizes to bind a scatter of dynamic shape is lowered as such, with sizes taken at run time.
      registry: rules to choose from; by default the built-in ones and those of installed plug-ins.
      name: name for messages and records.
      verify: what is verified before the result is returned: "regions", "auto" or "full", as in `verify`; by default
        nothing.

    Returns:
      The lowered module: `.text`, `.bytecode()`, `.exported`, `.records`, `.notes`.

    Raises:
      InputError: the source cannot be read, the target does not exist, a pattern matches nothing, sizes do not fit,
        there is no such rule or size to prefer, or an argument is of a wrong type or none of its choices.
      NotLoweredError: a scatter has no lowering that the target takes.
      DifferenceError: the result is not verified to be equal.
      PluginError: the rules of an installed distribution cannot be used.

    Example:
      >>> hl.lower("decode.mlir", target="iree")
      <Lowered decode.mlir for iree: 1 scatter, 0 left; rules guarded_short_set>
      >>> hl.lower("decode.mlir", only="#1", verify="regions").scatters_left
      0
    """
    chosen = options_of(options, keywords)
    if verify is not None:
        checked_level("verify", verify)
    lowered = _lower(source, options=chosen, name=name, registry=registry)
    return lowered if verify is None else verify_lowered(source, lowered, verify)


def rules(
    target: TargetLike | None = None,
    registry: CompositeLoweringRegistry | None = None,
    *,
    options: Options | None = None,
) -> tuple[RuleRow, ...]:
    """The canonical form of every class under a target, from the registry, the most specific rules first.

    What a target refuses of a rule is told of the ops that its golden modules have; what it builds elsewhere is looked
    at there.

    Args:
      target: the consumer; by default "stablehlo".
      registry: the rules; by default the built-in ones and those of installed plug-ins.
      options: in place of target: its target counts.

    Returns:
      A row for each rule.

    Raises:
      InputError: there is no such target, or its file does not describe one.
      PluginError: the rules of an installed distribution cannot be used.

    Example:
      >>> [row] = [row for row in hl.rules("litert") if row.name == "while"]
      >>> row.classes
      'anything'
    """
    described, known = _target(target, options), registry_of(registry)
    ops = [*(kind.name for kind in KINDS), *known.declarations]
    found = [rule for op in ops for rule in known.rules(op)]
    rows = sorted(found, key=lambda rule: (ops.index(rule.op), -len(rule.constraints), rule.name))
    return tuple(_row(rule, described) for rule in rows)


def _row(rule: Rule, target: Target) -> RuleRow:
    builds = () if rule.origin else built_ops().get(rule.short_name, ())
    refused = english.join_phrases(target.refusals(builds))
    proof = inspect.getdoc(rule.lowering) or "it says nothing about it"
    return RuleRow(rule.short_name, title_of(rule), rule.form, rule.place, builds, refused, proof, rule.op)


def costs(target: TargetLike | None = None, *, options: Options | None = None) -> tuple[CostRow, ...]:
    """What the forms of a scatter cost on a target, each entry with the measurement that set its default.

    Args:
      target: the consumer; by default "stablehlo".
      options: in place of target: its target counts.

    Returns:
      A row for each entry of the table.

    Raises:
      InputError: there is no such target, or its file does not describe one.

    Example:
      >>> {row.name: row.value for row in hl.costs()}["few_windows"]
      16
    """
    table = _target(target, options).costs_there
    return tuple(
        CostRow(entry.name, getattr(table, entry.name), entry.metadata["what"], entry.metadata["measured"])
        for entry in table.entries()
    )


def _target(target: TargetLike | None, options: Options | None) -> Target:
    given: Keywords = {} if target is None else {"target": target}
    return options_of(options, given).target
