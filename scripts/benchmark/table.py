"""Print what was measured as lines of text."""

from collections.abc import Iterator, Sequence

from benchmark.classes import Case
from benchmark.outcome import Entry, Outcome
from benchmark.timing import Timing, ratio, shown
from benchmark.versions import DEFAULT, LOOP

NOT_MEASURED = "not measured"
HEADS = f"  {'':22}{'ms per call':34}{'rounds':>7}{'/ native':>10}{'/ loop':>10}{'memory':>11}{'compile s':>11}  rule"


def comparison_lines(
    title: str, baseline: str, candidate: str, rows: Sequence[tuple[str, Timing, Timing]]
) -> list[str]:
    """A table of a candidate beside a baseline, times in milliseconds."""
    lines = [title, f"  {'':44}{baseline + ' ms':34}{candidate + ' ms':34}ratio"]
    return lines + [
        f"  {what:44}{shown(first):34}{shown(second):34}{ratio(second, first) or 0:5.2f}"
        for what, first, second in rows
    ]


def legend(cases: Sequence[Case]) -> list[str]:
    """What the figures of the classes are."""
    loose = [f"{case.name} {case.tolerance:g}" for case in cases if case.float_sum]
    lines = [
        "  ms per call: the median round (lowest to highest). / native, / loop: ratios of medians. memory: the peak of",
        "  a call beyond its arguments: under XLA the compiled module's temporaries and results, without a result in a",
        "  donated buffer; on IREE what the device (local-sync) allocates. Each result was first compared with native",
        "  scatter under XLA on the CPU, bit for bit",
    ]
    if loose:
        lines[-1] += "; sums in any order within a part of the largest magnitude:"
        lines.append(f"  {', '.join(loose)}")
    return [*lines[:-1], f"{lines[-1]}."]


def class_title(consumer: str) -> list[str]:
    """What stands above the classes on one consumer."""
    return [f"classes on {consumer}", HEADS]


def class_lines(outcome: Outcome) -> Iterator[str]:
    """A class: its name and size, then a line for each candidate."""
    donated = ", donated" if outcome.case.donated else ""
    yield f"  {outcome.case.name}: {outcome.case.size}{donated}"
    for entry in outcome.entries:
        yield f"    {entry.candidate:20}{_figures(outcome, entry)}".rstrip()
    if (regret := outcome.regret()) is not None:
        default = outcome.regret(DEFAULT)
        by_default = f"; by the default costs {_ratio(default[0])}" if default is not None else ""
        native = f"; chosen / native {_ratio(outcome.ratio(outcome.chosen))}"
        yield f"    chosen / best       {_ratio(regret[0])} (the best is {regret[1]}){by_default}{native}"


def _figures(outcome: Outcome, entry: Entry) -> str:
    rules = ", ".join(entry.rules)
    note = f"  {rules}{'; ' if rules and entry.note else ''}{entry.note}"
    if entry.timing is None:
        return f"{NOT_MEASURED:34}{'':>7}{'':>10}{'':>10}{_memory(entry):>11}{_compiled(entry):>11}{note}"
    of_native, of_loop = outcome.ratio(entry.candidate), outcome.ratio(entry.candidate, LOOP)
    rounds = entry.timing.rounds
    return (
        f"{shown(entry.timing):34}{rounds:>7}{_ratio(of_native):>10}{_ratio(of_loop):>10}"
        f"{_memory(entry):>11}{_compiled(entry):>11}{note}"
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _memory(entry: Entry) -> str:
    if entry.memory is None:
        return "-"
    return f"{entry.memory / 1e6:,.2f} MB" if entry.memory >= 1e5 else f"{entry.memory / 1e3:,.2f} kB"


def _compiled(entry: Entry) -> str:
    return "-" if entry.compile_seconds is None else f"{entry.compile_seconds:.2f}"
