"""The verdict: what was compared and how, what was not, and where the two versions differ."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import Any, Literal

import numpy as np

from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_OK, EXIT_ONLY_RUN
from hlo_lower.base.short_forms import plural
from hlo_lower.verify.bounds.compare import Difference
from hlo_lower.verify.claim_checks import ClaimsVerdict
from hlo_lower.verify.effort import Require
from hlo_lower.verify.patience import OF_TIMEOUT
from hlo_lower.verify.read.program import ScatterPosition
from hlo_lower.verify.region_verdict import SAME_TEXT, RegionVerdict

SHORT = 16
"""Elements up to which an argument of a counterexample is shown."""


LARGE_AND_EQUAL = "it is large, and its regions are equal (--verify full runs it)"
"""Why a module is not run at level "auto"."""

NUMBERS_CHANGE = "its numbers change, as asked for"
OPEN_SIZES = "it has symbolic sizes (--bind gives them)"
"""Why a plain form is not run."""


@dataclass(frozen=True, repr=False)
class ModuleVerdict:
    """The verdict on the whole module.

    Attributes:
      status: "equal", "differs", or "not run".
      runs: how many inputs both versions ran on.
      reason: why it was not run.
      difference: the first difference.
      on_path: the scatters that the differing result depends on.
      not_exercised: what the runs say nothing about, each with the reason.
      how: what the runs were compared by, and on how many devices where the module is for several.

    Example:
      >>> hl.verify("decode.mlir", hl.lower("decode.mlir"), level="full", runs=2).module
      <ModuleVerdict equal: 2 runs, bit for bit, and 10 beyond the edges>
    """

    status: Literal["equal", "differs", "not run"]
    runs: int = 0
    reason: str = ""
    difference: Difference | None = None
    on_path: tuple[ScatterPosition, ...] = ()
    not_exercised: tuple[str, ...] = ()
    how: str = "bit for bit"

    def __repr__(self) -> str:
        told = self.difference or (
            self.reason if self.status == "not run" else f"{plural(self.runs, 'run')}, {self.how}"
        )
        return f"<ModuleVerdict {self.status}: {told}>"


@dataclass(frozen=True, repr=False)
class Verdict:
    """What verification found.

    Attributes:
      regions: the regions in which the two modules differ, alike ones together.
      interface: differences of what is not computed: public functions, signatures, attributes of arguments and results,
        effects.
      module: the verdict on the runs of the whole module; None where only regions were asked for.
      seconds: wall time.
      module_required: whether the module had to be run (level "full").
      plain: the module as it was given against the plain form that was lowered, where there was anything to make plain
        (`hlo_lower.lowering.integers64`); the other verdicts are on what was made of the plain form.
      one_form: the module in the form that becomes linalg against the lowered one, where the target reads linalg: its
        rewrites, one by one; the emission after it is not judged.
      assumed: what both versions rest on and nothing verifies; "" where there is nothing.
      claims: what the converter claims of the first version's scatters, evaluated; None where it was not asked for.
      accepts_runs: whether regions that were only run count as verified.
      requires: "derived" where regions that were only tested do not count as verified.

    Example:
      >>> verdict = hl.verify("decode.mlir", hl.lower("decode.mlir"), level="regions")
      >>> verdict.ok, verdict.counts(), verdict.exit_code
      (True, {'derived': 1}, 0)
    """

    regions: tuple[RegionVerdict, ...]
    interface: tuple[str, ...] = ()
    module: ModuleVerdict | None = None
    seconds: float = field(compare=False, default=0.0)
    module_required: bool = False
    plain: ModuleVerdict | None = None
    one_form: "Verdict | None" = None
    accepts_runs: bool = False
    requires: Require = "tested"
    claims: ClaimsVerdict | None = None
    assumed: str = ""

    def __repr__(self) -> str:
        return f"<Verdict {self._in_a_word()}: {self.summary()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the line of the repr, and all lines below it."""
        lines = "\n".join(self.lines())
        return f"<p><b>{self._in_a_word()}</b>: {escape(self.summary())}</p>\n<pre>{escape(lines)}</pre>"

    def _in_a_word(self) -> str:
        return "verified" if self.ok else "differs" if self.differs else "not verified"

    @property
    def is_late(self) -> bool:
        """Whether the clock ended it: some was not judged that might be in more time."""
        module = () if self.module is None else (self.module.reason,)
        return any(reason.endswith(OF_TIMEOUT) for reason in (*module, *(region.reason for region in self.regions)))

    @property
    def differs(self) -> bool:
        """Whether a difference was found."""
        return (
            bool(self.interface)
            or bool(self.claims and self.claims.broken)
            or any(region.status == "differs" for region in self.regions)
            or any(verdict is not None and verdict.status == "differs" for verdict in (self.module, self.plain))
            or bool(self.one_form and self.one_form.differs)
        )

    @property
    def only_run(self) -> bool:
        """Whether no difference was found, and some of it is not proved: runs are all that there is."""
        if self.differs:
            return False
        enough = ("derived",) if self.requires == "derived" else ("derived", "tested")
        in_form = self.one_form is not None and self.one_form.only_run
        return in_form or self._lacks_module or any(region.basis not in enough for region in self.regions)

    @property
    def _lacks_module(self) -> bool:
        return self.module_required and (self.module is None or self.module.status != "equal")

    @property
    def ok(self) -> bool:
        """Whether the two modules are verified to be equal."""
        if self.differs or any(region.status == "not judged" for region in self.regions):
            return False
        if self.one_form is not None and not self.one_form.ok:
            return False
        return not self.only_run or (self.accepts_runs and not self._lacks_module)

    @property
    def exit_code(self) -> int:
        """0 verified; 1 the versions differ; 4 no difference was found, and some of it was only run or not judged."""
        return EXIT_OK if self.ok else EXIT_DIFFERS if self.differs else EXIT_ONLY_RUN

    def counts(self) -> dict[str, int]:
        """How many regions are "derived", "tested", "only run", "not judged", and how many differ."""
        found: Counter[str] = Counter()
        for region in self.regions:
            found[region.basis] += region.count
        return dict(found)

    def summary(self) -> str:
        """One line: "160 regions (2 distinct): 158 derived, 2 tested; module 3 runs"."""
        parts = [self._about_regions()]
        if self.interface:
            parts.insert(0, f"{plural(len(self.interface), 'difference')} beside what is computed")
        if self.module is not None:
            told = {"equal": f"module {plural(self.module.runs, 'run')}", "differs": "module differs"}
            parts.append(told.get(self.module.status, f"module not run: {self.module.reason}"))
        missed = [what for region in self.regions for what in region.not_exercised]
        missed += self.module.not_exercised if self.module is not None else ()
        parts += [f"not exercised: {len(missed)}"] if missed else []
        if self.claims is not None and self.claims.broken:
            parts.append(f"{plural(len(self.claims.broken), 'scatter')} not as claimed")
        if self.plain is not None:
            told = {"equal": f"plain form {plural(self.plain.runs, 'run')}", "differs": "plain form differs"}
            parts.append(told.get(self.plain.status, "plain form not run"))
        if self.one_form is not None:
            told = self.one_form._about_regions("rewrite")
            parts.append(f"one form: {'differs beside what is computed' if self.one_form.interface else told}")
        parts += [self.assumed] if self.assumed else []
        return "; ".join(parts)

    def _about_regions(self, noun: str = "region") -> str:
        total = sum(region.count for region in self.regions)
        if not total:
            return "the same operations"
        distinct = f" ({len(self.regions)} distinct)" if 1 < total != len(self.regions) else ""
        counts = self.counts()
        names = {} if total == 1 else {"differs": "differ"}
        if any(region.sizes == "all" for region in self.regions):
            names |= {"derived": "derived for all sizes"}
        kept = sum(region.from_cache for region in self.regions)
        cached = f", {kept:,} from the cache" if kept else ""
        if len(counts) == 1:
            (what,) = counts
            return f"{plural(total, noun)}{distinct} {names.get(what, what)}{cached}"
        told = ", ".join(f"{count:,} {names.get(what, what)}" for what, count in counts.items())
        return f"{total:,} {noun}s{distinct}: {told}{cached}"

    def lines(self) -> list[str]:
        """The whole verdict, readable: differences first."""
        lines = [f"differs: {what}" for what in self.interface]
        if self.claims is not None:
            lines.extend(self.claims.broken)
        order = ("differs", "not judged", "only run", "equal")
        regions = sorted(self.regions, key=lambda region: order.index(region.status))
        for region in (region for region in regions if region.status != "equal"):
            lines.extend(_lines_of(region))
        if self.module is not None and self.module.difference is not None:
            lines.append(f"module differs: {self.module.difference}")
            lines.extend(f"  on its path: {place}" for place in self.module.on_path)
        for region in (region for region in regions if region.status == "equal"):
            lines.extend(_lines_of(region))
        if self.module is not None:
            if self.module.status == "not run":
                lines.append(f"module not run: {self.module.reason}")
            elif self.module.status == "equal":
                lines.append(f"module: equal in {plural(self.module.runs, 'run')}, {self.module.how}")
            lines.extend(f"  not exercised: {reason}" for reason in self.module.not_exercised)
        if self.plain is not None:
            told = {
                "equal": f"equal in {plural(self.plain.runs, 'run')}, {self.plain.how}",
                "not run": self.plain.reason,
            }
            lines.append(f"plain form: {self.plain.status}: {told.get(self.plain.status, self.plain.difference)}")
        if self.one_form is not None:
            lines += self.one_form.lines()
        return lines

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data; the arguments of a counterexample are not in it (`--save-inputs` writes them)."""
        plain = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("regions", "module", "plain", "claims", "one_form")
        }
        for name in ("module", "plain", "claims"):
            verdict = getattr(self, name)
            plain[name] = None if verdict is None else asdict(verdict)
        plain["one_form"] = None if self.one_form is None else self.one_form.to_json()
        regions = [
            {f.name: getattr(region, f.name) for f in fields(region) if f.name != "inputs"} | {"basis": region.basis}
            for region in self.regions
        ]
        return {"ok": self.ok, "summary": self.summary(), "counts": self.counts(), **plain, "regions": regions}


def _lines_of(region: RegionVerdict) -> list[str]:
    """A region's verdict, readable."""
    alike = f" and {region.count - 1} alike" if region.count > 1 else ""
    what = _describe_region(region)
    rules = f", written by {', '.join(region.rules)}" if region.rules else ""
    cached = ", from the cache" if region.from_cache else ""
    head = f"{what}{alike}{rules}"
    if region.status == "equal":
        widened = f"with {plural(region.producers, 'producer')} of its inputs" if region.producers else ""
        judged = f", judged by {', '.join(region.judges)}" if region.judges else ""
        if region.how == "derived":
            laws = f" (laws: {', '.join(region.laws)})" if region.laws else ""
            sizes = {"all": " for all sizes", "chosen": " at these sizes"}.get(region.sizes, "")
            lines = [f"{head}: equal, derived{sizes}{widened and ' ' + widened}{laws}{cached}"]
        else:
            how = f" {widened or 'as it stands'}, {plural(region.runs, 'run')}{judged}"
            if region.judges == SAME_TEXT:
                how = f": the same ops on the same inputs{widened and ' ' + widened}"
            lines = [f"{head}: equal{how}{cached}"]
        if region.scatters and any(region.windows):
            lines.append(f"  windows: {_windows(region.windows)}")
    else:
        lines = [f"{head}: {region.status}: {region.difference or region.reason}{cached}", *_counterexample(region)]
    lines.extend(f"  left out: {reason}" for reason in region.excluded)
    if region.status in ("equal", "only run") and region.how != "derived":
        lines.extend(f"  not exercised: {what}" for what in region.not_exercised)
    return lines


def _counterexample(region: RegionVerdict) -> list[str]:
    """The arguments on which the two differ, where there are any and they are short; zeros are left out."""
    told = [
        f"argument {place} = {np.array2string(array, separator=', ', max_line_width=10_000)}"
        for place, array in region.inputs.items()
        if np.any(array != 0) and array.size <= SHORT
    ]
    more = sum(1 for array in region.inputs.values() if np.any(array != 0) and array.size > SHORT)
    told += [f"{plural(more, 'longer argument')} (--save-inputs)"] if more else []
    return [f"  where {', '.join(told)}, and zeros"] if told else []


def _describe_region(region: RegionVerdict) -> str:
    """Name a region by its scatters, or by where its ops are."""
    where = _first_few(region.first) or _first_few(region.second) or "what is returned"
    if region.scatters:
        noun = "scatter" if len(region.scatters) == 1 else "scatters"
        return f"{noun} {_first_few([str(n) for n in region.scatters])} at {where} in {region.where}"
    return f"{where} in {region.where}"


def _first_few(names: Sequence[str]) -> str:
    most = 3
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _windows(windows: tuple[int, int, int, int]) -> str:
    """Where the windows of all runs lay; what was never hit is said, too."""
    counts = dict(zip(("inside", "overhanging", "outside"), windows, strict=False))
    hit = [f"{count} {what}" for what, count in counts.items() if count]
    never = [what for what, count in counts.items() if not count]
    parts = [", ".join(hit) or "none"]
    if never:
        parts.append(f"never {' nor '.join(never)}")
    return "; ".join([*parts, f"one element written up to {windows[3]} times"])
