"""What is said of a verification beside the two modules: what they assume, how far it goes, and who is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import NoneType
from typing import Any, Literal, TypeAlias, TypedDict

from hlo_lower.base.arguments import is_listed, is_named, one_of, progress, seconds, short_repr, silent, whole
from hlo_lower.base.errors import InputError
from hlo_lower.verify.cache import VerdictCache, version_of_judges
from hlo_lower.verify.patience import TIME_LIMIT

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told of a stage ("regions", "module"), how much of it is done, and how much there is."""

Level: TypeAlias = Literal["auto", "regions", "full"]

LEVELS: tuple[Level, ...] = ("auto", "regions", "full")
"""What is verified: the regions, and the whole module if it fits the memory budget; the regions alone; or both."""

Require: TypeAlias = Literal["derived", "tested"]

REQUIREMENTS: tuple[Require, ...] = ("derived", "tested")
"""What counts as verified: only what holds for all inputs, or also what driven runs show."""

Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
"""Arguments of a module, by position or by name."""

PROVE_SECONDS = 10.0
"""For each attempt to derive a region, where a proof is asked for."""


@dataclass(frozen=True)
class Assumed:
    """What two versions of a module mean and promise beyond their texts.

    Attributes:
      oob: what a scatter of the first version does out of bounds: as XLA, drop whole windows, or as the specification,
        single elements.
      reassociated: whether float sums may have been put into another order: they are compared within a bound then.
      trust_flags: whether scatters of the first version keep the promise of `unique_indices = true`; runs that break it
        are left out.
      one_device: whether the second version may be for one device where the first one is for several.

    Raises:
      InputError: oob is none of its choices.
    """

    oob: Literal["xla", "spec"] = "xla"
    reassociated: bool = False
    trust_flags: bool = False
    one_device: bool = False

    def __post_init__(self) -> None:
        one_of("oob", self.oob, ("xla", "spec"))


class EffortKeywords(TypedDict, total=False):
    """The keywords of `Effort`, as `hl.verify` takes them."""

    level: Level
    inputs: Inputs
    seed: int
    runs: int
    prove: bool
    accept_runs: bool
    require: Require
    jobs: int
    patience: int
    timeout: float | None
    cache: str | PathLike[str] | None
    progress: Progress | None


@dataclass(frozen=True)
class Effort:
    """How far a verification goes, checked.

    Attributes:
      level: one of `LEVELS`.
      inputs: arguments of the whole module, by position or by name; None: seeded random ones.
      seed, runs: of the random inputs, 0 or more.
      prove: whether more time is taken to derive each region; what speaks against it makes it only run.
      accept_runs: whether what was only run counts as verified.
      require: one of `REQUIREMENTS`.
      jobs: how many processes judge regions, 1 or more.
      patience: seconds that may be spent in vain, on what does not end; what ends may take its time.
      timeout: seconds of the clock, after which nothing more is begun: what was found until then is told, and the rest
        is not judged; None: it takes its time.
      cache: a folder in which verdicts are kept, made where it is missing; None: none are.
      progress: told how far it is.

    Raises:
      InputError: a value is of a wrong type or none of the choices.
    """

    level: Level = "auto"
    inputs: Inputs = None
    seed: int = 0
    runs: int = 3
    prove: bool = False
    accept_runs: bool = False
    require: Require = "tested"
    jobs: int = 1
    patience: int = TIME_LIMIT
    timeout: float | None = None
    cache: str | PathLike[str] | None = None
    progress: Progress | None = None

    @property
    def verdicts(self) -> VerdictCache | None:
        """Where verdicts are kept; None where no one asks.

        Raises:
          InputError: the folder cannot be made, or does not admit files.
        """
        if self.cache is None:
            return None
        return VerdictCache(fspath(self.cache), version_of_judges(), tries_again=self.require == "derived")

    @property
    def tell(self) -> Progress:
        """Who is told how far it is: nobody, where no one asks."""
        return self.progress or silent

    def __post_init__(self) -> None:
        checked_level("level", self.level)
        one_of("require", self.require, REQUIREMENTS)
        for name, least in (("seed", 0), ("runs", 0), ("jobs", 1), ("patience", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))
        if self.timeout is not None:
            object.__setattr__(self, "timeout", seconds("timeout", self.timeout))
        for name in ("prove", "accept_runs"):
            one_of(name, getattr(self, name), (False, True))
        progress(self.progress)
        _check_inputs(self.inputs)
        if not isinstance(self.cache, (str, PathLike, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own value
            raise InputError("cache", f"{short_repr(self.cache)} is not a path", next_step='write cache="verdicts"')


def checked_level(name: str, level: Level) -> None:
    """Check that a level exists."""
    one_of(name, level, LEVELS)


def _check_inputs(inputs: object) -> None:
    """Check that arguments are given by position or by name; whether they fit the module is seen when it is read."""
    if inputs is None or is_named(inputs) or is_listed(inputs):
        return
    raise InputError(
        "inputs",
        f"{short_repr(inputs)} is neither a list of arrays nor a mapping from names to arrays",
        facts=f"it is of type {type(inputs).__name__}",
        next_step='write inputs=[x, y], one for each argument, or inputs={"x": x, "y": y}',
    )
