"""The verdict: what was compared, what was not, and where the two versions differ."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hlo_lower.verify.compare import Difference
from hlo_lower.verify.cutout import Place

SecondVersion = Literal["run", "run, not rebuilt", "rebuilt", "not examined"]


@dataclass(frozen=True)
class Regime:
    """One run of a scatter: where its windows lay, and who judged.

    Attributes:
      name: the regime that was aimed at.
      inside, overhanging, outside: windows by where they really lay.
      most: how often the most often written element was written.
      judges: the oracles that compared.
      sizes: the sizes that were chosen for a scatter of dynamic shape, "" where there are none.
    """

    name: str
    inside: int
    overhanging: int
    outside: int
    most: int
    judges: tuple[str, ...]
    sizes: str = ""


@dataclass(frozen=True)
class ScatterVerdict:
    """The verdict on scatters that are alike.

    Attributes:
      places: where they are.
      status: "equal"; "differs"; "not judged" where no oracle could; "refused" where it was not cut out or converted.
      regimes: what was run.
      excluded: oracles that did not judge some or all runs, each with the reason.
      difference: what differs, with the judge and the regime.
      reason: why it was refused or not judged.
    """

    places: tuple[Place, ...]
    status: Literal["equal", "differs", "not judged", "refused"]
    regimes: tuple[Regime, ...] = ()
    excluded: tuple[str, ...] = ()
    difference: str = ""
    reason: str = ""

    @property
    def where(self) -> str:
        """The first place, and how many more there are."""
        more = len(self.places) - 1
        return f"{self.places[0]}{f' and {more} alike' if more else ''}"


@dataclass(frozen=True)
class ModuleVerdict:
    """The verdict on the whole module.

    Attributes:
      status: "equal", "differs", or "not run".
      runs: how many inputs both versions ran on.
      reason: why it was not run.
      difference: the first difference.
      on_path: the scatters that the differing result depends on.
      not_exercised: scatters, or the module, that the runs say nothing about, each with the reason.
      how: what the runs were compared by, and on how many devices where the module is for several.
    """

    status: Literal["equal", "differs", "not run"]
    runs: int = 0
    reason: str = ""
    difference: Difference | None = None
    on_path: tuple[Place, ...] = ()
    not_exercised: tuple[str, ...] = ()
    how: str = "bit for bit"


@dataclass(frozen=True)
class GatherVerdict:
    """The verdict on the gathers that the target does not take as they are, each run alone.

    Attributes:
      status: "equal"; "differs"; "not examined" where the second version is not what the converter makes of the first:
        XLA, which clamps by itself, cannot tell what gathers of it do elsewhere.
      distinct: how many there are that are not alike.
      regimes: how many choices of indices each was run with.
      difference: the first difference, with its place, the regime and the judge.
      left_out: those that were not run, each with the reason.
    """

    status: Literal["equal", "differs", "not examined"]
    distinct: int
    regimes: int
    difference: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What verification found.

    Attributes:
      scatters: one verdict for each group of alike scatters.
      module: the verdict on the whole module, or None where only scatters were asked for.
      seconds: wall time.
      second_version: how the second version was looked at: it was "run", and is what the converter, whose work on each
        scatter was judged, makes of the first one; it was "run, not rebuilt", that is, it is not that, so only the runs
        of the module judge it; it was not run, but "rebuilt" so; or it was "not examined".
      module_required: whether the module had to be run (level "full").
      plain: the module as it was given against the plain form that was lowered, where there was anything to make plain
        (`hlo_lower.legalize`); the other verdicts are on what was made of the plain form.
      gathers: the verdict on the gathers that were lowered, None where there are none.
    """

    scatters: tuple[ScatterVerdict, ...]
    module: ModuleVerdict | None
    seconds: float = field(compare=False, default=0.0)
    second_version: SecondVersion = "run"
    module_required: bool = False
    plain: ModuleVerdict | None = None
    gathers: GatherVerdict | None = None

    @property
    def ok(self) -> bool:
        """Whether every scatter was judged equal, the second version was examined, and no gather or module differs."""
        if self.gathers is not None and self.gathers.status != "equal":
            return False
        if self.plain is not None and self.plain.status == "differs":
            return False
        if self.second_version == "not examined" or not all(s.status == "equal" for s in self.scatters):
            return False
        status = self.module.status if self.module is not None else "not run"
        return status == "equal" or (status == "not run" and not self.module_required)

    def summary(self) -> str:
        """One line: "160 scatters (2 distinct) in 11 regimes, module 3 runs"."""
        places = {place.number for s in self.scatters for place in s.places}
        if not places:
            parts = ["no scatter"]
        else:
            regimes = max((len(s.regimes) for s in self.scatters), default=0)
            noun = "scatter" if len(places) == 1 else "scatters"
            distinct = f" ({len(self.scatters)} distinct)" if 1 < len(self.scatters) < len(places) else ""
            parts = [f"{len(places)} {noun}{distinct} in {regimes} {'regime' if regimes == 1 else 'regimes'}"]
        bad = [s for s in self.scatters if s.status != "equal"]
        if bad:
            parts.append(f"{len(bad)} distinct {bad[0].status}")
        if self.gathers is not None:
            told = f"{self.gathers.distinct} distinct {'gather' if self.gathers.distinct == 1 else 'gathers'}"
            equal = f"{told} in {self.gathers.regimes} regimes"
            parts.append(equal if self.gathers.status == "equal" else f"{told}: {self.gathers.status}")
        if self.module is not None:
            runs = f"module {self.module.runs} runs"
            parts.append(
                {"equal": runs, "differs": "module differs"}.get(
                    self.module.status, f"module not run: {self.module.reason}"
                )
            )
        if self.plain is not None:
            runs = f"plain form {self.plain.runs} runs"
            told = {"equal": runs, "differs": "plain form differs"}
            parts.append(told.get(self.plain.status, "plain form not run"))
        if self.second_version == "not examined":
            parts.append("second version not examined")
        elif self.second_version == "run, not rebuilt":
            parts.append("second version only run")
        if self.module is not None and self.module.not_exercised:
            parts.append(f"not exercised: {len(self.module.not_exercised)}")
        return ", ".join(parts)

    def lines(self) -> list[str]:
        """The whole verdict, readable: differences first."""
        lines: list[str] = []
        if self.module is not None and self.module.difference is not None:
            lines.append(f"module differs: {self.module.difference}")
            lines.extend(f"  on its path: {place}" for place in self.module.on_path)
        for s in sorted(self.scatters, key=lambda s: s.status == "equal"):
            if s.status == "equal":
                judges = sorted({judge for r in s.regimes for judge in r.judges})
                lines.append(f"{s.where}: equal in {len(s.regimes)} regimes, judged by {', '.join(judges)}")
                lines.append(f"  windows: {_windows(s.regimes)}")
            else:
                lines.append(f"{s.where}: {s.status}: {s.difference or s.reason}")
            lines.extend(f"  left out: {reason}" for reason in s.excluded)
        if self.gathers is not None:
            told = f"{self.gathers.distinct} distinct, each equal alone in {self.gathers.regimes} regimes"
            if self.gathers.status == "not examined":
                told = "not examined: the second version is not what the converter makes of the first, options included"
            lines.append(f"gathers: {self.gathers.difference or told}")
            lines.extend(f"  left out: {reason}" for reason in self.gathers.left_out)
        if self.module is not None:
            if self.module.status == "not run":
                lines.append(f"module not run: {self.module.reason}")
            elif self.module.status == "equal":
                lines.append(f"module: equal in {self.module.runs} runs, {self.module.how}")
            lines.extend(f"  not exercised: {reason}" for reason in self.module.not_exercised)
        if self.plain is not None:
            told = {"equal": f"equal in {self.plain.runs} runs, {self.plain.how}", "not run": self.plain.reason}
            lines.append(f"plain form: {self.plain.status}: {told.get(self.plain.status, self.plain.difference)}")
        if self.second_version == "run, not rebuilt":
            lines.append(
                "second version: is not what the converter makes of the first with these options: the scatters judged"
                " alone are the converter's, and of this version only the runs of the module tell"
            )
        elif self.second_version == "rebuilt":
            lines.append("second version: is what the converter makes of the first")
        elif self.second_version == "not examined":
            lines.append(
                "second version: not examined: it was not run, and is not what the converter makes of the first"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {"ok": self.ok, "summary": self.summary(), **asdict(self)}


def _windows(regimes: tuple[Regime, ...]) -> str:
    """Where the windows of all runs lay; what was never hit is said, too."""
    counts = {what: sum(getattr(r, what) for r in regimes) for what in ("inside", "overhanging", "outside")}
    hit = [f"{count} {what}" for what, count in counts.items() if count]
    never = [what for what, count in counts.items() if not count]
    repeated = max((r.most for r in regimes), default=0)
    parts = [", ".join(hit) or "none"]
    if never:
        parts.append(f"never {' nor '.join(never)}")
    return "; ".join([*parts, f"one element written up to {repeated} times"])
