"""A child process that answers requests, for what may end the process that does it, or never end.

It ends with its parent, also where that is killed: at the end of its requests; within a second where it runs what
leaves Python's lock to others, as XLA does; and at the limit of the request where it runs what holds it (the
interpreter).
"""

import faulthandler
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from threading import Lock, Thread
from time import sleep
from typing import Any, Self, cast

GRACE = 1.0
"""Seconds behind a limit in which a parent that lives has ended its child."""


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

    def start(self) -> None:
        """Start the child, without waiting for it: it takes a second or two to be ready."""
        with self._lock:
            self._start()

    def ask(self, request: Any, limit: float | None = None) -> tuple[bool, Any]:
        """Whether the child can do what is asked, and its answer, in so many seconds.

        Raises:
          TimeoutError: it did not answer in time, and was ended.
          BrokenPipeError: it died.
        """
        with self._lock:
            child = self._start()
            assert child.stdin is not None
            assert child.stdout is not None
            data = pickle.dumps((limit, request))
            try:
                child.stdin.write(len(data).to_bytes(8, "little") + data)
                child.stdin.flush()
                if limit is not None and not select.select([child.stdout], [], [], limit)[0]:
                    raise TimeoutError
                size = child.stdout.read(8)
                if len(size) < 8:
                    raise BrokenPipeError
                return cast(tuple[bool, Any], pickle.loads(child.stdout.read(int.from_bytes(size, "little"))))
            except TimeoutError:
                self.close()
                raise
            except (BrokenPipeError, EOFError, pickle.UnpicklingError):
                self.close()
                raise BrokenPipeError from None

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


def answer_all(answer: Callable[[Any], tuple[bool, Any]]) -> None:
    """Answer requests on standard input until it ends. Nothing else is written to standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    parent = int(sys.argv[1])  # told, as it may be gone by now
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    while len(size := requests.read(8)) == 8:
        limit, request = pickle.loads(requests.read(int.from_bytes(size, "little")))
        if limit is not None:
            faulthandler.dump_traceback_later(limit + GRACE, exit=True)
        data = pickle.dumps(answer(request))
        faulthandler.cancel_dump_traceback_later()
        answers.write(len(data).to_bytes(8, "little") + data)
        answers.flush()


def _end_with(parent: int) -> None:
    """End this process when its parent has died."""
    while os.getppid() == parent:
        sleep(GRACE)
    os._exit(0)
