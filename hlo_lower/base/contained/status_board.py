"""What this process is doing, told on a board that its parent sees: shared memory, which survives a crash."""

import mmap
import time
from ast import literal_eval
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Any
from zlib import crc32

SIZE = 1 << 15
LENGTH_BYTES = CHECK_BYTES = 4
HEAD_BYTES = LENGTH_BYTES + CHECK_BYTES

BASE_SECONDS = 60.0
SECONDS_FOR_A_MEGABYTE = 1.0
BASE_MEMORY = 4 << 30
MEMORY_FOR_A_BYTE = 100

LOWERING_SECONDS = 120.0
LOWERING_SECONDS_FOR_A_MEGABYTE = 300.0


@dataclass(frozen=True)
class Note:
    """What a process does.

    Attributes:
      module: what it reads, or has read last.
      is_reading: whether it still reads it.
      size: bytes of that module.
      since: when it began to, on the monotonic clock.
      lowering_since: when it began to classify or lower what it has read, or 0 where it does not.
      temporary: a file that must not stay, or "".
    """

    module: str = ""
    is_reading: bool = False
    size: int = 0
    since: float = 0.0
    lowering_since: float = 0.0
    temporary: str = ""


class Board:
    """A note in memory that a process shares with those that it forks."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        self.note = Note()

    def write(self, note: Note) -> None:
        """Replace the note; one that is too long for the board is dropped."""
        self.note = note
        data = repr(astuple(note)).encode()
        if len(data) <= SIZE - HEAD_BYTES:
            self._memory[HEAD_BYTES : HEAD_BYTES + len(data)] = data
            self._memory[:HEAD_BYTES] = _head(data)

    def read(self) -> Note:
        """The note, as the other process left it; the one read before where it is being written at this moment."""
        size = int.from_bytes(self._memory[:LENGTH_BYTES], "little")
        data = self._memory[HEAD_BYTES : HEAD_BYTES + size]
        if size and self._memory[:HEAD_BYTES] == _head(data):
            self.note = Note(*literal_eval(data.decode()))
        return self.note


def _head(data: bytes) -> bytes:
    """The length and the checksum of what is written, which tell a note from one that is half written."""
    return len(data).to_bytes(LENGTH_BYTES, "little") + crc32(data).to_bytes(CHECK_BYTES, "little")


@dataclass
class _Process:
    """What is known about this process: its board, and whether another one outlives its crash."""

    board: Board | None = None
    is_contained: bool = False


_THIS = _Process()


def mark_contained(board: Board | None = None) -> None:
    """Say that this process may die of what it reads: another one is there to report it."""
    _THIS.is_contained = True
    _THIS.board = board


def is_contained() -> bool:
    """Whether this process may die of what it reads."""
    return _THIS.is_contained


@contextmanager
def _note_during(before: dict[str, Any], after: dict[str, Any]) -> Generator[None]:
    """Write one note of this process on entry and another one on exit."""
    board = _THIS.board
    if board is not None:
        board.write(replace(board.note, **before))
    try:
        yield
    finally:
        if board is not None:
            board.write(replace(board.note, **after))


def reading(module: str, size: int) -> AbstractContextManager[None]:
    """Tell that a module of so many bytes is being read; afterwards, that it is what is worked on."""
    told = {"module": module, "is_reading": True, "size": size, "since": time.monotonic()}
    return _note_during(told, {"is_reading": False})


def lowering() -> AbstractContextManager[None]:
    """Tell that the module that was read, or is read now, is classified or lowered."""
    return _note_during({"lowering_since": time.monotonic()}, {"lowering_since": 0.0})


def temporary_file(path: str) -> AbstractContextManager[None]:
    """Tell of a file that must not stay if this process dies."""
    return _note_during({"temporary": path}, {"temporary": ""})


def seconds_for(size: int) -> float:
    """The time for reading a module of so many bytes: many times what a whole one takes."""
    return BASE_SECONDS + SECONDS_FOR_A_MEGABYTE * size / 1e6


def memory_for(size: int) -> int:
    """The bytes of memory for reading a module of so many bytes: many times what a whole one takes."""
    return BASE_MEMORY + MEMORY_FOR_A_BYTE * size


def lowering_seconds_for(size: int) -> float:
    """The time for lowering a module of so many bytes: many times what the slowest known one takes, on a busy machine.

    The analyses count their steps and end in *unknown*; this is for what none of them counts.
    """
    return LOWERING_SECONDS + LOWERING_SECONDS_FOR_A_MEGABYTE * size / 1e6
