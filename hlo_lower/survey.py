"""What would become of a module: the records of its scatters, and what a target refuses of it then, with remedies."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hlo_lower.containment import lowering
from hlo_lower.errors import NotLoweredError
from hlo_lower.graph import Graph, bind
from hlo_lower.options import Options
from hlo_lower.pipeline import copied, lower_others, make_plain
from hlo_lower.plugins import registry_of
from hlo_lower.refused import SCATTER, RefusedOps, with_remedies
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.rewrite.change import Change
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.refused_ops import refused_ops
from hlo_lower.rewrite.scatters import classify_scatters, lower_scatters
from hlo_lower.scatter.record import ScatterRecord
from hlo_lower.shapes import specification_of
from hlo_lower.shapes.bind import instances

REMEDIES: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "--legalize": ({"legalize": True}, ("chlo.", "stablehlo.composite", "stablehlo.custom_call")),
    "--demote-i64": ({"demote_i64": True}, ("",)),
    "--float-mode reassociate": ({"float_mode": "reassociate"}, (SCATTER,)),
}
"""Options under which a target may take more of a module, as on the command line and as keywords, and how the names of
the ops begin that they are for."""


def classify(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> tuple[ScatterRecord, ...]:
    """One record per scatter, in program order, with the rule that would lower it.

    Where the target refuses more than scatters, that is found by lowering a copy: which rule builds what it takes shows
    once it is built.

    Args:
      graph: a module as `read` gives it.
      options: policy and target; only, skip and keep_unsupported do not matter.
      registry: the rules; by default the built-in ones and those of installed plug-ins.
    """
    options = options or Options()
    if options.bind:
        graph = bind(graph, dict(options.bind))
    with lowering():
        return _trial(graph, options, registry_of(registry)).records


@dataclass(frozen=True)
class Surveyed:
    """What would become of a module.

    Attributes:
      records: one for each scatter, as `classify` gives them.
      refused: what the target would refuse of it then, each with its remedy.
      changes: what would be lowered besides scatters, by which rule, and what would be left and why.
    """

    records: tuple[ScatterRecord, ...]
    refused: tuple[RefusedOps, ...]
    changes: tuple[Change, ...]


def survey(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> tuple[tuple[ScatterRecord, ...], tuple[RefusedOps, ...]]:
    """What `classify` gives, and what the target would refuse of the module after lowering, each with its remedy.

    Args:
      graph, options, registry: as in `classify`.
    """
    found = surveyed(graph, options=options, registry=registry)
    return found.records, found.refused


def surveyed(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> Surveyed:
    """All that would become of a module.

    Remedies are found by trying: the module is lowered again under each option that may help.

    Args:
      graph, options, registry: as in `classify`.
    """
    options, known = options or Options(), registry_of(registry)
    if options.bind:
        graph = bind(graph, dict(options.bind))
    with lowering():
        found = _trial(graph, options, known)
        if not found.refused:
            return found
        left: list[tuple[str, tuple[RefusedOps, ...]]] = []
        for option, (changed, names) in REMEDIES.items():
            other = replace(options, **changed)
            if other != options and any(one.op.startswith(names) for one in found.refused):
                with suppress(NotLoweredError):  # that its integers cannot be narrowed
                    left.append((option, _trial(graph, other, known).refused))
        if (bound := _bound(graph)) is not None:
            left.append(("--bind", _trial(bound, options, known).refused))
        return replace(found, refused=tuple(with_remedies(found.refused, left)))


def _bound(graph: Graph) -> Graph | None:
    """A module of dynamic shape at some sizes that fit it; None for others."""
    specification = specification_of(graph.module)
    if specification is None or not specification.is_dynamic:
        return None
    sizes = instances(specification, graph.module, 1)
    return bind(graph, sizes[0]) if sizes else None


def _trial(graph: Graph, options: Options, known: CompositeLoweringRegistry) -> Surveyed:
    """The records of a module's scatters, and what is refused of the module that they would be lowered in."""
    options = replace(options, only=(), skip=(), keep_unsupported=True)
    is_built = not options.target.restricts_only_scatter
    changes: tuple[Change, ...] = ()
    if is_built or options.legalize or options.demote_i64:
        graph = copied(graph)
        changes, _ = make_plain(Context(graph, options, known))
    if not is_built:
        records = classify_scatters(Context(graph, options, known))
    else:
        changes = (*changes, *lower_others(graph, options, known))
        records = lower_scatters(Context(graph, options, known), is_trial=True).records
    return Surveyed(records, refused_ops(graph, options.target, records), changes)
