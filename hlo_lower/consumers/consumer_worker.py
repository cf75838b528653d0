"""The child process in which a consumer works: what crashes, hangs or corrupts memory here ends only this process.

    python -m hlo_lower.consumers.consumer_worker DRIVER MEMORY_BYTES

It answers requests on standard input until that ends, or until the process that started it is gone. A request is a
module's text, the arguments of its runs, and the file that is to be made of it, if any; each step is answered as it is
done, so that whoever asks knows in which one the process died: ("ready",), then for each request ("compiled",),
("results", arrays) for each run and ("done",), or, in the place of any of them, ("refused" | "crashed", message, cause)
or ("elsewhere", message). All are pickled, their lengths before them.
"""

import ctypes
import gc
import importlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, cast

from hlo_lower.consumers.consumer import Builder, Driver
from hlo_lower.consumers.consumer_outcome import (
    Array,
    Build,
    RefusedError,
    RunsElsewhereError,
    ToolCrashedError,
    first_line,
)

LENGTH_BYTES = 8
LAST = ("done", "refused", "crashed", "elsewhere")
"""Answers that end a request."""

PARENT_CHECK = 1.0
"""Seconds between two looks whether the parent is still there."""

Answer = Callable[..., None]


def limit_memory(size: int) -> None:
    """Refuse this process, and each one that it starts, more than so many bytes of memory of its own."""
    with suppress(ImportError, ValueError, OSError):  # a system without such limits has none
        import resource

        # Linux: RLIMIT_DATA counts what can be written; RLIMIT_AS would count reserved addresses, too.
        which = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        resource.setrlimit(which, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent() -> None:
    """End this process and all that it has started when the parent is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def serve(driver: Driver, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until they end."""

    def answer(*told: Any) -> None:
        data = pickle.dumps(told)
        answers.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
        answers.flush()

    driver.load()
    answer("ready")
    while len(size := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        request: Any = pickle.loads(requests.read(int.from_bytes(size, "little")))
        text, sets, build = cast("tuple[str, list[Sequence[Array]], Build | None]", request)
        try:
            _work(driver, text, sets, build, answer)
            gc.collect()
            _trim()
            answer("done")
        except RefusedError as error:
            answer("refused", error.message, error.cause)
        except RunsElsewhereError as error:
            answer("elsewhere", error.message)
        except ToolCrashedError as error:
            answer("crashed", error.message, "")
        except MemoryError:
            answer("crashed", "it needs more memory than it is given", "")
        except Exception as error:  # whatever a consumer's Python code raises is how it refuses
            answer("refused", f"{type(error).__name__}: {first_line(str(error))}", "")


def _work(driver: Driver, text: str, sets: list[Sequence[Array]], build: Build | None, answer: Answer) -> None:
    """Compile and run; all that belongs to the module is freed at the end."""
    run = driver.compile_module(text) if build is None else cast(Builder, driver).build(text, *build)
    answer("compiled")
    if run is not None:
        for arguments in sets:
            answer("results", run(arguments))


def _trim() -> None:
    """Have the allocator look through its blocks: damage that no call has met yet ends the process here."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def main() -> None:
    """Start as the command line says."""
    driver, memory = sys.argv[1], int(sys.argv[2])
    end_with_parent()
    if memory:
        limit_memory(memory)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a consumer prints is no answer
    serve(cast(Driver, importlib.import_module(driver)), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
