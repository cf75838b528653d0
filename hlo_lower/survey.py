"""What would become of a module: the records of its scatters, and what a target refuses of it then, with remedies."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hlo_lower.containment import lowering
from hlo_lower.errors import NotLoweredError
from hlo_lower.graph import Graph, bind
from hlo_lower.options import Options
from hlo_lower.pipeline import copied, lower_others, make_plain
from hlo_lower.plugins import registry_of
from hlo_lower.refused import SCATTER, RefusedOps, with_remedies
from hlo_lower.registry import CompositeLoweringRegistry
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
        return _trial(graph, options, registry_of(registry))[0]


def survey(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> tuple[tuple[ScatterRecord, ...], tuple[RefusedOps, ...]]:
    """What `classify` gives, and what the target would refuse of the module after lowering, each with its remedy.

    Remedies are found by trying: the module is lowered again under each option that may help.

    Args:
      graph, options, registry: as in `classify`.
    """
    options, known = options or Options(), registry_of(registry)
    if options.bind:
        graph = bind(graph, dict(options.bind))
    with lowering():
        records, refused = _trial(graph, options, known)
        if not refused:
            return records, ()
        left: list[tuple[str, tuple[RefusedOps, ...]]] = []
        for option, (changed, names) in REMEDIES.items():
            other = replace(options, **changed)
            if other != options and any(one.op.startswith(names) for one in refused):
                with suppress(NotLoweredError):  # that its integers cannot be narrowed
                    left.append((option, _trial(graph, other, known)[1]))
        if (bound := _bound(graph)) is not None:
            left.append(("--bind", _trial(bound, options, known)[1]))
        return records, tuple(with_remedies(refused, left))


def _bound(graph: Graph) -> Graph | None:
    """A module of dynamic shape at some sizes that fit it; None for others."""
    specification = specification_of(graph.module)
    if specification is None or not specification.is_dynamic:
        return None
    sizes = instances(specification, graph.module, 1)
    return bind(graph, sizes[0]) if sizes else None


def _trial(
    graph: Graph, options: Options, known: CompositeLoweringRegistry
) -> tuple[tuple[ScatterRecord, ...], tuple[RefusedOps, ...]]:
    """The records of a module's scatters, and what is refused of the module that they would be lowered in."""
    options = replace(options, only=(), skip=(), keep_unsupported=True)
    is_built = not options.target.restricts_only_scatter
    if is_built or options.legalize or options.demote_i64:
        graph = copied(graph)
        make_plain(Context(graph, options, known))
    if not is_built:
        records = classify_scatters(Context(graph, options, known))
    else:
        lower_others(graph, options, known)
        records = lower_scatters(Context(graph, options, known), is_trial=True).records
    return records, refused_ops(graph, options.target, records)
