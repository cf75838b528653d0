"""StableHLO's reference interpreter in a child process, because an op that it does not support aborts the process."""

import atexit
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TIME_LIMIT = 60.0
"""Seconds for one run; the first one includes the start of the child."""


class InterpreterError(Exception):
    """The interpreter refused the module, died on it or took too long."""


class Interpreter:
    """A child that interprets modules one after the other; started when first needed, started anew when it dies."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the child, without waiting for it: it takes a second or two to be ready."""
        self._start()

    def run(self, text: str, arguments: Sequence[Array]) -> list[Array]:
        """The results of a module's @main.

        Raises:
          InterpreterError: it cannot be interpreted; the child has been replaced if it died.
        """
        child = self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        request = pickle.dumps((text, list(arguments)))
        try:
            child.stdin.write(len(request).to_bytes(8, "little") + request)
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], TIME_LIMIT)
            if not ready:
                self.close()
                raise InterpreterError(f"no answer in {TIME_LIMIT:.0f} s")
            size = child.stdout.read(8)
            if len(size) < 8:
                raise BrokenPipeError
            ok, answer = pickle.loads(child.stdout.read(int.from_bytes(size, "little")))
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            self.close()
            raise InterpreterError("the interpreter died on it (an op that it does not support)") from None
        if not ok:
            raise InterpreterError(str(answer))
        return cast(list[Array], answer)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            command = [sys.executable, "-m", "hlo_lower.verify.interpreter"]
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._child


def shared_interpreter() -> Interpreter:
    """The interpreter of this process: its child serves every verification, and ends with the process."""
    return _of_process(os.getpid())


@cache
def _of_process(process: int) -> Interpreter:
    """One for each process: a fork must not share the pipes."""
    interpreter = Interpreter()
    atexit.register(interpreter.close)
    return interpreter


def serve() -> None:
    """Answer requests on standard input until it ends. Nothing else is written to standard output."""
    from hlo_lower import mlir

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while len(size := requests.read(8)) == 8:
        text, arguments = pickle.loads(requests.read(int.from_bytes(size, "little")))
        try:
            answer = pickle.dumps((True, [np.array(a) for a in mlir.interpret(text, arguments)]))
        except Exception as error:  # whatever the bindings raise is the answer
            answer = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    serve()
