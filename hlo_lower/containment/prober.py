"""Reading tried in a child first: `probe` says how it ends, and this process survives it."""

import atexit
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from functools import cache
from typing import cast

from hlo_lower.containment import crash_messages
from hlo_lower.containment.status_board import seconds_for
from hlo_lower.errors import HloLowerError, InputError

SERVER = "hlo_lower.graph.probe"
START = 60.0
"""Seconds for the start of the child, which imports JAX."""

LENGTH_BYTES = 8


class Prober:
    """A child that reads modules, each in a fork of its own; started when first needed, and again when it is lost."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def probe(self, data: str | bytes, name: str) -> HloLowerError | None:
        """How reading a module ends: None where it can be read.

        Raises:
          InputError: there is no child to try it in.
        """
        request = pickle.dumps((data, name))
        with self._lock:
            try:
                return self._ask(request, time.monotonic() + START + 2 * seconds_for(len(data)))
            except TimeoutError:
                self.close()
                return crash_messages.too_late(name, len(data))
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self.close()
                raise InputError(
                    name,
                    f"there is no process to read it in: {error or type(error).__name__}",
                    next_step="read(..., contained=False) reads it in this process, which may not survive it",
                ) from None

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _ask(self, request: bytes, until: float) -> HloLowerError | None:
        if self._child is None or self._child.poll() is not None:
            command = [sys.executable, "-m", SERVER]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        for part in (len(request).to_bytes(LENGTH_BYTES, "little"), request):
            view = memoryview(part)
            while view:
                view = view[child.stdin.write(view) :]
        size = receive(child.stdout.fileno(), LENGTH_BYTES, until)
        answer = receive(child.stdout.fileno(), int.from_bytes(size, "little"), until)
        return cast(HloLowerError | None, pickle.loads(answer))


def probe(data: str | bytes, name: str) -> HloLowerError | None:
    """How reading a module ends, tried in a child that this process keeps: None where it can be read.

    Raises:
      InputError: there is no child to try it in.
    """
    return _of_process(os.getpid()).probe(data, name)


@cache
def _of_process(process: int) -> Prober:
    """One for each process: a fork must not share the pipes."""
    prober = Prober()
    atexit.register(prober.close)
    return prober


def receive(file: int, size: int, until: float) -> bytes:
    """Read so many bytes from a pipe.

    Raises:
      TimeoutError: they have not come until then, on the monotonic clock.
      EOFError: the other side has closed it before.
    """
    data = bytearray()
    while len(data) < size:
        ready, _, _ = select.select([file], [], [], max(until - time.monotonic(), 0))
        if not ready:
            raise TimeoutError
        part = os.read(file, min(size - len(data), 1 << 20))
        if not part:
            raise EOFError("it ended")
        data += part
    return bytes(data)
