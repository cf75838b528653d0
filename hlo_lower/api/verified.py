"""Verify a lowered module against what it was made of, with what is known of how it was made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from hlo_lower.base.arguments import known_names, split_keywords
from hlo_lower.base.change import Outcome
from hlo_lower.base.errors import DifferenceError, InputError
from hlo_lower.base.former_names import with_new_names
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.facts.scatter.predicates import Claims, apply, broken
from hlo_lower.ir import mlir
from hlo_lower.ir.binding import bind as _bind
from hlo_lower.ir.binding import is_symbolic, open_sizes
from hlo_lower.ir.mlir import ScatterNumbers
from hlo_lower.ir.reader import Source, read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.integers64.demotion import Demotion, narrow_arguments, narrow_array, with_original_signature
from hlo_lower.lowering.kinds import registry_of
from hlo_lower.lowering.linalg.one_form import one_form
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import NAMES, Keywords, Options, options_of, other_floats_of
from hlo_lower.lowering.pipeline import PlainForm, lower, plain_form
from hlo_lower.lowering.plain.stated import Stated
from hlo_lower.lowering.types.storage import as_given
from hlo_lower.ops.names import GATHER, SCATTER
from hlo_lower.ops.targets.target import Target
from hlo_lower.verify import (
    MEMORY_BUDGET,
    Assumed,
    Effort,
    EffortKeywords,
    Inputs,
    Level,
    ModuleVerdict,
    RegionVerdict,
    Verdict,
    verify_plain,
)
from hlo_lower.verify import verify as _verify
from hlo_lower.verify.cache import version_of_package
from hlo_lower.verify.claim_checks import Check
from hlo_lower.verify.drive.indices import with_single_elements
from hlo_lower.verify.kept_verdicts import find_verdict, keep_verdict
from hlo_lower.verify.patience import Deadline, at_most
from hlo_lower.verify.read.partitions import on_one_device
from hlo_lower.verify.rewrites import Rewrites
from hlo_lower.verify.verdict import NUMBERS_CHANGE, OPEN_SIZES


class VerifyKeywords(Keywords, EffortKeywords, total=False):
    """The keywords of `verify`: those of `Options`, of which None is "as it was lowered", and of `Effort`."""


def verify(
    source: Source | Graph,
    lowered: Source | Graph | Lowered,
    *,
    options: Options | None = None,
    registry: CompositeLoweringRegistry | None = None,
    **keywords: Unpack[VerifyKeywords],
) -> Verdict:
    """Verify that two versions of a module are the same function, whoever wrote the second one.

    The versions are aligned; what they do not have in common falls into regions, and each region is judged alone on
    driven inputs (`hlo_lower.verify`); then both versions are run.

    Args:
      source, lowered: the two versions; what the scatters of the first one mean out of bounds is said by `oob`.
      options, or oob, float_mode, trust_flags: as they were given to `lower`; by default what lowered says, where it is
        a `Lowered`, else the defaults of `lower` for the target.
      target, legalize, demote_i64, one_device, registry: likewise; what was narrowed, legalized or taken to one device
        first is made anew and compared with the module as it was given, then the lowered one with that
        (`Verdict.plain`).
      bind: symbolic sizes to verify at, for both versions; by default those that lowered was bound to, else, where a
        version has symbolic sizes, a few small ones that fit.
      level: "regions" judges the regions alone, "full" runs the whole module too, "auto" (the default) runs it if it
        fits.
      inputs: arguments of the whole module; by default seeded random ones.
      seed, runs: of the random inputs; 0 and 3 by default.
      prove: whether a proof of each region is sought, too, with z3 (the extra "prove").
      accept_runs: whether what could not be judged, only run, counts as verified.
      require: "derived" where only what holds for all inputs counts as verified; "tested", the default, where what
        driven runs show does, too.
      jobs: how many processes judge regions; with 1, the default, this one does.
      patience: seconds that may be spent on what does not end, of the regions and of the module's runs; 60 by
        default. What ends may take its time.
      timeout: seconds of the clock, after which nothing more is begun: the verdict says what was found until then, and
        what was not reached. None, the default: it takes its time.
      cache: a folder in which verdicts are kept by all that they rest on, and the version of the judge; it is made
        where it is missing. None, the default: each region is judged.
      progress: called with a stage, how much of it is done and how much there is.

    Returns:
      The verdict: `.ok`, `.differs`, `.lines()`, `.to_json()`.

    Raises:
      InputError: a version cannot be read or run, or an argument is of a wrong type or none of its choices.

    Example:
      >>> lowered = hl.lower("decode.mlir")
      >>> hl.verify("decode.mlir", lowered, level="regions")
      <Verdict verified: 1 region derived>
      >>> hl.verify("decode.mlir", lowered.text.replace(" EQ,", " NE,"), level="regions").ok
      False
    """
    given = with_new_names(keywords)
    known_names("verify", given, (*EFFORT, *NAMES))
    how, meaning = split_keywords(given, EFFORT)
    effort, asked = Effort(**how), _options_of(lowered, options, meaning)
    registry = registry or (lowered.registry if isinstance(lowered, Lowered) else None)
    sizes = dict(asked.bind)
    if asked.assume_in_bounds and not isinstance(lowered, Lowered):
        told = "only a Lowered knows what was assumed of its module"
        raise InputError("assume_in_bounds", told, next_step="give what hl.lower returned, or leave it out")
    before = _text_of(source, sizes)
    after = lowered.as_given if isinstance(lowered, Lowered) else _text_of(lowered)
    if sizes and is_symbolic(after):
        after = _text_of(after, open_sizes(after, sizes))
    plain, near, assumed = None, False, ""
    stated = Stated(registry_of(registry), asked.target)
    given = stated.of(before)
    is_run_for_all = asked.one_device and on_one_device(before) is None
    is_changed = asked.legalize or asked.demote_i64 or asked.checked or asked.assume_in_bounds or is_run_for_all
    if is_changed or other_floats_of(asked):
        plain = plain_form(read(before), asked, registry)
        near = any(change.outcome is Outcome.LEGALIZED for change in plain.changes)
        before = plain.given or plain.text
        assumed = plain.assumed.summary() if plain.assumed is not None and plain.assumed.scatters else ""
        how["inputs"] = _cast_inputs(_narrow_inputs(effort.inputs, plain.demotion), plain.floats)
        plain = replace(plain, text=stated.of(plain.text))
    if not isinstance(lowered, Lowered):
        after = as_given(before, after, asked.target)
    versions = stated.of(before), stated.of(after)
    meaning = Assumed(asked.oob, asked.float_mode == "reassociate", asked.trust_flags, asked.one_device)
    inside = _inside(asked.target, lowered)
    rules = {r.number: r.rule for r in lowered.records if r.rule} if isinstance(lowered, Lowered) else {}
    claims = _claims_of(lowered) if isinstance(lowered, Lowered) else None
    assumptions = "; ".join(filter(None, (assumed, stated.summary() if stated.names else "")))

    def judge() -> Verdict:
        with at_most(effort.patience, Deadline(effort.timeout)):
            of_plain = (
                None
                if plain is None
                else _verify_plain(given, plain, near=near, checked=asked.checked, seed=effort.seed, runs=effort.runs)
            )
            verdict = _verify(*versions, meaning, inside=inside, rules=rules, claims=claims, **how)
            in_form = _verify_one_form(lowered, effort) if isinstance(lowered, Lowered) else None
        return replace(verdict, plain=of_plain, one_form=in_form, assumed=assumptions)

    if effort.verdicts is None or effort.inputs is not None:
        return judge()
    content = _content(
        (given, *versions, assumptions),
        plain and (plain.text, plain.given, plain.demotion, plain.floats, bool(plain.changes), near, asked.checked),
        (meaning, sorted(inside), sorted(rules.items())),
        None if claims is None else (sorted(claims.claims.items()), sorted(claims.of_updates)),
        _forms_of(lowered),
        effort,
    )
    start = perf_counter()
    if (kept := find_verdict(effort.verdicts, content)) is not None:
        return replace(kept, seconds=perf_counter() - start)
    verdict = judge()
    keep_verdict(effort.verdicts, content, verdict)
    return verdict


def _content(*what: object) -> object:
    """What the verdict on two versions rests on: their texts, and what is known and asked of them; of the effort what
    may change a good verdict; and all sources of the package, because what is plain and in one form is made by them."""
    *known, effort = what
    assert isinstance(effort, Effort)
    asked = (effort.level, effort.seed, effort.runs, effort.prove, effort.accept_runs, effort.require)
    return version_of_package(), asked, known


def _forms_of(lowered: object) -> tuple[str, ...]:
    """The texts on the way of a lowered module to linalg; of others none."""
    if not isinstance(lowered, Lowered):
        return ()
    graph, written = lowered.named(), lowered.in_one_form
    return () if graph is None or written is None else (lowered.stablehlo, to_text(graph), to_text(written))


def _verify_one_form(lowered: Lowered, effort: Effort) -> Verdict | None:
    """The verdict on what is written in one form before it becomes linalg; None where it becomes none.

    It is written once more, and judged on the way: names and inlined functions as a whole, then rewrite by rewrite.
    """
    graph, written = lowered.named(), lowered.in_one_form
    if graph is None or written is None:
        return None
    start, how = (
        perf_counter(),
        {name: getattr(effort, name) for name in ("accept_runs", "require", "patience", "timeout")},
    )
    named = _verify(lowered.stablehlo, to_text(graph), level="regions", jobs=effort.jobs, cache=effort.cache, **how)
    rewrites = Rewrites(effort)
    one_form(graph, rewrites)
    found = [replace(region, where=f"{region.where}, one form") for region in named.regions]
    found += rewrites.verdicts
    if to_text(graph) != to_text(written):
        reason = "the written module is not the judged one"
        found.append(RegionVerdict("main", "one form", (), (), status="not judged", reason=reason))
    return replace(named, regions=tuple(found), seconds=perf_counter() - start)


def compared_with(source: Source | Graph, lowered: Lowered, inputs: Inputs) -> tuple[str, Inputs]:
    """The module that XLA runs, to compare a consumer's runs of a lowered one with it, and the arguments for it.

    It is the module as it was given, unless the options ask for another one: bound sizes, one device, other
    floats, one more result, scatters that write inside, or single elements out of bounds.
    """
    asked, before = lowered.options, _text_of(source, dict(lowered.options.bind))
    if asked.one_device or asked.checked or asked.assume_in_bounds or other_floats_of(asked):
        plain = plain_form(read(before), asked, lowered.registry)
        before = plain.given or plain.text
        inputs = _cast_inputs(_narrow_inputs(inputs, plain.demotion), plain.floats)
    before = Stated(registry_of(lowered.registry), asked.target).of(before)
    return (with_single_elements(mlir.parse_module(before)) if asked.oob == "spec" else before), inputs


def _inside(target: Target, lowered: object) -> frozenset[str]:
    """The ops that must stay in bounds on a target; not where it is known that some scatters were left as they were."""
    has_safe = any(native.when == "safe" for native in target.keep)
    has_others = isinstance(lowered, Lowered) and bool(lowered.scatters_left)
    found = ((GATHER, target.gather == "in_bounds"), (SCATTER, has_safe and not has_others))
    return frozenset(op for op, is_asked in found if is_asked)


EFFORT = tuple(EffortKeywords.__annotations__)
"""The keywords of `verify` that are not those of `Options`."""


def _options_of(lowered: object, options: Options | None, keywords: Mapping[str, object]) -> Options:
    """What a module was lowered with, and what is said of it; of None nothing is said."""
    given = {name: value for name, value in keywords.items() if value is not None}
    return options_of(options, given, lowered.options if isinstance(lowered, Lowered) else None)


def _verify_plain(
    before: str, plain: PlainForm, *, near: bool, checked: bool, seed: int, runs: int
) -> ModuleVerdict | None:
    """The verdict on the plain form of a module; None where there was nothing to make plain."""
    demotion = plain.demotion
    is_changed = bool(plain.changes) and plain.text != before  # what a target accepts is told, and stays as it is
    if not is_changed and not (demotion and demotion.is_needed) and not checked:
        return None if plain.floats is None else ModuleVerdict("not run", reason=NUMBERS_CHANGE)
    if is_symbolic(before):
        return ModuleVerdict("not run", reason=OPEN_SIZES)
    text = plain.text if demotion is None else with_original_signature(plain.text, demotion)
    return verify_plain(before, text, seed=seed, runs=runs, memory_budget=MEMORY_BUDGET, near=near, checked=checked)


def _narrow_inputs(inputs: Inputs, demotion: Demotion | None) -> Inputs:
    if inputs is None or demotion is None or not demotion.is_needed:
        return inputs
    if not isinstance(inputs, Mapping):
        return narrow_arguments(inputs, demotion, "inputs")
    return {name: narrow_array(np.asarray(value), f"input {name!r}") for name, value in inputs.items()}


def _cast_inputs(inputs: Inputs, floats: Demotion | None) -> Inputs:
    """Inputs in the float types of the module with another float precision."""
    if inputs is None or floats is None:
        return inputs
    dtypes = {value.number: mlir.dtype_of(value.after) for value in floats.arguments}
    if not isinstance(inputs, Mapping):
        return [np.asarray(v).astype(dtypes[k]) if k in dtypes else np.asarray(v) for k, v in enumerate(inputs)]
    becomes = {mlir.dtype_of(v.before): mlir.dtype_of(v.after) for v in floats.arguments}
    given = {name: np.asarray(value) for name, value in inputs.items()}
    return {name: value.astype(becomes.get(value.dtype, value.dtype)) for name, value in given.items()}


def _text_of(source: Source | Graph, sizes: Mapping[str, int] | None = None) -> str:
    graph = source if isinstance(source, Graph) else read(source)
    return to_text(_bind(graph, sizes) if sizes else graph)


def _claims_of(lowered: Lowered) -> Check:
    def describe_broken(claims: Claims, scatter: mlir.RawOperation, values: Sequence[Any]) -> str:
        shape = mlir.static_shape(scatter.operands[0].type)
        indices, *updates = values
        updates_shape = mlir.static_shape(scatter.operands[len(scatter.operands) - 1].type)
        applied = apply(ScatterNumbers.of(scatter), shape, updates_shape, indices)
        return ", ".join(broken(claims, applied, updates))

    claimed = {r.number: r.claims for r in lowered.records if r.rule and r.claims is not None}
    return Check(claimed, frozenset(number for number, claims in claimed.items() if claims.is_uniform), describe_broken)


def more_careful(
    source: Source | Graph, lowered: Lowered, verdict: Verdict, judge: Callable[[Lowered], Verdict]
) -> tuple[Lowered, Verdict]:
    """A lowered module and its verdict; made anew without the ranges that loops keep, if it is verified then alone.

    The proof of such a range is an induction. Runs of a loop's body, whose inputs are free, do not show it. What the
    clock ended is not tried once more.
    """
    if verdict.ok or verdict.differs or verdict.is_late or not lowered.options.loop_ranges:
        return lowered, verdict
    options = replace(lowered.options, loop_ranges=False)
    careful = lower(source, options=options, name=lowered.graph.name, registry=lowered.registry)
    if careful.stablehlo != lowered.stablehlo and (again := judge(careful)).ok:
        return careful, again
    return lowered, verdict


def verify_lowered(
    source: Source | Graph, lowered: Lowered, level: Level, *, cache: str | PathLike[str] | None = None
) -> Lowered:
    """Verify a lowered module, and lower it more carefully if that fails; else raise DifferenceError."""
    judge = partial(verify, source, level=level, cache=cache)
    lowered, verdict = more_careful(source, lowered, judge(lowered), judge)
    require_ok(verdict, lowered.graph.name, "lowered")
    return lowered


def require_ok(verdict: Verdict, name: str, what: str) -> Verdict:
    """A good verdict; any other one raises DifferenceError about the module of this name."""
    if not verdict.ok:
        how = "computes something else" if verdict.differs else "is not verified: some of it was only run"
        raise DifferenceError(
            name,
            f"the {what} module {how}",
            facts=verdict.summary(),
            nearest=tuple(verdict.lines()[:1]),
            next_step=f"hl.verify(source, {what}).lines() says all of it; please report what differs",
        )
    return verdict
