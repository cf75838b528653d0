"""Judge a region: both pieces as functions of its inputs, run on driven inputs and compared bit for bit.

Four who may say what the first piece gives, each left out, with the reason, where it is known to be wrong or speaks of
another policy:

- XLA at level 0 (`run.COMPILER_OPTIONS`), with a second look without fusion where it differs;
- the scatters' and gathers' definitions in NumPy (`hlo_lower.verify.judges.stepwise`), the only judge of windows that
  overhang under oob="spec" beside the next one;
- StableHLO's interpreter, in a child process, where XLA does not run a piece at all;
- and for the second piece the interpreter again, on runs with signed zeros: XLA runs `x + 0.0` as `x` at every level,
  and so hides a piece that loses the sign of zeros (traps 20, 46).
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.child import Stopwatch
from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import Rounds, ops_with
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.loops import may_not_end
from hlo_lower.verify.align.one_nan import NOT_DRAWN
from hlo_lower.verify.align.piece import Pieces, pieces_of
from hlo_lower.verify.bounds.compare import (
    Difference,
    are_apart,
    first_difference,
    first_difference_beyond,
    is_inexact,
    only_signs_of_zeros,
    overflow_taken,
    wide,
)
from hlo_lower.verify.bounds.rounding_bounds import RUNS as DISTURBED
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds, loose_shares
from hlo_lower.verify.cache import VerdictCache
from hlo_lower.verify.drive.aims import Aims, Watch
from hlo_lower.verify.drive.driven_runs import LEAST_OF_LARGE, VALUES, Run, kept_within, runs_of
from hlo_lower.verify.drive.input_roles import Roles, constants_apart, may_overhang, roles_of
from hlo_lower.verify.drive.outcomes import rounded_integers, undriven
from hlo_lower.verify.effort import Assumed
from hlo_lower.verify.judges.definitions import Hits, UnsupportedRegionError
from hlo_lower.verify.judges.devices import (
    LOOP_LIMIT,
    Runnable,
    TookTooLongError,
    compile_anywhere,
    piece_executable,
)
from hlo_lower.verify.judges.interpreter import Interpreter, InterpreterError, why_interpreter_errs
from hlo_lower.verify.judges.stepwise import NoReferenceError, Stepwise
from hlo_lower.verify.judges.xla_defects import why_xla_aborts, why_xla_errs_in
from hlo_lower.verify.patience import patience
from hlo_lower.verify.read.program import Op, location_of, ops_within
from hlo_lower.verify.run import MEMORY_LIMIT, CannotRunError, are_op_by_op

Array = NDArray[Any]

FAILURES_KEPT = 16
"""Runs in which the pieces differ that are kept, to be looked for where the inputs are computed."""

INTERPRETED = ((1 << 13, 12), (1 << 16, 4), (1 << 19, 1))
"""How many elements the operations of a piece give, and how many runs the interpreter judges of one of at most so many:
it takes about a microsecond for each."""

ZEROS_ASKED = 3
"""Runs in which the interpreter is asked whether XLA lost signs of zeros; then it is taken to do so in this piece."""

DRAWN = 3
"""Times its bytes that an input takes while it is drawn: floats are drawn as f64."""

LATE_RUNS = 1
"""Runs that may take too long, a loop to the end of a counter's type, before the pieces are left."""

LOOP_WORK = 64
"""Iterations of a loop that are counted for the interpreter's work."""

ROUNDING_UNITS = 1 << 12
"""Machine epsilons of the largest result up to which a difference is looked at a second time."""

VAGUE = 0.5
"""The share of a result that rounding alone moves by more than half of itself, in every run, above which nothing is
known of it."""


INEXACT = ops_with(rounds=Rounds.FREELY) - {names.SQRT, names.SCATTER, names.MAP}
"""Operations on floats whose results are not one right number, or depend on an order: the judges round each its own.

All of them give the same square root. Scatters have an order, and what they and maps apply is looked at by itself."""


NOWHERE = Hits(0, 0, 0, 0)
"""Where the windows of no run lay."""


@dataclass
class Judgement:
    """What was found of two pieces.

    Attributes:
      status: "equal", "differs", or "not judged".
      runs: how many.
      judges: who compared.
      places: where the windows of the first piece's scatters lay.
      difference: the first one, with its judge and the run's aim.
      reason: why it was not judged.
      excluded: judges that were left out of some or all runs, each with the reason.
      failures: runs in which the pieces differ.
      outputs: numbers of the outputs that differ in them.
      is_rounding: whether no more differs in them than roundings may.
      seen: distinct values at each place of `Pieces.seen`, over all runs.
      doubt: inputs for which the solver has the pieces differ, though runs of them do not.
      is_late: whether runs took too long.
      not_exercised: what no run had: outcomes of comparisons and choices, branches, bodies of loops.
      from_cache: whether an earlier verification found it.
    """

    status: Literal["equal", "differs", "not judged"] = "equal"
    runs: int = 0
    judges: tuple[str, ...] = ()
    places: Hits = NOWHERE
    difference: str = ""
    reason: str = ""
    excluded: tuple[str, ...] = ()
    failures: list[Run] = field(default_factory=list[Run])
    outputs: set[int] = field(default_factory=set[int])
    is_rounding: bool = True
    doubt: tuple[Array, ...] | None = None
    seen: list[set[bytes]] = field(default_factory=list[set[bytes]])
    is_late: bool = False
    not_exercised: tuple[str, ...] = ()
    from_cache: bool = False


@dataclass(frozen=True)
class Terms(Assumed):
    """How regions are judged, beside what is assumed.

    Attributes:
      seed: of the drawn inputs.
      prove: whether more time is taken to derive a region, and what speaks against it is told.
      is_strict: whether the regions within a loop have to be equal themselves, also where its results are the same.
      cache: where verdicts are kept; None: nowhere.
    """

    seed: int = 0
    prove: bool = False
    is_strict: bool = False
    cache: VerdictCache | None = None


def judge(
    region: Region,
    pieces: Pieces,
    terms: Terms,
    interpreter: Interpreter,
    *,
    told: Sequence[Run] = (),
    more: "AimedRuns | None" = None,
    stop_at_first: bool = False,
) -> Judgement:
    """Judge the two pieces of a region as they stand.

    Args:
      region: the region.
      pieces: its pieces, the values that are watched within the first one among what that returns.
      terms: how.
      interpreter: StableHLO's.
      told: runs before the driven ones.
      more: runs behind them.
      stop_at_first: whether the first difference ends it.
    """
    try:
        return _Case(region, terms, interpreter, pieces).judge(told, more, stop_at_first=stop_at_first)
    except (CannotRunError, mlir.MlirSyntaxError) as error:
        return Judgement("not judged", reason=str(error))


class AimedRuns(Protocol):
    """Runs that are made while others are looked at: told what the watched values were, asked for the next ones."""

    def next(self, case: "_Case") -> Iterator[Run]: ...


class _Case:
    """Two pieces with everything that is compiled for them."""

    def __init__(self, region: Region, terms: Terms, interpreter: Interpreter, pieces: Pieces) -> None:
        self._region, self._terms, self._interpreter, self._pieces = region, terms, interpreter, pieces
        self.excluded: dict[str, str] = {}
        self.roles: Roles = roles_of(region)
        drawn = DRAWN * sum(prod(role.shape) * role.dtype.itemsize for role in self.roles.inputs)
        if drawn > MEMORY_LIMIT:
            raise CannotRunError(
                f"{drawn / 2**30:,.0f} GiB to draw its inputs, more than half of this machine's memory"
            )
        self._count = len(region.outputs)
        self._vague, self._vague_now = [1.0] * self._count, [0.0] * self._count
        self._is_nan = [True] * self._count
        if self.roles.not_said:
            self.excluded["not said"] = self.roles.not_said
        if any(role.has_one_nan for role in self.roles.inputs):
            self.excluded["one NaN"] = NOT_DRAWN
        context = region.pair.first.program.raw.context
        modules = [mlir.parse_module(text, context) for text in (pieces.first, pieces.second)]
        aborts = [why_xla_aborts(module) for module in modules]
        self._native = None if aborts[0] else self._compiled_native(modules[0])
        if aborts[0]:
            self.excluded["xla"] = f"XLA: is not a judge: {aborts[0]}"
        self._unfused: tuple[Runnable, Runnable] | None = None
        self._misread = tuple(
            why_interpreter_errs(side.program, ops, outputs, terms.oob)
            for side, ops, outputs in (
                (region.pair.first, region.first, [o.first for o in region.outputs]),
                (region.pair.second, region.second, [o.second for o in region.outputs]),
            )
        )
        self._second: Runnable = self._runner(modules[1], aborts[1])
        self._bounds: OwnBounds | None = None
        self._zeros_asked, self._xla_loses_signs = 0, False
        self._stepwise = self._reference()
        self._is_exact = not any(_is_inexact(region, op) for op in ops_within(region.first))
        work = work_of(region.pair.second, region.second)
        self._work, self._spent = work_of(region.pair.first, region.first), 0
        self._interpreted_runs = next((runs for most, runs in INTERPRETED if work <= most), 0)
        self._may_interpret = self._interpreted_runs > 0
        self._interpreted = 0
        self.judges: dict[str, None] = {}
        values = [role.values for role in self.roles.inputs]
        how = {"only_entered": terms.is_strict, "no_nan": bool(self.roles.not_said)}
        self._watch = Watch(region, pieces, values, piece_executable, **how)

    def _compiled_native(self, module: mlir.RawModule) -> Runnable | None:
        if reason := why_xla_errs_in(module):
            self.excluded["xla"] = f"XLA: {reason}"
            return None
        try:
            return piece_executable(self._pieces.first)
        except CannotRunError as error:
            self.excluded["xla"] = f"XLA: {error}"
            return None

    def _runner(self, module: mlir.RawModule, aborts: str) -> Runnable:
        """What runs the second piece: XLA; where it errs the scatters' definitions, where it would end the process the
        interpreter."""
        if aborts:
            if self._misread[1]:
                raise CannotRunError(f"XLA: {aborts}; the interpreter: {self._misread[1]}")
            return _InInterpreter(self._pieces.second, self._interpreter, aborts)
        if reason := why_xla_errs_in(module):
            self.excluded["xla second"] = f"XLA, on the second piece: {reason}"
            return _ByDefinition(self._region, self._terms, reason)
        return piece_executable(self._pieces.second)

    def _reference(self) -> Stepwise | None:
        try:
            return Stepwise(self._region, self._terms.oob)
        except (NoReferenceError, CannotRunError) as error:
            if any(op.name == names.SCATTER for op in ops_within(self._region.first)):
                self.excluded["reference"] = f"reference: {error}"
            return None

    # --- runs ---

    def judge(self, told: Sequence[Run], more: "AimedRuns | None", *, stop_at_first: bool) -> Judgement:
        """Run both pieces on all inputs and compare them."""
        found = Judgement(seen=[set() for _ in self._pieces.seen])
        late, watch, limit = 0, Stopwatch(), patience().of_region
        for given in chain(told, self._runs(more)):
            run = kept_within(given, self.roles)
            if patience().deadline.is_over and not found.failures:
                reason = patience().deadline.reason
                return Judgement("not judged", runs=found.runs, reason=reason, excluded=self._left_out(), is_late=True)
            try:
                differs = self._run(run, found)
            except TookTooLongError as error:
                late += 1
                self.excluded["late"] = f"XLA: {error}"
                if late > LATE_RUNS:
                    reason, excluded = str(error), self._left_out()
                    return Judgement("not judged", runs=found.runs, reason=reason, excluded=excluded, is_late=True)
                continue
            except CannotRunError as error:
                return Judgement("not judged", runs=found.runs, reason=str(error), excluded=self._left_out())
            if differs is None:
                continue
            found.runs += 1
            self._spent += self._work
            if differs:
                found.status = "differs"
                found.difference = found.difference or f"{run.aim}: {differs}"
                found.failures.append(run)
                if stop_at_first or len(found.failures) >= FAILURES_KEPT:
                    break
            if self._spent >= VALUES and found.runs >= LEAST_OF_LARGE:
                self.excluded["many"] = f"further runs, because each gives {self._work:,} values"
                break
            if watch.seconds > limit:
                if found.failures:
                    break
                patience().charge(watch.seconds)
                reason = patience().describe_limit(f"its {found.runs} runs took")
                return Judgement("not judged", runs=found.runs, reason=reason, excluded=self._left_out(), is_late=True)
        found.judges, found.excluded = tuple(self.judges), self._left_out()
        if found.status == "equal":
            found.not_exercised = self._describe_missed()
        if found.status == "equal" and not self.judges:
            found.status, found.reason = "not judged", "; ".join(found.excluded) or "no run could be judged"
        if found.status == "equal" and any(self._is_nan):
            found.status, found.reason = "not judged", f"result {self._is_nan.index(True)} is NaN in every run"
        if found.status == "equal" and max(self._vague, default=0.0) > VAGUE:
            share = f"{max(self._vague):.0%} of result {self._vague.index(max(self._vague))}"
            found.status, found.reason = "not judged", f"in every run rounding alone moves {share} by half of itself"
        return found

    def _describe_missed(self) -> tuple[str, ...]:
        """What no run had, though it may be."""
        return (
            *self._watch.describe_missed(),
            *_beyond_reach(self._region, self.roles.reach),
            *map(str, self.roles.twins),
            *constants_apart(self._region, self.roles.twins),
            *undriven(self._region),
            *rounded_integers([(o.program, o.ranges) for o in self._watch.outcomes]),
        )

    def _left_out(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.excluded.values()))

    def _runs(self, more: "AimedRuns | None") -> Iterator[Run]:
        yield from runs_of(self.roles, [self._terms.seed], self._work, mild=self._terms.reassociated)
        if more is not None:
            yield from more.next(self)
        if not self._terms.is_strict:
            yield from self._watch.next()

    def run_watched(self, arguments: Sequence[Array]) -> list[Array]:
        """The first piece's results at the watched values."""
        behind = self._count + len(self._pieces.seen)
        return self._native.run(arguments)[self._count : behind] if self._native is not None else []

    def _run(self, run: Run, found: Judgement) -> str | None:
        """One run: "" where all agree, what differs, or None where the run does not count."""
        reference, hits = self._by_definition(run)
        if self._terms.trust_flags and self._violates_claims(hits or ()):
            return None
        found.places = sum(hits or (), found.places)
        overhangs = None if hits is None else any(hit.overhanging for hit in hits)
        expectations: list[tuple[str, list[Array]]] = []
        if self._native is not None and self._may_judge_policy(overhangs):
            results = self._native.run(run.arguments)
            behind = self._count + len(found.seen)
            for values, value in zip(found.seen, results[self._count : behind], strict=True):
                values.add(value.tobytes())
            expectations.append(("XLA", results[: self._count]))
        if reference is not None:
            expectations.append(("reference", reference))
        if not expectations:
            expectations.extend(self._by_interpreter(run, overhangs))
        if not expectations:
            return None
        actual = self._second.run(run.arguments)
        self._vague_now = [0.0] * self._count
        for number, (name, expected) in enumerate(expectations):
            self.judges[name] = None
            difference = self._compare(name, expected, actual, run, agrees_with_another=number > 0)
            if difference is not None:
                found.outputs.add(difference.result)
                found.is_rounding = found.is_rounding and _may_be_rounding(expected, actual)
                return f"{name} says {difference}"
        self._watch.add(run)  # behind the comparison: where all runs differ nothing is counted
        known = [share if not _is_all_nan(one) else 1.0 for share, one in zip(self._vague_now, actual, strict=True)]
        self._vague = list(map(min, self._vague, known))
        self._is_nan = [known and _is_all_nan(result) for known, result in zip(self._is_nan, actual, strict=True)]
        return self._signed_zeros(run, reference, found)

    def _may_judge_policy(self, overhangs: bool | None) -> bool:
        """Whether XLA's policy is the one that is asked for, or the same on this run."""
        if self._terms.oob == "xla" or not may_overhang(self._region.first):
            return True
        if overhangs is None:
            self.excluded["xla windows"] = "XLA: drops whole windows, and where they lie is not known"
            return False
        if overhangs:
            self.excluded["xla windows"] = "XLA: drops whole windows, not judged where one overhangs"
        return not overhangs

    def reaching(self, slot: int, target: Array, runs: Sequence[Run]) -> Iterator[Run]:
        """Runs, made from others, that try to make a watched value a target."""
        for outcomes in self._watch.outcomes[:1]:
            value = outcomes.program.entries["main"].returned[self._count + slot]
            with suppress(CannotRunError):
                yield from Aims(outcomes, piece_executable, runs).reaching(value, target)

    def _by_definition(self, run: Run) -> tuple[list[Array] | None, tuple[Hits, ...] | None]:
        """The results, and where windows lay; None where that is not known."""
        if self._stepwise is None:
            return None, None
        try:
            stepped = self._stepwise.run(run.arguments)
        except UnsupportedRegionError as error:
            self.excluded["reference"] = f"reference: {error}"
            return None, None
        return stepped.results, stepped.hits

    def _violates_claims(self, hits: Sequence[Hits]) -> bool:
        scatters = [op for op in self._region.first if op.name == names.SCATTER]
        return any(
            hit.most > 1 and mlir.is_true(op.raw, "unique_indices") for op, hit in zip(scatters, hits, strict=False)
        )

    def _by_interpreter(self, run: Run, overhangs: bool | None) -> Iterator[tuple[str, list[Array]]]:
        """What the interpreter says of the first piece: where nobody else can."""
        are_inside = self._stepwise is not None and not overhangs
        if self._misread[0] and not (are_inside and "windows" in self._misread[0]):
            self.excluded["interpreter"] = f"interpreter: {self._misread[0]}"
            return
        if not self._may_interpret:
            return
        try:
            yield "interpreter", self._interpreter.run(self._pieces.first, run.arguments)[: self._count]
        except InterpreterError as error:
            self._may_interpret = False
            self.excluded["interpreter"] = f"interpreter: {error}"

    def _only_zeros(self, expected: list[Array], actual: list[Array], run: Run) -> bool:
        """Whether the results differ in signs of zeros alone, and the interpreter finds the second piece right there:
        XLA loses signs, `0.0 + x` becomes `x`, and may be the one that errs. It is asked a few times."""
        if not only_signs_of_zeros(expected, actual):
            return False
        if self._zeros_asked < ZEROS_ASKED and self._may_interpret and not self._misread[1]:
            self._zeros_asked += 1
            try:
                found = first_difference(expected, self._interpreter.run(self._pieces.second, run.arguments))
            except InterpreterError:
                return False
            self._xla_loses_signs = found is None
        return self._xla_loses_signs

    def _compare(
        self, name: str, expected: list[Array], actual: list[Array], run: Run, *, agrees_with_another: bool
    ) -> Difference | None:
        """What differs, if anything. Where another judge has what the second piece gives, one that computes it in steps
        may round it otherwise."""
        found = first_difference(expected, actual)
        if found is None or self._only_zeros(expected, actual, run):
            return None
        in_steps = agrees_with_another and not self._is_exact and _may_be_rounding(expected, actual)
        is_rounded_otherwise = {
            "reference": in_steps or not self._rounds_alike(),
            "interpreter": not self._is_exact,
        }
        if self._terms.reassociated or is_rounded_otherwise.get(name, False):
            return self._beyond_bound(expected, actual, run)
        is_xla = name == "XLA" and not isinstance(self._second, _InInterpreter | _ByDefinition)
        if is_xla and not are_op_by_op(self._native, self._second) and _may_be_rounding(expected, actual):
            # A second look without fusion, which may contract a multiply and an add on one side only.
            try:
                if self._unfused is None:
                    texts = self._pieces.first, self._pieces.second
                    first, second = compile_anywhere([(text, "unfused") for text in texts], LOOP_LIMIT)
                    self._unfused = first, second
                results = [version.run(run.arguments)[: self._count] for version in self._unfused]
            except CannotRunError:
                return found
            return first_difference(results[0], results[1])
        return found

    def _rounds_alike(self) -> bool:
        return self._stepwise is not None and self._stepwise.rounds_correctly

    def _beyond_bound(self, expected: list[Array], actual: list[Array], run: Run) -> Difference | None:
        """The first element beyond the bound of its own rounding."""
        if self._bounds is None:
            self._bounds = OwnBounds(pieces_of(self._region).first, seed=self._terms.seed, work=self._work)
        self._spent += DISTURBED * self._work
        if self._terms.reassociated and run.is_large:
            self.excluded["large"] = "NaN and infinities of floats so large that the order of a sum decides"
            actual = overflow_taken(expected, actual)
        elif self.roles.not_said and any(is_inexact(e) and np.any(np.isinf(e)) for e in expected):
            actual = overflow_taken(expected, actual)
        if first_difference(expected, actual) is None:
            return None
        bounds = self._bounds.of(run.arguments, expected)
        for k, share in enumerate(loose_shares(bounds, expected)):
            if first_difference([expected[k]], [actual[k]]) is not None:
                self._vague_now[k] = max(self._vague_now[k], share)
        return first_difference_beyond(expected, actual, bounds)

    def _signed_zeros(self, run: Run, reference: list[Array] | None, told: Judgement) -> str:
        """Compare the second piece under the interpreter: "" where it agrees, or where it does not judge."""
        if not (run.is_special and self._may_interpret) or self._interpreted >= self._interpreted_runs:
            return ""
        if not self._is_exact and (self._terms.reassociated or any(map(_is_no_zero, run.arguments))):
            return ""
        if self._misread[1] or not any(_is_float(self._region, o.first) for o in self._region.outputs):
            return ""
        expected = reference if reference is not None and self._rounds_alike() else None
        self._interpreted += 1
        try:
            if expected is None:
                is_misread = bool(self._misread[0])
                if is_misread or any(op.name == names.SCATTER for op in ops_within(self._region.first)):
                    return ""
                expected = self._interpreter.run(self._pieces.first, run.arguments)[: self._count]
            actual = self._interpreter.run(self._pieces.second, run.arguments)
        except InterpreterError as error:
            self._may_interpret = False
            self.excluded["signed zeros"] = f"interpreter, on the second piece: {error}"
            return ""
        if not self._is_exact:  # rounded otherwise, perhaps, in the order of each piece: signs of zeros alone count
            pairs = zip(expected, actual, strict=True)
            actual = [np.where((a == 0) & (b == 0), b, a).astype(a.dtype) for a, b in pairs]
        found = first_difference(expected, actual)
        if found is not None and self._terms.reassociated:
            found = self._beyond_bound(expected, actual, run)
        self.judges["interpreter"] = None
        if found is None:
            return ""
        told.outputs.add(found.result)
        return f"the interpreter says {found}"


class _InInterpreter:
    """A piece that the interpreter runs in the place of XLA, whose compiler would end the process on it."""

    def __init__(self, text: str, interpreter: Interpreter, reason: str) -> None:
        self._text, self._interpreter, self._reason = text, interpreter, reason

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results."""
        try:
            return self._interpreter.run(self._text, arguments)
        except InterpreterError as error:
            raise CannotRunError(f"XLA: {self._reason}; the interpreter: {error}") from None


class _ByDefinition:
    """A second piece whose scatters and gathers NumPy computes, because XLA is known to be wrong about them."""

    def __init__(self, region: Region, terms: Terms, reason: str) -> None:
        self._reason = reason
        try:
            self._stepwise = Stepwise(region, terms.oob, 1)
        except NoReferenceError as error:
            raise CannotRunError(f"XLA: {reason}; the reference: {error}") from None

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results."""
        try:
            return self._stepwise.run(arguments).results
        except UnsupportedRegionError as error:
            raise CannotRunError(f"XLA: {self._reason}; the reference: {error}") from None


def _beyond_reach(region: Region, reach: int | None) -> Iterator[str]:
    """Integers that one piece computes with in another type than the other one, where no run of an open loop counts to
    the type's end; and such a loop of one piece for which the other one has none."""
    if reach is None:
        return
    loops = [
        [op for op in ops_within(ops) if op.name == names.WHILE and may_not_end(side, [op])]
        for side, ops in region.sides
    ]
    if not all(loops):
        yield from (f"the loop at {location_of(op.raw)}: no run counts beyond {reach}" for op in chain(*loops))
    made = [{side.program.dtype_of(op.results[0]) for op in _sums(ops)} for side, ops in region.sides]
    used = [{dtype for dtype in dtypes if dtype is not None and dtype.kind in "iu"} for dtypes in made]
    for (side, ops), others in zip(region.sides, used[::-1] if all(used) else (), strict=False):
        for op in _sums(ops):
            dtype = side.program.dtype_of(op.results[0])
            if dtype is not None and dtype.kind in "iu" and dtype not in others and np.iinfo(dtype).max > reach:
                yield f"the {op.short_name} at {location_of(op.raw)}: no run counts to the end of {dtype}"


def _sums(ops: Sequence[Op]) -> list[Op]:
    """The operations that give larger integers than they are given, those in loops included."""
    return [op for op in ops_within(ops) if op.name in (names.ADD, names.SUBTRACT, names.MULTIPLY)]


def _is_all_nan(result: Array) -> bool:
    """Whether a result is NaN everywhere, so that a run tells nothing of what is computed for it."""
    return is_inexact(result) and result.size > 0 and bool(np.all(result != result))


def _is_no_zero(array: Array) -> bool:
    """Whether an array holds floats that are no zeros."""
    return is_inexact(array) and bool(np.any(array != 0))


def _may_be_rounding(expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether a difference is so small, beside the largest magnitude of its result, that it may be a rounding."""
    return not any(
        are_apart(a, b, ROUNDING_UNITS * element_type_of(a.dtype).epsilon if is_inexact(a) else 0.0)
        or _differ_beyond_numbers(a, b)
        for a, b in zip(expected, actual, strict=True)
    )


def _differ_beyond_numbers(a: Array, b: Array) -> bool:
    """Whether NaN and infinities of two results are not the same."""
    x, y = wide(a), wide(b)
    finite = np.isfinite(x) & np.isfinite(y)
    return not np.array_equal(x[~finite], y[~finite], equal_nan=True)


def work_of(side: Side, ops: Sequence[Op]) -> int:
    """How many elements operations give, those of loops several times."""
    total = 0
    for op in ops:
        total += sum(prod(side.program.shape_of(value)) for value in op.results if side.program.type_of(value))
        inner = sum(work_of(side, body.ops) for body in op.bodies)
        total += inner * (LOOP_WORK if op.name == names.WHILE else 1)
    return total


def _is_inexact(region: Region, op: Op) -> bool:
    """Whether an operation on floats is rounded by each judge in its own way."""
    if op.name in INEXACT or not op.name.startswith("stablehlo."):
        return any(_is_float(region, v) for v in (*op.inputs, *op.results))
    return op.name in (names.MULTIPLY, names.DIVIDE) and any(
        "complex" in str(region.pair.first.program.types[v]) for v in op.results
    )


def _is_float(region: Region, value: int) -> bool:
    tensor = region.pair.first.program.type_of(value)
    return tensor is not None and element_type(tensor.element_name).is_inexact
