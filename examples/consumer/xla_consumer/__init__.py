"""XLA on the CPU as a consumer: what it takes to have modules judged by a compiler that hlo_lower does not know."""

from collections.abc import Sequence
from importlib import import_module

from hlo_lower.consumers import Array, Consumer, RefusedError, Runner

XLA = Consumer(
    "xla",
    "XLA (CPU)",
    driver=__name__,  # this file: imported in the child process, too
    imports=("jax",),  # what has to be importable
    package="jax",  # whose version is shown
    modules_per_process=100,  # it starts slowly, and what it compiles stays in its own memory
    environment={"JAX_PLATFORMS": "cpu"},
)


def load() -> None:
    """Import what it is made of: not counted in the time of a module."""
    import_module("jax")


def compile_module(text: str) -> Runner:
    """Compile a module's text.

    Raises:
      RefusedError: XLA says no.
    """
    from hlo_lower.verify.run import CannotRunError, Executable

    try:
        executable = Executable(text, "exact")
    except CannotRunError as error:
        raise RefusedError(str(error)) from None

    def run(arguments: Sequence[Array]) -> list[Array]:
        return executable.run(arguments)

    return run
