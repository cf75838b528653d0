"""Verify a lowered module against what it was made of, with what is known of how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from hlo_lower import mlir
from hlo_lower.errors import DifferenceError
from hlo_lower.graph import Graph, Source, checked_sizes, is_symbolic, open_sizes, read, to_text
from hlo_lower.graph import bind as _bind
from hlo_lower.legalize import Demotion, Outcome, narrow_arguments, narrow_array, with_original_signature
from hlo_lower.mlir import ScatterNumbers
from hlo_lower.options import Options
from hlo_lower.pipeline import Lowered, PlainForm, plain_form
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.scatter.applied import apply
from hlo_lower.scatter.predicates import Claims, broken
from hlo_lower.targets import STABLEHLO, TargetLike, target_of
from hlo_lower.verify import MEMORY_BUDGET, Level, ModuleVerdict, Progress, Verdict, verify_plain
from hlo_lower.verify import verify as _verify
from hlo_lower.verify.claim_checks import Check

PROVE_SECONDS = 10.0
"""In which a proof of a region is sought."""

Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
"""Arguments of a module, by position or by name."""


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
    prove: bool = False,
    accept_runs: bool = False,
    jobs: int = 1,
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
      prove: whether a proof of each region is sought, too, with z3 (the extra "prove").
      accept_runs: whether what could not be judged, only run, counts as verified.
      jobs: how many processes judge regions; with 1 this one does.
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
        reads_inside=asked.target.gather == "in_bounds",
        level=level,
        inputs=inputs,
        seed=seed,
        runs=runs,
        prove_s=PROVE_SECONDS if prove else 0.0,
        accept_runs=accept_runs,
        jobs=jobs,
        rules={r.number: r.rule for r in lowered.records if r.rule} if isinstance(lowered, Lowered) else {},
        claims=_claims_of(lowered) if isinstance(lowered, Lowered) else None,
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


def _claims_of(lowered: Lowered) -> Check:
    """What evaluates the claims in a lowered module's records."""

    def found(claims: Claims, scatter: mlir.RawOperation, values: Sequence[Any]) -> str:
        shape = mlir.static_shape(scatter.operands[0].type)
        indices, *updates = values
        updates_shape = mlir.static_shape(scatter.operands[len(scatter.operands) - 1].type)
        applied = apply(ScatterNumbers.of(scatter), shape, updates_shape, indices)
        return ", ".join(broken(claims, applied, updates))

    claimed = {r.number: r.claims for r in lowered.records if r.rule and r.claims is not None}
    return Check(claimed, frozenset(number for number, claims in claimed.items() if claims.is_uniform), found)


def check(source: Source | Graph, lowered: Lowered, level: Level) -> Verdict:
    """The verdict on a lowered module.

    Raises:
      DifferenceError: it is not verified to be equal.
    """
    verdict = verify(source, lowered, level=level)
    if not verdict.ok:
        what = "computes something else" if verdict.differs else "is not verified: some of it was only run"
        raise DifferenceError(
            lowered.graph.name,
            f"the lowered module {what}",
            facts=verdict.summary(),
            nearest=tuple(verdict.lines()[:1]),
            next_step="hl.verify(source, lowered).lines() says all of it; please report what differs",
        )
    return verdict
