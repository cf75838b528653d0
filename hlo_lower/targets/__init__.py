"""Targets: what a consumer of the converted module accepts. This file is the whole list."""

from hlo_lower.errors import InputError
from hlo_lower.targets.stablehlo import STABLEHLO
from hlo_lower.targets.target import Target

TARGETS = (STABLEHLO,)


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
        "", f"no target named {name!r}", facts=f"targets: {known}", next_step=f"--target {TARGETS[0].name}"
    )


__all__ = ["TARGETS", "Target", "target_named"]
