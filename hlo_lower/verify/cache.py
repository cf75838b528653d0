"""Verdicts that are kept in a folder, by the content that they rest on: `hlo-lower verify --cache DIR`.

A file holds one verdict. Its name is a hash of everything that the verdict was made of: the texts, the terms, and the
version of the judge, which is a hash of its own sources and of the packages that compute for it; and of what was run
the kind of processor, for whose instructions XLA compiles. So a change of any of
these is another file. What depends on time is never kept: nothing that was not judged, and nothing that was judged with
a judge missing because it took too long.
"""

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar

from hlo_lower.base.errors import InputError
from hlo_lower.base.whole_files import make_folder, write_whole

PACKAGE = Path(__file__).parents[1]

ROOMS = ("base", "ir", "ops", "verify")
"""The parts of the package that a verdict is computed by."""

PACKAGES = ("jax", "jaxlib", "ml_dtypes", "numpy", "z3-solver")

Kind = Literal["derived", "not derived", "judged", "verified"]

RUN: frozenset[Kind] = frozenset({"judged", "verified"})
"""What rests on runs; a derivation holds everywhere."""

Made = TypeVar("Made")


@lru_cache(maxsize=1)
def version_of_judges() -> str:
    """A hash of the sources of laws and judges, of the versions of what computes for them, and of XLA's flags."""
    found = sha256(repr([*map(_version, PACKAGES), os.environ.get("XLA_FLAGS", "")]).encode())
    return _with_sources(found, sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")))


CPU_INFO = Path("/proc/cpuinfo")


@lru_cache(maxsize=1)
def kind_of_processor() -> str:
    """What XLA compiles for and runs on: a hash of the instructions that this machine has, and of how many processors
    there are, as large products are shared out among them."""
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        lines = []
    told = next((line for line in lines if line.split(":")[0].strip() in ("flags", "Features")), platform.processor())
    return sha256(repr((platform.machine(), os.cpu_count(), sorted(told.split()))).encode()).hexdigest()


@lru_cache(maxsize=1)
def version_of_package() -> str:
    """A hash of all sources of the package: of what depends on the converter, too."""
    return _with_sources(sha256(), sorted(PACKAGE.rglob("*.py")))


def _with_sources(found: Any, paths: Sequence[Path]) -> str:
    for path in paths:
        content = path.read_bytes()
        found.update(repr((path.relative_to(PACKAGE).as_posix(), len(content))).encode() + content)
    return found.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class VerdictCache:
    """A folder of verdicts.

    Attributes:
      folder: its path.
      judges: the version of the judge.
      tries_again: whether a derivation is tried that was in vain before: where only what is derived counts.

    Raises:
      InputError: the folder cannot be made, or no file can be written there.
    """

    folder: str
    judges: str
    tries_again: bool = False

    def __post_init__(self) -> None:
        make_folder(self.folder)

    def find(self, kind: Kind, content: object, read: Callable[[Mapping[str, Any]], Made]) -> Made | None:
        """The verdict of some content; None where none is kept, or its file is damaged or a foreign one.

        Args:
          kind: of verdict.
          content: what it rests on: strings, numbers, bytes, and tuples and dataclasses of these.
          read: makes the verdict of what `keep` was given.
        """
        key = self._key(kind, content)
        try:
            held = json.loads(self._path(key).read_bytes())
            return read(held["verdict"]) if held["digest"] == _digest(key, held["verdict"]) else None
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None

    def keep(self, kind: Kind, content: object, verdict: Mapping[str, Any]) -> None:
        """Keep a verdict; a folder that has become full or gone loses it, and nothing else."""
        key = self._key(kind, content)
        held = {"verdict": verdict, "digest": _digest(key, verdict)}
        try:
            write_whole(os.fspath(self._path(key)), f"{json.dumps(held)}\n".encode())
        except InputError:
            return

    def _key(self, kind: Kind, content: object) -> str:
        run_on = kind_of_processor() if kind in RUN else ""
        return digest_of((self.judges, run_on, kind, content))

    def _path(self, key: str) -> Path:
        return Path(self.folder, f"{key}.json")


def digest_of(content: object) -> str:
    """A hash of strings, numbers, bytes, and tuples and dataclasses of these."""
    return sha256(repr(content).encode()).hexdigest()


def _digest(key: str, verdict: Mapping[str, Any]) -> str:
    return sha256(f"{key} {json.dumps(verdict, sort_keys=True)}".encode()).hexdigest()
