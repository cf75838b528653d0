"""A child process that answers requests, for what may end the process that does it, or never end.

It ends with its parent, also where that is killed: at the end of its requests; within a second where it runs what
leaves Python's lock to others, as XLA does; and at the limit of the request where it runs what holds it (the
interpreter).
"""

import atexit
import faulthandler
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from math import inf
from threading import Lock, Thread, local
from time import clock_gettime, monotonic, process_time, sleep
from typing import Any, Self, cast

LENGTH_BYTES = 8
"""In front of each request and of each answer."""

GRACE = 1.0
"""Seconds behind a limit in which a parent that lives has ended its child."""

BUSY = 8.0
"""How many times as long as its limit a child may take that gets less than a processor."""

ASLEEP, HARDLY = 3.0, 0.01
"""The same of a child that sleeps: it has worked for no more than this part of its limit."""


class AnsweringChild:
    """A process that answers one request after the other; started when first needed, started anew when it dies.

    Args:
      module: what it runs: a module that calls `answer_all`.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def of_this_process(cls, *given: Any) -> Self:
        """The child that this process shares for these arguments; it ends with the process."""
        return cast(Self, _of_process(os.getpid(), cls, *given))

    def start(self) -> None:
        """Start the child, without waiting for it: it takes a second or two to be ready."""
        with self._lock:
            self._start()

    def ask(self, request: Any, limit: float = inf, clock: float = inf) -> Any:
        """The child's answer to what is asked, in so many seconds; of a processor where it shares one with others. In
        any case in so many seconds of the clock.

        Raises:
          TimeoutError: it did not answer in time, and was ended.
          BrokenPipeError: it died.
        """
        with self._lock:
            child = self._start()
            assert child.stdin is not None
            assert child.stdout is not None
            data, wait = pickle.dumps((limit, request)), _Wait(child.pid)
            try:
                child.stdin.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
                child.stdin.flush()
                wait.until_heard(child.stdout.fileno(), limit, clock)
                until = monotonic() + limit
                size = receive(child.stdout.fileno(), LENGTH_BYTES, until)
                return pickle.loads(receive(child.stdout.fileno(), int.from_bytes(size, "little"), until))
            except TimeoutError:
                self.close()
                raise
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self.close()
                raise BrokenPipeError(str(error)) from None
            finally:
                wait.count()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _environment(self) -> dict[str, str] | None:
        """The child's environment; None: that of this process."""
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", self._module, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment(),
            )
        return self._child


@cache
def _of_process(process: int, kind: Callable[..., AnsweringChild], *given: Any) -> AnsweringChild:
    """One for each process: a fork must not share the pipes."""
    child = kind(*given)
    atexit.register(child.close)
    return child


def receive(file: int, size: int, until: float) -> bytes:
    """Read so many bytes from a pipe.

    Raises:
      TimeoutError: they have not come until then, on the monotonic clock.
      EOFError: the other side has closed it before.
    """
    data = bytearray()
    while len(data) < size:
        if until < inf and not select.select([file], [], [], max(until - monotonic(), 0))[0]:
            raise TimeoutError
        part = os.read(file, min(size - len(data), 1 << 20))
        if not part:
            raise EOFError("it ended")
        data += part
    return bytes(data)


def answer_all(answer: Callable[[Any], Any]) -> None:
    """Answer requests on standard input until it ends. Nothing else is written to standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    parent = int(sys.argv[1])  # told, as it may be gone by now
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    while len(size := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        limit, request = pickle.loads(requests.read(int.from_bytes(size, "little")))
        if limit < inf:
            faulthandler.dump_traceback_later(BUSY * limit + GRACE, exit=True)
        data = pickle.dumps(answer(request))
        faulthandler.cancel_dump_traceback_later()
        answers.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
        answers.flush()


def _end_with(parent: int) -> None:
    """End this process when its parent has died."""
    while os.getppid() == parent:
        sleep(GRACE)
    os._exit(0)


def ending(code: int | None) -> str:
    """How a process ended, in words: code is negative for a signal."""
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"
    return f"exit code {code}"


# --- what work takes ---
#
# Limits of work decide what is said of it, so that they are not of the clock alone: on a busy machine it runs on.


class _Waits(local):
    """Of a thread: the seconds of others' work that it waited for."""

    seconds: float = 0.0


_waits = _Waits()


class Stopwatch:
    """Counts from when it is made: seconds of the clock, or of the processors that this process used, and children
    that this thread waited for, where these are fewer."""

    def __init__(self) -> None:
        self._start = _now()

    @property
    def seconds(self) -> float:
        """What it took so far."""
        return min(now - start for now, start in zip(_now(), self._start, strict=True))


def _now() -> tuple[float, float]:
    return monotonic(), process_time() + _waits.seconds


def count_wait(seconds: float) -> None:
    """Count what another process worked while this thread waited for it."""
    _waits.seconds += seconds


class _Wait:
    """A wait for a child's answer.

    Args:
      process: the child's number.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._since, self._before = monotonic(), _seconds_of(process)
        self._worked = 0.0

    def until_heard(self, file: int, limit: float, clock: float = inf) -> None:
        """Wait until the child has something to read, and not longer than it may work, or than the clock allows.

        Raises:
          TimeoutError: it has worked so many seconds, sleeps, or is given too little of a processor; or time is over.
        """
        left = min(limit, clock)
        while not select.select([file], [], [], None if left == inf else left)[0]:
            self._worked = self._seconds()
            times = BUSY if self._worked > HARDLY * limit else ASLEEP
            left = min(limit - self._worked, self._since + min(times * limit, clock) - monotonic())
            if left <= 0:
                raise TimeoutError
        self._worked = self._seconds()

    def _seconds(self) -> float:
        """What the child worked so far; where that is not known, how long it took."""
        now = _seconds_of(self._process)
        return monotonic() - self._since if now is None or self._before is None else now - self._before

    def count(self) -> None:
        """Count what the child worked as work of this thread; of one that did not answer how long it was waited for."""
        count_wait(self._worked or monotonic() - self._since)


_SCHEDULED = 2
"""Of the clocks of a process on Linux the one that counts what it ran."""


def _seconds_of(process: int) -> float | None:
    """The seconds of a processor that a living process has used; None where this system does not tell."""
    with suppress(OSError, OverflowError):
        return clock_gettime(~process << 3 | _SCHEDULED)
    return None
