"""Judge a batch of cases: lower them in one module, run it, and compare with the reference and with XLA's own scatter.

A batch is lowered and compiled at once. What fails as a whole is halved until the cases that fail stand alone: a case
without a lowering is a failure; one that XLA does not compile is judged by the reference alone, and counted with the
reason.

    lowered       XLA at optimization level 0, or the interpreter where XLA refuses the types
    reference     `verify.reference` with the policy, the region evaluated by `update_computations.evaluate`; where sums
                  may be reassociated, within the bound of `reassociated`
    XLA           the original, where no error of it is known; under oob="spec" where no window overhangs
"""

import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.ops.names import SCATTER
from hlo_lower.testing.fuzz.case import ARGUMENT_SETS, Case
from hlo_lower.testing.fuzz.case_arguments import Arguments, arguments_of
from hlo_lower.testing.fuzz.case_outcome import CaseOutcome
from hlo_lower.testing.fuzz.drawn_types import PACKED, TYPES
from hlo_lower.testing.fuzz.families import family_of
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.reassociated import allowances, difference_within
from hlo_lower.testing.fuzz.sensitivity import Policy, bites, overhangs, reference
from hlo_lower.verify.bounds.compare import Difference, first_difference
from hlo_lower.verify.judges.interpreter import InterpreterError, shared_interpreter
from hlo_lower.verify.judges.xla_defects import why_xla_errs
from hlo_lower.verify.run import CannotRunError, Executable, Rounding


def is_packed(case: Case) -> bool:
    """Whether an element takes less than a byte in XLA's memory."""
    return any(name in PACKED for name in (*case.operands, *case.region.elements))


def why_not_native(case: Case) -> str:
    """Why XLA is not a judge of a case, "" if it is one (jaxlib 0.10.2)."""
    floats = {e for e in case.region.elements if TYPES[e].kind in ("float", "scale")}
    if len(floats) > 1:
        return "refuses floating point types of different precisions in one scatter"
    if any(e.op in ("constant", "captured constant") and e.element == "i2" for e in case.region.returns):
        return "writes a negative i2 constant over its neighbours in the byte"
    if case.region.captured_values:
        return "refuses a captured value that is no constant (trap 44)"
    return ""


Array = NDArray[Any]
Lower = Callable[[str], Lowered]
"""Lowers the text of a module."""


@dataclass
class Judged:
    """The outcomes of a batch, in order, and seconds spent on each step."""

    outcomes: list[CaseOutcome] = field(default_factory=list[CaseOutcome])
    seconds: Counter[str] = field(default_factory=Counter[str])

    @contextmanager
    def time_step(self, step: str) -> Generator[None]:
        """Count the time of a step."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += perf_counter() - start  # pyright: ignore[reportArgumentType] a float


def judge(cases: Sequence[Case], lower: Lower, oob: Policy) -> Judged:
    """Judge cases."""
    judged = Judged()
    _judge(cases, lower, oob, judged)
    return judged


def _judge(cases: Sequence[Case], lower: Lower, oob: Policy, judged: Judged) -> None:
    text = module_text(cases)
    try:
        with judged.time_step("lowering"):
            lowered = lower(text)
            lowered_text = lowered.text
            if SCATTER in lowered_text:
                raise ValueError("a scatter is left")
    except Exception as error:  # a crash of any kind is a finding
        if len(cases) > 1:
            for half in _halves(cases):
                _judge(half, lower, oob, judged)
            return
        outcome = CaseOutcome(cases[0].name, failure=f"not lowered: {type(error).__name__}: {error}")
        judged.outcomes.append(outcome)
        return
    batch = _Batch(cases, lowered, lower, oob, judged)
    judged.outcomes.extend(batch.outcomes())


class _Batch:
    def __init__(self, cases: Sequence[Case], lowered: Lowered, lower: Lower, oob: Policy, judged: Judged) -> None:
        self._cases = cases
        self._lowered = lowered
        self._lower = lower
        self._oob: Policy = oob
        self._judged = judged
        self._is_reassociated = lowered.options.float_mode == "reassociate"
        self._allowed: dict[int, list[list[Array]]] = {}

    def outcomes(self) -> list[CaseOutcome]:
        """What became of each."""
        cases, judged = self._cases, self._judged
        numbers = list(range(len(cases)))
        with judged.time_step("arguments"):
            arguments = [[arguments_of(case, k) for k in range(ARGUMENT_SETS)] for case in cases]
        with judged.time_step("reference"):
            expected = [
                [reference(case, a, self._oob) for a in sets] for case, sets in zip(cases, arguments, strict=True)
            ]
        with judged.time_step("bites"):
            bitten = [self._bites(c, a, e) for c, a, e in zip(cases, arguments, expected, strict=True)]
        if self._is_reassociated:
            with judged.time_step("reference"):
                self._allowed = {n: self._allowances(n, arguments[n], expected[n]) for n in numbers}
        not_xla = self._known_errors()
        with judged.time_step("XLA, lowered"):
            actual, refused = self._run_all(numbers, arguments, lowered=True)
        with judged.time_step("XLA, original"):
            native, not_compiled = self._run_all([n for n in numbers if not not_xla[n]], arguments, lowered=False)
        not_xla |= not_compiled
        outcomes: list[CaseOutcome] = []
        for n, case in enumerate(cases):
            record = self._lowered.records[n]
            outcome = CaseOutcome(case.name, record.subset, family_of(record.combiner), record.rule, bites=bitten[n])
            if n in refused:
                with judged.time_step("interpreter"):
                    results, reason = self._interpret(case, arguments[n])
                outcome = replace(outcome, why_not_xla_ran=refused[n] + reason)
            else:
                results = actual[n]
            if results is None:
                outcomes.append(outcome)
                continue
            outcome = replace(outcome, ran_on="interpreter" if n in refused else "XLA", not_xla=not_xla[n])
            outcomes.append(self._compare(outcome, n, arguments[n], expected[n], results, native.get(n)))
        return outcomes

    def _allowances(self, n: int, arguments: list[Arguments], expected: list[list[Array]]) -> list[list[Array]]:
        """How far the results of a case may be off, for each argument set."""
        case, combiner = self._cases[n], self._lowered.records[n].combiner
        return [allowances(case, combiner, a, e, self._oob) for a, e in zip(arguments, expected, strict=True)]

    def _bites(self, case: Case, arguments: list[Arguments], expected: list[list[Array]]) -> tuple[str, ...]:
        found: set[str] = set()
        for a, e in zip(arguments, expected, strict=True):
            found |= bites(case, a, e, self._oob, known=found)
        return tuple(sorted(found))

    def _known_errors(self) -> dict[int, str]:
        """For each case why XLA is not a judge of it, "" where nothing speaks against it."""
        known = why_xla_errs(mlir.parse_module(module_text(self._cases)))
        return {n: reason or why_not_native(self._cases[n]) for n, reason in enumerate(known)}

    def _run_all(
        self, numbers: Sequence[int], arguments: list[list[Arguments]], *, lowered: bool
    ) -> tuple[dict[int, list[list[Array]]], dict[int, str]]:
        """Run those with elements of less than a byte apart: XLA's older emitter aborts the process on a pad of i4."""
        whole = [n for n in numbers if not is_packed(self._cases[n])]
        packed = [n for n in numbers if is_packed(self._cases[n])]
        first = self._run(whole, arguments, "quick", lowered=lowered)
        second = self._run(packed, arguments, "exact", lowered=lowered)
        return first[0] | second[0], first[1] | second[1]

    def _run(
        self, numbers: Sequence[int], arguments: list[list[Arguments]], rounding: Rounding, *, lowered: bool
    ) -> tuple[dict[int, list[list[Array]]], dict[int, str]]:
        """Results per case and argument set of the numbered cases; and why XLA does not run a case."""
        if not numbers:
            return {}, {}
        try:
            text = module_text([self._cases[n] for n in numbers])
            if lowered:
                text = self._lowered.text if len(numbers) == len(self._cases) else self._lower(text).text
            executable = Executable(text, rounding)
            found: dict[int, list[list[Array]]] = {n: [] for n in numbers}
            for k in range(ARGUMENT_SETS):
                results = iter(executable.run([a for n in numbers for a in arguments[n][k].all]))
                for n in numbers:
                    found[n].append([next(results) for _ in self._cases[n].operands])
        except CannotRunError as error:
            if len(numbers) == 1:
                return {}, {numbers[0]: _reason(error)}
            halves = [self._run(half, arguments, rounding, lowered=lowered) for half in _halves(numbers)]
            return halves[0][0] | halves[1][0], halves[0][1] | halves[1][1]
        return found, {}

    def _interpret(self, case: Case, arguments: list[Arguments]) -> tuple[list[list[Array]] | None, str]:
        """The same by the interpreter; None and why if it cannot either."""
        text = self._lower(module_text([case])).text
        try:
            return [shared_interpreter().run(text, a.all) for a in arguments], ""
        except InterpreterError as error:
            return None, f"; nor the interpreter: {_reason(error)}"

    def _compare(
        self,
        outcome: CaseOutcome,
        n: int,
        arguments: list[Arguments],
        expected: list[list[Array]],
        actual: list[list[Array]],
        native: list[list[Array]] | None,
    ) -> CaseOutcome:
        case, allowed = self._cases[n], self._allowed.get(n)
        differing = _differences(expected, actual, allowed)
        spoken = [native is not None and (self._oob == "xla" or not overhangs(case, a)) for a in arguments]
        if native is not None and any(spoken):
            judged = [x if s else a for x, a, s in zip(native, actual, spoken, strict=True)]
            beside = _differences(judged, actual, allowed)
            differing |= {k: ("XLA", d) for k, (_, d) in beside.items() if k not in differing}
            outcome = replace(outcome, judges=("reference", "XLA"))
        else:
            outcome = replace(outcome, judges=("reference",))
        if native is not None and not all(spoken):
            several = "some" if any(spoken) else "all"
            outcome = replace(outcome, not_xla=f"{several} argument sets: a window overhangs, which XLA drops whole")
        if not differing:
            return outcome
        return self._second_look(outcome, n, arguments, expected, differing, native is not None)

    def _second_look(
        self,
        outcome: CaseOutcome,
        n: int,
        arguments: list[Arguments],
        expected: list[list[Array]],
        differing: dict[int, tuple[str, Difference]],
        is_native: bool,
    ) -> CaseOutcome:
        """Without fusion and simplification, which may contract or reorder in one of the two modules."""
        case, allowed = self._cases[n], self._allowed.get(n)
        k, (who, difference) = next(iter(differing.items()))
        failure = f"argument set {k} ({case.regimes[k]}): the {who} says {difference}".replace("the XLA", "XLA")
        alone = _Batch([case], self._lower(module_text([case])), self._lower, self._oob, self._judged)
        if outcome.ran_on != "XLA" or not case.form.operand:
            return replace(outcome, failure=failure)
        with self._judged.time_step("second look"):
            actual, _ = alone._run([0], [arguments], "unfused", lowered=True)
            native, _ = alone._run([0], [arguments], "unfused", lowered=False) if is_native else ({}, {})
        if 0 not in actual or _differences(expected, actual[0], allowed):
            return replace(outcome, failure=failure)
        if 0 in native and who == "XLA":
            agreed = [self._oob == "xla" or not overhangs(case, a) for a in arguments]
            judged = [x if s else a for x, a, s in zip(native[0], actual[0], agreed, strict=True)]
            if _differences(judged, actual[0], allowed):
                return replace(outcome, failure=failure)
        return replace(outcome, second_look=True)


def _differences(
    expected: list[list[Array]], actual: list[list[Array]], allowed: list[list[Array]] | None
) -> dict[int, tuple[str, Difference]]:
    """For each argument set that differs, the first difference; it is the reference's until it is said to be XLA's."""
    found: dict[int, tuple[str, Difference]] = {}
    for k, (a, b) in enumerate(zip(expected, actual, strict=True)):
        given = [np.asarray(x) for x in b]
        difference = difference_within(a, given, allowed[k]) if allowed else first_difference(a, given)
        if difference is not None:
            found[k] = ("reference", difference)
    return found


_PLACES = re.compile(r"-:\d+:\d+: |(?<=%)[\w.-]+|(?<=\[)[\d,]+\](\{[^}]*\})?")
"""Lines, columns, names and shapes in a message, which differ from case to case."""


def _reason(error: Exception) -> str:
    """The first line of an error, cut, without what would keep alike reasons from being counted together."""
    return _PLACES.sub("", str(error).splitlines()[0])[:110].rstrip()


def _halves(items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]
