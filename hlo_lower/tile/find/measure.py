"""Measure what XLA needs for a module's temporaries: compiled in a child process, because its flags are read once."""

import os
from collections.abc import Generator, Sequence

from hlo_lower.base.errors import InputError
from hlo_lower.base.processes import Lost, in_processes
from hlo_lower.ir import mlir

FLAGS = (
    "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED --xla_cpu_experimental_ynn_fusion_type= "
    "--xla_backend_optimization_level=0"
)
"""The schedule that needs least memory, and no fusions whose buffers XLA does not count (264 of 520 MiB
otherwise). Buffers are assigned before code is generated, which is half of the time, and which nothing runs."""

LIMIT = 600.0
"""Seconds in which XLA compiles a module."""


def measure_temporaries(texts: Sequence[str], seconds: float = LIMIT) -> Generator[tuple[int, int | str]]:
    """Yield the number and XLA's `temp_size_in_bytes` of each module, or the reason why it has none.

    Arguments and results are not counted. A module may take `seconds`.
    """
    for number, answer in in_processes(_of, texts, jobs=1, timeout=min(seconds, LIMIT), prepare=_prepare):
        yield number, answer.reason if isinstance(answer, Lost) else answer


def require_bytes(size: int | str, name: str) -> int:
    """Measured bytes; a reason why there are none raises InputError."""
    if isinstance(size, str):
        raise InputError(name, f"its temporaries are not known: {size}", next_step="hlo-lower verify shows what runs")
    return size


def _prepare() -> None:
    os.environ["XLA_FLAGS"] = FLAGS if mlir.XLA_PLANS_MEMORY else ""
    os.environ["JAX_PLATFORMS"] = "cpu"


def _of(text: str) -> int | str:
    from hlo_lower.verify.run import CannotRunError, temporaries  # only this child compiles

    try:
        return temporaries(text)
    except CannotRunError as error:
        return str(error)
