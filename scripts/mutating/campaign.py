"""One mutant after the other: made, its truth found, judged; and the table of all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mutating.judging import CRASH, HANG, judged
from mutating.making import Mutant, made, mutant
from mutating.operators import EQUAL
from mutating.truth import QUICK, Truth, truth_of


@dataclass(frozen=True)
class Record:
    """A line of the journal.

    Attributes:
      seed, operator, module, what: the mutant; no module where none could be made.
      truth, why: see `truth.Truth`.
      witness: the arguments on which the two differ, as text.
      code: exit code of `verify`, `CRASH` or `HANG`.
      cpu: seconds of a processor that it took.
      lines: of the verdict.
    """

    seed: int
    operator: str
    module: str = ""
    what: str = ""
    truth: str = ""
    why: str = ""
    witness: list[str] = field(default_factory=list)
    code: int = 0
    cpu: float = 0.0
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.operator}_{self.module}_{self.seed}"

    def line(self) -> str:
        """The record in a line."""
        return f"{self.name}: {self.what}; {self.truth} ({self.why}); exit code {self.code}, {self.cpu} s"


Tried = tuple[Record, tuple[str, str]]
_modules: dict[str, str] = {}
_before: dict[str, str] = {}
_limits: list[float] = []
_how: dict[str, bool] = {}
_known: set[tuple[str, str]] = set()


def begin(modules: Mapping[str, str], before: Mapping[str, str], seconds: float, *, derives: bool = False) -> None:
    """Tell a process what there is to mutate, with what mutants are compared where it is something else, and how."""
    _modules.update(modules)
    _before.update({**modules, **before})
    _limits[:] = [seconds]
    _how["derives"] = derives


def tried(operator: str, seed: int, names: list[str]) -> Tried:
    """Make, examine and judge one mutant that this process has not made before."""
    found = made(_modules, operator, seed, names, _known)
    if found is None:
        return Record(seed, operator), ("", "")
    _known.add((found.module, found.text))
    before, unchanged = _before[found.module], _modules[found.module]
    record = Record(seed, operator, found.module, f"{found.op}: {found.what}", **judged(before, found.text, **_how))
    truth = _truth(found, unchanged, _limits[0] if record.code == 0 else QUICK)
    return _with_truth(record, truth), (before, found.text)


def _truth(found: Mutant, before: str, seconds: float) -> Truth:
    try:
        return truth_of(found, before, seconds=seconds)
    except Exception as error:  # a mistake of this harness is told in its table, and ends no run
        return Truth("unknown", f"the harness failed: {type(error).__name__}: {error}")


def _with_truth(record: Record, truth: Truth) -> Record:
    witness = [f"{a.dtype}{list(a.shape)} {a.tolist()}"[:400] for a in truth.witness]
    return replace(record, truth=truth.truth, why=truth.why, witness=witness)


def rejudged(record: Record) -> Tried:
    """Judge a mutant again."""
    found = mutant(record.module, _modules[record.module], record.operator, record.seed) if record.module else None
    if found is None:
        return record, ("", "")
    texts = _before[record.module], found.text
    record = replace(record, **judged(*texts, **_how))
    if record.code == 0 and record.truth == "unknown":
        record = _with_truth(record, _truth(found, _modules[record.module], _limits[0]))
    return record, texts


def wrong(record: Record) -> str:
    """What is wrong about the verdict, or nothing."""
    if record.code in (CRASH, HANG):
        return "crash" if record.code == CRASH else "hang"
    if record.truth == "differs" and record.code == 0:
        return "wrong equal"
    return "false alarm" if record.truth == "equal" and record.code == 1 else ""


CODES = (0, 1, 4, 2, CRASH, HANG)


def report_lines(records: Sequence[Record]) -> list[str]:
    """The table: for each operator how many of each truth had which exit code, and what was wrong."""
    tried = [record for record in records if record.module]
    kinds = [(truth, code) for truth in ("differs", "equal", "unknown") for code in CODES]
    counted: Counter[Any] = Counter()
    for record in tried:
        counted[record.operator, (record.truth, record.code)] += 1
        counted["all", (record.truth, record.code)] += 1
    kinds = [kind for kind in kinds if counted["all", kind]]
    operators = sorted({record.operator for record in tried})
    width = max(map(len, ["operator", *operators]))
    lines = [
        f"{len(tried)} mutants of {len({record.module for record in tried})} modules, {len(operators)} operators"
        f" ({len(EQUAL & set(operators))} that keep what is computed)",
        " ".join([f"{'operator':{width}}", *(f"{truth:>8}" for truth, _ in kinds)]),
        " ".join([f"{'exit code':{width}}", *(f"{_word(code):>8}" for _, code in kinds)]),
    ]
    for operator in [*operators, "all"]:
        lines.append(" ".join([f"{operator:{width}}", *(f"{counted[operator, kind] or '.':>8}" for kind in kinds)]))
    for what in ("wrong equal", "false alarm", "crash", "hang"):
        found = [record for record in tried if wrong(record) == what]
        lines.append(f"{what}: {len(found)}")
        lines += [f"  {record.line()}" for record in found]
    slow = [record for record in tried if record.cpu > 120]
    lines.append(f"more than 120 s of a processor: {len(slow)}")
    return lines + [f"  {record.line()}" for record in slow]


def _word(code: int) -> str:
    return {CRASH: "crash", HANG: "hang"}.get(code, str(code))
