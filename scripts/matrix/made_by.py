"""What a result of the matrix was made by: the code that converts, the code that judges, the target, the plug-ins."""

import hashlib
from importlib.metadata import entry_points
from pathlib import Path

import jax

import hlo_lower
from hlo_lower.lowering.kinds import GROUP

PACKAGE = Path(hlo_lower.__file__).parent
JUDGES = ("consumers", "verify", "containment", "scatter/reference.py", "mlir.py", "errors.py")
"""Below the package, what decides what is right; `scripts/matrix` does, too."""


def tool() -> str:
    """The version of hlo_lower and of jax, and a digest of every file of the package, targets included."""
    plugins = sorted(f"{point.name}={point.value}={_version(point.dist)}" for point in entry_points(group=GROUP))
    return f"{hlo_lower.__version__} jax {jax.__version__} {_digest([PACKAGE], plugins)}"


def judge() -> str:
    """A digest of the files that draw arguments, run and compare."""
    return _digest([*(PACKAGE / name for name in JUDGES), Path(__file__).parent], [jax.__version__])


def target_digest(target: str) -> str:
    """A digest of a target's file, "" for a built-in one: those are files of the package."""
    path = Path(target)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def _version(distribution: object) -> str:
    return str(getattr(distribution, "version", ""))


def _digest(places: list[Path], more: list[str]) -> str:
    """Of the names and contents of files, those in folders included, in an order of their own."""
    found = hashlib.sha256("\0".join(more).encode())
    for place in places:
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in files:
            if file.is_file() and file.suffix in (".py", ".toml", ".json"):
                name = file.relative_to(place.parent).as_posix()
                found.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode())
    return found.hexdigest()[:16]
