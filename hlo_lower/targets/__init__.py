"""Targets: what a consumer of the converted module accepts. `TARGETS` is the whole list of built-in ones."""

import os
from functools import lru_cache
from os import PathLike
from typing import TypeAlias

from hlo_lower.errors import InputError
from hlo_lower.targets.iree import IREE
from hlo_lower.targets.names import check_names
from hlo_lower.targets.stablehlo import STABLEHLO
from hlo_lower.targets.target import Target
from hlo_lower.targets.target_file import read_target
from hlo_lower.targets.xla import XLA

TARGETS = (STABLEHLO, XLA, IREE)

TargetLike: TypeAlias = str | PathLike[str] | Target
"""The name of a built-in target, the path of a target file, or a target."""


def target_named(name: str) -> Target:
    """The built-in target of this name.

    Raises:
      InputError: there is none; the message lists those that exist.
    """
    for target in TARGETS:
        if target.name == name:
            return target
    known = ", ".join(target.name for target in TARGETS)
    raise InputError(
        "",
        f"no target named {name!r}",
        facts=f"targets: {known}",
        next_step=f"--target {TARGETS[0].name}, or a file of your own: --target ./my_npu.toml",
    )


def target_of(target: TargetLike) -> Target:
    """The target that is meant: a built-in one by name, one read from a file, or a target as it is.

    A str is a path if it ends in ".toml" or holds a path separator.

    Raises:
      InputError: there is no such target, the file does not describe one, or it names operations that do not exist.
    """
    if isinstance(target, Target):
        if target not in TARGETS:
            _check_object(target)
        return target
    name = os.fspath(target)
    if not isinstance(target, str) or name.endswith(".toml") or os.sep in name:
        return read_target(name)
    return target_named(name)


@lru_cache(maxsize=32)
def _check_object(target: Target) -> None:
    """Check a target that was made in Python, once."""
    check_names(target, f"target {target.name}")


__all__ = ["IREE", "STABLEHLO", "TARGETS", "XLA", "Target", "TargetLike", "read_target", "target_named", "target_of"]
