"""IREE, on the CPU: llvm-cpu compiles, local-task runs.

The compiler is a program of its own (`iree-compile`), so that its death is told from that of the module that it made.
"""

import os
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from hlo_lower.consumers.consumer import Consumer, Runner
from hlo_lower.consumers.consumer_outcome import (
    MESSAGE_LENGTH,
    Array,
    RefusedError,
    RunsElsewhereError,
    ToolCrashedError,
    cause_of,
    death_words,
    first_line,
    signal_name,
)
from hlo_lower.consumers.iree_registers import BRANCHES, lost_reference

FLAGS = ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host")
DEVICE_FLAG, CPU_FLAG = "--iree-hal-target-", "--iree-llvmcpu-target-"
"""How flags begin that name another device, or another CPU, than ours do."""

FORALL = ("scf.forall", "--iree-preprocessing-pass-pipeline=builtin.module(util.func(iree-codegen-forall-to-for))")
"""What its compiler dies of where it stands in a function, and its own pass that takes it away."""

LOOPS = ("scf.for", "--iree-hal-indirect-command-buffers=false")
"""What may end its runtime (3.13, "indirect buffer reference slot 0 is out range"), where one stands in another and not
every result of the outer one is read; and without which commands it does not."""

DEVICE = "local-task"

HEAP_CHECK = "libc_malloc_debug.so.0"
"""The checking allocator of glibc, 2.34 and later: a block that was written beyond its ends ends the process."""

IREE = Consumer(
    "iree",
    f"IREE (llvm-cpu, {DEVICE})",
    driver=__name__,
    imports=("iree.compiler", "iree.runtime"),
    package="iree-base-compiler",
    extra="iree",
    environment={"LD_PRELOAD": HEAP_CHECK, "GLIBC_TUNABLES": "glibc.malloc.check=3"},
    artifact=".vmfb",
)

_CODE = re.compile(r"Error code: (-?\d+)")
_NOT_HERE = re.compile(r"INCOMPATIBLE; ([^:;]*)")
"""How the runtime refuses a module that is for another device."""


def load() -> None:
    """Import the compiler's driver and the runtime."""
    for name in IREE.imports:
        import_module(name)
    for name in IREE.environment:  # the compiler is not to run on the checking allocator
        os.environ.pop(name, None)


def compile_module(text: str) -> Runner:
    """Compile StableHLO or linalg text, and load what comes out; RefusedError and ToolCrashedError as of `Driver`."""
    return _LoadedModule(_compile(text))


def build(text: str, path: str, flags: Sequence[str]) -> Runner:
    """Compile text into a file, and load that; errors as of `Builder`."""
    Path(path).write_bytes(_compile(text, flags))
    try:
        return _LoadedModule(Path(path).read_bytes())
    except (RuntimeError, ValueError) as error:
        told = first_line(str(error))
        if not (found := _NOT_HERE.search(told)):
            raise RefusedError(told) from None
        raise RunsElsewhereError(found[1]) from None


def _compile(text: str, flags: Sequence[str] = ()) -> bytes:
    """Compile text for this machine, or for the one that the flags name."""
    compiler: Any = import_module("iree.compiler.tools")
    backend, cpu = FLAGS
    ours = {backend: (DEVICE_FLAG,), cpu: (DEVICE_FLAG, CPU_FLAG)}
    ours |= {flag: (flag.partition("=")[0],) if op == LOOPS[0] else () for op, flag in (FORALL, LOOPS) if op in text}
    own = [flag for flag, others in ours.items() if not any(given.startswith(others) for given in flags)]
    try:
        binary: bytes = compiler.compile_str(text, input_type="auto", extra_args=[*own, *flags])
    except compiler.CompilerToolError as error:
        raise _error_of(str(error)) from None
    if BRANCHES.search(text) and (lost := lost_reference(binary)):
        raise RefusedError(str(lost))
    return binary


class _LoadedModule:
    """A compiled module on a device of its own; calling it runs it to the end and frees what the call made."""

    def __init__(self, binary: bytes) -> None:
        runtime: Any = import_module("iree.runtime")
        context = runtime.SystemContext(config=runtime.Config(DEVICE))
        module = runtime.VmModule.copy_buffer(context.instance, binary)
        context.add_vm_module(module)
        names = [name for name in module.function_names if not name.startswith("__")]
        self._main = context.modules[module.name]["main" if "main" in names else names[0]]

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        """The results; RefusedError if the runtime says no."""
        try:
            told: Any = self._main(*arguments)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise RefusedError(first_line(str(error))) from None
        results: tuple[Any, ...] = () if told is None else (told,)
        if isinstance(told, tuple | list):
            results = tuple(cast("Sequence[Any]", told))
        return [np.array(result.to_host()) for result in results]


def _error_of(message: str) -> RefusedError | ToolCrashedError:
    """The error behind the compiler's message: it refused the module, or it died."""
    found = _CODE.search(message)
    code = int(found[1]) if found else 1
    said = message.split("Diagnostics:", 1)[-1].split("Invoked with:", 1)[0]
    errors = [line.split("error: ", 1)[1].strip() for line in said.splitlines() if "error: " in line]
    if code < 0:
        words = death_words(said)
        return ToolCrashedError(f"iree-compile ended by {signal_name(-code)}{f': {words}' if words else ''}")
    if not errors:
        return RefusedError(first_line(said).split("  Try:")[0] or f"iree-compile: exit code {code}")
    return RefusedError(errors[0][:MESSAGE_LENGTH], cause_of(said))
