"""A small parent for the command line: the work is done in a child, whose death, hang or hunger becomes a message.

The parent forks before JAX is imported, so that it costs a few milliseconds and a few megabytes. The child keeps the
terminal, standard input and standard output: it is the program, and its exit code is the program's.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from hlo_lower.base.contained import crash_messages
from hlo_lower.base.contained.status_board import (
    Board,
    Note,
    lowering_seconds_for,
    mark_contained,
    memory_for,
    seconds_for,
)
from hlo_lower.base.errors import HloLowerError

EXIT_INTERRUPTED = 130
SIGNAL_EXIT = 128
TICK = 0.25
PATIENCE = 3.0
"""Seconds that a child has to end by itself after Control-C; within native code it does not notice."""

SHOW_CURSOR = "\x1b[?25h"
PR_SET_PDEATHSIG = 1
FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
ENDED_ON_REQUEST = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGPIPE")


def run_supervised(run: Callable[[], int], files: Sequence[str] = (), tell: Callable[[str], None] = print) -> int:
    """Run a command in a child process, where that can be done, and return its exit code in the parent and the child.

    A process that has JAX or threads already does not survive a fork with certainty: there, and where there is no
    fork, the command runs in this process.

    Args:
      run: the command.
      files: what it works on, as the user named it.
      tell: shows the message of a child that died.
    """
    if not hasattr(os, "fork") or "jax" in sys.modules or threading.active_count() > 1:
        return run()
    return in_child(run, files, tell)


def in_child(run: Callable[[], int], files: Sequence[str] = (), tell: Callable[[str], None] = print) -> int:
    """Run a command in a fork of this process, and return its exit code, in the parent as in the child."""
    board = Board()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    signals = [getattr(signal, name) for name in FORWARDED]
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # until both know what to do with them
    child = os.fork()
    if child == 0:
        mark_contained(board)
        _end_with(parent)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt_once)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return run()
    return _Watch(child, board, files, tell).until_it_ends(signals)


@dataclass
class _Watch:
    """The parent's side of a child."""

    child: int
    board: Board
    files: Sequence[str]
    tell: Callable[[str], None]
    interrupted_at: float = float("inf")
    error: HloLowerError | None = None

    def until_it_ends(self, signals: Sequence[int]) -> int:
        """Wait for the child, with its signals and limits, and return the exit code."""
        before = {number: signal.getsignal(number) for number in (*signals, signal.SIGALRM)}
        for number in signals:
            if before[number] != signal.SIG_IGN:
                signal.signal(number, self._forward)
        signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        _, status = os.waitpid(self.child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else self._after_a_signal(code)

    def _forward(self, number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.child, number)
        if number == signal.SIGINT:
            self.interrupted_at = min(self.interrupted_at, time.monotonic())

    def _look(self, *_: object) -> None:
        """End a child that does not heed Control-C, or that needs too much for what it reads."""
        if time.monotonic() - self.interrupted_at > PATIENCE:
            self._kill()
            return
        note = self.board.read()
        if self.error is None:
            self.error = self._beyond_limits(note)
            if self.error is not None:
                self._kill()

    def _beyond_limits(self, note: Note) -> HloLowerError | None:
        """What a child is told that reads, classifies or lowers beyond its limits; other work (running, compiling) has
        none."""
        now = time.monotonic()
        if note.is_reading:
            if now - note.since > seconds_for(note.size):
                return crash_messages.too_late(note.module, note.size)
            if _resident(self.child) > memory_for(note.size):
                return crash_messages.too_large(note.module, note.size)
        if note.lowering_since:
            module = self._name_of(note)
            if now - note.lowering_since > lowering_seconds_for(note.size):
                return crash_messages.lowered_too_late(module, note.size)
            if _resident(self.child) > memory_for(note.size):
                return crash_messages.lowered_too_large(module, note.size)
        return None

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)

    def _after_a_signal(self, code: int) -> int:
        """Clean up behind a child that could not, and say what happened."""
        note = self.board.read()
        if note.temporary:
            if os.path.isdir(note.temporary):
                shutil.rmtree(note.temporary, ignore_errors=True)
            with suppress(OSError):
                os.unlink(note.temporary)
        if sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR)  # which a progress bar hides
        if self.interrupted_at < float("inf"):
            self.tell("interrupted")
            return EXIT_INTERRUPTED
        if self.error is None and -code in [getattr(signal, name) for name in ENDED_ON_REQUEST]:
            return SIGNAL_EXIT - code
        error = self.error or self._death_error(note, code)
        self.tell(str(error))
        return error.exit_code

    def _death_error(self, note: Note, code: int) -> HloLowerError:
        if note.is_reading:
            return crash_messages.died_reading(note.module, note.size, code)
        return crash_messages.died_working(self._name_of(note), code)

    def _name_of(self, note: Note) -> str:
        """What is worked on, as the user named it: what was read may be a part of it, or a copy."""
        known = any(note.module.startswith(file) for file in self.files)
        return note.module if known else ", ".join(self.files)


def _interrupt_once(*_: object) -> None:
    """Control-C in the child: the terminal and the parent may both send it, and the second must not break the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with(parent: int) -> None:
    """Have this process end when its parent is killed, where the system can do that (Linux)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # which JAX needs anyway, and the parent does not

    with suppress(OSError, AttributeError):
        system: Any = ctypes.CDLL(None)
        system.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(SIGNAL_EXIT + signal.SIGKILL)


def _resident(process: int) -> int:
    """The bytes of memory that a process has taken, where the system says (Linux), else 0."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
