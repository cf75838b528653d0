"""The built-in targets: one file each beside this one, read when it is asked for."""

from functools import cache
from pathlib import Path

from hlo_lower.ops.targets.target import Target
from hlo_lower.ops.targets.target_file import read_target_unchecked

NAMES = ("stablehlo", "xla", "iree", "litert", "coreml", "linalg")
"""The built-in targets, in the order in which they are listed."""


@cache
def built_in_target(name: str) -> Target:
    """The built-in target of one of `NAMES`.

    Its file is part of the package, so that it names operations and element types that exist is left to the tests.
    """
    return read_target_unchecked(str(Path(__file__).with_name(f"{name}.toml")))
