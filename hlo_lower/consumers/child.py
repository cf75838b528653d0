"""The parent's side of a consumer's child process: asked, timed, killed with all that it started, and replaced."""

import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from math import inf
from tempfile import TemporaryFile
from typing import IO, Any

from hlo_lower.base.child import receive
from hlo_lower.consumers.consumer import Consumer
from hlo_lower.consumers.consumer_outcome import Array, Build, death_words, first_line, signal_name
from hlo_lower.consumers.consumer_worker import LAST, LENGTH_BYTES

START = 120.0
"""Seconds for the start of a child, which imports the consumer."""

STDERR_READ = 1 << 16

FILLED = {"MALLOC_PERTURB_": "165"}
"""glibc fills what it hands out with 0x5A and what is given back with 0xA5: what a consumer reads before it was
written, or beyond an array, is no zero."""


class DiedError(Exception):
    """The child died: how, and its last words."""


class LateError(Exception):
    """The child was not done in time, and has been ended."""


class ConsumerProcess:
    """A consumer's process, in a process group of its own; it and each process that it starts may have so many
    bytes."""

    def __init__(self, consumer: Consumer, memory: int) -> None:
        self._errors: IO[bytes] = TemporaryFile()  # noqa: SIM115 closed with the child
        self.taken = 0
        self._is_ready = False
        self._started = time.monotonic()
        command = [sys.executable, "-m", "hlo_lower.consumers.consumer_worker", consumer.driver, str(memory)]
        environment = {**os.environ, **FILLED, **consumer.environment}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
        )

    def ask(
        self, text: str, sets: Sequence[Sequence[Array]], limit: float, build: Build | None = None
    ) -> Generator[tuple[Any, ...]]:
        """Give it a module and the arguments of its runs, and yield each answer; the last is one of `LAST`.

        The limit is in seconds, without the start of the process. After DiedError or LateError the child is of no more
        use.
        """
        self.taken += 1
        try:
            if not self._is_ready:
                self._receive(self._started + START)
                self._is_ready = True
            until = time.monotonic() + limit
            data = pickle.dumps((text, [list(arguments) for arguments in sets], build))
            self._send(len(data).to_bytes(LENGTH_BYTES, "little") + data, until)
            while True:
                answer = self._receive(until)
                yield answer
                if answer[0] in LAST:
                    return
        except TimeoutError:
            self.close()
            raise LateError from None
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise DiedError(self._ending()) from None

    def close(self) -> None:
        """End the process and what it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._errors.close()

    def _send(self, data: bytes, until: float) -> None:
        """Write without waiting forever: a child that hangs does not read."""
        assert self._process.stdin is not None
        file = self._process.stdin.fileno()
        os.set_blocking(file, False)
        view = memoryview(data)
        while view:
            _, ready, _ = select.select([], [file], [], None if until == inf else max(until - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            view = view[os.write(file, view[: 1 << 16]) :]

    def _receive(self, until: float) -> tuple[Any, ...]:
        size = int.from_bytes(self._read(LENGTH_BYTES, until), "little")
        return pickle.loads(self._read(size, until))

    def _read(self, size: int, until: float) -> bytes:
        assert self._process.stdout is not None
        return receive(self._process.stdout.fileno(), size, until)

    def _ending(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)  # its pipe is closed; it may still be dying
        code = self._process.poll()
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - STDERR_READ, 0))
        said = self._errors.read().decode(errors="replace")
        self.close()
        if code is not None and code < 0:
            how, words = f"ended by {signal_name(-code)}", death_words(said)
        else:
            how, words = f"ended, exit code {code}", first_line("\n".join(reversed(said.splitlines())))
        return f"{how}{f': {words}' if words else ''}"
