"""The public functions, with the keywords of DESIGN section 3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hlo_lower.export import export
from hlo_lower.graph import Graph, Source, read, to_text
from hlo_lower.lowerings import class_name, default_registry
from hlo_lower.pipeline import Lowered
from hlo_lower.pipeline import classify as _classify
from hlo_lower.pipeline import lower as _lower
from hlo_lower.plan import SCATTER, Options
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.scatter.record import ScatterRecord
from hlo_lower.targets import target_named
from hlo_lower.verify import Progress, Verdict
from hlo_lower.verify import verify as _verify

__all__ = ["RuleRow", "classify", "export", "lower", "read", "rules", "verify"]


def classify(
    graph: Graph,
    *,
    target: str = "stablehlo",
    oob: Literal["xla", "spec"] = "xla",
    float_mode: Literal["exact", "reassociate"] = "exact",
    trust_flags: bool = False,
    registry: CompositeLoweringRegistry | None = None,
) -> tuple[ScatterRecord, ...]:
    """Classify every scatter of a module.

    Args:
      graph: the module, from `read`.
      target: the consumer that the rules are chosen for.
      oob: out-of-bounds policy: "xla" drops a window that is not wholly inside, "spec" drops its outside elements.
      float_mode: whether a rule may reassociate float reductions.
      trust_flags: take `unique_indices = true` as a proof.
      registry: rules to choose from; by default `lowerings.default_registry()`.

    Returns:
      One record per scatter, in program order, with the rule that would lower it ("" where there is none).
    """
    options = Options(target, oob, float_mode, trust_flags)
    return _classify(graph, options=options, registry=registry)


def lower(
    source: Source | Graph,
    *,
    target: str = "stablehlo",
    oob: Literal["xla", "spec"] = "xla",
    float_mode: Literal["exact", "reassociate"] = "exact",
    trust_flags: bool = False,
    keep_unsupported: bool = False,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    name: str | None = None,
    registry: CompositeLoweringRegistry | None = None,
) -> Lowered:
    """Lower the scatters of a module to plain ops.

    Args:
      source: a path, text, bytes, a `jax.export.Exported`, a `jax.stages.Lowered` or a graph (see `read`).
      target, oob, float_mode, trust_flags, registry: as in `classify`.
      keep_unsupported: leave a scatter without a rule instead of raising; `Lowered.scatters_left` counts them.
      only, skip: patterns of locations, scopes, functions or numbers ("#3"): lower only these, or all but these.
      name: name for messages and records.

    Raises:
      InputError: the source cannot be read, the target does not exist, or a pattern matches nothing.
      NotLoweredError: a scatter has no lowering.
    """
    options = Options(target, oob, float_mode, trust_flags, keep_unsupported, tuple(only), tuple(skip))
    return _lower(source, options=options, name=name, registry=registry)


def verify(
    source: Source | Graph,
    lowered: Source | Graph | Lowered,
    *,
    target: str = "stablehlo",
    oob: Literal["xla", "spec"] = "xla",
    float_mode: Literal["exact", "reassociate"] = "exact",
    trust_flags: bool = False,
    level: Literal["auto", "scatter", "full"] = "auto",
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    seed: int = 0,
    runs: int = 3,
    progress: Progress | None = None,
) -> Verdict:
    """Run both versions of a module and compare; and each scatter of the first one alone, in all index regimes.

    Args:
      source, lowered: the two versions; the first one holds the scatters.
      target, oob, float_mode, trust_flags: as they were given to `lower`.
      level: "scatter" runs each scatter alone, "full" the whole module too, "auto" the whole module if it fits.
      inputs: arguments of the whole module; by default seeded random ones.
      seed, runs: of the random inputs.
      progress: called with a stage, how much of it is done and how much there is.

    Raises:
      InputError: a version cannot be read or run.
    """
    before = _text_of(source)
    after = lowered.text if isinstance(lowered, Lowered) else _text_of(lowered)
    made_with = lowered.options if isinstance(lowered, Lowered) else None
    # Where the second version keeps scatters, on request, the cut-outs keep what they cannot lower, too.
    options = Options(target, oob, float_mode, trust_flags, keep_unsupported="stablehlo.scatter" in after)
    return _verify(
        before,
        after,
        convert=lambda text: _lower(text, options=options, name="cut-out").text,
        rebuild=lambda text: _lower(text, options=made_with or options, name="first version").text,
        oob=oob,
        level=level,
        inputs=inputs,
        seed=seed,
        runs=runs,
        progress=progress,
    )


def _text_of(source: Source | Graph) -> str:
    return to_text(source if isinstance(source, Graph) else read(source))


@dataclass(frozen=True)
class RuleRow:
    """A rule as documentation shows it.

    Attributes:
      name: the rule, as in a record.
      classes: the facts that it is for.
      form: its canonical form in a line.
      place: file and line.
      emits: the operations that it may build.
      refused: why the target does not take it, or "".
    """

    name: str
    classes: str
    form: str
    place: str
    emits: tuple[str, ...]
    refused: str


def rules(target: str = "stablehlo", registry: CompositeLoweringRegistry | None = None) -> tuple[RuleRow, ...]:
    """The canonical form of every class under a target, from the registry, the most specific rules first.

    Raises:
      InputError: there is no such target.
    """
    described = target_named(target)
    found = (registry or default_registry()).rules(SCATTER)
    return tuple(
        RuleRow(
            rule.name.removeprefix("scatter_to_"),
            class_name(rule.constraints),
            rule.form,
            rule.place,
            rule.emits,
            "; ".join(r for op in rule.emits if (r := described.refusal(op)) is not None),
        )
        for rule in sorted(found, key=lambda rule: (-len(rule.constraints), rule.name))
    )
