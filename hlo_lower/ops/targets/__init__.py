"""Targets: what a consumer of the converted module accepts. `TARGETS` is the whole list of built-in ones."""

import os
from functools import lru_cache
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from hlo_lower.base.arguments import likely, short_repr
from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.ops.targets.target import Target
from hlo_lower.ops.targets.target_file import NAMES, built_in_target, read_target_unchecked

if TYPE_CHECKING:
    TARGETS: tuple[Target, ...]
    STABLEHLO: Target
    XLA: Target
    IREE: Target
    LITERT: Target
    COREML: Target
    MPS: Target
    TT: Target
    METAL: Target
    LINALG: Target

SUFFIXES = (".toml", ".json")
"""How a name ends that is a file's."""

TargetLike: TypeAlias = str | PathLike[str] | Target
"""The name of a built-in target, the path of a target file, or a target."""


def __getattr__(name: str) -> object:
    """The built-in targets by their names in capitals, and `TARGETS`: read from their files when first asked for."""
    if name == "TARGETS":
        return tuple(map(built_in_target, NAMES))
    if name.isupper() and name.lower() in NAMES:
        return built_in_target(name.lower())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def target_named(name: str) -> Target:
    """The built-in target of this name.

    Raises:
      InputError: there is none; the message lists those that exist.
    """
    if name in NAMES:
        return built_in_target(name)
    raise InputError(
        "",
        f"no target named {name!r}",
        facts=f"targets: {', '.join(NAMES)}",
        next_step=f"--target {likely(name, NAMES)}, or a file of your own: --target ./my_npu.toml",
    )


def is_path(name: str) -> bool:
    """Whether the text that names a target is the path of its file."""
    return name.endswith(SUFFIXES) or os.sep in name


def target_of(target: TargetLike) -> Target:
    """The target that is meant: a built-in one by name, one read from a file, or a target as it is.

    A str is a path if it ends in ".toml" or ".json", or holds a path separator.

    Raises:
      InputError: there is no such target, the file does not describe one, or it names operations that do not exist.
    """
    if isinstance(target, Target):
        # By name first: only a target of that name can be the built-in one, and its file alone is read.
        if target.name not in NAMES or target != built_in_target(target.name):
            _check_object(target)
        return target
    if not isinstance(target, (str, PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own value
        raise InputError(
            "target",
            f"{short_repr(target)} is not a target",
            facts=f"targets: {', '.join(NAMES)}; or the path of a file, or an hl.Target",
            next_step=f'write target="{NAMES[0]}", or leave it out',
        )
    name = os.fspath(target)
    if not isinstance(target, str) or is_path(name):
        return read_target(name)
    return target_named(name)


def read_target(path: str) -> Target:
    """Read a target from a TOML or JSON file (`hlo_lower.ops.targets.target_file`).

    Raises:
      InputError: the file cannot be read, is neither, has an unknown key or a value of the wrong type, or names an
        operation or an element type that does not exist.
    """
    from hlo_lower.ops.targets.names import check_names  # which makes a context of MLIR; a built-in target needs none

    target = read_target_unchecked(path)
    check_names(target, path)
    return target


@lru_cache(maxsize=32)
def _check_object(target: Target) -> None:
    """Check a target that was made in Python, once."""
    from hlo_lower.ops.targets.names import check_names

    check_names(target, f"target {target.name}")


__all__ = [
    "COREML",
    "IREE",
    "LINALG",
    "LITERT",
    "METAL",
    "MPS",
    "STABLEHLO",
    "TARGETS",
    "TT",
    "XLA",
    "NativeScatter",
    "Target",
    "TargetLike",
    "read_target",
    "target_named",
    "target_of",
]
