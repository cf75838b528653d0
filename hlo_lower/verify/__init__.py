"""Verification: a translation validator for StableHLO, from two texts and nothing else, whoever wrote the second one.

The two modules are aligned; what they do not have in common falls into regions; each region is judged as a function of
its inputs, and the whole module is run. Nothing of the analysis, the rules or the rewriting is used here, so that no
mistake of theirs can hide itself.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import Any, Unpack

from hlo_lower.base.arguments import short_repr
from hlo_lower.base.errors import InputError
from hlo_lower.base.former_names import with_new_names
from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_module
from hlo_lower.ir.shapes.given_sizes import SizesError
from hlo_lower.ops import names
from hlo_lower.verify.align.align import Aligner, BodyPair
from hlo_lower.verify.align.angles import QUADRANTS, with_angles_in_place
from hlo_lower.verify.align.divisions import divisions_written_out
from hlo_lower.verify.align.drawn_bits import draws_written_out
from hlo_lower.verify.align.in_order import TOLD, forget_orders, orders_told
from hlo_lower.verify.align.signed_bits import read_on_signed
from hlo_lower.verify.claim_checks import Check, ClaimsVerdict, check_claims
from hlo_lower.verify.drive.indices import PROMISED, overhanging, with_single_elements, with_told_starts
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.drive.sample_sizes import aimed_sizes, is_open, sizes_of_module
from hlo_lower.verify.effort import LEVELS, Assumed, Effort, EffortKeywords, Inputs, Level, Progress
from hlo_lower.verify.judges.devices import devices_of
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.judges.judge import Terms
from hlo_lower.verify.judges.silent_attributes import make_stable
from hlo_lower.verify.module_runs import WholeModules, verify_module, verify_plain
from hlo_lower.verify.patience import LateError, at_most, deadline_of, patience
from hlo_lower.verify.pull.solver import require
from hlo_lower.verify.read.interface import composite_differences, effect_differences, interface_differences
from hlo_lower.verify.read.partitions import may_speak, on_one_device
from hlo_lower.verify.read.program import TOO_DEEP, Program, TooLargeError
from hlo_lower.verify.region_processes import RegionProcesses
from hlo_lower.verify.region_verdict import RegionVerdict
from hlo_lower.verify.regions import ANOTHER_ORDER, NO_RUN_SHOWS, RegionJudge
from hlo_lower.verify.run import MEMORY_BUDGET, CannotRunError, module_over_budget, parse_or_refuse, read_signature
from hlo_lower.verify.verdict import LARGE_AND_EQUAL, ModuleVerdict, Verdict

__all__ = [
    "LEVELS",
    "MEMORY_BUDGET",
    "Assumed",
    "Effort",
    "EffortKeywords",
    "Inputs",
    "Level",
    "ModuleVerdict",
    "Progress",
    "RegionVerdict",
    "Verdict",
    "verify",
    "verify_plain",
]


IN_BODY = " > "
"""In the way to a region: it stands in a body of a loop or branch."""

SMALL_RUN = 64 << 20
"""Bytes of arguments and results up to which a module is run also where all of its regions are equal."""

ASSUMED = Assumed()
"""Nothing beyond what XLA does."""


def verify(
    before: str | bytes,
    after: str | bytes,
    assumed: Assumed = ASSUMED,
    *,
    inside: Collection[str] = (),
    memory_budget: int = MEMORY_BUDGET,
    rules: Mapping[int, str] | None = None,
    claims: Check | None = None,
    **keywords: Unpack[EffortKeywords],
) -> Verdict:
    """Verify that two modules are the same function.

    Args:
      before, after: the two versions, text or bytes.
      assumed: what they mean and promise beyond their texts.
      inside: ops of the second version that must not point out of bounds, as a consumer does not look: `reads.GATHER`,
        `reads.SCATTER`.
      memory_budget: bytes for level "auto", of arguments and results and of what constants take in a run.
      rules: by the number of a scatter of the first version, the rule that lowered it.
      claims: evaluates what the converter claims of a scatter's indices (`hlo_lower.verify.claim_checks`).
      keywords: of `Effort`: how far it goes, on which inputs, and who is told.

    Raises:
      InputError: a version does not parse, the inputs do not fit, an argument is of a wrong type or none of its
        choices, or z3 is not installed.
    """
    start = perf_counter()
    _check_sources(before, after)
    effort = Effort(**with_new_names(keywords))
    deadline = deadline_of(effort.timeout)
    tell, level, inputs = effort.tell, effort.level, effort.inputs
    context = mlir.shared_context(len(before) + len(after))
    first, second = parse_or_refuse(before, "before", context), parse_or_refuse(after, "after", context)
    # From here on as text: what was read is what is run, whatever form it came in.
    is_told = forget_orders(first, second)  # of its own versions it finds that out
    changed = make_stable(first, second) or is_told
    texts = [_text(b"" if changed else source, module) for source, module in ((before, first), (after, second))]
    if assumed.oob == "spec" and overhanging(second):  # XLA, which runs it, would drop whole windows
        texts = [with_single_elements(module) for module in (first, second)]
    (one, _), (other, angles) = map(with_angles_in_place, texts)
    if [one, other] != texts:
        texts = [one, other]
        first, second = (mlir.parse_module(text, context) for text in texts)
    if effort.prove:
        require()
    is_proved = effort.prove and not assumed.reassociated
    terms = Terms(**vars(assumed), seed=effort.seed, prove=is_proved, cache=effort.verdicts)
    budget = None if level == "full" else memory_budget
    reason = "" if budget is None else module_over_budget(first, budget)

    def run_module(one: str, other: str) -> ModuleVerdict:
        if reason or deadline.is_over:
            return ModuleVerdict("not run", reason=f"{reason} (--verify full runs it)" if reason else deadline.reason)
        try:
            with at_most(effort.patience, deadline):
                return verify_module(one, other, assumed, effort, budget)
        except (TooLargeError, RecursionError) as error:
            return ModuleVerdict("not run", reason=f"it is too large to be run: {str(error).splitlines()[0]}")
        except LateError as late:
            return ModuleVerdict("not run", reason=str(late))

    def compare_modules() -> tuple[list[str], list[RegionVerdict], ModuleVerdict | None, ClaimsVerdict | None]:
        whole = _for_all_sizes(first, second, terms) if is_open(first) else None
        if whole is not None and level == "regions":
            return [], whole, None, None
        sizes = sizes_of_module(first, inputs, "before", second)
        if sizes is not None:
            further, untried = aimed_sizes((first, second), sizes) if inputs is None and whole is None else ([], ())
            sizes += further
            interface, regions, module = _at_sizes(first, second, sizes, terms, tell, run_module, effort.jobs, whole)
            regions += [RegionVerdict("main", "the module", (), (), status="only run", reason=what) for what in untried]
            return interface, regions, None if level == "regions" else module, None
        with ThreadPoolExecutor(1) as pool:  # XLA compiles the whole modules while their regions are judged
            is_small = level == "full" or _bytes_of_run(first) <= SMALL_RUN
            running = pool.submit(run_module, *texts) if level != "regions" and is_small else None
            programs = Program(first), Program(second)

            def is_told_apart() -> bool:
                return running is not None and running.result().status == "differs"

            interface, regions = _compare_static(texts[0], texts[1], terms, tell, effort.jobs, programs, is_told_apart)
            if inside and not interface:
                regions += _reads(_with_orders(second, texts[1]), inside, terms, tell)
            if level != "regions" and running is None and any(region.status != "equal" for region in regions):
                running = pool.submit(run_module, *texts)
            module = None if running is None else running.result()
            if module is None and level != "regions":
                module = ModuleVerdict("not run", reason=LARGE_AND_EQUAL)
        if claims is None or interface:
            return interface, regions, module, None
        try:
            deadline.check()
            tell("claims", 0, 1)
            return interface, regions, module, check_claims(programs[0], claims, effort.seed)
        except LateError as late:
            return interface, [*regions, _not_compared(f"the converter's claims: {late}")], module, None

    try:
        with at_most(effort.patience, deadline):
            interface, regions, module, claimed = compare_modules()
    except LateError as late:
        interface, regions, claimed = [], [_not_compared(str(late))], None
        module = None if level == "regions" else ModuleVerdict("not run", reason=str(late))
    except (TooLargeError, RecursionError) as error:
        told = str(error) if isinstance(error, TooLargeError) else TOO_DEEP
        interface, module, claimed = [], None, None
        regions = [_not_compared(f"it is too large to be compared: {told}")]
    if module is not None and any(region.reason.startswith(ANOTHER_ORDER) for region in regions):
        module = replace(module, status="not run", reason=ANOTHER_ORDER, difference=None, on_path=())
    regions = [_with_rules(_run_at_least(region, module), rules or {}) for region in regions]
    if angles and not interface:
        regions.append(RegionVerdict("main", "main", angles, angles, how="derived", laws=(QUADRANTS,)))
    return Verdict(
        tuple(regions),
        tuple(interface),
        module,
        perf_counter() - start,
        level == "full",
        accepts_runs=effort.accept_runs,
        requires=effort.require,
        claims=claimed,
    )


def _bytes_of_run(module: mlir.RawModule) -> int:
    """The memory of a module's arguments and results; 0 where it cannot be run."""
    try:
        return read_signature(module).bytes
    except CannotRunError:
        return 0


def _check_sources(before: object, after: object) -> None:
    """Check that the two versions are text or bytes."""
    for name, source in (("before", before), ("after", after)):
        if not isinstance(source, (str, bytes)):
            raise InputError(
                name,
                f"{short_repr(source)} is neither text nor bytes",
                facts=f"it is of type {type(source).__name__}",
                next_step="hl.verify accepts graphs, paths and everything else that hl.read accepts",
            )


def _compare_static(
    before: str,
    after: str,
    terms: Terms,
    tell: Progress,
    jobs: int,
    programs: tuple[Program, Program],
    is_told_apart: Callable[[], bool] = lambda: False,
) -> tuple[list[str], list[RegionVerdict]]:
    """The differences of two modules of static shapes beside what they compute, and their regions."""
    whole = WholeModules(before, after)
    texts = [before, after]
    first, second = programs
    interface = interface_differences(first, second, one_device=terms.one_device)
    if max(devices_of(before), devices_of(after)) > 1 or any(map(may_speak, texts)):
        alone = [on_one_device(text) for text in (before, after)]
        if None not in alone:
            texts = [text for text in alone if text is not None]
            context = mlir.shared_context(sum(map(len, texts)))
            first, second = (Program(mlir.parse_module(text, context)) for text in texts)
    if interface:  # what they compute cannot be compared where the signatures differ
        return interface, []
    for read in (draws_written_out, divisions_written_out, read_on_signed):
        if (written := read(texts)) is not None:
            texts = written
            context = mlir.shared_context(sum(map(len, texts)))
            first, second = (Program(mlir.parse_module(text, context)) for text in texts)
    regions: list[RegionVerdict] = []
    processes = (
        RegionProcesses((texts[0], texts[1]), (before, after), terms, jobs, patience().given, patience().deadline)
        if jobs > 1
        else None
    )
    judge = RegionJudge(
        first,
        second,
        terms,
        shared_interpreter(),
        whole.differ,
        lambda done, all_of: tell("regions", done, all_of),
        processes,
        is_told_apart,
    )
    promised: dict[mlir.RawOperation, tuple[str, ...]] = {}
    orders: dict[mlir.RawOperation, int] = {}
    for name in first.entries:
        found = judge.verify(name)
        promised |= {op.raw: flags for op, flags in judge.promised}
        orders |= _orders_told([pair for pair in judge.pairs if pair.around is None])
        interface += [what for pair in judge.pairs for what in effect_differences(pair)]
        if first.has_composites and second.has_composites:
            interface += composite_differences(judge.pairs)
        for region in found:
            small = whole.minimise(name, region.inputs) if region.status == "differs" else region.inputs
            regions.append(replace(region, inputs=small))
    with mlir.active(second.raw.context):
        for op, dim in orders.items():  # only now: an operation's hash is that of its attributes, too
            op.attributes[TOLD] = mlir.i64_attribute(dim)
    return interface, regions if interface else [*regions, *_promises_kept(second.raw, promised, terms, tell)]


def _orders_told(pairs: Sequence[BodyPair]) -> dict[mlir.RawOperation, int]:
    """Operations of the second version that give what the first one has put in order, and along which dim."""
    if not any(op.name == names.SORT for pair in pairs for op in pair.first.body.ops):
        return {}
    [name], program = {pair.where[0] for pair in pairs}, pairs[0].first.program
    try:
        return orders_told(pairs, Ranges(program, {}, function=name).of)
    except LateError:
        return {}


def _with_orders(module: mlir.RawModule, text: str) -> str:
    """The text of a module, with what was noted at its operations."""
    is_told = mlir.any_operation(module.operation, lambda op: TOLD in op.attributes)
    return mlir.print_module(module, locations=True) if is_told else text


def _promises_kept(
    module: mlir.RawModule, promised: Mapping[mlir.RawOperation, Sequence[str]], terms: Terms, tell: Progress
) -> list[RegionVerdict]:
    """Whether operations of a module keep what they promise, which those that they stand for do not."""
    if not promised:
        return []
    if not all(mlir.is_static(value.type) for op in promised for value in op.operands):
        return [_not_compared("what is promised of indices of dynamic shape")]
    with mlir.active(module.context):
        for op, flags in promised.items():
            op.attributes[PROMISED] = mlir.string_attribute(" ".join(flags))
        text = mlir.print_module(module, locations=True)
        for op in promised:
            del op.attributes[PROMISED]
    return _reads(text, (), terms, tell)


def _reads(text: str, ops: Collection[str], terms: Terms, tell: Progress) -> list[RegionVerdict]:
    """Whether the gathers or scatters of a module stay inside, whatever its arguments are, and marked ones keep what
    they promise.

    One that reads where a loop with others points is looked at beside a loop without: that can be entered.
    """
    what = "reads inside" if ops else "promises kept"
    try:
        patience().deadline.check()
        found = _reads_of(text, ops, terms, tell, in_loops=True)
        within = [verdict for verdict in found if IN_BODY in verdict.where]
        if within and any(verdict.status == "not judged" and verdict not in within for verdict in found):
            found = [*within, *_reads_of(text, ops, terms, tell, in_loops=False)]
    except LateError as late:
        return [_not_compared(f"{what}: {late}")]
    return [replace(verdict, where=f"{verdict.where}, {what}", scatters=()) for verdict in found]


def _reads_of(text: str, ops: Collection[str], terms: Terms, tell: Progress, *, in_loops: bool) -> list[RegionVerdict]:
    context = mlir.shared_context(2 * len(text))
    texts = [with_told_starts(text, ops, clamped=clamped, in_loops=in_loops) for clamped in (False, True)]
    if texts[0] == texts[1]:  # nothing is told
        return []
    first, second = (Program(mlir.parse_module(told, context)) for told in texts)
    for body in (*first.entries.values(), *second.entries.values()):
        body.returned = ()  # it is the same in both: what matters is what is told
    strict = replace(terms, is_strict=True, reassociated=False)
    judge = RegionJudge(
        first, second, strict, shared_interpreter(), _unknown, lambda done, all_of: tell("reads", done, all_of)
    )
    return [verdict for name in first.entries for verdict in judge.verify(name)]


def _not_compared(reason: str) -> RegionVerdict:
    """What stands for two modules that could not be compared."""
    return RegionVerdict("main", "the module", (), (), status="not judged", reason=reason)


def _unknown(name: str, inputs: Mapping[int, Any]) -> None:
    """Nothing is known of the whole modules: the operations that tell of starts do not run."""


def _for_all_sizes(first: mlir.RawModule, second: mlir.RawModule, terms: Terms) -> list[RegionVerdict] | None:
    """The verdict on two versions with symbolic sizes that are derived for all of them; None where it was not found."""
    programs = Program(first), Program(second)
    has_others = any(program.entries.keys() != {"main"} for program in programs)
    if has_others or interface_differences(*programs, one_device=terms.one_device):
        return None
    judge = RegionJudge(*programs, terms, shared_interpreter(), _unknown, lambda _, __: None)
    found = judge.derived_for_all_sizes("main")
    is_alike = found is not None and not any(map(effect_differences, judge.pairs)) and not _open_composites(*programs)
    return found if is_alike else None


def _at_sizes(
    first: mlir.RawModule,
    second: mlir.RawModule,
    sizes: Sequence[Mapping[str, int]],
    terms: Terms,
    tell: Progress,
    run_module: Callable[[str, str], ModuleVerdict],
    jobs: int,
    whole: list[RegionVerdict] | None = None,
) -> tuple[list[str], list[RegionVerdict], ModuleVerdict | None]:
    """Verify two versions with symbolic sizes, with each choice of them; run them alone if `whole` holds for all."""
    interface = _open_composites(Program(first), Program(second))
    regions: list[RegionVerdict] = list(whole or ())
    verdicts: list[ModuleVerdict] = []
    told: list[str] = []
    for chosen in sizes:
        told.append(", ".join(f"{name}={size}" for name, size in chosen.items()))
        try:
            bound = bind_module(first, chosen)
        except SizesError as error:
            return interface, [*regions, _not_compared(f"at {told[-1]}: {error.what}")], None
        try:
            other = bind_module(second, chosen)
        except SizesError as error:
            refused = f"at {told[-1]} the second version rejects the sizes: {error.what}"
            if is_open(second):
                return [refused], [], ModuleVerdict("not run", reason=refused)
            return interface, [*regions, _not_compared(f"{refused}; --bind gives those that it was made with")], None
        texts = mlir.print_module(bound), mlir.print_module(other)
        differences, found = (
            ([], [])
            if whole is not None
            else _compare_static(*texts, terms, tell, jobs, (Program(bound), Program(other)))
        )
        interface += [f"at {told[-1]}: {what}" for what in differences]
        regions += [replace(region, where=f"{region.where} at {told[-1]}", sizes="chosen") for region in found]
        verdicts.append(run_module(*texts))
        if verdicts[-1].status != "equal" or differences:
            break
    if not verdicts:
        return interface, [_not_compared("no sizes were found that fit it; --bind gives them")], None
    notes = dict.fromkeys(note for verdict in verdicts for note in verdict.not_exercised)
    last = verdicts[-1]
    module = replace(
        last,
        runs=sum(verdict.runs for verdict in verdicts),
        reason=f"at {told[-1]}: {last.reason}" if last.reason else "",
        not_exercised=tuple(notes),
        how=f"{last.how}, at {' and at '.join(told)}",
    )
    return interface, regions, module


def _open_composites(first: Program, second: Program) -> list[str]:
    """How composites of two modules with symbolic sizes differ: with sizes they are written out."""
    if not (first.has_composites and second.has_composites):
        return []
    aligner = Aligner(first, second, frozenset(), {})
    return [
        what for name in first.entries if name in second.entries for what in composite_differences(aligner.align(name))
    ]


def _run_at_least(region: RegionVerdict, module: ModuleVerdict | None) -> RegionVerdict:
    """A region that could not be judged was only run where the whole module was, if runs can tell anything of it."""
    is_run = module is not None and module.status == "equal" and not region.reason.startswith(NO_RUN_SHOWS)
    if region.status == "not judged" and is_run:
        return replace(region, status="only run", reason=f"only in the module's runs: {region.reason}")
    return region


def _with_rules(region: RegionVerdict, rules: Mapping[int, str]) -> RegionVerdict:
    return replace(region, rules=tuple(dict.fromkeys(rules[n] for n in region.scatters if n in rules)))


def _text(given: str | bytes, module: mlir.RawModule) -> str:
    return given if isinstance(given, str) else mlir.print_module(module, locations=True)
