"""What JAX calls when it starts its backends (the entry point `jax_plugins`): `hl.install` as the environment says.

    HLO_LOWER_TARGET=mps python train.py

Most processes of most users set no such variable: nothing is imported then.
"""

import os

TARGET = "HLO_LOWER_TARGET"
"""The variable that names the target."""


def initialize() -> None:
    """Install what the environment asks for, if it does."""
    if os.environ.get(TARGET):
        from hlo_lower.api.install import install_as_environment_says

        install_as_environment_says()
