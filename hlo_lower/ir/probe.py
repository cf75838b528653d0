"""The child that tries to read a module for another process (`hlo_lower.base.contained.prober`).

    python -m hlo_lower.ir.probe

It has imported JAX and has read nothing itself; each module is read in a fork of it, so that a module that kills or
hangs its reader costs a few milliseconds. Its forks get half of the stack: what they survive, the asking process does.
"""

import os
import pickle
import resource
import signal
import sys
import time

from hlo_lower.base.child import LENGTH_BYTES, receive
from hlo_lower.base.contained import crash_messages
from hlo_lower.base.contained.status_board import mark_contained, memory_for, seconds_for
from hlo_lower.base.errors import HloLowerError
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text

STACK = 8 << 20
MARGIN = 2


def serve() -> None:
    """Answer requests on standard input until it ends: each an error of hlo_lower, or None."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)  # what a dying reader says is not this program's
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Control-C goes to all; who asks ends this one
    requests = sys.stdin.buffer
    while len(size := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        request = requests.read(int.from_bytes(size, "little"))
        _, (data, name) = pickle.loads(request)
        answer = pickle.dumps(probe_module(data, name))
        answers.write(len(answer).to_bytes(LENGTH_BYTES, "little") + answer)
        answers.flush()


def probe_module(data: str | bytes, name: str) -> HloLowerError | None:
    """Read a module in a fork of this process, within limits of time and memory; None where it can be read."""
    until = time.monotonic() + seconds_for(len(data))
    ours, theirs = os.pipe()
    fork = os.fork()
    if fork == 0:
        _read_and_exit(data, name, theirs)
    os.close(theirs)
    try:
        size = receive(ours, LENGTH_BYTES, until)
        return pickle.loads(receive(ours, int.from_bytes(size, "little"), until))
    except TimeoutError:
        os.kill(fork, signal.SIGKILL)
        return crash_messages.too_late(name, len(data))
    except EOFError:
        pass
    finally:
        os.close(ours)
        _, status = os.waitpid(fork, 0)
    return crash_messages.died_reading(name, len(data), os.waitstatus_to_exitcode(status))


def _read_and_exit(data: str | bytes, name: str, answers: int) -> None:
    """The life of a fork: whatever happens, it does not return."""
    try:
        mark_contained()
        _limit(len(data))
        error: HloLowerError | None = None
        try:
            to_text(read(data, name, is_structured=True))  # printing can die of what parsing survives
        except HloLowerError as refused:
            error = refused
        except MemoryError:
            error = crash_messages.too_large(name, len(data))
        except Exception:  # a mistake of our own, which is to be seen where it is asked for
            error = None
        answer = pickle.dumps(error)
        os.write(answers, len(answer).to_bytes(LENGTH_BYTES, "little"))
        with os.fdopen(answers, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 1)


def _limit(size: int) -> None:
    """Take less stack than the asking process has, no more memory than reading may need, and leave no core behind."""
    for kind, soft in (
        (resource.RLIMIT_STACK, STACK // MARGIN),
        (resource.RLIMIT_DATA, memory_for(size)),
        (resource.RLIMIT_CORE, 0),
    ):
        before, hard = resource.getrlimit(kind)
        allowed = [limit for limit in (soft, before, hard) if limit != resource.RLIM_INFINITY]
        if kind == resource.RLIMIT_STACK and before != resource.RLIM_INFINITY:
            allowed.append(before // MARGIN)
        resource.setrlimit(kind, (min(allowed), hard))


if __name__ == "__main__":
    serve()
