"""Modules that run in a child process: for more devices than this process has, and loops that may not end.

How many devices a CPU is has to be said before JAX starts, so it cannot be changed in a process that runs already; and
nothing stops a module that runs under XLA but the end of its process.
"""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, Protocol, cast

import jax
from numpy.typing import NDArray

from hlo_lower import mlir
from hlo_lower.answering_child import AnsweringChild, answer_all
from hlo_lower.verify.partitions import device_count
from hlo_lower.verify.run import CannotRunError, Executable, Rounding

Array = NDArray[Any]

_MAY_BE_PARTITIONED = re.compile(r"mhlo\.num_(partitions|replicas) = (?!1 )")
GONE = "the process that it was compiled in died"
"""What a child says of a module that an earlier one had compiled."""

TIME_LIMIT = 2.0
"""Seconds for one run of a piece whose loops may not end."""

MODULE_TIME_LIMIT = 120.0
"""Seconds for one run of a whole module whose loops may not end."""

_FLAG = "--xla_force_host_platform_device_count"


class TookTooLongError(CannotRunError):
    """A run did not end in its time."""


class Runnable(Protocol):
    """A compiled module."""

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results, as NumPy arrays of the whole.

        Raises:
          CannotRunError: it fails at run time.
        """
        ...


def devices_of(text: str) -> int:
    """How many devices a module is for."""
    if _MAY_BE_PARTITIONED.search(text) is None:
        return 1
    return device_count(mlir.parse_module(text))


def executable(text: str, rounding: Rounding, limit: float = inf) -> Runnable:
    """Compile a module, here where there are devices enough and no run has a limit, else in a child.

    Args:
      text: the module.
      rounding: how.
      limit: seconds for a run.

    Raises:
      CannotRunError: it cannot be compiled.
    """
    count = devices_of(text)
    if limit == inf and count <= len(cast(Any, jax).devices("cpu")):
        return Executable(text, rounding)
    return _Remote(DeviceProcess.shared(count, "modules"), text, rounding, limit)


def compile_anywhere(sources: Sequence[tuple[str, Rounding]], limit: float = inf) -> list[Runnable]:
    """Compile several modules at a time; see `executable`.

    Raises:
      CannotRunError: one of them cannot be compiled.
    """
    with ThreadPoolExecutor(max_workers=2) as pool:
        waiting = [pool.submit(executable, text, rounding, limit) for text, rounding in sources]
        return [future.result() for future in waiting]


def start_child() -> None:
    """Start the process of `time_limited`, without waiting for it: it takes a second to be ready."""
    DeviceProcess.shared(1, "pieces").start()


def time_limited(text: str, rounding: Rounding) -> Runnable:
    """Compile a module whose loops may not end, in a child; `run` raises TookTooLongError.

    Raises:
      CannotRunError: it cannot be compiled.
    """
    return _Remote(DeviceProcess.shared(1, "pieces"), text, rounding, TIME_LIMIT)


class DeviceProcess(AnsweringChild):
    """A process whose CPU is several devices.

    Attributes:
      count: how many devices.
      purpose: what is compiled there; pieces do not wait for whole modules.
      unused: numbers of compiled modules that the child forgets with the next request.
    """

    def __init__(self, count: int, purpose: str) -> None:
        super().__init__("hlo_lower.verify.devices")
        self.count, self.purpose = count, purpose
        self.unused: list[int] = []

    def result(self, request: tuple[Any, ...], limit: float = inf) -> Any:
        """The child's answer to a request, in so many seconds.

        Raises:
          CannotRunError: with what the child says, or that it died.
          TookTooLongError: it did not answer in time, and was ended.
        """
        unused, self.unused = self.unused, []
        try:
            ok, answer = self.ask((unused, *request), limit)
        except TimeoutError:
            raise TookTooLongError(f"a run took more than {limit:.0f} s") from None
        except BrokenPipeError:
            raise CannotRunError(f"the process that ran it on {self.count} devices died") from None
        if not ok:
            raise CannotRunError(str(answer))
        return answer

    def _environment(self) -> dict[str, str]:
        flags = [f for f in os.environ.get("XLA_FLAGS", "").split() if not f.startswith(_FLAG)]
        environment = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
        return environment | {"XLA_FLAGS": " ".join([*flags, f"{_FLAG}={self.count}"]), "JAX_PLATFORMS": "cpu"}


class _Remote:
    """A module compiled in a child, which forgets it some time after this object is gone."""

    def __init__(self, child: DeviceProcess, text: str, rounding: Rounding, limit: float) -> None:
        self._child = child
        self._compiled = (text, rounding)
        self._limit = limit
        self._number = int(child.result(("compile", text, rounding)))

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results."""
        try:
            return cast(list[Array], self._child.result(("run", self._number, list(arguments)), self._limit))
        except TookTooLongError:  # the child is gone, and what it had compiled
            self._number = int(self._child.result(("compile", *self._compiled)))
            raise
        except CannotRunError as error:
            if str(error) != GONE:
                raise
            self._number = int(self._child.result(("compile", *self._compiled)))
            return cast(list[Array], self._child.result(("run", self._number, list(arguments)), self._limit))

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._child.unused.append(self._number)


class _Compiled:
    """What a child has compiled, by number."""

    def __init__(self) -> None:
        self._modules: dict[int, Executable] = {}
        self._count = 0

    def __call__(self, request: tuple[Any, ...]) -> tuple[bool, Any]:
        """Compile a module, or run one."""
        unused, what, *given = request
        for old in unused:
            self._modules.pop(old, None)
        try:
            if what == "compile":
                self._modules[self._count] = Executable(given[0], given[1])
                self._count += 1
                return True, self._count - 1
            if given[0] in self._modules:
                return True, self._modules[given[0]].run(given[1])
        except CannotRunError as error:
            return False, str(error)
        return False, GONE


if __name__ == "__main__":
    answer_all(_Compiled())
