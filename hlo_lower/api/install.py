"""`hl.install`: each program that JAX compiles for a platform is lowered for a target before its backend sees it.

    hl.install("mps", platform="mps")   # or HLO_LOWER_TARGET=mps in the environment, and no line of code

Nothing else changes: jit, grad, vmap, scan, donation, callbacks and `lower().compile()` are as they were. JAX's own
persistent cache of compiled programs stays right, as its key is the lowered module.
"""

import atexit
import os
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Unpack

from hlo_lower.api.jax_plugin import TARGET
from hlo_lower.api.verified import verify_lowered
from hlo_lower.base.arguments import known_names, texts
from hlo_lower.base.change import Outcome, RefusedOps
from hlo_lower.base.errors import DifferenceError, HloLowerError, InputError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.ir.jax_compile import Place, intercept, release, restore_on_exit
from hlo_lower.ir.reader import read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.engine.refused_ops import refused_ops
from hlo_lower.lowering.integers64.demotion import with_original_signature
from hlo_lower.lowering.kinds import registry_of
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import Choices, Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets import TargetLike
from hlo_lower.report.headline import refused_lines
from hlo_lower.verify import Level
from hlo_lower.verify.effort import checked_level

PLATFORM, VERIFY, CACHE, STATS = (f"HLO_LOWER_{name}" for name in ("PLATFORM", "VERIFY", "CACHE", "STATS"))
"""Variables of the environment, each with the argument of `install` that it stands for."""

MOST_LEFT = 20
"""Places of refused ops that are told of."""


class InstallWarning(UserWarning):
    """A program is handed to its backend as it is, though the target refuses some of it: hlo_lower failed on it.

    Example:
      >>> issubclass(hl.InstallWarning, UserWarning)
      True
    """


@dataclass(frozen=True)
class Stats:
    """What became of the programs that JAX compiled.

    Attributes:
      programs: how many were seen.
      changed: how many of them were lowered; the others are handed on untouched.
      seconds: wall time that looking and lowering took, verification included.
      rules: how often each lowering was used: "guarded_dynamic_update_slice", or "chlo.erf legalized".
      left: what the target refuses and no rule lowers: the op, why, how often, and the places of the first ones.
      failed: programs that could not be lowered, and were handed on as they are: "jit_step: why".

    Example:
      >>> print(hl.Stats(programs=3, changed=1, seconds=0.5))
      hlo_lower: 3 programs, 1 lowered in 0.50 s
    """

    programs: int = 0
    changed: int = 0
    seconds: float = 0.0
    rules: Counter[str] = field(default_factory=Counter[str])
    left: tuple[RefusedOps, ...] = ()
    failed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def with_program(
        self, name: str, seconds: float, is_changed: bool, rules: Counter[str], left: Sequence[RefusedOps], why: str
    ) -> "Stats":
        """The same with one program more; why it was not lowered is "" where nothing failed."""
        found = {(one.op, one.reason, one.places): one for one in self.left}
        for one in left:
            key = (one.op, one.reason, one.places)
            found[key] = replace(one, count=one.count + (found[key].count if key in found else 0))
        return Stats(
            programs=self.programs + 1,
            changed=self.changed + is_changed,
            seconds=self.seconds + seconds,
            rules=self.rules + (rules if is_changed else Counter[str]()),
            left=tuple(found.values()),
            failed=(*self.failed, f"{name}: {why}") if why else self.failed,
        )

    def lines(self) -> list[str]:
        """The same in words, a line each."""
        programs = f"{self.programs:,} program{'s' * (self.programs != 1)}"
        found = [f"hlo_lower: {programs}, {self.changed:,} lowered in {self.seconds:.2f} s"]
        found += [f"  {count:>6,}  {rule}" for rule, count in self.rules.most_common()]
        found += [f"  left: {line}" for line in refused_lines(self.left[:MOST_LEFT])]
        found += [f"  left: {len(self.left) - MOST_LEFT:,} more" for _ in self.left[MOST_LEFT : MOST_LEFT + 1]]
        return found + [f"  not lowered: {told}" for told in self.failed]


class _Installed:
    """What is done to the programs of one platform."""

    def __init__(
        self,
        options: Options,
        registry: CompositeLoweringRegistry | None,
        platforms: Collection[str],
        verify: Level | None,
        cache: str | PathLike[str] | None,
    ) -> None:
        self.options, self.registry, self.platforms, self.cache = options, registry, platforms, cache
        self.verify: Level | None = verify
        self.stats = Stats()
        self._lock = threading.Lock()

    def __call__(self, module: mlir.RawModule, platform: str) -> mlir.RawModule:
        """The module that is compiled in the place of one: itself, where the target takes all of it."""
        if self.platforms and platform not in self.platforms:
            return module
        start = time.perf_counter()
        name = mlir.symbol_name(module.operation.attributes["sym_name"])
        found, rules, left, why = None, Counter[str](), (), ""
        try:
            graph = Graph(module, name, has_locations=True)
            if self._is_refused(graph):
                lowered = lower(graph, options=self.options, registry=self.registry)
                rules, left = _rules_of(lowered), lowered.refused
                if rules or lowered.stablehlo != to_text(graph):
                    found = self._as_given(graph, lowered).module
        except DifferenceError:
            raise
        except HloLowerError as error:
            why = str(error)
        except Exception as error:  # a program that runs without hlo_lower runs with it, too
            why = f"{type(error).__name__}: {error}"
        if why:
            warnings.warn(f"{name} is compiled as it is: {why}", InstallWarning, stacklevel=2)
        with self._lock:
            self.stats = self.stats.with_program(name, time.perf_counter() - start, found is not None, rules, left, why)
        return module if found is None else found

    def _is_refused(self, graph: Graph) -> bool:
        target = self.options.target
        has_scatters = bool(graph.scatters) and target.refuses_op(SCATTER) is not None
        return has_scatters or bool(refused_ops(graph, target))

    def _as_given(self, graph: Graph, lowered: Lowered) -> Graph:
        """The lowered module under the signature of the module, verified where that is asked for."""
        if self.verify is not None:
            lowered = verify_lowered(graph, lowered, self.verify, cache=self.cache)
        if _signature(lowered.graph) == _signature(graph):
            return lowered.graph
        text = lowered.as_given
        if lowered.demotion is not None:
            text = with_original_signature(text, lowered.demotion)
        as_given = read(text, graph.name, contained=False)
        if _signature(as_given) != _signature(graph):
            told = "its lowered form has other arguments or results than JAX expects"
            raise InputError(graph.name, told, next_step="leave out options that change element types")
        return as_given


_installed: _Installed | None = None


def install(
    target: TargetLike,
    platform: str | Collection[str] | None = None,
    *,
    verify: Level | None = None,
    cache: str | PathLike[str] | None = None,
    registry: CompositeLoweringRegistry | None = None,
    stats_at_exit: bool = False,
    **choices: Unpack[Choices],
) -> None:
    """Lower each program that JAX compiles from now on for a target, before the backend sees it.

    What no lowering fits is left as it is, for the backend to take or refuse. A program that the target takes whole is
    handed on untouched. Programs that were compiled before are compiled anew when they are called next.

    Args:
      target: the name of a built-in consumer, the path of a target file, or a `Target`; one that reads StableHLO.
      platform: the platform of JAX, or several ("mps", "cpu"); by default each.
      verify: judge each lowered program once ("regions", "full", "auto"; see `hlo_lower.verify`); a program that
        differs, or is not verified, raises `DifferenceError` where it is compiled.
      cache: a folder in which verdicts are kept from process to process, as of `hlo_lower.verify`.
      registry: the rules; by default the built-in ones and those of installed plug-ins.
      stats_at_exit: print `hl.stats()` to standard error when the process ends.
      **choices: the other attributes of `hl.Options`. By default what no rule fits is left (keep_unsupported).

    Raises:
      InputError: the target does not exist or reads no StableHLO, a value is none of its choices, or this release of
        JAX has no way in.

    Example:
      >>> hl.install("iree", platform="cpu")
      >>> jax.jit(lambda x: x.at[0].set(1.0))(jax.numpy.zeros(4))
      Array([1., 0., 0., 0.], dtype=float32)
      >>> hl.stats().changed
      1
      >>> hl.uninstall()
    """
    global _installed
    known_names("install", choices, tuple(Choices.__annotations__))
    options = Options(target, **{"keep_unsupported": True, **choices})
    if options.target.dialect != "stablehlo":
        told = f"the target {options.target.name} reads {options.target.dialect}, and a backend of JAX StableHLO"
        raise InputError("hl.install", told, next_step="choose a target that reads StableHLO")
    if options.checked:
        told = "checked gives each program one more result, which JAX does not expect"
        raise InputError("hl.install", told, next_step="leave it out; hl.jit accepts it")
    if verify is not None:
        checked_level("verify", verify)
    found = _Installed(options, registry_of(registry), texts("platform", platform or (), "mps"), verify, cache)
    intercept(Place.LOWER, found)
    _installed = found
    if stats_at_exit:
        atexit.register(lambda: print(found.stats, file=sys.stderr))


def uninstall() -> None:
    """Compile programs as they are again. `stats` keeps what it has counted.

    Example:
      >>> hl.uninstall()
    """
    release(Place.LOWER)


@contextmanager
def installed(target: TargetLike, platform: str | Collection[str] | None = None, **keywords: Any) -> Generator[None]:
    """Call `install` for the duration of a `with` block; what was installed before is back afterwards.

    Args:
      target, platform, **keywords: as of `install`.

    Example:
      >>> with hl.installed("iree", platform="cpu"):
      ...     total = jax.jit(lambda x: x.at[:2].add(1.0).sum())(np.zeros(4))
      >>> hl.stats().changed, float(total)
      (1, 2.0)

    Raises:
      InputError: as `install`.
    """
    global _installed
    before = _installed
    with restore_on_exit(Place.LOWER) as stood:
        try:
            install(target, platform, **keywords)
            yield
        finally:
            if stood:  # else `stats` keeps what was counted
                _installed = before


def stats() -> Stats:
    """What became of the programs that JAX compiled since `install` was called last.

    Returns:
      Counts, times, rules, and what is left; printed, it is a line for each.

    Example:
      >>> hl.stats().failed
      ()
    """
    return Stats() if _installed is None else _installed.stats


def install_as_environment_says() -> None:
    """`install` with what HLO_LOWER_TARGET, which is set, and its kin say.

    JAX calls it while it starts its backends, and goes on without what fails then. So where a variable holds none of
    its choices, the error is raised for the first program that is compiled, and for each after it.
    """
    target = os.environ[TARGET]
    platforms = [name.strip() for name in os.environ.get(PLATFORM, "").split(",") if name.strip()]
    verify: Any = os.environ.get(VERIFY) or None
    cache, shown = os.environ.get(CACHE) or None, os.environ.get(STATS, "") not in ("", "0")
    try:
        install(target, platforms or None, verify=verify, cache=cache, stats_at_exit=shown)
    except InputError as error:
        where = f"{TARGET}={target}" + (f": {error.where}" if error.where else "")
        told = replace(error, where=where)

        def refuse(_module: mlir.RawModule, _platform: str) -> mlir.RawModule:
            raise told

        intercept(Place.LOWER, refuse)


def _rules_of(lowered: Lowered) -> Counter[str]:
    """How often each lowering was used in a module."""
    found = Counter(record.rule for record in lowered.records if record.rule)
    for change in lowered.changes:
        if change.outcome in (Outcome.LEGALIZED, Outcome.LOWERED):
            found[f"{change.op} {change.outcome.value}"] += change.count
    return found


def _signature(graph: Graph) -> str:
    return str(graph.main.node.raw.attributes["function_type"])
