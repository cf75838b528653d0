"""Modules that run in a child process: for more devices than this process has, and what may not end soon.

How many devices a CPU is has to be said before JAX starts, so it cannot be changed in a process that runs already; and
nothing stops a module that is compiled or run under XLA but the end of its process.
"""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import count as count_from
from math import inf
from typing import Any, Protocol, cast

import jax
from numpy.typing import NDArray

from hlo_lower.base.child import AnsweringChild, answer_all
from hlo_lower.ir import mlir
from hlo_lower.verify.judges.cost import cost_of
from hlo_lower.verify.judges.patience import patience
from hlo_lower.verify.judges.xla_aborts import MAX_INLINED
from hlo_lower.verify.read.partitions import device_count
from hlo_lower.verify.run import CannotRunError, Executable, Rounding

Array = NDArray[Any]

_MAY_BE_PARTITIONED = re.compile(r"mhlo\.num_(partitions|replicas) = (?!1 )")
GONE = "the process that it was compiled in died"
"""What a child says of a module that an earlier one had compiled."""

TIME_LIMIT = 2.0
"""Seconds for one run of a piece whose loops may not end."""

HOPELESS = 300
"""Times the seconds that are left: what takes longer is not tried, as no estimate is so far off."""

_FLAG = "--xla_force_host_platform_device_count"


class TookTooLongError(CannotRunError):
    """A compilation or a run did not end in its time, or is not tried, because it would not."""


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


def executable(text: str, rounding: Rounding, open_limit: float = inf, lane: int = 0) -> Runnable:
    """Compile a module: here where there are devices enough and it surely ends soon, else in a child that is ended when
    the patience of the verification is.

    Args:
      text: the module.
      rounding: how.
      open_limit: seconds for a run where its loops may not end.
      lane: which of several children, as each has one request at a time.

    Raises:
      TookTooLongError: it is not compiled in time, or not tried.
      CannotRunError: it cannot be compiled.
    """
    count, cost = devices_of(text), cost_of(text)
    if cost.is_small and count <= len(cast(Any, jax).devices("cpu")):
        return Executable(text, rounding)
    left = patience()
    if not cost.is_small and left.is_over:
        raise TookTooLongError(left.told("it is not tried, because others took"))
    if cost.operations > MAX_INLINED or HOPELESS * left.left < cost.seconds < inf:
        raise TookTooLongError(left.told(f"it is not tried, because {cost.told} would take far"))
    limit = open_limit if cost.seconds == inf else inf
    return _Remote(DeviceProcess.shared(count, lane), text, rounding, limit)


def compile_anywhere(sources: Sequence[tuple[str, Rounding]], open_limit: float = inf) -> list[Runnable]:
    """Compile several modules at a time; see `executable`.

    Raises:
      CannotRunError: one of them cannot be compiled.
    """
    with ThreadPoolExecutor(max_workers=2) as pool:
        waiting = [
            pool.submit(copy_context().run, executable, text, rounding, open_limit, 1 + lane)
            for lane, (text, rounding) in enumerate(sources)
        ]
        return [future.result() for future in waiting]


def start_child() -> None:
    """Start the process for pieces, without waiting for it: it takes a second to be ready."""
    DeviceProcess.shared(1, 0).start()


def piece_executable(text: str, rounding: Rounding = "exact") -> Runnable:
    """Compile a piece of a module, whose loops have `TIME_LIMIT` for a run where they may not end; see `executable`."""
    return executable(text, rounding, TIME_LIMIT)


class DeviceProcess(AnsweringChild):
    """A process whose CPU is several devices.

    Attributes:
      count: how many devices.
      lane: what is compiled there: 0 for pieces, which do not wait for whole modules.
      unused: numbers of compiled modules that the child forgets with the next request.
    """

    def __init__(self, count: int, lane: int) -> None:
        super().__init__("hlo_lower.verify.judges.devices")
        self.count, self.lane = count, lane
        self.unused: list[int] = []

    def result(self, request: tuple[Any, ...], limit: float = inf) -> Any:
        """The child's answer to a request, in so many seconds at most, and in those that the verification has left.

        Raises:
          CannotRunError: with what the child says, or that it died.
          TookTooLongError: it did not answer in time, and was ended.
        """
        unused, self.unused = self.unused, []
        left = patience()
        limit = min(limit, max(left.left, 1.0))
        try:
            ok, answer = self.ask((unused, *request), limit)
        except TimeoutError:
            left.charge(limit)
            what = "a run" if request[0] == "run" else "its compilation"
            raise TookTooLongError(f"{what} took more than {limit:.0f} s") from None
        except BrokenPipeError:
            raise CannotRunError(f"the process that ran it on {self.count} devices died") from None
        if not ok:
            raise CannotRunError(str(answer))
        return answer

    @property
    def process(self) -> Any:
        """The process that answers now, None where it was ended."""
        return self._child

    def _environment(self) -> dict[str, str]:
        flags = [f for f in os.environ.get("XLA_FLAGS", "").split() if not f.startswith(_FLAG)]
        environment = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
        return environment | {"XLA_FLAGS": " ".join([*flags, f"{_FLAG}={self.count}"]), "JAX_PLATFORMS": "cpu"}


_NUMBERS = count_from(1)
"""Of compiled modules. None is given twice, as a child that takes another one's place knows nothing of the old ones."""


class _Remote:
    """A module compiled in a child, which forgets it some time after this object is gone."""

    def __init__(self, child: DeviceProcess, text: str, rounding: Rounding, limit: float) -> None:
        self._child = child
        self._compiled = (text, rounding)
        self._limit = limit
        self._compile()

    def _compile(self) -> None:
        number = next(_NUMBERS)
        self._child.result(("compile", number, *self._compiled))
        self._number, self._process = number, self._child.process

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results; compiled anew where the child was ended since."""
        if self._child.process is not self._process:
            self._compile()
        return cast(list[Array], self._child.result(("run", self._number, list(arguments)), self._limit))

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._child.unused.append(self._number)


class _Compiled:
    """What a child has compiled, by number."""

    def __init__(self) -> None:
        self._modules: dict[int, Executable] = {}

    def __call__(self, request: tuple[Any, ...]) -> tuple[bool, Any]:
        """Compile a module, or run one."""
        unused, what, number, *given = request
        for old in unused:
            self._modules.pop(old, None)
        try:
            if what == "compile":
                self._modules[number] = Executable(given[0], given[1])
                return True, None
            if number in self._modules:
                return True, self._modules[number].run(given[0])
        except CannotRunError as error:
            return False, str(error)
        return False, GONE


if __name__ == "__main__":
    answer_all(_Compiled())
